"""The sampled images: their files, symbols and lines."""

from __future__ import annotations

import errno
import mmap
import os
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import merge

from fastprof.core._c import ffi, lib
from fastprof.core._typing import TYPE_CHECKING, CData, Numbers, Pointer, fp_oprofile_image
from fastprof.core.c_memory import owned
from fastprof.core.errors import raise_as
from fastprof.core.folder import File
from fastprof.core.log import Log
from fastprof.core.messages import Message
from fastprof.core.model import Model
from fastprof.core.options import UINT64, Options
from fastprof.core.source import Source
from fastprof.formats.oprofile.names import Image
from fastprof.formats.oprofile.reported import REPORTED
from fastprof.symbols import DEBUG_DIRS, DELETED, DEMANGLE, SYMBOLIZE, SYMBOLS, SYSROOT
from fastprof.symbols.demangle import demangle, left_mangled
from fastprof.symbols.kernel import PROC_KALLSYMS
from fastprof.symbols.symbol import Symbol

if TYPE_CHECKING:
    from fastprof.core.made_folders import PrivateFolder
    from fastprof.symbols.objects import ElfObject

_SUFFIXES = ("", ".ko", ".debug", ".dbg", ".ko.debug")
_NO_VMLINUX = "no-vmlinux"


class Loaded:
    """An image with its symbols."""

    def __init__(self, image: Image, c: fp_oprofile_image, object_id: int) -> None:
        self.image = image
        self.c = c
        self.object_id = object_id
        self.path = ""  # of its file, if that was found
        self.elf: ElfObject | None = None  # if it has lines
        self.link = 0  # added to its addresses; an unlinked file has no addresses
        self.by_address = False
        self._bytes: list[CData] = []  # memory that c borrows

    def lookup(self, addresses: Numbers) -> list[tuple[Symbol, ...]]:
        """The chains of inlined functions at addresses, innermost first; () where nothing is known."""
        assert self.elf is not None
        return self.elf.lookup_many([(address + self.link) & UINT64 for address in addresses])

    def borrow(self, path: str) -> Pointer[int]:
        """The bytes of a file, as long as this lives.  Errors: OSError."""
        if not os.path.isfile(path):  # opening a pipe would block
            raise FileNotFoundError(errno.ENOENT, "no such file")
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            data = ffi.from_buffer("uint8_t[]", mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if size else b"")
        self._bytes.append(data)
        return data


