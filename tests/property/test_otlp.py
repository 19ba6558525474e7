"""Random OpenTelemetry profiles against the official schema, in all forms, and in round trips."""

from __future__ import annotations

import struct
from typing import Any

from google.protobuf import json_format
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.reference import otlp
from tests.support.conversions import convert_bytes
from tests.support.otlp import rows

TEXT = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), min_size=1, max_size=5)
NUMBER = st.one_of(st.integers(1, 300), st.integers(-(1 << 63), (1 << 63) - 1))
TIME = st.integers(1, 1 << 62)


def set_value(value: Any, to: Any) -> None:
    if isinstance(to, bool):
        value.bool_value = to
    elif isinstance(to, int):
        value.int_value = to
    elif isinstance(to, float):
        value.double_value = to
    elif isinstance(to, bytes):
        value.bytes_value = to
    elif isinstance(to, list):
        value.array_value.SetInParent()
        for one in to:
            set_value(value.array_value.values.add(), one)
    else:
        value.string_value = to


SCALAR = st.one_of(TEXT, NUMBER, st.booleans(), st.floats(allow_nan=False, allow_infinity=False), st.binary(max_size=4))
VALUE = st.one_of(TEXT, NUMBER, SCALAR, st.lists(st.one_of(TEXT, st.integers(0, 9)), max_size=2))


@st.composite
def messages(draw: st.DrawFn) -> Any:
    p = otlp.ProfilesData()
    d = p.dictionary
    names = draw(st.lists(TEXT, min_size=3, max_size=6, unique=True))
    d.string_table.extend(["", *names])
    name = st.integers(1, len(names))
    d.mapping_table.add()
    for _ in range(draw(st.integers(0, 2))):
        start = draw(st.integers(1, 1 << 40))
        d.mapping_table.add(memory_start=start, memory_limit=start + 4096, filename_strindex=draw(name))
    d.function_table.add()
    for _ in range(draw(st.integers(1, 3))):
        d.function_table.add(
            name_strindex=draw(name), filename_strindex=draw(name), start_line=draw(st.integers(0, 99))
        )
    d.location_table.add()
    for _ in range(draw(st.integers(1, 4))):
        mapping = draw(st.integers(0, len(d.mapping_table) - 1))
        location = d.location_table.add(mapping_index=mapping, address=draw(st.integers(1, (1 << 64) - 1)))
        for _ in range(draw(st.integers(0, 2))):
            function = draw(st.integers(1, len(d.function_table) - 1))
            location.lines.add(function_index=function, line=draw(st.integers(0, 99)))
    d.stack_table.add()
    for _ in range(draw(st.integers(1, 4))):
        places = st.integers(1, len(d.location_table) - 1)
        d.stack_table.add(location_indices=draw(st.lists(places, min_size=1, max_size=4)))
    d.link_table.add()
    d.link_table.add(trace_id=bytes(range(1, 17)), span_id=bytes(range(8)))
    d.attribute_table.add()
    for _ in range(draw(st.integers(0, 4))):
        set_value(d.attribute_table.add(key_strindex=draw(name)).value, draw(VALUE))
    for _ in range(draw(st.integers(1, 2))):
        resource = p.resource_profiles.add()
        for key in draw(st.sets(st.sampled_from(["service.name", "process.pid", "host.id"]))):
            set_value(resource.resource.attributes.add(key=key).value, draw(st.one_of(TEXT, NUMBER)))
        scope = resource.scope_profiles.add()
        scope.scope.name = draw(st.sampled_from(["", "profiler"]))
        for _ in range(draw(st.integers(0, 2))):
            add_profile(draw, d, scope.profiles.add(), name)
        if scope.profiles and draw(st.booleans()):
            add_twin(draw, scope, name)
    return p


def add_twin(draw: st.DrawFn, scope: Any, name: st.SearchStrategy[int]) -> None:
    """Some samples of a profile in another value type, as writers repeat them."""
    twin = scope.profiles.add()
    twin.CopyFrom(scope.profiles[0])
    twin.sample_type.type_strindex = draw(name)
    kept = [sample for sample in twin.samples if draw(st.booleans())]
    for sample in kept:
        sample.values[:] = [draw(st.integers(1, 1 << 50)) for _ in sample.values]
    del twin.samples[:]
    twin.samples.extend(kept)


def add_profile(draw: st.DrawFn, d: Any, profile: Any, name: st.SearchStrategy[int]) -> None:
    profile.sample_type.type_strindex, profile.sample_type.unit_strindex = draw(name), draw(name)
    profile.time_unix_nano, profile.duration_nano = draw(TIME), draw(st.integers(0, 1 << 40))
    for _ in range(draw(st.integers(0, 4))):
        sample = profile.samples.add(stack_index=draw(st.integers(0, len(d.stack_table) - 1)))
        sample.link_index = draw(st.integers(0, 1))
        # the specification requires distinct keys within a sample
        indices = (
            draw(st.lists(st.integers(1, len(d.attribute_table) - 1), max_size=3)) if d.attribute_table[1:] else []
        )
        sample.attribute_indices.extend({d.attribute_table[i].key_strindex: i for i in indices}.values())
        n = draw(st.integers(1, 3))
        with_times = draw(st.booleans())
        if with_times:
            sample.timestamps_unix_nano.extend(draw(st.lists(TIME, min_size=n, max_size=n)))
        if not with_times or draw(st.booleans()):
            sample.values.extend(draw(st.lists(st.integers(1, 1 << 50), min_size=n, max_size=n)))


def as_json(p: Any) -> bytes:
    """OTLP's JSON: like that of protocol buffers, but ids are hexadecimal."""
    found = json_format.MessageToDict(p)
    for link, wanted in zip(found["dictionary"]["linkTable"], p.dictionary.link_table, strict=True):
        link.update({"traceId": wanted.trace_id.hex(), "spanId": wanted.span_id.hex()})
    import json

    return json.dumps(found).encode()


def decided(p: Any) -> bytes:
    """With a sample that is only valid in 1.10, so that the layout is unambiguous."""
    p.dictionary.string_table.append("samples")
    profile = p.resource_profiles[0].scope_profiles[0].profiles.add()
    profile.sample_type.type_strindex = len(p.dictionary.string_table) - 1
    profile.samples.add(stack_index=1, link_index=1, values=[1])
    data: bytes = p.SerializeToString()
    return data


@given(messages())
def test_rows_are_those_of_the_schema(p: Any) -> None:
    data = decided(p)
    wanted = otlp.rows(p)
    assert rows(data) == wanted
    assert rows(as_json(p)) == wanted
    twice = wanted + wanted
    assert rows(data + data) == twice
    assert rows((struct.pack(">I", len(data)) + data) * 2) == twice
    assert rows(as_json(p) + b"\n" + as_json(p)) == twice


@settings(max_examples=40, deadline=None)
@given(messages())
def test_there_and_back(p: Any) -> None:
    data = decided(p)
    wanted = otlp.rows(p)
    written = convert_bytes(data, "otlp", "otlp").data
    parsed = otlp.parse(written)
    assert parsed.SerializeToString() == written
    assert rows(written) == wanted == otlp.rows(parsed)
    for table in (parsed.dictionary.string_table, parsed.dictionary.stack_table, parsed.dictionary.function_table):
        entries = [str(entry) for entry in table]
        assert entries[0] == "" and len({*entries}) == len(entries)
