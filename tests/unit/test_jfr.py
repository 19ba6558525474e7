"""Flight recordings: names, value types, settings, clocks, chunks, timelines."""

from __future__ import annotations

import gzip
import io
import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, cast

import pytest

import fastprof
from fastprof.core import source
from fastprof.core.errors import FormatError, UsageError
from fastprof.core.streams import temporary_file
from tests.support.jfrfile import DURATION, THREAD, TYPES, Chunk, Field
from tests.support.paths import NO_SHARED, shared_folder
from tests.support.product import batches, open_input

WORK = ("app/Main", "work", "(I)V", 7, 3, "JIT compiled")
MAIN = ("app/Main", "main", "([Ljava/lang/String;)V", 3, 9, "Interpreted")
SHARED = shared_folder("jfr")


def folded(data: bytes, value: str | None = None, **options: Any) -> str:
    out = io.BytesIO()
    names = ("lenient", "nanoseconds")
    shared: dict[str, Any] = {name: options.pop(name) for name in names if name in options}
    shared |= {"jfr": options} | ({"value": value} if value else {})
    fastprof.convert(io.BytesIO(data), out, to="folded", **shared)
    return "".join(sorted(out.getvalue().decode().splitlines(keepends=True)))


def one_sample(frame: tuple[str, str, str, int, int, str] = WORK, **options: Any) -> str:
    chunk = Chunk()
    chunk.event("jdk.ExecutionSample", 1, chunk.thread("main", 1, 7), chunk.stack([frame, MAIN]), chunk.state("S"))
    return folded(chunk.bytes(), **options).rpartition(" ")[0]


def test_names_of_functions() -> None:
    assert one_sample() == "app/Main.main;app/Main.work"
    assert one_sample(kinds=True) == "app/Main.main_[0];app/Main.work_[j]"
    assert one_sample(signatures=True).endswith(";app/Main.work(I)V")
    for kind, letter in {"Inlined": "_[i]", "C1 compiled": "_[1]", "Native": "", "Kernel": "_[k]"}.items():
        assert one_sample(("a/B", "m", "()V", 1, 1, kind), kinds=True).endswith(f";a/B.m{letter}")


def test_code_that_is_not_javas_is_named_without_its_library() -> None:
    assert one_sample(("libc.so.6", "memcpy", "()L;", 0, 0, "Native")) == "app/Main.main;memcpy"
    assert one_sample(("", "do_idle", "(Lk;)L;", 0, 0, "Kernel"), kinds=True) == "app/Main.main_[0];do_idle_[k]"


@pytest.mark.parametrize(
    ("name", "joined"),
    [
        ("Work$$Lambda$88+0x00007f6cf8007a08/728258269", "Work$$Lambda"),
        ("Work$$Lambda.0x0000000084045210", "Work$$Lambda"),
        ("a/Work$$Lambda/0x0000000084045210", "a/Work$$Lambda"),
        ("java/lang/invoke/LambdaForm$MH+0x00007f/12", "java/lang/invoke/LambdaForm$MH"),
        ("Work$$Lambda$64/1103243338", "Work$$Lambda"),
        ("java/lang/invoke/LambdaForm$MH/1628002604", "java/lang/invoke/LambdaForm$MH"),
        ("a/12/B", "a/12/B"),
        ("$Proxy8", "$Proxy"),
        ("jdk/internal/reflect/GeneratedMethodAccessor12", "jdk/internal/reflect/GeneratedMethodAccessor"),
        ("a/B$1", "a/B$1"),
        ("a/B2", "a/B2"),
    ],
)
def test_numbers_of_hidden_classes_are_dropped_on_request(name: str, joined: str) -> None:
    frame = (name, "run", "()V", 1, 1, "Inlined")
    assert one_sample(frame) == f"app/Main.main;{name}.run"
    assert one_sample(frame, join_classes=True) == f"app/Main.main;{joined}.run"


