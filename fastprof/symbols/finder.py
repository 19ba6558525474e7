"""Finds the file with the symbols of a mapped object."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence

from fastprof.core.errors import SymbolError
from fastprof.core.streams import Damaged, compression_of_bytes, decompressed
from fastprof.symbols import kernel
from fastprof.symbols.demangle import Demangle, left_mangled
from fastprof.symbols.elf import ET_EXEC, NOT_ELF
from fastprof.symbols.file_cache import FileCache, FolderCache
from fastprof.symbols.jitdump import JitDump, is_jitdump
from fastprof.symbols.mappings import Mapping, Mappings
from fastprof.symbols.objects import DEBUG_DIRS, MAX_CACHED, ElfObject, cached_object
from fastprof.symbols.perf_map import PerfMap, is_perf_map

Names = ElfObject | PerfMap | JitDump | kernel.Kallsyms
Found = tuple[Names | None, str]  # or the reason why there is none
_VDSO = "[vdso]"
_DEBUG_SUFFIXES = (".debug", ".dbg")
_PERF_CACHE = "~/.debug"
_IN_CACHES = ("", ".debug", "/elf", "/vdso", "/kallsyms")  # after .build-id/xx/yyyy; the last three are perf's
_KERNEL_FILES = ("vmlinux", "kallsyms", "System.map")
_MODULE_SUFFIX = ".ko"
_LARGEST_MODULE = 1 << 28  # bytes, decompressed
_others = FileCache["Names"](MAX_CACHED)  # than ELF files
_indexes = FolderCache[dict[str, list[str]]](4)


class Finder:
    """Finds the file of an object that a profile names, in this order:

    1. `symbols`, the files and directories that the user named: by build id, then by file name (a `.debug` suffix is
       ignored). If the user named a single program and no mapping has its name, it is used as the profile's
       program, unless the profile has a build id for that.
    2. `sysroot` + path, then the path itself, if it has the profile's build id.
    3. By build id: the debug directories, below `sysroot` first, and perf's cache (~/.debug).
    4. `sysroot` + path, or else the path itself, if the file or the profile has no build id.

    The kernel's names are those of a vmlinux or of kallsyms among 1 and 3, or the running kernel's if its build id is
    the profile's.  Those of its modules are in the same kallsyms, or in the modules' own files: among 1 and 3, and of
    those installed below /lib/modules the one with the profile's build id.  These may be compressed.

    Errors: SymbolError when a file that the user named has the right name but another build id; with `force` it is
    used. A file found by path with another build id is skipped.
    """

    def __init__(
        self,
        *,
        symbols: Sequence[str | os.PathLike[str]] = (),
        sysroot: str = "",
        debug_dirs: Sequence[str] = DEBUG_DIRS,
        demangle: Demangle = "full",
        force: bool = False,
    ) -> None:
        self._sysroot = sysroot.rstrip("/")
        self._debug_dirs = tuple(debug_dirs)
        self._demangle: Demangle = demangle
        self._force = force
        self._opened: dict[str, Names] = {}
        self._chosen: dict[tuple[str, str, bool], Found] = {}
        self._kernel: Mapping | None = None
        self._expected: set[str] = set()  # last parts of paths
        self._in_directories: dict[str, list[str]] | None = None
        self._installed: dict[str, list[str]] | None = None  # by module
        self._own_vdso: ElfObject | None = None
        paths = [os.fspath(path) for path in symbols]
        self._directories = [path for path in paths if os.path.isdir(path)]
        self._files = [self._open(path) for path in paths if not os.path.isdir(path)]
        for file in self._files:
            if file.reason:
                raise SymbolError(f"{file.path}: {file.reason}")

    def expect(self, mappings: Mappings, first: int) -> None:
        """Call it before `find` with the mappings of the objects to be found, from index `first` on."""
        for index in range(first, len(mappings)):
            if kernel.is_kernel(mappings.paths[index]) and not (self._kernel and self._kernel.build_id):
                self._kernel = mappings[index]
        if self._directories:
            known = len(self._expected)
            self._expected.update(map(os.path.basename, mappings.paths[first:]))
            if len(self._expected) > known:
                self._in_directories = None

    def find(self, path: str, build_id: str, others: Callable[[], Iterable[str]] | None = None) -> Found:
        """The names of an object, or None and the reason.  For the program itself, `others` are the file names of all
        its process's mappings."""
        key = path, build_id, others is not None
        if key not in self._chosen:
            names, reason = self._choose(path, build_id, others)
            if isinstance(names, kernel.Kallsyms) and kernel.is_kernel(path):
                names = names.part("")
            self._chosen[key] = names, reason
        return self._chosen[key]

    def notes(self) -> list[tuple[str, str]]:
        """(object, its unreadable debug information or names), of the objects used."""
        chosen = {path: names for (path, _, _), (names, _) in self._chosen.items() if names is not None}
        notes = [(path, names.note) for path, names in chosen.items() if names.note]
        return notes + [(path, left_mangled(names.refused)) for path, names in chosen.items() if names.refused]

    def _choose(self, path: str, build_id: str, others: Callable[[], Iterable[str]] | None) -> Found:
        named = self._named_by_user(path, build_id)
        if named is None and others and not build_id and self._is_free_program(others()):
            named = self._files[0]
        named = named or self._module(path)
        if named is not None:
            return named, ""
        places = [root + path for root in ((self._sysroot, "") if self._sysroot else ("",))]
        if is_perf_map(path) and _is_foreign(path):  # whatever is in it
            places.remove(path)
            if not places:
                return None, "not owned by this user or root"
        by_path = [*map(self._open, places)] if path.startswith("/") and path[1:2] != "/" else []
        exact = self._of_build(by_path, build_id)
        if exact is not None:
            return exact, ""
        if path == _VDSO:
            return self._vdso(build_id)
        if kernel.is_kernel(path):
            return self._running_kernel(build_id)
        if not by_path and (module := kernel.module_of(path)):
            return self._installed_module(module, build_id)
        if by_path:
            return self._of_unknown_build(by_path, path, build_id)
        return None, "not a file" if path else "mapping without a name"

    def _of_build(self, by_path: list[Names], build_id: str) -> Names | None:
        """The first of these files and those in caches with this build id; with `force` any of these files."""
        for names in by_path:
            if not names.reason and (self._force or (build_id and _same(names.build_id, build_id))):
                return names
        for names in map(self._open, _build_id_paths(build_id, self._caches()) if build_id else ()):
            if not names.reason and not _differs(names, build_id):
                return names
        return None

    def _of_unknown_build(self, by_path: list[Names], path: str, build_id: str) -> Found:
        """The first of these files that is not known to be of another build."""
        for names in by_path:
            is_own = names.path == path  # not below the sysroot
            if names.reason or _differs(names, build_id):
                continue
            if is_own and self._sysroot and not isinstance(names, PerfMap):
                continue  # this machine's file may be another version
            return names, ""
        first = by_path[0]
        return None, first.reason or f"wrong build id: {first.path} has {first.build_id}, the profile {build_id}"

    def _named_by_user(self, path: str, build_id: str) -> Names | None:
        if not self._files and not self._directories:
            return None
        by_id = [self._open(place) for place in _build_id_paths(build_id, self._directories)]
        for names in (*self._files, *by_id):
            if build_id and not names.reason and _same(names.build_id, build_id):
                return names
        fitting = [file for file in self._files if _fits(file, path)]
        for names in (*fitting, *self._by_name(path, build_id)):
            if names.reason:
                continue
            if self._force or not _differs(names, build_id):
                return names
            if names in fitting:
                raise SymbolError(f"{names.path}: build id is {names.build_id}, the profile's {path} has {build_id}")
        return None

    def _is_free_program(self, names: Iterable[str]) -> bool:
        """Whether the one file the user named is a program, and no mapping has its name."""
        file = self._files[0] if len(self._files) == 1 else None
        if not isinstance(file, ElfObject) or file.is_kernel or any(_is_named(file.path, name) for name in names):
            return False
        return file.interpreted or file.kind == ET_EXEC

    def _caches(self) -> list[str]:
        below = [self._sysroot + directory for directory in self._debug_dirs] if self._sysroot else []
        return [*below, *self._debug_dirs, os.path.expanduser(_PERF_CACHE)]

    def _by_name(self, path: str, build_id: str) -> list[Names]:
        """Files in the user's directories that may belong to the object; those with the same build id come first."""
        name = os.path.basename(path)
        if not name or not self._directories:
            return []
        if self._in_directories is None:
            self._in_directories = self._index_directories()
        names = _KERNEL_FILES if kernel.is_kernel(path) else (name, *(name + suffix for suffix in _DEBUG_SUFFIXES))
        names = (*names, _key(module)) if (module := kernel.module_of(path)) else names
        found = [self._open(place) for n in names for place in self._in_directories.get(n, ())]
        fitting = [file for file in found if _fits(file, path)]
        return sorted(fitting, key=lambda file: (not _same(file.build_id, build_id), not file.path.endswith(path)))

    def _index_directories(self) -> dict[str, list[str]]:
        """The paths in the user's directories by file name."""
        return _indexes.get((tuple(self._directories), frozenset(self._expected)), self._walk)

    def _walk(self) -> tuple[dict[str, list[str]], list[str]]:
        """An index only for names of mapped files, so it is small, however many files the directories hold; and all
        folders in the directories."""
        wanted = {name + suffix for name in self._expected for suffix in ("", *_DEBUG_SUFFIXES)} | {*_KERNEL_FILES}
        modules = {module for name in self._expected if (module := kernel.module_of(name))}
        index: dict[str, list[str]] = {}
        folders = []
        for directory in self._directories:
            for folder, _, names in os.walk(directory):
                folders.append(folder)
                for name in sorted(wanted.intersection(names)):
                    index.setdefault(name, []).append(os.path.join(folder, name))
                for name in sorted(names) if modules else ():
                    if _MODULE_SUFFIX in name and (module := kernel.module_of(name)) in modules:
                        index.setdefault(_key(module), []).append(os.path.join(folder, name))
        return index, folders

    # ---- the kernel

    def _running_kernel(self, build_id: str) -> Found:
        """The names of this machine's kernel."""
        if not build_id:
            return None, "no build id identifies the kernel"
        own = kernel.own_build_id()
        if not _same(own, build_id):
            return None, f"wrong build id: this machine's has {own or 'none'}, the profile {build_id}"
        names = kernel.Kallsyms(kernel.PROC_KALLSYMS, self._demangle)
        return (None if names.reason else names), names.reason

    def _module(self, path: str) -> Names | None:
        """The names of a module, if the kallsyms of the recorded boot have them."""
        module = kernel.module_of(path)
        if not module or self._kernel is None:
            return None
        names, _ = self.find(self._kernel.path, self._kernel.build_id)
        if not isinstance(names, kernel.Kallsyms) or names.link_address(0, 0, self._kernel.offset):
            return None
        part = names.part(module)
        return None if part.reason else part

    def _installed_module(self, module: str, build_id: str) -> Found:
        """The names of a module from a file below /lib/modules, of any kernel."""
        if not build_id:
            return None, "no build id identifies the kernel's module"
        if self._installed is None:
            self._installed = {}
            for root in (self._sysroot, "") if self._sysroot else ("",):
                for folder, _, files in os.walk(root + "/lib/modules"):
                    for name in files:
                        if _MODULE_SUFFIX in name:
                            path = os.path.join(folder, name)
                            self._installed.setdefault(kernel.module_of(name), []).append(path)
        for names in map(self._open, self._installed.get(module, ())):
            if not names.reason and _same(names.build_id, build_id):
                return names, ""
        return None, "no file of this module has the build id"

    def _vdso(self, build_id: str) -> Found:
        """The vdso: kernel code in every process, without a file.  This process's is used if the kernel is the same."""
        if not build_id:
            return None, "the kernel's own code, and no build id identifies the kernel"
        if self._own_vdso is None:
            self._own_vdso = own_vdso()
        elf = self._own_vdso
        if elf.reason or _same(elf.build_id, build_id):
            return (None if elf.reason else elf), elf.reason
        return None, f"wrong build id: this machine's has {elf.build_id}, the profile {build_id}"

    # ---- files

    def _open(self, path: str) -> Names:
        if path not in self._opened:
            self._opened[path] = self._open_new(path)
        return self._opened[path]

    def _open_new(self, path: str) -> Names:
        if path == kernel.PROC_KALLSYMS:  # its size is 0
            return kernel.Kallsyms(path, self._demangle)
        elf = cached_object(path, debug_dirs=self._debug_dirs, sysroot=self._sysroot, demangle=self._demangle)
        if elf.reason != NOT_ELF:
            return elf
        if compression_of_bytes(bytes(elf.content[:8])):
            return _others.get(path, (self._demangle, *self._debug_dirs), lambda: self._unpacked(path, elf))
        if is_perf_map(path):
            return _others.get(path, self._demangle, lambda: PerfMap(path, self._demangle))
        head = bytes(elf.content[:64])
        if is_jitdump(head):
            return _others.get(path, self._demangle, lambda: JitDump(path, self._demangle))
        if kernel.is_kallsyms(head):
            return _others.get(path, self._demangle, lambda: kernel.Kallsyms(path, self._demangle))
        return elf

    def _unpacked(self, path: str, packed: ElfObject) -> ElfObject:
        """A compressed ELF file, such as a kernel module."""
        from io import BytesIO

        content = bytearray()
        try:
            stream = decompressed(BytesIO(packed.content), compression_of_bytes(bytes(packed.content[:8])), None)
            while len(content) <= _LARGEST_MODULE and (piece := stream.read(1 << 20)):
                content += piece
        except Damaged:
            return packed
        if len(content) > _LARGEST_MODULE or not content.startswith(b"\x7fELF"):
            return packed
        own = self._debug_dirs, self._sysroot, self._demangle
        return ElfObject(path, content=bytes(content), debug_dirs=own[0], sysroot=own[1], demangle=own[2])


