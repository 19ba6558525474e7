"""No silent loss: writing nothing is an error, and dropped parts are reported with their share."""

from __future__ import annotations

from pathlib import Path

import pytest

import fastprof
from fastprof.cli import main
from tests.reference.profile_proto import Profile

NO_LINES = b"events: samples\nfn=main\n1 %d\nfn=f\n3 %d\n"
WITH_ADDRESSES = b"positions: instr line\nevents: samples\nfn=main\n0x10 1 75\nfn=f\n0 3 25\n"


@pytest.mark.parametrize("name", ["x.callgrind", "x.folded"])
def test_nothing_written_is_an_error(name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path, out = tmp_path / name, tmp_path / "out.prof"
    path.write_bytes(NO_LINES % (75, 25) if name == "x.callgrind" else b"main;f 3\n")
    assert main(["convert", str(path), "-o", str(out)]) == 2
    said = capfd.readouterr().err
    assert "no row can be written as gperftools: " in said
    assert f"{path}: " in said and "; it holds only addresses: write pprof or folded" in said
    assert not out.exists()


def test_a_profile_without_a_cost_is_not_written_in_silence(tmp_path: Path) -> None:
    """A graph has calls, and an archive keeps what it is given."""
    path = tmp_path / "x.callgrind"
    path.write_bytes(NO_LINES % (0, 0))
    for name in ("out.folded", "out.pb", "out.speedscope.json"):
        with pytest.raises(fastprof.FastprofError, match=r"x\.callgrind: no (row|sample) has a cost"):
            fastprof.convert(path, tmp_path / name)
        assert not (tmp_path / name).exists()
    for name in ("out.callgrind", "out.fpa"):
        fastprof.convert(path, tmp_path / name)


def test_a_difference_of_which_nothing_is_written_is_an_error(tmp_path: Path) -> None:
    """Folded stacks hold no negative values.  An empty difference is not a loss."""
    old, new, out = tmp_path / "old.folded", tmp_path / "new.folded", tmp_path / "out.folded"
    old.write_text("main;f 5\n")
    new.write_text("main;f 3\n")
    with pytest.raises(fastprof.UsageError, match="no row can be written as folded: 1 stack with a negative value"):
        fastprof.diff(old, new, out)
    assert not out.exists()
    fastprof.diff(old, old, out)
    assert out.read_bytes() == b""


def test_times_of_which_no_tick_is_left_are_an_error(tmp_path: Path) -> None:
    source = Profile(string_table=["", "time", "nanoseconds"])
    source.sample_type.add(type=1, unit=2)
    source.location.add(id=1, address=4096)
    source.sample.add(location_id=[1], value=[4_999_999])
    source.sample.add(location_id=[1], value=[0])
    (tmp_path / "x.pb").write_bytes(source.SerializeToString())
    with pytest.raises(fastprof.FastprofError, match=r"below half of the period \(10,000 us\)"):
        fastprof.convert(tmp_path / "x.pb", tmp_path / "x.prof")
    assert not (tmp_path / "x.prof").exists()
    fastprof.convert(tmp_path / "x.pb", tmp_path / "x.prof", period_us=1)
    assert fastprof.info(tmp_path / "x.prof").facts["totals"]["samples"] == 5000


def test_a_part_is_said_with_its_share(tmp_path: Path) -> None:
    path = tmp_path / "x.callgrind"
    path.write_bytes(WITH_ADDRESSES)
    log = fastprof.convert(path, tmp_path / "out.prof", frames="address")
    assert log.rows["samples_written"] == 1
    assert log.warnings == [
        "25.0 % of the cost is dropped: samples that have no address, are negative or rounded to 0",
    ]
    path.write_bytes(NO_LINES % (75, -25))
    log = fastprof.convert(path, tmp_path / "out.folded")
    assert log.warnings == ["25.0 % of the cost is dropped: stacks with negative values, or rounded to 0"]


def test_frames_left_out_are_said(tmp_path: Path) -> None:
    path = tmp_path / "x.callgrind"
    arc = b"cfn=f\ncalls=1 0x20 3\n0 1 25\n"
    path.write_bytes(WITH_ADDRESSES.replace(b"75\n", b"75\n" + arc).replace(b"0 3 25", b"0x20 3 25"))
    log = fastprof.convert(path, tmp_path / "out.prof", frames="address")
    assert log.warnings == ["25.0 % of the cost is in stacks that lose frames without an address"]
