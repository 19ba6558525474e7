"""pprof's profile.proto: every field, any order, validity, damage; and the writer's promises."""

from __future__ import annotations

import gzip
import io
import random
from collections.abc import Callable
from typing import Any

import pytest

from fastprof import formats
from fastprof.core.engine import write
from fastprof.core.errors import FormatError
from fastprof.core.log import Log
from fastprof.core.model import Batch, Model, Part, ValueType
from fastprof.core.options import Options
from fastprof.core.sink import Sink
from fastprof.core.source import Source
from tests.reference import profile_proto as reference
from tests.support.paths import needs_shared, shared_data
from tests.support.stackdump import Dribble, dump, rewrite

LENIENT = Options(lenient=True)


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def message(field: int, content: bytes) -> bytes:
    return varint(field << 3 | 2) + varint(len(content)) + content


def number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def profile() -> Any:
    """A profile with every field in use."""
    p = reference.Profile()
    strings = ["", "samples", "count", "cpu", "nanoseconds", "/bin/p", "id1", "f", "_Zf", "f.c", "g", "drop", "keep"]
    strings += ["note", "https://x/", "key", "value", "bytes", "size", "note two"]
    p.string_table.extend(strings)
    at = strings.index
    p.sample_type.add(type=at("samples"), unit=at("count"))
    p.sample_type.add(type=at("cpu"), unit=at("nanoseconds"))
    p.mapping.add(id=1, memory_start=0x1000, memory_limit=0x2000, file_offset=0x10)
    p.mapping[0].filename, p.mapping[0].build_id = at("/bin/p"), at("id1")
    p.mapping[0].has_functions = p.mapping[0].has_inline_frames = True
    p.function.add(id=1, name=at("f"), system_name=at("_Zf"), filename=at("f.c"), start_line=7)
    p.function.add(id=2, name=at("g"), system_name=at("g"))
    first = p.location.add(id=1, mapping_id=1, address=0x1234)
    first.line.add(function_id=2, line=3, column=4)
    first.line.add(function_id=1, line=9)
    p.location.add(id=2, mapping_id=1, address=0x1300, is_folded=True)
    p.location.add(id=3, address=(1 << 64) - 1).line.add(function_id=2)
    a = p.sample.add(location_id=[1, 2, 3], value=[1, -5])
    a.label.add(key=at("key"), str=at("value"))
    a.label.add(key=at("size"), num=-77, num_unit=at("bytes"))
    p.sample.add(location_id=[2], value=[0, 1 << 62])
    p.sample.add(location_id=[1, 2, 3], value=[2, 2]).label.add(key=at("key"), str=at("value"))
    p.drop_frames, p.keep_frames = at("drop"), at("keep")
    p.time_nanos, p.duration_nanos, p.period = 1_700_000_000_000_000_000, 10**9, 4_000_000
    p.period_type.type, p.period_type.unit = at("cpu"), at("nanoseconds")
    p.comment.extend([at("note"), at("note two")])
    p.default_sample_type, p.doc_url = at("samples"), at("https://x/")
    return p


SMALL = profile().SerializeToString()


def test_every_field_is_read() -> None:
    got = dump(SMALL, "pprof")
    assert got.rows == reference.rows(profile())
    part = got.part
    assert part.value_types == [ValueType("samples", "count"), ValueType("cpu", "nanoseconds")]
    assert part.comments == [b"note", b"note two"]
    assert part.extra == {
        "period": 4_000_000,
        "period_type": ("cpu", "nanoseconds"),
        "time_ns": 1_700_000_000_000_000_000,
        "duration_ns": 10**9,
        "drop_frames": b"drop",
        "keep_frames": b"keep",
        "default_sample_type": "samples",
        "doc_url": b"https://x/",
    }


def test_every_field_is_written() -> None:
    data, log = rewrite(SMALL, "pprof", "pprof")
    ours, theirs = reference.parse(data), profile()
    reference.check(ours)
    assert reference.rows(ours) == reference.rows(theirs)
    strings = {id(p): list(p.string_table) for p in (ours, theirs)}
    for name in ("drop_frames", "keep_frames", "default_sample_type", "doc_url"):
        assert strings[id(ours)][getattr(ours, name)] == strings[id(theirs)][getattr(theirs, name)]
    for name in ("time_nanos", "duration_nanos", "period"):
        assert getattr(ours, name) == getattr(theirs, name)
    assert [strings[id(ours)][c] for c in ours.comment] == ["note", "note two"]
    assert not log.not_representable
    assert not log.repairs
    assert rewrite(data, "pprof", "pprof")[0] == data