def test_a_strange_name_is_standard_utf8() -> None:
    assert one_sample(("日本", "𝒳é", "()V", 1, 1, "Inlined")) == "app/Main.main;日本.𝒳é"


def test_the_class_of_an_object_is_a_label_and_on_request_a_frame() -> None:
    chunk = Chunk()
    thread, stack = chunk.thread("main", 1, 7), chunk.stack([WORK])
    for name in ("[[I", "[Ljava/util/Map$Entry;", "java/lang/String"):
        chunk.event("jdk.ObjectAllocationInNewTLAB", 1, thread, stack, chunk.class_(name), 16, 2048)
    assert folded(chunk.bytes(), "alloc_in_new_tlab_bytes") == "app/Main.work 6144\n"
    assert folded(chunk.bytes(), "alloc_in_new_tlab_objects", class_frames=True, kinds=True) == (
        "app/Main.work_[j];int[][]_[i] 1\n"
        "app/Main.work_[j];java.lang.String_[i] 1\n"
        "app/Main.work_[j];java.util.Map$Entry[]_[i] 1\n"
    )
    out = io.BytesIO()
    fastprof.convert(
        io.BytesIO(chunk.bytes()), out, to="folded", label=["class=int[][]"], value="alloc_in_new_tlab_objects"
    )
    assert out.getvalue() == b"app/Main.work 1\n"


def settled(sleeping: int = 2, /, **settings: str) -> Chunk:
    """10 samples; every `sleeping`th one is of a sleeping thread."""
    chunk = Chunk()
    thread, stack = chunk.thread("main", 1, 7), chunk.stack([WORK])
    for name, value in settings.items():
        type_ = "jdk.ActiveRecording" if name == "event" else "jdk.ExecutionSample"
        chunk.types.setdefault("jdk.ActiveRecording", ())
        chunk.ids.setdefault("jdk.ActiveRecording", 999)
        chunk.setting(type_, name, value)
    for i in range(10):
        chunk.event(
            "jdk.ExecutionSample",
            i,
            thread,
            stack,
            chunk.state("STATE_SLEEPING" if i % sleeping == 1 else "STATE_RUNNABLE"),
        )
    return chunk


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, {"samples": 5, "wall_samples": 5}),
        ({"period": "20 ms"}, {"samples": 5, "cpu": 100_000_000, "wall_samples": 5}),
        ({"period": "everyChunk"}, {"samples": 5, "wall_samples": 5}),
        ({"interval": "0"}, {"samples": 5, "cpu": 50_000_000, "wall_samples": 5}),
        ({"interval": "1000", "event": "wall"}, {"wall_samples": 10, "wall": 10_000}),
        ({"interval": "0", "event": "wall"}, {"wall_samples": 10, "wall": 500_000_000}),
        ({"interval": "1000", "event": "cache-misses"}, {"samples": 5, "cache-misses": 5000, "wall_samples": 5}),
    ],
)
def test_times_come_from_the_settings_of_the_recording(settings: dict[str, str], expected: dict[str, int]) -> None:
    data = settled(**settings).bytes()
    facts = fastprof.info(io.BytesIO(data)).facts
    assert facts["records"] == 10
    assert {name: value for name, value in facts["totals"].items() if value} == expected


def test_chunks_of_two_machines_do_not_share_names_or_clocks() -> None:
    one = Chunk(start_ns=10**18, ticks_per_second=10**9)
    one.event("jdk.ExecutionSample", 5, one.thread("one", 1, 7), one.stack([WORK]), one.state("S"))
    other = Chunk(start_ns=2 * 10**18, ticks_per_second=2 * 10**9, first_id=3000)
    other.event("jdk.ExecutionSample", 6, other.thread("other", 1, 7), other.stack([MAIN]), other.state("S"))
    data = one.bytes() + other.bytes()
    assert folded(data) == "app/Main.main 1\napp/Main.work 1\n"
    times = [time for batch in fastprof.open(io.BytesIO(data)).batches() for time in batch["time"]]
    assert times == [10**18 + 5, 2 * 10**18 + 3]


