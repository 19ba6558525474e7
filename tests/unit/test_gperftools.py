"""gperftools CPU profiles: the layout, its oddities, damage."""

from __future__ import annotations

import struct
import sys
from collections import Counter
from pathlib import Path

import pytest

import fastprof
from fastprof import formats
from fastprof.core.errors import FastprofError, FormatError, UnrecognizedError, UsageError
from fastprof.core.model import ValueType
from fastprof.core.options import Options
from fastprof.core.source import Source
from fastprof.formats.gperftools import rank
from fastprof.formats.gperftools.read import split_inlined
from fastprof.symbols.listed import java_frame
from fastprof.symbols.maps import MapsText, arrange
from tests.reference import gperftools as reference
from tests.reference import profile_proto
from tests.support.paths import CORPUS
from tests.support.stackdump import dump, rewrite

MAPS = b"""00400000-00410000 r-xp 00000000 08:01 4711       /srv/my demo/prog
00410000-00420000 rw-p 00010000 08:01 4711       /srv/my demo/prog
7f0000000000-7f0000100000 r-xp 00001000 08:01 12  /lib/libx.so.6 (deleted)
7fff00000000-7fff00002000 r-xp 00000000 00:00 0   [vdso]
"""
SMALL = reference.write([(2, (0x401000, 0x402000)), (1, (0x403000,)), (3, (0x401000, 0x402000))], text=MAPS)
KINDS = [(4, "<"), (4, ">"), (8, "<"), (8, ">")]
LENIENT = Options(lenient=True)


def ticks(data: bytes, **options: bool) -> Counter[tuple[int, ...]]:
    """Ticks by chain of addresses."""
    found: Counter[tuple[int, ...]] = Counter()
    for stack, _, values in dump(data, "gperftools", options=Options(**options)).rows:
        found[tuple(frame[1] for frame in stack)] += values[0]
    return found


@pytest.mark.parametrize(("word", "order"), KINDS)
def test_every_kind_of_word(word: int, order: str) -> None:
    chains = [(5, (0x1000, 0x2000)), (1, (0x3000,))]
    data = reference.write(chains, word=word, order=order, extra_header=(7, 8), period_us=2500)
    assert formats.detect(Source(data)).name == "gperftools"
    got = dump(data, "gperftools")
    assert [values for _, _, values in got.rows] == [(5, 12_500_000), (1, 2_500_000)]
    assert ticks(data) == {(0x1000, 0x2000): 5, (0x3000,): 1}


def test_equal_chains_are_summed_and_callers_are_return_addresses() -> None:
    got = dump(SMALL, "gperftools")
    assert [values[0] for _, _, values in got.rows] == [5, 1]
    leaf, caller = got.rows[0][0]
    assert (leaf[1], leaf[2]) == (0x401000, 0)
    assert (caller[1], caller[2]) == (0x402000, 1)
    assert leaf[0] is not None
    assert leaf[0][0] == b"/srv/my demo/prog"


def test_worked_example_of_the_header() -> None:
    data = bytes.fromhex(
        "00000000 03000000 00000000 10270000 0000000002000000 01000000 3412000000000000 01000000 00000000"
    )
    assert ticks(data) == {(0x1234,): 2}


def test_extreme_addresses() -> None:
    last = (1 << 64) - 1
    assert ticks(reference.write([(1, (0, 5)), (1, (last, last - 1)), (1, (7, 0))])) == {
        (0, 5): 1,
        (last, last - 1): 1,
        (7, 0): 1,
    }


@pytest.mark.parametrize("sign", [1, -1])
def test_differences_of_every_length(sign: int) -> None:
    """Chains are kept as differences, in one to ten bytes."""
    steps = [sign * ((1 << bits) + more) for bits in range(64) for more in (-1, 0, 1)]
    chains = [tuple((1 + k + at) % (1 << 64) for at in (0, step, 2 * step)) for k, step in enumerate(steps)]
    assert ticks(reference.write([(1, chain) for chain in chains])) == dict.fromkeys(chains, 1)