def test_worked_example_of_the_writer() -> None:
    model = Model()
    part = model.add_part(Part(value_types=[ValueType("v", "u")]))
    batch = Batch("stacks", 4, 1)
    line = lib().fp_model_line(model.c, model.function("f"), 7, 0, 0)
    frame = lib().fp_model_frame(model.c, 0, 0x1010, 0, line)
    c = batch.c
    c.n, c.part = 1, part
    c.stack[0] = lib().fp_model_stack(model.c, 0, frame)
    c.values[0] = 5
    c.label[0] = c.thread[0] = c.time[0] = 0
    data = written([batch], model)
    assert bytes.fromhex("2a06080110031803") in data
    assert bytes.fromhex("220b0801 189020 220408011007") in data
    assert bytes.fromhex("1206 0a0101 120105") in data


def lib() -> Any:
    from fastprof.core._c import lib as core

    return core


def written(batches: list[Batch], model: Model, options: Options | None = None, log: Log | None = None) -> bytes:
    out = io.BytesIO()
    sink = Sink(out)
    writer = formats.get("pprof").writer_class()
    write(batches, writer(model, sink, options or Options(), log or Log()))
    sink.commit()
    return gzip.decompress(out.getvalue())


def top_level_fields(data: bytes) -> list[bytes]:
    fields, at = [], 0
    while at < len(data):
        start = at
        tag, at = _take(data, at)
        if tag & 7 == 2:
            n, at = _take(data, at)
            at += n
        else:
            _, at = _take(data, at)
        fields.append(data[start:at])
    return fields


