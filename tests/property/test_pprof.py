"""Profiles from a model of profile.proto, in every dialect of the wire, against the protobuf package."""

from __future__ import annotations

from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

from fastprof.core.errors import FastprofError
from fastprof.core.options import Options
from tests.reference import gperftools, profile_proto
from tests.support.conversions import convert_bytes
from tests.support.stackdump import dump, rewrite

U64 = st.one_of(st.integers(0, 300), st.integers(0, (1 << 64) - 1))
I64 = st.one_of(st.integers(-300, 300), st.integers(-(1 << 63), (1 << 63) - 1))
LINE = st.integers(0, (1 << 32) - 1)


@st.composite
def profiles(draw: st.DrawFn) -> Any:
    p = profile_proto.Profile()
    strings = ["", *draw(st.lists(st.text(min_size=1, max_size=6), max_size=6, unique=True))]
    p.string_table.extend(strings)
    string = st.integers(0, len(strings) - 1)
    n_types = draw(st.integers(1, 3))
    for _ in range(n_types):
        p.sample_type.add(type=draw(string), unit=draw(string))

    def ids(n: int) -> list[int]:
        dense = draw(st.booleans())
        if dense:
            return list(range(1, n + 1))
        return draw(st.lists(st.integers(1, (1 << 64) - 1), min_size=n, max_size=n, unique=True))

    mappings = ids(draw(st.integers(0, 3)))
    for i in mappings:
        start = draw(U64)
        m = p.mapping.add(id=i, memory_start=start, memory_limit=draw(U64), file_offset=draw(U64))
        m.filename, m.build_id = draw(string), draw(string)
        # a writer sets flags if all locations have functions, so only stated ones can be compared
        m.has_functions = m.has_line_numbers = True
        m.has_filenames, m.has_inline_frames = draw(st.booleans()), draw(st.booleans())
    functions = ids(draw(st.integers(1, 4)))
    for i in functions:
        p.function.add(id=i, name=draw(string), system_name=draw(string), filename=draw(string), start_line=draw(LINE))
    locations = ids(draw(st.integers(1, 6)))
    for i in locations:
        mapping = draw(st.sampled_from([0, *mappings]))
        location = p.location.add(id=i, mapping_id=mapping, address=draw(U64), is_folded=draw(st.booleans()))
        if mapping:  # without an address its mapping would be written as a mere name (pprof/no_address.h)
            location.address = location.address or 1
        for _ in range(draw(st.integers(0, 3))):
            location.line.add(function_id=draw(st.sampled_from(functions)), line=draw(LINE), column=draw(LINE))
    for _ in range(draw(st.integers(0, 8))):
        sample = p.sample.add(location_id=draw(st.lists(st.sampled_from(locations), min_size=1, max_size=9)))
        sample.value.extend(draw(st.lists(I64, min_size=n_types, max_size=n_types)))
        for _ in range(draw(st.integers(0, 3))):
            sample.label.add(key=draw(string), str=draw(string), num=draw(I64), num_unit=draw(string))
    p.period, p.duration_nanos = draw(I64), draw(I64)
    p.time_nanos = draw(st.integers(0, 1 << 62))
    p.comment.extend(draw(st.lists(string, max_size=3)))
    return p


def _fields(data: bytes) -> list[bytes]:
    from tests.unit.test_pprof import top_level_fields

    return top_level_fields(data)


def _unpacked(p: Any) -> bytes:
    """The same profile, with the lists of its samples unpacked."""
    from tests.unit.test_pprof import message, number

    out = b"".join(f for f in _fields(p.SerializeToString()) if f[0] != 0x12)
    for s in p.sample:
        content = b"".join(number(2, v) for v in s.value) + b"".join(number(1, i) for i in s.location_id)
        out += message(2, content + b"".join(message(3, x.SerializeToString()) for x in s.label))
    return out


@given(profiles(), st.randoms(use_true_random=False), st.sampled_from([None, 1, 3, 50]))
def test_reading_is_that_of_protobuf(p: Any, random: Any, chunk: int | None) -> None:
    want = profile_proto.rows(p)
    assert dump(p.SerializeToString(), "pprof", chunk=chunk).rows == want
    assert dump(_unpacked(p), "pprof", chunk=chunk).rows == want
    kinds = [f[0] for f in _fields(p.SerializeToString())]
    queues = {k: iter([f for f in _fields(p.SerializeToString()) if f[0] == k]) for k in set(kinds)}
    random.shuffle(kinds)
    assert dump(b"".join(next(queues[k]) for k in kinds), "pprof", chunk=chunk, capacity=2).rows == want


@given(profiles())
def test_writing_keeps_everything_and_is_stable(p: Any) -> None:
    data, log = rewrite(p.SerializeToString(), "pprof", "pprof")
    ours = profile_proto.parse(data)
    profile_proto.check_ids(ours)
    assert profile_proto.rows(ours) == profile_proto.rows(p)
    assert (ours.duration_nanos, ours.time_nanos) == (p.duration_nanos, p.time_nanos)
    assert rewrite(data, "pprof", "pprof")[0] == data
    assert not log.not_representable


@given(profiles())
def test_gperftools_written_from_it_is_stable(p: Any) -> None:
    keep = Options(keep_signal_frames=True)
    p.sample_type[0].type, p.sample_type[0].unit = len(p.string_table), len(p.string_table) + 1
    p.string_table.extend(["samples", "count"])
    for sample in p.sample:  # a sum beyond 64 bits, even of another value, would become several rows
        sample.value[:] = [value % 1000 for value in sample.value]
    try:
        first = convert_bytes(p.SerializeToString(), "pprof", "gperftools")
    except FastprofError:  # nothing that the format can hold
        assume(False)
    data = first.data
    if "frames-without-address" in first.log.not_representable:  # without these, stacks may be equal and summed
        data = convert_bytes(data, "gperftools", "gperftools", keep).data
    again = convert_bytes(data, "gperftools", "gperftools", keep)
    # in another order: callers come first, and functions as they first occur
    assert len(again.data) == len(data)
    rows = [dump(of, "gperftools", options=keep).summed() for of in (data, again.data)]
    assert rows[0] == rows[1]
    assert not again.log.repairs
    assert not again.log.not_representable


CHAINS = st.lists(
    st.tuples(st.integers(0, 1 << 20), st.lists(st.integers(0, (1 << 32) - 1), max_size=12).map(tuple)), max_size=20
)


@given(CHAINS, st.sampled_from([4, 8]), st.sampled_from("<>"), st.booleans(), st.sampled_from([None, 1, 7, 4096]))
def test_gperftools_is_that_of_the_slow_reader(
    chains: list[tuple[int, tuple[int, ...]]], word: int, order: str, trailer: bool, chunk: int | None
) -> None:
    data = gperftools.write(chains, word=word, order=order, trailer=trailer)
    want = gperftools.read(data)
    got = dump(data, "gperftools", chunk=chunk, capacity=3, options=Options(keep_signal_frames=True))
    assert {tuple(f[1] for f in stack): values[0] for stack, _, values in got.rows} == want.chains
    assert len(got.rows) == len(want.chains)
    assert all(values[1] == values[0] * want.period_us * 1000 for _, _, values in got.rows)
    for stack, _, _ in got.rows:
        assert all(f[2] == (1 if i and f[1] else 0) for i, f in enumerate(stack))
