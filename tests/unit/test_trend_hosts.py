"""fastprof trend: hosts that come in turn are compared with themselves."""

from __future__ import annotations

from pathlib import Path

from tests.support.trends import over_points, written


def only(folder: Path, host: int, points: range) -> None:
    """Removes the profiles of the other hosts at these points."""
    for point in points:
        for path in folder.glob(f"{point:03d}.*"):
            if path.name != f"{point:03d}.host{host}.folded":
                path.unlink()


def test_hosts_in_turn(tmp_path: Path) -> None:
    """Hosts that differ by a quarter come one a night: each is compared with itself."""
    folder = written(tmp_path / "runs", 42, {"f3": (21, 1.15)}, hosts=3)
    for point in range(42):
        only(folder, point % 3, range(point, point + 1))
    assert [(one.name, one.since) for one in over_points(folder).findings if one.cost == "self"] == [("f3", "021")]


def test_replaced_host(tmp_path: Path) -> None:
    """Another host takes over: two hosts are not compared with each other."""
    folder = written(tmp_path / "runs", 40, {}, hosts=2)
    only(folder, 0, range(22))
    only(folder, 1, range(22, 40))
    assert not over_points(folder).findings


def test_hosts_that_come_once(tmp_path: Path) -> None:
    """Names of hosts that never return, as runners have, do not hide a change."""
    folder = written(tmp_path / "runs", 20, {"f3": (10, 1.3)})
    for point in range(20):
        (folder / f"{point:03d}.host0.folded").rename(folder / f"{point:03d}.host{point}.folded")
    assert {(one.name, one.since) for one in over_points(folder).findings if one.cost == "self"} == {("f3", "010")}
