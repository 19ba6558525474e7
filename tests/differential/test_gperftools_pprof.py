"""Our pprof files against pprof's own conversions, both through `go tool pprof -raw`."""

from __future__ import annotations

import gzip
import re
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest

import fastprof
from fastprof.core.options import Options
from tests.differential import pprof_raw
from tests.differential.peers import need
from tests.reference import profile_proto as reference
from tests.support.paths import REPO, SHARED, needs_shared, shared_data
from tests.support.stackdump import rewrite

Stack = tuple[tuple[str, str, str], ...]  # frames, leaf first: address, mapping, lines


def without_second_and_third(stack: Stack) -> Stack:
    return stack[:1] + stack[3:]


def without_no_stack(stack: Stack) -> Stack | None:
    return None if "[no stack]" in stack[0][2] else stack


def path_up_to_its_blank(stack: Stack) -> Stack:
    return tuple((address, mapping.replace("/srv/my demo/prog", "/srv/my"), lines) for address, mapping, lines in stack)


def without_addresses(stack: Stack) -> Stack:
    return tuple(("0x0", mapping, lines) for _, mapping, lines in stack)


# Differences from pprof's own conversion: the reason, and a map from one to the other (None: no sample).
DIFFERENT: dict[str, tuple[str, Callable[[Stack], Stack | None]]] = {
    "flat": (
        "pprof deletes frames two and three of every record, as they are the same everywhere: real callers",
        without_second_and_third,
    ),
    "single": ("the same, as there is one record", without_second_and_third),
    "depth0": (
        "pprof's merge drops samples without locations: ours get one called [no stack]",
        without_no_stack,
    ),
    "small": ("pprof ends paths at a blank", path_up_to_its_blank),
    "java": ("pprof drops the addresses that Java agents make up for their frames", without_addresses),
}
PPROF_CANNOT_READ = {
    "header5": "five header words",
    "32le": "four header words",
    "32be": "four header words",
    "64be": "four header words",
    "symbolized": "the symbolized form",
    "cut_in_last_record": "pprof invents frames at 0xffffffffffffffff, for us it is an error",
}
# Differences of google-pprof's conversion from ours and from pprof's.
PERL_IS_WRONG = {
    "leaf0_deep": "perl stops at a leaf of address 0",
    "norecords": "perl prints no total",
}


def cases(*without: str) -> list[Path]:
    """The corpus, which every checkout has, and the sample data next to the repository."""
    found = sorted((REPO / "tests" / "corpus" / "gperftools" / "good").glob("*.prof"))
    if SHARED:
        names = {p.name for p in found}
        found += [p for p in sorted(shared_data("gperftools").glob("*/*.prof")) if p.name not in names]
    return [p for p in found if p.stem not in PPROF_CANNOT_READ and p.stem not in without]


def convert(path: Path, to: Path, options: Options | None = None) -> Path:
    from_ = "pprof" if path.suffix in {".gz", ".pb"} else "gperftools"
    data = path.read_bytes()
    to.write_bytes(rewrite(data, from_, "pprof" if to.suffix == ".pb" else "gperftools", options)[0])
    return to


def sums(samples: Counter[tuple[object, ...]], change: Callable[[Stack], Stack | None]) -> Counter[tuple[object, ...]]:
    total: Counter[tuple[object, ...]] = Counter()
    for (stack, labels, k), n in samples.items():
        if (changed := change(cast(Stack, stack))) is not None:
            total[changed, labels, k] += n
    return total


@pytest.mark.parametrize("path", cases(), ids=lambda p: p.stem)
def test_our_conversion_is_that_of_pprof(path: Path, tmp_path: Path) -> None:
    ours = pprof_raw.raw(convert(path, tmp_path / "ours.pb"))
    theirs = pprof_raw.raw(path)
    assert ours.header == theirs.header
    assert ours.types == theirs.types
    assert (ours.samples == theirs.samples) == (path.stem not in DIFFERENT)
    if path.stem in DIFFERENT:
        assert sums(ours.samples, DIFFERENT[path.stem][1]) == theirs.samples


@pytest.mark.parametrize("path", cases(), ids=lambda p: p.stem)
def test_our_conversion_is_valid_by_the_schema(path: Path, tmp_path: Path) -> None:
    p = reference.parse(convert(path, tmp_path / "ours.pb").read_bytes())
    reference.check(p)


# these have frames without an address, which the format cannot hold, or names, which it has no place for
@pytest.mark.parametrize("path", cases("leaf0_deep", "depth0", "java"), ids=lambda p: p.stem)
def test_what_we_write_reads_back_the_same(path: Path, tmp_path: Path) -> None:
    """gperftools -> pprof -> gperftools, read by pprof, equals pprof's reading of the original file."""
    via = convert(path, tmp_path / "ours.pb")
    assert pprof_raw.raw(convert(via, tmp_path / "back.prof")).samples == pprof_raw.raw(path).samples


