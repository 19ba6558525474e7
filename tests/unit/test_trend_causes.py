"""fastprof trend: the lines that carry a change."""

from __future__ import annotations

from pathlib import Path

import pytest

import fastprof


def test_causing_lines(tmp_path: Path) -> None:
    paths = []
    for i in range(10):
        path = tmp_path / f"{i}.callgrind"
        others = "".join(f"fn=g{k}\n{k + 20} 100\n" for k in range(8))
        path.write_text(f"events: Ir\nfl=a.c\nfn=f\n7 {50 if i < 6 else 150}\n8 100\n{others}")
        paths.append(str(path))
    (one,) = fastprof.trend(paths).findings
    assert [(cause.kind, cause.text) for cause in one.causes] == [("line", "a.c:7")]


@pytest.mark.parametrize("changed", ["a", "b", "c"])
def test_causing_lines_of_one_name(tmp_path: Path, changed: str) -> None:
    """Of the file of the function that changed, in builds of their own, though others vary."""
    for i in range(12):
        rows = "".join(f"fn=g{k}\n{k + 20} 100\n" for k in range(9))
        for one in "abc":
            of, cost = ("lib/y" if one == "c" else "x"), 200 * (i >= 7 and one == changed)
            vary = 9 * (i % 3) * (one != changed)
            rows += f"ob=/{of}.so\nfl=/build{i}/{one}/util.c\nfn=init\n7 {50 + cost + vary}\n9 {90 - vary}\n"
        (tmp_path / f"{i}.callgrind").write_text(f"events: Ir\nob=/x.so\nfl=z.c\n{rows}")
    (one,) = fastprof.trend(str(tmp_path)).findings
    ((kind, text, _),) = one.causes
    assert (kind, text.split("/", 2)[2]) == ("line", f"{changed}/util.c:7")
