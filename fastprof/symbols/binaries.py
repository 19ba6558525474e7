"""The ELF files of a model's objects."""

from __future__ import annotations

import os

from fastprof.core._c import lib
from fastprof.core._typing import TYPE_CHECKING
from fastprof.core.options import Options
from fastprof.core.unknown_names import UNKNOWN_BYTES
from fastprof.symbols import DEBUG_DIRS, FORCE_SYMBOLS, SYMBOLS, SYSROOT
from fastprof.symbols.finder import Finder, Names
from fastprof.symbols.mappings import Mapping, Mappings
from fastprof.symbols.objects import ElfObject
from fastprof.symbols.symbolizer import Symbolizer, link_address

if TYPE_CHECKING:
    from fastprof.core.model import Model


def mapping_of(model: Model, id_: int) -> tuple[int, Mapping]:
    """The object of a mapping of the model, and the mapping without its name."""
    row = model.row("mappings", id_)
    start, limit, offset = (row[k] | row[k + 1] << 32 for k in (1, 3, 5))
    return row[0], Mapping(start, limit, offset, "", from_base=bool(row[7] & lib.FP_MAPPING_FROM_BASE))


class Binaries:
    """The ELF files of a model's objects, found as for symbols, and link-time addresses in them."""

    def __init__(self, model: Model, options: Options) -> None:
        self._model = model
        self._options = options
        self._symbolizer: Symbolizer | None = None
        self._finder: Finder | None = None
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
        self._prepare()
        assert self._symbolizer
        names, reason = self._symbolizer.object_of(object_id)
        return self._elf(names, reason, self._named(object_id)[0])

    def program(self) -> tuple[ElfObject | None, str]:
        """The only file that the user named, if it is a program: that of a profile without objects."""
        self._prepare()
        assert self._finder
        return self._elf(*self._finder.find("", "", list), "")

    def _elf(self, names: Names | None, reason: str, path: str) -> tuple[ElfObject | None, str]:
        if isinstance(names, ElfObject):
            return names, ""
        if names:
            reason = f"{names.path} has symbols but no code"
        return None, f"{path or 'no object'}: {reason}"

    def _prepare(self) -> None:
        if self._symbolizer is None:
            options, n = self._options, self._model.count("objects")
            self._finder = finder = Finder(
                symbols=options[SYMBOLS],
                sysroot=options[SYSROOT],
                debug_dirs=options[DEBUG_DIRS],
                force=options[FORCE_SYMBOLS],
            )
            self._symbolizer = Symbolizer([Mapping(i, i + 1, 0, *self._named(i)) for i in range(n)], finder)
            found: dict[int, list[Mapping]] = {}
            for i in range(1, self._model.count("mappings")):
                object_, mapping = mapping_of(self._model, i)
                found.setdefault(object_, []).append(mapping)
            self._mappings = {id_: Mappings(mappings) for id_, mappings in found.items()}

    def link_address(self, object_id: int, elf: ElfObject, address: int, mapping: Mapping | None = None) -> int:
        """The link-time address of a recorded address.  Both are equal unless the profile has the object's mapping.
        With the `mapping` of the address, 0 if the file has nothing there."""
        if mapping:
            return link_address(elf, address, mapping) or 0
        mappings = self._mappings.get(object_id)
        at = mappings.find(address) if mappings else None
        if mappings and at is not None:
            return link_address(elf, address, mappings[at]) or address
        return address

    def _named(self, object_id: int) -> tuple[str, str]:
        """The name and build id of an object."""
        name, build_id = (self._model.string(i) for i in self._model.row("objects", object_id))
        if name in UNKNOWN_BYTES:  # the finder would choose the program for "???"
            name = b""
        return name.decode("utf-8", "surrogateescape"), build_id.decode("utf-8", "surrogateescape")
