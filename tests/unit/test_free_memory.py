"""The available memory, and the end of a conversion that would exceed it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import fastprof
from fastprof.core import free_memory, model
from fastprof.core.errors import FastprofError

GIB = 1 << 30


def tree(root: Path, files: dict[str, str]) -> str:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return str(root)


MACHINE = {"proc/meminfo": "MemTotal: 16777216 kB\nMemFree: 1 kB\nMemAvailable: 4194304 kB\nSwapTotal: 0 kB\n"}


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, None),
        (MACHINE, 4 * GIB),
        # version 2: the group's own limit, one above it, and the file cache
        (
            {
                **MACHINE,
                "proc/self/cgroup": "0::/user/job\n",
                "sys/fs/cgroup/user/job/memory.max": "max\n",
                "sys/fs/cgroup/user/job/memory.current": "5\n",
                "sys/fs/cgroup/user/memory.max": f"{2 * GIB}\n",
                "sys/fs/cgroup/user/memory.current": f"{GIB + 100}\n",
                "sys/fs/cgroup/user/memory.stat": "anon 7\ninactive_file 30\n",
            },
            GIB - 70,
        ),
        # version 1 next to an empty version 2, as systemd mixes them; the limit is exceeded already
        (
            {
                **MACHINE,
                "proc/self/cgroup": "4:cpu,cpuacct:/x\n3:memory:/x\n0::/\n",
                "sys/fs/cgroup/memory/x/memory.limit_in_bytes": f"{GIB}\n",
                "sys/fs/cgroup/memory/x/memory.usage_in_bytes": f"{2 * GIB}\n",
            },
            0,
        ),
        ({**MACHINE, "proc/self/cgroup": "damaged\n\n:::\n"}, 4 * GIB),
    ],
)
def test_what_is_left(files: dict[str, str], expected: int | None, tmp_path: Path) -> None:
    assert free_memory.available(tree(tmp_path, files)) == expected


def test_this_machine() -> None:
    left = free_memory.available()
    assert left is not None and left > 1 << 20


@pytest.fixture
def folded(tmp_path: Path) -> Path:
    path = tmp_path / "many.folded"
    path.write_text("".join(f"main;f{i};g{i} 1\n" for i in range(60_000)))
    return path


def test_names_that_need_more_than_is_left_end_the_conversion(
    folded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    def left(n: int) -> Any:
        monkeypatch.setattr(free_memory, "available", lambda: asked.append(n) or n)

    monkeypatch.setattr(model, "_STEP", 1 << 20)
    left(100 << 20)
    fastprof.convert(folded, tmp_path / "out.pb")
    assert 2 < len(asked) < 30  # not for each batch
    (tmp_path / "out.pb").unlink()
    left(1 << 20)
    with pytest.raises(
        FastprofError, match=r"many.folded: names and distinct stacks take \d+ MiB and need more, but only 1"
    ):
        fastprof.convert(folded, tmp_path / "out.pb")
    assert [path.name for path in tmp_path.iterdir()] == ["many.folded"]
    with pytest.raises(FastprofError, match="names and distinct stacks"):
        fastprof.info(folded)


def test_where_nothing_is_known_nothing_is_refused(
    folded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model, "_STEP", 1 << 20)
    monkeypatch.setattr(free_memory, "available", lambda: None)
    fastprof.convert(folded, tmp_path / "out.pb")
