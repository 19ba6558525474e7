"""LLVM sample profiles: places, the join with debug information, nesting, encodings."""

from __future__ import annotations

import lzma
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastprof
from fastprof.core.errors import FastprofError, UsageError
from fastprof.core.model import Model
from fastprof.core.options import Options
from fastprof.formats.pgo.binary import binary, extbinary
from fastprof.formats.pgo.calls import _call_of_x86, goes_away, is_call
from fastprof.formats.pgo.gcov import gcov
from fastprof.formats.pgo.join import Function, Join, Site
from fastprof.formats.pgo.levels import DEEPEST, Level, Profile, base_discriminator, copies, enter
from fastprof.formats.pgo.nest import is_flat, nest
from fastprof.formats.pgo.text import text
from fastprof.symbols.binaries import Binaries
from fastprof.symbols.builds import builds
from fastprof.symbols.dwarf import Place
from fastprof.symbols.objects import ElfObject
from tests.support.paths import CORPUS

FOLDER = CORPUS / "llvm-profile"
SMALL, PROGRAM = FOLDER / "small.callgrind.xz", FOLDER / "small"


def written(folder: Path, source: Path = SMALL, **options: object) -> str:
    output = folder / "out.llvmprof"
    fastprof.convert(source, output, symbols=[str(PROGRAM)], **options)  # type: ignore[arg-type]
    return output.read_text()


def test_a_profile_of_callgrind(tmp_path: Path) -> None:
    assert written(tmp_path) == (FOLDER / "small.llvmprof").read_text()


def test_the_log_states_the_coverage(tmp_path: Path) -> None:
    log = fastprof.convert(SMALL, tmp_path / "out.llvmprof", symbols=[str(PROGRAM)])
    functions = re.findall(r"^\S+:\d+:\d+$", (FOLDER / "small.llvmprof").read_text(), re.MULTILINE)
    assert log.facts["functions"] == len(functions) == 8
    totals = sum(int(line.split(":")[1]) for line in functions)
    (counted,) = (row.self for row in fastprof.top(SMALL, by="object", n=0).rows if row.object == "/opt/t4/pgo/p")
    assert log.facts["coverage"] == pytest.approx(totals / counted, abs=1e-4)
    assert log.not_representable["unplaced-instructions"]
    (warning,) = log.warnings
    assert "optimized: counts of some lines are missing" in warning


def test_the_coverage_of_a_program_before_the_conversion() -> None:
    """As the log of the conversion has it, but of all objects."""
    facts = fastprof.info(SMALL, symbols=[str(PROGRAM)]).facts
    # 0.94 and 0.9999 where the libraries of the recording are installed
    assert 0.81 < facts["coverage"]["lines"] < facts["coverage"]["functions"] < 1.0 and "stale_programs" not in facts
    assert "coverage" not in fastprof.info(SMALL).facts
    lbr = fastprof.info(FOLDER / "lbr.data.xz", symbols=[str(FOLDER / "lbr")], branches=True).facts
    assert 0.9 < lbr["coverage"]["lines"] <= lbr["coverage"]["functions"] < 1.0  # the rest is libc and the kernel


@pytest.mark.parametrize("source", ["callgrind", "lines", "branches"])
def test_another_build_is_noticed(tmp_path: Path, source: str) -> None:
    """A profile without build ids: calls lead to no function, lines are not in theirs, runs cross jumps."""
    recorded, program = FOLDER / "lbr.data.xz", PROGRAM
    if source != "branches":
        recorded, program = tmp_path / "a.callgrind", tmp_path / "p"
        given = lzma.decompress(SMALL.read_bytes()).decode()
        if source == "lines":
            given = re.sub(r"^(\d+) ", lambda found: f"{int(found[1]) + 300} ", by_line(given.encode()), flags=re.M)
        else:
            given = re.sub(
                r"^(calls=\d+ )0x(\w+)", lambda found: f"{found[1]}{int(found[2], 16) + 5:#x}", given, flags=re.M
            )
        recorded.write_text(given)
        program.write_bytes(PROGRAM.read_bytes())
    log = fastprof.convert(recorded, tmp_path / "out", to="llvm-profile", symbols=[str(program)])
    assert [one for one in log.warnings if "do not fit the code of the program" in one]


