"""The text of perf script: which event is the default."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import fastprof
from tests.support.paths import CORPUS

TEXT = b"a 1/1 5.000001: 7 faults:\n\t1 f (/a)\n\na 1/1 5.000002: 9 cycles:u:\n\t1 f (/a)\n\n"
CYCLES, FAULTS = (b"# event : name = %s, , id = { 1, 2 }, size = 128\n" % name for name in (b"cycles:u", b"faults"))


@pytest.mark.parametrize(
    ("header", "default"),
    [
        (b"", "faults"),  # the first in the text
        (CYCLES + FAULTS, "cycles:u"),  # the first that was recorded
        (b"# event : name = never, , id = { 3 }\n" + CYCLES + FAULTS, "cycles:u"),
        (b"# event : nothing\n", "faults"),
    ],
)
def test_the_default_is_the_event_that_was_recorded_first(header: bytes, default: str) -> None:
    data = b"# ========\n# cmdline : /usr/bin/perf record ./a\n" + header + b"#\n" + TEXT
    assert fastprof.info(data, from_="perf-script").facts["default_value_type"] == default


def test_events_without_periods() -> None:
    data = (
        b"# ========\n"
        + CYCLES
        + FAULTS
        + b"#\n"
        + TEXT.replace(b" 7 faults", b" faults").replace(b" 9 cycles", b" cycles")
    )
    assert fastprof.info(data, from_="perf-script").facts["default_value_type"] == "cycles:u_samples"


def test_the_text_of_a_recording_and_the_recording_agree(tmp_path: Path) -> None:
    """Events of the header have value types, in this order, also before their first samples, and without any."""
    header = b"# ========\n" + b"".join(
        b"# event : name = %s, , id = { 1 }\n" % name for name in (b"none", b"cycles:u", b"faults", b"dummy:HG")
    )
    faults, cycles = TEXT.split(b"\n\n")[0] + b"\n\n", TEXT.split(b"\n\n")[1] + b"\n\n"
    text = header + b"#\n" + 30_000 * faults + cycles
    types = ["none_samples", "none", "cycles:u_samples", "cycles:u", "faults_samples", "faults"]
    facts = fastprof.info(text, from_="perf-script").facts
    assert [*facts["totals"]] == types
    assert facts["totals"]["none"] == 0 and facts["default_value_type"] == "cycles:u"
    found = fastprof.top(text, from_="perf-script")
    assert (found.value.name, found.total) == ("cycles:u", 9)
    fastprof.convert(text, tmp_path / "x.folded", from_="perf-script")
    assert (tmp_path / "x.folded").read_text() == "f 9\n"


def test_a_recording_that_perf_reads(tmp_path: Path) -> None:
    from tests.differential.peers import need

    recording, text = CORPUS / "answers/zero-first-event.data", tmp_path / "x.perf"
    done = subprocess.run([need("perf"), "script", "--header", "-i", recording], capture_output=True, check=True)
    text.write_bytes(done.stdout)
    one, other = fastprof.info(recording).facts, fastprof.info(text, from_="perf-script").facts
    assert [*one["totals"]] == [*other["totals"]]
    assert one["default_value_type"] == other["default_value_type"] == "cpu-clock"
    assert fastprof.top(recording, symbolize=False).total == fastprof.top(text, from_="perf-script").total
