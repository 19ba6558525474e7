"""Inputs that grow in one dimension: threads, parts, names, depth ... and are small in all others."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple


class Dimension(NamedTuple):
    """`make` writes an input of size `n` to a path, a file or a folder of files.  `limit`: for `--max-memory`."""

    view: str
    suffix: str
    n: int
    make: Callable[[Path, int], None]
    linear: float = 2  # how much longer the input is with 2N
    limit: str = ""


# ---- timelines ---------------------------------------------------------------


def _basic(path: Path, records: Iterable[tuple[int, int, int, int, int]]) -> None:
    """An XRay log (basic mode) of (kind, function, time, thread, process); 0 is an entry and 1 an exit."""
    record = struct.Struct("<HBBIQII8x").pack
    with path.open("wb") as out:
        out.write(struct.pack("<HHIQ16x", 3, 0, 3, 10**9))
        out.writelines(record(0, 0, kind, function, time, tid, pid) for kind, function, time, tid, pid in records)


def _calls(path: Path, calls: Iterable[tuple[int, int, int]]) -> None:
    """One call after the other of (function, thread, process)."""
    _basic(
        path,
        ((kind, f, 10_000 * i + 5000 * kind, tid, pid) for i, (f, tid, pid) in enumerate(calls, 1) for kind in (0, 1)),
    )


def _fdr_threads(path: Path, n: int) -> None:
    """An XRay log (FDR mode) with a buffer for each thread."""
    with path.open("wb") as out:
        out.write(struct.pack("<HHIQQ8x", 5, 1, 3, 10**6, 1 << 16))
        for i in range(n):
            body = b"\1" + struct.pack("<I11x", i + 1)  # new buffer
            body += b"\x09" + struct.pack("<QI3x", 1 + i // 1000, i % 1000)  # wall time
            body += b"\x13" + struct.pack("<I11x", 7)  # process
            body += b"\x05" + struct.pack("<HQ5x", 0, i << 10)  # CPU
            body += struct.pack("<IIII", 1 << 4, 3, 1 << 4 | 2, 2)
            out.write(b"\x0f" + struct.pack("<Q7x", len(body)) + body)


def _nested(path: Path, n: int) -> None:
    down = ((0, 1 + k % 100, 1000 * k, 1, 7) for k in range(n))
    up = ((1, 1 + (n - 1 - k) % 100, 1000 * (n + k), 1, 7) for k in range(n))
    _basic(path, (record for way in (down, up) for record in way))


def _trace(path: Path, events: Iterable[dict[str, Any]]) -> None:
    path.write_text('{"traceEvents":[' + ",\n".join(json.dumps(event) for event in events) + "]}")


def _complete(k: int, **more: Any) -> dict[str, Any]:
    return {"ph": "X", "name": "work", "pid": 1, "tid": 1, "ts": 2 * k, "dur": 1} | more


def _thread_names(n: int) -> Iterable[dict[str, Any]]:
    for k in range(1, n + 1):
        yield {"ph": "M", "name": "thread_name", "pid": 1, "tid": k, "ts": 0, "args": {"name": f"thread-{k}"}}
        yield _complete(k, tid=k)


def _speedscope(path: Path, frames: list[str], profiles: list[dict[str, Any]]) -> None:
    schema = "https://www.speedscope.app/file-format-schema.json"
    shared = {"frames": [{"name": name} for name in frames]}
    path.write_text(json.dumps({"$schema": schema, "shared": shared, "profiles": profiles}))


def _sampled(name: str, samples: list[list[int]]) -> dict[str, Any]:
    ends = {"unit": "none", "startValue": 0, "endValue": len(samples)}
    return {"type": "sampled", "name": name, **ends, "samples": samples, "weights": [1] * len(samples)}


# ---- stacks -----------------------------------------------------------------


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def blob(number: int, body: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(body)) + body


def whole(number: int, value: int) -> bytes:
    return varint(number << 3) + varint(value)


class Pprof:
    """A pprof profile in the making."""

    def __init__(self, types: int = 1) -> None:
        self._texts: dict[str, int] = {"": 0}
        self._body = bytearray()
        for k in range(types):
            self._body += blob(1, whole(1, self.text(f"type{k}")) + whole(2, self.text("count")))
        self._types = types

    def text(self, text: str) -> int:
        return self._texts.setdefault(text, len(self._texts))

    def function(self, number: int, name: str, file: str = "") -> None:
        self._body += blob(5, whole(1, number) + whole(2, self.text(name)) + whole(4, self.text(file)))

    def location(self, number: int, functions: Iterable[int], mapping: int = 0, address: int = 0) -> None:
        lines = b"".join(blob(4, whole(1, function) + whole(2, 7)) for function in functions)
        self._body += blob(4, whole(1, number) + whole(2, mapping) + whole(3, address or number << 4) + lines)

    def mapping(self, number: int, file: str) -> None:
        limits = whole(2, number << 12) + whole(3, (number + 1) << 12)
        self._body += blob(3, whole(1, number) + limits + whole(5, self.text(file)))

    def sample(
        self, locations: Iterable[int], labels: Iterable[tuple[str, str]] = (), values: bytes | None = None
    ) -> None:
        body = blob(1, b"".join(map(varint, locations))) + blob(2, values or b"\1" * self._types)
        for key, value in labels:
            body += blob(3, whole(1, self.text(key)) + whole(2, self.text(value)))
        self._body += blob(2, body)

    def write(self, path: Path) -> None:
        path.write_bytes(bytes(self._body) + b"".join(blob(6, text.encode()) for text in self._texts))


def one_function(types: int = 1, name: str = "work") -> Pprof:
    """With a function and a location 1."""
    made = Pprof(types)
    made.function(1, name)
    made.location(1, [1])
    return made


def _types(path: Path, n: int) -> None:
    made = one_function(n)
    for _ in range(100):
        made.sample([1])
    made.write(path)


def _files(path: Path, n: int) -> None:
    made = Pprof()
    for k in range(1, n + 1):
        made.function(k, f"function_{k}", f"source_{k}.c")
        made.location(k, [k])
        made.sample([k])
    made.write(path)


def _labels(path: Path, n: int) -> None:
    made = one_function()
    for k in range(n):
        made.sample([1], [("request", f"r{k}")])
    made.write(path)


def _label_keys(path: Path, n: int) -> None:
    made = one_function()
    for k in range(n):
        made.sample([1], [(f"key{k}", "v")])
    made.write(path)


def _labels_of_one(path: Path, n: int) -> None:
    made = one_function()
    made.sample([1], [(f"key{k}", f"v{k}") for k in range(n)])
    made.write(path)


def _mappings(path: Path, n: int) -> None:
    made = Pprof()
    for k in range(1, n + 1):
        made.mapping(k, f"/nowhere/lib{k}.so")
        made.location(k, [], k, (k << 12) + 5)
        made.sample([k])
    made.write(path)


def _deep(path: Path, n: int) -> None:
    made = Pprof()
    for k in range(1, 1001):
        made.function(k, f"function_{k}")
        made.location(k, [k])
    made.sample([1 + k % 1000 for k in range(n)])
    made.write(path)


def _inlined(path: Path, n: int) -> None:
    made = Pprof()
    made.function(1, "work")
    made.location(1, [1] * n)
    made.sample([1])
    made.write(path)


def _long_name(path: Path, n: int) -> None:
    made = one_function(name="x" * n)
    made.sample([1])
    made.write(path)


def _lines(path: Path, lines: Iterable[str]) -> None:
    with path.open("w") as out:
        out.writelines(lines)


def _folded_stacks(path: Path, n: int) -> None:
    with path.open("w") as out:
        out.writelines(
            ";".join(["main", *(f"f{(k * 7919 * (j + 1) >> j) % 2000}" for j in range(10))]) + " 1\n" for k in range(n)
        )


def _maps(path: Path, n: int) -> None:
    """A gperftools profile, and a line of mappings for each of its addresses."""
    words = [0, 3, 0, 10_000, 0]
    for k in range(n):
        words += [1, 1, 0x400000 + (k << 12) + 5]
    text = "".join(
        f"{0x400000 + (k << 12):x}-{0x401000 + (k << 12):x} r-xp 0 08:01 1 /nowhere/m{k}\n" for k in range(n)
    )
    path.write_bytes(struct.pack(f"<{len(words) + 3}Q", *words, 0, 1, 0) + text.encode())


def _cpuprofile(path: Path, nodes: list[dict[str, Any]]) -> None:
    for node in nodes:
        frame = {"functionName": f"f{node['id'] % 1000}", "scriptId": "0", "url": "", "lineNumber": 1}
        node |= {"callFrame": frame | {"columnNumber": 1}, "hitCount": 1}
    last = nodes[-1]["id"]
    path.write_text(json.dumps({"nodes": nodes, "startTime": 0, "endTime": 9, "samples": [last], "timeDeltas": [1]}))


# ---- graphs ------------------------------------------------------------------


def _callgrind(path: Path, body: Iterable[str], events: str = "Ir") -> None:
    with path.open("w") as out:
        out.write(f"version: 1\nevents: {events}\n")
        out.writelines(body)


def _parts(path: Path, n: int) -> None:
    with path.open("w") as out:
        for k in range(n):
            out.write(f"part: {k + 1}\npid: {k % 50 + 1}\nevents: Ir\nfn=f{k % 100}\n1 1\ntotals: 1\n\n")


def _chain(n: int) -> Iterable[str]:
    return (f"fn=f{k}\n1 1\ncfn=f{k + 1}\ncalls=1 1\n1 {n - k}\n" for k in range(n))


def _circle(n: int) -> Iterable[str]:
    return (f"fn=f{k}\n1 1\ncfn=f{(k + 1) % n}\ncalls=1 1\n1 5\n" for k in range(n))


def _star(n: int) -> Iterable[str]:
    yield "fn=main\n1 1\n"
    yield from (f"cfn=f{k}\ncalls=1 1\n1 5\n" for k in range(n))
    yield from (f"fn=f{k}\n1 5\n" for k in range(n))


# ---- many files -----------------------------------------------------------------


def _members(path: Path, n: int) -> None:
    path.mkdir()
    for k in range(n):
        (path / f"run{k:06}.folded").write_text(f"main;f{k % 50} 1\nmain;g{k} 2\n")


DIMENSIONS: dict[str, Dimension] = {
    "threads": Dimension("timeline", ".xray", 20_000, lambda p, n: _calls(p, ((1, k + 1, 7) for k in range(n)))),
    "threads, FDR": Dimension("timeline", ".xray", 20_000, _fdr_threads),
    "processes": Dimension("timeline", ".xray", 10_000, lambda p, n: _calls(p, ((1, k, k) for k in range(1, n + 1)))),
    "functions of a timeline": Dimension(
        "timeline", ".xray", 20_000, lambda p, n: _calls(p, ((k + 1, 1, 7) for k in range(n)))
    ),
    "depth of a timeline": Dimension("timeline", ".xray", 50_000, _nested),
    "names of a trace": Dimension(
        "timeline", ".trace.json", 20_000, lambda p, n: _trace(p, (_complete(k, name=f"f{k}") for k in range(n)))
    ),
    "names of threads": Dimension("timeline", ".trace.json", 10_000, lambda p, n: _trace(p, _thread_names(n))),
    "overlapping calls": Dimension(
        "timeline", ".trace.json", 10_000, lambda p, n: _trace(p, (_complete(k, dur=n) for k in range(n)))
    ),
    "calls out of order": Dimension(
        "timeline", ".trace.json", 20_000, lambda p, n: _trace(p, (_complete(n - k) for k in range(n)))
    ),
    "profiles of a speedscope file": Dimension(
        "stacks",
        ".speedscope.json",
        1000,
        lambda p, n: _speedscope(p, ["main"], [_sampled(f"thread {k}", [[0]]) for k in range(n)]),
    ),
    "functions of stacks": Dimension(
        "stacks",
        ".folded",
        20_000,
        lambda p, n: _lines(p, (f"main;function_{k} 1\n" for k in range(n))),
    ),
    "stacks": Dimension("stacks", ".folded", 10_000, _folded_stacks),
    "stacks beyond the limit": Dimension("stacks", ".folded", 20_000, _folded_stacks, limit="1M"),
    "depth of a stack": Dimension("stacks", ".pb", 50_000, _deep),
    "depth of a tree": Dimension(
        "stacks",
        ".cpuprofile",
        10_000,
        lambda p, n: _cpuprofile(p, [{"id": k, "children": [k + 1] if k < n else []} for k in range(1, n + 1)]),
    ),
    "inlined functions": Dimension("stacks", ".pb", 20_000, _inlined),
    "files of stacks": Dimension("stacks", ".pb", 10_000, _files),
    "values of a label": Dimension("stacks", ".pb", 20_000, _labels),
    "keys of labels": Dimension("stacks", ".pb", 5000, _label_keys),
    "labels of a sample": Dimension("stacks", ".pb", 5000, _labels_of_one),
    "value types of stacks": Dimension("stacks", ".pb", 250, _types),  # diff takes 1,024, of both sides
    "mappings": Dimension("stacks", ".pb", 5000, _mappings),
    "mappings of addresses": Dimension("stacks", ".prof", 5000, _maps),
    "functions of a graph": Dimension(
        "graph", ".callgrind", 20_000, lambda p, n: _callgrind(p, (f"fn=f{k}\n{k} 1\n" for k in range(n)))
    ),
    "files of a graph": Dimension(
        "graph", ".callgrind", 10_000, lambda p, n: _callgrind(p, (f"fl=x{k}.c\nfn=f{k}\n1 1\n" for k in range(n)))
    ),
    "objects of a graph": Dimension(
        "graph", ".callgrind", 10_000, lambda p, n: _callgrind(p, (f"ob=x{k}\nfn=f{k}\n1 1\n" for k in range(n)))
    ),
    "lines of a function": Dimension(
        "graph", ".callgrind", 20_000, lambda p, n: _callgrind(p, ["fl=a.c\nfn=f\n", *(f"{k} 1\n" for k in range(n))])
    ),
    "events of a graph": Dimension(
        "graph",
        ".callgrind",
        250,
        lambda p, n: _callgrind(
            p, ["fn=f\n", *(f"{k} " + "1 " * n + "\n" for k in range(100))], " ".join(f"E{k}" for k in range(n))
        ),
    ),
    "parts": Dimension("graph", ".callgrind", 1000, _parts),
    "a chain of calls": Dimension("graph", ".callgrind", 5000, lambda p, n: _callgrind(p, _chain(n))),
    "a circle of calls": Dimension("graph", ".callgrind", 5000, lambda p, n: _callgrind(p, _circle(n))),
    "callees of a function": Dimension("graph", ".callgrind", 10_000, lambda p, n: _callgrind(p, _star(n))),
    "the length of a folded name": Dimension(
        "stacks", ".folded", 200_000, lambda p, n: _lines(p, ["main 1\n", f"main;{'x' * n} 1\n"])
    ),
    "the length of a Callgrind name": Dimension(
        "graph", ".callgrind", 200_000, lambda p, n: _callgrind(p, [f"fn={'x' * n}\n1 1\n"])
    ),
    "the length of a pprof name": Dimension("stacks", ".pb", 200_000, _long_name),
    "the length of a trace's name": Dimension(
        "timeline", ".trace.json", 200_000, lambda p, n: _trace(p, [_complete(1, name="x" * n)])
    ),
    "files": Dimension("files", "", 100, _members),
}