def test_a_chunk_that_was_not_finished_is_read_to_its_end() -> None:
    chunk = settled(100, period="20 ms")
    chunk.events.pop(2)
    out = io.BytesIO()
    log = fastprof.convert(io.BytesIO(chunk.bytes(finished=False) + chunk.bytes()), out, to="folded", value="samples")
    assert out.getvalue() == b"app/Main.work 18\n"
    assert log.repairs["unfinished-chunks"] == 1 and not log.losses


def test_a_constant_that_is_nowhere_is_counted_and_the_sample_kept() -> None:
    chunk = Chunk()
    chunk.event("jdk.ExecutionSample", 1, 99, 99, chunk.state("S"))
    log = fastprof.info(io.BytesIO(chunk.bytes()))
    assert log.facts["records"] == 1 and log.repairs["missing-constants"] == 2
    assert log.repairs["samples-without-stack"] == 1


def test_a_missing_method_counts_once_wherever_frames_refer_to_it() -> None:
    """Frames with the same bytes, frames of other lines, and one within the last bytes of all stacks."""
    chunk = Chunk()
    stacks = [chunk.stack([(*WORK[:3], line, *WORK[4:]), MAIN, WORK]) for line in (7, 7, 300)]
    chunk.pools["jdk.types.Method"].clear()
    for stack in stacks:
        chunk.event("jdk.ExecutionSample", 1, 0, stack, chunk.state("S"))
    assert fastprof.info(io.BytesIO(chunk.bytes() * 2)).repairs["missing-constants"] == 2 * 2


def test_a_truncated_stack_gets_a_root_on_request() -> None:
    chunk = Chunk()
    chunk.event("jdk.ExecutionSample", 1, 0, chunk.stack([WORK], truncated=True), chunk.state("S"))
    assert folded(chunk.bytes()) == "app/Main.work 1\n"
    assert folded(chunk.bytes(), truncated_roots=True) == "[truncated];app/Main.work 1\n"
    warnings = fastprof.info(io.BytesIO(chunk.bytes())).warnings
    assert any("the JVM truncated the stacks of 1 sample;" in line for line in warnings)


def test_a_field_of_another_type_is_an_error() -> None:
    fields = (Field("startTime", "long"), Field("stackTrace", "java.lang.String"))
    chunk = Chunk({"jdk.ExecutionSample": fields})
    chunk.event("jdk.ExecutionSample", 1, "main")
    with pytest.raises(FormatError, match=r"the type of a field of an event is .jdk\.ExecutionSample"):
        folded(chunk.bytes())
    log = fastprof.info(io.BytesIO(chunk.bytes()), lenient=True)
    assert log.losses["damaged-records"] == 1


def test_a_class_that_is_no_constant_belongs_to_its_own_event() -> None:
    """Texts of two events that stand at the same place of the window are not the same text."""
    type_ = "jdk.ObjectAllocationInNewTLAB"
    fields = [field._replace(type="java.lang.String", pool=False) if field.name == "objectClass" else field
              for field in TYPES[type_]]  # fmt: skip
    chunk = Chunk({type_: tuple(fields)})
    thread, stack = chunk.thread("main", 1, 7), chunk.stack([WORK])
    for i in range(400):
        chunk.event(type_, i, thread, stack, f"C{i:03}", 16, 2048)
    opened = open_input(chunk.bytes(), window=64)
    assert len({int(label) for batch in batches(opened) for label in batch["label"]}) == 400


def test_a_type_of_2_to_the_28th_fields_is_refused() -> None:
    """Each type has two fields of the next one, and the last one has none, so the value takes no bytes."""
    types = {f"n{i}": (Field("a", f"n{i + 1}"), Field("b", f"n{i + 1}")) for i in range(28)}
    event = (Field("startTime", "long"), Field("heapUsed", "long"))
    chunk = Chunk({**types, "n28": (), "jdk.GCHeapSummary": event})
    chunk.event("jdk.GCHeapSummary", 10, 5)
    chunk.types["jdk.GCHeapSummary"] = (*event, Field("all", "n0"))
    with pytest.raises(FormatError, match="an event is shorter than its fields"):
        fastprof.info(chunk.bytes(), jfr={"events": True})


