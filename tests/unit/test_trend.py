"""fastprof trend: series of many profiles, their changes and what causes them."""

from __future__ import annotations

import json
import random
import re
import subprocess
from importlib import import_module
from pathlib import Path

import pytest

import fastprof
from fastprof.cli import main
from fastprof.verbs.trend.page import page
from fastprof.verbs.trend.series import Change, Series
from tests.support.trends import graph, over_points, poisson, written


def test_step(tmp_path: Path) -> None:
    """A step is found at its point, with its size, and not once more in the callers or in other functions."""
    found = over_points(written(tmp_path / "runs", 30, {"f4": (20, 1.2)}, hosts=3))
    (one,) = found.findings
    assert (one.name, one.kind, one.since, one.last_good, one.cost) == ("f4", "step", "020", "019", "self")
    assert one.change is not None
    assert 17 < one.change < 23
    assert {other.name for other in one.others} <= {"caller1", "main"}
    assert [point.profiles for point in found.points] == [3] * 30
    assert found.sampled
    assert found.points[0].samples


def test_only_the_function_that_grew_is_found(tmp_path: Path) -> None:
    """The largest function doubles: the shares of all others fall by a fifth, which is no finding."""
    found = over_points(written(tmp_path / "runs", 24, {"f0": (12, 2.0)}))
    assert [(one.name, one.since) for one in found.findings if one.cost == "self"] == [("f0", "012")]


def test_many_that_grow_together(tmp_path: Path) -> None:
    """A compiler makes a third of all functions slower: the others do not seem faster."""
    rng = random.Random(5)
    for point in range(30):
        grown = 1.2 if point >= 17 else 1
        rows = [f"main;f{i} {poisson(rng, 9000 * (grown if i % 3 == 0 else 1))}" for i in range(36)]
        (tmp_path / f"{point:02d}.folded").write_text("\n".join(rows) + "\n")
    found = fastprof.trend(str(tmp_path)).findings
    assert sorted(one.name for one in found) == sorted(f"f{i}" for i in range(0, 36, 3))
    assert all(one.change is not None and 17 < one.change < 23 for one in found)


@pytest.mark.parametrize("seed", range(3))
def test_noise_is_no_finding(tmp_path: Path, seed: int) -> None:
    assert not over_points(written(tmp_path / "runs", 40, {}, seed=seed)).findings


def test_many_steps(tmp_path: Path) -> None:
    """Functions with most of the cost grow one after the other: the shares of the others fall, and are no findings."""
    steps = {f"f{i}": (5 + 5 * i, 1.4) for i in range(8)}
    found = over_points(written(tmp_path / "runs", 48, steps, seed=2), explain=0, cache="none").findings
    assert {one.name: one.since_index for one in found} == {name: at for name, (at, _) in steps.items()}
    assert all(one.kind == "step" and 36 < (one.change or 0) < 44 for one in found)


def test_few_functions(tmp_path: Path) -> None:
    """Of three functions one grows: that is no cost that went to it from the others."""
    rng = random.Random(4)
    for i in range(30):
        costs = {"draw": 49, "fill": 28 if i < 19 else 30, "parse": 21, "other": 2}
        rows = (f"main;{name} {poisson(rng, 300 * cost)}" for name, cost in costs.items())
        (tmp_path / f"{i:02d}.folded").write_text("\n".join(rows))
    found = fastprof.trend(str(tmp_path), explain=0).findings
    assert [(one.name, one.kind, one.since_index) for one in found] == [("fill", "step", 19)]


def test_hosts_are_compared_with_themselves(tmp_path: Path) -> None:
    """Hosts differ by a quarter, and each is missing at some points."""
    folder = written(tmp_path / "runs", 40, {"f3": (30, 1.1)}, hosts=4)
    for point in range(40):
        (folder / f"{point:03d}.host{point % 4}.folded").unlink()
    assert {(one.name, one.since) for one in over_points(folder).findings if one.cost == "self"} == {("f3", "030")}


