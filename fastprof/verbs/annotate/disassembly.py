"""The instructions of functions, by llvm-objdump or objdump."""

import os
import re
import select
import shutil
from collections.abc import Iterator
from subprocess import DEVNULL, PIPE, Popen

from fastprof.core.child import running
from fastprof.core.errors import FastprofError, raise_as
from fastprof.core.streams import temporary_file
from fastprof.symbols.demangle import demangle

_TOOLS = ("llvm-objdump", "objdump")
_PATIENCE, _LONGEST = 60, 1 << 17
_SYMBOL = re.compile(r"(?<=<)_[^<>+@\s]+")  # "callq 0x1139 <_Z1fi+0x10>", "<_Z1fi@plt>"


def find_tool() -> str:
    """The path of a disassembler.  Errors: FastprofError."""
    found = next(filter(None, map(shutil.which, _TOOLS)), None)
    if not found:
        raise FastprofError(f"instructions need one of these programs, which are not installed: {', '.join(_TOOLS)}")
    return found


def disassemble(tool: str, path: str, start: int, stop: int, refused: set[str]) -> Iterator[tuple[int, str]]:
    """Address and text of each instruction from `start` on and before `stop`, link-time addresses.

    Names are demangled here because some names crash the tool; names that stay mangled go to `refused`.

    Errors: FastprofError when the tool fails.
    """

    def readable(symbol: re.Match[str]) -> str:
        return demangle(symbol[0], refused=refused)

    command = [tool, "-d", "--no-show-raw-insn"]
    command += [f"--start-address={start:#x}", f"--stop-address={stop:#x}", os.path.abspath(path)]
    n = 0
    try:
        with temporary_file() as errors, running(command, stdin=DEVNULL, stdout=PIPE, stderr=errors) as run:
            for line in _lines(run, f"{path}: {os.path.basename(tool)}"):
                # "    13d0:      \tmovl\t%edi, %edx"
                if match := re.match(rb" *([0-9a-f]+):\s+(\S.*)", line):
                    n += 1
                    text = match[2].decode("utf-8", "surrogateescape").replace("\t", " ")
                    yield int(match[1], 16), _SYMBOL.sub(readable, text)
            run.wait()
            errors.seek(0)
            output = errors.read(2000).decode("utf-8", "replace").strip().splitlines()
    except OSError as error:
        raise_as(path, error, f"{os.path.basename(tool)}: {error.strerror}")
    if run.returncode or not n:
        none = f"no instructions from {start:#x} to {stop:#x}"
        why = f"was killed by signal {-run.returncode}" if run.returncode < 0 else none
        reason = output[0] if output else why
        raise FastprofError(f"{path}: {os.path.basename(tool)}: {reason}")


def _lines(run: Popen[bytes], tool: str) -> Iterator[bytes]:
    """The output lines of a program, each cut to _LONGEST bytes: a file may give a function a name of a megabyte and
    call it in each line.

    Errors: FastprofError if it writes nothing for _PATIENCE seconds.
    """
    assert run.stdout
    output = run.stdout.fileno()
    ready = select.poll()
    ready.register(output, select.POLLIN)
    line = b""
    while True:
        if not ready.poll(_PATIENCE * 1000):
            raise FastprofError(f"{tool}: no output for {_PATIENCE} seconds")
        if not (data := os.read(output, 1 << 16)):
            break
        *whole, rest = data.split(b"\n")
        for part in whole:
            yield (line + part)[:_LONGEST]
            line = b""
        line = (line + rest)[:_LONGEST]
    if line:
        yield line
