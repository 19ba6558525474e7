"""System calls that fail in the processes of a batch: errors that name the file.

A second run without faults completes the batch.
"""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fastprof.store import listing
from tests.support.chosen import cases
from tests.support.paths import CORPUS
from tests.support.preload import library
from tests.support.shim import CLOSE, NAME, OPEN, SYNC, WRITE
from tests.support.signals import heard

GRAPH = CORPUS / "callgrind/good/xdebug.callgrind"
N = 5


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return library("shim", tmp_path_factory.mktemp("shim"), "-ldl")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with files to read in `in`."""
    (tmp_path / "in").mkdir()
    for number in range(N):
        shutil.copy(GRAPH, tmp_path / f"in/{number}.callgrind")
    return tmp_path


OUTPUT = {"convert": "out", "merge": "out.callgrind", "archive": "out.fpa"}
MORE = {"convert": ["-t", "folded"], "merge": ["--fan-in", "2"], "archive": []}


def command(verb: str, folder: Path) -> list[str]:
    program = [sys.executable, "-m", "fastprof"]  # not a script, whose shell may need another descriptor
    return [*program, "batch", verb, str(folder / "in"), "-o", str(folder / OUTPUT[verb]), "-j", "2", *MORE[verb]]


def run(verb: str, folder: Path, shim: Path | None = None, fault: str = "") -> tuple[int, str]:
    """The exit code and the messages."""
    environment = os.environ | ({"LD_PRELOAD": str(shim), "SHIM": fault} if shim else {})
    done = subprocess.run(
        command(verb, folder),
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=300,
    )
    assert "Traceback" not in done.stderr and "internal error" not in done.stderr, done.stderr
    return done.returncode, done.stderr


def assert_whole(verb: str, folder: Path) -> None:
    """The outputs of all inputs, and no other files."""
    if verb == "convert":
        assert len([*folder.glob("out/*.folded")]) == N
    elif verb == "archive":
        assert len(listing.names(str(folder / "out.fpa"))) == N
    assert {path.name for path in folder.iterdir()} <= {"in", ".fastprof", OUTPUT[verb]}
    assert not [*folder.rglob(".fastprof-*")]


# The workers' outputs; `#` is the prefix of the kernel's name for an unnamed file.
WRITTEN = {"convert": "out/#", "merge": "out.callgrind.partials/", "archive": ".out.fpa.pieces/"}


@pytest.mark.parametrize("verb", cases(WRITTEN, default=["convert"]))
@pytest.mark.parametrize(
    ("calls", "error", "nth"),
    [(WRITE, errno.ENOSPC, 1), (WRITE, errno.ENOSPC, 4), (NAME, errno.EDQUOT, 2), (OPEN, errno.EMFILE, 2)],
    ids=["full", "full later", "no name", "no descriptor"],
)
def test_workers(verb: str, calls: int, error: int, nth: int, folder: Path, shim: Path) -> None:
    """Each worker fails from its nth call on."""
    below = folder / (WRITTEN[verb] if calls == WRITE else WRITTEN[verb].removesuffix("#"))
    code, said = run(verb, folder, shim, f"{calls} {nth} {error} 50 {below}")
    assert code == 1 and os.strerror(error) in said
    for line in said.splitlines():
        if os.strerror(error) in line:
            assert OUTPUT[verb] in line
    if verb == "archive":
        assert not (folder / ".out.fpa.pieces").exists()
    options = ["--retry-errors"] * (verb != "merge")
    done = subprocess.run([*command(verb, folder), *options], cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert_whole(verb, folder)


@pytest.mark.parametrize("verb", cases(["convert", "archive"], default=["convert"]))
@pytest.mark.parametrize(
    ("calls", "error"),
    [(WRITE, errno.ENOSPC), (OPEN, errno.EMFILE), (SYNC, errno.EIO), (CLOSE, errno.EIO)],
    ids=["full", "no descriptor", "not synchronized", "not closed"],
)
def test_the_manifest_cannot_be_written(verb: str, calls: int, error: int, folder: Path, shim: Path) -> None:
    where = folder / ("out/.fastprof/" if verb == "convert" else ".fastprof/")
    seen = 0
    for nth in range(1, 4):
        code, said = run(verb, folder, shim, f"{calls} {nth} {error} 100 {where}/")
        if code:
            seen += 1
            assert code == 1 and f".fastprof/{'1-of-1' if verb == 'convert' else 'out.fpa'}.jsonl: " in said
            assert os.strerror(error) in said
    assert seen
    assert run(verb, folder)[0] == 0
    assert_whole(verb, folder)


@pytest.mark.parametrize("verb", WRITTEN)
@pytest.mark.parametrize("n", [5, 6, 7, 9, 12])
def test_few_descriptors(verb: str, n: int, folder: Path) -> None:
    """The process may open `n` files; the interpreter needs five to start."""
    limited = ["bash", "-c", f'ulimit -n {n}; exec "$@"', "bash", *command(verb, folder)]
    done = subprocess.run(limited, cwd=folder, capture_output=True, text=True, timeout=300)
    if not done.returncode:
        assert_whole(verb, folder)
        return
    assert done.returncode == 1 and done.stderr.startswith("fastprof: ") and "Too many open files" in done.stderr
    assert "[Errno" not in done.stderr
    left = {path.name for path in folder.iterdir()} - {"in", ".fastprof", "out", "out.callgrind.partials"}
    assert not left


@pytest.mark.parametrize("verb", WRITTEN)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_leaves_no_pieces_and_no_workers(verb: str, number: int, folder: Path) -> None:
    for i in range(N, 400):
        shutil.copy(GRAPH, folder / f"in/{i}.callgrind")
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(
        command(verb, folder), cwd=folder, stdout=quiet, stderr=subprocess.PIPE, preexec_fn=heard, process_group=0
    )
    begun = folder / {"convert": "out/.fastprof", "merge": "out.callgrind.partials", "archive": ".out.fpa.pieces"}[verb]
    while not begun.exists() and process.poll() is None:
        time.sleep(0.001)
    process.send_signal(number)
    _, said = process.communicate(timeout=300)
    # SIGINT kills the process, so that a shell's loop ends, too
    assert (process.returncode, said) == (-number if number == signal.SIGINT else 128 + number, b"")
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)
    left = {path.name for path in folder.iterdir()} - {"in", ".fastprof", "out", "out.callgrind.partials", "out.fpa"}
    assert not left
