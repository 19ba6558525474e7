"""--tagroot and --tagleaf: labels that become frames."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import fastprof
from fastprof.core._c import ffi, lib
from fastprof.core.errors import UsageError
from fastprof.core.model import Batch, Model


@pytest.fixture
def merged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    for host, f, g in (("a", 10, 3), ("b", 1, 30)):
        Path(f"{host}.folded").write_text(f"main;f {f}\nmain;g {g}\n")
    fastprof.merge(["a.folded", "b.folded"], "all.pb", label_path="{host}.folded")
    return "all.pb"


def folded(path: str, **options: Any) -> list[str]:
    fastprof.convert(path, "out.folded", **options)
    return sorted(Path("out.folded").read_text().splitlines())


def test_values_become_frames(merged: str) -> None:
    assert folded(merged, tagroot="host") == ["a;main;f 10", "a;main;g 3", "b;main;f 1", "b;main;g 30"]
    assert folded(merged, tagleaf="host") == ["main;f;a 10", "main;f;b 1", "main;g;a 3", "main;g;b 30"]
    assert folded(merged, tagroot="zone,host", tagleaf="zone") == [
        "(none);a;main;f;(none) 10",
        "(none);a;main;g;(none) 3",
        "(none);b;main;f;(none) 1",
        "(none);b;main;g;(none) 30",
    ]


def test_labels_of_inputs_do_so_in_one_go(merged: str) -> None:
    paths = ["a.folded", "b.folded"]
    fastprof.merge(paths, "out.folded", label_path="{host}.folded", tagroot="host")
    assert "b;main;g 30" in Path("out.folded").read_text()
    found = fastprof.top(paths, label_input=True, tagroot="input")
    assert {row.name: row.inclusive for row in found.rows if row.name.endswith("folded")} == {
        "a.folded": 13,
        "b.folded": 31,
    }


def test_labels_and_places_stay(merged: str) -> None:
    fastprof.convert(merged, "tagged.pb", tagroot="host")
    rows = fastprof.top("tagged.pb", by="label:host", n=0).rows
    assert {row.name: row.self for row in rows} == {"a": 13, "b": 31}
    files = {row.name: row.file for row in fastprof.top("tagged.pb", n=0).rows}
    assert files == {"main": "", "f": "", "g": "", "a": "host", "b": "host"}


def test_keys_that_no_sample_has_are_reported(merged: str) -> None:
    def warned(verb: Any, *inputs: str, **options: Any) -> list[str]:
        return [text for text in verb(*inputs, **options).log.warnings if "no sample has" in text]

    says = "no sample has the label zone; the labels are host"
    for verb, inputs in ((fastprof.top, [merged]), (fastprof.diff, [merged, merged])):
        assert warned(verb, *inputs, by="label:zone,host,function") == [f"by: {says}"]
        assert warned(verb, *inputs, by="label:host") == []
        assert warned(verb, *inputs, tagroot="host,zone") == [f"tagroot: {says}"]
        assert warned(verb, *inputs, tagroot="host", tagleaf="zone") == [f"tagleaf: {says}"]
    assert warned(fastprof.top, merged, matrix="zone") == [f"matrix: {says}"]
    assert warned(fastprof.top, "a.folded", tagroot="host") == [
        "tagroot: no sample has the label host; there are no labels"
    ]
    given: Any = {"label_path": "{host}.folded", "tagroot": "host"}
    assert warned(fastprof.top, "a.folded", **given) == []
    assert warned(fastprof.diff, "a.folded", merged, tagroot="host") == []  # one side has it
    Path("none.folded").write_text("")
    assert warned(fastprof.top, "none.folded", from_="folded", tagroot="host", by="label:host") == []


def test_numbers_have_their_units(merged: str) -> None:
    fastprof.convert(numbers(), "tagged.pb", tagleaf="bytes")
    names = {row.name for row in fastprof.top("tagged.pb", n=0).rows}
    assert {"512 bytes", "-1 bytes", "(none)"} <= names


def numbers() -> str:
    from tests.unit.test_pprof import message, number, varint

    def sample(*labels: bytes) -> bytes:
        return message(2, message(1, varint(1)) + message(2, varint(5)) + b"".join(message(3, one) for one in labels))

    texts = [b"", b"samples", b"count", b"main", b"bytes"]
    data = [
        message(1, number(1, 1) + number(2, 2)),
        sample(number(1, 4) + number(3, 512) + number(4, 4)),
        sample(number(1, 4) + number(3, (1 << 64) - 1) + number(4, 4)),
        sample(),
        message(4, number(1, 1) + message(4, number(1, 1))),
        message(5, number(1, 1) + number(2, 3)),
        *(message(6, text) for text in texts),
    ]
    Path("numbers.pb").write_bytes(b"".join(data))
    return "numbers.pb"


def test_a_timeline_has_no_labels(merged: str) -> None:
    Path("t.json").write_text('[{"name":"f","ph":"X","ts":1,"dur":2,"pid":1,"tid":1}]')
    with pytest.raises(UsageError, match="tagroot= has no effect"):
        fastprof.convert("t.json", "out.json", to="speedscope", from_="trace-event", tagroot="thread")


# (pid, tid, name): threads of equal and without names, and a process of another input with the same id
THREADS = {"a.json": [(7, 8, "w"), (7, 9, "w"), (7, 10, "")], "b.json": [(7, 8, "w"), (1, 1, "")]}
ROOTS = [
    "process 1, thread 1",
    *(
        f"process 7 [{i}.json], {thread}"
        for i, n in (("a", 3), ("b", 1))
        for thread in ("w (8)", "w (9)", "thread 10")[:n]
    ),
]


@pytest.fixture
def traces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Calls main > f, 4 us of them in f, in all of THREADS.  The names of threads come last."""
    monkeypatch.chdir(tmp_path)
    for path, threads in THREADS.items():
        calls = [
            {"ph": "X", "pid": pid, "tid": tid, "ts": ts, "dur": dur, "name": name}
            for pid, tid, _ in threads
            for ts, dur, name in ((0, 10, "main"), (5, 4, "f"))
        ]
        named = [
            {"ph": "M", "pid": pid, "tid": tid, "name": "thread_name", "args": {"name": name}}
            for pid, tid, name in threads
            if name
        ]
        Path(path).write_text(json.dumps(calls + named))
    return [*THREADS]


