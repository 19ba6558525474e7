"""fastprof diff with several profiles per side, with scaled costs, and as a gate."""

from __future__ import annotations

import json
import random
from math import sqrt
from pathlib import Path
from typing import Any

import pytest

import fastprof
from fastprof.cli import main
from fastprof.core.errors import UsageError
from fastprof.verbs.diff.gate import FAIL_OVER
from fastprof.verbs.diff.significance import least_significant, welch
from tests.unit.test_pairing import profile


def graph(path: Path, **costs: int) -> Path:
    """Functions with self costs, and their total in main."""
    text = "events: Ir\nob=app\nfl=a.c\n" + "".join(f"fn={name}\n1 {cost}\n" for name, cost in costs.items())
    path.write_text(text)
    return path


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[list[str], list[str]]:
    monkeypatch.chdir(tmp_path)
    return make_runs(tmp_path)


def make_runs(folder: Path) -> tuple[list[str], list[str]]:
    """Five runs per side: f became 20 % slower, g is noise, h never changes."""
    rng = random.Random(7)
    sides = []
    for side, f in (("old", 1000), ("new", 1200)):
        (folder / side).mkdir()
        for i in range(5):
            costs = {"f": f + rng.randint(-20, 20), "g": 5000 + rng.randint(-900, 900), "h": 10}
            graph(folder / side / f"{i}.callgrind", **costs)
        sides.append([f"{side}/{i}.callgrind" for i in range(5)])
    return sides[0], sides[1]


def test_noise_is_left_out(runs: tuple[list[str], list[str]]) -> None:
    found = fastprof.diff(*runs)
    (row,) = found.rows
    assert row.name == "f" and row.runs is not None and row.runs.p is not None and row.runs.p < 0.001
    assert row.old[0] == round(sum(row.runs.old) / 5) and row.new[0] == round(sum(row.runs.new) / 5)
    assert (found.n_changed, found.n_noise, len(found.runs)) == (1, 1, 1)  # h did not change
    assert found.values[0].old == row.old[0] + round(sum(fastprof.top(path).rows[0].self for path in runs[0]) / 5) + 10
    everything = fastprof.diff(*runs, significance=1.0)
    assert {one.name for one in everything.rows} == {"g", "f"} and everything.n_noise == 0


def test_one_run_against_several_is_not_tested(runs: tuple[list[str], list[str]]) -> None:
    found = fastprof.diff(runs[0][0], runs[1])
    assert {row.name for row in found.rows if row.old != row.new} == {"f", "g"}
    assert all(row.runs is not None and row.runs.p is None for row in found.rows)
    with pytest.raises(UsageError, match="significance= applies to several profiles a side"):
        fastprof.diff(runs[0][0], runs[1], significance=0.1)