def test_records_without_count_or_stack_are_kept() -> None:
    assert ticks(reference.write([(0, (0x1000, 0x2000)), (4, ())])) == {(0x1000, 0x2000): 0, (): 4}


def test_no_trailer_is_a_repair() -> None:
    got = dump(reference.write([(1, (0x1000,))], trailer=False), "gperftools")
    assert got.log.repairs == {"missing-trailer": 1}


@pytest.mark.parametrize("lenient", [False, True])
def test_a_list_of_mapped_objects_that_is_cut_is_said(lenient: bool) -> None:
    for end, n in ((None, 0), (-1, 1), (-70, 1)):
        log = dump(SMALL[:end], "gperftools", options=Options(lenient=lenient)).log
        counter = log.losses if lenient else log.repairs
        assert counter["lost-text" if lenient else "cut-text"] == n
        assert any("may be truncated" in warning for warning in log.warnings) == bool(n)


def test_no_records() -> None:
    assert dump(reference.write([]), "gperftools").rows == []


def test_cut_chains_are_said() -> None:
    log = dump(reference.write([(3, tuple(range(1, 255)))]), "gperftools").log
    assert log.facts["samples_cut_at_254_frames"] == 3
    assert "the profiler cut" in log.warnings[0]


VMPROF = b"\5\0\7\4\7cpython\6" + bytes(range(200))


@pytest.mark.parametrize("word", [4, 8])
def test_a_header_that_another_format_has_too(word: int) -> None:
    """vmprof begins its files with the same words."""
    data = b"".join(n.to_bytes(word, "little") for n in (0, 3, 0, 990, 0)) + VMPROF
    with pytest.raises(UnrecognizedError, match="this is a recording of vmprof"):
        fastprof.info(data)


@pytest.mark.parametrize("symbolized", [False, True])
def test_counts_without_a_period_are_no_times(symbolized: bool) -> None:
    data = reference.write([(4096, (1, 2)), (100, (2,))], period_us=0)
    if symbolized:
        data = b"--- symbol\nbinary=x\n0x1 main\n0x2 f\n---\n--- profile\n" + data
    log = fastprof.info(data)
    assert log.facts["totals"] == {"samples": 4196}
    assert "may be bytes" in "".join(str(warning) for warning in log.warnings)
    assert fastprof.info(data, period_us=1000).facts["totals"] == {"samples": 4196, "cpu": 4_196_000_000}
    with pytest.raises(UnrecognizedError):  # zeros alone are no evidence
        fastprof.info(reference.write([], period_us=0, trailer=False))


# ---- frames left by the profiler ----


def test_duplicated_leaves_go() -> None:
    chains = [(1, (leaf, leaf, 0x402000 + leaf)) for leaf in range(0x401000, 0x401040)]
    data = reference.write(chains, text=MAPS)
    got = dump(data, "gperftools")
    assert {len(stack) for stack, _, _ in got.rows} == {2}
    assert got.log.repairs["duplicated-leaves"] == 64
    assert {len(stack) for stack in ticks(data, keep_signal_frames=True)} == {3}


@pytest.mark.parametrize("trampoline", [0x7FFF00001000, 0x123456789])
def test_signal_frames_in_no_object_go(trampoline: int) -> None:
    chains = [(1, (leaf, trampoline, 0x402000 + leaf)) for leaf in range(0x401000, 0x401040)]
    got = dump(reference.write(chains, text=MAPS), "gperftools")
    assert {len(stack) for stack, _, _ in got.rows} == {2}
    assert got.log.repairs["signal-frames"] == 64


LIBRARY = MAPS + b"7f0000200000-7f0000300000 r-xp 00001000 08:01 13  /lib/x86_64-linux-gnu/%s\n"
RESTORE = 0x7F0000203140


@pytest.mark.parametrize("name", [b"libpthread-2.31.so", b"libpthread.so.0", b"libc.so.6", b"ld-musl-x86_64.so.1"])
def test_signal_frames_in_the_c_library_go(name: bytes) -> None:
    leaves = [*range(0x401000, 0x401800, 0x40), 0x7F0000000010]
    chains = [(1, (leaf, RESTORE, 0x408000 + i % 5, 0x40A000)) for i, leaf in enumerate(leaves)]
    got = dump(reference.write(chains, text=LIBRARY % name), "gperftools")
    assert {len(stack) for stack, _, _ in got.rows} == {3}
    assert got.log.repairs["signal-frames"] == len(leaves)