def _take(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while data[at] & 128:
        value |= (data[at] & 127) << shift
        shift, at = shift + 7, at + 1
    return value | data[at] << shift, at + 1


@pytest.mark.parametrize("seed", range(10))
def test_any_order_of_fields(seed: int) -> None:
    fields = top_level_fields(SMALL)
    # repeated fields keep their order; how the kinds are mixed does not matter
    kinds = [f[:1] for f in fields]
    shuffled = list(kinds)
    random.Random(seed).shuffle(shuffled)
    queues = {kind: iter([f for f in fields if f[:1] == kind]) for kind in set(kinds)}
    assert dump(b"".join(next(queues[kind]) for kind in shuffled), "pprof").rows == reference.rows(profile())


def test_lists_packed_or_not_or_both() -> None:
    plain = b"".join(number(1, i) for i in (1, 2, 3)) + b"".join(number(2, v) for v in (1, 2))
    mixed = number(1, 1) + message(1, b"\x02\x03") + message(2, b"\x01") + number(2, 2)
    split = message(1, b"\x01\x02") + message(2, b"\x01\x02") + message(1, b"\x03")
    head = b"".join(f for f in top_level_fields(SMALL) if f[0] != 0x12)
    for sample in (plain, mixed, split):
        (row,) = dump(head + message(2, sample), "pprof").rows
        assert row == (reference.rows(profile())[0][0], (), (1, 2))


def test_labels_apart_from_one_another() -> None:
    head = b"".join(f for f in top_level_fields(SMALL) if f[0] != 0x12)
    label = [message(3, number(1, 15) + number(2, 16)), message(3, number(1, 18) + number(3, 5))]
    values = message(2, b"\x01\x02")
    want = dump(head + message(2, values + label[0] + label[1]), "pprof").rows
    assert len(want[0][1]) == 2
    assert dump(head + message(2, label[0] + values + label[1]), "pprof").rows == want


def test_several_gzip_members() -> None:
    halves = gzip.compress(SMALL[:50]) + gzip.compress(SMALL[50:])
    assert dump(halves, "pprof").rows == dump(SMALL, "pprof").rows
    assert formats.detect(Source(halves)).name == "pprof"


def test_zstandard() -> None:
    import zstandard

    assert dump(zstandard.compress(SMALL), "pprof").rows == dump(SMALL, "pprof").rows


def test_unknown_fields_are_counted() -> None:
    data = SMALL + number(99, 5) + message(17, b"xyz") + varint(98 << 3 | 1) + bytes(8) + varint(97 << 3 | 5) + bytes(4)
    extended = data + message(2, message(1, b"\x01") + message(2, b"\x01\x01") + message(9, b"new"))
    got = dump(extended, "pprof")
    assert len(got.rows) == 4
    assert got.log.not_representable == {"unknown-fields": 4, "unknown-sample-fields": 1}


def test_fields_of_the_proposal_for_events_are_counted_by_name() -> None:
    p = profile()
    fields = top_level_fields(p.SerializeToString())
    events = message(1, varint(5) + varint(9)) + message(2, varint(1) + varint(1)) + message(3, varint(1) + varint(1))
    sample = message(2, p.sample[0].SerializeToString() + message(4, events) + message(4, b""))
    data = b"".join(f for f in fields if f[0] != 0x12) + sample + message(16, number(1, 1))
    got = dump(data, "pprof")
    assert got.rows == reference.rows(profile())[:1]
    assert got.log.not_representable == {"sample-breakdowns": 2, "label-sets": 1}


def test_sparse_ids_and_unknown_mappings() -> None:
    p = profile()
    p.location[0].id = p.sample[0].location_id[0] = p.sample[2].location_id[0] = (1 << 64) - 2
    p.function[1].id = p.location[0].line[0].function_id = p.location[2].line[0].function_id = 1 << 40
    p.location[1].mapping_id = 77
    got = dump(p.SerializeToString(), "pprof")
    assert got.rows == reference.rows(p)
    assert got.log.repairs == {"unknown-mappings": 1}


def invalid(change: Callable[[Any], None]) -> bytes:
    p = profile()
    change(p)
    data: bytes = p.SerializeToString()
    return data


def _set(path: str, value: int) -> Callable[[Any], None]:
    def change(p: Any) -> None:
        *names, last = path.split(".")
        for name in names:
            p = p[int(name)] if name.isdigit() else getattr(p, name)
        if last.isdigit():
            p[int(last)] = value
        else:
            setattr(p, last, value)

    return change


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda p: p.ClearField("sample_type"), "there are samples but no sample types"),
        (lambda p: p.sample[1].value.append(3), "number of values of a sample is 3, expected 2"),
        (_set("sample.1.location_id.0", 9), "the location of a sample is 9"),
        (_set("sample.1.location_id.0", 0), "the location of a sample is 0"),
        (_set("mapping.0.id", 0), "a mapping has id 0"),
        (_set("function.0.id", 0), "a function has id 0"),
        (_set("location.0.id", 0), "a location has id 0"),
        (_set("function.1.id", 1), "two functions have the same id"),
        (_set("location.1.id", 1), "two locations have the same id"),
        (lambda p: p.mapping.add(id=1), "two mappings have the same id"),
        (_set("location.0.line.0.function_id", 0), "the function of a line is 0"),
        (_set("location.0.line.0.function_id", 5), "the function of a line is 5"),
        (_set("function.0.name", 99), "index into the string table is 99, expected less than 20"),
        (_set("sample.0.label.0.key", 1 << 40), "index into the string table"),
        (_set("sample_type.0.type", -1), "index into the string table"),
        (lambda p: p.string_table.insert(0, "x"), "the first string is not empty"),
        (lambda p: p.ClearField("string_table"), "the string table is missing"),
    ],
)
def test_validity(change: Callable[[Any], None], says: str) -> None:
    with pytest.raises(FormatError, match=says) as error:
        dump(invalid(change), "pprof")
    assert error.value.offset is not None


def _no_function_ids(p: Any, lines: str) -> None:
    """Output of a .NET exporter: a function for each location, none with an id."""
    functions = [p.function[0], p.function[1]]
    del p.location[2:], p.function[2:]
    for sample in p.sample:
        for i, location in enumerate(sample.location_id):
            sample.location_id[i] = min(location, 2)
    for function, location in zip(functions, p.location, strict=True):
        function.id = 0
        del location.line[:]
        location.line.add(function_id=location.id if lines == "location" else 0, line=5)