@pytest.mark.parametrize("by", ["label:host", "label:function,host"])
def test_missing_hosts_are_missing(tmp_path: Path, by: str) -> None:
    """A row of a host has no value where the host has no profile: neither new, nor gone, nor a lower mean."""
    folder = written(tmp_path / "runs", 30, {}, hosts=4)
    for point in (*range(6), 20, 21):
        (folder / f"{point:03d}.host1.folded").unlink()
    found = over_points(folder, by=by, per="1", rows=200)
    assert not found.findings
    rows = [row for row in found.rows if "host1" in row.label]
    assert rows
    for row in rows:
        assert [i for i, value in enumerate(row.values) if value is None] == [*range(6), 20, 21]
    whole = next(row for row in found.rows if "host2" in row.label)
    costs = [float(line.rpartition(" ")[2]) for line in (folder / "007.host2.folded").read_text().splitlines()]
    assert whole.values[7] in ([sum(costs)] if by == "label:host" else costs)


def test_functions_of_a_missing_host(tmp_path: Path) -> None:
    """A function that only one host runs is neither new nor gone where that host is missing."""
    folder = written(tmp_path / "runs", 30, {}, hosts=3)
    for point in range(30):
        path = folder / f"{point:03d}.host2.folded"
        path.write_text(path.read_text() + "main;only 9000\n")
        if point < 4 or point in (11, 12, 13, 25):
            path.unlink()
    found = over_points(folder, rows=100)
    assert not found.findings
    only = next(row for row in found.rows if row.name == "only")
    assert [i for i, value in enumerate(only.values) if value is None] == [0, 1, 2, 3, 11, 12, 13, 25]
    assert main(["trend", str(folder), "--over", "point", "--label-path", "{point}.{host}.folded", "--json"]) == 0


def test_small_replicas_weigh_less(tmp_path: Path) -> None:
    """A replica of a tenth of the samples says little: the mean is near that of the large ones."""
    folder = written(tmp_path / "runs", 12, {}, n=30_000)
    for point in range(12):
        path = folder / f"{point:03d}.host0.folded"
        text = path.read_text()
        path.rename(folder / f"{point:03d}.a.folded")
        (folder / f"{point:03d}.b.folded").write_text(text)
    (folder / "005.b.folded").write_text("main;caller0;f0 1000\nmain;other 2000\n")
    found = fastprof.trend([str(folder)], over="point", label_path="{point}.{run}.folded", rows=1, per="samples")
    (row,) = found.rows
    assert row.name == "f0"
    large, small = float((folder / "005.a.folded").read_text().split()[1]), 1000.0
    assert row.values[5] is not None
    assert row.values[4] is not None
    shares = large / found.points[4].total * 2, small / 3000
    weight = 2 * 3000 / 30_000
    assert row.values[5] == pytest.approx((shares[0] + weight * shares[1]) / (1 + weight), rel=0.01)


