"""Chrome traces of real programs: overlapping calls, times that are negative or out of order, and text that is not
quite JSON."""

from __future__ import annotations

import gzip
import io
import json
from collections import Counter
from collections.abc import Iterator
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

import fastprof
from fastprof.core._c import lib
from fastprof.core.errors import FormatError
from fastprof.core.thread_names import ThreadNames
from tests.support.paths import CORPUS

GOOD = CORPUS / "trace-event/good"
KINETO = GOOD / "kineto-cpu-stack.json.gz"
X = '{"ph":"X","name":"f","ts":1,"dur":2,"pid":1,"tid":1}'


def events(*calls: tuple[Any, ...]) -> bytes:
    """`("X", name, ts, dur)` or `(phase, name, ts)` of one thread."""
    keys = ("ph", "name", "ts", "dur")
    return json.dumps([{**dict(zip(keys, call, strict=False)), "pid": 1, "tid": 7} for call in calls]).encode()


def spans(path: Path | bytes, **options: Any) -> Iterator[tuple[str, str, int, int]]:
    """Thread, function, begin and duration of each call that ends."""
    with fastprof.open(path, from_="trace-event", **options) as profile:
        model = profile._model
        open_: dict[int, list[tuple[int, int]]] = {}
        found = []
        for batch in profile:
            columns = (batch[name].tolist() for name in ("op", "time", "thread", "function"))
            for op, time, thread, function in zip(*columns, strict=True):
                if op in (lib.FP_OP_ENTER, lib.FP_OP_ENTER_ARGS):
                    open_.setdefault(thread, []).append((function, time))
                elif op == lib.FP_OP_EXIT:
                    begun, begin = open_[thread].pop()
                    assert begun == function
                    found.append((thread, function, begin, time - begin))
        names = ThreadNames(model)
        for thread, function, begin, lasts in found:
            input_, pid, tid = model.row("threads", thread)
            name = names.thread(input_, pid, tid) or names.id(input_, tid)
            yield name, model.get_function(function).name.decode(), begin, lasts


def repairs(path: Path | bytes, **options: Any) -> dict[str, int]:
    log = fastprof.info(path, from_="trace-event", **options)
    return {entry["code"]: entry["count"] for entry in log.repairs.entries()}


def sums(path: Path | bytes, **options: Any) -> Counter[str]:
    found: Counter[str] = Counter()
    for _, name, _, lasts in spans(path, **options):
        found[name] += lasts
    return found


# ---- overlapping calls


def test_each_call_of_pytorch_has_its_full_duration() -> None:
    """An annotation begins within one Python function and ends within another: it was cut at the end of the first."""
    expected: Counter[str] = Counter()
    for event in json.loads(gzip.decompress(KINETO.read_bytes()))["traceEvents"]:
        if event["ph"] == "X" and event["cat"] != "Trace":
            expected[event["name"]] += round(event["dur"] * 1000)
    assert sums(KINETO) == expected and expected["## forward ##"] > 224_000_000
    assert repairs(KINETO) == {"divided-calls": 54}


def test_a_call_goes_to_the_first_lane_in_which_it_nests() -> None:
    data = events(("X", "a", 0, 10), ("X", "b", 5, 20), ("X", "c", 8, 30), ("X", "d", 11, 5), ("X", "e", 26, 3))
    assert sorted(spans(data)) == [
        ("7", "a", 0, 10_000),
        ("7", "d", 11_000, 5_000),
        ("7", "e", 26_000, 3_000),
        ("thread 7 [2]", "b", 5_000, 20_000),
        ("thread 7 [3]", "c", 8_000, 30_000),
    ]
    assert repairs(data) == {"overlapping-calls": 2}


def test_a_nanosecond_of_rounding_is_cut() -> None:
    data = events(("X", "a", 0, 0.010), ("X", "b", 0.005, 0.006), ("X", "c", 0.02, 0.01), ("X", "d", 0.025, 0.007))
    assert sorted(spans(data)) == [
        ("7", "a", 0, 10),
        ("7", "b", 5, 5),
        ("7", "c", 20, 10),
        ("thread 7 [2]", "d", 25, 7),
    ]
    assert repairs(data) == {"overlapping-calls": 1, "cut-calls": 1}


