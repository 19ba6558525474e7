"""Massif and DHAT: the statements of docs/formats/massif.md and dhat.md."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import fastprof
from fastprof.core.errors import FormatError, UsageError
from fastprof.core.options import Options
from tests.support.paths import CORPUS
from tests.support.stackdump import Dump, dump

MASSIF = CORPUS / "massif" / "good"
DHAT = CORPUS / "dhat" / "good"


def names(found: Dump) -> list[tuple[list[str], tuple[int, ...]]]:
    return [([line[0].decode() for f in stack for line in f[3]], values) for stack, _, values in found.rows]


def massif(name: str, **options: object) -> Dump:
    return dump((MASSIF / name).read_bytes(), "massif", options=Options(**options))


def test_the_peak_is_read_by_default() -> None:
    found = massif("inlined.massif")
    assert names(found) == [
        (["allocate", "make<char>(int)", "main"], (40,)),
        (["allocate", "make<char>(int)", "???"], (15,)),
        (["allocate", "make<char>(int)"], (5,)),
        (["???"], (30,)),
        (["in 3 places, all below massif's threshold (01.00%)"], (10,)),
    ]
    assert found.part.command == b'./app --all  "x y"'


def test_inlined_functions_are_one_frame() -> None:
    stack = massif("inlined.massif").rows[0][0]
    assert [(frame[1], [line[0] for line in frame[3]]) for frame in stack] == [
        (0x109DF0, [b"allocate", b"make<char>(int)"]),
        (0x1092D7, [b"main"]),
    ]
    assert stack[0][3][1][2:] == (b"mem.cc", 0, 6, 0)


@pytest.mark.parametrize(
    ("which", "total"), [("1", 60), (1, 60), ("2", 100), ("last", 30), ("peak", 100), ("all", 190)]
)
def test_a_snapshot_is_selected(which: object, total: int) -> None:
    assert sum(values[0] for _, _, values in massif("inlined.massif", snapshot=which).rows) == total


def test_rows_of_all_snapshots_have_a_label() -> None:
    found = massif("inlined.massif", snapshot="all")
    assert [labels[0][2] for _, labels, _ in found.rows] == [1, 2, 2, 2, 2, 2, 3]


def test_a_snapshot_without_a_tree() -> None:
    with pytest.raises(FormatError, match="no tree in snapshot 0; snapshots with a tree: 1, 2, 3"):
        massif("inlined.massif", snapshot="0")
    with pytest.raises(UsageError, match="neither a snapshot's number"):
        fastprof.top(str(MASSIF / "inlined.massif"), massif={"snapshot": "first"})


def test_without_a_peak_the_largest_is_read() -> None:
    assert sum(values[0] for _, _, values in massif("no-peak.massif").rows) == 100


def test_without_trees_there_are_no_stacks_but_a_series() -> None:
    log = fastprof.info(str(MASSIF / "no-tree.massif"))
    assert log.facts["snapshots"][0]["heap_bytes"] == 0 and "no snapshot has a tree" in log.warnings[0]


def test_the_series() -> None:
    facts = fastprof.info(str(MASSIF / "inlined.massif")).facts
    assert facts["time_unit"] == "i"
    assert facts["snapshots"][2] == {
        "number": 2, "time": 120, "heap_bytes": 100, "extra_bytes": 20, "stacks_bytes": 12,
        "total_bytes": 132, "tree": "peak", "read": True
    }  # fmt: skip


def test_the_series_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    from fastprof.cli import main

    assert not main(["info", str(MASSIF / "inlined.massif")])
    assert "2 (peak, read): 132 B = heap 100 B + extra 20 B + stacks 12 B, at 120 i" in capsys.readouterr().out


def test_a_cut_tree_keeps_what_was_read() -> None:
    data = (CORPUS / "massif" / "bad" / "cut-tree.massif").read_bytes()
    found = dump(data, "massif", options=Options(lenient=True))
    assert names(found) == [
        (["allocate", "make<char>(int)", "main"], (40,)),
        (["allocate", "make<char>(int)"], (20,)),
        ([], (40,)),
    ]
    assert found.log.losses == {"cut-trees": 1}


def test_values_of_dhat() -> None:
    found = dump((DHAT / "heap.dhat.json").read_bytes(), "dhat")
    assert [f"{t.name}/{t.unit}" for t in found.part.value_types] == [
        "total_bytes/bytes", "total_blocks/count", "at_end_bytes/bytes", "at_end_blocks/count", "at_gmax_bytes/bytes",
        "at_gmax_blocks/count", "max_bytes/bytes", "max_blocks/count", "read_bytes/bytes", "written_bytes/bytes",
        "lifetimes/instructions",
    ]  # fmt: skip
    assert found.rows[0][2] == (72704, 1, 0, 0, 72704, 1, 72704, 1, 0, 16, 859062)
    assert (found.part.command, found.part.pid) == (b"./mem", 4023)
    assert fastprof.top(str(DHAT / "heap.dhat.json"), symbolize=False).value.name == "at_gmax_bytes"


def test_dhat_of_rust() -> None:
    """The table comes first, a point occurs twice, and one has no frames."""
    found = dump((DHAT / "rust.dhat.json").read_bytes(), "dhat")
    assert [(stack, values[:2]) for stack, values in names(found)] == [
        ([], (4, 1)),
        (["alloc::alloc::alloc", "app::main"], (35, 4)),
    ]
    assert found.part.value_types[-1].unit == "microseconds"
    assert found.rows[1][0][0][3][0][2:5] == (b"src/alloc.rs", 0, 95)


def dhat(points: list[tuple[int, list[int]]], table: list[str], **options: object) -> Dump:
    text = {
        "dhatFileVersion": 2, "mode": "heap", "bklt": False, "bkacc": False,
        "pps": [{"tb": nbytes, "tbk": 1, "fs": frames} for nbytes, frames in points], "ftbl": table,
    }  # fmt: skip
    return dump(json.dumps(text).encode(), "dhat", options=Options(**options))


def test_equal_entries_of_the_frame_table_are_one() -> None:
    table = ["[root]", "0x1: f (a.c:1)", "0x2: main (a.c:9)", "0x1: f (a.c:1)", "0x01: f (a.c:1)", "0x3: g (a.c:2)"]
    found = dhat([(1, [1, 2]), (10, [3, 2]), (100, [4, 2]), (1000, [5, 2]), (10_000, [5, 2])], table)
    assert names(found) == [(["f", "main"], (111, 3)), (["g", "main"], (11_000, 2))]
    with pytest.raises(FormatError, match="the sum of a stack's values") as error:
        dhat([((1 << 63) - 1, [1]), (1, [3])], table)
    assert error.value.offset
    found = dhat([((1 << 63) - 1, [1]), (1, [3])], table, lenient=True)
    assert (names(found), found.log.losses) == ([(["f"], ((1 << 63) - 1, 1))], {"broken-points": 1})
    # a stack that cannot be added is lost with all its points
    found = dhat([((1 << 63) - 1, [1]), (1, [3]), (2, [3]), (4, [3])], table, lenient=True)
    assert (names(found), found.log.losses) == ([(["f"], ((1 << 63) - 1, 1))], {"broken-points": 3})


def test_frames_without_a_table() -> None:
    with pytest.raises(FormatError, match="a frame of a point is 0, expected less than 0") as error:
        dhat([(5, [0])], [])
    assert error.value.offset
    assert names(dhat([(5, [])], [])) == [([], (5, 1))]
    assert dhat([(5, [0])], [], lenient=True).log.losses == {"frames-beyond-table": 1}


def test_an_inlined_function_may_also_be_a_frame_of_its_own() -> None:
    """The same address: alone, with its caller, and twice."""
    table = ["[root]", "0x1: f (a.c:1)", "0x1: g (a.c:5)", "0x2: main (a.c:9)"]
    found = dhat([(1, [1, 3]), (2, [1, 2, 3]), (4, [2, 3]), (8, [1, 1, 3])], table)
    frames = [[[line[0].decode() for line in frame[3]] for frame in stack] for stack, _, _ in found.rows]
    main = ["main"]
    assert frames == [[["f"], main], [["f", "g"], main], [["g"], main], [["f"], ["f"], main]]


def test_bad_frames_leave_equal_stacks() -> None:
    found = dhat([(1, [1, 9]), (2, [1]), (4, [9]), (8, [])], ["[root]", "0x1: f (a.c:1)"], lenient=True)
    assert (names(found), found.log.losses) == ([([], (12, 2)), (["f"], (3, 2))], {"frames-beyond-table": 2})


def test_a_number_at_the_end_of_dhat() -> None:
    points = [{"tb": 5, "tbk": 1, "fs": [1]}]
    text = {"dhatFileVersion": 2, "mode": "heap", "pps": points, "ftbl": ["[root]", "0x1: f (a.c:1)"], "te": 9}
    found = dump(json.dumps(text).encode(), "dhat")
    assert names(found) == [(["f"], (5, 1))]


def test_losses_of_dhat() -> None:
    for name, losses in (("beyond", {"frames-beyond-table": 1}), ("negative", {"broken-points": 1})):
        data = Path(CORPUS / "dhat" / "bad" / f"{name}.dhat.json").read_bytes()
        assert dump(data, "dhat", options=Options(lenient=True)).log.losses == losses


def test_heaptrack_prints_the_header_last_and_times_with_decimals() -> None:
    path = CORPUS / "massif/good/heaptrack.massif"
    facts = fastprof.info(path).facts
    assert [one["time"] for one in facts["snapshots"]] == [0.044, 0.045]
    assert (facts["time_unit"], facts["command"], facts["totals"]) == ("s", "./ex", {"heap_bytes": 3_000_000})
    for bad in (b"time=0.1234567890\n", b"time=0.\n", b"time=.5\n", b"time=1.2.3\n"):
        with pytest.raises(FormatError, match="time"):
            fastprof.info(path.read_bytes().replace(b"time=0.044\n", bad), from_="massif")


def test_a_tree_larger_than_the_peak_is_read() -> None:
    """By more than the 1 % by which Massif's peak may be wrong."""
    text = (CORPUS / "massif/good/inlined.massif").read_bytes()
    assert b"heap_tree=peak" in text
    facts = fastprof.info(text, from_="massif").facts
    total = facts["totals"]["heap_bytes"]
    for factor, is_larger in ((1, False), (2, True)):
        later = (
            b"#-----------\nsnapshot=77\n#-----------\ntime=9\nmem_heap_B=%d\nmem_heap_extra_B=0\nmem_stacks_B=0\n"
            b"heap_tree=detailed\nn0: %d (heap allocation functions) malloc\n" % (factor * total, factor * total)
        )
        log = fastprof.info(text + later, from_="massif")
        assert log.facts["totals"]["heap_bytes"] == factor * total
        assert [warning["code"] for warning in log.warned()] == ["larger-than-peak"] * is_larger
