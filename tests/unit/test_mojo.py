"""Austin's MOJO: the statements of docs/formats/mojo.md."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

import fastprof
from fastprof import formats
from fastprof.core.errors import FormatError
from fastprof.core.source import Source
from tests.reference import mojo
from tests.support.paths import CORPUS, needs_shared, shared_data
from tests.support.stackdump import dump

GOOD = CORPUS / "mojo" / "good"


def test_it_is_recognized_and_read(tmp_path: Path) -> None:
    data = (GOOD / "wall.mojo").read_bytes()
    with Source(data) as source:
        assert formats.detect(source).name == "mojo"
    rows = dump(data, "mojo").rows
    assert [(values, [label[:2] for label in labels]) for _, labels, values in rows] == [
        ((1, 200_000), []),
        ((1, 10_000), [(b"state", b"gc")]),
        ((1, 1_000), []),
    ]
    assert [[f[3][0][0] for f in stack] for stack, _, _ in rows] == [[b"f"], [b"INVALID", b"f"], [b"sys_read"]]
    assert rows[0][0][0][3][0][2:] == (b"a.py", 0, 2, 0)


def test_modes_decide_the_values() -> None:
    sample = [mojo.Sample(1, 2, (), 5, -7, is_idle=True)]
    for mode, types, default in (
        ("wall", {"samples": 1, "wall": 5000}, "wall"),
        ("cpu", {"samples": 1, "cpu": 0}, "cpu"),
        ("memory", {"samples": 1, "memory": -7, "alloc_space": 0}, "alloc_space"),
        ("full", {"samples": 1, "memory": -7, "alloc_space": 0, "cpu": 0, "wall": 5000}, "wall"),
        ("other", {"samples": 1, "wall": 5000}, "wall"),
    ):
        facts = fastprof.info(mojo.write(3, mode, sample)).facts
        assert facts["totals"] == types and [*types][-1] == default


def test_sums_of_full_mode() -> None:
    facts = fastprof.info(GOOD / "full.mojo").facts
    assert facts["totals"] == {
        "samples": 221, "memory": 5_480_448, "alloc_space": facts["totals"]["alloc_space"],
        "cpu": (706_870 - 607_232) * 1000, "wall": 706_870_000,
    }  # fmt: skip
    assert (facts["mode"], facts["interval_us"], facts["austin"]) == ("full", "3000", "3.7.0")


def test_long_thread_ids_are_shown() -> None:
    samples = [mojo.Sample(7, thread, (("a", "f", 1),), 5, 0) for thread in (0x7F0000001000, 0x7F0000002000, 9)]
    names = {str(row.name) for row in fastprof.top(mojo.write(3, "wall", samples), by="thread").rows}
    assert {re.sub(r".*thread ", "", name) for name in names} == {"139637976731648", "139637976735744", "9"}


def test_names_belong_to_a_process() -> None:
    samples = [mojo.Sample(pid, 1, (("a.py", f"f{pid}", pid),), 5, 0) for pid in (1, 2, 1)]
    names = [stack[0][3][0][0] for stack, _, _ in dump(mojo.write(3, "wall", samples), "mojo").rows]
    assert names == [b"f1", b"f2", b"f1"]


@pytest.mark.parametrize(
    ("event", "text"),
    [
        (b"\0", "the kind of an event"),
        (b"\x0d", "the kind of an event"),
        (b"\5\7", "not defined"),
        (b"\2\x41\0001\0", "the process"),
        (b"\2\1\0\0", "the thread"),
        (b"\2\1\x0011111111111111111\0", "the thread"),
        (b"\x09\x41", "a time"),
        (b"\x09" + b"\xff" * 10 + b"\1", "a number is too large"),
        (b"\1key", "inside an event"),
    ],
)
def test_each_event_is_checked(event: bytes, text: str) -> None:
    before = mojo.write(3, "wall", [mojo.Sample(1, 1, (), 5, 0)])
    with pytest.raises(FormatError, match=text) as found:
        fastprof.info(before + event)
    assert found.value.offset == len(before)
    log = fastprof.info(before + event, lenient=True)
    assert log.losses.total() == 1 and log.facts["totals"]["samples"] == 1


def test_lines_that_austin_misread_are_left_out() -> None:
    """Austin 3.7 wrote line 2,406,805,832."""
    samples = [mojo.Sample(1, 1, (("a.py", "f", line),), 5, 0) for line in (7, 2_406_805_832)]
    found = dump(mojo.write(3, "wall", samples), "mojo")
    assert [stack[0][3][0][4] for stack, _, _ in found.rows] == [7, 0]
    assert found.log.repairs == {"impossible-lines": 1}


@needs_shared
@pytest.mark.parametrize("name", ["a", "mem"])
def test_stacks_are_those_of_mojo2austin(name: str) -> None:
    """In its text: file:function:line, outermost first, and microseconds or bytes, of one interpreter."""
    folder, suffix = shared_data("austin"), {"a": "a.mojo.austin", "mem": "mem.austin"}[name]
    theirs: Counter[str] = Counter()
    for line in (folder / suffix).read_text().splitlines():
        if line.startswith("P"):
            stack, _, value = line.rpartition(" ")
            theirs[";".join(stack.split(";")[2:])] += int(value)
    ours: Counter[str] = Counter()
    column, unit = (1, 1000) if name == "a" else (1, 1)
    for stack, _, values in dump((folder / f"{name}.mojo").read_bytes(), "mojo").rows:
        key = ";".join(f"{f[3][0][2].decode()}:{f[3][0][0].decode()}:{f[3][0][4]}" for f in reversed(stack))
        ours[key] += values[column] // unit
    assert ours == theirs