def test_lanes_have_numbers_that_no_thread_has_and_the_names_of_their_threads() -> None:
    calls = [*json.loads(events(("X", "a", 0, 10), ("X", "b", 5, 10)))]
    calls += [{**call, "tid": (1 << 31) - 1} for call in calls]
    calls.append({"ph": "M", "name": "thread_name", "pid": 1, "tid": 7, "args": {"name": "stream 7"}})
    names = {thread for thread, *_ in spans(json.dumps(calls).encode())}
    assert names == {"stream 7", "stream 7 [2]", "2147483647", "thread 2147483647 [2]"}


@pytest.mark.parametrize("to", ["trace-event", "speedscope", "xray", "archive"])
def test_lanes_survive_where_there_are_threads(to: str, tmp_path: Path) -> None:
    fastprof.convert(GOOD / "overlap-annotation.json", tmp_path / "out", to=to)
    rows = fastprof.top(tmp_path / "out", n=0, from_=to).rows  # XRay logs have no names
    assert sorted(row.self for row in rows) == [10_000, 300_000, 1_000_000]


def test_calls_that_all_overlap() -> None:
    """Each begins within the one before and ends after it: one lane per call, without quadratic time."""
    n = 4_000
    data = events(*(("X", f"f{i % 9}", i, n) for i in range(n)))
    assert {lasts for *_, lasts in spans(data)} == {n * 1000} and len({thread for thread, *_ in spans(data)}) == n


# ---- times


def test_times_below_0_shift_the_file() -> None:
    """Bazel writes events before its own zero with a begin of minus their duration."""
    assert sorted(spans(GOOD / "negative-begin.json")) == [
        ("40", "Launch Blaze", 0, 36_000_000),
        ("40", "parse", 56_000_000, 100_000_000),
        ("40", "runAnalysisPhase", 48_000_000, 3_700_000_000),
    ]
    assert repairs(GOOD / "negative-begin.json") == {"negative-times": 1}


@pytest.mark.parametrize("other", [(), (("X", "other", 20, 1),)])
def test_begins_and_ends_out_of_order(other: tuple[Any, ...]) -> None:
    data = events(("B", "inner", 1), ("E", "inner", 9), ("B", "outer", 0), ("E", "outer", 10), *other)
    expected = [("7", "inner", 1000, 8000), ("7", "other", 20_000, 1000), ("7", "outer", 0, 10_000)]
    assert sorted(spans(data)) == [span for span in expected if other or span[1] != "other"]


@pytest.mark.parametrize("late", [(), (("B", "late", 0),)])
def test_ends_of_one_time_end_the_inner_calls_in_any_order(late: tuple[Any, ...]) -> None:
    """Trace Processor's result, also if the events are sorted first (`late`)."""
    begins = [("B", "a", 0), ("B", "b", 0), ("B", "a", 1), ("B", "c", 1), ("B", "b", 1)]
    for ends in permutations("abc"):
        data = events(*begins, *(("E", name, 2) for name in ends), ("E", "a", 10), ("E", "b", 10), *late)
        inner = [("7", "a", 1_000, 1_000), ("7", "b", 1_000, 1_000), ("7", "c", 1_000, 1_000)]
        assert [span for span in sorted(spans(data)) if span[2]] == inner, ends
        assert sums(data) == {"a": 11_000, "b": 11_000, "c": 1_000} | ({"late": 10_000} if late else {})
        assert repairs(data) == ({"unwound-frames": 1} if late else {})


def test_ends_of_other_times_unwind() -> None:
    data = events(("B", "a", 0), ("B", "b", 1), ("E", "a", 2), ("E", "b", 3))
    assert repairs(data) == {"unwound-frames": 1, "orphan-exits": 1}
    again = events(("B", "a", 0), ("B", "b", 1), ("E", "a", 2), ("B", "c", 2), ("E", "b", 2), ("E", "c", 3))
    assert sums(again) == {"a": 2_000, "b": 1_000, "c": 1_000}
    assert repairs(again) == {}


