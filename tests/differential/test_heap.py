"""Text profiles of heaps, contention and threads against `go tool pprof` and jeprof, which read the same files."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest

import fastprof
from tests.differential import pprof_raw
from tests.differential.peers import need
from tests.support.paths import CORPUS, SHARED, needs_shared, shared_data

FOLDERS = ("go", "gperftools", "jemalloc", "pprof")
OTHERS = (".gz", ".string")
# Files that pprof refuses, and its message.
REFUSED = {
    "go-threadcreate": "a stack without addresses, which Go writes, is malformed for pprof",
    "jemalloc": "pprof does not know jemalloc's format",
    "je-512k.0.f": "the same",
    "je-accum.0.f": "the same",
    "je-all.0.f": "the same",
    "symbolized": "google-pprof's form with symbols",
    "open-end": "upper-case digits in an address, and a name that is not in its list",
}


def cases() -> list[Path]:
    found = sorted((CORPUS / "heap" / "good").iterdir())
    if SHARED:
        for folder in FOLDERS:
            found += [p for p in sorted(shared_data("heap", folder).glob("*.*")) if p.suffix not in OTHERS]
    return found


def by_address(raw: pprof_raw.Raw) -> Counter[tuple[object, ...]]:
    """Values by stack of addresses, without names and zero samples: pprof ignores the names in these files, and drops
    samples that are all zero or have no stack, which get a frame [no stack] in ours."""
    found: Counter[tuple[object, ...]] = Counter()
    for (stack, labels, k), value in raw.samples.items():
        places = tuple((frame[0], re.sub(r"\s*\[FN\].*", "", frame[1])) for frame in stack)  # type: ignore[index, attr-defined]
        labels = "" if "job:" in str(labels) else labels  # Go's, in a comment
        if value and not (places and all(address == "0x0" for address, _ in places) and "[no stack]" in str(stack)):
            found[places, labels, k] += value
    return found


def by_name(raw: pprof_raw.Raw) -> Counter[tuple[object, ...]]:
    """Java's addresses are indices of names; pprof drops those that have no name."""
    found: Counter[tuple[object, ...]] = Counter()
    for (stack, labels, k), value in raw.samples.items():
        found[tuple(frame[2] for frame in stack), labels, k] += value  # type: ignore[index, attr-defined]
    return found


@pytest.mark.parametrize("path", cases(), ids=lambda p: p.name)
def test_it_is_what_pprof_reads(path: Path, tmp_path: Path) -> None:
    ours = tmp_path / "ours.pb.gz"
    fastprof.convert(str(path), str(ours), symbolize=False)
    mine = pprof_raw.raw(ours)
    done = subprocess.run(
        [need("go"), "tool", "pprof", "-raw", "-symbolize=none", str(path)], capture_output=True, text=True
    )
    refused = path.name.rpartition(".")[0] in REFUSED
    assert bool(done.returncode) == refused, done.stderr
    if refused:
        return
    theirs = pprof_raw.parse(done.stdout)
    assert mine.types == theirs.types
    if "java" in path.name:  # frames with names only
        assert by_name(mine) == by_name(theirs)
    else:
        assert mine.header == theirs.header
        assert by_address(mine) == by_address(theirs)


@needs_shared
@pytest.mark.parametrize("name", ["go-heap", "go-mutex", "go-block", "rate1-go-heap"])
def test_names_are_those_of_the_binary_form(name: str, tmp_path: Path) -> None:
    """Go writes both forms; the binary one has the functions of each sample, without runtime's own at the leaf."""
    totals: list[Counter[tuple[str, ...]]] = []
    for suffix in ("txt", "pb.gz"):
        out = tmp_path / f"{suffix}.pb"
        fastprof.convert(str(shared_data("heap", "go") / f"{name}.{suffix}"), str(out), symbolize=False)
        found: Counter[tuple[str, ...]] = Counter()
        for (stack, _, k), value in pprof_raw.raw(out).samples.items():
            lines = [frame[2] for frame in stack]  # type: ignore[index, attr-defined]
            functions = [line.split(" ")[0] for text in lines for line in text.split("\n")]
            main = [f for f in functions if f.startswith("main.")]
            if main:
                found[(*main, str(k))] += value
        totals.append(+found)
    text, binary = totals
    assert set(text) == set(binary)
    for key, value in text.items():
        assert value == pytest.approx(binary[key], rel=0.02)  # they were taken at slightly different moments


@needs_shared
@pytest.mark.parametrize("name", ["je-512k.0.f", "je-accum.0.f", "je-all.0.f"])
@pytest.mark.parametrize("value", ["inuse_space", "inuse_objects"])
def test_totals_are_those_of_jeprof(name: str, value: str, tmp_path: Path) -> None:
    path = shared_data("heap", "jemalloc") / f"{name}.heap"
    done = subprocess.run(
        [need("jeprof"), "--text", f"--{value}", "--show_bytes", "/bin/true", str(path)], capture_output=True, text=True
    )
    m = re.search(r"^Total: (\d+)", done.stdout, re.MULTILINE)
    assert m, done.stderr
    total = fastprof.top(str(path), symbolize=False, value=value).total
    rows = path.read_text().count("\n@ ")
    # jeprof scales the sum of all threads, and rounds once
    assert abs(total - int(m[1])) <= 3 * rows
