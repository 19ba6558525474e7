"""speedscope's JSON: value types come back as what they were, and names of others say nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import fastprof
from tests.reference import profile_proto
from tests.support.paths import CORPUS

TYPES = [("Ir", ""), ("Dr", ""), ("cpu", "nanoseconds"), ("calls (all)", ""), ("x", "count"), ("space", "bytes")]


def stacks(types: list[tuple[str, str]]) -> bytes:
    p = profile_proto.Profile()
    p.string_table.extend(["", "main", "f", *(text for type_ in types for text in type_)])
    for k in range(len(types)):
        p.sample_type.add(type=3 + 2 * k, unit=4 + 2 * k if types[k][1] else 0)
    for i in (1, 2):
        p.function.add(id=i, name=i)
        p.location.add(id=i).line.add(function_id=i)
    p.sample.add(location_id=[1], value=range(1, 1 + len(types)))
    p.sample.add(location_id=[2, 1], value=range(11, 11 + len(types)))
    data: bytes = p.SerializeToString()
    return data


@pytest.mark.parametrize("types", [TYPES, TYPES[:1], TYPES[:2], TYPES[3:4]])
def test_value_types_come_back(types: list[tuple[str, str]], tmp_path: Path) -> None:
    out, again = tmp_path / "x.speedscope.json", tmp_path / "again.speedscope.json"
    source = stacks(types)
    fastprof.convert(source, out)
    with fastprof.open(out) as profile:
        assert sum(map(len, profile)) == 2 * len(types)
        assert [(t.name, t.unit) for t in profile.model.parts[0].value_types] == types
    assert fastprof.info(out).facts["totals"] == fastprof.info(source).facts["totals"]
    fastprof.convert(out, again)
    first, second = json.loads(out.read_text()), json.loads(again.read_text())
    assert [p["name"] for p in first["profiles"]] == [p["name"] for p in second["profiles"]]
    third = tmp_path / "third.speedscope.json"
    fastprof.convert(again, third)
    assert third.read_bytes() == again.read_bytes()


def test_events_of_a_graph_come_back_and_stay_an_estimate(tmp_path: Path) -> None:
    out, again = tmp_path / "x.speedscope.json", tmp_path / "again.speedscope.json"
    fastprof.convert(CORPUS / "callgrind/good/xdebug.callgrind", out)
    fastprof.convert(out, again)
    names = [[p["name"] for p in json.loads(path.read_text())["profiles"]] for path in (out, again)]
    assert [name.removeprefix("part 1: ") for name in names[0]] == names[1] and "estimated" in names[1][0]
    assert fastprof.info(again).facts["totals"] == fastprof.info(out).facts["totals"]


def test_what_others_call_a_profile_is_no_value_type(tmp_path: Path) -> None:
    out = tmp_path / "x.speedscope.json"
    fastprof.convert(stacks([("main.c (worker)", ""), ("Ir", "")]), out)
    text = out.read_text().replace('"exporter":"fastprof-', '"exporter":"another of ')
    assert fastprof.info(text.encode()).facts["totals"] == {"weight": 26}