@pytest.mark.parametrize("samples", ["[]", "[ \n ]", "[" + " " * 200 + "]"])
def test_a_table_without_samples(samples: str) -> None:
    data = events(("I", "hi", 1)).decode()
    log = fastprof.info(f'{{"traceEvents": {data}, "samples": {samples}}}'.encode())
    assert (log.facts["view"], log.facts["events"], [*log.not_representable.entries()]) == ("timeline", 1, [])


def test_an_end_before_its_begin_in_the_file() -> None:
    data = events(("E", "a", 10), ("B", "a", 0), ("B", "b", 2), ("E", "", 3))
    assert sorted(spans(data)) == [("7", "a", 0, 10_000), ("7", "b", 2000, 1000)]
    assert repairs(data) == {"nameless-ends": 1}


def test_many_begins_and_ends_out_of_order_with_arguments(tmp_path: Path) -> None:
    """More than are sorted at once."""
    n = lib.FP_TRACE_EVENT_RECORDS
    calls = [
        {"ph": ph, "name": f"f{i % 7}", "ts": 10 * i + 4 * (ph == "E"), "pid": 1, "tid": i % 3, "args": {"arg0": i}}
        for i in range(n)
        for ph in "BE"
    ]
    path = tmp_path / "trace.json"
    path.write_text(json.dumps([*calls[n:], *calls[:n]]))
    with fastprof.open(path) as profile:
        ops: Counter[int] = Counter()
        arguments = 0
        for batch in profile:
            ops.update(batch["op"].tolist())
            rows = zip(batch["op"].tolist(), batch["aux"].tolist(), strict=True)
            arguments += sum(aux for op, aux in rows if op == lib.FP_OP_ARGUMENT)
    assert ops == {lib.FP_OP_ENTER_ARGS: n, lib.FP_OP_ARGUMENT: n, lib.FP_OP_EXIT: n} and arguments == n * (n - 1) // 2
    assert sum(sums(path).values()) == 4000 * n


def test_metadata_needs_no_time() -> None:
    meta = '{"ph":"M","pid":1,"tid":1,"ts":null,"name":"thread_name","args":{"name":"app"}}'
    assert [*spans(f"[{meta},{X}]".encode())] == [("app", "f", 1000, 2000)]
    with pytest.raises(FormatError, match='an event has no time, expected "ts"'):
        sums(f"[{X.replace(':1,', ':null,', 1)}]".encode())


def test_times_far_apart_can_be_written(tmp_path: Path) -> None:
    """Kineto writes time 0 for kernels whose record was lost, next to times since 1970."""
    path, out = tmp_path / "in.json", tmp_path / "out.trace.json"
    path.write_bytes(events(("X", "now", 1.7e15, 5), ("X", "lost", 0, 3)).replace(b'"tid": 7', b'"tid": 8', 1))
    fastprof.convert(path, out)
    assert sums(out) == {"now": 5000, "lost": 3000}


# ---- text

READ = {
    "byte order mark": (b"\xef\xbb\xbf[%s]", {"byte-order-marks": 1}),
    "NUL padding": (b"[%s]\n\0\0\0", {"nul-padding": 1}),
    "text behind the end": (b"[%s]\nDone.", {"rest-after-end": 1}),
    "a log line behind the end": (b"[%s]\n[2024-01-01 12:00:00] done", {"rest-after-end": 1}),
    "half a document behind the end": (b'[%s]\n{"traceEv', {"rest-after-end": 1}),
    "words": (b'[{"args":{"a":nan,"b":-inf,"c":-1.#IND,"d":NaN},' + b"%s]", {"bare-words": 4}),
    "backslashes": (b'[{"args":{"file":"C:\\Users\\u12"},' + b"%s]", {"bare-backslashes": 1}),
    "deep": (b'[{"args":' + b"[" * 3000 + b"]" * 3000 + b"," + b"%s]", {}),
    "array cut": (b'[%s,{"ph":"X","na', {"open-end": 1}),
    "object cut": (b'{"traceEvents":[%s,', {"open-end": 1}),
    "object cut in an event": (b'{"traceEvents":[%s,{"ph":"X","ts":5,"du', {"open-end": 1}),
    "metadata cut": (b'{"traceEvents":[%s],"traceName":"/tm', {"open-end": 1}),
    "array in array": (b"[[1],%s,null,7]", {"stray-elements": 3}),
    "escaped keys": (b'[{"p\\u0068":"\\u0058","n\\u0061me":"f","ts":1,"dur":2,"pid":1,"tid":1}]', {}),
}