@pytest.mark.parametrize(
    ("name", "leaves", "callers"),
    [
        (b"libx.so", range(0x401000, 0x401800, 0x40), [0x408000, 0x408010]),  # no C library: one caller of everything
        (b"libc.so.6", range(0x401000, 0x401080, 2), [0x408000, 0x408010]),  # bsearch calls back one function
        (b"libc.so.6", range(0x401000, 0x401800, 0x40), [RESTORE + 8, RESTORE + 32]),  # qsort calls itself
        (b"libc.so.6", range(0x401000, 0x401800, 0x40), [0x408000]),  # start_thread and a caller that starts threads
    ],
)
def test_functions_of_a_library_that_call_everything_stay(name: bytes, leaves: range, callers: list[int]) -> None:
    chains = [(1, (leaf, RESTORE, callers[i % len(callers)])) for i, leaf in enumerate(leaves)]
    got = dump(reference.write(chains, text=LIBRARY % name), "gperftools")
    assert {len(stack) for stack, _, _ in got.rows} == {3}
    assert not got.log.repairs


def test_a_trampoline_between_two_leaves_goes() -> None:
    chains = [(1, (leaf, 0x7F0000000123, leaf, 0x402000 + leaf)) for leaf in range(0x401000, 0x401040)]
    got = dump(reference.write(chains, text=MAPS), "gperftools")
    assert {len(stack) for stack, _, _ in got.rows} == {2}


def test_the_only_caller_stays() -> None:
    chains = [(1, (leaf, 0x402000, 0x403000)) for leaf in range(0x401000, 0x401040)]
    got = dump(reference.write(chains, text=MAPS), "gperftools")
    assert {len(stack) for stack, _, _ in got.rows} == {3}
    assert not got.log.repairs


def test_recursion_at_one_call_site_stays() -> None:
    chains = [(1, (0x401000, 0x401000, 0x402000)), *((1, (leaf, 0x403000)) for leaf in range(0x404000, 0x404010))]
    got = dump(reference.write(chains, text=MAPS), "gperftools")
    assert max(len(stack) for stack, _, _ in got.rows) == 3


# ---- the text of mapped objects ----


def maps(text: bytes) -> list[tuple[int, int, int, bytes, bytes]]:
    reader = MapsText()
    for line in text.splitlines(keepends=True):
        reader.line(line)
    return [(m.start, m.limit, m.offset, m.path, m.build_id) for m in arrange(reader.objects)]


@pytest.mark.parametrize(
    ("line", "want"),
    [
        (b"1000-2000 r-xp 00000100 08:01 12  /a b/c.so", (0x1000, 0x2000, 0x100, b"/a b/c.so", b"")),
        (b"  1000-2000 r-xp 0 00:00 0 /x (deleted)\r\n", (0x1000, 0x2000, 0, b"/x", b"")),
        (b"1000-2000: /x", (0x1000, 0x2000, 0, b"/x", b"")),
        (b"0x1000-0x2000 r-xp /x (@300) abc123456", (0x1000, 0x2000, 0x300, b"/x", b"abc123456")),
        (b"1000-2000 r-xp 0 fd:01 0 /\xff\xfe", (0x1000, 0x2000, 0, b"/\xff\xfe", b"")),
        (b"I0101 12:00 file.cc:12] 1000-2000 r-xp 0 08:01 0 /x", (0x1000, 0x2000, 0, b"/x", b"")),
        (b"1000-2000 --xp 0 00:00 0", (0x1000, 0x2000, 0, b"", b"")),
    ],
)
def test_lines_of_maps(line: bytes, want: tuple[int, int, int, bytes, bytes]) -> None:
    assert maps(line) == [want]


