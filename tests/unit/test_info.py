"""The text of `fastprof info`: header fields, dates and units; --json has exact numbers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import fastprof
from fastprof.bridges.fold import accumulators
from fastprof.cli import main
from fastprof.cli.text import utc
from fastprof.core.errors import UsageError
from fastprof.core.figures import quantity
from tests.support.paths import CORPUS

HEADER = b"""version: 1
creator: callgrind-3.19.0
pid: 4711
cmd: ./demo -n 5
desc: I1 cache: 32768 B, 64 B, 8-way associative
desc: D1 cache:
desc: Trigger: Program termination
events: Ir

fn=main
1 7
"""


def shown(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, str]:
    """The printed table."""
    assert main(["info", *words]) == 0
    lines = (line.split("  ", 1) for line in capsys.readouterr().out.replace("\n  ", "\n").splitlines())
    return {name: "".join(rest).strip() for name, *rest in lines}


def test_header_of_callgrind(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "callgrind.out"
    path.write_bytes(HEADER)
    rows = shown(capsys, str(path))
    assert rows["creator"] == "callgrind-3.19.0" and rows["process"] == "4711" and rows["command"] == "./demo -n 5"
    assert rows["I1 cache"] == "32768 B, 64 B, 8-way associative" and "D1 cache" not in rows
    facts = fastprof.info(path).facts
    assert (facts["pid"], facts["trigger"]) == (4711, "Program termination")
    assert facts["descriptions"] == {"I1 cache": "32768 B, 64 B, 8-way associative"}


def test_data_that_another_option_reads(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", str(CORPUS / "perfetto" / "good" / "mixed.pftrace")]) == 0
    _, unread = capsys.readouterr().out.split("\nnot read\n")
    assert [line.split(maxsplit=1) for line in unread.splitlines()] == [
        ["6", "samples with call stacks (-O perfetto.data=samples reads these)"],
        ["5", "stacks in heap dumps (-O perfetto.data=allocations reads these)"],
    ]


@pytest.mark.parametrize(
    ("file", "repair"),
    [
        ("trace-event/good/sampled_mixed.json", "fractional weights, rounded"),
        ("otlp/good/v1.10-both.otlp", "attributes that are neither text nor whole numbers, kept as text"),
        (
            "perf/good/made-newer-deferred.data",
            "samples whose user stacks were never recorded, kept without them",
        ),
    ],
)
def test_data_read_with_a_change_is_repaired(file: str, repair: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", str(CORPUS / file)]) == 0
    table, _, unread = capsys.readouterr().out.partition("\nnot read\n")
    assert repair in table.split("\nrepairs")[1] and repair not in unread


def test_counters_that_did_not_change_are_not_missing(capsys: pytest.CaptureFixture[str]) -> None:
    """They have no rows, and no sum lacks anything."""
    assert main(["info", str(CORPUS / "perf/good/made-read-group.data")]) == 0
    assert "not read" not in capsys.readouterr().out


def test_differing_headers_are_listed_and_cut(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "callgrind.out"
    path.write_bytes(b"".join(b"part: %d\npid: %d\nevents: Ir\nfn=f\n1 1\n\n" % (i, i) for i in range(1, 9)))
    assert shown(capsys, str(path))["process"] == "1, 2, 3, 4, 5, and 3 more"
    assert fastprof.info(path).facts["pid"] == [*range(1, 9)]


def test_a_timeline_is_folded_without_call_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are far more than the arcs that `top` adds up, and not shown."""
    path = CORPUS / "trace-event/good/06_x_overlap.json"
    monkeypatch.delattr(accumulators.Paths, "merge")
    assert fastprof.info(path).facts["records"] > 0
    with pytest.raises(AttributeError):
        fastprof.convert(path, "/dev/null", to="folded")