@pytest.mark.parametrize("name", READ)
def test_text_that_is_not_quite_json(name: str) -> None:
    text, expected = READ[name]
    x = X.encode()
    data = text.replace(b",%s", b"," + x[1:]) if text.count(b"{") and b'"args"' in text else text.replace(b"%s", x)
    assert sums(data) == {"f": 2000}
    assert repairs(data) == expected
    killed = "cut" in name
    assert [*map(str, fastprof.info(data, from_="trace-event").warnings)] == (
        ["the trace is incomplete, as if its writer had been killed; the rest is missing"] * killed
    )


@pytest.mark.parametrize("bad", ['"ts":"abc"', '"ts":1e30', '"dur":"x"', '"ph":"XX"', '"ts":"a","dur":"b"'])
def test_an_event_that_is_unreadable_is_skipped(bad: str) -> None:
    """It was kept at time 0."""
    key = bad.split(":")[0]
    event = ",".join(bad if part.split(":")[0] == key else part for part in X.strip("{}").split(","))
    data = f"[{X.replace('f', 'g')},{{{event}}}]".encode()
    with pytest.raises(FormatError, match=r"(of|in) an event"):
        sums(data)
    assert sums(data, lenient=True) == {"g": 2000}
    losses = fastprof.info(data, from_="trace-event", lenient=True).losses
    assert [(entry["code"], entry["count"]) for entry in losses.entries()] == [("unreadable-events", 1)]


@pytest.mark.parametrize("second", ['[{"ph":"X" 5}]', '{"traceEvents":[7 8]}'])
def test_a_second_document_that_is_broken(second: str) -> None:
    """Once an event has begun, what follows is not skipped as text after the end."""
    with pytest.raises(FormatError, match="the next JSON token"):
        sums(f"[{X}]\n{second}".encode())


def test_an_array_without_its_end_is_no_warning() -> None:
    assert repairs(f"[{X},\n".encode()) == {"open-end": 1} and not fastprof.info(f"[{X},\n".encode()).warnings


@pytest.mark.parametrize(
    ("name", "expected"), [("5", "5"), ("null", "[unknown]"), ('""', "[unknown]"), ("-1.50", "-1.50")]
)
def test_names_that_are_no_texts(name: str, expected: str) -> None:
    assert sums(f"[{X}]".replace('"f"', name).encode()) == {expected: 2000}


def test_ids_beyond_64_bits_and_numbers_between_blanks() -> None:
    data = f"[{X}]".replace('"tid":1', '"tid":18446744073709551615').replace('"ts":1', '"ts":" 1 "').encode()
    assert [*spans(data)] == [("18446744073709551615", "f", 1000, 2000)]
    assert [*spans(data.replace(b"1615", b"1615.5"))] == [("18446744073709551615.5", "f", 1000, 2000)]


@pytest.mark.parametrize("phases", ["BE", "be"])
def test_a_call_longer_than_half_of_all_times(phases: str) -> None:
    one, far = {"name": "f", "pid": 1, "tid": 1, "id": 1}, 9_223_372_036_854_775
    data = json.dumps([{**one, "ph": ph, "ts": ts} for ph, ts in zip(phases, (-far, far), strict=True)]).encode()
    assert [span[1:] for span in spans(data)] == [("f", 0, 2 * far * 1000)]


@pytest.mark.parametrize("first", ["schemaVersion", "displayTimeUnit", "otherData", "metadata"])
def test_recognized_although_events_begin_far_behind(first: str) -> None:
    text = f'\ufeff{{"{first}":1,"deviceProperties":["{"x" * 20_000}"],"traceEvents":[{X}]}}'
    assert fastprof.info(text.encode()).facts["format"] == "trace-event"