def own_vdso() -> ElfObject:
    """The vdso of this process, as an object; its `reason` states why there is none."""
    vdso = b""
    try:
        with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb", buffering=0) as memory:
            line = next((line for line in maps if line.rstrip().endswith(_VDSO)), "0-0 ")
            start, limit = (int(number, 16) for number in line.split()[0].split("-"))
            memory.seek(start)
            vdso = memory.read(limit - start)
    except OSError:
        pass  # it stays empty; the object's `reason` states why
    return ElfObject(_VDSO, content=vdso)


def _is_foreign(path: str) -> bool:
    """Whether a file, or the link to it, belongs to neither this user nor root: anybody may write to /tmp."""
    try:
        return not {os.lstat(path).st_uid, os.stat(path).st_uid} <= {0, os.geteuid()}
    except (OSError, ValueError):  # ValueError: a NUL byte
        return False


def _same(a: str, b: str) -> bool:
    """Whether two build ids are the same; perf fills short ones with zeros."""
    return a.rstrip("0") == b.rstrip("0")


def _differs(names: Names, build_id: str) -> bool:
    """Whether a file is of another build; it is not if that is unknown."""
    return bool(names.build_id and build_id) and not _same(names.build_id, build_id)


def _build_id_paths(build_id: str, directories: Iterable[str]) -> list[str]:
    ids = [build_id, *(build_id[:n] for n in (32, 16) if len(build_id) > n and not build_id[n:].strip("0"))]
    stems = [os.path.join(".build-id", i[:2], i[2:]) for i in ids if len(i) > 2]
    candidates = [os.path.join(d, stem + suffix) for d in directories for stem in stems for suffix in _IN_CACHES]
    return [path for path in candidates if os.path.isfile(path)]


def _key(module: str) -> str:
    """The key of a module in the index of the user's directories."""
    return f"[{module}]"


def _is_named(path: str, name: str) -> bool:
    mine = os.path.basename(path)
    return bool(name) and (mine == name or any(mine == name + suffix for suffix in _DEBUG_SUFFIXES))


def _fits(file: Names, path: str) -> bool:
    """Whether a file is an object's by its name, or by its role for the kernel."""
    if kernel.is_kernel(path):
        return isinstance(file, kernel.Kallsyms) or (isinstance(file, ElfObject) and file.is_kernel)
    name = os.path.basename(path)
    if isinstance(file, ElfObject) and file.is_module:
        return kernel.module_of(os.path.basename(file.path)) == kernel.module_of(path)
    return _is_named(file.path, name) or (isinstance(file, PerfMap) and is_perf_map(name) and file.path.endswith(name))
