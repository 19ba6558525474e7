"""A reader that can represent no part of an input fails and reports it; an empty input is read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import fastprof
from fastprof import formats
from fastprof.core.engine import Reader
from fastprof.core.errors import FastprofError
from fastprof.core.log import Log
from fastprof.core.model import Model
from fastprof.core.options import Options
from fastprof.core.reported import Entry
from fastprof.core.source import Source
from tests.reference import memray, simpleperf, tachyon, uftrace
from tests.support import gpu_sqlite
from tests.support.conversions import OF_ANY
from tests.support.jfrfile import Chunk
from tests.support.oprofile import sample_file
from tests.support.perfdata import PerfData
from tests.support.xraylog import FdrLog

EMPTY_GRAPH = b"# callgrind format\nevents: Ir\n\ntotals: 0\n"
# By format: a valid input without rows.
EMPTY = {
    "massif": b"desc: (none)\ncmd: a\ntime_unit: i\n",
    "pstats": b"{0",
    "mojo": b"MOJ\3\1mode\0wall\0",
    "gprof": b"Flat profile:\n\nEach sample counts as 0.01 seconds.\n time   seconds   seconds    calls\n",
    "gmon": b"gmon\1\0\0\0" + bytes(12),
    "memray": memray.write(13, []),
    "llvm-profile": b"main:0:0\n",
    "bolt": b"no_lbr cycles\n",
    "heaptrack": b"v 10400 3\nX ./a\n",
    "tracer-stacks": b"Attaching 1 probe...\n",
    "rprof": b"sample.interval=20000\n",
    "ghc-prof": b"\tTime and Allocation Profiling Report\n\ttotal time = (9 ticks @ 1 us)\n\ttotal alloc = 5 bytes\n",
    "pyinstrument": b'{"start_time": 1, "duration": 2, "sample_count": 0, "root_frame": null}',
    "uftrace": uftrace.write({}),
    "simpleperf": simpleperf.write([]),
    "tachyon": tachyon.write([]),
    "stackprof": b'{"version":1.2,"mode":"cpu","interval":1000,"samples":0,"frames":{},"raw":[]}',
    "scalene": b'{"alloc_samples": 0, "elapsed_time_sec": 1, "files": {}}',
    "ghc-json": b'{"program": "a", "rts_arguments": [], "cost_centres": [{"id": 1, "label": "MAIN"}], "profile": '
    b'{"id": 1, "entries": 0, "alloc": 0, "ticks": 0, "children": []}}',
    "safari": b'{"version": 1, "recording": {"sampleStackTraces": [], "sampleDurations": []}}',
    "gpu-sqlite": gpu_sqlite.nsys({}),
    "xplane": b"\x0a\x0b\x12\x09/host:CPU",
    "instruments": b"Weight\tSelf Weight\tSymbol Names\n",
    "pprof-raw": b"PeriodType: cpu ns\nSamples:\ncpu/ns \nLocations\n",
    "luajit": b"[No samples collected]\n",
    "heapprofile": b'{"head":{"callFrame":{"functionName":"(root)"},"selfSize":0,"id":1,"children":[]}}',
    "dhat": b'{"dhatFileVersion":2,"mode":"ad-hoc","pps":[],"ftbl":["[root]"]}',
    "heap": b"heap profile: 0: 0 [0: 0] @ heapprofile\n",
    "xray": FdrLog().bytes(),
    "gperftools": b"".join(n.to_bytes(8, "little") for n in (0, 3, 0, 10_000, 0, 0, 1, 0)),
    "callgrind": EMPTY_GRAPH,
    "cachegrind": b"desc: I1 cache: 1\ncmd: ./a\nevents: Ir\nsummary: 0\n",
    "pprof": b"\x0a\4\x08\1\x10\2\x32\0\x32\7samples\x32\5count",
    "otlp": b'{"resourceProfiles":[],"dictionary":{"stringTable":[""]}}',
    "folded": b"# nothing was sampled\n",
    "perf": PerfData().bytes(),
    "jfr": Chunk().bytes(),
    "perf-script": b"# ========\n# captured on    : Sat Nov 21 20:47:50 2026\n#\n",
    "speedscope": b'{"$schema":"https://www.speedscope.app/file-format-schema.json","shared":{"frames":[]},"profiles":[]}',
    "trace-event": b'{"traceEvents":[{"ph":"M","name":"process_name","pid":1,"args":{"name":"idle"}}]}',
    "firefox": b'{"meta":{"preprocessedProfileVersion":60},"threads":[]}',
    "perfetto": b"\x0a\x07\x50\1\x68\1\xb8\5\1",
    "cpuprofile": b'{"nodes":[{"id":1,"callFrame":{"functionName":"(root)"}}],"startTime":1,"endTime":9,"samples":[],'
    b'"timeDeltas":[]}',
    "oprofile": sample_file([]),
}
READ = [f.name for f in formats.formats() if f.reader]


def empty_file(name: str, folder: Path) -> Path:
    path = folder / "unknown"
    if name == "archive":
        fastprof.convert(EMPTY_GRAPH, path, to="archive")
    else:
        path.write_bytes(EMPTY[name])
    return path


@pytest.mark.parametrize("name", READ)
def test_an_input_that_is_empty_is_read(name: str, tmp_path: Path) -> None:
    facts = fastprof.info(empty_file(name, tmp_path), from_=name).facts
    assert facts["format"] == name and facts["records"] == 0


WRITTEN = [(to, name) for to in OF_ANY if formats.get(to).reader for name in EMPTY]


@pytest.mark.parametrize(("to", "name"), WRITTEN)
def test_what_is_written_of_an_empty_profile_is_read_back(to: str, name: str, tmp_path: Path) -> None:
    """Recognized by its content; an empty file of folded stacks by its name."""
    out = tmp_path / f"out{formats.get(to).suffixes[0]}"
    try:
        fastprof.convert(empty_file(name, tmp_path), out, from_=name, to=to)
    except FastprofError:
        assert not out.exists()  # the format has no place for such a profile
        return
    named = out if to == "folded" else out.rename(tmp_path / "named-otherwise")
    facts = fastprof.info(named).facts
    assert facts["format"] == to and facts["records"] == 0


COUNTERS = Entry("other-events", "not_representable", "counter", "counters")


def spoiled(reader: type[Reader]) -> Callable[[Reader], None]:
    """`finish` of a reader that met only events that it cannot represent."""
    finish = reader.finish

    def finish_(self: Reader) -> None:
        self.log.count(COUNTERS, 3)
        finish(self)

    return finish_


@pytest.mark.parametrize("name", READ)
@pytest.mark.parametrize("lenient", [False, True])
def test_content_of_which_nothing_is_read_is_an_error(
    name: str, lenient: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = empty_file(name, tmp_path)
    with Source(str(path)) as source:
        reader = type(formats.get(name).reader_class()(source, Model(), Options(), Log()))
    monkeypatch.setattr(reader, "finish", spoiled(reader))
    out = tmp_path / "out.callgrind"
    with pytest.raises(FastprofError, match=rf"^{path}: {name}: no readable .*, only 3 counters"):
        fastprof.convert(path, out, from_=name, lenient=lenient)
    assert not out.exists()


def test_what_other_inputs_could_not_represent_does_not_count(tmp_path: Path) -> None:
    one, other = tmp_path / "one.json", tmp_path / "other.json"
    one.write_bytes(b'[{"ph":"X","name":"f","ts":1,"dur":2,"pid":1,"tid":1},{"ph":"s","name":"n","ts":1,"id":1}]')
    other.write_bytes(EMPTY["trace-event"])
    log = fastprof.merge([one, other], tmp_path / "out.callgrind")
    assert log.not_representable["flows"] == 1


@pytest.mark.parametrize("events", ["s f", "C", "N O D", "v"])
def test_a_trace_of_events_that_are_no_calls_is_an_error(events: str, tmp_path: Path) -> None:
    path = tmp_path / "x.trace.json"
    one = '{{"cat":"r","name":"step","id":"1","ph":"{}","ts":10,"pid":0}}'
    path.write_text(f"[{','.join(one.format(ph) for ph in events.split())}]")
    with pytest.raises(FastprofError, match=r"no readable calls or events, only \d (ends|value of a counter|event)"):
        fastprof.convert(path, tmp_path / "out.pb.gz")
    with pytest.raises(FastprofError, match=r"no readable samples, only \d call"):
        fastprof.convert(path, tmp_path / "out.pb.gz", samples=True)