def test_dates_units_and_exact_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    path = str(CORPUS / "pprof/good/go-cpulabels.pb")
    rows = shown(capsys, path)
    assert rows["recorded at"].endswith(" UTC") and rows["recorded at"].startswith("20")
    assert rows["period"] == "10.0 ms of cpu"
    assert main(["info", path, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)["facts"]
    assert facts["units"] == {"samples": "count", "cpu": "nanoseconds"}
    assert rows["cpu"] == quantity(facts["totals"]["cpu"], "nanoseconds")
    assert rows["duration"] == quantity(facts["duration_ns"], "nanoseconds")
    assert rows["contexts"] == f"{facts['contexts']:,} (functions, each with its callers)"


def test_times_of_samples_are_those_with_a_time(tmp_path: Path) -> None:
    rows = fastprof.open(CORPUS / "perf/good/made-basic-be.data").rows()
    times = [row["ts"] for row in rows if row["ts"]]
    facts = fastprof.info(CORPUS / "perf/good/made-basic-be.data").facts
    assert times and (facts["first_time_ns"], facts["last_time_ns"]) == (min(times), max(times))
    assert "first_time_ns" not in fastprof.info(CORPUS / "folded/good/plain.folded").facts
    fastprof.convert(CORPUS / "perf/good/made-basic-be.data", tmp_path / "x.fpa", symbolize=False)
    archived = fastprof.info(tmp_path / "x.fpa").facts  # from the index
    assert (archived["first_time_ns"], archived["last_time_ns"]) == (min(times), max(times))
    fastprof.convert(CORPUS / "folded/good/plain.folded", tmp_path / "y.fpa")
    assert "first_time_ns" not in fastprof.info(tmp_path / "y.fpa").facts


def test_what_json_states_of_itself(tmp_path: Path) -> None:
    """Only the document's own strings, shortened to fit; not those of frames and of events."""
    frames = [{"name": "f", "exporter": "x"}]
    sampled = {"type": "sampled", "name": "p", "unit": "none", "startValue": 0, "endValue": 1}
    profile = {"exporter": "rbspy\u00e9", "shared": {"frames": frames, "name": "no"}, "name": "n" * 300}
    profile["profiles"] = [sampled | {"samples": [[0]], "weights": [1]}]
    facts = fastprof.info(json.dumps(profile).encode()).facts
    assert (facts["exporter"], facts["name"]) == ("rbspy\u00e9", "n" * 256)

    event = {"ph": "X", "name": "f", "ts": 1, "dur": 1, "pid": 1, "tid": 1, "args": {"metadata": {"a": "no"}}}
    meta = {
        "os": "Linux",
        "cut": {"deep": "no"},
        "list": ["no"],
        "long": "x" * 5000,
        "nul": "\0",
        "cores": 8,
        "v": "\n",
    }
    for trace in (
        {"traceEvents": [event], "metadata": meta, "otherData": {"version": "1"}},
        {"metadata": meta, "otherData": {"version": "1"}, "traceEvents": [event | {"ts": 5}, event]},
    ):
        facts = fastprof.info(json.dumps(trace).encode()).facts
        assert facts["metadata"] == {"os": "Linux", "cores": "8", "v": "\n", "version": "1"}
    many = {"metadata": {f"key {i}": f"value {i}" for i in range(1000)}, "traceEvents": [event]}
    found = fastprof.info(json.dumps(many).encode()).facts["metadata"]
    assert found.items() <= many["metadata"].items() and 100 < len(found) < 1000


def test_moments() -> None:
    assert utc(0) == "1970-01-01 00:00:00.000 UTC"
    assert utc(1_795_240_840_003_356_045) == "2026-11-21 06:00:40.003 UTC"
    assert utc(1 << 62) == "2116-02-20 23:53:38.427 UTC"
    assert utc((1 << 64) * 1000) == f"{(1 << 64) * 1000:,} ns"
    assert [quantity(n, unit) for n, unit in ((0, "ns"), (1536, "bytes"), (5, "frogs"), (5, "count"))] == [
        "0", "1.50 KiB", "5 frogs", "5",
    ]  # fmt: skip


@pytest.mark.parametrize("words", [["bad"], ["bad", "bad"], ["none"]])
def test_json_of_nothing_readable(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bad").write_text("bad")
    assert main(["info", "--json", "--keep-going", *words]) == 1
    said = capsys.readouterr()
    assert json.loads(said.out)["profiles"] == [] and f"warning: {words[0]}: " in said.err


def test_options_of_other_verbs_are_refused_before_the_file_is_opened() -> None:
    with pytest.raises(UsageError, match="unknown option 'root'"):
        fastprof.info("no such file", root="main")


def test_functions_are_counted_as_top_lists_them(tmp_path: Path) -> None:
    """Overloads, which differ in their signatures, are one function; also in an archive, which has a summary."""
    recording, archive = CORPUS / "jfr/good/real-async.jfr.gz", tmp_path / "a.fpa"
    fastprof.convert(recording, archive)
    rows = {(row.name, row.file, row.object) for row in fastprof.top(recording, n=0, cycles=False).rows}
    assert len(rows) == 130
    for path in (recording, archive):
        assert fastprof.info(path).facts["functions"] == len(rows)