def test_the_build_variable_is_the_last_one_and_a_whole_word() -> None:
    text = (
        b"build=/one\n1000-2000 r-xp 0 00:00 0 $build/a.so\nbuild=/two\n"
        b"3000-4000 r-xp 0 00:00 0 $build/b.so\n5000-6000 r-xp 0 00:00 0 $builder/c.so\n"
    )
    assert [m[3] for m in maps(text)] == [b"/one/a.so", b"/two/b.so", b"$builder/c.so"]


def test_the_program_comes_first_and_is_widened_to_its_headers() -> None:
    text = b"7000-8000 r-xp 0 00:00 0 /lib/x.so.1\n401000-402000 r-xp 00001000 08:01 1 /bin/prog\n"
    assert maps(text) == [(0x400000, 0x402000, 0, b"/bin/prog", b""), (0x7000, 0x8000, 0, b"/lib/x.so.1", b"")]


def test_neighbours_of_one_file_are_joined() -> None:
    text = b"1000-2000 r-xp 0 08:01 1 /p\n2000-3000 r-xp 00001000 08:01 1 /p\n3000-4000 r-xp 0 08:01 1 /q\n"
    assert [(m[0], m[1]) for m in maps(text)] == [(0x1000, 0x3000), (0x3000, 0x4000)]


def test_a_very_long_line() -> None:
    path = b"/" + b"x" * 300_000
    data = reference.write([(1, (0x1000,))], text=b"1000-2000 r-xp 0 00:00 0 " + path)
    frame = dump(data, "gperftools", chunk=4096).rows[0][0][0]
    assert frame[0][0] == path


# ---- other shapes ----


def test_the_symbolized_form() -> None:
    text = b"--- symbol\nbinary=/bin/p\n0x0000000000001000 leaf--outer\n"
    text += b"0x0000000000002000 T::operator--\n---\n--- profile\n"
    data = text + reference.write([(2, (0x1000, 0x2000))], trailer=False, period_us=1)
    assert formats.detect(Source(data)).name == "gperftools"
    for chunk in (None, 1, 7):
        (leaf, caller), _, values = dump(data, "gperftools", chunk=chunk).rows[0]
        assert [line[0] for line in leaf[3]] == [b"leaf", b"outer"]
        assert [line[0] for line in caller[3]] == [b"T::operator--"]
        assert caller[2] == 0  # such files hold addresses of calls
        assert values[0] == 2


def test_split_inlined() -> None:
    assert split_inlined(b"a--b--c") == [b"a", b"b", b"c"]
    assert split_inlined(b"A::operator----B") == [b"A::operator--", b"B"]


@pytest.mark.parametrize("byte", [b"a", b"1", b" ", b":", b"-", b"(", b")", b"]", b"$", b"/", b"\t", b"\xff"])
@pytest.mark.parametrize(
    "before",
    [
        b"",
        b"1000-2000 r-xp 00000000 08:01 4711 ",
        b"1000-2000 r-xp 0 0:",
        b"1000-2000: ",
        b"1000-2000: /x (@",
        b"x:1] ",
        b"build=",
    ],
)
def test_a_line_of_any_length_takes_linear_time(before: bytes, byte: bytes) -> None:
    """A megabyte: quadratic work would not end.  Nor would output that doubles with each `$build`."""
    reader = MapsText()
    for line in (before + byte * (1 << 20), before + byte * (1 << 20) + b" (@ x", b"$build" * (1 << 17), b"\n"):
        reader.line(line)
    assert len(reader.objects) <= 2


