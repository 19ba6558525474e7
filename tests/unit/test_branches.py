"""Branch stacks of perf.data: what is added up, and what profiles for compilers make of it."""

from __future__ import annotations

import io
import lzma
import struct
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastprof
from fastprof.core._c import ffi, lib
from fastprof.core.c_memory import owned
from fastprof.core.errors import FastprofError, FormatError
from fastprof.core.model import Batch
from fastprof.formats.pgo.join import Join
from fastprof.formats.pgo.write import CountsWriter
from fastprof.verbs.branches import Branches
from tests.support.paths import CORPUS
from tests.support.perfdata import ANY_BRANCH, BRANCH, CALL_STACK, CALLCHAIN, IP, PERIOD, TID, TIME, PerfData

FOLDER = CORPUS / "llvm-profile"
LBR, PROGRAM = FOLDER / "lbr.data.xz", FOLDER / "lbr"
TYPE = IP | TID | TIME | PERIOD | BRANCH
Key = tuple[int, int]


def recording(branch_type: int = ANY_BRANCH, order: str = "<", sample_type: int = TYPE) -> PerfData:
    data = PerfData(sample_type, order, branch_type=branch_type)
    return data.mmap(7, 0x1000, 0x1000, b"/bin/app").mmap(7, 0x8000, 0x1000, b"/bin/lib.so")


def rows(data: bytes, **options: Any) -> dict[str, Counter[Key]]:
    """By value type: the sums of branches and runs, by the addresses of their two frames."""
    found: dict[str, Counter[Key]] = {}
    with fastprof.open(io.BytesIO(data), branches=True, symbolize=False, **options) as profile:
        model = profile._model
        for batch in profile.batches():
            names = [t.name for t in model.parts[batch.part].value_types]
            for k, name in enumerate(names):
                sums = found.setdefault(name, Counter())
                for stack, value in zip(batch["stack"], batch.values(k), strict=True):
                    parent, leaf = model.row("stacks", stack)
                    root, frame = model.row("stacks", parent)
                    assert not root
                    ends = [model.row("frames", one) for one in (frame, leaf)]
                    sums[ends[0][1] | ends[0][2] << 32, ends[1][1] | ends[1][2] << 32] += value
    return {name: +sums for name, sums in found.items()}


def slowly(stacks: list[list[tuple[int, int, int]]]) -> dict[str, Counter[Key]]:
    """The same, of the branches of samples, each newest first."""
    found: dict[str, Counter[Key]] = {name: Counter() for name in ("taken", "mispredicted", "straight")}
    for stack in stacks:
        for source, target, flags in stack:
            if source and target:
                found["taken"][source, target] += 1
                found["mispredicted"][source, target] += flags & 1
        for (source, to, _), (before, target, _) in pairwise(stack):
            objects = {target >> 12, source >> 12}
            if source and to and before and target and target <= source and len(objects & {1, 8}) <= 1:
                inside = objects in ({1}, {8}) or not objects & {1, 8}
                found["straight"][target, source] += inside
    return {name: +sums for name, sums in found.items()}


addresses = st.sampled_from([0, 0x1000, 0x1004, 0x1008, 0x1FFF, 0x8000, 0x8010, 0x9000, 0x50000, (1 << 63) + 5])
stacks_ = st.lists(st.lists(st.tuples(addresses, addresses, st.integers(0, 3)), max_size=12), max_size=12)


@given(stacks_, st.sampled_from([1, 3000, 32 << 20]))
def test_branches_are_added_up(stacks: list[list[tuple[int, int, int]]], max_memory: int) -> None:
    """However little memory there is."""
    data = recording()
    stacks = [*stacks, [(0x1004, 0x1000, 1)]]
    for time, stack in enumerate(stacks):
        data.sample(7, [0x1000], time + 1, branches=stack)
    assert rows(data.bytes(), max_memory=max_memory) == slowly(stacks)


