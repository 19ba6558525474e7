"""CPU profiles of V8 in rare forms: nested nodes, hit counts, other time origins, inside other objects."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

import fastprof
from fastprof.core.errors import FormatError
from fastprof.core.options import Options
from tests.support.conversions import convert_bytes

NODES = [
    {"id": 1, "callFrame": {"functionName": "(root)", "url": "", "lineNumber": -1}, "children": [2]},
    {"id": 2, "callFrame": {"functionName": "f", "url": "a.js", "lineNumber": 0}, "hitCount": 3, "children": [3]},
    {"id": 3, "callFrame": {"functionName": "g", "url": "a.js", "lineNumber": 4}, "hitCount": 4},
]
TIMED = {"nodes": NODES, "startTime": 100, "endTime": 200, "samples": [2, 3, 3], "timeDeltas": [5, 10, 20]}


def head(children: list[dict[str, Any]], line: int = 0) -> dict[str, Any]:
    return {"functionName": "(root)", "url": "", "lineNumber": line, "id": 1, "hitCount": 0, "children": children}


def node(name: str, id_: int, *children: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"functionName": name, "url": "a.js", "lineNumber": 7, "children": [*children], "id": id_, **more}


OLD = {
    "head": head([node("f", 2, node("g", 3, node("h", 4)), node("k", 5))]),
    "startTime": 100,
    "endTime": 104,
    "samples": [2, 3, 4, 5],
    "timestamps": [100_000_010, 100_000_020, 100_000_040, 100_000_070],
}


def read(data: Any, value: str = "time") -> tuple[dict[str, int], list[int]]:
    """Values by stack, times in nanoseconds; and the times of samples."""
    text = json.dumps(data).encode()
    with fastprof.open(text) as profile:
        assert profile.format == "cpuprofile"
        times = [int(time) for batch in profile for time in batch["time"]]
    out = io.BytesIO()
    fastprof.convert(text, out, to="folded", value=value, nanoseconds=value == "time")
    lines = (line.rpartition(" ") for line in out.getvalue().decode().splitlines())
    return {stack: int(count) for stack, _, count in lines}, times


def test_nodes_that_stand_in_each_other() -> None:
    """The last sample lasts as long as the others on average; `endTime` is whole seconds."""
    values, times = read(OLD)
    assert values == {"f": 10_000, "f;g": 20_000, "f;g;h": 30_000, "f;k": 20_000}
    assert times == [time * 1000 for time in OLD["timestamps"]]
    assert read(OLD, "samples")[0] == {"f": 1, "f;g": 1, "f;g;h": 1, "f;k": 1}


def test_a_timestamp_more_than_samples_is_the_end() -> None:
    values, times = read(OLD | {"timestamps": [*OLD["timestamps"], 100_000_170]})
    assert values["f;k"] == 100_000 and len(times) == 4


def test_samples_without_timestamps_last_equally_long() -> None:
    values, times = read({key: value for key, value in OLD.items() if key != "timestamps"})
    assert values == dict.fromkeys(("f", "f;g", "f;g;h", "f;k"), 1_000_000_000)
    assert times == [time * 10**9 for time in (100, 101, 102, 103)]


@pytest.mark.parametrize(("root", "line"), [(0, 7), (-1, 8)])
def test_lines_of_old_profiles(root: int, line: int) -> None:
    data = OLD | {"head": head([node("f", 2), node("g", 3), node("h", 4), node("k", 5)], root)}
    with fastprof.open(json.dumps(data).encode()) as profile:
        list(profile)
        functions = range(1, profile._model.count("functions"))
        assert {profile._model.get_function(i).line for i in functions} == {line}


def test_the_order_of_keys_does_not_matter() -> None:
    def turned(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: turned(value[key]) for key in reversed(value)}
        return [turned(one) for one in value] if isinstance(value, list) else value

    assert read(turned(OLD)) == read(OLD)
    assert read(turned(TIMED)) == read(TIMED)


@pytest.mark.parametrize("key", ["cpuProfile", "profile"])
@pytest.mark.parametrize("data", [TIMED, OLD])
def test_profiles_in_another_object(key: str, data: dict[str, Any]) -> None:
    assert read({key: data, "other": {"samples": [1]}}) == read(data)


def test_hits_are_the_samples_of_a_profile_without_any() -> None:
    untimed = {key: value for key, value in TIMED.items() if key not in ("samples", "timeDeltas")}
    for data in (untimed, untimed | {"samples": [], "timeDeltas": []}):
        assert read(data, "samples")[0] == {"f": 3, "f;g": 4}
        log = fastprof.info(json.dumps(data).encode())
        assert log.facts["totals"] == {"samples": 7} and "hit counts but no samples" in log.warnings[0]
    assert read(TIMED, "samples")[0] == {"f": 1, "f;g": 2}  # samples are more precise
    old = OLD | {"head": head([node("f", 2, node("g", 3, hitCount=9))]), "samples": [], "timestamps": []}
    assert read(old, "samples")[0] == {"f;g": 9}


YEAR_1 = 62_135_596_800_000_000  # 1970, in microseconds since the year 1


def test_times_since_the_year_1() -> None:
    data = TIMED | {"startTime": YEAR_1 + 1_700_000_000_000_000, "endTime": YEAR_1 + 1_700_000_000_000_100}
    values, times = read(data)
    assert times == [1_700_000_000_000_000_000 + ns for ns in (5_000, 15_000, 35_000)]
    assert values == {"f": 10_000, "f;g": 85_000}
    log = fastprof.info(json.dumps(data).encode())
    assert log.repairs == {"times-since-year-1": 2}


SAMPLED = '{"traceEvents":[],"samples":[{"name":"c","sf":7,"ts":1,"tid":1}],"stackFrames":{"7":{"name":"f"}}}'


@pytest.mark.parametrize("text", ["Done.", "[12:00:00] done", "{never}", "\0"])
@pytest.mark.parametrize("one", [json.dumps(TIMED), SAMPLED])
def test_text_after_the_end(one: str, text: str) -> None:
    log = fastprof.info(f"{one}\n{text}".encode())
    assert log.facts["samples"] == fastprof.info(one.encode()).facts["samples"] and not log.losses
    assert dict(log.repairs) == {"nul-padding" if text == "\0" else "rest-after-end": 1}


def test_bare_words_in_both_readings() -> None:
    text = SAMPLED.replace("[]", '[{"ph":"X","args":{"a":nan},"sf":5}]'.replace("X", "P"))
    log = fastprof.info(text.replace('"7":{', '"5":{"name":"g"},"7":{').replace('"P"', '"P","ts":1').encode())
    assert dict(log.repairs) == {"bare-words": 1} and log.facts["samples"] == 2


def test_documents_have_frames_profiles_and_threads_of_their_own() -> None:
    second = json.dumps(TIMED).replace('"f"', '"x"').replace("[5, 10, 20]", "[5, 10, 50]")
    text = f"{json.dumps(TIMED)}[]{second} Done.".encode()
    log = fastprof.info(text)
    assert log.facts["documents"] == 3 and dict(log.repairs) == {"rest-after-end": 1}
    rows = {row.name: (row.self, row.inclusive) for row in fastprof.top(text, n=0, value="time").rows}
    assert rows == {"f": (10_000, 95_000), "x": (10_000, 95_000), "g": (170_000, 170_000)}
    text = (SAMPLED + SAMPLED.replace('"f"', '"h"').replace('"c"', '"d"')).encode()
    for value, name in (("c", "f"), ("d", "h")):
        assert [(row.name, row.self) for row in fastprof.top(text, n=0, value=value).rows if row.self] == [(name, 1)]
    with pytest.raises(FormatError, match="not in stackFrames"):
        fastprof.info((SAMPLED + SAMPLED.replace('"7":', '"8":')).encode())


def test_threads_of_two_documents_have_names_of_their_own() -> None:
    name = '{"ph":"M","name":"thread_name","pid":1,"tid":1,"args":{"name":"%s"}}'
    sample = '{"ph":"P","name":"s","pid":1,"tid":1,"ts":1}'
    call = '{"ph":"X","name":"s","pid":1,"tid":1,"ts":1,"dur":1}'
    for event in (sample, call):
        text = "".join(f"[{name % of},{event}]" for of in "ab").encode()
        with fastprof.open(text, from_="trace-event") as profile:
            used = [batch.part for batch in profile]
            parts = [profile._model.parts[part] for part in dict.fromkeys(used)]
        assert [part.extra["thread_names"] for part in parts] == [[(1, 1, of)] for of in (b"a", b"b")]


@pytest.mark.parametrize("second", ['{"nodes": [}', '{"samples":[{"sf":7,"ts":1}],"stackFrames":{"7":{}}'])
def test_a_second_document_that_is_broken(second: str) -> None:
    with pytest.raises(FormatError) as error:
        fastprof.info(f"{SAMPLED}{second}".encode())
    assert error.value.offset is not None and error.value.offset > len(SAMPLED)


def test_too_many_documents() -> None:
    """Each gets a part of the model."""
    node = '{"id":1,"callFrame":{"functionName":"f","url":"","lineNumber":0,"columnNumber":0}}'
    data = f'{{"nodes":[{node}],"samples":[1],"timeDeltas":[1],"startTime":0,"endTime":1}}{"{}" * 70_000}'.encode()
    with pytest.raises(fastprof.FormatError, match="more than 65,536 documents") as error:
        fastprof.info(data, from_="cpuprofile")
    assert error.value.offset and error.value.offset > 2 * 65_000
    assert fastprof.info(data, from_="cpuprofile", lenient=True).facts["totals"]["samples"] == 1


def of_ids(*ids: str) -> bytes:
    """A profile whose nodes f0, f1 ... have these ids, as JSON, and each one sample, the first one more."""
    nodes = (f'{{"id":{one},"parent":1,"callFrame":{{"functionName":"f{i}"}}}}' for i, one in enumerate(ids))
    root = '{"id":1,"callFrame":{"functionName":"(root)"}}'
    samples = ",".join([*ids, ids[0]])
    deltas = ",".join(["10"] * (len(ids) + 1))
    times = f'"startTime":0,"endTime":90,"samples":[{samples}],"timeDeltas":[{deltas}]'
    return f'{{"nodes":[{root},{",".join(nodes)}],{times}}}'.encode()


@pytest.mark.parametrize(
    "ids",
    [
        ("7", "8", "2147483647", "2147483648", "-3", "1e3", "1.5"),
        ('"7"', '"08"', '"x"', '"-3"', "12345678901234567890", '"0x1"'),
        ("3", '"4"', "0", "100000", "99999999999"),
    ],
)
def test_ids_of_any_size_and_kind(ids: tuple[str, ...]) -> None:
    found = convert_bytes(of_ids(*ids), "cpuprofile", "folded", Options(value="samples")).data.decode()
    assert sorted(found.splitlines()) == sorted(f"f{i} {1 + (i == 0)}" for i in range(len(ids)))


@pytest.mark.parametrize(
    ("node", "sample"), [("7", '"7"'), ('"7"', "7"), ('"-7"', "-7"), ('"99999999999"', "99999999999")]
)
def test_a_number_is_the_same_id_as_its_digits(node: str, sample: str) -> None:
    data = of_ids(node, "8").replace(f'"samples":[{node},'.encode(), f'"samples":[{sample},'.encode())
    assert convert_bytes(data, "cpuprofile", "folded", Options(value="samples")).data == b"f0 2\nf1 1\n"


def test_null_among_numbers() -> None:
    """A line may be null; a time may not, and the error names its place."""
    data = of_ids(*map(str, range(2, 30))).replace(b'"samples"', b'"lines":[3,null,4,5],"samples"')
    lines = fastprof.info(data, from_="cpuprofile").facts
    assert lines["samples"] == 29
    bad = data.replace(b"10,10,10,10,10,10,10,10", b"10,10,null,10,10,10,10,10", 1)
    with pytest.raises(FormatError) as raised:
        fastprof.info(bad, from_="cpuprofile")
    assert raised.value.offset == bad.index(b"10,10,null") + 6
    assert fastprof.info(bad, from_="cpuprofile", lenient=True).losses["unreadable-samples"] == 1
