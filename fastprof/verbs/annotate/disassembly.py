"""The instructions of functions, by llvm-objdump or objdump."""

from __future__ import annotations

import os
import re
import select
import shutil
from collections.abc import Iterator
from subprocess import DEVNULL, PIPE, Popen

from fastprof.core._c import lib
from fastprof.core.child import running
from fastprof.core.errors import FastprofError
from fastprof.core.model import Model
from fastprof.core.options import Options
from fastprof.core.streams import temporary_file
from fastprof.symbols import DEBUG_DIRS, FORCE_SYMBOLS, SYMBOLS, SYSROOT
from fastprof.symbols.demangle import demangle
from fastprof.symbols.finder import Finder
from fastprof.symbols.objects import ElfObject
from fastprof.symbols.symbolizer import Mapping, Mappings, Symbolizer, link_address

FINDING = (SYMBOLS, SYSROOT, DEBUG_DIRS, FORCE_SYMBOLS)  # the options for finding programs
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
        raise FastprofError(f"{path}: {os.path.basename(tool)}: {error.strerror}") from None
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


class Binaries:
    """The ELF files of a model's objects, found as for symbols, and link-time addresses in them."""

    def __init__(self, model: Model, options: Options) -> None:
        self._model = model
        self._options = options
        self._symbolizer: Symbolizer | None = None
        self._mappings: dict[int, Mappings] = {}  # by object

    def may_be_found(self, object_id: int) -> bool:
        """Whether the object's file may be found: a first guess while the profile is read."""
        options, (name, build_id) = self._options, self._named(object_id)
        if not name:
            return False
        return bool(options[SYMBOLS] or build_id) or any(map(os.path.isfile, (name, options[SYSROOT] + name)))

    def find(self, object_id: int) -> tuple[ElfObject | None, str]:
        """The ELF file of an object, or None and the reason: "/bin/app: No such file".  Call it when all objects
        are known.

        Errors: SymbolError for a file named by the user that does not fit.
        """
        if self._symbolizer is None:
            options, n = self._options, self._model.count("objects")
            finder = Finder(
                symbols=options[SYMBOLS],
                sysroot=options[SYSROOT],
                debug_dirs=options[DEBUG_DIRS],
                force=options[FORCE_SYMBOLS],
            )
            self._symbolizer = Symbolizer([Mapping(i, i + 1, 0, *self._named(i)) for i in range(n)], finder)
            found: dict[int, list[Mapping]] = {}
            for i in range(1, self._model.count("mappings")):
                row = self._model.row("mappings", i)
                start, limit, offset = (row[k] | row[k + 1] << 32 for k in (1, 3, 5))
                from_base = bool(row[7] & lib.FP_MAPPING_FROM_BASE)
                found.setdefault(row[0], []).append(Mapping(start, limit, offset, "", from_base=from_base))
            self._mappings = {id_: Mappings(mappings) for id_, mappings in found.items()}
        names, reason = self._symbolizer.object_of(object_id)
        if isinstance(names, ElfObject):
            return names, ""
        if names:
            reason = f"{names.path} has symbols but no code"
        return None, f"{self._named(object_id)[0] or 'no object'}: {reason}"

    def link_address(self, object_id: int, elf: ElfObject, address: int) -> int:
        """The link-time address of a recorded address.  Both are equal unless the profile has the object's mapping."""
        mappings = self._mappings.get(object_id)
        at = mappings.find(address) if mappings else None
        if mappings and at is not None:
            return link_address(elf, address, mappings[at]) or address
        return address

    def _named(self, object_id: int) -> tuple[str, str]:
        """The name and build id of an object."""
        name, build_id = (self._model.string(i) for i in self._model.row("objects", object_id))
        return name.decode("utf-8", "surrogateescape"), build_id.decode("utf-8", "surrogateescape")