def test_a_real_recording(tmp_path: Path) -> None:
    data = lzma.decompress(LBR.read_bytes())
    stacks, (at,) = [], struct.unpack_from("<Q", data, 40)
    end = at + struct.unpack_from("<Q", data, 48)[0]
    while at < end:
        kind, _, nbytes = struct.unpack_from("<IHH", data, at)
        if kind == 9:  # IP TID TIME PERIOD, then the branches
            words = struct.unpack_from(f"<{(nbytes - 8) // 8}Q", data, at + 8)
            n = words[-1 - 3 * 16] if len(words) > 48 else 0
            assert n == 16
            stacks.append([(words[i], words[i + 1], words[i + 2]) for i in range(len(words) - 48, len(words), 3)])
        at += nbytes
    found, expected = rows(data), slowly(stacks)
    assert found["taken"] == expected["taken"] and found["mispredicted"] == expected["mispredicted"]
    facts = fastprof.info(LBR).facts
    assert facts["branches"] == 4800 == found["taken"].total()
    assert facts["mispredicted_branches"] == found["mispredicted"].total() > 100
    assert fastprof.info(LBR).not_representable["sample-branches"] == 300  # as samples, by default


def test_the_profile_equals_that_of_llvm_profgen(tmp_path: Path) -> None:
    log = fastprof.convert(LBR, tmp_path / "out.llvmprof", symbols=[str(PROGRAM)])

    def blocks(text: str) -> dict[str, set[str]]:
        functions = ("\n" + text).split("\n")
        found: dict[str, set[str]] = {}
        for line in functions:
            if line and not line.startswith(" "):
                lines = found.setdefault(line, set())
            elif line:
                lines.add(line)
        return found

    assert blocks((tmp_path / "out.llvmprof").read_text()) == blocks((FOLDER / "lbr.llvmprof").read_text())
    assert log.facts["coverage"] > 0.99 and not log.not_representable["sample-branches"]


def test_gcov_profiles_of_branches(tmp_path: Path) -> None:
    log = fastprof.convert(LBR, tmp_path / "out.afdo", symbols=[str(PROGRAM)])
    assert log.facts["functions"] > 10 and b"longest_match\0" in (tmp_path / "out.afdo").read_bytes()


def test_archives_keep_branches(tmp_path: Path) -> None:
    fastprof.convert(LBR, tmp_path / "a.fpa", branches=True)
    for source in (LBR, tmp_path / "a.fpa"):
        fastprof.convert(source, tmp_path / f"{source.name}.llvmprof", symbols=[str(PROGRAM)])
    fastprof.merge([LBR, LBR], tmp_path / "two.llvmprof", symbols=[str(PROGRAM)])
    texts = [(tmp_path / f"{name}.llvmprof").read_text() for name in (LBR.name, "a.fpa", "two")]
    assert texts[0] == texts[1] != texts[2] and texts[2].startswith("longest_match:111060:104\n")


@pytest.mark.parametrize("order", "<>")
def test_both_byte_orders(order: str) -> None:
    """Bit 0 of the flags is the first one: in big-endian files the top bit."""
    flags = 1 if order == "<" else 1 << 63
    data = recording(order=order).sample(
        7, [0x1000], 5, branches=[(0x1010, 0x1000, flags), (0x1020, 0x1004, flags << 1 & 2)]
    )
    found = rows(data.bytes())
    assert found["mispredicted"] == {(0x1010, 0x1000): 1} and found["straight"] == {(0x1004, 0x1010): 1}


def test_branches_of_some_kinds_have_no_runs_between() -> None:
    """`perf record -j any_call`: other branches are not recorded."""
    data = recording(branch_type=16).sample(7, [0x1000], 5, branches=[(0x1010, 0x1000, 0), (0x1020, 0x1004, 0)])
    found = rows(data.bytes())
    assert found["taken"].total() == 2 and not found["straight"]


def test_samples_without_branches_are_left_out() -> None:
    data = recording(CALL_STACK).sample(7, [0x1000], 5, branches=[(0x1010, 0x1000, 0)])
    with pytest.raises(FastprofError, match="there are no branch stacks; `perf record -b` records them"):
        rows(data.bytes())


def test_what_is_no_straight_run_is_counted() -> None:
    data = recording()
    data.sample(7, [0x1000], 5, branches=[(0x1010, 0x1000, 0), (0x1020, 0x1014, 0)])  # backward
    data.sample(7, [0x1000], 6, branches=[(0x8010, 0x1000, 0), (0x1020, 0x1000, 0)])  # into another object
    data.sample(7, [0x1000], 7, branches=[(0x1010, 0x1000, 0), (0x1020, 0, 0), (0x1030, 0x1000, 0)])
    log = fastprof.info(io.BytesIO(data.bytes()), branches=True)
    assert log.not_representable["broken-runs"] == 2 and log.not_representable["incomplete-branches"] == 1
    assert log.facts["totals"] == {"taken": 6, "mispredicted": 0, "straight": 0}