def test_time_deltas_that_are_said_twice(tmp_path: Path) -> None:
    """Those in data are used, whichever come first, even if they exceed memory."""
    n = lib.FP_CHROME_KEPT + 10
    profile = {"nodes": [{"id": 2, "callFrame": {"functionName": "f"}}], "samples": [2] * n, "timeDeltas": [9] * n}
    for data in ({"cpuProfile": profile, "timeDeltas": [3] * n}, {"timeDeltas": [3] * n, "cpuProfile": profile}):
        begin = {"ph": "P", "name": "Profile", "id": 1, "pid": 1, "tid": 0, "ts": 0, "args": {"data": {"startTime": 0}}}
        path = tmp_path / "trace.json"
        path.write_text(json.dumps([begin, {**begin, "name": "ProfileChunk", "args": {"data": data}}]))
        rows = fastprof.top(path, n=0, value="time").rows
        assert {row.name: row.self for row in rows} == {"f": 3000 * (n - 1)}


@pytest.mark.parametrize(("deltas", "time"), [([10, 5], 5000), ([10, 5, 6, 7, 8], 11_000)])
def test_more_samples_than_time_deltas_or_fewer(deltas: list[int], time: int, tmp_path: Path) -> None:
    profile = {"nodes": [{"id": 2, "callFrame": {"functionName": "f"}}], "samples": [2, 2, 2]}
    data = {"startTime": 0, "cpuProfile": profile, "timeDeltas": deltas}
    path = tmp_path / "trace.json"
    path.write_text(json.dumps([{"ph": "P", "name": "ProfileChunk", "id": 1, "pid": 1, "args": {"data": data}}]))
    assert {row.name: row.self for row in fastprof.top(path, n=0, value="time").rows} == {"f": time}
    (entry,) = fastprof.info(path).repairs.entries()
    assert (entry["code"], entry["count"]) == ("unequal-deltas", abs(3 - len(deltas)))


def test_ends_and_begins_of_one_time_are_in_the_order_of_the_file(tmp_path: Path) -> None:
    """Times go back, so they are paired by time; the end at 0 comes before the begins at 0, and ends no call."""
    path = tmp_path / "in.json"
    events = ['{"ph":"B","name":"f","ts":1', '{"ph":"E","ts":0', *['{"ph":"B","name":"f","ts":0'] * 3]
    path.write_text("[" + ",".join(f'{event},"pid":1,"tid":1}}' for event in events) + "]")
    repairs = {entry["code"]: entry["count"] for entry in fastprof.info(path).repairs.entries()}
    assert repairs == {"orphan-exits": 1, "unfinished-calls": 4}


# ---- dialects


def test_lines_of_events() -> None:
    lines = f"{X}\n{X.replace('f', 'g')}\n"
    for text in (lines, lines.replace("\n", ",\n"), f"\ufeff {lines}"):
        assert sums(text.encode()) == {"f": 2000, "g": 2000}
    killed = fastprof.info(f'{lines}{{"ph":"X","na'.encode())
    assert killed.facts["events"] == 2 and len(killed.warnings) == 1
    assert repairs(f"{lines}Done.".encode()) == {"rest-after-end": 1}


def test_info_of_documents() -> None:
    name = '{"ph":"M","name":"process_name","pid":1,"tid":1,"args":{"name":"%s"}}'
    facts = fastprof.info("\n".join(f"[{X},{name % process}]" for process in "ab").encode()).facts
    assert facts["functions"] == 1 and facts["process_names"] == {"1": ["a", "b"]}


def test_documents_have_threads_of_their_own() -> None:
    """Two traces in one file: calls of one are not called by those of the other, and each counts from its own base."""
    base = 1_700_000_000_000_000_000
    first = f'{{"baseTimeNanoseconds":{base},"traceEvents":[{X}]}}'
    second = f'{{"traceEvents":[{X.replace("f", "g")}],"traceName":"b"}}'
    third = f'{{"baseTimeNanoseconds":{base + 500},"traceEvents":[{X.replace("f", "h")}]}}'
    data = f"{first}{second}\n{third}[]".encode()
    with fastprof.open(data, from_="trace-event") as profile:
        rows = fastprof.top(data, n=0).rows
        assert {row.name: (row.self, row.inclusive) for row in rows} == dict.fromkeys("fgh", (2000, 2000))
        times = [int(time) for batch in profile for time in batch["time"]]
    assert times == [base + 1000, base + 3000, 1000, 3000, base + 1500, base + 3500]
    assert fastprof.info(data).facts["documents"] == 4


