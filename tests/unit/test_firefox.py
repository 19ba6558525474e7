"""Profiles for the Firefox Profiler: the thread of a sample, units, places, and spilled data."""

from __future__ import annotations

import gzip
import json
import os
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import fastprof
from fastprof.core.errors import FormatError
from fastprof.core.options import Options
from tests.contract.dump import dump
from tests.reference import firefox, profile_proto
from tests.support.conversions import convert_bytes
from tests.support.paths import CORPUS
from tests.support.xraylog import BasicLog, FdrLog


def proto(types: list[tuple[str, str]], samples: list[tuple[list[int], list[int]]]) -> bytes:
    """Functions 1, 2 ... are named f1, f2; location 9 is f2 inlined into f1, and has an address."""
    p = profile_proto.Profile()
    strings = [""]

    def string(text: str) -> int:
        strings.append(text)
        return len(strings) - 1

    for type_, unit in types:
        p.sample_type.add(type=string(type_), unit=string(unit))
    p.mapping.add(
        id=1, memory_start=0x1000, memory_limit=0x9000, file_offset=0x100, filename=string("/usr/lib/lib x.so")
    )
    for i in (1, 2, 3):
        p.function.add(id=i, name=string(f"f{i}"), filename=string(f"{i}.c"), start_line=10 * i)
        p.location.add(id=i).line.add(function_id=i, line=i)
    inlined = p.location.add(id=9, mapping_id=1, address=0x1234)
    inlined.line.add(function_id=2, line=7)
    inlined.line.add(function_id=1, line=5)
    p.location.add(id=8, mapping_id=1, address=0x2000)
    for path, values in samples:
        p.sample.add(location_id=path, value=values)
    p.string_table.extend(strings)
    return bytes(p.SerializeToString())


def test_a_thread_for_each_value_type_and_units_in_milliseconds() -> None:
    types = [
        ("samples", "count"),
        ("cpu", "nanoseconds"),
        ("wall", "microseconds"),
        ("long", "seconds"),
        ("b", "bytes"),
    ]
    data = proto(types, [([2, 1], [3, 1_500_000, 2500, 7, 4096]), ([1], [1, -1, -1_000_010, 0, -5])])
    threads = firefox.read(convert_bytes(data, "pprof", "firefox").data)
    assert [(t.name, t.weight_type) for t in threads] == [
        ("samples", "samples"),
        ("cpu", "tracing-ms"),
        ("wall", "tracing-ms"),
        ("long", "tracing-ms"),
        ("b", "bytes"),
    ]
    weights = [[str(weight) for _, _, weight in t.samples] for t in threads]
    assert weights == [["1", "3"], ["-0.000001", "1.5"], ["-1000.01", "2.5"], ["0", "7000"], ["-5", "4096"]]
    assert {tuple(path for _, path, _ in t.samples) for t in threads} == {(("f1",), ("f1", "f2"))}


@pytest.mark.parametrize("default", ["", "samples", "cpu"])
def test_the_default_value_type_comes_back(default: str) -> None:
    """Of pprof's it is the last, unless stated."""
    types = [("samples", "count"), ("cpu", "nanoseconds"), ("b", "bytes")]
    p = profile_proto.parse(proto(types, [([1], [1, 2000, 3])]))
    if default:
        p.default_sample_type = len(p.string_table)
        p.string_table.append(default)
    data = convert_bytes(p.SerializeToString(), "pprof", "firefox").data
    assert convert_bytes(data, "firefox", "folded").data == {"samples": b"f1 1\n", "cpu": b"f1 2\n"}.get(
        default, b"f1 3\n"
    )
    profile = json.loads(data)
    del profile["meta"]["defaultValueType"]  # as written by fastprof before it stated it
    assert convert_bytes(json.dumps(profile).encode(), "firefox", "folded").data == b"f1 1\n"


