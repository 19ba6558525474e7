"""The names of a kernel and its modules: kallsyms.

    ffffffff81000000 T _text
    ffffffffc05c1000 t ext4_evict_inode<tab>[ext4]

A symbol reaches to the next one.  Of several at one address the last one wins, as in perf.

Kernels are moved to a random address at each boot.  A recording has the address of the symbol `_text` (or `_stext`) in
its kernel, so the kallsyms of another boot and a vmlinux serve as well.  Modules are moved independently of the kernel.
Source: Linux kernel/kallsyms.c, tools/perf/util/symbol.c (kallsyms__delta).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence

from fastprof.core import lazy_re as re
from fastprof.core._c import ffi, lib
from fastprof.core.c_memory import owned
from fastprof.symbols.demangle import Demangle
from fastprof.symbols.elf import build_id_in
from fastprof.symbols.names import NameTable
from fastprof.symbols.symbol import Symbol

PROC_KALLSYMS = "/proc/kallsyms"
_NOTES = "/sys/kernel/notes"
_REFERENCES = ("_text", "_stext")
_ENDS = tuple(f" {name}\n" for name in _REFERENCES)  # of lines
_FIRST_LINE = re.compile(rb"[0-9a-f]{8}(?:[0-9a-f]{8})? [A-Za-z?] \S")
# what Linux maps into a process without a file.  Source: Linux fs/proc/task_mmu.c and `arch_vma_name` of its machines
_IN_PROCESS = ("[anon]", "[heap]", "[sigpage]", "[stack]", "[uprobes]", "[vdso]", "[vectors]", "[vsyscall]", "[vvar]")
_MODULE = re.compile(r"(?:.*/)?\[?([^/\]]+?)(?:\.ko(?:\.\w+)?)?\]?$")


def is_kernel(path: str) -> bool:
    """Whether a profile names the kernel itself by this path."""
    return path.startswith("[kernel.kallsyms]")


def module_of(path: str) -> str:
    """The name of a kernel's module, `ext4` for `[ext4]` and `/lib/modules/6.1/kernel/fs/ext4.ko.xz`; "" if the path is
    none of these."""
    if ".ko" not in path and not path.startswith("["):
        return ""
    is_module = re.search(r"\.ko(?:\.\w+)?$", path) or re.fullmatch(r"\[[\w-]+\]", path)
    match = _MODULE.match(path) if is_module and path not in _IN_PROCESS else None
    return match[1].replace("-", "_") if match else ""


def moved_kernel(address: int, reference: int, address_of: Callable[[str], int | None]) -> int:
    """The address, in a file with the symbols of a kernel, of an address in the running kernel.  `reference` is the
    running kernel's `_text`, 0 for unknown."""
    if reference:
        for name in _REFERENCES:
            at = address_of(name)
            if at is not None:
                return (address - reference + at) % (1 << 64)
    return address


def own_build_id() -> str:
    """The build id of the running kernel, "" if it is hidden."""
    try:
        with open(_NOTES, "rb") as file:
            return build_id_in(file.read(1 << 16), 4, "<" if sys.byteorder == "little" else ">")
    except OSError:
        return ""


def own_references() -> set[int]:
    """The addresses of `_text` and `_stext` in the running kernel; none if they are hidden."""
    found: list[int] = []
    try:
        with open(PROC_KALLSYMS) as file:
            for line in file:
                if line.endswith(_ENDS):
                    found.append(int(line[:16], 16))
                    if len(found) == len(_REFERENCES):
                        break
    except (OSError, ValueError):
        return set()
    return {*found} - {0}


def is_kallsyms(head: bytes) -> bool:
    """Whether a file that begins like this is the text of kallsyms, or a System.map."""
    return _FIRST_LINE.match(head) is not None


class Kallsyms(NameTable):
    """The symbols of a kernel, or of one of its modules."""

    def __init__(self, path: str | os.PathLike[str], demangle: Demangle = "full") -> None:
        super().__init__(path, demangle)
        self._text = self._read()
        self._width = 16 if re.match(rb"[0-9a-f]{16} ", self._text) else 8
        made = lib.fp_kallsyms_new(ffi.from_buffer("uint8_t[]", self._text), len(self._text), self._width)
        self._symbols = self._all = owned(made, "symbols")
        if not self.reason and not (self._symbols.n and self._symbols.starts[self._symbols.n - 1]):
            self.reason = "all addresses are hidden" if self._symbols.n else "no symbols"
        self._parts: dict[str, Kallsyms] = {}

    def part(self, module: str) -> Kallsyms:
        """The symbols of a module, or of the kernel itself for ""."""
        if module not in self._parts:
            part = self._parts[module] = Kallsyms.__new__(Kallsyms)
            part.__dict__.update(self.__dict__)
            name, text = os.fsencode(module), ffi.from_buffer("uint8_t[]", self._text)
            part._symbols = owned(lib.fp_kallsyms_part(self._all, text, len(self._text), name, len(name)), "symbols")
            part.reason = self.reason or ("" if part._symbols.n else "no symbols")
        return self._parts[module]

    def link_address(self, address: int, start: int, offset: int) -> int:
        return moved_kernel(address, offset, self.address_of)

    def relative_to_link(self, relative: int) -> int | None:
        text = self.address_of("_text")
        return None if text is None else text + relative

    def address_of(self, name: str) -> int | None:
        """The address of a symbol; None if it is missing."""
        key = name.encode()
        at = lib.fp_kallsyms_named(self._symbols, ffi.from_buffer("uint8_t[]", self._text), key, len(key))
        return None if at < 0 else int(self._symbols.starts[at])

    def lookup_many(self, addresses: Sequence[int]) -> list[tuple[Symbol, ...]]:
        symbols, text = self._symbols, self._text
        answers: list[tuple[Symbol, ...]] = []
        for address in addresses:
            at = lib.fp_kallsyms_find(symbols, address)
            name = text[symbols.names[at] : symbols.names[at] + symbols.lengths[at]] if at >= 0 else b""
            answers.append(self._chain(name))
        return answers
