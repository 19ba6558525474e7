"""OpenTelemetry profiles: layouts, labels, output."""

from __future__ import annotations

import gzip
import io
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import fastprof
from fastprof.core.engine import read
from fastprof.core.errors import FormatError
from tests.reference import otlp, profile_proto
from tests.support import rich
from tests.support.conversions import convert_bytes
from tests.support.otlp import rows
from tests.support.paths import CORPUS
from tests.support.product import open_input

GOOD = CORPUS / "otlp" / "good"


def corpus(name: str) -> bytes:
    return (GOOD / name).read_bytes()


def totals(found: Counter[Any]) -> Counter[Any]:
    """Without times."""
    sums: Counter[Any] = Counter()
    for (*key, _), value in found.items():
        sums[tuple(key)] += value
    return sums


@pytest.mark.parametrize("name", ["v1.8-aggregated.otlp", "v1.9-both.otlp", "dict-first.otlp", "v1.10-both.otlp.json"])
def test_all_layouts_have_the_same_samples(name: str) -> None:
    assert totals(rows(corpus(name))) == totals(otlp.rows(otlp.parse(corpus("v1.10-both.otlp"))))


def test_several_messages_keep_their_dictionaries() -> None:
    once = totals(otlp.rows(otlp.parse(corpus("dict-first.otlp"))))
    assert totals(rows(corpus("framed-be32.otlp"))) == once + once
    assert totals(rows(corpus("concatenated.otlp"))) == once + once


def layout(samples: list[bytes], attributes: int = 3) -> tuple[str, list[str]]:
    """The layout in which samples of these bytes are read, and the codes of warnings."""
    profile = b"\x0a\2\x08\1" + b"".join(b"\x12" + bytes((len(s),)) + s for s in samples)
    for number in (2, 2, 1):
        profile = bytes((number << 3 | 2, len(profile))) + profile
    table = b"\x2a\0\x2a\1x" + b"\x32\0" + b"\x32\0" * (attributes - 1) + b"\x3a\0\x3a\0"
    data = profile + b"\x12" + bytes((len(table),)) + table
    log = fastprof.info(data, from_="otlp")
    return log.facts["layout"], [warning.partition(": ")[2] for warning in log.warnings]


TIMES = b"\x2a\x10" + bytes((*range(8), *range(8)))


@pytest.mark.parametrize(
    ("samples", "wanted"),
    [
        ([b"\x08\1\x12\1\7\x1a\1\1"], "1.9"),  # a list in 3: attributes
        ([b"\x08\1\x12\1\7\x20\0"], "1.9"),  # a number in 4: a link
        ([b"\x08\1\x12\1\1\x22\1\7"], "1.10"),  # a list in 4: values
        ([b"\x08\1\x12\1\1\x18\0" + TIMES], "1.10"),  # a number in 3: a link
        ([b"\x08\1\x12\1\7"], "1.9"),  # without timestamps field 2 has values
        ([b"\x08\1\x12\2\7\7" + TIMES], "1.9"),  # attribute 7 does not exist
        ([b"\x08\1\x12\1\1" + TIMES], "1.10"),  # one number for two timestamps
        ([b"\x08\1" + TIMES], "1.10"),
    ],
)
def test_the_layout_is_found_by_what_only_one_has(samples: list[bytes], wanted: str) -> None:
    assert layout(samples) == (wanted, [])


def test_a_layout_that_is_guessed_is_reported() -> None:
    assert layout([b"\x08\1\x12\2\1\2" + TIMES]) == (
        "1.10",
        ["samples fit releases before and since 1.10; read as 1.10"],
    )


def test_older_releases_are_refused_also_when_lenient() -> None:
    for lenient in (False, True):
        with pytest.raises(FormatError, match=r"before 1\.8"):
            fastprof.info(CORPUS / "otlp/bad/v1.7-both.otlp", lenient=lenient)