@needs_shared
def test_what_pprof_cannot_read(tmp_path: Path) -> None:
    """Five header words change nothing; the symbolized form has the same samples, with names."""
    edge = shared_data("gperftools", "edge")
    plain, header5, symbolized = (
        pprof_raw.raw(convert(edge / f"{name}.prof", tmp_path / f"{name}.pb")).samples
        for name in ("plain", "header5", "symbolized")
    )
    assert header5 == plain

    def leaves(samples: Counter[tuple[object, ...]]) -> Counter[tuple[object, ...]]:
        """By depth and leaf: google-pprof has adjusted callers' addresses already, so they are compared unchanged."""
        total: Counter[tuple[object, ...]] = Counter()
        for (stack, _, k), n in samples.items():
            total[len(stack), stack[0][0], k] += n
        return total

    count = {key: n for key, n in leaves(symbolized).items() if key[2] == 0}
    assert count == {key: n for key, n in leaves(plain).items() if key[2] == 0}
    names = {frame[2].split(" ")[0] for stack, _, _ in symbolized for frame in stack}
    assert "fn0" in names


def test_flat_keeps_its_callers(tmp_path: Path) -> None:
    path = next(p for p in cases() if p.stem == "flat")
    stacks = {len(stack) for stack, _, _ in pprof_raw.raw(convert(path, tmp_path / "ours.pb")).samples}
    assert stacks == {6}  # pprof leaves 4


@pytest.mark.parametrize("report", ["-top", "-traces"])
@pytest.mark.parametrize("path", cases(*DIFFERENT), ids=lambda p: p.stem)
def test_reports_are_the_same(path: Path, report: str, tmp_path: Path) -> None:
    ours = convert(path, tmp_path / "ours.pb")
    texts = [pprof_raw.go_pprof(report, "-symbolize=none", "-nodecount=0", "-addresses", p) for p in (path, ours)]
    # equals are ordered by id
    assert sorted(texts[0].splitlines()) == sorted(texts[1].splitlines())


@pytest.mark.parametrize("path", cases(*PERL_IS_WRONG, "java")[::3], ids=lambda p: p.stem)
def test_google_pprof_agrees_on_totals(path: Path, tmp_path: Path) -> None:
    """It needs a program, whose symbols do not affect the total."""
    back = convert(convert(path, tmp_path / "ours.pb"), tmp_path / "back.prof")
    totals = []
    for profile in (path, back):
        command = [need("google-pprof"), "--text", "/bin/true", str(profile)]
        text = subprocess.run(command, capture_output=True, text=True).stdout
        totals.append(re.findall(r"Total: (\d+) samples", text))
    ours = sum(sample.value[0] for sample in reference.parse((tmp_path / "ours.pb").read_bytes()).sample)
    # our output has no place for the record without a stack
    lost = 5 if path.stem == "depth0" else 0
    assert [list(map(int, t)) for t in totals] == [[ours], [ours - lost]]


@pytest.mark.parametrize("path", cases(), ids=lambda p: p.stem)
def test_callgrind_annotate_shows_the_totals(path: Path, tmp_path: Path) -> None:
    p = reference.parse(convert(path, tmp_path / "ours.pb").read_bytes())
    want = [sum(sample.value[k] for sample in p.sample) for k in range(len(p.sample_type))]
    out = tmp_path / "x.callgrind"
    fastprof.convert([str(path)], str(out), symbolize=False)
    command = [need("callgrind_annotate"), "--show-percs=no", str(out)]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = re.search(r"^([\d,. ]*?) *PROGRAM TOTALS", text, re.MULTILINE)
    assert found
    assert [0 if n == "." else int(n.replace(",", "")) for n in found[1].split()] == (want or [0])


def go_profiles() -> list[Path]:
    """Profiles written by Go's runtime: the corpus has all of the sample data."""
    return sorted((REPO / "tests" / "corpus" / "pprof" / "good").glob("go-*.pb.gz"))


@needs_shared
def test_the_corpus_has_all_profiles_of_the_sample_data() -> None:
    assert {p.name for p in go_profiles()} == {p.name for p in shared_data("pprof").glob("*.pb.gz")}


@pytest.mark.parametrize("path", go_profiles(), ids=lambda p: p.name)
def test_profiles_of_the_go_runtime_are_kept(path: Path, tmp_path: Path) -> None:
    out = tmp_path / "ours.pb.gz"
    fastprof.convert([str(path)], str(out), symbolize=False)
    assert pprof_raw.raw(out) == pprof_raw.raw(path)
    p = reference.parse(gzip.decompress(out.read_bytes()))
    reference.check(p)


def test_period_overrides_the_header(tmp_path: Path) -> None:
    path = next(p for p in cases() if p.stem == "plain")
    ours = pprof_raw.raw(convert(path, tmp_path / "ours.pb", Options(period_us=4000)))
    assert "Period: 4000000" in ours.header