def test_table_of_series(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A row for each function and point, as Parquet, as an Arrow stream and from Python; missing values are NULL."""
    duckdb = pytest.importorskip("duckdb", reason="pip install duckdb")
    folder = written(tmp_path / "runs", 12, {}, hosts=2)
    (folder / "003.host1.folded").unlink()
    options = ["--over", "point", "--label-path", "{point}.{host}.folded", "--by", "label:host", "--per", "1"]
    outputs = [str(tmp_path / name) for name in ("series.parquet", "series.arrows")]
    for output in outputs:
        assert main(["trend", str(folder), *options, "-o", output, "-q"]) == 0
    made = fastprof.trend(
        [str(folder)], over="point", label_path="{point}.{host}.folded", by="label:host", per="1", rows=10
    )
    series = made.table("series")
    query = "select label, place, point, value, profiles, samples from {} order by label, place"
    rows = duckdb.sql(query.format("series")).fetchall()
    assert len(rows) == 24
    assert [row[:3] for row in rows[:2]] == [("host0", 0, "000"), ("host0", 1, "001")]
    assert rows[15][:4] == ("host1", 3, "003", None)
    assert rows[3][4] == 1
    assert duckdb.sql(query.format(f"'{outputs[0]}'")).fetchall() == rows
    assert sorted(row["place"] for row in series) == sorted([*range(12)] * 2)
    with pytest.raises(fastprof.UsageError, match="only series"):
        made.table("spans")
    assert main(["trend", str(folder), *options, "-o", "out.pb.gz"]) == 2
    assert "trend writes pages (.html) and tables" in capsys.readouterr().err


def test_times_of_a_clock_are_samples(tmp_path: Path) -> None:
    """Multiples of 50 us, without a stated period: a function that one sample has is no finding."""
    rng = random.Random(4)
    for point in range(12):
        counts = {f"f{i}": poisson(rng, 400) for i in range(5)} | {f"rare{point}": 1}
        weights = [50_000 * n for n in counts.values()]
        document = {
            "$schema": "https://www.speedscope.app/file-format-schema.json",
            "shared": {"frames": [{"name": name} for name in counts]},
            "profiles": [
                {
                    "type": "sampled",
                    "name": "cpu",
                    "unit": "nanoseconds",
                    "startValue": 0,
                    "endValue": sum(weights),
                    "samples": [[i] for i in range(len(weights))],
                    "weights": weights,
                }
            ],
        }
        (tmp_path / f"{point:02d}.speedscope.json").write_text(json.dumps(document))
    found = fastprof.trend(str(tmp_path))
    assert found.sampled
    assert found.points[0].samples
    assert 1800 < found.points[0].samples < 2200
    assert not found.findings


def test_cost_shift(tmp_path: Path) -> None:
    folder = written(tmp_path / "runs", 20, {})
    for point in range(12, 20):
        path = folder / f"{point:03d}.host0.folded"
        path.write_text(path.read_text().replace("f2 ", "f2_renamed "))
    (one,) = over_points(folder, fail_over=1, window=20).findings
    assert (one.name, one.kind, one.since, [other.name for other in one.others]) == (
        "f2",
        "cost shift",
        "012",
        ["f2_renamed"],
    )
    assert not over_points(folder, fail_over=1, window=20).failed


@pytest.mark.parametrize(
    ("lasts", "kind"),
    [(1, "spike"), (6, "went away")],
)
def test_excursions(tmp_path: Path, lasts: int, kind: str) -> None:
    folder = written(tmp_path / "runs", 40, {"f1": (20, 1.5)})
    again = written(tmp_path / "again", 40, {}, seed=2)
    for point in range(20 + lasts, 40):
        name = f"{point:03d}.host0.folded"
        (folder / name).write_text((again / name).read_text())
    found = over_points(folder)
    own = [one for one in found.findings if one.cost == "self" and one.name == "f1"]
    assert [(one.kind, one.since, one.until) for one in own] == [(kind, "020", f"{19 + lasts:03d}")]
    chart = page(found._replace(findings=own))
    assert chart.count('class="band"') == 3  # the level returns
    assert '<meta name="viewport"' in chart  # on phones text has its size


def test_callers_of_what_drifts_and_returns(tmp_path: Path) -> None:
    """A drift to another level is one, not lasting noise.  Inclusive costs that change at its end, and at the end of
    what went away, are no findings of callers."""
    rng = random.Random(7)
    for point in range(60):
        ramp = 1 + 0.4 * min(1.0, max(0.0, (point - 15) / 15))
        costs = {"main;a;b;drifts": 3500 * ramp, "main;a;c;away": 4400 * (1.5 if 34 <= point < 42 else 1)}
        costs |= {f"main;{'ab'[k % 2]};f{k}": 90_000 / 40 for k in range(40)}
        rows = [f"{stack} {poisson(rng, cost)}" for stack, cost in costs.items()]
        (tmp_path / f"{point:02d}.folded").write_text("\n".join(rows) + "\n")
    found = {(one.name, one.kind, one.cost): one for one in fastprof.trend(str(tmp_path)).findings}
    assert {*found} == {("drifts", "drift", "self"), ("away", "went away", "self")}
    drift = found["drifts", "drift", "self"]
    assert abs(drift.since_index - 15) <= 3
    assert {other.name for other in drift.others} <= {"a", "b", "main"}
    assert "main > a > b > drifts" in {cause.text for cause in drift.causes}


def test_dates_are_labels_if_inputs_have_them(tmp_path: Path) -> None:
    for day in range(1, 7):
        graph(tmp_path / f"2025-03-{day:02d}.callgrind", {"f": 10 + 10 * (day > 3), **{f"g{k}": 50 for k in range(9)}})
    found = fastprof.trend(str(tmp_path), over="date", label_path="{date}.callgrind")
    assert [point.name for point in found.points] == [f"2025-03-{day:02d}" for day in range(1, 7)]
    assert [(one.since, [cause.kind for cause in one.causes]) for one in found.findings] == [("2025-03-04", ["line"])]
    assert len(fastprof.trend(str(tmp_path), over="date").points) == 1


def test_exact_costs(tmp_path: Path) -> None:
    """Callgrind counts exactly: a step of 1 % at the last point is certain, and the gate names it."""
    costs = {f"g{i}": 10_000 * (i + 1) for i in range(10)}
    paths = [graph(tmp_path / f"{i}.callgrind", costs) for i in range(7)]
    paths.append(graph(tmp_path / "7.callgrind", costs | {"g5": 60_600}))
    found = fastprof.trend(paths, fail_over=0.5, window=1)
    assert [(one.name, one.since, round(one.change or 0, 1)) for one in found.findings] == [("g5", paths[7], 1.0)]
    assert [(one.name, one.limit) for one in found.failed] == [("g5", 0.5)]
    assert not found.sampled
    assert not fastprof.trend(paths, fail_over=2).failed
    assert not fastprof.trend([*paths[7:], *paths[:7]], fail_over=0.5).failed  # it got faster


def test_pairs_builds(tmp_path: Path) -> None:
    """Paths and versions differ from build to build."""
    for i in range(8):
        costs = {"f": 50 + 50 * (i > 3), **{f"g{k}": 100 for k in range(8)}}
        rows = "".join(f"fn={name}\n1 {cost}\n" for name, cost in costs.items())
        (tmp_path / f"{i}.callgrind").write_text(f"events: Ir\nob=/b{i}/app-1.{i}\nfl=/b{i}/src/a.c\n{rows}")
    found = fastprof.trend(str(tmp_path))
    assert found.n_rows == 9
    assert [(one.name, one.since_index) for one in found.findings] == [("f", 4)]


def test_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commits in the order of the clone; those in between are left to test."""

    def git(*words: str) -> str:
        names = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
        return subprocess.run(["git", *names, *words], cwd=clone, check=True, capture_output=True, text=True).stdout

    clone = tmp_path / "clone"
    clone.mkdir()
    git("init", "-q")
    for i in range(12):
        git("commit", "-q", "--allow-empty", "-m", str(i))
    commits = git("log", "--reverse", "--format=%H").split()
    costs = {f"g{i}": 10_000 for i in range(10)}
    runs = tmp_path / "runs"
    runs.mkdir()
    for i, commit in enumerate(commits):
        if i != 7:
            graph(runs / f"{commit[:10]}.callgrind", costs | {"g1": 20_000 if i > 6 else 10_000})
    (tmp_path / "list").write_text(git("log", "--oneline", "--no-abbrev"))
    monkeypatch.chdir(clone)
    for order in ("git", str(tmp_path / "list")):
        found = fastprof.trend(str(runs), over="commit", order=order, label_path="{commit}.callgrind", bisect=True)
        (one,) = found.findings
        assert (one.since, one.last_good) == (commits[8][:10], commits[6][:10])
        assert one.left == (commits[7], commits[8])


def test_profiles_in_memory_are_points_in_their_order() -> None:
    costs = [1_000] * 6 + [2_000] * 6
    made = [fastprof.from_stacks([(["main", "f"], n), (["main", "g"], 10_000 - n)]) for n in costs]
    found = fastprof.trend(made)
    assert [(one.name, one.since) for one in found.findings] == [("f", "<from_stacks> [7]")]
    days = [one.labelled(day=f"{day:02}") for day, one in enumerate(made)]
    found = fastprof.trend(days, over="label:day")
    assert [(one.name, one.since) for one in found.findings] == [("f", "06")]


def test_per(tmp_path: Path) -> None:
    """Cost per request: twice the load is no change."""
    for i in range(12):
        load = 1 + i % 3
        costs = {f"g{k}": 10_000 * load for k in range(5)} | {"f": 10_000 * load * (1 + (i >= 6))}
        graph(tmp_path / f"{i}.{100 * load}.callgrind", costs)
    labels = {"label_path": "{n}.{requests}.callgrind"}
    found = fastprof.trend(str(tmp_path), over="n", per="label:requests", **labels)  # type: ignore[arg-type]
    assert [(one.name, one.since, one.before, one.after) for one in found.findings] == [("f", "6", 100, 200)]
    with pytest.raises(fastprof.UsageError, match="the label is missing"):
        fastprof.trend(str(tmp_path), over="n", per="label:users", **labels)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["--over", "nothing"], "no input has a label nothing"),
        (["--over", "date", "--order", "git"], "--order sorts the values of a label"),
        (["--bisect"], "--bisect needs the commits in between: --order"),
        (["--per", "-1"], "not a number above 0"),
        (["--within", "rack"], "no input has this label"),
        (["--per", "nosuch"], "--per: unknown key or value type 'nosuch', expected calls, label:KEY, a number, Ir"),
        (["--fail-over", "nosuch=5"], "no profile has a function named nosuch"),
        (["--window", "3"], "--window needs --fail-over"),
        (["-o", "x.folded"], "trend writes pages (.html) and tables"),
    ],
)
def test_usage(tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], error: str) -> None:
    paths = [graph(tmp_path / f"{i}.callgrind", {"f": 1}) for i in range(2)]
    assert main(["trend", *paths, *words]) == 2
    assert error in capsys.readouterr().err