def test_places(tmp_path: Path) -> None:
    data = proto([("n", "count")], [([9, 3], [1]), ([8], [2])])
    done = convert_bytes(data, "pprof", "firefox", Options(symbolize=False))
    (thread,) = firefox.read(done.data)
    assert [path for _, path, _ in thread.samples] == [("f3", "f1", "f2"), ("[lib x.so+0x1100]",)]
    profile = json.loads(done.data)
    frames, funcs = profile["shared"]["frameTable"], profile["shared"]["funcTable"]
    strings, files = profile["shared"]["stringArray"], profile["shared"]["sources"]["filename"]
    rows = [
        (
            strings[funcs["name"][frame]],
            frames["address"][i],
            frames["inlineDepth"][i],
            frames["line"][i],
            None if funcs["source"][frame] is None else strings[files[funcs["source"][frame]]],
            funcs["lineNumber"][frame],
            funcs["resource"][frame],
            frames["category"][i],
        )
        for i, frame in enumerate(frames["func"])
    ]
    # outermost first; the address is relative to the file
    assert rows == [
        ("f3", -1, 0, 3, "3.c", 30, -1, 0),
        ("f1", 0x334, 0, 5, "1.c", 10, 0, 1),
        ("f2", 0x334, 1, 7, "2.c", 20, 0, 1),
        ("[lib x.so+0x1100]", 0x1100, 0, None, None, None, 0, 1),
    ]
    assert [lib["path"] for lib in profile["libs"]] == ["/usr/lib/lib x.so"]
    assert [category["name"] for category in profile["meta"]["categories"]] == ["Other", "lib x.so"]


def test_addresses_count_from_the_first_byte_of_a_library_that_is_mapped() -> None:
    """Segments lie farther apart in memory than in the file.  Only b.so states where it begins."""
    p = profile_proto.Profile(string_table=["", "n", "count", "/a.so", "/b.so"])
    p.sample_type.add(type=1, unit=2)
    for i, (start, offset, name) in enumerate([(0x9000, 0x2000, 3), (0x50000, 0, 4), (0x53000, 0x2000, 4)], 1):
        p.mapping.add(id=i, memory_start=start, memory_limit=start + 0x3000, file_offset=offset, filename=name)
        p.location.add(id=i, mapping_id=i, address=start + 0x10)
    p.sample.add(location_id=[1, 2, 3], value=[1])
    texts = [convert_bytes(bytes(p.SerializeToString()), "pprof", "firefox", Options(symbolize=False)).data]
    texts.append(convert_bytes(texts[0], "firefox", "firefox", Options(symbolize=False)).data)
    for text in texts:
        profile = json.loads(text)
        frames, funcs = profile["shared"]["frameTable"], profile["shared"]["funcTable"]
        libs = [profile["libs"][funcs["resource"][func]] for func in frames["func"]]
        assert [
            (lib["path"], lib.get("addresses"), address) for lib, address in zip(libs, frames["address"], strict=True)
        ] == [("/b.so", "base", 0x3010), ("/b.so", None, 0x10), ("/a.so", None, 0x2010)]


def test_threads_of_samples_stay_apart() -> None:
    from tests.support.xraylog import ProfilingLog

    log = ProfilingLog()
    for tid in (5, 6):
        log.block(tid)
        log.row([1], 1, 10 * tid)
    threads = firefox.read(convert_bytes(log.bytes(), "xray", "firefox").data)
    assert [t.name for t in threads] == ["time, thread 5", "calls, thread 5", "time, thread 6", "calls, thread 6"]
    assert [dict(t.self_) for t in threads] == [{"#1": 50}, {"#1": 1}, {"#1": 60}, {"#1": 1}]


def test_two_timelines_begin_at_the_same_time(tmp_path: Path) -> None:
    for name, start in (("one", 5_000_000), ("two", 3_000_000)):
        log = BasicLog(frequency=10**9)
        log.enter(1, start).enter(2, start + 1).exit(2, start + 1).exit(1, start + 2_000_001)
        (tmp_path / f"{name}.xray").write_bytes(log.bytes())
    out = tmp_path / "out.profile.json"
    report = fastprof.convert([tmp_path / "one.xray", tmp_path / "two.xray"], out)
    one, two = firefox.read(out.read_bytes())
    assert (one.process, two.process) == ("one.xray", "two.xray (1)")
    assert [str(t.samples[0][0]) for t in (one, two)] == ["2", "0"]
    assert [dict(t.self_) for t in (one, two)] == [{"#1": Decimal("2.000001")}] * 2
    assert report.not_representable["empty-calls"] == 2