@pytest.mark.parametrize("lines", ["location", "zero"])
def test_functions_without_ids_get_those_of_their_locations(lines: str) -> None:
    got = dump(invalid(lambda p: _no_function_ids(p, lines)), "pprof")
    assert got.log.repairs == {"functions-without-id": 2}

    def with_ids(p: Any) -> None:
        _no_function_ids(p, "location")
        for function, location in zip(p.function, p.location, strict=True):
            function.id = location.id

    assert got.rows == dump(invalid(with_ids), "pprof").rows


@pytest.mark.parametrize(
    "spoil", [lambda p: p.function.add(id=9), lambda p: p.function.add(), lambda p: p.location.add(id=9)]
)
def test_other_functions_without_ids_are_refused(spoil: Callable[[Any], None]) -> None:
    def change(p: Any) -> None:
        _no_function_ids(p, "location")
        spoil(p)

    data = invalid(change)
    with pytest.raises(FormatError, match="a function has id 0") as error:
        dump(data, "pprof")
    assert error.value.offset is not None
    assert dump(data, "pprof", options=Options(lenient=True)).log.losses["damaged-entries"] >= 2


@pytest.mark.parametrize(("line", "says"), [(-1, "negative-line-numbers"), (1 << 32, "wide-line-numbers")])
def test_lines_that_no_source_has(line: int, says: str) -> None:
    got = dump(invalid(_set("location.0.line.0.line", line)), "pprof")
    assert got.log.not_representable[says] == 1


def test_two_profiles_one_after_the_other() -> None:
    with pytest.raises(FormatError, match="two profiles"):
        dump(message(6, b"") + number(9, 5) + number(9, 6), "pprof")
    with pytest.raises(FormatError, match="two mappings have the same id"):
        dump(SMALL + SMALL, "pprof")


@pytest.mark.parametrize(
    "bad", [b"\x0b", b"\x00\x01", b"\x12\x02\x0b\x00", b"\x10\x01", b"\x08" + b"\xff" * 10, b"\x22\x02\x22\x09"]
)
def test_broken_wire(bad: bytes) -> None:
    with pytest.raises(FormatError) as error:
        dump(SMALL + bad, "pprof")
    assert error.value.offset is not None
    assert len(SMALL) <= error.value.offset <= len(SMALL) + len(bad)
    assert len(dump(SMALL + bad, "pprof", options=LENIENT).rows) == 3


def test_lengths_beyond_reason_are_refused_before_memory_is_taken() -> None:
    with pytest.raises(FormatError, match="length of a field is 1099511627776, expected at most 67108864"):
        dump(SMALL + varint(4 << 3 | 2) + varint(1 << 40), "pprof")


def test_thousands_of_sample_types_are_refused() -> None:
    with pytest.raises(FormatError, match="number of sample types"):
        dump(message(6, b"") + message(1, b"") * 2000, "pprof")


def test_lenient_keeps_the_good_samples() -> None:
    got = dump(invalid(_set("sample.1.location_id.0", 9)), "pprof", options=LENIENT)
    assert [values[0] for _, _, values in got.rows] == [1, 2]
    assert got.log.losses == {"damaged-samples": 1}


def test_cut_at_every_byte() -> None:
    for n in range(1, len(SMALL)):
        try:
            want = reference.parse(SMALL[:n])
        except Exception:
            want = None
        try:
            rows = dump(SMALL[:n], "pprof").rows
        except FormatError as error:
            assert error.offset is not None and error.offset <= n
        else:
            assert want is not None
            assert rows == reference.rows(want)
        try:
            kept = dump(SMALL[:n], "pprof", options=LENIENT)
        except FormatError as error:
            assert error.offset is not None
        else:
            assert want is not None or kept.log.losses


def test_a_last_field_that_is_cut_is_a_loss() -> None:
    samples = [message(2, sample.SerializeToString()) for sample in reference.parse(SMALL).sample]
    tables = reference.parse(SMALL)
    tables.ClearField("sample")
    whole = tables.SerializeToString() + b"".join(samples)
    for cut in range(1, len(samples[-1])):
        got = dump(whole[:-cut], "pprof", options=LENIENT)
        assert len(got.rows) == 2
        assert got.log.losses == {"skipped-bytes": len(samples[-1]) - cut}