class Images:
    """The images of an input by name, each loaded once.

    The file of an image is searched in this order: the given files and directories, by file name; the input itself,
    which may be an archive by oparchive; below --sysroot; at its path, if it has the time that the profile recorded,
    because another machine has other files.
    """

    def __init__(self, source: Source, files: Sequence[File], model: Model, options: Options, log: Log) -> None:
        self._source, self._model, self._options, self._log = source, model, options, log
        self._files = {file.name: file for file in files}
        others = [name for name in self._files if "{" not in name]  # no sample files: maybe images
        self._backwards = sorted(f"/{name}"[::-1] for name in others)  # so that names with the same end are adjacent
        self._modules: dict[str, list[str]] = {}  # by `_as_module` of the last parts of their names
        for name in others:
            self._modules.setdefault(_as_module(os.path.basename(name)), []).append(name)
        self._loaded: dict[Image, Loaded] = {}
        self._debug_dirs = options[DEBUG_DIRS]
        self._used: set[str] = set()
        self._named = [path for path in options[SYMBOLS] if not os.path.isdir(path)]
        self._index: dict[str, list[str]] | None = None
        self._extracted: PrivateFolder | None = None
        self._extracted_from: dict[str, str] = {}  # path -> input and member
        self._refused: set[str] = set()
        self.lines = True
        self._kallsyms = next((path for path in self._named if not _is_elf(path)), "")

    def get(self, image: Image, mtime: Callable[[Image], int]) -> Loaded:
        """`mtime` is the modification time of an image's file when it was sampled, in seconds; 0: unknown."""
        if image not in self._loaded:
            self._loaded[image] = self._load(image, mtime)
        return self._loaded[image]

    def _load(self, image: Image, mtime: Callable[[Image], int]) -> Loaded:
        model = self._model
        jit = self._jit(image)
        name = os.path.basename(jit) if jit else image.name
        object_id = model.object(name) if name else 0
        whole = model.function(name, object_id=object_id) if name else 0
        c = owned(lib.fp_oprofile_image_new(model.c, object_id, whole), "an image")
        loaded = Loaded(image, c, object_id)
        loaded.by_address = bool(jit)
        if self._options[SYMBOLIZE]:
            reason = self._read(loaded, jit, mtime)
            if reason:
                self._log.warn(REPORTED["image-without-symbols"], image=name or "the image", reason=reason)
        return loaded

    def _read(self, loaded: Loaded, jit: str, mtime: Callable[[Image], int]) -> str | Message:
        """Reads an image's symbols.  Returns why it has none, else "", also for memory, which cannot have any."""
        image = loaded.image
        kallsyms = self._kallsyms
        if kallsyms and image.name in (PROC_KALLSYMS, _NO_VMLINUX):
            text = loaded.borrow(kallsyms)
            self._used.add(kallsyms)
            n = lib.fp_oprofile_image_kallsyms(loaded.c, text, len(text), image.name == _NO_VMLINUX)
            return "" if self._counted(n) > 0 else f"{kallsyms} is not a text of kallsyms with _text and _etext"
        if image.jit and not jit:
            return ""
        if image.name == _NO_VMLINUX:
            loaded.by_address = True  # samples are counted by address
        reason: str | Message = {
            "": Message(
                "the sample file was given without the path that names its image; pass the image with {--symbols}"
            ),
            _NO_VMLINUX: Message(
                "the kernel was sampled without its image; give a copy of its /proc/kallsyms or its vmlinux with "
                "{--symbols}"
            ),
        }.get(image.name, "no such file")
        expected = None
        for path, trusted in [(self._extract(jit), True)] if jit else self._candidates(image):
            try:
                data = loaded.borrow(path)
            except OSError as error:
                reason = error.strerror or str(error)
                continue
            expected = mtime(image) if expected is None else expected
            if expected and not jit and int(os.stat(path).st_mtime) != expected:
                if not trusted:
                    reason = Message("its file is newer than the profile; {--symbols} accepts it anyway")
                    continue
                shown = self._extracted_from.get(path, path)
                self._log.warn(REPORTED["changed-image"], path=shown)
            loaded.path = path
            self._used.add(path)
            return self._read_elf(loaded, data)
        return reason

    def _read_elf(self, loaded: Loaded, data: Pointer[int]) -> str:
        c = loaded.c
        n = self._counted(lib.fp_oprofile_image_elf(c, data, len(data), ffi.NULL, 0, loaded.by_address))
        elf = None
        if n == 0 or (n > 0 and self.lines and (c.has_debug or c.has_link)):
            from fastprof.symbols.elf import ET_REL
            from fastprof.symbols.objects import ElfObject

            options = self._options
            elf = ElfObject(
                loaded.path, debug_dirs=self._debug_dirs, sysroot=options[SYSROOT], demangle=options[DEMANGLE]
            )
            debug = "" if c.has_debug else elf.debug_path()
            if debug and not n:
                c.n_sections = 0
                other = loaded.borrow(debug)
                n = self._counted(lib.fp_oprofile_image_elf(c, data, len(data), other, len(other), loaded.by_address))
            if (debug or c.has_debug) and n > 0 and self.lines:
                loaded.elf = elf
                c.ask = True
                text = elf.section(".text")
                if elf.kind == ET_REL and text is not None:
                    loaded.link = text.address - lib.fp_oprofile_address(c, c.text)
        if n > 0:
            return ""
        return "stripped" if n == 0 else "not an ELF file, or damaged"

    @staticmethod
    def _counted(n: int) -> int:
        if n == lib.FP_E_NOMEM:
            raise MemoryError("no memory for symbols")
        return int(n)

    # ---- names

    def name(self, c: fp_oprofile_image, symbol: int, loaded: Loaded) -> None:
        """Enter the function of the symbol that the rows request."""
        size = ffi.new("size_t *")
        text = lib.fp_oprofile_name(c, symbol, size)
        raw = ffi.buffer(text, size[0])[:]
        if not raw:
            section = lib.fp_oprofile_section_at(c, c.symbols[symbol].start)
            raw = b"??" + (ffi.buffer(section.name, section.name_nbytes)[:] if section and section.name else b"")
        linked = raw.decode("utf-8", "surrogateescape")
        shown = demangle(linked, self._options[DEMANGLE], self._refused)
        file, line = "", 0
        if loaded.elf is not None:
            (chain,) = loaded.lookup([lib.fp_oprofile_address(c, c.symbols[symbol].start)])
            if chain:
                file, line = chain[-1].file, chain[-1].line
        c.symbols[symbol].function = self._model.function(
            shown, file, loaded.object_id, "" if shown == linked else linked, line
        )

    def lines_of(self, loaded: Loaded, addresses: Numbers, functions: Numbers) -> list[tuple[int, int]]:
        """(file, line) of each address: of the innermost inlined code, else the function's file and 0."""
        model, found = self._model, []
        for chain, function in zip(loaded.lookup(addresses), functions, strict=True):
            if chain and chain[0].file:
                found.append((model.intern(chain[0].file), chain[0].line))
            else:
                found.append((model.row("functions", function)[lib.FP_FUNCTION_FILE], 0))
        return found

    def own_lines_of(self, loaded: Loaded, addresses: Numbers) -> list[int]:
        """The line of each address in the file of the function itself, whatever is inlined there."""
        return [chain[-1].line if chain else 0 for chain in loaded.lookup(addresses)]

    def end(self) -> None:
        for loaded in self._loaded.values():
            if loaded.elf is not None and loaded.elf.note:
                self._log.warn(REPORTED["object-notes"], path=loaded.path, note=loaded.elf.note)
        for path in self._named:
            if path not in self._used and self._options[SYMBOLIZE]:
                self._log.warn(REPORTED["unused-image"], path=path)
        if self._refused:
            self._log.warn(REPORTED["mangled-names"], names=left_mangled(self._refused))
        if self._extracted is not None:
            self._extracted.remove()
            self._extracted = None

    # ---- files

    def _jit(self, image: Image) -> str:
        """The name of the member with code that was made in a region at run time; "" if there is none."""
        return image.jit if image.jit in self._files else ""

    def _candidates(self, image: Image) -> Iterator[tuple[str, bool]]:
        """Paths, and whether they are used even if modified."""
        name = os.path.basename(image.name.removesuffix(DELETED))
        names = [name + suffix for suffix in _SUFFIXES]
        if not name:  # the sample file does not name its image, so every given file may be it
            names = [os.path.basename(path) for path in self._named[:1]]
        if name == _NO_VMLINUX:
            names = [os.path.basename(path) for path in self._named if os.path.basename(path).startswith("vmlinux")]
        key = _as_module if image.is_kern else str
        names = [key(name) for name in names]
        index = self._by_name()
        in_folders = [
            path
            for wanted in names
            for path in index.get(_as_module(wanted), ())
            if key(os.path.basename(path)) == wanted
        ]
        in_folders.sort(key=lambda path: not path.endswith(image.name))
        for wanted in names:
            yield from ((path, True) for path in self._named if key(os.path.basename(path)) == wanted)
        yield from ((path, True) for path in in_folders)
        yield from ((self._extract(name), True) for name in self._in_archive(image, names))
        if image.name.startswith("/"):
            if sysroot := self._options[SYSROOT].rstrip("/"):
                yield sysroot + image.name, True
            yield image.name, False

    def _by_name(self) -> dict[str, list[str]]:
        """The files in directories that the user named, by `_as_module` of their names."""
        if self._index is None:
            self._index = {}
            for directory in self._options[SYMBOLS]:
                for folder, _, names in os.walk(directory):
                    for name in sorted(names):
                        self._index.setdefault(_as_module(name), []).append(os.path.join(folder, name))
        return self._index

    def _in_archive(self, image: Image, names: Sequence[str]) -> Iterable[str]:
        """The names of the image's files in the input, sorted."""
        if not image.name.startswith("/"):
            return merge(*(self._modules.get(name, ()) for name in {*names}))
        end = image.name[::-1]
        first = bisect_left(self._backwards, end)
        stop = bisect_left(self._backwards, end + "\U0010ffff", first)
        return sorted(name[-2::-1] for name in self._backwards[first:stop])

    def _extract(self, name: str) -> str:
        """The path of a member."""
        source, file = self._source, self._files[name]
        if source.folder is not None:
            return os.path.join(source.path or "", name)
        if self._extracted is None:
            from fastprof.core.made_folders import PrivateFolder

            self._extracted = PrivateFolder()
        path = os.path.join(self._extracted.path, str(file.start))
        if path not in self._extracted_from:
            try:
                with open(path, "wb") as out:
                    out.write(source.read_at(file.start, file.size))
                os.utime(path, (file.mtime, file.mtime))
            except OSError as error:
                raise_as(f"{source.name}:{name}", error, f"cannot make a temporary copy: {error.strerror or error}")
            self._extracted_from[path] = f"{source.name}:{name}"
        return path


def _as_module(name: str) -> str:
    """A name as the kernel has it: the file of module crc32c_intel is crc32c-intel.ko."""
    return name.replace("-", "_")


def _is_elf(path: str) -> bool:
    """Errors: FileError for a file that cannot be read."""
    try:
        with open(path, "rb") as file:
            return file.read(4) == b"\x7fELF"
    except OSError as error:
        raise_as(path, error)