def test_nothing_to_compare(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One point, and profiles without costs."""
    one = graph(tmp_path / "1.callgrind", {"f": 5})
    assert main(["trend", one]) == 0
    assert "1 point: changes need at least 4" in capsys.readouterr().err
    zeros = [graph(tmp_path / f"z{i}.callgrind", {"f": 0}) for i in range(5)]
    empty = fastprof.trend(zeros)
    assert (empty.findings, len(empty.points), [*empty.log.warnings]) == ([], 5, ["the costs of all inputs are 0"])


def test_profiles_that_say_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An empty profile, or one of three samples, neither hides a step nor opens the gate."""
    folder = written(tmp_path / "runs", 20, {"f4": (17, 1.2)})
    for text, warning in (
        ("main;f4 0\n", "inputs whose costs are 0, left out: 1, first "),
        ("main;f1 3\n", "a fiftieth of the median, left out: 1, first "),
    ):
        (folder / "005.host0.folded").write_text(text)
        found = over_points(folder, fail_over=2)
        assert [(one.name, one.kind, one.since) for one in found.findings] == [("f4", "step", "017")]
        assert [one.name for one in found.failed] == ["f4"]
        assert len(found.points) == 19
        assert warning in str(found.log.warnings)
    # a limit of a caller, whose cost grew with it; findings that the threshold hides count, too
    assert [one.name for one in over_points(folder, fail_over="main=0.1,caller1=0.1").failed] == ["main", "caller1"]
    hidden = over_points(folder, fail_over=2, threshold=0.5)
    assert not hidden.findings
    assert [one.name for one in hidden.failed] == ["f4"]
    capsys.readouterr()
    assert main(["trend", *(str(folder / f"00{i}.host0.folded") for i in range(3))]) == 0
    assert "3 points: changes need at least 4" in capsys.readouterr().err


def test_series_that_mean_something_else(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Commits that nobody put in order, and labels that no sample has."""
    for i, commit in enumerate(("9f31c2a", "77ab01d", "a00b1c2", "0123abc")):
        graph(tmp_path / f"{commit}.callgrind", {"f": i + 1})
    words = ["trend", str(tmp_path), "--label-path", "{commit}.callgrind", "--over", "commit"]
    assert main(words) == 0
    assert "look like commits, in the order of inputs; --order=git sorts them" in capsys.readouterr().err
    assert main([*words, "--by", "label:shard"]) == 0
    assert "no sample has the label shard" in capsys.readouterr().err
    assert main([*words, "--by", "label:commit"]) == 0
    assert "no sample has" not in capsys.readouterr().err


def test_names_are_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Names control neither the terminal nor Markdown, also below the table."""
    folder = written(tmp_path / "runs", 16, {"f4": (9, 1.5)})
    for path in folder.iterdir():
        path.write_text(path.read_text().replace("f4 ", "\x1b[31m<b>[a](b) "))
    words = ["trend", str(folder), "--over", "point", "--label-path", "{point}.{host}.folded"]
    (tmp_path / "list").write_text("\n".join(f"{i:03d}" for i in reversed(range(16))))
    words += ["--order", str(tmp_path / "list"), "--bisect"]
    assert main(words) == 0
    text = capsys.readouterr().out
    assert "\x1b" not in text
    assert "% of it" in text
    assert "1 commit after 008, up to 009" in text
    assert main([*words, "--markdown"]) == 0
    text = capsys.readouterr().out
    assert "% of it" in text
    assert "\x1b" not in text
    assert not re.search(r"(?<!\\)[<\[]", text)


def test_keep_going(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = written(tmp_path / "runs", 6, {})
    (folder / "bad.callgrind").write_text("events: Ir\nfn=f\nx y z\n")
    assert main(["trend", str(folder), "-q"]) == 1
    assert main(["trend", str(folder), "--keep-going", "-q"]) == 3
    assert "bad.callgrind" in capsys.readouterr().err


def test_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = written(tmp_path / "runs", 20, {"f4": (15, 1.5)})
    words = ["trend", str(folder), "--over", "point", "--label-path", "{point}.{host}.folded"]
    assert main(words) == 0
    text = capsys.readouterr().out
    assert "f4" in text
    assert "+50 %" in text or "+49 %" in text or "+51 %" in text
    assert "▁" in text
    assert main([*words, "--json", "--fail-over", "2"]) == 4
    out = capsys.readouterr().out
    document = json.loads(out)
    assert out.startswith('{\n "schema": "fastprof/trend/1"')
    assert document["failed"][0]["name"] == "f4"
    assert len(document["findings"][0]["values"]) == len(document["points"]) == 20
    assert main([*words, "--markdown", "--fail-over", "2"]) == 4
    assert "**Failed:** f4" in capsys.readouterr().out
    assert main([*words, "-o", str(tmp_path / "t.csv")]) == 0
    assert (tmp_path / "t.csv").read_text().startswith("name,file,line")


def test_causes(tmp_path: Path) -> None:
    """Call paths, lines and labels that carry a change."""
    rng = random.Random(3)
    for point in range(16):
        for host in range(3):
            slow = point >= 9 and host == 2
            rows = [f"main;a;f{i} {poisson(rng, 2000)}" for i in range(10)]
            rows += [f"main;b;f {poisson(rng, 6000 if slow else 2000)}", f"main;a;f {poisson(rng, 2000)}"]
            name = f"{point:02d}.host{host}.{'gcc13' if point >= 9 else 'gcc12'}.folded"
            (tmp_path / name).write_text("\n".join(rows) + "\n")
    found = fastprof.trend(str(tmp_path), over="point", label_path="{point}.{host}.{compiler}.folded")
    (one,) = [one for one in found.findings if one.name == "f"]
    causes = {cause.kind: cause for cause in one.causes}
    assert (causes["path"].text, causes["label"].text) == ("main > b > f", "host=host2")
    assert causes["changed label"].text == "compiler: gcc12 -> gcc13"
    assert causes["path"].share is not None
    assert causes["path"].share > 0.9
    assert (
        not fastprof.trend(str(tmp_path), over="point", explain=0, label_path="{point}.{host}.{compiler}.folded")
        .findings[0]
        .causes
    )


@pytest.mark.parametrize("by", ["function", "line", "file", "object", "category"])
def test_builds_in_folders_of_their_own(tmp_path: Path, by: str, capsys: pytest.CaptureFixture[str]) -> None:
    """One finding, in all ways to group, and each cause once."""
    for i in range(8):
        place, cost = f"/build{i}/src", 60 if i > 4 else 40
        rows = f"fn=fill\n7 {cost}\nfn=0x10f0\n1 9\nfn=main\n3 1\ncfn=fill\ncalls=1 7\n3 {cost}\n"
        other = "ob=/lib/c.so\nfl=/lib/c.c\nfn=copy\n1 100\n"
        (tmp_path / f"{i}.callgrind").write_text(f"events: Ir\nob={place}/prog\nfl={place}/a.c\n{rows}{other}")
    assert main(["trend", str(tmp_path), "--by", by]) == 0
    out = capsys.readouterr().out
    assert ": 1 finding in " in out
    assert "  5.callgrind  " in out
    assert out.count("a.c:7 ") == (by in ("function", "line", "file"))
    assert ("categories" in out) == (by == "category")


def test_many_of_one_name_in_many_builds(tmp_path: Path) -> None:
    """Paired by the ends of their paths, in the third build and later, too."""
    for build in range(8):
        costs = {i: 2000 + 7 * i + 500 * (i == 9 and build >= 4) for i in range(70)}
        rows = [f"fl=/build/{build}/src/gen{i}.c\nfn=run\n1 {cost}\n" for i, cost in costs.items()]
        (tmp_path / f"{build}.callgrind").write_text("events: Ir\n" + "".join(rows))
    found = fastprof.trend(str(tmp_path))
    assert [(one.name, one.since_index, one.kind) for one in found.findings] == [("run", 4, "step")]
    assert (found.n_rows, found.findings[0].file) == (70, "/build/7/src/gen9.c")


def test_page(tmp_path: Path) -> None:
    """One file without links, with a chart for each finding; names are text, whatever they are."""
    folder = written(tmp_path / "runs", 16, {"f4": (9, 1.5)})
    for path in folder.iterdir():
        path.write_text(path.read_text().replace("f4 ", "<script>alert(1)</script> "))
    out = tmp_path / "t.html"
    words = ["--over", "point", "--label-path", "{point}.{host}.folded", "-o", str(out)]
    assert main(["trend", str(folder), *words]) == 0
    text = out.read_text()
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;: +5" in text
    assert text.count('class="at"') == 1
    assert "Functions over time" in text
    assert '<a href="#f0">&lt;script&gt;' in text
    assert '<section id="f0">' in text
    assert 'compared</summary><iframe loading="lazy" sandbox' in text
    assert not re.search(r"(?:src|href)=\"http", text)
    assert "p &lt; 0.001" in text
    assert "overflow-wrap:anywhere" in text


def test_page_compares_each_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once for all that begin at one point; a page that has no room says so, with the command."""
    folder = written(tmp_path / "runs", 16, {"f3": (6, 1.5), "f4": (9, 1.5), "f5": (9, 1.5)})
    words = ["trend", str(folder), "--over", "point", "--label-path", "{point}.{host}.folded", "-o"]
    assert main([*words, str(tmp_path / "whole.html")]) == 0
    monkeypatch.setattr("fastprof.cli.trend._MOST_BYTES", 1)
    assert main([*words, str(tmp_path / "cut.html")]) == 0
    whole, cut = ((tmp_path / f"{name}.html").read_text() for name in ("whole", "cut"))
    assert (whole.count("<iframe"), cut.count("<iframe")) == (2, 1)
    assert re.findall(r"<p>(\d+) and (\d+) are compared <a", whole) == [("008", "009")]
    command = f"fastprof report {folder}/008.host0.folded {folder}/009.host0.folded -o compared.html"
    assert f"are not compared here: this page would be larger than 0 MB.  This does: <code>{command}" in cut


def test_page_compares_profiles_of_one_host(tmp_path: Path) -> None:
    """The first host of the point before the change has no profile after it: another that both have is compared."""
    folder = written(tmp_path / "runs", 16, {"f4": (9, 1.5)}, hosts=3)
    (folder / "009.host0.folded").unlink()
    (folder / "008.host1.folded").unlink()
    (one,) = over_points(folder).findings
    assert [Path(name).name for name in one.inputs] == ["008.host2.folded", "009.host2.folded"]


def test_files_of_one_name(tmp_path: Path) -> None:
    """300 files of one name move to another folder: each is paired by the end of its path."""
    for i in range(10):
        root = f"/build{i // 5}/src"
        costs = {f"{root}/d{k // 20}/m{k}/mod.rs": 1000 + k for k in range(300)}
        if i > 5:
            costs |= {f"{root}/d8/m170/mod.rs": 3000, f"{root}/d8/new/mod.rs": 900}
        rows = (f"fl={path}\nfn=f{k}\n1 {cost}\n" for k, (path, cost) in enumerate(costs.items()))
        (tmp_path / f"{i}.callgrind").write_text("events: Ir\n" + "\n".join(rows))
    found = fastprof.trend(str(tmp_path), by="file", explain=0)
    assert found.n_rows == 301
    ends = {one.file.removeprefix("/build1/src/"): one.since_index for one in found.findings}
    assert ends == {"d8/m170/mod.rs": 6, "d8/new/mod.rs": 6}


def test_share_of_all_is_no_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`main` always has 100 %: if it seems to change, only what shares are divided by did."""
    changes = Series.changes

    def more(self: Series, alpha: float, *, are_apart: bool = True) -> list[Change]:
        """Also one of the row that costs most."""
        found = changes(self, alpha, are_apart=are_apart)
        main_ = max(self.rows, key=lambda row: self.values(row)[0] or 0)
        return found if are_apart else [*found, Change(main_, "spike", 5, 6, 1, 0.96, -9, 0, 0.001)]

    folder = written(tmp_path / "runs", 12, {})
    monkeypatch.setattr(Series, "changes", more)
    assert not over_points(folder, explain=0).findings
    monkeypatch.setattr("fastprof.verbs.trend.causes._ALL", 1.1)
    assert [one.name for one in over_points(folder, explain=0).findings] == ["main"]


@pytest.mark.parametrize("step", ["noise", "test", "means", "common"])
def test_statistics_that_run_out_of_memory_are_an_error(
    step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a trend would be without findings."""
    module = import_module("fastprof.verbs.trend.series")
    real = module.lib

    class Full:
        def __getattr__(self, name: str) -> object:
            return (lambda *_: real.FP_E_NOMEM) if name == f"fp_trend_{step}" else getattr(real, name)

    folder = written(tmp_path / "runs", 12, {"f4": (8, 1.5)}, n=2000)
    monkeypatch.setattr(module, "lib", Full())
    with pytest.raises(MemoryError):
        over_points(folder, cache="none")