def test_pprof_there_and_back_is_the_same() -> None:
    """All of pprof.profile.proto: comments, regular expressions, the default type, flags of mappings, labels."""
    source = rich.sources()["pprof"].data
    written = convert_bytes(source, "pprof", "otlp")
    back = profile_proto.parse(gzip.decompress(convert_bytes(written.data, "otlp", "pprof").data))
    once = profile_proto.parse(gzip.decompress(convert_bytes(source, "pprof", "pprof").data))

    def content(p: Any) -> Any:
        strings = list(p.string_table)
        named = ("time_nanos", "duration_nanos", "period")
        texts = ("drop_frames", "keep_frames", "doc_url", "default_sample_type")
        types = [(strings[t.type], strings[t.unit]) for t in (*p.sample_type, p.period_type)]
        return (
            sorted(profile_proto.rows(p)),
            types,
            [getattr(p, name) for name in named],
            [strings[getattr(p, name)] for name in texts],
            [strings[c] for c in p.comment],
        )

    assert content(back) == content(once)
    assert not written.log.not_representable.entries()


def test_a_duration_without_a_start_is_kept() -> None:
    once = profile_proto.parse(rich.sources()["pprof"].data)
    once.time_nanos = 0
    source = once.SerializeToString()
    written = convert_bytes(convert_bytes(source, "pprof", "otlp").data, "otlp", "pprof")
    back = profile_proto.parse(gzip.decompress(written.data))
    assert (back.time_nanos, back.duration_nanos) == (0, once.duration_nanos)


def test_labels_are_of_resource_scope_link_and_sample() -> None:
    parsed = otlp.parse(convert_bytes(corpus("v1.10-both.otlp"), "otlp", "otlp").data)
    first, second = parsed.resource_profiles
    assert {a.key for a in first.resource.attributes} == {"process.pid", "process.executable.name", "service.name"}
    assert [(s.scope.name, s.scope.version) for s in first.scope_profiles] == [("profiler one", "1.0")]
    assert second.scope_profiles[0].scope.name == "profiler two"
    assert parsed.dictionary.link_table[1].trace_id == bytes(range(16))
    keys = {parsed.dictionary.string_table[a.key_strindex] for a in parsed.dictionary.attribute_table}
    assert {"thread.id", "thread.name", "cpu.logical_number", "flag", "list"} <= keys and "trace_id" not in keys


def in_step(*profiles: tuple[str, list[tuple[int, int]]]) -> bytes:
    """A message with these profiles: the name of each, and stack and value of each sample."""
    p = otlp.ProfilesData()
    d = p.dictionary
    d.string_table.extend(["", "f", *(name for name, _ in profiles)])
    d.function_table.add()
    d.function_table.add(name_strindex=1)
    d.mapping_table.add()
    d.location_table.add()
    d.stack_table.add()
    for k in range(1, 6):
        d.location_table.add().lines.add(function_index=1, line=k)
        d.stack_table.add(location_indices=[k])
    scope = p.resource_profiles.add().scope_profiles.add()
    for k, (_, samples) in enumerate(profiles):
        profile = scope.profiles.add()
        profile.sample_type.type_strindex = k + 2
        for stack, value in samples:
            profile.samples.add(stack_index=stack, values=[value])
    data: bytes = p.SerializeToString()
    return data


def values(data: bytes, capacity: int | None = None) -> list[tuple[int, ...]]:
    opened = open_input(data, None, None, "otlp")
    found: list[tuple[int, ...]] = []
    for batch in read(opened.reader, capacity):
        found += zip(*(batch.values(k) for k in range(int(batch.c.n_values))), strict=True)
    return found


@pytest.mark.parametrize("capacity", [None, 1, 2])
def test_equal_samples_of_several_profiles_are_one_row(capacity: int | None) -> None:
    cpu, count = [(1, 10), (2, 20), (3, 30), (2, 21)], [(1, 1), (2, 2), (2, 3)]
    assert values(in_step(("cpu", cpu), ("count", count)), capacity) == [(10, 1), (20, 2), (30, 0), (21, 3)]
    # the second profile waits for its first sample, which the leader lacks, and is read after it
    other = [(4, 1), (1, 2), (2, 3)]
    assert values(in_step(("cpu", cpu), ("count", other), ("more", count)), capacity) == [
        (10, 0, 1), (20, 0, 2), (30, 0, 0), (21, 0, 3), (0, 1, 0), (0, 2, 0), (0, 3, 0)
    ]  # fmt: skip


def test_profiles_of_one_value_type_are_read_one_after_the_other() -> None:
    assert values(in_step(("cpu", [(1, 1), (2, 2)]), ("cpu", [(1, 3), (2, 4)]))) == [(1,), (2,), (3,), (4,)]


