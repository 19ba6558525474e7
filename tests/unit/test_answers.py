"""Commands that once gave a wrong answer, each with the right one; the files are described in tests/corpus/answers."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import NamedTuple

import pytest

from fastprof.cli import main
from tests.support.paths import CORPUS

ANSWERS = CORPUS / "answers"


class Answer(NamedTuple):
    """`has` and `lacks` are regular expressions (multiline) over what the command prints to stdout and stderr."""

    command: str
    has: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    code: int = 0


TABLE = [
    Answer("info named.json", (r"^view +timeline$",)),
]


@pytest.mark.parametrize("answer", TABLE, ids=lambda answer: answer.command)
def test_answer(answer: Answer, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(ANSWERS)
    code = main(shlex.split(answer.command))
    shown = "".join(capfd.readouterr())
    assert code == answer.code, shown
    for pattern in answer.has:
        assert re.search(pattern, shown, re.MULTILINE), f"{pattern!r} is not in\n{shown}"
    for pattern in answer.lacks:
        assert not re.search(pattern, shown, re.MULTILINE), f"{pattern!r} is in\n{shown}"


def test_every_file_has_an_answer() -> None:
    named = " ".join(answer.command for answer in TABLE)
    unused = {path.name for path in Path(ANSWERS).iterdir() if path.suffix not in {".md", ".py", ".c"}} - UNTESTED
    assert not [name for name in sorted(unused) if name not in named]


UNTESTED: set[str] = {
    "anon.cpuprofile",
    "cprofile.pstats",
    "dhat.heap",
    "exec_in_import_cycle.pstats",
    "instants_with_empty_samples.json",
    "jemalloc.heap",
    "llvm_xray19_stack_flame_time.folded",
    "massif-pages.out",
    "memprof83.heap",
    "node.data",
    "oprofile_empty_session.tar",
    "pyinstrument-5.1.3.pstats",
    "python_m_profile_311.pstats",
    "r0.trace.json",
    "r1.trace.json",
    "same-time-ends.trace.json",
    "sw.data",
    "three.speedscope.json",
    "two.pstats",
    "two_threads.json",
    "z.data",
    "zero-first-event.data",
}
