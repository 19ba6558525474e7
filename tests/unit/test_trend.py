"""fastprof trend: series of many profiles, their changes and what causes them."""

from __future__ import annotations

import json
import os
import random
import re
import sqlite3
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

import fastprof
from fastprof.cli import main
from fastprof.verbs.trend.kept import Cache, _digest

SHARES = {f"f{i}": 1 / (i + 2) for i in range(30)}


def poisson(rng: random.Random, mean: float) -> int:
    """Of a large mean."""
    return max(0, round(rng.gauss(mean, mean**0.5)))


def written(
    folder: Path, points: int, factors: dict[str, tuple[int, float]], *, hosts: int = 1, n: int = 100_000, seed: int = 1
) -> Path:
    """Profiles of `n` samples each: from a point on, the cost of a function is multiplied by a factor."""
    rng = random.Random(seed)
    folder.mkdir(exist_ok=True)
    slower = {f"host{h}": {f: random.Random(f + str(h)).uniform(0.8, 1.25) for f in SHARES} for h in range(hosts)}
    for point in range(points):
        for host, own in slower.items():
            costs = {
                name: share * own[name] * (factors[name][1] if name in factors and point >= factors[name][0] else 1)
                for name, share in SHARES.items()
            }
            total = sum(costs.values())
            rows = [
                f"main;caller{i % 3};{name} {poisson(rng, n * c / total)}" for i, (name, c) in enumerate(costs.items())
            ]
            (folder / f"{point:03d}.{host}.folded").write_text("\n".join(rows) + "\n")
    return folder


def over_points(folder: Path, **options: object) -> fastprof.Trend:
    return fastprof.trend([str(folder)], over="point", label_path="{point}.{host}.folded", **options)  # type: ignore[arg-type]


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


@pytest.mark.parametrize("seed", range(3))
def test_noise_is_no_finding(tmp_path: Path, seed: int) -> None:
    assert not over_points(written(tmp_path / "runs", 40, {}, seed=seed)).findings


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
    found = [one for one in over_points(folder).findings if one.cost == "self" and one.name == "f1"]
    assert [(one.kind, one.since, one.until) for one in found] == [(kind, "020", f"{19 + lasts:03d}")]


def graph(path: Path, costs: dict[str, int]) -> str:
    lines = [f"fn={name}\n{i + 1} {cost}\n" for i, (name, cost) in enumerate(costs.items())]
    path.write_text("events: Ir\nfl=a.c\n" + "\n".join(lines))
    return str(path)


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
    assert not fastprof.trend(zeros).findings


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


def test_causing_lines(tmp_path: Path) -> None:
    paths = []
    for i in range(10):
        path = tmp_path / f"{i}.callgrind"
        others = "".join(f"fn=g{k}\n{k + 20} 100\n" for k in range(8))
        path.write_text(f"events: Ir\nfl=a.c\nfn=f\n7 {50 if i < 6 else 150}\n8 100\n{others}")
        paths.append(str(path))
    (one,) = fastprof.trend(paths).findings
    assert [(cause.kind, cause.text) for cause in one.causes] == [("line", "a.c:7")]


# ---- the cache


def printed(folder: Path, capsys: pytest.CaptureFixture[str], *words: str) -> str:
    capsys.readouterr()
    given = ["--over", "point", "--label-path", "{point}.{host}.folded", "--json", "--rows", "50"]
    assert main(["trend", str(folder), *given, *words]) == 0
    return capsys.readouterr().out


