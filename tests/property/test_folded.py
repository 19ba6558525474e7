"""Folded stacks against the slow reader: any text, any window; written profiles are read back unchanged."""

from __future__ import annotations

import re
from collections import Counter
from itertools import chain
from itertools import count as numbers

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastprof import formats
from fastprof.core.errors import FormatError
from fastprof.core.options import Options
from fastprof.core.source import Source
from tests.reference import folded as reference
from tests.reference import profile_proto
from tests.support.product import batches, open_input
from tests.support.stackdump import Dribble, dump, rewrite

# Text that often meets every rule of the format.
PIECE = st.sampled_from(
    [
        *(b";", b";;", b" ", b"\t", b"#", b"\r", b"a", b"f g", b"12", b"3", b"4.5", b"0.49"),
        *(b".5", b"1.", b"-3", b"1e3"),
        *(b"\xef\xbb\xbf", b"\xff", b"\0", b"\xe2\x80\xa8", b"worker 7"),
        *(b"9223372036854775807", b"9223372036854775808"),
    ]
)
LINE = st.lists(PIECE, max_size=8).map(b"".join)
STACK = st.lists(st.sampled_from([b"main", b"f", b"g h", b"w 1", b"", b"x_[j]"]), min_size=1, max_size=6).map(b";".join)
GOOD_LINE = st.builds(lambda stack, count: b"%b %d" % (stack, count), STACK, st.integers(0, (1 << 63) - 1))
TEXT = st.lists(st.one_of(LINE, GOOD_LINE), max_size=12).map(b"\n".join)
CHUNK = st.sampled_from([None, 1, 2, 7, 100])


def rows(data: bytes, chunk: int | None, capacity: int | None, options: Options) -> object:
    found = dump(data, "folded", chunk=chunk, capacity=capacity, options=options)
    return [(tuple(f[3][0][0] for f in reversed(stack)), values) for stack, _, values in found.rows]


@given(TEXT, CHUNK, st.sampled_from([None, 1, 3]), st.sampled_from([1, 2]), st.sampled_from([0, 1, 6]), st.booleans())
def test_reading_is_that_of_the_slow_reader(
    data: bytes, chunk: int | None, capacity: int | None, n_counts: int, decimals: int, lenient: bool
) -> None:
    options = Options(counts=n_counts, decimals=decimals, lenient=lenient)
    try:
        want = reference.read(data, n_counts, decimals, lenient)
    except ValueError as error:
        with pytest.raises(FormatError) as caught:
            rows(data, chunk, capacity, options)
        assert caught.value.line == error.args[0]
        assert 0 <= (caught.value.offset or 0) <= len(data)
        return
    assert rows(data, chunk, capacity, options) == want.rows


KIND = st.sampled_from([b"", b"_[i]", b"_[i]", b"_[k]", b"_[j]", b"_[0]", b"_[1]", b"_[w]", b"_[]", b"_[j"])
OF_A_KIND = st.builds(bytes.__add__, st.sampled_from([b"f", b"g", b"\xff", b"", b"h_[i]"]), KIND)
LOCATIONS = st.lists(OF_A_KIND, min_size=1, max_size=6).map(b";".join)


@given(st.lists(st.tuples(LOCATIONS, st.integers(0, 3)), max_size=12), CHUNK, st.sampled_from([None, 1, 3]))
def test_kinds_of_code_are_read_as_by_the_slow_reader(
    stacks: list[tuple[bytes, int]], chunk: int | None, capacity: int | None
) -> None:
    data = b"".join(b"%b %d\n" % stack for stack in stacks)
    opened = open_input(Dribble(data, chunk), Options(suffixes=True, counts=1), from_="folded")
    model = opened.model

    def functions(line: int) -> list[tuple[bytes, bytes]]:
        if not line:
            return []
        function, _, _, outer = model.row("lines", line)
        named = model.get_function(function)
        return [(named.name, named.object), *functions(outer)]

    def locations(node: int) -> list[tuple[tuple[bytes, bytes], ...]]:
        if not node:
            return []
        parent, frame = model.row("stacks", node)
        return [*locations(parent), tuple(functions(model.row("frames", frame)[4]))]

    found = [
        (locations(batch["stack"][i]), batch.values(0)[i])
        for batch in batches(opened, capacity)
        for i in range(len(batch))
    ]
    read = reference.read(data)
    assert found == [(reference.locations(frames), counts[0]) for frames, counts in read.rows]
    names = {frame for frames, _ in read.rows for frame in frames}
    dropped = sum(frame.endswith((b"_[j]", b"_[0]", b"_[1]")) and len(frame) > 4 for frame in names)
    assert opened.log.not_representable["kinds-of-code"] == dropped