def test_arguments_of_the_machine_are_not_shown() -> None:
    chunk = Chunk()
    chunk.event("jdk.JVMInformation", 0, "OpenJDK", "21.0.8", "-Dpassword=secret", 4711)
    facts = fastprof.info(io.BytesIO(chunk.bytes())).facts
    assert (facts["jvm"], facts["jvm_version"], facts["pid"]) == ("OpenJDK", "21.0.8", 4711)
    assert "secret" not in str(facts)


def test_damage_within_a_chunk_keeps_what_the_header_leads_to() -> None:
    chunk = settled(100)
    chunk.events.pop(1)
    chunk.events.insert(3, b"\1")
    with pytest.raises(FormatError, match="the size of a record"):
        folded(chunk.bytes())
    assert folded(chunk.bytes(), "samples", lenient=True) == "app/Main.work 3\n"


# ---- timelines


def spans() -> Chunk:
    """A waits 10..50, B within it, C overlaps A; in the order of their ends."""
    own = (Field("startTime", "long"), DURATION, THREAD, Field("name", "java.lang.String"))
    chunk = Chunk({"app.Step": own})
    thread = chunk.thread("worker", 1, 7)
    for begin, end, name in ((20, 30, "B"), (10, 50, "A"), (40, 60, "C"), (70, 70, "none")):
        chunk.event("app.Step", begin, end - begin, thread, name)
    chunk.event("jdk.ExecutionSample", 1, thread, chunk.stack([WORK]), chunk.state("S"))
    return chunk


def timeline(data: bytes) -> list[tuple[str, str, float, int]]:
    out = io.BytesIO()
    fastprof.convert(io.BytesIO(data), out, to="trace-event")
    events = json.loads(out.getvalue())["traceEvents"]
    start = min(event["ts"] for event in events if "ts" in event)
    return [(e["ph"], e["name"], round((e["ts"] - start) * 1000), e["tid"]) for e in events if e["ph"] in "BE"]


def test_events_with_durations_are_a_timeline_for_formats_of_timelines() -> None:
    found = timeline(spans().bytes())
    own = found[0][3]
    assert [event[:3] for event in found if event[3] == own] == [
        ("B", "app.Step: A", 0),
        ("B", "app.Step: B", 10),
        ("E", "app.Step: B", 20),
        ("E", "app.Step: A", 40),
    ]
    assert [event[:3] for event in found if event[3] != own] == [("B", "app.Step: C", 30), ("E", "app.Step: C", 50)]


def test_what_is_no_part_of_a_timeline_is_counted() -> None:
    out = io.BytesIO()
    log = fastprof.convert(io.BytesIO(spans().bytes()), out, to="perfetto")
    assert log.not_representable["instant-events"] == 1  # a sample
    assert log.repairs["overlapping-events"] == 1
    log = fastprof.convert(io.BytesIO(spans().bytes()), io.BytesIO(), to="folded")
    assert log.not_representable["timed-events"] == 3
    assert log.not_representable["side-events"] == 1  # without a duration


def counters() -> Chunk:
    """Values of the machine and of a thread, an instant of a thread and one of none."""
    time, load = Field("startTime", "long"), (Field("jvmUser", "float"), Field("machineTotal", "float"))
    chunk = Chunk(
        {
            "jdk.CPULoad": (time, *load),
            "jdk.GCHeapSummary": (time, Field("heapUsed", "long")),
            "jdk.ThreadStart": (time, THREAD),
            "jdk.BooleanFlag": (time, Field("name", "java.lang.String")),
            "app.Step": (time, DURATION, THREAD),
        }
    )
    thread = chunk.thread("worker", 1, 7)
    chunk.event("app.Step", 10, 20, thread)
    chunk.event("jdk.CPULoad", 12, 0.25, 0.5)
    chunk.event("jdk.CPULoad", 13, float("nan"), 1.0)
    chunk.event("jdk.GCHeapSummary", 14, 1 << 40)
    chunk.event("jdk.ThreadStart", 11, thread)
    chunk.event("jdk.BooleanFlag", 15, "Flag")
    return chunk


