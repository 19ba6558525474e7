"""The command line where standard streams are closed, full or read by nobody."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.test_cli import EVENTS, POOL, run, shell


@pytest.mark.parametrize("words", ["--help", "--version", "formats", "info {}", "convert {} -qt callgrind"])
def test_a_full_disk_is_said(words: str) -> None:
    done = shell(f"fastprof {words.format(EVENTS)} > /dev/full")
    assert (done.returncode, done.stderr) == (1, b"fastprof: <stdout>: No space left on device\n")


def test_closed_standard_streams(tmp_path: Path) -> None:
    out = tmp_path / "out.callgrind"
    wanted = run("convert", EVENTS, "--to", "callgrind").stdout
    assert shell(f"fastprof convert {EVENTS} -o {out} <&- >&- 2>&-").returncode == 0
    assert out.read_bytes() == wanted
    assert shell(f"fastprof convert {EVENTS} --to callgrind 2>&-").stdout == wanted  # and no report
    for command, says in (
        ("info - <&-", b"fastprof: <stdin>: is closed\n"),
        (f"convert {EVENTS} --to callgrind >&-", b"fastprof: <stdout>: is closed\n"),
    ):
        done = shell(f"fastprof {command}")
        assert (done.returncode, done.stderr) == (1, says)


@pytest.mark.parametrize("words", ["formats", "--help", "top {} -q", "info {} -q", "sql {} select+1", "diff {} {} -q"])
def test_closed_standard_output(words: str) -> None:
    done = shell(f"fastprof {words.format(EVENTS, EVENTS)} >&-".replace("+", "\\ "))
    assert (done.returncode, done.stderr) == (1, b"fastprof: <stdout>: is closed\n")


@pytest.mark.parametrize(
    "words,code",
    [("convert {} -o {}", 0), ("convert {} --json -o {}", 0), ("convert {}x -o {}", 1), ("convert {} -t x -o {}", 2)],
)
def test_messages_that_nobody_gets_change_no_exit_code(words: str, code: int, tmp_path: Path) -> None:
    words = words.format(EVENTS, tmp_path / "out.folded")
    assert shell(f"fastprof {words} 2>/dev/full").returncode == code
    assert shell(f"fastprof {words} 2> >(exec 0<&-; exit) && exit 0").returncode == code
    assert (tmp_path / "out.folded").exists() == (code == 0)


def test_a_temporary_copy_is_whole_or_an_error() -> None:
    done = shell(f"ulimit -f 8; cat {POOL} | TMPDIR=/tmp fastprof info -")  # KiB of a file
    assert (done.returncode, done.stderr) == (1, b"fastprof: <stdin>: temporary file in /tmp: File too large\n")
