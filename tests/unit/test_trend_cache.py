"""fastprof trend: the sums that are kept, which change no answer."""

from __future__ import annotations

import json
import os
import random
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

import fastprof
from fastprof.cli import main
from fastprof.verbs.trend.kept import Cache, _digest
from tests.support.trends import graph, over_points, written


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
            new = (*row, _digest(key, row[0], crc32(row[1])), key)
            database.execute("UPDATE runs SET facts = ?, costs = ?, digest = ? WHERE key = ?", new)
    assert 2 < len(all_) < 2 * 42  # of two sets of options
    compared()


@pytest.mark.parametrize(("kind", "is_shared"), [("same", True), ("other", False), ("builds", False)])
def test_rows_that_profiles_share(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, *, is_shared: bool
) -> None:
    """Those of a run are kept once, if profiles have about the same ones, which are not those of two builds."""
    monkeypatch.setattr("fastprof.verbs.trend.kept._LENGTH", 8)
    rng, paths = random.Random(kind), []
    for i in range(60):
        build = i % 2 if kind == "builds" else 0
        names = [f"f{k}" if kind != "other" else f"f{k}_{i}" for k in range(12) if k < 3 or rng.random() < 0.9]
        rows = [f"fn={name}\n{k} {1000 * k + (80_000 if k == 2 and i > 40 else 900)}\n" for k, name in enumerate(names)]
        path = tmp_path / f"{i:02}.callgrind"
        path.write_text(f"events: Ir\nfl=/build{build}/a.c\n" + "".join(rows))
        paths.append(str(path))
    time.sleep(0.03)
    cache, plain = tmp_path / "sums", fastprof.trend(paths, rows=50)._asdict()
    assert plain["findings"]
    for _ in range(2):
        found = fastprof.trend(paths, rows=50, cache=str(cache))._asdict()
        assert {**found, "log": found["log"].data()} == {**plain, "log": plain["log"].data()}
    with sqlite3.connect(cache) as database:
        n_shared = [json.loads(facts)[0]["rows"] for (facts,) in database.execute("SELECT facts FROM runs")]
    assert sum((n > 0) == is_shared for n in n_shared) > len(n_shared) / 2  # one profile shares rows with itself


def test_exact_costs_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of Callgrind, which have no number of samples."""
    paths = [graph(tmp_path / f"{i}.callgrind", {"f": 100, "g": 100 + 50 * (i > 5)}) for i in range(12)]
    time.sleep(0.03)
    first = fastprof.trend(paths, cache=str(tmp_path / "sums"))
    monkeypatch.setattr("fastprof.verbs.trend.sums.Sums._summed", never)
    assert fastprof.trend(paths, cache=str(tmp_path / "sums"), explain=0).points == first.points


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


# By fact: what it is not.
WRONG: dict[str, list[Any]] = {
    "name": [5],
    "labels": [5, {"a": [1]}, {"a": 5}, {"a": []}, [], [[]]],
    "time": ["x"],
    "total": [1 << 80, 1.5],
    "samples": [None, float("inf")],
    "unit": ["x", float("nan")],
    "log": [5, {"repairs": 3}, {"repairs": [], "losses": [], "left_out": [], "not_representable": [], "warnings": [5]}],
    "value": ["x", [5], ["a"] * 9],
    "calls": [1],
    "idle": ["x", [5]],
    "size": [-1, 1 << 40],
    "rows": [-1, 0, 1, 1 << 40, "x", None, 1.5],
}


def test_hostile_caches(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Facts of other types, numbers without end, costs of other lengths and rows that are no names, all with a digest
    that fits: they are not taken, so the answer is that without a cache."""
    folder, path = written(tmp_path / "runs", 8, {"f4": (4, 1.5)}), tmp_path / "sums"
    time.sleep(0.03)
    plain = printed(folder, capsys)
    printed(folder, capsys, "--cache", str(path))
    whole = path.read_bytes()

    def check(changed: Callable[[Any, bytes], tuple[Any, bytes]]) -> None:
        path.write_bytes(whole)
        with sqlite3.connect(path) as database:
            for table in ("profiles", "runs"):
                for key, facts, costs in database.execute(f"SELECT key, facts, costs FROM {table}").fetchall():
                    given, data = changed(json.loads(facts), costs)
                    text = json.dumps(given)
                    row = text, data, _digest(key, text, crc32(data) if table == "runs" else data), key
                    database.execute(f"UPDATE {table} SET facts = ?, costs = ?, digest = ? WHERE key = ?", row)
        assert printed(folder, capsys, "--cache", str(path)) == plain

    def with_fact(facts: Any, name: str, value: Any) -> Any:
        if isinstance(facts, dict):
            return facts | {name: value} if name != "size" else {}
        common, each = facts
        changed = [value, *each[name][1:]] if name in each and isinstance(each[name], list) else value
        return [common | {name: value}, each] if name in common else [common, each | {name: changed}]

    for name, values in WRONG.items():
        for value in values:
            check(lambda facts, costs, name=name, value=value: (with_fact(facts, name, value), costs))  # type: ignore[misc]
    check(lambda facts, costs: (facts, costs[:-1]))
    check(lambda facts, costs: (facts, costs[:8] + b"\xff" * 4 + costs[12:]))
    check(lambda facts, costs: (facts, b"\xff" * len(costs)))
    check(lambda facts, costs: ([], costs))
    check(lambda facts, costs: ([facts[0], {name: [] for name in facts[1]}] if isinstance(facts, list) else 5, b""))


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
