"""Failing system calls: tests/support/shim.c, and the requirements for errors."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from fastprof.core.errors import FastprofError
from tests.support.paths import CORPUS

READ, WRITE, OPEN, SYNC, NAME, MEMORY, CLOSE, THREAD = 1, 2, 4, 8, 16, 32, 64, 128
CALLBACK = ctypes.CFUNCTYPE(None)


class Fault(NamedTuple):
    """The same names as in shim.c."""

    calls: int
    nth: int = 0
    every: int = 0
    error: int = 0
    most: int = 0
    meanwhile: Callable[[], object] = lambda: None


class Shim:
    def __init__(self, path: str) -> None:
        self._lib = ctypes.CDLL(path)
        self._lib.shim_end.restype = self._lib.shim_blocks.restype = ctypes.c_long
        self._lib.shim_set.argtypes = [
            ctypes.c_char_p,
            ctypes.c_uint,
            ctypes.c_long,
            ctypes.c_long,
            ctypes.c_int,
            ctypes.c_size_t,
            CALLBACK,
        ]
        self.seen = 0  # calls below the path, while it is set

    @property
    def blocks(self) -> int:
        """Blocks that libraries below the path allocated and did not free while it is set."""
        return int(self._lib.shim_blocks())

    @contextlib.contextmanager
    def set(self, below: Path, fault: Fault) -> Iterator[None]:
        called = CALLBACK(lambda: (fault.meanwhile(), None)[1])
        self._lib.shim_set(bytes(below), *fault[:5], called)
        try:
            yield
        finally:
            self.seen = self._lib.shim_end()


def following(nth: int) -> int:
    """The number of the next failing call: each of the first ones, then fewer, because later calls mostly repeat
    them."""
    return nth + 1 + nth // 12


class Faults:
    """Conversions of the files in `folder`/in to `folder`/out, with temporary files in `folder`/tmp."""

    def __init__(self, shim: Shim, folder: Path) -> None:
        self.shim = shim
        self.inputs, self.out, self.tmp = (folder / name for name in ("in", "out", "tmp"))
        self.made, self.wrong = 0, [""][:0]
        self.spilled = 0  # faults of temporary files
        self._clear()
        tempfile.tempdir = str(self.tmp)

    def _clear(self) -> None:
        for path in (self.inputs, self.out, self.tmp):
            shutil.rmtree(path, ignore_errors=True)
            path.mkdir(parents=True)

    def given(self, file: str, suffix: str = "", pack: Callable[[bytes], bytes] = bytes) -> Path:
        """An unchanged corpus file in `inputs`; for "x.tar/" the directory that x.tar was made from."""
        if file.endswith("/"):
            path = self.inputs / "session"
            shutil.rmtree(path, ignore_errors=True)
            shutil.unpack_archive(CORPUS / file[:-1], path, "tar")
            return path
        path = self.inputs / (os.path.basename(file) + suffix)
        path.write_bytes(pack((CORPUS / file).read_bytes()))
        return path

    def run(
        self,
        what: str,
        below: Path,
        fault: Fault,
        action: Callable[[], object],
        names: Path,
        want: bytes | list[bytes] | None = None,
    ) -> bool:
        """Whether `action` succeeded: then its outputs have to be `want`.  If not, the error has to name a file, and no
        output may be left."""
        self.made += 1
        what += f" {fault}"
        before = {*os.listdir("/proc/self/fd")}
        problem = ""
        good = False
        try:
            with self.shim.set(below, fault):
                action()
            good = True
        except FastprofError as error:
            if str(names) not in str(error):
                problem = f"names no file: {error}"
            if want is not None and not fault.nth:
                problem = f"failed: {error}"
        except BaseException as error:
            problem = f"{type(error).__name__}: {error}"
        written = self.outputs()
        if good and want is not None and [*map(Path.read_bytes, written)] != ([want] if type(want) is bytes else want):
            problem = "another output"
        if not good and written:
            problem = f"left: {written}; {problem}"
        if left := [*self.tmp.iterdir()] if self.tmp.exists() else []:
            problem = f"temporary files: {left}"
        if threads := [thread for thread in threading.enumerate() if thread.name == "fastprof"]:
            problem = f"threads: {threads}"
        if not good:
            gc.collect()  # an error in a thread may refer to itself by its traceback
        if opened := {*os.listdir("/proc/self/fd")} - before:
            problem = f"open files: {opened}"
        if problem:
            self.wrong.append(f"{what}: {problem}")
        for path in written:
            path.unlink()
        self.out.mkdir(exist_ok=True)
        self.tmp.mkdir(exist_ok=True)
        return good

    def outputs(self) -> list[Path]:
        return sorted(path for path in self.out.rglob("*") if not path.is_dir())

    def each(
        self,
        what: str,
        below: Path,
        fault: Fault,
        action: Callable[[], object],
        names: Path,
        want: bytes | list[bytes],
    ) -> int:
        """`fault` at the first call, the second ... until one is beyond the last.  Returns the number of calls."""
        nth = 0
        while True:
            nth = following(nth)
            good = self.run(what, below, fault._replace(nth=nth), action, names, want)
            if self.shim.seen < nth:
                if not good:
                    self.wrong.append(f"{what} {fault}: failed without a fault")
                return nth - 1