def test_values_of_structures_in_events() -> None:
    """The committed size of heapSpace; not fields of that name in a structure below it or in the event itself."""
    chunk = Chunk(
        {
            "jdk.types.VirtualSpace": (Field("other", "inner"), Field("committedSize", "long")),
            "inner": (Field("committedSize", "long"),),
            "jdk.GCHeapSummary": (
                Field("startTime", "long"),
                Field("committedSize", "long"),
                Field("heapSpace", "jdk.types.VirtualSpace"),
                Field("heapUsed", "long"),
            ),
        }
    )
    chunk.event("jdk.GCHeapSummary", 10, 3, ((7,), 1 << 30), 5)
    out = io.BytesIO()
    fastprof.convert(io.BytesIO(chunk.bytes()), out, to="trace-event", jfr={"events": True})
    events = json.loads(out.getvalue())["traceEvents"]
    values = {e["name"]: e["args"]["value"] for e in events if e["ph"] == "C"}
    assert values == {"jdk.GCHeapSummary.heapSpace.committedSize": 1 << 30, "jdk.GCHeapSummary.heapUsed": 5}


@pytest.mark.parametrize("memory", [1 << 14, 1 << 26])
def test_values_and_instants_of_a_timeline(memory: int) -> None:
    out = io.BytesIO()
    log = fastprof.convert(io.BytesIO(counters().bytes()), out, to="trace-event", max_memory=memory)
    events = json.loads(out.getvalue())["traceEvents"]
    start = min(event["ts"] for event in events if "ts" in event)
    found = [(e["name"], round((e["ts"] - start) * 1000), e["args"]) for e in events if e["ph"] == "C"]
    assert found == [
        ("jdk.CPULoad.jvmUser", 2, {"value": 0.25}),
        ("jdk.CPULoad.machineTotal", 2, {"value": 0.5}),
        ("jdk.CPULoad.machineTotal", 3, {"value": 1}),
        ("jdk.GCHeapSummary.heapUsed", 4, {"value": 1 << 40}),
    ]
    assert [(e["name"], round((e["ts"] - start) * 1000)) for e in events if e["ph"] in "iI"] == [("jdk.ThreadStart", 1)]
    assert log.not_representable["instant-events"] == 1  # an event without a thread


def test_a_timeline_is_read_on_request_and_from_several_files(tmp_path: Path) -> None:
    paths = [tmp_path / "a.jfr", tmp_path / "b.jfr"]
    for path in paths:
        path.write_bytes(spans().bytes())
    assert fastprof.info(paths[0], jfr={"events": True}).facts["view"] == "timeline"
    assert fastprof.info(paths[0]).facts["view"] == "stacks"
    log = fastprof.convert(paths, tmp_path / "out.trace.json")
    assert log.not_representable["instant-events"] == 2


def test_the_order_of_spans_does_not_depend_on_memory(tmp_path: Path) -> None:
    chunk = Chunk({"app.Step": (Field("startTime", "long"), DURATION, THREAD)})
    threads = [chunk.thread(f"t{i}", i + 1, i + 1) for i in range(3)]
    for i in range(3000):
        chunk.event("app.Step", (i * 7919) % 3000 * 10, 5 + i % 7, threads[i % 3])
    path = tmp_path / "x.jfr"
    path.write_bytes(chunk.bytes())
    one, other = tmp_path / "one.json", tmp_path / "other.json"
    fastprof.convert(path, one, to="trace-event")
    fastprof.convert(path, other, to="trace-event", max_memory=1 << 14)
    assert one.read_bytes() == other.read_bytes()