def test_a_base_after_the_events_of_a_second_document() -> None:
    """Its events were silently off by the base."""
    first, late = f"[{X}]", f'{{"traceEvents":[{X}],"baseTimeNanoseconds":5000}}'
    assert [span[2] for span in spans(late.encode())] == [6000]
    with pytest.raises(FormatError, match='expected "baseTimeNanoseconds" before "traceEvents"') as error:
        sums(f"{first}{late}".encode())
    assert error.value.offset == len(first) + late.index("5000")
    log = fastprof.info(f"{first}{late}".encode(), lenient=True)
    assert dict(log.losses) == {"unreadable-events": 1} and log.facts["events"] == 2


@pytest.mark.parametrize("base", ["-5", "1e30", '"x"', "9223372036854775807"])
def test_a_base_that_is_no_time_is_not_added(base: str) -> None:
    data = f'{{"baseTimeNanoseconds":{base},"traceEvents":[{X}]}}'.encode()
    assert [*spans(data)] == [("1", "f", 1000, 2000)]


def test_negative_times_with_a_base_are_not_shifted() -> None:
    data = f'{{"baseTimeNanoseconds":10000,"traceEvents":[{X.replace(":1,", ":-4,", 1)}]}}'.encode()
    assert not repairs(data) and [span[2] for span in spans(data)] == [6000]


def category(name: str, cat: str, ph: str = "X") -> str:
    return f'{{"ph":"{ph}","name":"{name}","cat":"{cat}","ts":1,"dur":2,"pid":1,"tid":1}}'


def test_functions_of_two_categories_are_two() -> None:
    data = f"[{category('f', 'kernel')},{category('f', 'cpu_op')},{category('f', 'kernel')},{X}]".encode()
    found = fastprof.top(data, n=0)
    assert sorted((row.name, row.object, row.calls) for row in found.rows) == [
        ("f", "", 1),
        ("f", "cpu_op", 1),
        ("f", "kernel", 2),
    ]
    by_category = fastprof.top(data, by="category")
    assert by_category.by == "category"
    assert sum(row.self for row in by_category.rows) == 2000
    apart = f"[{category('f', 'kernel')},{category('g', 'cpu_op')}]".replace('"tid":1', '"tid":2', 1).encode()
    assert [row.name for row in fastprof.top(apart, object="kernel").rows] == ["f"]


def test_an_end_needs_no_category() -> None:
    begin, end = category("f", "net", "B"), category("f", "", "E").replace('"ts":1', '"ts":9')
    assert sums(f"[{begin},{end}]".encode()) == {"f": 8000} and not repairs(f"[{begin},{end}]".encode())


def asynchronous(*said: tuple[str, str, Any, int], **more: Any) -> bytes:
    return json.dumps(
        [
            {"ph": ph, "name": name, "id": id_, "ts": ts, "pid": 1, "tid": 1, "cat": "net", **more}
            for ph, name, id_, ts in said
        ]
    ).encode()


def test_asynchronous_calls_of_two_ids_never_nest() -> None:
    data = asynchronous(
        ("b", "A", 1, 10), ("b", "B", 2, 20), ("b", "C", 1, 30), ("e", "C", 1, 40), ("e", "B", 2, 50),
        ("e", "A", 1, 60), ("b", "D", 3, 60), ("n", "event", 3, 61), ("e", "", 3, 70),
    )  # fmt: skip
    assert sorted(spans(data)) == [
        ("async net", "A", 10_000, 50_000),
        ("async net", "C", 30_000, 10_000),
        ("async net", "D", 60_000, 10_000),
        ("async net [2]", "B", 20_000, 30_000),
    ]
    assert {row.name: row.self for row in fastprof.top(data, n=0).rows} == {
        "A": 40_000,
        "B": 30_000,
        "C": 10_000,
        "D": 10_000,
    }
    assert repairs(data) == {"nameless-ends": 1}