def test_builds_that_are_mixed() -> None:
    """Of one object with two build ids the second is the file's; --force-symbols would take both."""
    elf = ElfObject(CORPUS / "recordings/symbols/wait")
    model, path = Model(), elf.path
    known, other = model.object(path, elf.build_id), model.object(path, "12" * 20)
    found = builds(model, Binaries(model, Options()), {known, other})
    assert found.mixed == [f"{Path(path).name}: 2 builds ({', '.join(sorted((elf.build_id, '12' * 20)))})"]
    assert len(found.stale) == 1 and "wrong build id" in found.stale[0]
    forced = Binaries(model, Options(symbols=[path], force_symbols=True))
    assert builds(model, forced, {other}).stale == [
        f"{path}: build id is {elf.build_id}, the profile's {path} has {'12' * 20}"
    ]
    assert not builds(model, Binaries(model, Options()), {known}).stale


@pytest.mark.parametrize(
    ("value", "base"),
    [(0, 0), (1, 0), (3, 0), (2, 1), (4, 2), (16, 8), (62, 31), (0x40 | 0x80, 32), (0x40 | 0x80 | 2, 33)],
)
def test_base_discriminators(value: int, base: int) -> None:
    assert base_discriminator(value) == base


@given(st.integers(0, 0xFFF))
def test_base_discriminators_are_those_that_llvm_packs(value: int) -> None:
    """DILocation::encodeDiscriminator of a base discriminator alone: 7 bits with a 0 ahead, or 14 bits."""
    packed = value << 1 if value <= 0x1F else (value & 0x1F | 0x20 | (value & 0xFE0) << 1) << 1
    assert base_discriminator(packed if value else 1) == value


@pytest.mark.parametrize(("value", "n"), [(0, 1), (1, 1), (6, 1), (3 << 1 | 4 << 7, 2), (1 | 40 << 1, 20)])
def test_instructions_of_unrolled_loops_stand_for_several_executions(value: int, n: int) -> None:
    """In the profile of `small` a loop of 20 rounds has as many counts, though it is straight code."""
    assert copies(value) == n
    level = Level()
    enter(level, (Place("f", 1, 3, value, 0),), 7)
    assert [*level.body.values()] == [7 * n] and level.total == 7
    of_gcc = Level()
    enter(of_gcc, (Place("f", 1, 3, value, 0, is_packed=False),), 7)
    assert [*of_gcc.body.values()] == [7] and of_gcc.total == 7


@given(st.integers(0, 0xFFF), st.integers(2, 0xFFF))
def test_numbers_of_copies_are_those_that_llvm_packs(base: int, n: int) -> None:
    def packed(number: int) -> tuple[int, int]:
        if not number:
            return 1, 1
        return (number << 1, 7) if number <= 0x1F else ((number & 0x1F | 0x20 | (number & 0xFE0) << 1) << 1, 14)

    (first, shift), (second, _) = packed(base), packed(n)
    assert (base_discriminator(first | second << shift), copies(first | second << shift)) == (base, n)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("e8 00 00 00 00", True),
        ("67 e8 00 00 00 00", True),  # addr32, for padding
        ("ff d0", True),
        ("41 ff 54 24 08", True),
        ("2e ff 15 00 00 00 00", True),
        ("e9 00 00 00 00", False),
        ("ff e0", False),
        ("ff 30", False),  # push
        ("c3", False),
        ("ff", False),
        ("", False),
        ("66 66 66", False),
    ],
)
def test_calls_of_x86(code: str, expected: bool) -> None:
    assert (_call_of_x86(bytes.fromhex(code), True, 0x1000) is not None) is expected