def test_a_file_of_stacks_has_no_timeline() -> None:
    with pytest.raises(UsageError, match="stacks have no begin and end of calls"):
        fastprof.convert(io.BytesIO(b"a;b 1\n"), io.BytesIO(), from_="folded", to="perfetto")


# ---- real recordings: async-profiler's own collapsed stacks


@pytest.mark.parametrize(
    ("name", "peer", "value", "class_frames"),
    [
        ("real-ap-25-all", "cpu", "samples", False),
        ("real-ap-25-all", "wall-samples", "wall_samples", False),
        ("real-ap-25-all", "nativemem", "malloc_bytes", False),
        ("real-ap-17-ctimer", "cpu", "samples", False),
        ("real-11-tlab", "alloc-total", "alloc_in_new_tlab_bytes alloc_outside_tlab_bytes", True),
        ("real-17-lock", "lock-total", "delay park_delay", True),
        ("real-25-cputime", "cputime", "cpu_time_samples", False),
    ],
)
def test_collapsed_stacks_are_those_of_async_profiler(name: str, peer: str, value: str, class_frames: bool) -> None:
    """Except for the kinds of frames: jfrconv shows one kind for all frames of a name below the same callers."""
    expected = SHARED / "expected" / f"{name}.jfrconv-{peer}.gz"
    if not expected.exists():
        pytest.skip(NO_SHARED)
    data = gzip.decompress((SHARED / f"{name}.jfr.gz").read_bytes())
    mine: Counter[str] = Counter()
    for one in value.split():
        mine += counted(folded(data, one, kinds=True, class_frames=class_frames, nanoseconds=True))
    assert mine == counted(gzip.decompress(expected.read_bytes()).decode())


def counted(text: str) -> Counter[str]:
    found: Counter[str] = Counter()
    for line in text.splitlines():
        stack, _, count = line.rpartition(" ")
        found[re.sub(r"_\[[0j1ik]\](?=;|$)", "", stack)] += int(count)
    return found


# ---- inputs that cannot seek


class Pipe(io.RawIOBase):
    """Bytes that can be read once."""

    def __init__(self, data: bytes) -> None:
        self._rest = io.BytesIO(data)

    def readable(self) -> bool:
        return True

    def readinto(self, into: Any) -> int:
        return self._rest.readinto(into)


Stream = cast("Callable[[bytes], IO[bytes]]", Pipe)