def test_ids_of_one_process_and_of_all() -> None:
    """`id2` states the scope; other ids belong to the process.  Other scopes, categories and names of S and F are other
    calls."""

    def of(pid: int, id2: dict[str, str], *said: tuple[str, str, Any, int], **more: Any) -> list[Any]:
        events = json.loads(asynchronous(*said, pid=pid, id2=id2, **more))
        return [{key: value for key, value in one.items() if key != "id"} for one in events]

    local, all_ = {"local": "0x1"}, {"global": "0x2"}
    events = [
        *of(1, local, ("b", "A", 0, 10)), *of(2, local, ("b", "B", 0, 20), ("e", "B", 0, 30)),
        *of(1, local, ("e", "A", 0, 40)),
        *of(1, all_, ("b", "G", 0, 50)), *of(2, all_, ("e", "G", 0, 60)),
        *of(1, local, ("b", "s", 0, 70), scope="x"), *of(1, local, ("e", "s", 0, 71), scope="y"),
        *of(1, local, ("S", "one", 0, 80), ("S", "two", 0, 81), ("F", "one", 0, 85), ("F", "two", 0, 86)),
    ]  # fmt: skip
    data = json.dumps(events).encode()
    assert {name: lasts for _, name, _, lasts in spans(data)} == {
        "A": 30_000,
        "B": 10_000,
        "G": 10_000,
        "one": 5000,
        "two": 5000,
    }
    assert repairs(data) == {"orphan-exits": 1, "unfinished-calls": 1}


def test_ends_that_stand_before_their_begins(tmp_path: Path) -> None:
    """Chrome's threads write their events in bursts."""
    data = asynchronous(("b", "A", 1, 10), ("e", "B", 2, 90), ("e", "A", 1, 95), ("b", "B", 2, 20))
    assert sorted(spans(data)) == [("async net", "A", 10_000, 85_000), ("async net [2]", "B", 20_000, 70_000)]
    assert not repairs(data)
    log = fastprof.convert(io.BytesIO(data), tmp_path / "out.trace.json")
    assert "idle-threads" not in log.not_representable  # those of the first reading


def test_calls_that_go_back_in_time_share_a_track() -> None:
    """Each had a thread of its own."""
    said = [(ph, "A", i, 9000 - 10 * i + (ph == "e")) for i in range(100) for ph in "be"]
    with fastprof.open(asynchronous(*said), from_="trace-event") as profile:
        assert sum(len(batch) for batch in profile) == 200 and profile._model.c.threads.n == 2


@pytest.mark.parametrize(("order", "name"), [("ct", "2147483647"), ("mct", "app"), ("ctm", "app"), ("tcm", "app")])
def test_a_thread_with_the_number_of_a_track(order: str, name: str) -> None:
    """Tracks get numbers from 2^31 - 1 down, before the threads further on in the file are known."""
    events = {
        "c": asynchronous(("b", "A", 1, 10), ("e", "A", 1, 20)).decode().strip("[]"),
        "t": X.replace('"tid":1', '"tid":2147483647'),
        "m": '{"ph":"M","name":"thread_name","pid":1,"tid":2147483647,"args":{"name":"app"}}',
    }
    calls = spans(f"[{','.join(events[part] for part in order)}]".encode())
    assert {thread: function for thread, function, *_ in calls} == {name: "f", "async net": "A"}


def test_an_end_is_searched_among_the_innermost_calls_of_its_id() -> None:
    """Ends far from their begins take no quadratic time."""
    for n, lost in ((4095, 0), (4096, 1)):
        calls = [("b", "A", 1, 0), *(("b", "B", 1, 1 + i) for i in range(n)), ("e", "A", 1, 5000)]
        assert repairs(asynchronous(*calls)).get("orphan-exits", 0) == lost