@pytest.mark.parametrize(
    ("code", "target"),
    [("e8 0b 00 00 00", 0x1010), ("67 e8 fa ff ff ff", 0x1000), ("e8 00 e0 ff ff", 0), ("ff d0", 0), ("c3", None)],
)
def test_targets_of_calls_of_x86(code: str, target: int | None) -> None:
    assert _call_of_x86(bytes.fromhex(code), True, 0x1000) == target


@pytest.mark.parametrize(
    ("machine", "code", "expected"),
    [
        (62, "e8 00 00 00 00", True),
        (62, "e9 00 00 00 00", True),
        (62, "eb 00", True),
        (62, "41 ff e3", True),
        (62, "0f 84 00 00 00 00", False),
        (62, "74 00", False),
        (62, "ff 30", False),
        (183, "00 00 00 94", True),
        (183, "00 00 00 14", True),
        (183, "20 02 1f d6", True),
        (183, "40 00 00 54", False),
        (183, "c0 03 5f d6", False),
    ],
)
def test_what_always_goes_away(machine: int, code: str, expected: bool) -> None:
    content = bytes.fromhex(code).ljust(16, b"\0")
    segment = SimpleNamespace(executable=True, address=64, file_size=16, offset=0)
    assert goes_away(SimpleNamespace(segments=[segment], content=content, machine=machine), 64) is expected  # type: ignore[arg-type]


def test_calls_of_a_library_are_counted_without_its_stubs(tmp_path: Path) -> None:
    """`operator new` is called 7 times, through a jump of the PLT that Callgrind adds to the call."""
    assert " 25: 7 _Znwm:7" in written(tmp_path)


def test_calls_without_code_are_calls() -> None:
    """In a separate debug file, for example."""
    assert is_call(ElfObject(PROGRAM), 0) and is_call(ElfObject(PROGRAM), 1 << 63)
    assert not is_call(ElfObject(PROGRAM), 0x401090)


def test_what_is_left_out_has_its_reason(tmp_path: Path) -> None:
    for source, reason in (
        (CORPUS / "callgrind/good/xdebug.callgrind", "155 rows without addresses of instructions"),
        (CORPUS / "folded/good/annot.folded", "--dump-instr=yes"),
    ):
        with pytest.raises(FastprofError, match=reason):
            fastprof.convert(source, tmp_path / "out", to="llvm-profile")
    assert not (tmp_path / "out").exists()


def test_a_program_without_debug_information(tmp_path: Path) -> None:
    data = tmp_path / "a.callgrind"
    data.write_text(
        lzma.decompress(SMALL.read_bytes()).decode().replace("/opt/t4/pgo/p", str(CORPUS / "plt/x86-now.so"))
    )
    with pytest.raises(FastprofError, match="no counted address is in a function with lines"):
        fastprof.convert(data, tmp_path / "out", to="llvm-profile", symbols=[str(CORPUS / "plt/x86-now.so")])


def test_options_are_checked(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="text, binary, extbinary"):
        fastprof.convert(SMALL, tmp_path / "out", to="llvm-profile", llvm_profile={"format": "gcov"})


def test_no_tail_call_is_a_target(tmp_path: Path) -> None:
    """`~Op` ends in `jmp operator delete`, which Callgrind books as a call."""
    log = fastprof.convert(SMALL, tmp_path / "out.llvmprof", symbols=[str(PROGRAM)])
    assert "_ZdlPvm" in lzma.decompress(SMALL.read_bytes()).decode()
    assert "\n_ZN3AddD0Ev:120:60\n 0.1: 60\n" in (tmp_path / "out.llvmprof").read_text()
    assert log.not_representable["calls-elsewhere"] >= 3


def by_line(callgrind: bytes) -> str:
    """As without --dump-instr=yes."""
    lines = callgrind.decode().replace("positions: instr line", "positions: line")
    return re.sub(r"^(calls=\d+ |)(?:0x[0-9a-f]+|[+-]\d+|\*) (?=[-+*\d])", r"\1", lines, flags=re.MULTILINE)


