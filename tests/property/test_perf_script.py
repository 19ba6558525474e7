"""The text of perf script: printed samples are read in any window; any other lines read the same in any window."""

from __future__ import annotations

from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from fastprof.core.errors import FastprofError
from fastprof.core.options import Options
from tests.reference import perf_script as reference
from tests.support.stackdump import dump

NAMES = ["main", "operator()", "f(int) const", "(anonymous namespace)::g", "RegExp:[&<>\"'](x) y", "a;b", "[unknown]"]
OBJECTS = ["/opt/app", "/opt/with blank.so", "/opt/app (deleted)", "[kernel.kallsyms]", "[unknown]", "/tmp/perf-7.map"]
COMMS = ["demo", "V8 Worker 1/2 x", "a:b", "kworker/0:1", "1 2", "x (y) [z"]
EVENTS = ["cpu-clock", "cycles:u", "cpu/event=0x3c,umask=0x0/", "sched:sched_switch"]
CHUNK = st.sampled_from([None, 1, 2, 7, 100])
CAPACITY = st.sampled_from([None, 1, 3])


class Style(NamedTuple):
    pid: bool
    cpu: bool
    decimals: int
    chain: bool
    offsets: bool


SAMPLE = st.builds(
    reference.Sample,
    st.sampled_from(COMMS),
    st.tuples(st.integers(1, 99999), st.integers(1, 99999)),
    st.integers(0, 10**12).map(lambda us: us * 1000),
    st.sampled_from(EVENTS),
    st.integers(0, (1 << 63) - 1),
    st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(OBJECTS)), min_size=1, max_size=5).map(tuple),
)
STYLE = st.builds(Style, st.booleans(), st.booleans(), st.sampled_from([6, 9]), st.booleans(), st.booleans())


def printed(sample: reference.Sample, style: Style) -> str:
    """The sample as printed by perf."""
    pid, tid = sample.thread
    thread = f"{pid:5d}/{tid:<5d}" if style.pid else f"{tid:5d}"
    cpu = "[003] " if style.cpu else ""
    time = f"{sample.time_ns // 10**9:5d}.{sample.time_ns % 10**9:09d}"[: None if style.decimals == 9 else -3]
    comm = sample.comm if style.chain else f"{sample.comm:>16}"
    start = f"{comm} {thread} {cpu}{time}: {sample.period:10d} {sample.event}: "
    offset = "+0x25" if style.offsets else ""
    places = [f"{0x400100 + i:16x} {name}{offset} ({object_})" for i, (name, object_) in enumerate(sample.stack)]
    if not style.chain:
        return f"{start} {places[0]}\n"
    return "".join([start, "\n", *(f"\t{place}\n" for place in places), "\n"])


@given(st.lists(SAMPLE, min_size=1, max_size=6), STYLE, CHUNK, CAPACITY)
def test_what_is_printed_is_read(
    samples: list[reference.Sample], style: Style, chunk: int | None, capacity: int | None
) -> None:
    text = "".join(printed(sample, style) for sample in samples)
    found = dump(text.encode(), "perf-script", chunk=chunk, capacity=capacity, options=Options())
    # the slow reader joins one-line samples that no blank line separates
    blocks = text if style.chain else text.replace("\n", "\n\n")
    slow = reference.read(blocks)
    assert [(s.comm, s.thread[1], s.time_ns, s.event, s.period) for s in slow] == [
        (s.comm, s.thread[1], s.time_ns, s.event, s.period) for s in samples
    ]
    stacks = [[name for name, _ in s.stack] for s in samples]
    assert [[name for name, _ in s.stack] for s in slow] == [s if style.chain else s[:1] for s in stacks]
    assert [[f[3][0][0].decode() for f in stack] for stack, _, _ in found.rows] == [
        [name for name, _ in s.stack] for s in slow
    ]
    events = [*dict.fromkeys(s.event for s in samples)]
    assert [values for _, _, values in found.rows] == [
        tuple(v for event in events for v in ((1, s.period) if event == s.event else (0, 0))) for s in samples
    ]


PIECE = st.sampled_from(
    [
        *(b"demo", b" ", b"\t", b"  ", b"12", b"6598/6598", b"[001]", b"1593.383339:", b"1593.383339055:", b"250000"),
        *(b"cpu-clock:", b"cycles:u: ", b"PERF_RECORD_COMM: x", b"PERF_RECORD_NAMESPACES 1/1", b"\t\t[0/net: 4]"),
        *(
            b"7f844bb8199a",
            b"           400100",
            b"main+0x25",
            b"(/opt/app)",
            b"(inlined)",
            b"(/a (deleted))",
            b"([unknown])",
        ),
        *(b"#", b"# cmdline : perf record", b"Warning:", b"ABI:2", b"0x40/0x41/M/-/-/7", b"|", b"\r", b"\xff", b"\0"),
        *(b"demo.c:12", b"demo.c:11 (inlined)", b"18446744073709551615", b":", b"-1"),
    ]
)
LINE = st.lists(PIECE, max_size=7).map(b"".join)
GOOD = st.sampled_from(
    [
        b"demo  6598 [001]  1593.383339:     250000 cpu-clock: ",
        b"\t            1415 hot+0x25 (/srv/demo)",
        b"\t            1415 leaf (inlined)",
        b"  demo.c:12",
        b"",
    ]
)
TEXT = st.lists(st.one_of(LINE, GOOD), max_size=12).map(b"\n".join)


def outcome(data: bytes, chunk: int | None, capacity: int | None, options: Options) -> object:
    try:
        found = dump(data, "perf-script", chunk=chunk, capacity=capacity, options=options)
    except FastprofError as error:
        return str(error)
    return found.rows, found.log.repairs, found.log.losses, found.log.not_representable


@given(TEXT, CHUNK, CAPACITY, st.booleans(), st.booleans())
def test_windows_do_not_matter(
    data: bytes, chunk: int | None, capacity: int | None, lenient: bool, comm_frames: bool
) -> None:
    options = Options(lenient=lenient, comm_frames=comm_frames)
    whole = outcome(data, None, None, options)
    assert outcome(data, chunk, capacity, options) == whole
    assert not lenient or not isinstance(whole, str) or "no readable samples" in whole
