"""Output on a terminal: no text of a profile controls it.  Files and pipes get the exact bytes."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

# sets a window's title; C1's CSI, which some terminals read as ESC [; DEL; back to the first column; not UTF-8
NAME = b"a\x1b]0;title\x07b\xc2\x9b2Jc\x7fd\re\xff"


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    path = tmp_path / "x\x1b[2J.callgrind"
    path.write_bytes(b"events: Ir Dr\nfl=%s.c\nfn=%s\n1 5 2\n2 3 1\n" % (NAME, NAME))
    return path


def on_terminal(*words: str | Path) -> bytes:
    """The standard output and error that a terminal receives."""
    ours, theirs = pty.openpty()
    environment = os.environ | {"NO_COLOR": "1", "COLUMNS": "200"}
    command = [sys.executable, "-m", "fastprof", *map(os.fspath, words)]
    with open(ours, "rb", buffering=0) as screen:
        process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment)
        os.close(theirs)
        shown = b""
        try:
            while part := screen.read(1 << 16):
                shown += part
        except OSError:  # the end of a terminal's output
            pass
        process.wait()
    return shown.replace(b"\r\n", b"\n")


@pytest.mark.parametrize(
    "words",
    [
        "top",
        "top --csv",
        "top --json",
        "top --tree=both",
        "top --by line",
        "info",
        "info --json",
        "annotate --threshold 0",
        "diff FILE",
        "diff FILE --csv",
        "diff FILE --json",
        "diff FILE -t callgrind",
        "sql QUERY",
        "sql QUERY --csv",
        "sql QUERY --json",
        "convert -t folded",
        "convert -t callgrind",
        "convert -t cachegrind",
        "convert -t speedscope",
        "convert -t firefox --json",
        "merge FILE -t folded",
        "convert -t pprof",
        "convert -t no-such",
        "no-such",
        "top --value no-such",
    ],
)
def test_no_control_characters(words: str, hostile: Path) -> None:
    verb, *others = words.split()
    meant = {"FILE": str(hostile), "QUERY": "select *, chr(27) || chr(155) from graph"}
    if verb == "diff":
        other = hostile.with_name("other")
        other.write_bytes(hostile.read_bytes().replace(b"1 5 2", b"1 7 2"))
        meant["FILE"] = str(other)
    shown = on_terminal(verb, hostile, *(meant.get(word, word) for word in others)).decode()
    shown = re.sub("\r([^\r\x1b]*)\x1b\\[K", r"\1", shown)  # a slow machine shows progress
    assert shown and [c for c in shown if not c.isprintable() and c != "\n"] == []
    escaped = "\\x1b" in shown or "\\u001b" in shown or "not written to a terminal" in shown
    assert escaped or "no-such" in words or "folded" in words  # folded writes blanks instead


def test_pipes_get_exact_bytes(hostile: Path) -> None:
    for words in (["convert", "-t", "callgrind"], ["top", "--csv"], ["sql", "--csv", "QUERY"]):
        query = ["select function from graph"] * (words[-1] == "QUERY")
        command = [sys.executable, "-m", "fastprof", *words[: 2 if query else 3], str(hostile), *query]
        found = subprocess.run(command, capture_output=True, check=True).stdout
        assert NAME.split(b"\r")[0] in found, words


def test_text_in_pieces(hostile: Path) -> None:
    """A character may begin in one piece of output and end in the next."""
    name = "\N{SNOWMAN}" * 99_999
    hostile.write_text(f"events: Ir\nfn={name}\n1 5\n", encoding="utf-8")
    assert on_terminal("convert", hostile, "-t", "folded", "-q") == f"{name} 5\n".encode()
