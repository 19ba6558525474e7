"""Inputs that grow in one dimension of their format: maps and forks of recordings, sequences and clock snapshots of
Perfetto, chunks of flight recordings, dictionaries of OTLP, threads of Firefox ..."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from bench.grown import Dimension, Pprof, blob, varint, whole
from tests.support.jfrfile import Chunk, Field

# ---- recordings of perf: samples have address, process, time and an empty chain ----


def _record(kind: int, body: bytes, mode: int = 2) -> bytes:
    body += bytes(-len(body) % 8)
    return struct.pack("<IHH", kind, mode, len(body) + 8) + body


def _text(text: str) -> bytes:
    return text.encode() + bytes(8 - len(text) % 8)


def _map(pid: int, start: int, name: str, time: int) -> bytes:
    return _record(1, struct.pack("<IIQQQ", pid, pid, start, 0x1000, 0) + _text(name) + _id(pid, time))


def _id(pid: int, time: int) -> bytes:
    return struct.pack("<IIQ", pid, pid, time)


def _comm(pid: int, name: str, time: int) -> bytes:
    return _record(3, struct.pack("<II", pid, pid) + _text(name) + _id(pid, time))


def _fork(pid: int, parent: int, time: int) -> bytes:
    return _record(7, struct.pack("<IIIIQ", pid, parent, pid, parent, time) + _id(pid, time))


def _sample(pid: int, address: int, time: int) -> bytes:
    return _record(9, struct.pack("<QIIQQ", address, pid, pid, time, 0))


def _perf(path: Path, records: Iterable[bytes]) -> None:
    attribute = struct.pack("<IIQQQQQ", 1, 128, 0, 1000, 0x27, 0, 1 << 18 | 1 << 8).ljust(128, b"\0")
    data = b"".join(records)
    head = b"PERFILE2" + struct.pack("<QQ", 104, 144) + struct.pack("<QQ", 112, 144)
    head += struct.pack("<QQ", 256, len(data)) + bytes(48)
    path.write_bytes(head + struct.pack("<Q", 1) + attribute + struct.pack("<QQ", 104, 8) + data)


def _perf_maps(path: Path, n: int) -> None:
    maps = (_map(7, 0x10000 * (k + 1), f"/nowhere/l{k}.so", k) for k in range(n))
    _perf(path, (*maps, *(_sample(7, 0x10000 * (k + 1) + 5, n + k) for k in range(n))))


def _perf_remaps(path: Path, n: int) -> None:
    """Of one place."""
    two = ((_map(7, 0x100000, f"/nowhere/l{k}.so", 2 * k), _sample(7, 0x100005, 2 * k + 1)) for k in range(n))
    _perf(path, (record for both in two for record in both))


def _perf_processes(path: Path, n: int) -> None:
    three = (
        (_comm(k, f"c{k}", 3 * k), _map(k, 0x100000, "/nowhere/l.so", 3 * k + 1), _sample(k, 0x100005, 3 * k + 2))
        for k in range(1, n + 1)
    )
    _perf(path, (record for each in three for record in each))


def _perf_comms(path: Path, n: int) -> None:
    two = ((_comm(1, f"c{k}", 2 * k), _sample(1, 0x100005, 2 * k + 1)) for k in range(1, n + 1))
    _perf(path, (_map(1, 0x100000, "/nowhere/l.so", 0), *(record for both in two for record in both)))


def _perf_forks(path: Path, n: int) -> None:
    """A chain of processes: each inherits 200 maps."""
    maps = (_map(1, 0x100000 + (k << 12), f"/nowhere/l{k}.so", k) for k in range(200))
    two = ((_fork(k + 2, k + 1, 1000 + 2 * k), _sample(k + 2, 0x100005, 1001 + 2 * k)) for k in range(n))
    _perf(path, (*maps, *(record for both in two for record in both)))


# ---- Perfetto --------------------------------------------------------------


def _perfetto(path: Path, packets: Iterable[bytes]) -> None:
    path.write_bytes(b"".join(blob(1, packet) for packet in packets))


def _instant(time: int, sequence: int = 1, clock: int = 0) -> bytes:
    event = blob(11, whole(9, 3) + whole(11, 5) + blob(23, b"e"))
    return whole(8, time) + (whole(58, clock) if clock else b"") + whole(10, sequence) + event


def _snapshot(k: int) -> bytes:
    clocks = ((6, k * 1000), (3, k * 1000 + k % 7))
    return whole(10, 1) + blob(6, b"".join(blob(1, whole(1, clock) + whole(2, time)) for clock, time in clocks))


def _snapshots(path: Path, n: int) -> None:
    _perfetto(path, (packet for k in range(n) for packet in (_snapshot(k), _instant(k * 1000 + 500, 1, 3))))


def _snapshots_first(path: Path, n: int) -> None:
    _perfetto(path, [*map(_snapshot, range(n)), *(_instant(k * 1000 + 500, 1, 3) for k in range(n))])


def _sequences(path: Path, n: int) -> None:
    _perfetto(path, (_instant(k, k + 1) + whole(13, 3) for k in range(n)))


def _interned(path: Path, n: int) -> None:
    def packet(k: int) -> bytes:
        name = blob(12, blob(2, whole(1, k + 1) + blob(2, b"event%d" % k)))
        event = blob(11, whole(9, 3) + whole(10, k + 1) + whole(11, 5))
        return whole(10, 1) + whole(13, 2) + whole(8, k) + name + event

    _perfetto(path, (whole(10, 1) + whole(13, 1) + whole(8, 1), *map(packet, range(n))))


# ---- flight recordings --------------------------------------------------------


def _chunk(types: dict[str, tuple[Field, ...]] | None, names: Iterable[str], start: int = 0) -> bytes:
    chunk = Chunk(types, start_ns=1_700_000_000_000_000_000 + start)
    main, state = chunk.thread("main", 1, 4711), chunk.state("STATE_RUNNABLE")
    for ticks, name in enumerate(names):
        stack = chunk.stack([("a/B", name, "()V", 3, 4, "JIT compiled")])
        chunk.event("jdk.ExecutionSample", 5 + ticks, main, stack, state)
    return chunk.bytes()


def _jfr_metadata(path: Path, n: int) -> None:
    path.write_bytes(_chunk({f"own.Type{k}": (Field(f"field{k}", "long"),) for k in range(n)}, ["m"]))


# ---- JSON ----------------------------------------------------------------------


def _otlp(path: Path, n: int, attributes: bool) -> None:
    functions = 1 if attributes else n
    dictionary = {
        "stringTable": ["", "cpu", "ns", *(f"f{k}" for k in range(functions))],
        "mappingTable": [{}],
        "functionTable": [{}, *({"nameStrindex": 3 + k} for k in range(functions))],
        "locationTable": [{}, *({"lines": [{"functionIndex": k + 1}]} for k in range(functions))],
        "stackTable": [{}, *({"locationIndices": [k + 1]} for k in range(functions))],
        "linkTable": [{}],
        "attributeTable": [{}],
    }
    own: list[Any] = [{"keyStrindex": 1, "value": {"stringValue": f"v{k}"}} for k in range(n if attributes else 0)]
    dictionary["attributeTable"] += own
    samples = [
        {"stackIndex": 1 if attributes else k + 1, "values": ["1"], "attributeIndices": [k + 1] if attributes else []}
        for k in range(n)
    ]
    profile = {"sampleType": {"typeStrindex": 1, "unitStrindex": 2}, "samples": samples}
    resources = [{"scopeProfiles": [{"profiles": [profile]}]}]
    path.write_text(json.dumps({"dictionary": dictionary, "resourceProfiles": resources}))


def _firefox(path: Path, n: int) -> None:
    none, zero = {"length": 0}, [0]
    tables = {
        "stackTable": {"length": 1, "frame": zero, "prefix": [None], "category": zero},
        "frameTable": {"length": 1, "address": [-1], "func": zero, "line": [None], "inlineDepth": zero},
        "funcTable": {"length": 1, "name": zero, "resource": [-1], "fileName": [None], "isJS": [False]},
        "resourceTable": none | {"lib": [], "name": [], "type": []},
        "markers": none | {"data": [], "name": [], "startTime": [], "endTime": [], "phase": [], "category": []},
    }
    threads = [
        {"name": f"t{k}", "processType": "default", "pid": "1", "tid": k + 1, "stringArray": [f"f{k % 100}"]}
        | {"samples": {"length": 1, "stack": zero, "time": [k], "weight": None, "weightType": "samples"}}
        | tables
        for k in range(n)
    ]
    meta = {"interval": 1, "startTime": 0, "product": "x", "version": 27, "preprocessedProfileVersion": 44}
    path.write_text(json.dumps({"meta": meta, "libs": [], "threads": threads}))


# ---- types x functions, members x labels ---------------------------------------------


def _types_and_functions(path: Path, n: int) -> None:
    """n functions and n / 10 value types, of which each sample has one."""
    types = n // 10 or 1
    made = Pprof(types)
    for k in range(1, n + 1):
        made.function(k, f"function_{k}")
        made.location(k, [k])
        made.sample([k], values=b"".join(varint(int(k % types == t)) for t in range(types)))
    made.write(path)


def _labelled_members(path: Path, n: int) -> None:
    """Profiles with as many labels, of which each has its own values."""
    path.mkdir()
    for k in range(n):
        made = Pprof(1)
        made.function(1, "work")
        made.location(1, [1])
        made.sample([1], [(f"key{j}", f"{k} {j}") for j in range(n)])
        made.write(path / f"run{k:06}.pb")


FORMATS: dict[str, Dimension] = {
    "maps of a recording": Dimension("stacks", ".data", 5000, _perf_maps),
    "maps of one place": Dimension("stacks", ".data", 10_000, _perf_remaps),
    "processes of a recording": Dimension("stacks", ".data", 5000, _perf_processes),
    "comms of a process": Dimension("stacks", ".data", 10_000, _perf_comms),
    "forks": Dimension("stacks", ".data", 10_000, _perf_forks),
    "clock snapshots": Dimension("timeline", ".pftrace", 10_000, _snapshots),
    "clock snapshots before events": Dimension("timeline", ".pftrace", 10_000, _snapshots_first),
    "sequences": Dimension("timeline", ".pftrace", 10_000, _sequences),
    "interned names": Dimension("timeline", ".pftrace", 10_000, _interned),
    "chunks": Dimension(
        "stacks",
        ".jfr",
        200,
        lambda p, n: p.write_bytes(b"".join(_chunk(None, [f"m{k}"], k * 10**9) for k in range(n))) and None,
    ),
    "types of a flight recording": Dimension("stacks", ".jfr", 2000, _jfr_metadata),
    "methods of a flight recording": Dimension(
        "stacks", ".jfr", 5000, lambda p, n: p.write_bytes(_chunk(None, (f"m{k}" for k in range(n)))) and None
    ),
    "functions of a dictionary": Dimension("stacks", ".otlp.json", 10_000, lambda p, n: _otlp(p, n, False)),
    "attributes of a dictionary": Dimension("stacks", ".otlp.json", 10_000, lambda p, n: _otlp(p, n, True)),
    "threads of a Firefox profile": Dimension("stacks", ".json", 1000, _firefox),
    # each dimension twice, so the input four times
    "value types x functions": Dimension("stacks", ".pb", 500, _types_and_functions, 4),
    "members x labels": Dimension("files", "", 50, _labelled_members, 4),
}
