"""Text profiles of allocators, Go and Java: the kinds, names, labels, repairs and losses of docs/formats/heap.md."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

import fastprof
from fastprof import formats
from fastprof.core.errors import FastprofError, FormatError
from fastprof.core.options import Options
from fastprof.core.source import Source
from tests.support.paths import CORPUS
from tests.support.stackdump import Dump, dump

GOOD = CORPUS / "heap" / "good"


def read(text: str | bytes, *, lenient: bool = False) -> Dump:
    data = text.encode() if isinstance(text, str) else text
    return dump(data, "heap", options=Options(lenient=lenient))


def corpus(name: str) -> Dump:
    return read((GOOD / name).read_bytes())


def types(found: Dump) -> list[str]:
    return [f"{t.name}/{t.unit}" for t in found.part.value_types]


def stacks(found: Dump) -> list[tuple[list[int], dict[str, object], tuple[int, ...]]]:
    return [
        ([frame[1] for frame in stack], {k.decode(): s.decode() or n for k, s, n, *_ in labels}, values)
        for stack, labels, values in found.rows
    ]


def names(found: Dump) -> list[list[str]]:
    return [[line[0].decode() for frame in stack for line in frame[3]] for stack, _, _ in found.rows]


def test_many_stacks_are_written_once(tmp_path: Path) -> None:
    """More distinct stacks than the writer of pprof remembers when hardly any returns; then some that do."""
    sites = [[k % 7 + 1, k // 7 % 90 + 100, k // 630 + 1000, k % 11 + 5000] for k in range(20_000)]
    sites += sites[:50]
    rows = [f"1: {8 * (k % 3 + 1)} [0: 0] @ {' '.join(map(hex, site))}" for k, site in enumerate(sites)]
    (tmp_path / "a.heap").write_text("\n".join(["heap profile: 9: 99 [0: 0] @ heapprofile", *rows, ""]))
    fastprof.convert(tmp_path / "a.heap", tmp_path / "a.pb", symbolize=False)
    written = stacks(dump((tmp_path / "a.pb").read_bytes(), "pprof"))
    expected = Counter((*(address - 1 for address in site), 8 * (k % 3 + 1)) for k, site in enumerate(sites))
    assert {(*addresses, labels["bytes"]): values[0] for addresses, labels, values in written} == expected


@pytest.mark.parametrize("n", range(1, 19))
@pytest.mark.parametrize("after", ["", " ", " 0x1", " 0xabcdef0123 0x1"])
def test_addresses_of_all_lengths(n: int, after: str) -> None:
    """Digits are read eight at a time where eight bytes of the line are left."""
    text = f"x profile: total 1\n1 @ 0x{'1aF94cB0d7E2835610'[:n]}{after}\n"
    if n > 16:
        with pytest.raises(FormatError, match="addresses below 2\\^64"):
            read(text)
        return
    first = int("1aF94cB0d7E28356"[:n], 16)
    assert stacks(read(text))[0][0] == [first, *(int(word, 16) for word in after.split())]


def test_addresses_are_found_by_their_text() -> None:
    """Also those that begin and end alike, differ in length, or have zeros in front."""
    digits = ["1" * 11, "1" * 12, "1" * 13, "111111", "0000111111", "00111111", "11111112"]
    words = [f"0x{text}" for text in digits]
    order = [0, 1, 2, 1, 0, 3, 4, 5, 5, 6, 0, 3, 4]
    text = "x profile: total 1\n" + "".join(f"{k + 1} @ {words[w]} 0x2 {words[w]}\n" for k, w in enumerate(order))
    expected = Counter[tuple[int, ...]]()
    for k, w in enumerate(order):
        address = int(words[w], 16)
        expected[address, 2, address] += k + 1
    assert {tuple(stack): values[0] for stack, _, values in stacks(read(text))} == expected


@pytest.mark.parametrize("row", ["3: 96 [ 3: 97]", "3: 96 [ 3: 960]", "3: 9 [ 3: 9]", "3: 9 [3: 9 ]", "3: 9 [  13: 9]"])
def test_pairs_that_begin_alike(row: str) -> None:
    found = read(f"heap profile: 9: 99 [19: 199] @ heapprofile\n {row} @ 0x1\n")
    numbers = [int(word) for word in row.replace("[", " ").replace("]", " ").replace(":", " ").split()]
    assert stacks(found)[0][2] == (*numbers[2:], *numbers[:2])


@pytest.mark.parametrize("text", ["0x", "0xg", "0x1g", "0x12345678/", "0x12345678:", "0x1234567\x10", "0x1\x801234567"])
def test_no_address(text: str) -> None:
    with pytest.raises(FormatError, match="addresses after the @"):
        read(f"x profile: total 1\n1 @ {text} 0x1234567890\n")


@pytest.mark.parametrize("path", sorted(GOOD.iterdir()), ids=lambda p: p.name)
def test_each_kind_is_recognized(path: Path) -> None:
    with Source(path.read_bytes()) as source:
        assert formats.detect(source).name == "heap"


_TOTALS = "heap profile: 3: 96 [ 3: 96] @ "
_ROW = "3: 96 [ 3: 96] @ 0x10 0x20\n"
_SPACE = {"objects/count": 3, "space/bytes": 96}


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (f"{_TOTALS}heapprofile\n{_ROW}", _SPACE),
        (f"{_TOTALS}heap_v2/1\n{_ROW}", _SPACE),
        (f"{_TOTALS}heapz_v2/1\n{_ROW}", _SPACE),
        (f"{_TOTALS}heap/2\n{_ROW}", _SPACE),
        (f"{_TOTALS}growth\n{_ROW}", _SPACE),
        (f"{_TOTALS}growthz\n{_ROW}", _SPACE),
        (f"{_TOTALS}fragmentationz\n{_ROW}", _SPACE),
        (
            "heap_v2/1\n  t*: 3: 96 [0: 0]\n@ 0x10 0x20\n  t*: 3: 96 [0: 0]\n",
            {"inuse_objects/count": 3, "inuse_space/bytes": 96},
        ),
        ("--- contentionz 1 ---\n96 3 @ 0x10\n", {"contentions/count": 3, "delay/nanoseconds": 96}),
        ("--- contention:\n96 3 @ 0x10\n", {"contentions/count": 3, "delay/nanoseconds": 96}),
        ("--- mutex:\n96 3 @ 0x10\n", {"contentions/count": 3, "delay/nanoseconds": 96}),
        ("# a comment\n\ngoroutine profile: total 3\n3 @ 0x10\n", {"goroutine/count": 3}),
        ("my/own profile: total 3\n3 @ 0x10\n", {"my/own/count": 3}),
        ("--- threadz 1 ---\n\n--- Thread 7f79 (name: a/1) stack: ---\n  0x10 0x20\n", {"thread/count": 1}),
        ("--- Thread 7f79 (name: a/1) stack: ---\n  0x10 0x20\n", {"thread/count": 1}),
        ("--- heapz 1 ---\nformat = java\n96 3 @ 0x10\n", {"inuse_objects/count": 49153, "inuse_space/bytes": 1572912}),
        ("--- contentionz 1 ---\nformat = java\n96 3 @ 0x10\n", {"contentions/count": 3, "delay/microseconds": 96}),
    ],
    ids=lambda value: value.partition("\n")[0] if isinstance(value, str) else "",
)
def test_all_first_lines(text: str, wanted: dict[str, int]) -> None:
    with Source(text.encode()) as source:
        assert formats.detect(source).name == "heap"
    found = read(text)
    assert dict(zip(types(found), found.rows[0][2], strict=True)) == wanted


def test_a_sampled_heap_is_scaled() -> None:
    """100,000 bytes at a rate of 65,536: 1 / (1 - exp(-100000 / 65536)) = 1.27784."""
    found = read("heap profile: 1: 100000 [1: 100000] @ heap_v2/65536\n 1: 100000 [ 1: 100000] @ 0x10 0x20\n")
    assert types(found) == ["objects/count", "space/bytes"]
    assert stacks(found) == [([0x10, 0x20], {"bytes": 100000}, (1, 127784))]
    assert [frame[2] for frame in found.rows[0][0]] == [1, 1]  # return addresses, including the leaf's
    assert (found.part.extra["period"], found.part.extra["period_type"]) == (65536, ("space", "bytes"))


def test_go_prints_twice_its_rate() -> None:
    found = read("heap profile: 1: 100000 [1: 100000] @ heap/131072\n1: 100000 [1: 100000] @ 0x10\n")
    assert stacks(found)[0][2] == (1, 127784)


def test_an_exact_heap_is_not_scaled() -> None:
    found = corpus("gperftools.heap")
    assert types(found) == ["alloc_objects/count", "alloc_space/bytes", "inuse_objects/count", "inuse_space/bytes"]
    assert stacks(found)[1][1:] == ({"bytes": 100535}, (64, 6434272, 64, 6434272))


def test_the_default_is_what_is_in_use() -> None:
    found = fastprof.top(str(GOOD / "gperftools.heap"), symbolize=False)
    assert (found.value.name, found.value.unit) == ("inuse_space", "bytes")
    other = fastprof.top(str(GOOD / "gperftools.heap"), symbolize=False, value="alloc_space")
    assert other.value.name == "alloc_space"


def test_allocated_figures_that_only_rows_have_are_kept() -> None:
    """pprof decides by the header only, and drops them."""
    found = read("heap profile: 2: 20 [2: 20] @ heapprofile\n 1: 10 [3: 30] @ 0x1\n 1: 10 [ 1: 10] @ 0x2\n")
    assert [values for _, _, values in found.rows] == [(3, 30, 1, 10), (1, 10, 1, 10)]


def test_rows_of_a_stack_are_added_up_and_may_be_negative() -> None:
    text = "heap profile: 0: 0 [0: 0] @ growth\n 2: 20 [2: 20] @ 0x1\n -1: -10 [0: 0] @ 0x1\n 1: 99 [1: 99] @ 0x1\n"
    assert stacks(read(text)) == [([1], {"bytes": 10}, (1, 10)), ([1], {"bytes": 99}, (1, 99))]


def test_threads_of_jemalloc_are_labels() -> None:
    text = (
        "heap_v2/1\n  t*: 9: 90 [0: 0]\n  t0: 9: 90 [0: 0] main name\n@ 0x1\n  t*: 3: 30 [0: 0]\n"
        "  t0: 1: 10 [0: 0] main name\n  t7: 2: 20 [0: 0]\n@ 0x2\n  t*: 4: 40 [0: 0]\n"
    )
    found = read(text)
    assert types(found) == ["inuse_objects/count", "inuse_space/bytes"]
    assert stacks(found) == [
        ([1], {"bytes": 10, "thread": 0, "thread_name": "main name"}, (1, 10)),
        ([1], {"bytes": 10, "thread": 7}, (2, 20)),
        ([2], {"bytes": 10}, (4, 40)),
    ]


def test_jemalloc_counts_what_was_allocated_if_it_was_recorded() -> None:
    assert types(corpus("jemalloc.heap"))[0] == "alloc_objects/count"


def test_names_and_lines_of_go() -> None:
    found = corpus("go-mutex.heap")
    stack, _, values = found.rows[0]
    assert values == (218, 251077227)
    assert [(line[0], line[2], line[4]) for frame in stack for line in frame[3]] == [
        (b"sync.(*Mutex).Unlock", b"sync/mutex.go", 223),
        (b"main.lockHeavy", b"./prof.go", 9),
    ]


def test_inlined_functions_of_go() -> None:
    text = "x profile: total 1\n1 @ 0x11 0x21\n#\t0x10\tmain.inner+0x1\t/a.go:3\n#\t0x10\tmain.outer+0x8\t/a.go:9\n"
    assert names(read(text)) == [["main.inner", "main.outer"]]
    # an address keeps its first names
    assert names(read(text + text.partition("\n")[2])) == [["main.inner", "main.outer"]]


def test_labels_of_go() -> None:
    assert stacks(corpus("go-goroutine.heap"))[0][1:] == ({"job": "a b", "n": "1"}, (3,))
    text = 'goroutine profile: total 1\n1 @ 0x1\n# labels: {"k":"\\x07\\a \\U0001f600"}\n'
    assert stacks(read(text))[0][1] == {"k": "\x07\x07 \U0001f600"}


def test_equal_labels_in_another_order_are_added_up() -> None:
    labels = ['{"a":"b", "c":"d"}', '{"c":"d","a":"b"}', '{"c":"d"}']
    places = ("0x1", "0x1 0x2")
    rows = "".join(f"{k + 1} @ {at}\n# labels: {text}\n\n" for k, text in enumerate(labels) for at in places)
    both, one = {"a": "b", "c": "d"}, {"c": "d"}
    assert stacks(read("goroutine profile: total 1\n" + rows)) == [
        ([1], both, (3,)), ([1, 2], both, (3,)), ([1], one, (3,)), ([1, 2], one, (3,)),
    ]  # fmt: skip
    large = rows.replace("2 @", f"{(1 << 63) - 1} @")
    with pytest.raises(FormatError, match=r"line 8, .*sum of the values of equal samples"):
        read("goroutine profile: total 1\n" + large)
    assert len(read("goroutine profile: total 1\n" + large, lenient=True).rows) == 6


def test_labels_that_are_no_json_are_counted() -> None:
    assert corpus("open-end.heap").log.not_representable == {"unreadable-labels": 1}
    surrogate = 'goroutine profile: total 1\n1 @ 0x1\n# labels: {"k":"\\ud800"}\n'
    assert read(surrogate).log.not_representable == {"unreadable-labels": 1}


def test_a_sample_without_a_stack() -> None:
    """pprof refuses it, but Go writes it."""
    assert stacks(corpus("go-threadcreate.heap")) == [([], {}, (4,))]


def test_contention_is_scaled() -> None:
    found = corpus("contentionz.heap")
    assert types(found) == ["contentions/count", "delay/nanoseconds"]
    assert stacks(found)[0][2] == (5400, 2 * int(19490304 * 100 / 3.201))
    assert found.part.extra["duration_ns"] == 16502830 * 10**6


def test_threads() -> None:
    found = corpus("threadz.heap")
    assert types(found) == ["thread/count"]
    assert [values for _, _, values in found.rows] == [(1,), (2,)]
    assert names(found)[0] == ["helper(arg *)", "main", "__libc_start_main"]
    assert [frame[2] for frame in found.rows[0][0]] == [0, 1, 1]  # the leaf is not a return address
    assert found.mappings[0][0] == b"/home/demo/server"


def test_java() -> None:
    found = corpus("java.heap")
    assert types(found) == ["inuse_objects/count", "inuse_space/bytes"]
    assert names(found)[1] == ["GC", "com.example.Main.main", "Java_call"]
    assert stacks(found)[0] == ([0, 0], {"bytes": 7048}, (74, 527819))
    assert stacks(found)[2][0] == [0x97]  # it has no name
    waiting = corpus("java-contention.heap")
    assert types(waiting) == ["contentions/count", "delay/microseconds"]
    assert [values for _, _, values in waiting.rows] == [(300, 300), (100, 1400)]


def test_symbols_in_front_of_a_heap() -> None:
    """Output of google-pprof --raw; its addresses are those of the calls."""
    found = corpus("symbolized.heap")
    assert names(found) == [["allocate(unsigned long)", "inner", "outer", "main"]]


def test_a_line_of_another_program_is_an_error_and_a_loss_with_lenient() -> None:
    data = (CORPUS / "heap" / "bad" / "foreign-line.heap").read_bytes()
    with pytest.raises(FormatError) as found:
        read(data)
    assert (found.value.line, found.value.offset) == (3, data.index(b"WARNING"))
    kept = read(data, lenient=True)
    assert [values for _, _, values in kept.rows] == [(3, 30)]
    assert sum(kept.log.losses.values()) == 1


def test_text_after_the_rows_that_is_no_map_is_an_error() -> None:
    text = "heap profile: 1: 10 [1: 10] @ heapprofile\n 1: 10 [1: 10] @ 0x1\n--- growth\n"
    with pytest.raises(FormatError, match="line 3, byte 63: the line is '--- growth'"):
        read(text)
    assert sum(read(text, lenient=True).log.losses.values()) == 1


def test_mapped_objects_that_overlap() -> None:
    maps = "MAPPED_LIBRARIES:\n1000-3000 r-xp 0 0:0 0 /a\n2000-4000 r-xp 0 0:0 0 /b\n"
    text = f"x profile: total 1\n1 @ 0x1800 0x2800\n{maps}"
    assert [frame[0][0] for frame in read(text).rows[0][0]] == [b"/a", b"/b"]


def test_a_dump_of_stacks_is_no_profile() -> None:
    with pytest.raises(FastprofError, match="fetch it without `debug=2`"):
        fastprof.info(b"goroutine 1 [running]:\nmain.main()\n")


def test_two_heaps_have_a_difference(tmp_path: Path) -> None:
    first = b"heap profile: 1: 10 [1: 10] @ heapprofile\n 1: 10 [1: 10] @ 0x1\n"
    second = b"heap profile: 3: 30 [3: 30] @ heapprofile\n 1: 10 [1: 10] @ 0x1\n 2: 20 [2: 20] @ 0x2\n"
    for name, data in (("a.heap", first), ("b.heap", second)):
        (tmp_path / name).write_bytes(data)
    out = tmp_path / "leak.pb"
    fastprof.diff(str(tmp_path / "a.heap"), str(tmp_path / "b.heap"), output=str(out), symbolize=False)
    left: Counter[object] = Counter()  # addresses are those of the calls here
    for stack, _, values in dump(out.read_bytes(), "pprof").rows:
        left[stack[0][1]] += values[1]
    assert +left == {1: 20}
