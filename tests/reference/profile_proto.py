"""pprof's schema for the `protobuf` package, built from its list of fields."""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

# message -> fields: (name, number, type); types: a scalar, "*" repeated
_SCHEMA: dict[str, list[tuple[str, int, str]]] = {
    "ValueType": [("type", 1, "int64"), ("unit", 2, "int64")],
    "Label": [("key", 1, "int64"), ("str", 2, "int64"), ("num", 3, "int64"), ("num_unit", 4, "int64")],
    "Sample": [("location_id", 1, "uint64*"), ("value", 2, "int64*"), ("label", 3, "Label*")],
    "Mapping": [
        ("id", 1, "uint64"),
        ("memory_start", 2, "uint64"),
        ("memory_limit", 3, "uint64"),
        ("file_offset", 4, "uint64"),
        ("filename", 5, "int64"),
        ("build_id", 6, "int64"),
        ("has_functions", 7, "bool"),
        ("has_filenames", 8, "bool"),
        ("has_line_numbers", 9, "bool"),
        ("has_inline_frames", 10, "bool"),
    ],
    "Line": [("function_id", 1, "uint64"), ("line", 2, "int64"), ("column", 3, "int64")],
    "Location": [
        ("id", 1, "uint64"),
        ("mapping_id", 2, "uint64"),
        ("address", 3, "uint64"),
        ("line", 4, "Line*"),
        ("is_folded", 5, "bool"),
    ],
    "Function": [
        ("id", 1, "uint64"),
        ("name", 2, "int64"),
        ("system_name", 3, "int64"),
        ("filename", 4, "int64"),
        ("start_line", 5, "int64"),
    ],
    "Profile": [
        ("sample_type", 1, "ValueType*"),
        ("sample", 2, "Sample*"),
        ("mapping", 3, "Mapping*"),
        ("location", 4, "Location*"),
        ("function", 5, "Function*"),
        ("string_table", 6, "string*"),
        ("drop_frames", 7, "int64"),
        ("keep_frames", 8, "int64"),
        ("time_nanos", 9, "int64"),
        ("duration_nanos", 10, "int64"),
        ("period_type", 11, "ValueType"),
        ("period", 12, "int64"),
        ("comment", 13, "int64*"),
        ("default_sample_type", 14, "int64"),
        ("doc_url", 15, "int64"),
    ],
}


def build(schema: dict[str, list[tuple[str, int, str]]], package: str, top: str, syntax: str = "proto3") -> Any:
    """The class of message `top` of a schema in the form of `_SCHEMA`."""
    file = descriptor_pb2.FileDescriptorProto(name=f"{package}.proto", package=package, syntax=syntax)
    scalars = descriptor_pb2.FieldDescriptorProto
    for message, fields in schema.items():
        m = file.message_type.add(name=message)
        for name, number, type_ in fields:
            label = scalars.LABEL_REPEATED if type_.endswith("*") else scalars.LABEL_OPTIONAL
            type_ = type_.rstrip("*")
            f = m.field.add(name=name, number=number, label=label)
            if type_ in schema:
                f.type, f.type_name = scalars.TYPE_MESSAGE, f".{package}.{type_}"
            else:
                f.type = getattr(scalars, f"TYPE_{type_.upper()}")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{package}.{top}"))


Profile = build(_SCHEMA, "perftools.profiles", "Profile")


def parse(data: bytes) -> Any:
    """Errors: google.protobuf.message.DecodeError, also for strings that are not UTF-8."""
    profile = Profile()
    profile.ParseFromString(data)
    return profile


def rows(profile: Any) -> list[Any]:
    """Samples in the shape of tests.support.stackdump, callers' addresses unchanged, object names with the mapping."""
    strings = [s.encode() for s in profile.string_table]
    mappings = {m.id: m for m in profile.mapping}
    functions = {f.id: f for f in profile.function}
    locations = {}
    for location in profile.location:
        m = mappings.get(location.mapping_id)
        mapping = m and (
            strings[m.filename],
            strings[m.build_id],
            m.memory_start,
            m.memory_limit,
            m.file_offset,
            m.has_functions | m.has_filenames << 1 | m.has_line_numbers << 2 | m.has_inline_frames << 3,
        )
        lines = []
        for line in location.line:
            f = functions[line.function_id]
            name, system_name = strings[f.name], strings[f.system_name]
            lines.append((name, system_name or name, strings[f.filename], f.start_line, line.line, line.column))
        locations[location.id] = (mapping, location.address, location.is_folded << 1, tuple(lines))
    return [
        (
            tuple(locations[i] for i in sample.location_id),
            tuple((strings[x.key], strings[x.str], x.num, strings[x.num_unit]) for x in sample.label),
            tuple(sample.value),
        )
        for sample in profile.sample
    ]


def check_ids(profile: Any) -> None:
    """Check strings and ids by the rules of every known consumer.  Errors: AssertionError."""
    strings = list(profile.string_table)
    assert strings[0] == ""
    assert len(set(strings)) == len(strings)
    for table in (profile.mapping, profile.location, profile.function):
        assert [entry.id for entry in table] == list(range(1, len(table) + 1))
    for location in profile.location:
        assert location.mapping_id <= len(profile.mapping)
        for line in location.line:
            assert 1 <= line.function_id <= len(profile.function)
    for sample in profile.sample:
        assert sample.location_id
        assert all(1 <= i <= len(profile.location) for i in sample.location_id)
        assert len(sample.value) == len(profile.sample_type)


def check(profile: Any) -> None:
    """`check_ids`, and the period has a type.  Errors: AssertionError."""
    check_ids(profile)
    assert profile.period_type.type or profile.period_type.unit or not profile.sample_type