@pytest.mark.parametrize("suffix", ["callgrind", "cachegrind"])
def test_counts_by_line(tmp_path: Path, suffix: str) -> None:
    """Each instruction of a line gets the mean: what is executed and inlined stays, parts of a line become equal."""
    source, output = tmp_path / "a.callgrind", tmp_path / f"a.{suffix}.llvmprof"
    source.write_text(by_line(lzma.decompress(SMALL.read_bytes())))
    assert "0x40" not in source.read_text() and source.stat().st_size > 100_000
    if suffix == "cachegrind":  # no objects, no calls
        source, _ = tmp_path / "a.cachegrind", fastprof.convert(source, tmp_path / "a.cachegrind")
    log = fastprof.convert(source, output, symbols=[str(PROGRAM)])
    assert [warning for warning in log.warnings if "counts are by line" in warning]
    found = fastprof.diff(FOLDER / "small.llvmprof", output, from_="llvm-profile", stats=True).overlap
    assert found and found.functions.share == 1.0 and 0.6 < found.samples < 1.0
    mine = output.read_text()
    assert re.search(r"^ 4\.3: _ZL8classifyl\S*:4776982$", mine, re.MULTILINE)  # 4,777,001 by address
    targets = "  0: 300000 _ZNK3Add3runEl:281250 _ZNK3Mul3runEl:14063 _ZNK4Rare3runEl:4687\n"
    assert (targets in mine) is (suffix == "callgrind")


# ---- trees


def place(name: str, line: int, discriminator: int = 0, declared: int = 10) -> Place:
    return Place(name, declared, line, discriminator, 0)


def lines(profile: Profile) -> list[str]:
    return b"".join(text(profile)).decode().splitlines()


def test_levels_are_inlined_functions() -> None:
    profile = Profile()
    main, get = place("main", 12, 4), place("get", 10)
    for places, count in ((get, main), 7), ((get, main), 5), ((place("main", 9),), 3):
        assert enter(profile.function("main"), places, count)
    assert lines(profile) == ["main:15:0", " 2.2: get:12", "  0: 7", " 65535: 3"]


@pytest.mark.parametrize("gap", [place("get", 0), place("", 5), place("a b", 5), place("a\nb", 5), place("1a", 5)])
def test_instructions_with_a_gap_have_no_place(gap: Place) -> None:
    """Nor do those in functions whose names the text cannot hold."""
    level = Level()
    assert enter(level, (gap, place("main", 12)), 7) is None and enter(level, (place("get", 5), gap), 7) is None
    assert not level.total and not level.body and not level.nested


def flat(**functions: tuple[int, dict[int, int]]) -> Any:
    """What `nest` needs of a Join; the number of a function is its address and, times 4, its bytes of code."""
    join = SimpleNamespace(functions={}, sites=[], total=0)
    for number, (name, (head, body)) in enumerate(functions.items(), 1):
        function = join.functions[0, number] = Function(name)
        function.nbytes = 121 if name == "big" else 40
        function.level.head = head
        for offset, count in body.items():
            function.level.count((offset, 0), count)
            function.level.total += count
            join.total += count
    return join


def call(join: Any, caller: str, offset: int, callee: str, n: int) -> None:
    spots = {function.name: spot for spot, function in join.functions.items()}
    level = join.functions[spots[caller]].level
    level.call((offset, 0), callee, n)
    join.sites.append(Site(level, (offset, 0), spots[callee], callee, n))


def whole(join: Any) -> Profile:
    return Join.profile(join)


def test_small_callees_are_nested() -> None:
    join = flat(main=(1, {0: 1, 3: 20}), other=(1, {1: 10}), get=(30, {1: 30, 2: 60}))
    call(join, "main", 3, "get", 20)
    call(join, "other", 1, "get", 10)
    nest(join, 120)
    assert lines(whole(join)) == [
        *("main:81:1", " 0: 1", " 3: 20", " 3: get:60", "  1: 20", "  2: 40"),
        *("other:40:1", " 1: 10", " 1: get:30", "  1: 10", "  2: 20"),
    ]