@pytest.mark.parametrize("at", range(len(SMALL)))
def test_one_flipped_byte(at: int) -> None:
    for flip in (0xFF, 0x01, 0x80):
        damaged = SMALL[:at] + bytes([SMALL[at] ^ flip]) + SMALL[at + 1 :]
        for options in (Options(), LENIENT):
            try:
                dump(damaged, "pprof", options=options)
            except FormatError as error:
                assert error.offset is not None


@pytest.mark.parametrize("chunk", [1, 2, 3, 7, 4096, None])
@pytest.mark.parametrize("capacity", [1, 2, 1000])
def test_chunks_and_capacities_change_nothing(chunk: int | None, capacity: int) -> None:
    want, got = dump(SMALL, "pprof"), dump(SMALL, "pprof", chunk=chunk, capacity=capacity)
    assert (got.rows, got.part, got.mappings) == (want.rows, want.part, want.mappings)


@pytest.mark.parametrize(
    "head",
    [
        *(b"", b"\n\n\n", b"{}", b"# callgrind format\n", b"version: 1\n", b"a;b 5\n", bytes(40), b"\x0a\x05hello"),
        *(b"pid 5", b"2 a;b 5\n" * 100, b"* x" * 50, b'"a" 5\n' * 100, b"hi\n", b"h1h\r\n"),
    ],
)
def test_sniff_leaves_others_alone(head: bytes) -> None:
    sniff = formats.get("pprof").sniff
    assert sniff is not None
    assert not sniff(head)


@needs_shared
@pytest.mark.parametrize("name", ["go-block", "go-heap", "go-cpulabels", "go-goroutine"])
def test_sniff_knows_real_files(name: str) -> None:
    assert formats.detect(Source(Dribble(shared_data("pprof", f"{name}.pb.gz").read_bytes()))).name == "pprof"


# ---- the writer's promises ----


def stacks(model: Model, rows: list[tuple[list[int], int, int, int, list[int]]], part: int = 0) -> Batch:
    """Rows of (frames leaf first, label, thread, time, values)."""
    batch = Batch("stacks", max(1, len(rows)), len(rows[0][4]) if rows else 1)
    c = batch.c
    c.n, c.part = len(rows), part
    for i, (frames, label, thread, time, values) in enumerate(rows):
        node = 0
        for frame in reversed(frames):
            node = lib().fp_model_stack(model.c, node, frame)
        c.stack[i], c.label[i], c.thread[i], c.time[i] = node, label, thread, time
        for k, value in enumerate(values):
            c.values[k * c.cap + i] = value
    return batch


def one_frame(model: Model, name: str | bytes = "f", address: int = 0, object_id: int = 0, mapping: int = 0) -> int:
    line = lib().fp_model_line(model.c, model.function(name, object_id=object_id), 1, 0, 0)
    return int(lib().fp_model_frame(model.c, mapping, address, 0, line))


def test_a_sample_without_stack_gets_a_location() -> None:
    model, log = Model(), Log()
    model.add_part(Part(value_types=[ValueType("v", "u")]))
    p = reference.parse(written([stacks(model, [([], 0, 0, 0, [3]), ([], 0, 0, 0, [4])])], model, log=log))
    reference.check(p)
    assert [row[0][0][3][0][0] for row in reference.rows(p)] == [b"[no stack]"] * 2
    assert sum(log.repairs.values()) == 2


def test_strings_that_are_not_utf8_are_mended() -> None:
    model, log = Model(), Log()
    model.add_part(Part(value_types=[ValueType("v", "u")]))
    rows = [([one_frame(model, name)], 0, 0, 0, [1]) for name in (b"a\xffb", b"a\xfeb", b"\xed\xa0\x80", "ü😀")]
    p = reference.parse(written([stacks(model, rows)], model, log=log))
    reference.check(p)
    names = [row[0][0][3][0][0].decode() for row in reference.rows(p)]
    assert names == ["a\ufffdb", "a\ufffdb [2]", "\ufffd" * 3, "ü😀"]
    assert log.not_representable["invalid-utf8"] == 3