def as_written(name: bytes) -> bytes:
    """A frame in the middle of a stack, by the rules of docs/formats/folded.md."""
    text = name.decode("utf-8", "surrogateescape").replace(";", ":")
    text = re.sub("[\udc80-\udcff]", "\ufffd", text)  # a byte that is not UTF-8
    text = re.sub("[\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff]", " ", text)
    return text.strip(" ").encode() or b"[unknown]"


def told_apart(name: bytes, texts: dict[bytes, bytes]) -> None:
    """Append the text of a name to the preceding names."""
    tries = chain([b""], (b" [%d]" % n for n in numbers(2)))
    alike = as_written(name)
    texts.setdefault(name, next(alike + end for end in tries if alike + end not in texts.values()))


NAME = st.one_of(st.binary(max_size=6), st.text(max_size=6).map(str.encode), PIECE)


_HEADER = profile_proto.Profile(
    string_table=["", "samples", "count"], sample_type=[{"type": 1, "unit": 2}]
).SerializeToString()


@given(st.lists(st.tuples(st.lists(NAME, min_size=1, max_size=5), st.integers(1, 1000)), max_size=8))
def test_any_name_can_be_written(stacks: list[tuple[list[bytes], int]]) -> None:
    """By way of a pprof profile, whose names may be any text."""
    data = _HEADER + b"".join(_sample(frames, count) for frames, count in stacks)
    text = rewrite(_with_names(data, stacks), "pprof", "folded")[0]
    want: Counter[tuple[bytes, ...]] = Counter()
    texts: dict[bytes, bytes] = {}
    for frames in dict.fromkeys(tuple(frames) for frames, _ in stacks):
        for name in frames:
            told_apart(name, texts)
    for frames, count in stacks:
        want[_line_of([texts[name] for name in frames])] += count
    assert reference.read(text).totals() == want
    assert text == rewrite(text, "folded", "folded", Options(counts=1))[0]


CODE = st.sampled_from(
    [
        *(
            "{closure}",
            "{main}",
            "{{closure}}",
            "#sort!#12{Int64}",
            "f(x = 3)",
            "operator==",
            "operator=",
            "A$$Lambda$4/0x",
        ),
        *(
            'say "hi"',
            '{"a": 1',
            "[1, 2",
            "[[x]",
            "<T as Iterator<Item = u8>>::next",
            "key: 1",
            "#!/bin/sh",
            "{",
            "0x1",
            "7",
        ),
    ]
)


@given(
    st.lists(st.lists(CODE | st.text(max_size=6), min_size=1, max_size=4), min_size=1, max_size=6), st.integers(0, 500)
)
def test_what_is_written_is_recognized(stacks: list[list[str]], times: int) -> None:
    """By the suffix, whatever the names are, also if the first line is longer than what is inspected first; without
    one, if there are several frames and the file does not begin as JSON or a script does."""
    frames = [[name.encode("utf-8", "replace") for name in stack] for stack in stacks]
    frames[0] += frames[0] * times
    rows = [(stack, 1) for stack in frames]
    profile = _HEADER + b"".join(_sample(*row) for row in rows)
    text = rewrite(_with_names(profile, rows), "pprof", "folded")[0]
    with Source(text, name="x.folded") as source:
        assert formats.detect(source).name == "folded"
    if all(b";" in line for line in text.splitlines()) and not re.match(rb"\{ *\"|\[ *[\[{\"]", text):
        with Source(text, name="unknown") as source:
            assert formats.detect(source).name == "folded"


def _line_of(frames: list[bytes]) -> tuple[bytes, ...]:
    if frames[0].startswith(b"#"):
        frames[0] = b"_" + frames[0]
    frames[-1] = re.sub(rb" ([0-9]+(\.[0-9]*)?)\Z", rb"_\1", frames[-1])
    return tuple(frames)


def _names(stacks: list[tuple[list[bytes], int]]) -> list[bytes]:
    return [*dict.fromkeys(name for frames, _ in stacks for name in frames)]


_IDS: dict[bytes, int] = {}


def _sample(frames: list[bytes], count: int) -> bytes:
    from tests.unit.test_pprof import message, number

    for name in frames:
        _IDS.setdefault(name, len(_IDS) + 1)
    return message(2, b"".join(number(1, _IDS[name]) for name in reversed(frames)) + number(2, count))


def _with_names(data: bytes, stacks: list[tuple[list[bytes], int]]) -> bytes:
    from tests.unit.test_pprof import message, number

    for at, name in enumerate(_names(stacks), 3):
        data += message(6, name)
        data += message(5, number(1, _IDS[name]) + number(2, at))
        data += message(4, number(1, _IDS[name]) + message(4, number(1, _IDS[name])))
    return data
