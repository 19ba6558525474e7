"""`fastprof top` of stacks shows the figures of `go tool pprof -top`: flat and cum, of every value type."""

from __future__ import annotations

import re
import subprocess
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from fastprof import info, top
from tests.differential.peers import need
from tests.support.paths import SHARED, needs_shared

pytestmark = needs_shared

# pprof reads neither five header words nor symbolized profiles, and prints "unrecognized profile format" for the
# others.
UNREAD = {"header5.prof", "symbolized.prof", "cut_in_last_record.prof", "norecords.prof"}
# It removes the second and third frames of a gperftools profile if they are the same in every record: real callers
# here.
CALLERS_LOST = {"flat.prof", "single.prof"}
# It drops samples without a stack.
NO_STACK = {"depth0.prof"}
UNITS = {"nanoseconds": "ns", "bytes": "B"}


def profiles() -> list[Path]:
    if SHARED is None:
        return []
    data = SHARED / "data"
    found = [*data.glob("pprof/*.pb.gz"), *data.glob("gperftools/**/*.pb.gz"), *data.glob("gperftools/**/*.prof")]
    return sorted(path for path in found if path.name not in UNREAD)


def pprof_top(path: Path, value: str, unit: str, home: Path) -> dict[str, tuple[int, int]]:
    """flat and cum by name, exactly: in the smallest unit, and without dropping small ones."""
    command = [need("go"), "tool", "pprof", "-top", "-symbolize=none", "-nodecount=10000000"]
    command += ["-nodefraction=0", "-edgefraction=0", f"-unit={unit}", f"-sample_index={value}", str(path)]
    environment = {"HOME": str(home), "PATH": "/usr/bin:/bin"}
    text = subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout
    found = {}
    for line in text.partition("cum%\n")[2].splitlines():
        match = re.match(r" *(-?[\d.]+)[a-zA-Z]* +\S+ +\S+ +(-?[\d.]+)[a-zA-Z]* +\S+  (.*)$", line)
        assert match, line
        flat, cum = float(match[1]), float(match[2])
        assert flat.is_integer() and cum.is_integer()
        found[re.sub(r" \((partial-)?inline\)$", "", match[3])] = int(flat), int(cum)
    assert found
    return found


def by_mapping(name: str, object: str) -> str:
    """pprof has one row for all unnamed code of an object; for us each address is a row."""
    if re.fullmatch(r"\[[^]]*\+0x[0-9a-f]+\]|0x[0-9a-f]+", name):
        return f"[{object.rpartition('/')[2].strip('[]')}]" if object else "<unknown>"
    return name


def values(path: Path) -> list[str]:
    return list(info(path).facts["totals"])


@pytest.mark.parametrize("path", profiles(), ids=lambda p: f"{p.parent.name}-{p.name}")
def test_flat_and_cum_are_those_of_pprof(path: Path, tmp_path: Path) -> None:
    for value in values(path):
        found = top(path, n=0, value=value, symbolize=False)
        theirs = pprof_top(path, value, UNITS.get(found.value.unit, found.value.unit), tmp_path)
        flat: Counter[str] = Counter()
        cum: dict[str, set[int]] = defaultdict(set)
        for row in found.rows:
            name = by_mapping(row.name, row.object)
            flat[name] += row.self
            assert row.inclusive is not None
            cum[name].add(row.inclusive if name == row.name else -1)
        unnamed = {name for name, costs in cum.items() if -1 in costs}
        if unnamed and all(by_mapping(row.name, row.object) != row.name for row in found.rows):
            # no function has a name: pprof's [prog] is the object
            for row in top(path, n=0, value=value, symbolize=False, by="object").rows:
                assert row.inclusive is not None
                cum[by_mapping("0x0", row.object)] = {row.inclusive}
        if path.name in NO_STACK:
            assert flat.pop("[no stack]") > 0
        assert +flat == +Counter({name: f for name, (f, _) in theirs.items()})
        if path.name in CALLERS_LOST:
            assert theirs.keys() <= flat.keys()
            continue
        assert theirs.keys() == {name for name in flat if flat[name] or max(cum[name]) != 0}
        # it merges functions of one name in several files or objects
        several = {name for name, n in Counter(row.name for row in found.rows).items() if n > 1}
        compared = {name for name in theirs if -1 not in cum[name] and name not in several}
        assert {name: cum[name] for name in compared} == {name: {theirs[name][1]} for name in compared}
        assert len(compared) >= len(theirs) - len(unnamed) - 4
        assert found.total == sum(f for f, _ in theirs.values()) + sum(
            row.self for row in found.rows if row.name == "[no stack]" and path.name in NO_STACK
        )


@pytest.mark.parametrize("path", [p for p in profiles() if p.name.startswith("go-")], ids=lambda p: p.name)
def test_lines_are_those_of_pprof(path: Path, tmp_path: Path) -> None:
    command = [need("go"), "tool", "pprof", "-top", "-lines", "-symbolize=none", "-nodecount=10000000"]
    command += ["-nodefraction=0", "-edgefraction=0"]
    value = values(path)[-1]
    found = top(path, n=0, value=value, by="line")
    command += [f"-unit={UNITS.get(found.value.unit, found.value.unit)}", f"-sample_index={value}", str(path)]
    environment = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    text = subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout
    theirs = {}
    for line in text.partition("cum%\n")[2].splitlines():
        match = re.match(r" *([\d.]+)[a-zA-Z]* +\S+ +\S+ +([\d.]+)[a-zA-Z]* +\S+  (\S+) (\S+)( \(.*)?$", line)
        assert match, line
        theirs[match[3], match[4]] = float(match[1]), float(match[2])
    # it does not shorten names or paths here, but cleans paths
    ours = {(row.name, f"{row.file}:{row.line}"): (row.self, row.inclusive) for row in found.rows if row.inclusive}
    assert theirs == ours


@pytest.mark.parametrize("path", [p for p in profiles() if p.name == "go-cpulabels.pb.gz"], ids=lambda p: p.name)
def test_labels_add_up_to_what_pprof_says(path: Path, tmp_path: Path) -> None:
    rows = top(path, by="label", n=0).rows
    text = path.with_name("go-cpulabels.tags.txt").read_text()
    totals: Counter[str] = Counter()
    for row in rows:
        for label in row.name.split(", ") if row.name != "(none)" else ():
            totals[label] += row.self
    seconds = re.findall(r"^ +([\d.]+)(m?s) +\([^)]*\): (\S+)$", text, re.MULTILINE)
    assert len(totals) == len(seconds) > 2
    shown = sorted(float(n) * (10**9 if unit == "s" else 10**6) for n, unit, _ in seconds)
    assert sorted(totals.values()) == pytest.approx(shown, rel=0.01)