def test_many_value_types_are_read_some_at_a_time() -> None:
    found = values(in_step(*((f"t{k}", [(1, k + 1), (2, k + 100)]) for k in range(40))))
    assert len(found) == 2 * -(-40 // 16)
    assert [*map(sum, zip(*found, strict=True))] == [2 * k + 101 for k in range(40)]


def test_times_are_kept_for_ranges(tmp_path: Path) -> None:
    path = tmp_path / "part.otlp"
    fastprof.convert(GOOD / "v1.10-both.otlp", path, time_range="@1700000000000002000:")
    times = {time for *_, time in rows(path.read_bytes())}
    assert times == {1700000000000002010, 1700000000000003010}


@pytest.mark.parametrize("name", ["x.otlp", "x.otlp.json", "x.otlp.zst", "x.otlp.json.gz"])
def test_all_forms_are_read_back(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    fastprof.convert(GOOD / "v1.10-both.otlp", path)
    facts = fastprof.info(path).facts
    assert facts["encoding"] == ("JSON" if ".json" in name else "binary")
    assert facts["records"] == 21 and facts["layout"] == "1.10"


def test_json_has_ids_in_hexadecimal_and_wide_numbers_in_quotes() -> None:
    out = io.BytesIO()
    fastprof.convert(GOOD / "v1.10-both.otlp", out, to="otlp", otlp={"encoding": "json"})
    found = json.loads(out.getvalue())
    assert found["dictionary"]["linkTable"][1] == {"traceId": bytes(range(16)).hex(), "spanId": bytes(range(8)).hex()}
    assert "18446744071578845475" in [e.get("address") for e in found["dictionary"]["locationTable"]]


def test_an_error_in_json_has_the_offset_of_its_message() -> None:
    data = (CORPUS / "otlp/bad/stack-index.otlp.json").read_bytes()
    with pytest.raises(FormatError) as caught:
        convert_bytes(data, "otlp", "pprof")
    assert caught.value.offset is not None
    assert data[caught.value.offset :].startswith(b'{"stackIndex":9')


def test_a_value_type_without_samples_stays() -> None:
    source = profile_proto.parse(rich.sources()["pprof"].data)
    for sample in source.sample:
        sample.value[0] = 0
    written = convert_bytes(source.SerializeToString(), "pprof", "otlp").data
    back = profile_proto.parse(gzip.decompress(convert_bytes(written, "otlp", "pprof").data))
    assert [back.string_table[t.type] for t in back.sample_type] == ["samples", "cpu", "alloc"]


@pytest.mark.parametrize("n", [130, 2000])
def test_a_long_profile_without_attributes_is_recognized(n: int) -> None:
    """The first 4 KiB may contain no resource and no end of a message: only the type of the values, and samples.  A
    length of 8 * 128 and more looks like a number of Perfetto's process tree."""
    sample = b"\x12\6\x08\1\x22\2\x87\1"
    profile = b"\x0a\4\x08\1\x10\2" + sample * n
    for number in (2, 2, 1):
        profile = bytes((number << 3 | 2, len(profile) & 127 | 128, len(profile) >> 7)) + profile
    table = b"\x12\0\x12\2\x10\7\x2a\0\x2a\3cpu\x2a\2ns\x3a\0\x3a\3\x0a\1\1"
    facts = fastprof.info(profile + b"\x12" + bytes((len(table),)) + table).facts
    assert facts["format"] == "otlp" and facts["records"] == n


def test_a_message_of_123_bytes_is_not_json() -> None:
    """Its tag is a line feed and its length a brace."""
    samples = b"\x12\5\x08\1\x22\1\7" + b"\x12\4\x22\2\x87\1" * 16 + b"\x12\6\x22\4\x87\x87\x87\1"
    profile = b"\x0a\4\x08\1\x10\2" + samples + b"\x20\1"
    data = b"\x0a{\x12" + bytes((len(profile) + 2,)) + b"\x12" + bytes((len(profile),)) + profile
    assert len(data) == 125
    facts = fastprof.info(data + b"\x12\x0f\x2a\0\x2a\3cpu\x2a\2ns\x3a\0\x3a\0", from_="otlp").facts
    assert facts["encoding"] == "binary"


def test_attributes_that_the_profiler_dropped_are_a_warning() -> None:
    data = b'{"resourceProfiles":[{"resource":{"droppedAttributesCount":3}}],"dictionary":{"stringTable":[""]}}'
    log = fastprof.info(data, from_="otlp")
    assert log.warnings == ["<bytes>: attributes dropped by the profiler: 3"] and not log.not_representable