def test_idle_time_is_no_cost(tmp_path: Path) -> None:
    """Between two calls a thread has no stack: the profiler leaves these samples out of its totals, and so do we."""
    (tmp_path / "in.json").write_text(
        '[{"ph":"X","name":"f","ts":10,"dur":5,"pid":1,"tid":1},{"ph":"X","name":"f","ts":100,"dur":7,"pid":1,"tid":1}]'
    )
    fastprof.convert(tmp_path / "in.json", tmp_path / "out.profile.json")
    found = fastprof.top(tmp_path / "out.profile.json")
    assert (found.total, found.rows[0].name, found.rows[0].self) == (12_000, "f", 12_000)
    assert found.total == fastprof.top(tmp_path / "in.json").total
    assert found.log.not_representable["idle-samples"] == 1


def test_what_is_written_away_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Little memory for columns and call paths: the same samples."""
    log = FdrLog(5, frequency=10**9)
    for n in range(40):
        buffer = log.buffer(tid=n % 7 + 1, pid=1, seconds=n).cpu(0, n * 1000)
        for i in range(50):
            buffer.enter(i % 13 + 1, 1).enter(n % 5 + 20, 1).custom(b"x").exit(n % 5 + 20, 1).exit(i % 13 + 1, 1)
    data = log.bytes()
    expected = firefox.read(convert_bytes(data, "xray", "firefox").data)
    from fastprof.formats.firefox import write

    new = write.lib.fp_firefox_new

    class Small:
        """The C library, whose writers soon drop call paths."""

        def __getattr__(self, name: str) -> object:
            return getattr(real, name)

        def fp_firefox_new(self, model: object) -> object:
            made = new(model)
            made.max_paths = 3
            return made

    real = write.lib
    monkeypatch.setattr(write, "_BUFFERED", 10)
    monkeypatch.setattr(write, "lib", Small())
    assert firefox.read(convert_bytes(data, "xray", "firefox", capacity=3).data) == expected


def test_names_of_threads_are_those_of_the_source() -> None:
    text = b"""[{"name":"main","ph":"B","ts":1,"pid":4,"tid":7}, {"name":"main","ph":"E","ts":2,"pid":4,"tid":7},
    {"name":"process_name","ph":"M","pid":4,"args":{"name":"server"}},
    {"name":"thread_name","ph":"M","pid":4,"tid":7,"args":{"name":"worker"}}]"""
    (thread,) = firefox.read(convert_bytes(text, "trace-event", "firefox").data)
    assert (thread.process, thread.pid, thread.name, thread.tid) == ("server", "4", "worker", 7)
    assert dict(thread.self_) == {"main": Decimal("0.001")}


def test_a_damaged_weight_is_that_of_its_sample_alone() -> None:
    stacks = [([k], [k * 1_000_000]) for k in (1, 2, 3)]
    made = json.loads(convert_bytes(proto([("cpu", "nanoseconds")], stacks), "pprof", "firefox").data)
    made["threads"][0]["samples"]["weight"][0] = []
    found = convert_bytes(json.dumps(made).encode(), "firefox", "folded", options=Options(lenient=True))
    assert {line.rpartition(b" ")[0].rpartition(b";")[2]: line.split()[-1] for line in found.data.splitlines()} == {
        b"f2": b"2000",
        b"f3": b"3000",
    }


@pytest.mark.parametrize("step", [0, 1, 200, 60_000, 1 << 20, 1 << 40])
@pytest.mark.parametrize("odd", [None, 0, -1, 255, 65_535, (1 << 32) - 1, 1 << 32, -(1 << 40)])
def test_columns_of_numbers_of_any_size(step: int, odd: int | None) -> None:
    """They are packed in blocks of 512, by what their numbers need; null is not the number with all bits set."""
    made = json.loads(convert_bytes(proto([("b", "bytes")], [([1], [1])]), "pprof", "firefox").data)
    samples = made["threads"][0]["samples"]
    weights = [7 + step * (i % 250) for i in range(1100)]
    weights[600] = weights[1050] = odd
    weights[601], weights[1051] = 7 + 255, 7 + 254
    samples |= {"length": 1100, "stack": samples["stack"] * 1100, "weight": weights, "weightType": "bytes"}
    samples["time"] = [i / 1000 for i in range(1100)]
    with fastprof.open(json.dumps(made).encode(), from_="firefox") as profile:
        found = [value for batch in profile for value in batch.values(0).tolist()]
    assert found == [1 if weight is None else weight for weight in weights]


def in_texts(process: dict[str, Any]) -> dict[str, Any]:
    """Libraries and child processes as texts, as Gecko wrote them before version 4."""
    children = [json.dumps(in_texts(one)) for one in process.pop("processes", [])]
    return process | {"libs": json.dumps(process["libs"]), "threads": children + process["threads"]}


def rows_first(value: Any) -> Any:
    """The profile with the rows of each table before its schema."""
    if isinstance(value, list):
        return [rows_first(one) for one in value]
    if not isinstance(value, dict):
        return value
    return {key: rows_first(value[key]) for key in sorted(value, key=lambda key: key == "schema")}


def test_rows_before_their_schema() -> None:
    data = (CORPUS / "firefox" / "good" / "gecko-24.json").read_bytes()
    early = json.dumps(rows_first(json.loads(data))).encode()
    assert early.index(b'"data"') < early.index(b'"schema"')
    rows, markers = dump(data, from_="firefox"), Options(firefox_markers=True)
    assert dump(early, from_="firefox") == dump(gzip.compress(early), from_="firefox") == rows
    in_texts_too = json.dumps(rows_first(in_texts(json.loads(early)))).encode()
    assert dump(in_texts_too, from_="firefox") == rows
    one, other = (convert_bytes(text, "firefox", "trace-event", markers).data for text in (data, early))
    assert one == other and b'"ph"' in one

    # a second schema of such a table, and one that cannot be read again
    damaged = early.replace(b'"schema": {"location"', b'"schema": {"location": 70}, "schema": {"location"')
    with pytest.raises(FormatError, match=r"at byte \d+: the position of a column"):
        dump(damaged, from_="firefox")
    processed = early.replace(b'{"meta": {', b'{"meta": {"preprocessedProfileVersion": 60, ')
    read, write = os.pipe()
    os.write(write, processed)
    os.close(write)
    with (
        os.fdopen(read, "rb") as pipe,
        pytest.raises(FormatError, match=r"rows of a table come before its schema, expected a file, not a pipe"),
    ):
        fastprof.info(pipe, from_="firefox")


def test_libraries_and_child_processes_in_texts() -> None:
    data = (CORPUS / "firefox" / "good" / "gecko-24.json").read_bytes()
    old = json.dumps(in_texts(json.loads(data)))
    assert '\\\\\\"' in old  # a text in a text
    rows = dump(data, from_="firefox")
    assert len(rows) > 50 and dump(old.encode(), from_="firefox") == rows

    for damage, what in (
        (old.replace('"threads": ["{', '"threads": ["{1'), "the JSON in a text is malformed"),
        (old.replace('"threads": ["{', '"threads": ["1", "{'), "a thread is not an object"),
        (old.replace('"threads": ["{', f'"threads": [{deep(9)}, "{{'), "JSON in texts is nested too deep"),
    ):
        assert damage != old
        with pytest.raises(FormatError, match=rf"at byte \d+: {what}"):
            dump(damage.encode(), from_="firefox")
        assert fastprof.info(damage.encode(), from_="firefox", lenient=True).losses


def test_many_stacks_that_add_no_frame() -> None:
    """They are their caller's: to walk along them for each sample would take 10^10 steps."""
    n = 100_000
    profile = json.loads((CORPUS / "firefox" / "good" / "version-41.json").read_bytes())
    thread = profile["threads"][0]
    prefixes, frames = [None, *range(n - 1)], [0, *[None] * (n - 1)]
    thread["stackTable"] = {"prefix": prefixes, "frame": frames, "category": [0] * n, "length": n}
    thread["samples"] = {"stack": [*range(n)], "time": [*range(n)], "length": n}
    profile["threads"] = [thread]
    assert len(fastprof.top(json.dumps(profile).encode(), n=0).rows) == 1


def deep(n: int) -> str:
    """A text in a text, n times."""
    return json.dumps(deep(n - 1) if n else "")