def test_return_addresses_are_moved_into_the_call_once() -> None:
    model = Model()
    model.add_part(Part(value_types=[ValueType("v", "u")]))
    frames = [lib().fp_model_frame(model.c, 0, a, flag, 0) for a, flag in ((0x10, 0), (0x11, 1), (0, 1))]
    p = reference.parse(written([stacks(model, [(frames, 0, 0, 0, [1])])], model))
    assert [frame[1] for frame in reference.rows(p)[0][0]] == [0x10, 0x10, 0]
    assert len(p.location) == 2


def test_threads_become_labels() -> None:
    model, log = Model(), Log()
    model.add_part(Part(value_types=[ValueType("v", "u")]))
    thread = lib().fp_model_thread(model.c, 0, 42, 43)
    batch = stacks(model, [([one_frame(model)], 0, thread, 5, [1])])
    p = reference.parse(written([batch], model, log=log))
    assert reference.rows(p)[0][1] == ((b"pid", b"", 42, b""), (b"tid", b"", 43, b""))
    assert log.not_representable == {"sample-times": 1}


def test_parts_of_other_types_fill_the_columns_they_have() -> None:
    model, log = Model(), Log()
    model.add_part(Part(value_types=[ValueType("a", "u"), ValueType("b", "u")]))
    model.add_part(Part(value_types=[ValueType("c", "u"), ValueType("b", "u")]))
    rows = [([one_frame(model)], 0, 0, 0, [1, 2])]
    p = reference.parse(written([stacks(model, rows, 0), stacks(model, rows, 1)], model, log=log))
    assert [list(s.value) for s in p.sample] == [[1, 2], [0, 2]]
    assert log.not_representable == {"value-types": 1}


def test_mappings_say_they_have_functions_only_if_all_do() -> None:
    model = Model()
    model.add_part(Part(value_types=[ValueType("v", "u")]))
    a, b = (lib().fp_model_mapping(model.c, model.object(n), s, s + 0x1000, 0, 0) for n, s in (("a", 0), ("b", 0x1000)))
    frames = [one_frame(model, "f", 1, mapping=a), one_frame(model, "g", 0x1001, mapping=b)]
    frames.append(lib().fp_model_frame(model.c, b, 0x1002, 0, 0))
    p = reference.parse(written([stacks(model, [(frames, 0, 0, 0, [1])])], model))
    assert [m.has_functions for m in p.mapping] == [True, False]


def test_objects_without_addresses_become_mappings() -> None:
    model = Model()
    model.add_part(Part(value_types=[ValueType("v", "u")]))
    frames = [one_frame(model, name, object_id=model.object("/bin/x")) for name in "fg"]
    p = reference.parse(written([stacks(model, [(frames, 0, 0, 0, [1])])], model))
    assert [p.string_table[m.filename] for m in p.mapping] == ["(no address)//bin/x"]
    assert [location.mapping_id for location in p.location] == [1, 1]


def test_names_for_addresses_on_request() -> None:
    model = Model()
    model.add_part(Part(value_types=[ValueType("v", "u")]))
    mapping = lib().fp_model_mapping(model.c, model.object("/lib/libx.so"), 0x1000, 0x2000, 0x100, 0)
    frames = [lib().fp_model_frame(model.c, m, 0x1012, 0, 0) for m in (mapping, 0)]
    p = reference.parse(written([stacks(model, [(frames, 0, 0, 0, [1])])], model, Options(name_addresses=True)))
    assert [frame[3][0][0] for frame in reference.rows(p)[0][0]] == [b"[libx.so+0x112]", b"0x1012"]


def test_time_and_comments_on_request() -> None:
    options = Options(time_ns=123, comments=("hello",))
    p = reference.parse(rewrite(SMALL, "pprof", "pprof", options)[0])
    assert p.time_nanos == 123
    assert [p.string_table[c] for c in p.comment] == ["note", "note two", "hello"]


def test_a_profile_of_nothing() -> None:
    p = reference.parse(written([], Model()))
    assert p.period == 0
    assert not p.sample
