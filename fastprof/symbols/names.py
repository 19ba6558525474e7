"""The base class of tables of names of addresses."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence

from fastprof.symbols.demangle import Demangle, demangle
from fastprof.symbols.symbol import Chains, Symbol


class NameTable:
    """A file with names by address, with the methods of an ElfObject.

    Never raises for a file that cannot be read: `reason` is then set.  `note`: the part that is unreadable.
    """

    build_id = ""

    def __init__(self, path: str | os.PathLike[str], demangle: Demangle) -> None:
        self.path = os.fspath(path)
        self.reason = ""
        self.note = ""
        self.refused: set[str] = set()
        self.chains: Chains | None = None  # see chains_of
        self._demangle = demangle

    def link_address(self, address: int, start: int, offset: int) -> int | None:
        """Names are of run-time addresses."""
        return address

    def link_move(self, first: int, last: int, start: int, offset: int) -> int | None:
        """Nothing is known of a range (ElfObject.link_move)."""
        return None

    def relative_to_link(self, relative: int) -> int | None:
        """The lowest address is 0."""
        return relative

    def place_on_disk(self) -> tuple[str, bytes] | None:
        """Nowhere: reading the file takes less than looking up (ElfObject.place_on_disk)."""
        return None

    def lookup_many(self, addresses: Sequence[int]) -> list[tuple[Symbol, ...]]:
        """The chain of each address, () for one without a name."""
        raise NotImplementedError

    def _read(self) -> bytes:
        """The file, b"" if it cannot be read."""
        try:
            with open(self.path, "rb") as file:
                if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    return file.read()
            self.reason = "not a file"
        except OSError as error:
            self.reason = error.strerror or "cannot be read"
        return b""

    def _chain(self, name: bytes, file: str = "", line: int = 0) -> tuple[Symbol, ...]:
        """A chain of one function with this name; () for b""."""
        text = str(name, "utf-8", "replace")
        return (Symbol(demangle(text, self._demangle, self.refused), text, file, line),) if name else ()
