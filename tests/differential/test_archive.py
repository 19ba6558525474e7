"""Every sample through the archive: its output equals a direct conversion's; `info` reads its facts from the index."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest

import fastprof
from fastprof.core.errors import FastprofError
from tests.differential import pprof_raw
from tests.support.paths import SHARED, needs_shared, shared_data

pytestmark = needs_shared
FOLDERS = ("callgrind", "gperftools", "pprof", "xray")
# facts of `info` that describe the file rather than the profile
OF_THE_FILE = {"file", "format", "archive_version", "chunks", "recorded", "recorded_repairs", "recorded_losses"}


@cache
def readable() -> list[tuple[Path, str]]:
    """The readable files in the FOLDERS of the sample data, and their formats."""
    found = []
    folders = [shared_data(folder) for folder in FOLDERS] if SHARED else []
    for path in sorted(path for folder in folders for path in folder.rglob("*")):
        if not path.is_file() or path.stat().st_size > 4 << 20:
            continue
        try:
            found.append((path, fastprof.info(str(path)).facts["format"]))
        except FastprofError:
            continue
    return found


def samples(*wanted: str) -> list[Path]:
    return [path for path, format_ in readable() if format_ in wanted]


def name(path: Path) -> str:
    return f"{path.parent.name}/{path.name}"


def through(path: Path, folder: Path, to: str) -> tuple[Path, Path]:
    """A file converted directly, and by way of an archive."""
    stored, direct, back = (folder / leaf for leaf in ("x.fpa", "direct", "back"))
    fastprof.convert([str(path)], str(direct), to=to, symbolize=False)
    fastprof.convert([str(path)], str(stored))
    fastprof.convert([str(stored)], str(back), to=to, symbolize=False)
    return direct, back


@pytest.mark.parametrize("path", samples("callgrind"), ids=name)
def test_callgrind_is_the_same_byte_for_byte(path: Path, tmp_path: Path) -> None:
    direct, back = through(path, tmp_path, "callgrind")
    assert back.read_bytes() == direct.read_bytes()


@pytest.mark.parametrize("path", samples("cachegrind"), ids=name)
def test_cachegrind_is_the_same_byte_for_byte(path: Path, tmp_path: Path) -> None:
    direct, back = through(path, tmp_path, "cachegrind")
    assert back.read_bytes() == direct.read_bytes()


@pytest.mark.parametrize("path", samples("gperftools"), ids=name)
def test_gperftools_is_the_same_byte_for_byte(path: Path, tmp_path: Path) -> None:
    direct, back = through(path, tmp_path, "gperftools")
    assert back.read_bytes() == direct.read_bytes()


@pytest.mark.parametrize("path", samples("pprof")[::2], ids=name)
def test_pprof_sees_the_same(path: Path, tmp_path: Path) -> None:
    """As the original file, not only as our own copy of it; callers come first, so ids differ."""
    _, back = through(path, tmp_path, "pprof")
    assert pprof_raw.raw(back) == pprof_raw.raw(path)


@pytest.mark.parametrize("path", samples("xray", "callgrind", "cachegrind", "gperftools", "pprof"), ids=name)
def test_info_says_the_same_without_reading(path: Path, tmp_path: Path) -> None:
    """The index and the decoded rows give the same facts as the original."""
    stored = str(tmp_path / "x.fpa")
    fastprof.convert([str(path)], stored)

    def facts(of: str, **options: Any) -> dict[str, Any]:
        said = fastprof.info(of, **options).facts
        return said.get("recorded", {}) | {name: fact for name, fact in said.items() if name not in OF_THE_FILE}

    indexed = facts(stored)
    assert indexed == facts(stored, lenient=True)  # decodes all, to find damage
    assert indexed == facts(str(path))