class Copied:
    """A temporary file, and the most bytes that it had at a time."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self.n = self.most = 0

    def write(self, data: bytes) -> int:
        n = int(self._file.write(data))
        self.n += n
        self.most = max(self.most, self.n)
        return n

    def truncate(self, size: int) -> None:
        assert not size
        self.n = 0
        self._file.truncate(0)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def growing() -> list[bytes]:
    """Chunks with value types that the earlier ones lack: before, among and after those."""
    chunks = []
    for number in range(4):
        chunk = Chunk(start_ns=10**18 + number * 10**9, first_id=100 + number)
        thread, class_ = chunk.thread("main", 1, 7), chunk.class_("a/C")
        if number:
            chunk.setting("jdk.ExecutionSample", "period", "20 ms")
        for i in range(50):
            stack = chunk.stack([(f"a/B{i % 7}", "m", "()V", i, 2, "Inlined")])
            state = chunk.state("STATE_SLEEPING" if number == 3 and i % 2 else "STATE_RUNNABLE")
            chunk.event("jdk.ExecutionSample", i, thread, stack, state)
            if number == 1:
                chunk.event("jdk.JavaMonitorEnter", i, 5, thread, stack, class_)
            if number == 2:
                chunk.event("jdk.ObjectAllocationInNewTLAB", i, thread, stack, class_, 16, 2048)
        chunks.append(chunk.bytes())
    return chunks


@pytest.mark.parametrize("target", ["pprof", "folded", "callgrind", "perfetto"])
@pytest.mark.parametrize("compress", [bytes, gzip.compress])
def test_a_stream_is_read_chunk_by_chunk(target: str, compress: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    files = list[Copied]()

    def watched() -> Any:
        files.append(Copied(temporary_file()))
        return files[-1]

    monkeypatch.setattr(source, "temporary_file", watched)
    chunks, out, expected = growing(), io.BytesIO(), io.BytesIO()
    options: dict[str, Any] = {"jfr": {"events": True}} if target == "perfetto" else {}
    fastprof.convert(io.BytesIO(b"".join(chunks)), expected, to=target, **options)
    assert not files
    fastprof.convert(Stream(compress(b"".join(chunks))), out, to=target, **options)
    assert out.getvalue() == expected.getvalue()
    assert [file.most for file in files] == [max(map(len, chunks))]


def test_facts_of_a_stream_are_those_of_the_file() -> None:
    data = b"".join(growing())
    facts, expected = fastprof.info(Stream(data)).facts, fastprof.info(io.BytesIO(data)).facts
    for name in ("records", "totals", "units", "chunks", "events", "first_time_ns", "last_time_ns", "threads"):
        assert facts[name] == expected[name]


def test_a_stream_among_other_inputs() -> None:
    """Later chunks of a stream bring other value types: its parts are one input."""
    data = b"".join(growing())
    for options in ({}, {"intersect": True}):
        both, expected = io.BytesIO(), io.BytesIO()
        log = fastprof.merge([Stream(data), io.BytesIO(data)], both, to="pprof", **options)  # type: ignore[arg-type]
        said = fastprof.merge([io.BytesIO(data), io.BytesIO(data)], expected, to="pprof", **options)  # type: ignore[arg-type]
        assert fastprof.info(both.getvalue()).facts["totals"] == fastprof.info(expected.getvalue()).facts["totals"]
        assert str(log.not_representable) == str(said.not_representable)
    out = io.BytesIO()
    assert "parts" not in str(fastprof.convert(Stream(data), out, to="folded").not_representable)


def test_a_stream_that_is_cut_or_not_finished() -> None:
    chunks = growing()
    with pytest.raises(FormatError, match=r"a chunk has \d+ bytes, but only \d+ follow") as error:
        folded_stream(b"".join(chunks)[:-10])
    assert error.value.offset == sum(map(len, chunks[:3])) + 8
    with pytest.raises(FormatError, match="the head of a chunk has 9 bytes"):
        folded_stream(b"".join(chunks) + chunks[0][:9])
    open_ = Chunk()
    open_.event("jdk.ExecutionSample", 1, open_.thread("main", 1, 7), open_.stack([WORK]), open_.state("S"))
    data = chunks[0] + open_.bytes(finished=False) + chunks[1]
    assert folded_stream(data) == folded(data)


@pytest.mark.parametrize("read", [io.BytesIO, Stream])
@pytest.mark.parametrize("is_time_first", [False, True])
def test_the_first_chunk_with_a_period_decides_what_is_sampled(read: Any, is_time_first: bool) -> None:
    settings: list[dict[str, str]] = [{}, {"period": "20 ms"}, {"interval": "1000", "event": "cache-misses"}]
    chunks = [settled(**one).bytes() for one in settings]
    first = chunks[0] + (chunks[1] + chunks[2] if is_time_first else chunks[2] + chunks[1])
    totals_ = fastprof.info(read(first)).facts["totals"]
    assert totals_["samples"] == 15
    expected = {"cpu": 100_000_000} if is_time_first else {"cache-misses": 5000}
    assert {name: totals_.get(name) for name in expected} == expected
    assert len({"cpu", "cache-misses"} & {*totals_}) == 1


def folded_stream(data: bytes) -> str:
    out = io.BytesIO()
    fastprof.convert(Stream(data), out, to="folded")
    return "".join(sorted(out.getvalue().decode().splitlines(keepends=True)))