@pytest.mark.parametrize("text", [b" ", b"(", b" (", b":1)", b"a (b:", b")", b"operator--", b"--"])
def test_a_name_of_any_length_takes_linear_time(text: bytes) -> None:
    long = text * ((1 << 20) // len(text))
    for name in (long, long + b")", b"a (" + long + b":5)"):
        split_inlined(name)
        java_frame(name)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b"1000-2000: /x (@30) 1a2b3c4d", (0x1000, 0x2000, 0x30, b"/x", b"1a2b3c4d")),
        (b"1000-2000 r-xp /a b 1a2b3c4d", (0x1000, 0x2000, 0, b"/a b", b"1a2b3c4d")),
        (b"1000-2000: 1a2b3c4d", (0x1000, 0x2000, 0, b"1a2b3c4d", b"")),
        (b"0x1000 0x2000: (@30)", (0x1000, 0x2000, 0, b"(@30)", b"")),
        (b"I0101 12:00:00.0 77 x.cc:12] 1000-2000 r-xp 00000040 08:01 4711 /a b", (0x1000, 0x2000, 0x40, b"/a b", b"")),
    ],
)
def test_lines_of_mapped_objects(line: bytes, expected: tuple[object, ...]) -> None:
    reader = MapsText()
    reader.line(line)
    assert [tuple(m)[:5] for m in reader.objects] == [expected]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"a.B.c (B.java:12)", (b"a.B.c", b"B.java", 12)),
        (b"a.B.c(int) (B (x).java:12)", (b"a.B.c(int) (B", b"x).java", 12)),
        (b"a (b:c)", (b"a", b"b:c", 0)),
        (b"a (b:-3)", (b"a", b"b", 0)),
        (b"a (b:" + b"9" * 5000 + b")", (b"a", b"b", 0)),
        (b"a(b)", (b"a(b)", b"", 0)),
        (b"a ()", (b"a", b"", 0)),
    ],
)
def test_java_frames(text: bytes, expected: tuple[bytes, bytes, int]) -> None:
    assert java_frame(text) == expected


def test_java() -> None:
    data = reference.write([(1, (0x10, 0x20))], version=1, text=b"0x10 a.B.c (B.java:12)\n0x20 a.D.e (D.java)\n")
    (leaf, caller), _, _ = dump(data, "gperftools").rows[0]
    assert leaf[3] == ((b"a.B.c", b"a.B.c", b"B.java", 0, 12, 0),)
    assert caller[3] == ((b"a.D.e", b"a.D.e", b"D.java", 0, 0, 0),)
    assert caller[2] == 0


# ---- damage ----


def test_cut_at_every_byte() -> None:
    whole = reference.write([(2, (0x1000, 0x2000)), (1, (0x3000,))], word=4, text=MAPS[:80])
    outcomes = Counter()
    for n in range(1, len(whole)):
        try:
            expected = sorted(reference.read(whole[:n]).chains.values())
        except ValueError:
            expected = None
        try:
            got = sorted(values[0] for _, _, values in dump(whole[:n], "gperftools").rows)
        except FormatError as error:
            assert error.offset is not None and error.offset <= n
            got = None
        assert got == expected, n
        outcomes[got is None] += 1
        dump(whole[:n], "gperftools", options=LENIENT) if n >= 20 else None
    assert outcomes[True] and outcomes[False]


def test_lenient_says_what_is_lost() -> None:
    got = dump(SMALL[:80], "gperftools", options=LENIENT)  # header 40, record 32, 8 bytes of the next
    assert got.log.losses == {"damaged-records": 1, "skipped-bytes": 8}
    assert [values[0] for _, _, values in got.rows] == [2]


def test_a_depth_that_cannot_be() -> None:
    bad = struct.pack("<8Q", 0, 3, 0, 10_000, 0, 1, 1 << 40, 7)
    with pytest.raises(FormatError, match="at byte 48: the depth of a stack is 1099511627776, expected 0 to 65536"):
        dump(bad, "gperftools")
    good_after = bad + struct.pack("<3Q", 0, 1, 0) + MAPS
    got = dump(good_after, "gperftools", options=LENIENT)
    assert got.log.losses == {"damaged-records": 1, "skipped-bytes": 24}
    assert got.mappings[0][0] == b"/srv/my demo/prog"


def test_counts_beyond_63_bits() -> None:
    with pytest.raises(FormatError, match="count"):
        dump(reference.write([(1 << 63, (1,))]), "gperftools")
    with pytest.raises(FormatError, match="period"):
        dump(reference.write([(1 << 62, (1,))]), "gperftools")