def test_cache(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It changes no answer: first, again, with a new point, with a changed profile, and with other options."""
    folder, cache = written(tmp_path / "runs", 14, {"f4": (9, 1.5)}, hosts=2), ("--cache", str(tmp_path / "sums"))
    plain = printed(folder, capsys)
    assert "f4" in plain
    for _ in range(2):
        assert printed(folder, capsys, *cache) == plain
    size = (tmp_path / "sums").stat().st_size
    (folder / "014.host0.folded").write_text("main;new 5000\nmain;f0 80000\n")
    rows = (folder / "003.host1.folded").read_text().replace("f7 ", "renamed_f7 ")
    (folder / "003.host1.folded").write_text(rows)
    assert printed(folder, capsys, *cache) == printed(folder, capsys)
    by_object = "--by", "object"
    assert printed(folder, capsys, *cache, *by_object) == printed(folder, capsys, *by_object)
    only = "--function", "^f[0-9]$"
    assert printed(folder, capsys, *cache, *only) == printed(folder, capsys, *only)
    assert (tmp_path / "sums").stat().st_size > size


def never(*_: object, **__: object) -> None:
    raise AssertionError("a profile was read")


@pytest.mark.parametrize("kind", ["folder", "store"])
def test_sums_are_kept_next_to_inputs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Without --cache, if the folder is the user's own: the next run reads what is new, and its answer is the same."""
    runs, kept = written(tmp_path / "runs", 34, {"f4": (20, 1.5)}), tmp_path / ".runs.sums"
    folder = runs
    if kind == "store":
        folder, kept = tmp_path / "all.fpa", tmp_path / ".all.fpa.sums"
        assert main(["archive", "add", "-q", str(folder), str(runs)]) == 0
    time.sleep(0.03)
    plain = printed(folder, capsys, "--cache", "none")
    assert not kept.exists()
    assert printed(folder, capsys) == plain
    assert kept.stat().st_mode & 0o022 == 0
    monkeypatch.setattr("fastprof.verbs.trend.sums.Sums._summed", never)
    assert printed(folder, capsys, "--explain", "0")
    monkeypatch.undo()
    changed = runs / "021.host0.folded"
    was, text = changed.stat(), changed.read_text()
    changed.write_text(text.replace("f4 ", "g4 "))
    os.utime(changed, ns=(was.st_atime_ns, was.st_mtime_ns))  # of the same size, and as old
    if kind == "store":
        assert main(["archive", "add", "-q", "--replace", str(folder), str(runs)]) == 0
    time.sleep(0.03)
    now = printed(folder, capsys, "--cache", "none")
    assert now != plain
    assert printed(folder, capsys) == now
    kept.unlink()
    kept.symlink_to(tmp_path / "elsewhere")
    assert printed(folder, capsys) == now
    assert not (tmp_path / "elsewhere").exists()
    kept.unlink()
    tmp_path.chmod(0o777)
    assert printed(folder, capsys) == now
    assert not kept.exists()


def test_cache_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second run opens no profile, except to explain."""
    folder = written(tmp_path / "runs", 6, {})
    time.sleep(0.03)  # a file that was just written may change without another time
    first = over_points(folder, cache=str(tmp_path / "sums"))
    monkeypatch.setattr("fastprof.verbs.trend.sums.Inputs", never)
    again = over_points(folder, cache=str(tmp_path / "sums"))
    assert again.points == first.points
    assert again.n_rows == first.n_rows


@pytest.fixture(autouse=True)
def _short_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few profiles are kept together."""
    monkeypatch.setattr("fastprof.verbs.trend.kept._LENGTH", 3)


@pytest.mark.parametrize("kind", ["folder", "store"])
def test_runs_of_profiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """Profiles are kept together, too.  New, deleted and changed ones, builds whose functions are paired, and runs that
    say something else than their key, change no answer; runs that are no longer used are forgotten."""
    runs, cache = tmp_path / "runs", tmp_path / "sums"
    one_by_one, n_single = Cache.get, [0]

    def got(self: Cache, key: bytes) -> object:
        n_single[0] += 1
        return one_by_one(self, key)

    def compared(*, add: bool = True, most: int = 99) -> None:
        folder = runs
        if kind == "store":
            folder = tmp_path / "all.fpa"
            assert not add or main(["archive", "add", "-q", "--replace", str(folder), str(runs)]) == 0
        time.sleep(0.03)
        for words in ({"over": "point", "label_path": "{point}.{host}.folded"}, {"over": "date"}):
            plain = fastprof.trend([str(folder)], **words)._asdict()  # type: ignore[arg-type]
            n_single[0] = 0
            found = fastprof.trend([str(folder)], **words, cache=str(cache))._asdict()  # type: ignore[arg-type]
            assert {**found, "log": found["log"].data()} == {**plain, "log": plain["log"].data()}
        assert n_single[0] <= most

    written(runs, 40, {"f4": (20, 1.5)})
    for path in sorted(runs.iterdir())[30:]:  # another build, of which some functions have another file
        path.write_text(path.read_text().replace("f3 ", "f3 [libx-1.2.so] "))
    monkeypatch.setattr(Cache, "get", got)
    compared()
    compared(add=False, most=12)  # of the last run
    written(tmp_path / "more", 42, {"f4": (20, 1.5)})
    for path in sorted((tmp_path / "more").iterdir())[40:]:
        path.rename(runs / path.name)
    compared(most=36 if kind == "folder" else 99)
    (runs / "005.host0.folded").write_text((runs / "006.host0.folded").read_text())
    compared()
    with sqlite3.connect(cache) as database:
        all_ = database.execute("SELECT key, facts, costs FROM runs").fetchall()
        for i, (key, facts, costs) in enumerate(all_):
            row: tuple[Any, Any] = (
                (facts[:-2] + "9]]", costs),
                (facts, costs[:-1]),
                ("[{}, [[]]]", costs),
                ("5", costs),
            )[i % 4]
            new = (*row, _digest(key, *row), key)
            database.execute("UPDATE runs SET facts = ?, costs = ?, digest = ? WHERE key = ?", new)
    assert 2 < len(all_) < 42
    compared()


def test_value_of_the_cache(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each profile has a default value type; that of the first decides for all, also if others are known."""
    for name, events in (("1", "Ir Dr"), ("2", "Dr Ir"), ("3", "Ir Dr")):
        (tmp_path / f"{name}.callgrind").write_text(f"events: {events}\nfl=a.c\nfn=f\n1 10 30\nfn=g\n1 5 5\n")
    cache = ["--cache", str(tmp_path / ".sums"), "--json", "--rows", "9"]
    for names in ("12", "21", "3", "213", "132"):
        paths = [str(tmp_path / f"{name}.callgrind") for name in names]
        capsys.readouterr()
        assert main(["trend", *paths, "--json", "--rows", "9"]) == 0
        plain = capsys.readouterr().out
        assert main(["trend", *paths, *cache]) == 0
        assert capsys.readouterr().out == plain


def test_damaged_caches(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Damage anywhere, truncation, and hostile content: the answer is that without a cache."""
    folder, path = written(tmp_path / "runs", 6, {"f4": (3, 1.5)}), tmp_path / "sums"
    plain = printed(folder, capsys)
    printed(folder, capsys, "--cache", str(path))
    whole = path.read_bytes()
    rng = random.Random(5)
    for i in range(16):
        damaged = bytearray(whole)
        for _ in range(1 + 40 * (i % 3)):
            damaged[rng.randrange(100, len(damaged))] = rng.randrange(256)
        path.write_bytes(bytes(damaged[: rng.randrange(100, len(damaged))] if i % 4 == 3 else damaged))
        assert printed(folder, capsys, "--cache", str(path)) == plain
    path.write_bytes(whole)
    with sqlite3.connect(path) as database:
        database.execute("UPDATE profiles SET costs = zeroblob(4000)")
        database.execute("UPDATE profiles SET facts = '{}' WHERE hex(key) < '8'")
    assert printed(folder, capsys, "--cache", str(path)) == plain
    with sqlite3.connect(path) as database:
        database.execute("UPDATE names SET name = 5")
    assert printed(folder, capsys, "--cache", str(path)) == plain


def test_cache_in_a_folder_of_inputs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = written(tmp_path / "runs", 6, {"f4": (3, 1.5)})
    plain = printed(folder, capsys)
    for _ in range(2):
        assert printed(folder, capsys, "--cache", str(folder / "sums")) == plain


def test_cache_of_another_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is neither damaged nor replaced."""
    monkeypatch.setattr("fastprof.verbs.trend.kept._WAIT", 0)
    folder, cache = written(tmp_path / "runs", 6, {}), tmp_path / "sums"
    over_points(folder, cache=str(cache))
    inode = cache.stat().st_ino
    other = sqlite3.connect(cache, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    found = over_points(folder, cache=str(cache))
    assert "another run has the cache" in str(found.log.warnings)
    assert found.points == over_points(folder).points
    other.execute("DELETE FROM profiles")
    other.execute("COMMIT")
    other.close()
    assert cache.stat().st_ino == inode


def test_another_file_is_no_cache(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = written(tmp_path / "runs", 2, {})
    (tmp_path / "notes").write_text("precious")
    assert main(["trend", str(folder), "--cache", str(tmp_path / "notes")]) == 1
    assert "is not a cache" in capsys.readouterr().err
    assert (tmp_path / "notes").read_text() == "precious"


# ---- the page


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
    assert "compared</summary><iframe sandbox" in text
    assert not re.search(r"(?:src|href)=\"http", text)
    assert "p &lt; 0.001" in text
    assert "overflow-wrap:anywhere" in text