def test_text_csv_and_json(runs: tuple[list[str], list[str]], capsys: pytest.CaptureFixture[str]) -> None:
    words = [*runs[0], "--", *runs[1]]
    assert main(["diff", *words]) == 0
    text = capsys.readouterr().out.splitlines()
    assert text[0].split() == ["old", "±", "%", "new", "±", "%", "difference", "%", "p"]
    assert text[-2].split()[-3:] == ["<0.001", "f", "a.c"] or text[-2].split()[-1] == "app"
    assert text[-1] == "... 1 more within the noise"
    assert main(["diff", "--json", *words]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["noise"] == 1 and len(found["rows"][0]["runs"]["old"]) == 5 and found["rows"][0]["runs"]["p"] < 0.001
    assert main(["diff", "--csv", *words]) == 0
    head, line = capsys.readouterr().out.splitlines()
    assert head.endswith("old spread %,new spread %,p") and float(line.split(",")[-1]) < 0.001


def test_inclusive_costs_are_tested_as_well(tmp_path: Path) -> None:
    paths: list[list[Path]] = [[], []]
    for side, cost in enumerate((100, 150)):
        for i in range(3):
            paths[side].append(tmp_path / f"{side}{i}.callgrind")
            paths[side][-1].write_text(
                f"events: Ir\nfn=main\n1 {10 + i}\ncfn=f\ncalls=1 1\n2 {cost + i}\nfn=f\n1 {cost + i}\n"
            )
    found = fastprof.diff(*paths, sort="inclusive")
    assert [(row.name, row.inclusive) for row in found.rows] == [("f", (101, 151)), ("main", (112, 162))]
    assert all(row.runs and row.runs.p is not None and row.runs.p < 0.001 for row in found.rows)


def test_arguments(runs: tuple[list[str], list[str]], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", *runs[0]]) == 2
    assert "5 inputs: separate the old from the new ones" in capsys.readouterr().err
    assert main(["diff", runs[0][0]]) == 2
    assert "NEW is missing" in capsys.readouterr().err
    assert main(["diff", "--", runs[0][0], runs[1][0]]) == 0
    assert main(["diff", runs[0][0], "--", runs[1][0]]) == 0
    one = capsys.readouterr().out
    assert one[: len(one) // 2] == one[len(one) // 2 :]
    assert main(["diff", *runs[0], "--", *runs[1], "-n", "2"]) == 2
    assert "-n is not a file: options go ahead of --, which only names follow" in capsys.readouterr().err
    Path("-n").write_bytes(Path(runs[1][0]).read_bytes())
    assert main(["diff", runs[0][0], "--", "-n"]) == 0


def costs(old: Any, new: Any, **options: Any) -> dict[str, tuple[int, int]]:
    found = fastprof.diff(old, new, n=0, **options)
    return {row.name: (row.old[found.shown], row.new[found.shown]) for row in found.rows}


def test_scaled_costs(tmp_path: Path) -> None:
    old = graph(tmp_path / "old.callgrind", f=30, g=70)
    new = graph(tmp_path / "new.callgrind", f=90, g=110)
    assert costs(old, new, normalize="total") == {"f": (30, 45), "g": (70, 55)}
    assert costs(old, new, normalize="Ir") == {"f": (30, 45), "g": (70, 55)}
    assert costs(old, new, base_of=4) == {"f": (8, 90), "g": (18, 110)}  # 7.5 and 17.5
    assert costs([old, old], [new, new], normalize="total", significance=1.0) == {"f": (30, 45), "g": (70, 55)}
    fastprof.diff(old, new, tmp_path / "d.callgrind", normalize="total")
    assert {row.name: row.self for row in fastprof.top(tmp_path / "d.callgrind").rows} == {"f": 15, "g": -15}
    fastprof.diff(old, [old, new], tmp_path / "d.callgrind")
    assert {row.name: row.self for row in fastprof.top(tmp_path / "d.callgrind").rows} == {"f": 30, "g": 20}
    for how, says in (("duration", "the profile has no duration"), ("Dr", "expected total, duration, samples or")):
        with pytest.raises(UsageError, match=says):
            fastprof.diff(old, new, normalize=how)
    with pytest.raises(UsageError, match="no value type that counts samples, only Ir"):
        fastprof.diff(old, new, normalize="samples")


def timed(path: Path, seconds: int, period: int, n_files: int, **values: int) -> Path:
    from tests.reference.profile_proto import Profile

    path.mkdir()
    for i in range(n_files):
        profile(path / f"{i}.pb", "/bin/app", "b1", "a.go", 0, values)
        p = Profile.FromString((path / f"{i}.pb").read_bytes())
        p.duration_nanos, p.period = seconds * 10**9, period
        p.period_type.type, p.period_type.unit = 1, 2
        (path / f"{i}.pb").write_bytes(p.SerializeToString())
    return path


def test_notes_of_recordings_that_differ(tmp_path: Path) -> None:
    old = timed(tmp_path / "old", 10, 100, 1, f=5, g=4)
    new = timed(tmp_path / "new", 30, 200, 2, f=15, g=14)
    said = [text for text in fastprof.diff(old, new).log.warnings if "OLD" in text]
    assert said == [
        "OLD was recorded for 10 s, NEW for 60 s; normalize=duration scales NEW",
        "OLD was sampled every 100 count, NEW every 200 count; normalize=total scales NEW",
        "profiles added up: OLD 1, NEW 2; normalize=total or base_of= scales them",
    ]
    for pair in ("name", "exact"):
        page = fastprof.report([old, new], tmp_path / "page.html", pair=pair)
        assert [text for text in page.warnings if "OLD" in text] == [text.partition(";")[0] for text in said]
    scaled = fastprof.diff(old, new, normalize="duration", n=0)
    assert not [text for text in scaled.log.warnings if "OLD" in text]
    assert costs(old, new, normalize="duration")["f"] == (5, 5)
    assert costs(old, new, normalize="samples")["f"] == (5, 5)  # 30 of 60
    fastprof.diff(old, new, tmp_path / "d.pb", normalize="duration")
    assert {row.name: row.self for row in fastprof.top(tmp_path / "d.pb", n=0).rows if row.name in "fg"} == {
        "f": 0,
        "g": 1,
    }


@pytest.mark.parametrize(
    ("limits", "code", "says"),
    [
        ("Ir=2", 4, "more than 2 % above old.callgrind: Ir +10.0 %"),
        ("Ir=20", 0, ""),
        ("Ir=20,f=50", 4, "more than 50 % above old.callgrind: f +100.0 %"),
        ("f=100%,g=0", 0, ""),
        ("f=1,Ir=1", 4, "more than 1 % above old.callgrind: f +100.0 %, Ir +10.0 %"),
        ("new=5", 4, "more than 5 % above old.callgrind: new new"),
        ("operator(a, b)=3", 4, "more than 3 % above old.callgrind: operator(a, b) +50.0 %"),
        ("other=3", 2, "neither profile has a value type or a function named other"),
    ],
)
def test_a_gate_of_functions(
    limits: str,
    code: int,
    says: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    graph(tmp_path / "old.callgrind", f=10, g=88, **{"operator(a, b)": 2})
    graph(tmp_path / "new.callgrind", f=20, g=86, new=1, **{"operator(a, b)": 3})
    assert main(["diff", "old.callgrind", "new.callgrind", "--fail-over", limits, "-n", "1"]) == code
    assert says in capsys.readouterr().err


@pytest.mark.parametrize("by", ["object", "file"])
def test_a_gate_of_places_takes_base_names(by: str, tmp_path: Path) -> None:
    """Without the version: the next build has another one."""
    for side, version, cost in (("old", "1.4", 10), ("new", "1.5", 20)):
        app = f"ob=/opt/app-{version}\nfl=/b{version}/a.c\nfn=f\n1 {cost}\n"
        (tmp_path / side).write_text(f"events: Ir\n{app}ob=/lib/libc.so.6\nfl=m.c\nfn=g\n1 5\n")
    old, new = str(tmp_path / "old"), str(tmp_path / "new")
    names = {"object": ("/opt/app-1.5", "app-1.5", "app"), "file": ("/b1.5/a.c", "a.c")}
    for name in names[by]:
        (one,) = fastprof.diff(old, new, by=by, fail_over=f"{name}=5").failed
        assert (one.name, one.old, one.new) == (name, 10, 20)
    assert not fastprof.diff(old, new, by=by, fail_over={"object": "libc.so=5", "file": "m.c=5"}[by]).failed
    with pytest.raises(UsageError, match=f"a value type or an? {by} named ap$"):
        fastprof.diff(old, new, by=by, fail_over="ap=5")


def test_growth_within_the_noise_passes(runs: tuple[list[str], list[str]]) -> None:
    means = {row.name: row for row in fastprof.diff(*runs, significance=1.0).rows}
    grown = means["g"].new[0] > means["g"].old[0]
    old, new = runs if grown else runs[::-1]
    assert fastprof.diff(old, new, fail_over="g=0").failed == ()
    assert [one.name for one in fastprof.diff(*runs, fail_over="f=5").failed] == ["f"]
    assert fastprof.diff(*runs, fail_over="f=30").failed == ()


def test_a_written_difference_has_a_gate_of_values_only(tmp_path: Path) -> None:
    old, new = graph(tmp_path / "o.callgrind", f=1), graph(tmp_path / "n.callgrind", f=2)
    assert fastprof.diff(old, new, tmp_path / "d.callgrind", fail_over="Ir=5").failed[0].name == "Ir"
    with pytest.raises(UsageError, match="f is not a value type"):
        fastprof.diff(old, new, tmp_path / "d.callgrind", fail_over="f=5")


def test_limits() -> None:
    for value in ("f=x", "", -1, True):
        with pytest.raises(UsageError, match=r"fail_over: .* is (not|neither) a percentage of 0 or more"):
            FAIL_OVER.check(value)
    assert FAIL_OVER.kind.check(2) == (("", 2.0),)
    assert FAIL_OVER.kind.check("a=1,b<int, 2>=.5%,3") == (("a", 1.0), ("b<int, 2>", 0.5), ("", 3.0))


@pytest.mark.parametrize("x", [0.0, 0.1, 1.0, 3.0, 10.0, 1000.0])
def test_welch_with_two_degrees_of_freedom(x: float) -> None:
    """Two runs per side with equal variance: P(|T| > t) = 1 - t / sqrt(2 + t^2)."""
    t = x / sqrt(2)
    p = welch([0, 2], [x, x + 2])
    assert p is not None and abs(p - (1 - t / sqrt(2 + t * t))) < 1e-12


def test_welch_without_variance() -> None:
    assert (welch([1, 1], [1, 1]), welch([1, 1], [2, 2]), welch([1], [2, 3])) == (1.0, 0.0, None)


def test_of_chance_rows_only_a_share_is_reported() -> None:
    """Benjamini and Hochberg's example of 15 tests, of which four are reported at 5 %."""
    ps = [0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262, 0.5719, 0.6528,
          0.7590, 1.0]  # fmt: skip
    assert least_significant(ps, 15, 0.05) == 0.0095
    assert least_significant([], 15, 0.05) == -1
