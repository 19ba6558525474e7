"""Our pprof files against pprof's own conversions, as `go tool pprof -raw` shows both."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from fastprof.engine import Options
from tests.differential import pprof_raw
from tests.paths import SHARED, needs_shared, shared_data
from tests.stackdump import rewrite

pytestmark = needs_shared

# Why pprof's own conversion of a case differs, so that ours must not equal it.
PPROF_IS_WRONG = {
    "flat": "pprof deletes frames two and three of every record, as they are the same everywhere: real callers",
    "single": "the same, as there is one record",
    "depth0": "Parca and Perfetto refuse samples without locations: ours gets one called [no stack]",
}
PPROF_CANNOT_READ = {
    "header5": "five header words",
    "symbolized": "the symbolized form",
    "cut_in_last_record": "pprof invents frames at 0xffffffffffffffff, ours is an error",
}


def cases() -> list[Path]:
    return sorted(shared_data("gperftools").glob("*/*.prof")) if SHARED else []


def convert(path: Path, to: Path, options: Options | None = None) -> Path:
    from_ = "pprof" if path.suffix in {".gz", ".pb"} else "gperftools"
    data = path.read_bytes()
    to.write_bytes(rewrite(data, from_, "pprof" if to.suffix == ".pb" else "gperftools", options)[0])
    return to


@pytest.mark.parametrize("path", cases(), ids=lambda p: p.stem)
def test_our_conversion_is_that_of_pprof(path: Path, tmp_path: Path) -> None:
    if path.stem in PPROF_CANNOT_READ:
        pytest.skip(PPROF_CANNOT_READ[path.stem])
    ours = pprof_raw.raw(convert(path, tmp_path / "ours.pb"))
    theirs = pprof_raw.raw(path)
    assert ours.header == theirs.header
    assert ours.types == theirs.types
    assert (ours.samples == theirs.samples) == (path.stem not in PPROF_IS_WRONG)


@pytest.mark.parametrize("path", cases(), ids=lambda p: p.stem)
def test_what_we_write_reads_back_the_same(path: Path, tmp_path: Path) -> None:
    """gperftools -> pprof -> gperftools, read by pprof, is the file that pprof reads at first."""
    if path.stem in PPROF_CANNOT_READ or path.stem in {"leaf0_deep", "depth0"}:
        pytest.skip("unreadable, or has frames without address")
    via = convert(path, tmp_path / "ours.pb")
    assert pprof_raw.raw(convert(via, tmp_path / "back.prof")).samples == pprof_raw.raw(path).samples


def test_what_pprof_cannot_read(tmp_path: Path) -> None:
    """Five header words change nothing; the symbolized form has the same samples, with names."""
    edge = shared_data("gperftools", "edge")
    plain, header5, symbolized = (
        pprof_raw.raw(convert(edge / f"{name}.prof", tmp_path / f"{name}.pb")).samples
        for name in ("plain", "header5", "symbolized")
    )
    assert header5 == plain

    def leaves(samples: Counter[tuple[object, ...]]) -> Counter[tuple[object, ...]]:
        """By depth and leaf: google-pprof has moved callers' addresses already, so they are taken as they stand."""
        total: Counter[tuple[object, ...]] = Counter()
        for (stack, _, k), n in samples.items():
            total[len(stack), stack[0][0], k] += n
        return total

    count = {key: n for key, n in leaves(symbolized).items() if key[2] == 0}
    assert count == {key: n for key, n in leaves(plain).items() if key[2] == 0}
    names = {frame[2].split(" ")[0] for stack, _, _ in symbolized for frame in stack}
    assert "fn0" in names


def test_flat_keeps_its_callers(tmp_path: Path) -> None:
    path = shared_data("gperftools", "flat", "flat.prof")
    stacks = {len(stack) for stack, _, _ in pprof_raw.raw(convert(path, tmp_path / "ours.pb")).samples}
    assert stacks == {6}  # pprof leaves 4


@pytest.mark.parametrize("report", ["-top", "-traces"])
@pytest.mark.parametrize("case", ["threads", "recurse", "host", "stripped", "recurse32", "threads-be64"])
def test_reports_are_the_same(case: str, report: str, tmp_path: Path) -> None:
    path = shared_data("gperftools", case, f"{case}.prof")
    ours = convert(path, tmp_path / "ours.pb")
    texts = [pprof_raw.go_pprof(report, "-symbolize=none", "-nodecount=0", "-addresses", p) for p in (path, ours)]
    # the order of equals is that of ids
    assert sorted(texts[0].splitlines()) == sorted(texts[1].splitlines())


@pytest.mark.parametrize("case", ["threads", "recurse", "host", "flat"])
def test_google_pprof_agrees_on_totals(case: str, tmp_path: Path) -> None:
    path = shared_data("gperftools", case, f"{case}.prof")
    back = convert(convert(path, tmp_path / "ours.pb"), tmp_path / "back.prof")
    binary = shared_data("gperftools", "bin", case)
    totals = []
    for profile in (path, back):
        command = [pprof_raw.tool("google-pprof"), "--text", str(binary), str(profile)]
        text = subprocess.run(command, capture_output=True, text=True).stdout
        totals.append(re.findall(r"Total: (\d+) samples", text))
    assert totals[0] == totals[1] != []


@pytest.mark.parametrize("name", ["cpulabels", "heap", "block", "goroutine"])
def test_profiles_of_the_go_runtime_are_kept(name: str, tmp_path: Path) -> None:
    path = shared_data("pprof", f"go-{name}.pb.gz")
    ours = convert(path, tmp_path / "ours.pb")
    raw = [pprof_raw.go_pprof("-raw", "-symbolize=none", p) for p in (path, ours)]
    assert raw[0] == raw[1]


def test_period_overrides_the_header(tmp_path: Path) -> None:
    path = shared_data("gperftools", "host", "host.prof")
    ours = pprof_raw.raw(convert(path, tmp_path / "ours.pb", Options(period_us=4000)))
    assert "Period: 4000000" in ours.header
