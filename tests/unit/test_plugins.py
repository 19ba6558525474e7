"""Formats of other packages: docs/plugin is built and installed, then reads."""

from __future__ import annotations

import gzip
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

import fastprof
from fastprof import formats
from fastprof.formats import plugins
from tests.support.paths import REPO

LOG = b"mylog 1\n1500 main/work/hash\n20 main/idle\n"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the template package, installed there by pip."""
    folder = tmp_path_factory.mktemp("site")
    source = tmp_path_factory.mktemp("source") / "plugin"
    subprocess.run(["cp", "-r", REPO / "docs" / "plugin", source], check=True)
    pip = ["-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation", "--target"]
    subprocess.run([sys.executable, *pip, folder, source], check=True, timeout=120)
    return folder


def run(installed: Path, *arguments: Any, data: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    path = [str(REPO), str(installed)]
    code = f"import sys; sys.path[:0] = {path}; from fastprof.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, input=data, capture_output=True, timeout=60)


def test_the_template_reads_files_pipes_and_compressed_ones(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "a.mylog").write_bytes(LOG)
    (tmp_path / "b.gz").write_bytes(gzip.compress(LOG))
    for name, data in (("a.mylog", b""), ("b.gz", b""), ("-", LOG)):
        done = run(installed, "convert", tmp_path / name if name != "-" else name, "-t", "folded", data=data)
        assert (done.returncode, done.stdout) == (0, b"main;work;hash 1500\nmain;idle 20\n"), done.stderr
    done = run(installed, "merge", tmp_path / "a.mylog", tmp_path / "b.gz", "-o", tmp_path / "both.folded")
    assert (tmp_path / "both.folded").read_text() == "main;idle 40\nmain;work;hash 3000\n", done.stderr
    assert b"mylog" in run(installed, "info", tmp_path / "a.mylog").stdout


def test_it_is_listed_and_described(installed: Path) -> None:
    assert b"mylog: microseconds and stacks" in run(installed, "formats").stdout
    assert b"plug-in mylog (fastprof_mylog:PLUGIN)" in run(installed, "formats", "mylog").stdout


def test_its_errors_name_input_and_plug_in(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "a.mylog").write_bytes(LOG + b"oops\n")
    done = run(installed, "convert", tmp_path / "a.mylog", "-o", tmp_path / "out.folded")
    assert done.returncode == 1 and not (tmp_path / "out.folded").exists()
    assert b"a.mylog: mylog: plug-in mylog (fastprof_mylog:PLUGIN): ValueError: line 4 is" in done.stderr


class Point(EntryPoint):
    def load(self) -> Any:
        return eval(self.value)


def wild(head: bytes) -> bool:
    return head.startswith(b"wild")


def known(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    plugins.plugins.cache_clear()
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: [Point("x", value, group)])
    monkeypatch.setitem(globals(), "Plugin", fastprof.Plugin)


@pytest.mark.parametrize(
    ("value", "what"),
    [
        ("1 / 0", r"plug-in x \(1 / 0\): ZeroDivisionError"),
        ("7", r"plug-in x \(7\): is int, expected fastprof.Plugin"),
        ("Plugin('w', (), lambda head: 1 / 0, None)", "sniff: ZeroDivisionError"),
        ("Plugin('w', (), wild, lambda file: 1 / 0)", "<bytes>: w: plug-in x .*: ZeroDivisionError: division by zero"),
        ("Plugin('w', (), wild, lambda file: 7)", "read returned 7, expected a profile that was made"),
        (
            "Plugin('w', (), wild, lambda file: fastprof.from_stacks([(['f'], 1)]).where(function='f'))",
            "expected a profile that was made, without further steps",
        ),
        ("Plugin('w', (), wild, lambda file: fastprof.from_stacks([7]))", "from_stacks: row 0: is int"),
    ],
)
def test_plug_ins_that_fail(value: str, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    known(monkeypatch, value)
    with pytest.raises(fastprof.FastprofError, match=what):
        fastprof.open(b"wild")
    plugins.plugins.cache_clear()


def test_own_formats_come_first(monkeypatch: pytest.MonkeyPatch) -> None:
    known(monkeypatch, "Plugin('folded', (), lambda head: True, None)")
    assert fastprof.open(b"main;f 5\n").format == "folded"
    assert formats.get("folded").reader
    plugins.plugins.cache_clear()


def test_plug_ins_are_not_loaded_for_own_formats(monkeypatch: pytest.MonkeyPatch) -> None:
    known(monkeypatch, "1 / 0")
    assert fastprof.open(b"main;f 5\n").format == "folded"
    plugins.plugins.cache_clear()
