"""Helper programs for names and instructions: none is ever left running, and errors name the file."""

from __future__ import annotations

import os
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest

import fastprof
from tests.differential.peers import need
from tests.support.signals import heard

BASE = 0x5555_0000_0000
TOOLS = {"llvm-objdump": ["annotate", "--asm"], "llvm-symbolizer": ["top"]}


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A profile of a program whose debug information is in a separate file, so that llvm-symbolizer has to read it: a
    sample in its main."""
    folder = tmp_path_factory.mktemp("program")
    (folder / "a.c").write_text("int main(void) { return 0; }\n")
    subprocess.run([need("gcc", "cc"), "-g", "-gsplit-dwarf", "-o", "program", "a.c"], cwd=folder, check=True)
    symbols = subprocess.run([need("nm"), folder / "program"], capture_output=True, text=True, check=True).stdout
    main = next(int(line.split()[0], 16) for line in symbols.splitlines() if line.endswith(" main"))
    mapped = f"{BASE:x}-{BASE + 0x10000:x} r-xp 00000000 08:01 1 {folder}/program\n"
    words = (0, 3, 0, 10_000, 0, 5, 1, BASE + main, 0, 1, 0)
    (folder / "cpu.prof").write_bytes(struct.pack(f"<{len(words)}Q", *words) + mapped.encode())
    return folder / "cpu.prof"


def tool(folder: Path, name: str, script: str) -> str:
    """PATH with a program of this name in FOLDER/bin."""
    path = folder / "bin" / name
    path.parent.mkdir()
    path.write_text(script if script.startswith("#!") else f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return f"{path.parent}:{os.environ['PATH']}"


def graph_of(profile: Path, folder: Path) -> Path:
    fastprof.convert(profile, folder / "in.callgrind")
    return folder / "in.callgrind"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("name", TOOLS)
def test_a_signal_ends_a_tool_that_says_nothing(name: str, number: int, profile: Path, tmp_path: Path) -> None:
    path = graph_of(profile, tmp_path) if name == "llvm-objdump" else profile
    environment = os.environ | {"PATH": tool(tmp_path, name, f"echo $$ > {tmp_path}/pid; exec sleep 1000")}
    command = [sys.executable, "-m", "fastprof", *TOOLS[name], str(path)]
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, preexec_fn=heard) as process:
        while not (said := tmp_path / "pid").exists() or not said.read_text().endswith("\n"):
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(number)
        _, error = process.communicate(timeout=300)
    ended = -number if number == signal.SIGINT else 128 + number  # a shell's loop ends if SIGINT killed its command
    assert (process.returncode, error) == (ended, b"")
    assert not Path(f"/proc/{said.read_text().strip()}").exists()


@pytest.mark.parametrize(
    ("name", "script", "says"),
    [
        ("llvm-objdump", "echo broken >&2; exit 1", "/program: llvm-objdump: broken"),
        ("llvm-objdump", "kill -9 $$", "/program: llvm-objdump: was killed by signal 9"),
        ("llvm-objdump", "", "/program: llvm-objdump: no instructions from 0x"),
        ("llvm-symbolizer", "kill -9 $$", "/program: llvm-symbolizer answered 0 of 1 address: "),
        (
            "llvm-symbolizer",
            """printf '{"Symbol":[{"Func'; kill -9 $$""",
            "/program: unexpected answer of llvm-symbolizer",
        ),
        (
            "llvm-symbolizer",
            "printf '\\377\\n'",
            "/program: unexpected answer of llvm-symbolizer: '\\udcff'",
        ),
        ("llvm-objdump", "#!/no", "/program: llvm-objdump: No such file or directory"),
        ("llvm-symbolizer", "#!/no", "/program: llvm-symbolizer: No such file or directory"),
        ("llvm-symbolizer", "echo '[1]'", "/program: unexpected answer of llvm-symbolizer: '[1]'"),
    ],
)
def test_a_tool_that_fails(name: str, script: str, says: str, profile: Path, tmp_path: Path) -> None:
    """Without instructions places are still shown, and a warning states the reason; names without inlined ones would be
    wrong."""
    path = graph_of(profile, tmp_path) if name == "llvm-objdump" else profile
    environment = os.environ | {"PATH": tool(tmp_path, name, script)}
    command = [sys.executable, "-m", "fastprof", *TOOLS[name], str(path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert says in done.stderr and len(done.stderr.splitlines()) == 1
    assert done.returncode == (name == "llvm-symbolizer")