def test_threads_become_frames_where_a_format_has_no_place_for_them(traces: list[str]) -> None:
    expected = sorted(f"{root};{stack}" for root in ROOTS for stack in ("main 6", "main;f 4"))
    log = fastprof.convert(traces, "out.folded", per_thread=True)
    assert sorted(Path("out.folded").read_text().splitlines()) == expected
    assert {row.name for row in fastprof.top(traces, by="thread").rows} == {*ROOTS}  # one rule
    assert {"threads", "thread-names", "labels-and-threads"}.isdisjoint(
        entry["code"] for entry in log.not_representable.entries()
    )
    # and from stacks and graphs that have threads
    for suffix in (".speedscope.json", ".firefox.json", ".fpa", ".callgrind"):
        fastprof.convert(traces[0], f"x{suffix}", per_thread=True, to="firefox" if "firefox" in suffix else None)
        found = folded(f"x{suffix}", per_thread=True)
        assert len(found) == 6
        assert {line.split(";", 1)[1] for line in found} == {"main 6", "main;f 4"}
        assert len({line.split(";")[0] for line in found}) == 3


def test_a_frame_for_each_thread_needs_threads(merged: str) -> None:
    log = fastprof.convert(merged, "out.folded", per_thread=True)
    assert log.warnings == ["per_thread: the input records no threads (tagroot= separates samples by labels)"]
    assert sorted(Path("out.folded").read_text().splitlines()) == ["main;f 11", "main;g 33"]


@pytest.mark.parametrize("by_thread", [False, True])
def test_ids_that_are_not_there(by_thread: bool) -> None:
    model = Model()
    assert (model.thread(1, 1) if by_thread else model.label("k", "v")) == 1
    c = ffi.gc(lib.fp_tag_new(model.c, by_thread), lib.fp_tag_free)
    err = ffi.new("struct fp_err *")
    frame = model.frame(0, 0, 0, model.line(model.function("f")))
    for key, stack, known in ((0, 7, True), (1, 0, False), (9, 0, True)):
        if known:
            assert lib.fp_tag_key(c, 0, [frame], 1, 0) == 0
        batch = Batch("stacks", 1, 1)
        batch.c.n = 1
        (batch.c.thread if by_thread else batch.c.label)[0], batch.c.stack[0] = key, stack
        assert lib.fp_tag_batch(c, batch.c, err) == lib.FP_E_MALFORMED