@pytest.mark.parametrize("at", range(len(SMALL)))
def test_one_flipped_byte(at: int) -> None:
    damaged = SMALL[:at] + bytes([SMALL[at] ^ 0xFF]) + SMALL[at + 1 :]
    for options in (Options(), LENIENT):
        try:
            dump(damaged, "gperftools", options=options)
        except FormatError as error:
            assert error.offset is not None


@pytest.mark.parametrize("chunk", [1, 2, 3, 7, 4096, None])
@pytest.mark.parametrize("capacity", [1, 2, 1000])
def test_chunks_and_capacities_change_nothing(chunk: int | None, capacity: int) -> None:
    want = dump(SMALL, "gperftools")
    got = dump(SMALL, "gperftools", chunk=chunk, capacity=capacity)
    assert (got.rows, got.mappings, got.part) == (want.rows, want.mappings, want.part)


# ---- forked processes that also wrote the profile ----

BEFORE = [(2, (0x401000, 0x402000)), (1, (0x403000,))]
AFTER = [(10, (0x404000, 0x402000)), (5, (0x403000,))]


@pytest.mark.parametrize(("word", "order"), KINDS)
@pytest.mark.parametrize("chunk", [1, 7, None])
def test_forked_processes_have_written_what_they_were_born_with(word: int, order: str, chunk: int | None) -> None:
    child = reference.write(BEFORE, word=word, order=order, text=MAPS)
    got = dump(
        child + child + reference.write(BEFORE + AFTER, word=word, order=order, text=MAPS), "gperftools", chunk=chunk
    )
    alone = dump(reference.write(BEFORE + AFTER, word=word, order=order, text=MAPS), "gperftools")
    assert sorted(got.summed().items()) == sorted(alone.summed().items())
    assert got.mappings == alone.mappings
    assert got.log.facts["samples"] == 18
    assert got.log.repairs == {"forked-profiles": 2}


def test_a_forked_process_that_ends_last() -> None:
    data = reference.write(BEFORE + AFTER, text=MAPS) + reference.write(BEFORE, text=MAPS)
    assert ticks(data) == ticks(reference.write(BEFORE + AFTER, text=MAPS))


@pytest.mark.parametrize("chunk", [1, 7, None])
def test_records_after_the_text_are_summed_where_no_header_says_that_they_begin_anew(chunk: int | None) -> None:
    # the first word, 10, begins with a line feed
    rest = reference.write(AFTER, text=MAPS)[40:]
    got = dump(reference.write(BEFORE, text=MAPS) + rest, "gperftools", chunk=chunk)
    assert sorted(values[0] for _, _, values in got.rows) == [2, 6, 10]
    assert got.log.repairs == {"forked-profiles": 1}
    assert any("more than once" in text for text in got.log.warnings)


def test_records_after_the_text_are_cut() -> None:
    data = reference.write(BEFORE, text=MAPS) + reference.write(AFTER, text=MAPS)[40:70]
    with pytest.raises(FormatError) as error:
        dump(data, "gperftools")
    assert error.value.offset == len(data) - 30
    assert dump(data, "gperftools", options=LENIENT).log.losses == {"damaged-records": 1, "skipped-bytes": 30}


def test_zeros_after_the_text_are_no_records() -> None:
    got = dump(SMALL + bytes(512), "gperftools")
    assert got.rows == dump(SMALL, "gperftools").rows
    assert got.log.repairs == {"unreadable-mapped-objects": 1}


# ---- writing ----


def test_written_profiles_read_back() -> None:
    data, log = rewrite(SMALL, "gperftools", "gperftools")
    again, _ = rewrite(data, "gperftools", "gperftools")
    assert data == again
    assert dump(data, "gperftools").rows == dump(SMALL, "gperftools").rows
    assert not log.not_representable
    assert reference.read(data).period_us == 10_000


def test_what_the_format_cannot_say_is_counted() -> None:
    text = b"--- symbol\n0x0000000000001000 f\n---\n--- profile\n"
    pprof, _ = rewrite(text + reference.write([(2, (0, 0x1000))]), "gperftools", "pprof")
    _, log = rewrite(pprof, "pprof", "gperftools")
    assert log.not_representable == {
        "frames-without-address": 1,
        "function-names": 1,
    }


