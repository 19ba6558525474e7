"""speedscope's JSON: our value types are restored, those of other writers have no meaning."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import fastprof
from fastprof.core.errors import FormatError
from tests.reference import profile_proto
from tests.support.paths import CORPUS

TYPES = [("Ir", ""), ("Dr", ""), ("cpu", "nanoseconds"), ("calls (all)", ""), ("x", "count"), ("space", "bytes")]
ODD = [("main: cpu", "count"), ("cpu", "count"), ("cpu", "microseconds"), ("x: y: z", ""), ("cpu", "count"), ("", "")]


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


@pytest.mark.parametrize("types", [TYPES, TYPES[:1], TYPES[:2], TYPES[3:4], ODD, ODD[:1], ODD[3:]])
def test_value_types_come_back(types: list[tuple[str, str]], tmp_path: Path) -> None:
    out, again = tmp_path / "x.speedscope.json", tmp_path / "again.speedscope.json"
    source = stacks(types)
    fastprof.convert(source, out)
    with fastprof.open(out) as profile:
        assert sum(map(len, profile)) == 2 * len(types)
        assert [(t.name, t.unit) for t in profile._model.parts[0].value_types] == types
    assert fastprof.info(out).facts["totals"] == fastprof.info(source).facts["totals"]
    fastprof.convert(out, again)
    assert again.read_bytes() == out.read_bytes()


def test_events_of_a_graph_come_back_and_stay_an_estimate(tmp_path: Path) -> None:
    out, again = tmp_path / "x.speedscope.json", tmp_path / "again.speedscope.json"
    fastprof.convert(CORPUS / "callgrind/good/xdebug.callgrind", out)
    fastprof.convert(out, again)
    assert again.read_bytes() == out.read_bytes() and "estimated" in out.read_text()
    assert fastprof.info(again).facts["totals"] == fastprof.info(out).facts["totals"]


def test_the_profile_that_is_shown_first_is_the_default_value_type(tmp_path: Path) -> None:
    out, again = tmp_path / "x.speedscope.json", tmp_path / "again.speedscope.json"
    fastprof.convert(CORPUS / "callgrind/good/xdebug.callgrind", out)  # for a graph it is the first event
    fastprof.convert(out, again)
    assert fastprof.top(out).value == fastprof.top(CORPUS / "callgrind/good/xdebug.callgrind").value
    assert [json.loads(path.read_text())["activeProfileIndex"] for path in (out, again)] == [0, 0]
    names = [p["name"] for p in json.loads(again.read_text())["profiles"]]
    for said, shown in ((1, 1), (9, 0), (-1, 0)):
        text = again.read_text().replace('"activeProfileIndex":0', f'"activeProfileIndex":{said}')
        out.write_text(text)
        value = fastprof.top(out).value
        assert value and names[shown].startswith(value.name)


def test_what_others_call_a_profile_is_no_value_type(tmp_path: Path) -> None:
    out = tmp_path / "x.speedscope.json"
    fastprof.convert(stacks([("main.c (worker)", ""), ("Ir", "")]), out)
    profile = json.loads(out.read_text())
    for one in profile["profiles"]:
        del one["valueType"]
    assert fastprof.info(json.dumps(profile).encode()).facts["totals"] == {"weight": 26}


def test_the_profile_that_is_shown_first_is_the_default(tmp_path: Path) -> None:
    out, again = tmp_path / "x.speedscope.json", tmp_path / "again.pb"
    fastprof.convert(CORPUS / "callgrind/good/hex.callgrind", out)
    assert json.loads(out.read_text())["activeProfileIndex"] == 0
    fastprof.convert(out, again)
    assert fastprof.top(again).value.name == fastprof.top(out).value.name == "Ir"


def test_threads_and_parts_come_back(tmp_path: Path) -> None:
    """Two of the three threads have one name."""
    calls = [{"name": "f", "ph": "P", "pid": 1, "tid": tid, "ts": tid, "stack": [f"f{tid}"]} for tid in (1, 2, 3)]
    names = [{"name": "thread_name", "ph": "M", "pid": 1, "tid": tid, "args": {"name": "w"}} for tid in (1, 3)]
    source, out, again = tmp_path / "x.json", tmp_path / "x.speedscope.json", tmp_path / "again.speedscope.json"
    source.write_text(json.dumps({"traceEvents": calls + names}))
    fastprof.convert(source, out)
    said = [profile["samplesOf"] for profile in json.loads(out.read_text())["profiles"]]
    assert said == ["x.json (1): w (1)", "x.json (1): thread 2", "x.json (1): w (3)"]
    fastprof.convert(out, again)
    assert again.read_bytes() == out.read_bytes()
    log = fastprof.convert(out, tmp_path / "x.callgrind", per_thread=True)
    assert len(set(re.findall(r"^thread: (.*)", (tmp_path / "x.callgrind").read_text(), re.MULTILINE))) == 3, log


def test_a_profile_without_samples_comes_back(tmp_path: Path) -> None:
    out, again = tmp_path / "x.speedscope.json", tmp_path / "again.speedscope.json"
    source = (NESTED % ("[]", FRAMES)).replace('"weights":[1]', '"weights":[]').replace('"none"', '"seconds"')
    fastprof.convert(source.encode(), out, from_="speedscope")
    fastprof.convert(out, again)
    assert again.read_bytes() == out.read_bytes()
    assert json.loads(out.read_text())["profiles"][0]["valueType"] == "time"


NESTED = '{"profiles":[{"type":"sampled","name":"x","unit":"none","samples":%s,"weights":[1]}],"shared":{"frames":%s}}'
FRAMES = '[{"name":"a"},{"name":"b"}]'


def test_frames_in_an_array_of_their_own() -> None:
    """JavaScript treats [1] as 1, and so does speedscope."""
    plain = fastprof.top([(NESTED % ("[[0,1]]", FRAMES)).encode()], from_="speedscope")
    nested = fastprof.top([(NESTED % ("[[[0],[1]]]", FRAMES)).encode()], from_="speedscope")
    assert [(row.name, row.self, row.inclusive) for row in nested.rows] == [("b", 1, 1), ("a", 0, 1)]
    assert nested.rows == plain.rows
    assert nested.log.repairs == {"nested-frames": 2}


@pytest.mark.parametrize("sample", ["[[]]", "[[0,1]]", "[[[0]]]", '[["0"]]', "[[2]]", "[[-1]]", "[{}]"])
def test_other_arrays_in_samples_are_errors(sample: str) -> None:
    with pytest.raises(FormatError, match="a frame of a sample is"):
        fastprof.info((NESTED % (f"[{sample}]", FRAMES)).encode(), from_="speedscope")
    log = fastprof.info((NESTED % (f"[{sample}]", FRAMES)).encode(), from_="speedscope", lenient=True)
    assert log.losses.total() > 0


def with_weight(weight: str) -> bytes:
    text = json.dumps(
        {
            "$schema": "https://www.speedscope.app/file-format-schema.json",
            "shared": {"frames": [{"name": "f"}]},
            "profiles": [
                {"type": "sampled", "name": "a", "unit": "nanoseconds", "startValue": 0, "endValue": 1}
                | {"samples": [[0]], "weights": ["WEIGHT"]}
            ],
        }
    )
    return text.replace('"WEIGHT"', weight).encode()


NUMBERS = [
    ("7", 7),
    ("007", 7),
    ("7.000", 7),
    ("7.5", 8),
    ("0.07e2", 7),
    ("70E-1", 7),
    ("999999999999999999", 999999999999999999),
    ("9999999999999999.99", 10000000000000000),
    ("1000000000000000000", 1000000000000000000),
    ("9223372036854775807", 9223372036854775807),
    ("922337203685477580.70e1", 9223372036854775807),
    ("1000000000000000001.49999999999999999999", 1000000000000000001),
]


@pytest.mark.parametrize(("weight", "value"), NUMBERS)
def test_numbers_of_any_length(weight: str, value: int) -> None:
    (total,) = fastprof.info(with_weight(weight)).facts["totals"].values()
    assert total == value


@pytest.mark.parametrize("weight", ["1.", "1.e5", "1e", "1e+", "-", "-.5", "1.2.3", "1-2", "1_000", "1e5x"])
def test_what_is_no_number(weight: str) -> None:
    with pytest.raises(FormatError, match="a number"):
        fastprof.info(with_weight(weight))


@pytest.mark.parametrize("weight", ["9223372036854775808", "1e19", "1" * 30000, "1e99999"])
def test_numbers_beyond_64_bits(weight: str) -> None:
    with pytest.raises(FormatError, match=r"2\^63"):
        fastprof.info(with_weight(weight))