def test_filters_see_the_samples_of_branches() -> None:
    data = recording()
    for time, tid in ((1_000, 7), (2_000, 8), (3_000, 8)):
        data.sample(7, [0x1000], time, tid=tid, branches=[(0x1000 + time // 100, 0x1000, 0)])
    assert rows(data.bytes(), time_range="1us:2us")["taken"] == {(0x1014, 0x1000): 1, (0x101E, 0x1000): 1}
    assert rows(data.bytes(), threads=("8",))["taken"].total() == 2


def test_processes_of_one_program_are_added_up() -> None:
    """Each has its own addresses; the profile has link-time addresses."""
    data = lzma.decompress(LBR.read_bytes())
    out = io.BytesIO()
    fastprof.convert(io.BytesIO(data), out, to="folded", branches=True, value="mispredicted", symbols=[str(PROGRAM)])
    folded = dict(line.rsplit(b" ", 1) for line in out.getvalue().splitlines())
    assert int(folded[b"longest_match;longest_match"]) > 50


def test_top_by_branch(tmp_path: Path) -> None:
    """From the recording and from what it becomes; runs are left out."""
    fastprof.convert(LBR, tmp_path / "a.pb.gz", branches=True)
    for source in (LBR, tmp_path / "a.pb.gz"):
        found = fastprof.top(source, by="branch", symbols=[str(PROGRAM)], n=2)
        assert (found.value.name, found.total, found.n_rows) == ("mispredicted", 331, 179)
        assert [(row.self, row.name) for row in found.rows] == [
            (69, "longest_match deflate.c:439 -> longest_match deflate.c:479"),
            (39, "longest_match deflate.c:480 -> longest_match deflate.c:480"),
        ]
        assert found.rows[0].line == 439 and found.rows[0].inclusive is None
    taken = fastprof.top(LBR, by="branch", symbolize=False, value="taken", n=1)
    assert taken.total == 4800 and taken.rows[0].name == "test.binary+0x78ce -> test.binary+0x78b0"
    with pytest.raises(FastprofError, match="branch: there are no branch stacks"):
        fastprof.top(CORPUS / "callgrind/good/cfi.callgrind", by="branch")


# ---- the text of perf script

MAPS = (
    b"demo 7/7 0.100000: PERF_RECORD_MMAP2 7/7: [0x1000(0x1000) @ 0 08:01 42 0]: r-xp /bin/app\n"
    b"demo 7/7 0.100000: PERF_RECORD_MMAP2 7/7: [0x8000(0x1000) @ 0 08:01 43 0]: r-xp /bin/lib.so\n"
    b"demo 7/7 0.100000: PERF_RECORD_MMAP2 7/7: [0x9000(0x1000) @ 0 08:01 43 0]: r--p /bin/lib.so\n"
)


def line(stack: list[tuple[int, int, int]], start: str = "demo 7/7 0.200000:  ") -> bytes:
    entries = "".join(f" {a:#x}/{b:#x}/{'PM'[flags & 1]}/-/-/0 " for a, b, flags in stack)
    return f"{start}           1000 {entries}\n".encode()


@given(stacks_, st.sampled_from([1, 3000, 32 << 20]), st.booleans())
def test_text_says_the_same(stacks: list[list[tuple[int, int, int]]], max_memory: int, newline: bool) -> None:
    stacks = [[(0x1004, 0x1000, 1)], *stacks, [(0x1004, 0x1000, 1)]]
    text = MAPS + b"".join(map(line, stacks))
    assert rows(text if newline else text[:-1], max_memory=max_memory) == slowly(stacks)


def test_perf_script_prints_the_recording(tmp_path: Path) -> None:
    """As perf 6.1 does: `-F ip,brstack --show-mmap-events`, for which branches are read without being asked for."""
    text = lzma.decompress((FOLDER / "lbr.perf.xz").read_bytes())
    for name, data in (("ip", text), ("time", text.replace(b"\nPERF", b"\n    25532/25532 174024.727284: PERF"))):
        (tmp_path / name).write_bytes(data)
        fastprof.convert(tmp_path / name, tmp_path / "out", to="llvm-profile", symbols=[str(PROGRAM)])
        fastprof.convert(LBR, tmp_path / "expected", to="llvm-profile", symbols=[str(PROGRAM)])
        assert (tmp_path / "out").read_text() == (tmp_path / "expected").read_text()
    found = fastprof.top(tmp_path / "ip", by="branch", symbols=[str(PROGRAM)], n=1)
    assert found.rows[0].name == "longest_match deflate.c:439 -> longest_match deflate.c:479"


def test_objects_of_text_without_mappings() -> None:
    """A program linked to a fixed address has these addresses in its file, too."""
    text = b"app 7 0.200000: 1 c:   1000 f (/a) 0x1010(/bin/a (deleted))/0x1000(/bin/a (deleted))/M/-/-/7/COND/- \n"
    assert rows(text)["mispredicted"] == {(0x1010, 0x1000): 1}
    with fastprof.open(io.BytesIO(text), branches=True, symbolize=False) as profile:
        assert list(profile.batches())
        model = profile._model
        assert [model.string(model.row("objects", i)[0]) for i in range(1, model.count("objects"))] == [
            b"/bin/a (deleted)"
        ]


def test_programs_with_equal_addresses_without_mappings() -> None:
    line = b"x 1/1 0.200000:   0x1020(NAME)/0x1000(NAME)/P/-/-/0  0x1030(NAME)/0x1010(NAME)/P/-/-/0\n"
    text = line.replace(b"NAME", b"/bin/a") + 2 * line.replace(b"NAME", b"/bin/b")
    found = Counter[tuple[bytes, int]]()
    with fastprof.open(io.BytesIO(text), branches=True, symbolize=False) as profile:
        model = profile._model
        for batch in profile.batches():
            for k in range(3):
                for stack, value in zip(batch["stack"], batch.values(k), strict=True):
                    mapping = model.row("frames", model.row("stacks", stack)[1])[0]
                    found[model.string(model.row("objects", model.row("mappings", mapping)[0])[0]), k] += value
    assert +found == {(b"/bin/a", 0): 2, (b"/bin/b", 0): 4, (b"/bin/a", 2): 1, (b"/bin/b", 2): 2}


def test_where_branches_begin_in_a_line() -> None:
    """Searching the rest of the line for each `0x1(` would take 10^10 steps."""
    branch = b" 0x1010(/bin/a)/0x1000(/bin/a)/P/-/-/0\n"
    for before in (b" 0x1(x 0x2(y)/z", b" 0x5()/x"):
        assert rows(b"x 1/1 0.200000: " + before + branch + branch)["taken"] == {(0x1010, 0x1000): 2}, before
    log = fastprof.info(io.BytesIO(b"x 1/1 0.200000: " + branch + b" 0x1(" * 300_000 + b"\n"), branches=True)
    assert log.facts["totals"]["taken"] == 1


def test_forks_in_text() -> None:
    fork = b"demo 7/7 0.200000: PERF_RECORD_FORK(9:9):(7:7)\n"
    text = MAPS + fork + line([(0x1010, 0x1000, 0), (0x1020, 0x1004, 0)], "demo 9/9 0.300000: ")
    log = fastprof.info(io.BytesIO(text + b"demo 9/9 0.400000: cycles: 12 x\n"), branches=True)
    assert log.facts["totals"] == {"taken": 2, "mispredicted": 0, "straight": 1}
    assert log.not_representable["lines-without-branches"] == 1


def test_damaged_text() -> None:
    text = MAPS + line([(0x1010, 0x1000, 0), (0x1020, 0x1004, 0)])
    for cut in (b" 0x1020/0x10", b" 0x1020/", b" 0x1020/0x1004/P"):
        data = text[: text.index(b" 0x1020")] + cut
        with pytest.raises(FormatError, match="the input ends inside a branch") as caught:
            rows(data)
        assert caught.value.offset is not None and caught.value.offset <= len(data)
        log = fastprof.info(io.BytesIO(data), branches=True, lenient=True)
        assert log.losses["unreadable-lines"] == 1 and log.facts["totals"]["taken"] == 1
    with pytest.raises(FastprofError, match="there are no branch stacks"):
        rows(MAPS)


def test_a_stack_of_a_million_branches_takes_little_memory() -> None:
    entries = b"".join(b" 0x%x/0x%x/P/-/-/0 " % (n + 16, n) for n in range(0x1000, 0x1000 + 200_000))
    found = rows(MAPS + b"demo 7/7 0.200000:   1000 " + entries + b"\n", max_memory=1 << 20)
    assert found["taken"].total() == 200_000 and found["straight"].total() > 0


@pytest.mark.parametrize("target", ["llvm-profile", "bolt"])
def test_branches_outside_of_programs_take_no_memory(
    target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those in the program are all written, whatever is around them."""
    text = lzma.decompress((FOLDER / "lbr.perf.xz").read_bytes())
    maps = b"demo 8/8 0.100000: PERF_RECORD_MMAP2 8/8: [0x1000(0x100000) @ 0 08:01 42 0]: r-xp /not/there\n"
    entries = b"".join(b" 0x%x/0x%x/P/-/-/0 " % (n + 16, n) for n in range(0x1000, 0x1000 + 30_000))
    others = maps + b"demo 8/8 0.200000:   1000 " + entries + b"\n"
    (tmp_path / "both").write_bytes(text + others)
    (tmp_path / "one").write_bytes(text)
    sizes = []
    join = CountsWriter.join

    def noted(self: CountsWriter) -> Join:
        sizes.append(self.counts.branches.n)
        return join(self)

    monkeypatch.setattr(CountsWriter, "join", noted)
    logs = [
        fastprof.convert(
            tmp_path / name, tmp_path / f"{name}.out", to=target, symbols=[str(PROGRAM)], max_memory=memory
        )
        for name, memory in (("one", 1 << 20), ("both", 1 << 20), ("both", 32 << 20))
    ]
    assert (tmp_path / "both.out").read_text() == (tmp_path / "one.out").read_text()
    assert sizes[0] < sizes[1] < 10_000 < 60_000 < sizes[2]
    one, few, many = (log.not_representable.get("instructions-elsewhere", 0) for log in logs)
    assert few >= many > one + 29_000


# ---- code


def lengths(code: bytes, machine: int = lib.FP_PGO_X86_64) -> list[tuple[int, int]]:
    """The offset of each instruction, and whether it is executed last."""
    leaves, found, at = ffi.new("int *"), [], 0
    while at < len(code):
        n = lib.fp_pgo_x86_length(
            ffi.from_buffer("uint8_t[]", code) + at, len(code) - at, machine == lib.FP_PGO_X86_64, leaves
        )
        found.append((n, leaves[0]))
        at += max(n, 1)
    return found


@pytest.mark.parametrize(
    ("code", "n"),
    [
        ("55", 1),  # push %rbp
        ("48 89 e5", 3),
        ("48 8b 05 10 00 00 00", 7),  # relative to the instruction
        ("8b 44 24 08", 4),
        ("8b 04 25 00 00 00 00", 7),  # no base
        ("66 81 c1 34 12", 5),
        ("48 81 c1 78 56 34 12", 7),
        ("48 b8 88 77 66 55 44 33 22 11", 10),
        ("66 2e 0f 1f 84 00 00 00 00 00", 10),
        ("a1 88 77 66 55 44 33 22 11", 9),
        ("f6 c1 01", 3),  # test has an operand
        ("f6 d1", 2),  # not has none
        ("f7 45 00 01 00 00 00", 7),
        ("c5 f8 77", 3),
        ("c5 fd 70 c1 ee", 5),
        ("c4 e3 7d 19 c1 01", 6),
        ("62 f1 7c 48 58 c1", 6),
        ("62 f3 7d 48 25 c1 ff", 7),
        ("0f 3a 0f c1 04", 5),
        ("0f 85 00 00 00 00", 6),
        ("8f c0", 2),
        ("c8 10 00 00", 4),
    ],
)
def test_lengths_of_x86(code: str, n: int) -> None:
    data = bytes.fromhex(code)
    assert lengths(data) == [(n, 0)]
    for cut in range(1, len(data)):
        assert lengths(data[:cut])[0][0] in (0, cut)  # cut off, or another one


def test_32_bits_differ() -> None:
    code = bytes.fromhex("40 66e90000 678b4602 a100000000 c50e 620e")
    assert [n for n, _ in lengths(code, lib.FP_PGO_X86)] == [1, 4, 4, 5, 2, 2]


@pytest.mark.parametrize("code", ["c3", "f3 c3", "c2 08 00", "e9 00 00 00 00", "eb fe", "ff e0", "41 ff 24 c0"])
def test_jumps_and_returns_end_runs(code: str) -> None:
    assert lengths(bytes.fromhex(code)) == [(len(bytes.fromhex(code)), 1)]


def executed(
    code: bytes, runs: list[tuple[int, int, int]], machine: int = lib.FP_PGO_X86_64, start: int = 0x1000
) -> tuple[Any, int, int]:
    e = owned(lib.fp_pgo_executed_new(), "code")
    columns = [
        ffi.new(kind, [run[k] for run in runs]) for k, kind in enumerate(("uint64_t[]", "uint64_t[]", "int64_t[]"))
    ]
    err = ffi.new("struct fp_err *")
    status = lib.fp_pgo_execute(
        e, machine, ffi.from_buffer("uint8_t[]", code), len(code), start, *columns, len(runs), err
    )
    assert status in (0, lib.FP_E_OVERFLOW)
    return status or {e.address[i]: e.count[i] for i in range(e.n)}, e.wrong, e.beyond


CODE = bytes.fromhex("55 4889e5 31c0 7402 ebfe 90 c3")  # at 0, 1, 4, 6, 8, 10, 11


def test_instructions_of_runs() -> None:
    assert executed(CODE, [(0x1000, 0x1006, 5), (0x1001, 0x1004, 2), (0x100A, 0x100B, 3)]) == (
        {0x1000: 5, 0x1001: 7, 0x1004: 7, 0x1006: 5, 0x100A: 3, 0x100B: 3},
        0,
        0,
    )


def test_runs_that_cannot_be() -> None:
    """Across a jump, to the middle of an instruction, outside, backward, too long."""
    runs = [(0x0FFF, 0x1000, 1), (0x1000, 0x1002, 1), (0x1000, 0x100A, 1), (0x1004, 0x1000, 1), (0x100A, 0x100C, 1)]
    assert executed(CODE, runs) == ({}, 2, 3)
    assert executed(bytes(3 << 20), [(0x1000, 0x1000 + (2 << 20), 1)]) == ({}, 0, 1)
    most = (1 << 63) - 1
    assert executed(CODE, [(0x1000, 0x1001, most), (0x1000, 0x1004, most)])[0] == lib.FP_E_OVERFLOW


def test_code_that_ends_at_the_last_address() -> None:
    last = (1 << 64) - 1
    found = executed(b"\x90" * 4, [(last - 3, last, 5)], start=last - 3)
    assert found == (dict.fromkeys(range(last - 3, last + 1), 5), 0, 0)
    e = owned(lib.fp_pgo_executed_new(), "code")
    assert lib.fp_pgo_instructions(e, lib.FP_PGO_X86, b"\x90" * 4, 4, last - 3) == 0 and e.n == 4


@given(
    st.binary(min_size=1, max_size=60), st.lists(st.tuples(st.integers(0, 70), st.integers(0, 70), st.integers(1, 9)))
)
def test_runs_are_added_up(code: bytes, spans: list[tuple[int, int, int]]) -> None:
    """Of words, whose starts are known: each counts the runs around it."""
    spans = sorted((0x1000 + 4 * (a // 4), 0x1000 + 4 * (b // 4), n) for a, b, n in spans)
    inside = [(a, b, n) for a, b, n in spans if a <= b < 0x1000 + len(code)]
    expected = Counter(
        {at: sum(n for a, b, n in inside if a <= at <= b) for at in range(0x1000, 0x1000 + len(code), 4)}
    )
    assert executed(code, spans, lib.FP_PGO_WORDS) == (+expected, 0, len(spans) - len(inside))


def test_call_chains_do_not_matter() -> None:
    data = recording(sample_type=TYPE | CALLCHAIN)
    data.sample(7, [0x1000, 0x1100], 5, branches=[(0x1010, 0x1000, 0)])
    assert rows(data.file())["taken"] == {(0x1010, 0x1000): 1}


def test_few_of_the_ranked_branches_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names are in the model; what finds them again is emptied, and the ranking is the same."""
    data = recording()
    for k in range(2_000):
        at = 0x1000 if k < 512 else 0x8000  # the first batch has branches of its own
        data.sample(7, [0x1000], k + 1, branches=[(at + k % 3, at + 3 + k % 1_000, 0)])

    def ranked(**options: Any) -> list[Any]:
        source = io.BytesIO(data.bytes())
        return fastprof.top(source, by="branch", value="taken", symbolize=False, n=0, **options).rows

    replaced, sizes = Branches.replaced, list[int]()

    def counted(self: Branches, batches: Iterable[Batch]) -> Iterator[Batch]:
        for batch in replaced(self, batches):
            sizes.append(len(self._places))
            yield batch

    monkeypatch.setattr(Branches, "replaced", counted)
    rows, whole = ranked(), sizes.copy()
    sizes.clear()
    monkeypatch.setattr("fastprof.verbs.branches._MOST", 0)
    assert ranked() == rows
    assert len(sizes) == len(whole) > 1
    assert sizes[-1] < whole[-1] - 400
