"""The command line with standard streams that are closed, full or without a reader."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from tests.unit import test_cli
from tests.unit.test_cli import run, shell

EVENTS, POOL = (shlex.quote(str(path)) for path in (test_cli.EVENTS, test_cli.POOL))


@pytest.mark.parametrize("words", ["--help", "--version", "formats", "info {}", "convert {} -qt callgrind"])
def test_a_full_disk_is_said(words: str) -> None:
    done = shell(f"fastprof {words.format(EVENTS)} > /dev/full")
    assert (done.returncode, done.stderr) == (1, b"fastprof: <stdout>: No space left on device\n")


@pytest.mark.parametrize(
    "words", ["sql {} -q --csv from+samples", "top {} -q -n 0 --csv", "annotate {} -q", "info {} --json"]
)
def test_a_full_disk_is_said_of_much_text(words: str, tmp_path: Path) -> None:
    """The text is written before all of it is known."""
    many = tmp_path / "many.folded"
    many.write_text("".join(f"main;{'f' * 100}{i} 1\n" for i in range(3000)))
    done = shell(f"fastprof {words.format(many)} > /dev/full".replace("+", "\\ "))
    text = done.stderr if "--json" not in words else f"fastprof: {json.loads(done.stderr)['message']}\n".encode()
    assert (done.returncode, text) == (1, b"fastprof: <stdout>: No space left on device\n")


@pytest.mark.parametrize("words", ["sql - from\\ samples", "top -", "convert - -t folded"])
def test_standard_input_that_cannot_be_read(words: str) -> None:
    done = shell(f"fastprof {words} 0> /dev/null")  # open for writing
    assert (done.returncode, done.stderr) == (1, b"fastprof: <stdin>: Bad file descriptor\n")


def test_closed_standard_streams(tmp_path: Path) -> None:
    out = tmp_path / "out.callgrind"
    wanted = run("convert", test_cli.EVENTS, "--to", "callgrind").stdout
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


@pytest.mark.parametrize("words", ["convert {} -qo {}", "info {}", "report {} -qo {}", "merge {} {} -qo {}"])
@pytest.mark.parametrize("n", [5, 6, 7])
def test_few_descriptors(words: str, n: int, tmp_path: Path) -> None:
    """Modules that cannot be imported are named like other files.  The interpreter itself needs five."""
    out = tmp_path / "out.callgrind"
    files = [EVENTS] * (words.count("{}") - 1) + [out] if "-qo" in words else [EVENTS]
    done = shell(f"ulimit -n {n}; fastprof {words.format(*files)}")
    said = re.sub(rb"fastprof: warning: .*: functions are shown by number: .*\n", b"", done.stderr)
    assert done.returncode == 1 or not said
    assert not said or re.fullmatch(rb"fastprof: /.+: Too many open files\n", said)
    assert done.returncode == 0 or not [*tmp_path.iterdir()]


def test_a_temporary_copy_is_whole_or_an_error() -> None:
    done = shell(f"ulimit -f 8; cat {POOL} | TMPDIR=/tmp fastprof info -")  # KiB per file
    assert (done.returncode, done.stderr) == (1, b"fastprof: <stdin>: temporary file in /tmp: File too large\n")