def test_a_share_of_the_calls_is_nested() -> None:
    """Calls from elsewhere stay with the function's own record."""
    join = flat(main=(1, {3: 20}), get=(80, {1: 80}))
    call(join, "main", 3, "get", 20)
    nest(join, 120)
    assert lines(whole(join)) == ["get:60:60", " 1: 60", "main:40:1", " 3: 20", " 3: get:20", "  1: 20"]


def test_calls_in_and_of_always_inline_functions_are_nested() -> None:
    """At -O0 `find` is inlined in `get` and `main`, and calls `hash`."""
    join = flat(main=(1, {3: 20}), get=(20, {1: 20}), hash=(50, {1: 50}))
    call(join, "main", 3, "get", 20)
    for name, n in (("main", 30), ("get", 20)):
        (function,) = (one for one in join.functions.values() if one.name == name)
        find = function.level.inside((2, 0), "find")
        find.call((1, 0), "hash", n)
        find.count((1, 0), n)
        find.total += n
        function.level.total += n
        join.total += n
        join.sites.append(Site(find, (1, 0), (0, 3), "hash", n))
    nest(join, 120)
    assert lines(whole(join)) == [
        *("main:140:1", " 2: find:60", "  1: 30", "  1: hash:30", "   1: 30"),
        *(" 3: 20", " 3: get:60", "  1: 20", "  2: find:40", "   1: 20", "   1: hash:20", "    1: 20"),
    ]


def test_a_program_with_always_inline_functions_is_known_to_be_built_without_optimization() -> None:
    join = flat(main=(1, {3: 20}), get=(20, {1: 20}))
    join.inlined = join.unplaced = 0
    assert is_flat(join)
    call(join, "main", 3, "get", 20)
    (main, _) = join.functions.values()
    join.inlined = join.total
    for k in range(5):
        main.level.inside((k, 0), f"find{k}")
    assert is_flat(join)  # one small function is called for five inlined ones
    join.unplaced = join.total // 10
    assert not is_flat(join)  # optimized code loses lines
    join.unplaced = 0
    main.level.inside((9, 0), "find9")
    assert not is_flat(join)


def test_large_functions_and_recursion_are_not_nested() -> None:
    join = flat(main=(1, {3: 20}), big=(20, {1: 20}), fib=(30, {1: 30}))
    call(join, "main", 3, "big", 20)
    call(join, "fib", 1, "fib", 29)
    before = lines(whole(join))
    nest(join, 120)
    assert lines(whole(join)) == before


def test_static_functions_of_one_name_are_added_up() -> None:
    join = flat(main=(1, {3: 30}), get=(10, {1: 10}), big=(20, {1: 20}))
    join.functions[0, 3].name, join.functions[0, 3].nbytes = "get", 40
    level = join.functions[0, 1].level
    for spot, n in ((0, 2), 10), ((0, 3), 20):
        level.call((3, 0), "get", n)
        join.sites.append(Site(level, (3, 0), spot, "get", n))
    assert lines(whole(join))[:2] == ["get:30:30", " 1: 30"]
    nest(join, 120)
    assert lines(whole(join)) == ["main:60:1", " 3: 30", " 3: get:30", "  1: 30"]


@given(st.data())
def test_nesting_keeps_counts(data: st.DataObject) -> None:
    """Random graphs of calls, with cycles: what is nested is taken off the function's own record."""
    n = data.draw(st.integers(1, 8))
    names = [f"f{k}" for k in range(n)]
    calls = data.draw(st.dictionaries(st.tuples(st.sampled_from(names), st.sampled_from(names)), st.integers(1, 1000)))
    heads = {
        name: sum(k for (_, to), k in calls.items() if to == name) + data.draw(st.integers(0, 9)) for name in names
    }
    join = flat(**{name: (heads[name], {1: 7 * heads[name] + 1}) for name in names})
    for (caller, callee), k in calls.items():
        call(join, caller, 1, callee, k)
    nest(join, 120)
    copies = sum(1 for level in whole(join).functions.values() for _ in level.all())
    assert sum(level.total for level in whole(join).functions.values()) == pytest.approx(join.total, abs=copies)
    assert copies < 1 << 14


