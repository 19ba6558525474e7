"""The obvious reader of OpenTelemetry profiles of 1.10: each observation with its names, labels and time.

Official schema, from PyPI's opentelemetry-proto.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from opentelemetry.proto.profiles.v1development import profiles_pb2

Row = tuple[Any, ...]
ProfilesData = profiles_pb2.ProfilesData


def parse(data: bytes) -> Any:
    """Errors: google.protobuf.message.DecodeError."""
    found = ProfilesData()
    found.ParseFromString(data)
    return found


def plain(value: Any, strings: list[str]) -> Any:
    kind = value.WhichOneof("value")
    if kind is None:
        return None
    if kind == "array_value":
        return [plain(one, strings) for one in value.array_value.values]
    if kind == "kvlist_value":
        return {one.key: plain(one.value, strings) for one in value.kvlist_value.values}
    if kind == "string_value_strindex":
        return strings[value.string_value_strindex]
    return getattr(value, kind)


def as_label(value: Any) -> str | int:
    if value is True or value is False:
        return str(value).lower()
    if isinstance(value, bytes):
        return value.hex() or 0
    if isinstance(value, int):
        return value or "0"
    if isinstance(value, str):
        return value or 0  # a label cannot distinguish an empty text from the number 0
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def rows(data: Any) -> Counter[Row]:
    """(type, unit, frames from the leaf, labels, time) of each observation, and the sum of its values."""
    d = data.dictionary
    strings = list(d.string_table)
    found: Counter[Row] = Counter()
    for resource in data.resource_profiles:
        shared = {a.key: as_label(plain(a.value, strings)) for a in resource.resource.attributes}
        for scope in resource.scope_profiles:
            of_scope = {"name": scope.scope.name, "version": scope.scope.version}
            labels = shared | {f"otel.scope.{k}": v for k, v in of_scope.items() if v}
            for profile in scope.profiles:
                type_ = strings[profile.sample_type.type_strindex], strings[profile.sample_type.unit_strindex]
                for sample in profile.samples:
                    found.update(_observations(d, strings, sample, type_, labels))
    return found


def _observations(d: Any, strings: list[str], sample: Any, type_: Row, labels: dict[str, Any]) -> Counter[Row]:
    own = dict(labels)
    for index in sample.attribute_indices:
        a = d.attribute_table[index]
        if a.key_strindex:
            own[strings[a.key_strindex]] = as_label(plain(a.value, strings))
    link = d.link_table[sample.link_index] if d.link_table else None
    if link is not None and any(link.trace_id):
        own["trace_id"] = link.trace_id.hex()
    if link is not None and any(link.span_id):
        own["span_id"] = link.span_id.hex()
    frames: list[str] = []
    for index in d.stack_table[sample.stack_index].location_indices if d.stack_table else ():
        location = d.location_table[index]
        names = [strings[d.function_table[line.function_index].name_strindex] for line in location.lines]
        frames += names or [f"{location.address:#x}"]
    values, times = list(sample.values), list(sample.timestamps_unix_nano)
    found: Counter[Row] = Counter()
    for value, time in zip(values or [1] * len(times), times, strict=True) if times else [(sum(values), 0)]:
        found[(*type_, tuple(frames), tuple(sorted((k, str(v)) for k, v in own.items())), time)] += value
    return found