@pytest.mark.parametrize(
    ("value", "unit", "period", "period_unit", "want"),
    [
        (40, "milliseconds", 20, "milliseconds", (2, 20_000)),
        (6000, "microseconds", 2000, "microseconds", (3, 2000)),
        (7, "seconds", 1, "seconds", (7, 1_000_000)),
        (20_000_000, "nanoseconds", 4096, "bytes", (2, 10_000)),
        (20_000_000, "nanoseconds", 1 << 60, "seconds", (2, 10_000)),
    ],
)
def test_times_of_any_unit_are_written_as_ticks(
    value: int, unit: str, period: int, period_unit: str, want: tuple[int, int]
) -> None:
    got = reference.read(rewrite(timed(value, unit, period, period_unit), "pprof", "gperftools")[0])
    assert (got.chains, got.period_us) == (Counter({(0x1000,): want[0]}), want[1])


def test_a_time_that_no_word_holds() -> None:
    with pytest.raises(FastprofError, match="exceeds 2\\^64 - 1 nanoseconds"):
        rewrite(timed(1 << 62, "seconds", 1, "seconds"), "pprof", "gperftools")


def timed(value: int, unit: str, period: int, period_unit: str) -> bytes:
    """A pprof profile of one sample."""
    p = profile_proto.Profile(string_table=["", "cpu", unit, period_unit], period=period)
    p.sample_type.add(type=1, unit=2)
    p.period_type.type, p.period_type.unit = 1, 3
    p.location.add(id=1, address=0x1000)
    p.sample.add(location_id=[1], value=[value])
    return bytes(p.SerializeToString())


def test_the_longest_period(tmp_path: Path) -> None:
    """The writer's 64 bits of nanoseconds limit the period."""
    longest = ((1 << 63) - 1) // 1000
    path = tmp_path / "out.prof"
    fastprof.convert(CORPUS / "gperftools/good/64be.prof", path, to="gperftools", period_us=1)
    with pytest.raises(fastprof.UsageError, match=f"is not a whole number from 1 to {longest}"):
        fastprof.convert(CORPUS / "pprof/good/everything.pb", path, to="gperftools", period_us=longest + 1)
    fastprof.convert(CORPUS / "pprof/good/everything.pb", path, to="gperftools", period_us=longest)
    assert int.from_bytes(path.read_bytes()[24:32], sys.byteorder) == longest


def test_names_that_are_not_written_are_counted(tmp_path: Path) -> None:
    log = fastprof.convert(CORPUS / "gperftools/good/java.prof", tmp_path / "x.prof")
    assert log.not_representable == {"function-names": 2}
    log = fastprof.convert(CORPUS / "gperftools/good/plain.prof", tmp_path / "x.prof")
    assert not log.not_representable


@pytest.mark.parametrize("name", ["go-heap.pb.gz", "go-goroutine.pb.gz"])
def test_values_that_are_neither_samples_nor_times_are_refused(name: str, tmp_path: Path) -> None:
    """Readers multiply the counts by the period: 5,406 objects would be 54 s of CPU."""
    source, out = CORPUS / "pprof/good" / name, tmp_path / "out.prof"
    types = fastprof.info(source).facts["totals"]
    with pytest.raises(UsageError, match=r"value types are .*: the format only holds a count of samples or a time"):
        fastprof.convert(source, out)
    for each in types:
        with pytest.raises(UsageError, match=f"value={each}: the format only holds a count of samples"):
            fastprof.convert(source, out, value=each)
    assert not out.exists()
    assert fastprof.convert(CORPUS / "pprof/good/go-block.pb.gz", out).rows["samples_written"] == 4


def test_a_count_of_samples_under_another_name_is_written() -> None:
    assert rank(ValueType("CPU_CLK_UNHALTED", "count", "samples of CPU_CLK_UNHALTED, one every 100000")) == 2
    assert rank(ValueType("Hits")) == rank(ValueType("samples", "count")) == 0
    assert rank(ValueType("Ir")) is None