@pytest.mark.parametrize("form", ["0x{:x}", "request {}"])
@pytest.mark.parametrize("late", [False, True])
def test_many_ids_take_no_memory_once_their_calls_ended(form: str, late: bool) -> None:
    """Ids of calls that ended are forgotten, and slots are used again.  With an end that precedes its begin, too."""
    said = [(ph, "A", form.format(i), 2 * i + (ph == "e")) for i in range(20_000) for ph in "be"]
    said = [("e", "A", "late", 1 << 20), *said, ("b", "A", "late", 1 << 19)] if late else said
    with fastprof.open(asynchronous(*said, scope="x"), from_="trace-event") as profile:
        n = sum(len(batch) for batch in profile)
        assert (n, profile._model.c.threads.n, profile._model.c.strings.n < 20) == (len(said), 2, True)


def test_labels_tell_processes_apart() -> None:
    """PyTorch names the processes of all devices python."""
    meta = [{"ph": "M", "name": "process_name", "pid": 0, "args": {"name": "python"}}]
    meta += [{"ph": "M", "name": "process_labels", "pid": pid, "args": {"labels": f"GPU {pid}"}} for pid in (0, 1)]
    with fastprof.open(f"{json.dumps(meta)[:-1]},{X}]".encode(), from_="trace-event") as profile:
        sum(len(batch) for batch in profile)
        assert dict(profile._model.parts[0].extra["process_names"]) == {0: b"python (GPU 0)", 1: b"GPU 1"}


def test_what_is_counted_apart() -> None:
    more = ",".join(f'{{"ph":"{ph}","name":"a","ts":1,"pid":1,"tid":1}}' for ph in "CCstfNOD")
    found = {
        entry["code"]: entry["count"] for entry in fastprof.info(f"[{X},{more}]".encode()).not_representable.entries()
    }
    assert found == {"counter-values": 2, "flows": 3, "other-events": 3}


@pytest.mark.parametrize("args", ['"arg0":5', '"data":"00ff"', '"type":7', '"dims":[[1,2],[]]', '"a":null'])
@pytest.mark.parametrize("first", ["ph", "args"])
def test_arguments_of_a_complete_event_are_counted(args: str, first: str) -> None:
    keys = f'"args":{{{args}}}', '"ph":"X"'
    text = ",".join(keys if first == "args" else keys[::-1])
    profile = f'[{{{text},"name":"f","ts":1,"dur":2,"pid":1,"tid":1}},{X}]'.encode()
    found = fastprof.info(profile, from_="trace-event").not_representable.entries()
    assert {entry["code"]: entry["count"] for entry in found} == {"event-arguments": 1}


@pytest.mark.parametrize(
    "odd",
    ['"a\\x"', "nan", '"\\u12"', f"{'[' * 65}{']' * 65}", '"\\u0041\\n"', "[1,]", '{"a":1,}', "[ ]", "\n        {\t}"],
)
def test_values_that_are_read_in_two_ways(odd: str) -> None:
    """An event with a plain value is read whole, others token by token, as are those without the rest of the text."""
    event = f'{{"args":{{"v":{odd}}},"ph":"X","name":"g","ts":1,"dur":2,"pid":1,"tid":1}}'
    for profile in (f"[{event}]", f"[{event}"):
        assert sums(profile.encode()) == {"g": 2000}


@pytest.mark.parametrize("bad", ["[1", "[1}", '{"a"}', '{"a":}', "[1 2]", '{"a":1 "b":2}', "[,]"])
def test_arguments_that_are_not_json(bad: str) -> None:
    event = f'{{"ph":"X","args":{{"v":{bad}}},"name":"g","ts":1,"dur":2,"pid":1,"tid":1}}'
    with pytest.raises(FormatError):
        sums(f"[{event},{X}]".encode())


def test_ranks_become_labels(tmp_path: Path) -> None:
    for rank, dur in enumerate((2, 5)):
        (tmp_path / f"rank{rank}.json").write_text(f"[{X}]".replace('"dur":2', f'"dur":{dur}'))
    found = fastprof.top(sorted(tmp_path.glob("*.json")), by="label:rank", label_path="rank{rank}.json")
    assert {row.name: row.self for row in found.rows} == {"0": 2000, "1": 5000}
