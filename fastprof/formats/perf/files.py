"""The files that a recording names."""

from __future__ import annotations

import os

from fastprof.core._typing import TYPE_CHECKING, Any
from fastprof.core.options import Options
from fastprof.symbols import DEBUG_DIRS, DELETED, FORCE_SYMBOLS, SYMBOLIZE, SYMBOLS, SYSROOT

if TYPE_CHECKING:
    from fastprof.symbols.finder import Finder, Names


class Files:
    """Finds them where symbol files are found.  Without symbols (SYMBOLIZE) none is opened."""

    def __init__(self, options: Options) -> None:
        self._symbolize = options[SYMBOLIZE]
        self._where: dict[str, Any] = {  # read in any case, so that no option counts as unused
            "symbols": options[SYMBOLS],
            "sysroot": options[SYSROOT],
            "debug_dirs": options[DEBUG_DIRS],
            "force": options[FORCE_SYMBOLS],
        }
        self._finder: Finder | None = None

    def own_kernel(self, host: str, release: str, text: int) -> str:
        """The build id of this machine's kernel if it has this host's name and release, and `_text` at this address;
        "" otherwise."""
        own = os.uname()
        if not self._symbolize or (host, release) != (own.nodename, own.release):
            return ""
        from fastprof.symbols import kernel

        return kernel.own_build_id() if text in kernel.own_references() else ""

    def find(self, path: bytes, build_id: bytes = b"") -> Names | None:
        name, build = os.fsdecode(path).removesuffix(DELETED), build_id.decode("ascii", "replace")
        if not self._symbolize:
            return None
        from fastprof.symbols.finder import Finder
        from fastprof.symbols.mappings import Mapping, Mappings

        if self._finder is None:
            self._finder = Finder(**self._where)
        self._finder.expect(Mappings([Mapping(0, 0, 0, name, build)]), 0)
        return self._finder.find(name, build)[0]
