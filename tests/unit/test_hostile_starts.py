"""An interrupt at any moment ends the command without a traceback."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from fastprof.verbs.batch import pool
from fastprof.verbs.batch.convert import batch_convert
from tests.support.paths import CORPUS, REPO
from tests.support.signals import heard

AT_IMPORT = """
import os, signal, sys
class Hook:
    def find_spec(self, name, *_):
        if name == {name!r}:
            os.kill(os.getpid(), signal.{signal})
sys.meta_path.insert(0, Hook())
sys.argv[:] = ["fastprof", "formats"]
from fastprof.__main__ import main
sys.exit(main())
"""
AT_EXIT = """
import atexit, os, signal, sys
sys.argv[:] = ["fastprof", "--version"]
atexit.register(os.kill, os.getpid(), signal.{signal})
from fastprof.__main__ import main
sys.exit(main())
"""


def run(code: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=REPO, capture_output=True, text=True, check=False, preexec_fn=heard
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize(
    ("name", "signal", "codes"),
    [
        ("fastprof.cli", "SIGINT", (-2,)),
        ("fastprof.cli", "SIGTERM", (-15,)),
        ("fastprof.cli", "SIGHUP", (-1,)),
        ("fastprof.cli.parser", "SIGINT", (-2,)),
        ("fastprof.cli.parser", "SIGTERM", (143,)),
        ("fastprof.cli.parser", "SIGHUP", (129,)),
    ],
)
def test_while_modules_are_imported(name: str, signal: str, codes: tuple[int, ...]) -> None:
    code, said = run(AT_IMPORT.format(name=name, signal=signal))
    assert code in codes and said == ""


@pytest.mark.parametrize(("signal", "code"), [("SIGINT", -2)])
def test_at_the_end(signal: str, code: int) -> None:
    assert run(AT_EXIT.format(signal=signal)) == (code, "")


def test_a_worker_that_is_being_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """A terminal sends the signal to all processes; workers handled it until they had set it to be ignored."""
    monkeypatch.setattr(pool, "_BEGIN", "import os, signal; os.kill(os.getpid(), signal.SIGINT)\n" + pool._BEGIN)
    inputs = [str(CORPUS / "folded/good" / p.name) for p in sorted((CORPUS / "folded/good").iterdir())[:3]]
    log = batch_convert(inputs, tmp_path / "out", to="folded", jobs=2)
    assert not log.errors
    assert "Traceback" not in capfd.readouterr().err