def test_wide_and_deep_nests_end() -> None:
    """Two calls of the next function at each of 40 depths would be 2^40 copies."""
    join = flat(**{f"f{k}": (1 << min(k, 40), {1: 1 << min(k, 40), 2: 1 << min(k, 40)}) for k in range(40)})
    for k in range(39):
        for at in (1, 2):
            call(join, f"f{k}", at, f"f{k + 1}", 1 << k)
    nest(join, 120)
    profile = whole(join)
    assert sum(1 for level in profile.functions.values() for _ in level.all()) < 2 << 16
    assert sum(level.total for level in profile.functions.values()) == pytest.approx(join.total, rel=1e-6)


def test_counts_beyond_63_bits_are_limited() -> None:
    join = flat(main=(1, {3: 20}), get=((1 << 63) - 1, {1: (1 << 63) - 1}))
    for _ in range(3):
        call(join, "main", 3, "get", (1 << 63) - 1)
    profile = whole(join)
    profile.functions["get"].total *= 3
    profile.limit()
    for encode in (text, binary, extbinary, gcov):
        assert b"".join(encode(profile))
    assert lines(profile)[0] == f"get:{(1 << 63) - 1}:{(1 << 63) - 1}"
    assert lines(profile)[3] == f" 3: 20 get:{(1 << 63) - 1}"


class Gcov:
    """A slow reader of gcov profiles, as gcc/auto-profile.cc reads them."""

    def __init__(self, data: bytes, layout: str = "gcc12") -> None:
        self.data, self.at, self.layout = data, 0, layout

    def word(self) -> int:
        self.at += 4
        return int.from_bytes(self.data[self.at - 4 : self.at], "little")

    def count(self) -> int:
        return self.word() | self.word() << 32

    def name(self) -> str:
        n = self.word() * (1 if self.layout == "gcc12" else 4)
        self.at += n
        return self.data[self.at - n : self.at].rstrip(b"\0").decode()

    def node(self, names: list[str]) -> tuple[str, Any]:
        index, n_places, n_calls = self.word(), self.word(), self.word()
        assert 0 < index < len(names)
        places = {}
        for _ in range(n_places):
            offset, n_targets, count = self.word(), self.word(), self.count()
            places[offset >> 16] = (
                count,
                {names[self.count()]: self.count() for _ in range(n_targets) if self.word() == 7},
            )
        calls = {}
        for _ in range(n_calls):
            offset = self.word() >> 16
            callee, inner = self.node(names)
            calls[offset, callee] = inner
        return names[index], (places, calls)

    def profile(self) -> dict[str, Any]:
        assert (self.word(), self.word(), self.word()) == (0x67636461, 1 if self.layout == "version1" else 2, 0)
        assert self.word() == 0xAA000000 and self.word()
        names = [self.name() for _ in range(self.word())]
        assert self.word() == 0xAC000000 and self.word()
        functions = {}
        for _ in range(self.word()):
            head = self.count()
            name, node = self.node(names)
            functions[name] = head, *node
        assert (self.word(), self.word(), self.word()) == (0xAE000000, 1, 0)
        if self.layout != "gcc12":
            assert (self.word(), self.word()) == (0xAF000000, 384)
            self.sets = [(self.word(), self.count()) for _ in range(128)]
        assert self.at == len(self.data)
        return functions


@pytest.mark.parametrize("layout", ["padded", "version1"])
def test_gcov_profiles_of_earlier_gcc(layout: str) -> None:
    profile = whole(flat(main=(1, {0: 1, 1: 127 * 4, 2: 4}), get=(20, {1: 127 * 4})))
    read = Gcov(b"".join(gcov(profile, layout)), layout)
    assert read.profile() == Gcov(b"".join(gcov(profile))).profile()
    # 1,021 in all: the largest count reaches 63 of 128 parts, the second 127, and the third the rest with the last one
    assert read.sets[0] == (1, 508) and read.sets[62] == (1, 508) and read.sets[63] == (2, 508)
    assert read.sets[126] == (2, 508) and read.sets[127] == (4, 1)


def test_gcov_profiles() -> None:
    """Discriminators of a line are one place, and copies of a callee that is inlined there one node."""
    profile = whole(flat(main=(1, {0: 1}), big=(20, {1: 20})))
    main = profile.functions["main"]
    profile.function("main._omp_fn.0").count((0, 0), 5)
    for discriminator, count in ((1, 7), (2, 9)):
        main.count((3, discriminator), count)
        main.call((3, discriminator), "big", count)
        main.inside((3, discriminator), "get").count((1, 0), count)
    found = Gcov(b"".join(gcov(profile))).profile()
    assert found == {
        "main": (1, {0: (6, {}), 3: (9, {"big": 16})}, {(3, "get"): ({1: (16, {})}, {})}),
        "big": (20, {1: (20, {})}, {}),
    }


def test_gcov_profiles_of_samples() -> None:
    """gcc 12 fails at loops with fewer rounds than entries, whose counts it rounds to 0."""
    profile = whole(flat(main=(100, {2: 100, 3: 1, 4: 0, 5: 50}), big=(0, {1: 1})))
    profile.functions["main"].call((5, 0), "big", 50)
    profile.functions["main"].inside((5, 0), "get").count((1, 0), 0)
    found = Gcov(b"".join(gcov(profile, sampled=True))).profile()
    places = {2: (100_000, {}), 3: (1000, {}), 4: (100, {}), 5: (50_000, {"big": 50_000})}
    assert found == {"main": (100_000, places, {(5, "get"): ({1: (100, {})}, {})}), "big": (0, {1: (1000, {})}, {})}


def test_a_gcov_profile_of_callgrind(tmp_path: Path) -> None:
    fastprof.convert(SMALL, tmp_path / "a.afdo", symbols=[str(PROGRAM)])
    found = Gcov((tmp_path / "a.afdo").read_bytes()).profile()
    assert found["_ZNK3Add3runEl"] == (281250, {0: (281250, {})}, {})
    assert len(found) == 8 and found["main"][1][4][0] == 300000


def test_deep_levels_are_written() -> None:
    """Deeper ones have no place."""
    profile = Profile()
    places = tuple(place(f"f{k}", 11) for k in range(DEEPEST + 1))
    assert enter(Level(), places, 1) is None
    assert enter(profile.function("f"), places[1:], 1) and enter(profile.function("g"), places[1:], 1)
    assert len(lines(profile)) == 2 * DEEPEST + 2
    assert sum(1 for _ in Level.all(profile.functions["f"])) == DEEPEST
    for encode in (binary, extbinary, gcov):
        assert len(b"".join(encode(profile))) > 2 * DEEPEST
    assert Level.sum(profile.functions.values()).total == 2


def test_paths_of_one_program_are_added_up(tmp_path: Path) -> None:
    """As two hosts may have it: each place gets the sum, not the larger count."""
    for name in ("p", "q"):
        (tmp_path / name).write_bytes(PROGRAM.read_bytes())
        text_ = lzma.decompress(SMALL.read_bytes()).replace(b"/opt/t4/pgo/p", b"/opt/t4/pgo/" + name.encode())
        (tmp_path / f"{name}.callgrind").write_bytes(text_)
    found = []
    for second in ("p", "q"):
        inputs = [tmp_path / "p.callgrind", tmp_path / f"{second}.callgrind"]
        fastprof.merge(inputs, tmp_path / "out.llvmprof", symbols=[str(tmp_path / "p"), str(tmp_path / "q")])
        found.append((tmp_path / "out.llvmprof").read_text())
    assert found[0] == found[1] and found[0].startswith(f"main:{2 * 7_778_785}:2\n 0: 2\n")
