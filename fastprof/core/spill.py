"""Data that does not fit into memory, in an unnamed temporary file."""

import os
from collections.abc import Iterator
from contextlib import suppress

from fastprof.core._c import ffi, lib
from fastprof.core._typing import Any, fp_buf, fp_key_sums, fp_rounds, fp_strings, fp_window
from fastprof.core.errors import FastprofError
from fastprof.core.streams import temporary_failed, temporary_file

MOST_ROUNDS = 1 << 34  # bytes that readers of rounds keep in memory: the limit of the C code's counters

not_cleared = ffi.new_allocator(should_clear_after_alloc=False)  # like ffi.new, without clearing the memory


class Spilled:
    """An unnamed temporary file, created at the first write.  It is removed with this object."""

    def __init__(self) -> None:
        self._file: Any = None
        self.nbytes = 0

    def file(self) -> Any:
        """The file object, positioned at its beginning."""
        if self._file is None:
            self._file = temporary_file()
        return self._file

    def append(self, data: memoryview) -> None:
        """Append all of `data`."""
        self.file()
        try:
            while len(data):
                done = self._file.write(data)
                self.nbytes += done
                data = data[done:]
        except OSError as error:
            raise temporary_failed(error) from None

    def read(self, offset: int, into: memoryview) -> None:
        """Fill `into` from `offset`, which was written: missing bytes are an error, not the end."""
        while len(into):
            try:
                got = os.preadv(self._file.fileno(), [into], offset)
            except OSError as error:
                raise temporary_failed(error) from None
            if not got:
                raise FastprofError(f"temporary file: ends at byte {offset}, although more was written")
            offset, into = offset + got, into[got:]

    def answer(self, rounds: fp_rounds) -> None:
        """Write or read what a reader of rounds (core/rounds.h) asks for."""
        there = memoryview(ffi.buffer(rounds.bytes, rounds.n_bytes))
        if rounds.asks == lib.FP_ROUNDS_WRITE:
            self.append(there)
        else:
            self.read(rounds.offset, there)


class KeptKeys(Spilled):
    """Keys and sums that a reader keeps until the end of its input (core/key_sums.h), within half of a limit."""

    def __init__(self, sums: fp_key_sums, limit: int) -> None:
        super().__init__()
        self._sums, self._most = sums, limit // 2

    def rest(self) -> None:
        """Take them out of memory if they exceed it: after each window and batch."""
        check_room(self._sums.keys)
        if lib.fp_key_sums_rest(self._sums, self._most):
            lib.fp_key_sums_to_file(self._sums, self.file().fileno())


def check_room(strings: fp_strings) -> None:
    """Errors: FastprofError if the temporary file of these strings could not grow, which is no lack of memory."""
    if error := int(strings.file_error):
        raise temporary_failed(OSError(error, os.strerror(error)))


def names_to_file(strings: fp_strings, file: list[Any]) -> None:
    """Move strings to a temporary file, which becomes the item of `file`; they stay in memory if there is none."""
    check_room(strings)
    if file:
        return
    file.append(None)
    with suppress(FastprofError):
        file[0] = temporary_file()
        lib.fp_strings_to_file(strings, file[0].fileno(), 0)


class Groups(Spilled):
    """A temporary file for several groups of bytes, written in any order and read back group by group."""

    def __init__(self) -> None:
        super().__init__()
        self._blocks: dict[int, list[tuple[int, int]]] = {}  # by group: offset in the file, bytes

    def add(self, group: int, buffer: fp_buf) -> None:
        """Write the content of a struct fp_buf; the caller empties it."""
        self._blocks.setdefault(group, []).append((self.nbytes, int(buffer.n)))
        self.append(memoryview(ffi.buffer(buffer.p, buffer.n)))

    def take(self, group: int, buffer: fp_buf) -> None:
        """Write the content of a struct fp_buf, and free it."""
        if buffer.n:
            self.add(group, buffer)
            lib.fp_buf_free(ffi.addressof(buffer))

    def size(self, group: int) -> int:
        """Bytes written of a group."""
        return sum(n for _, n in self._blocks.get(group, ()))

    def windows(self, group: int, buffer: fp_buf) -> Iterator[fp_window]:
        """All bytes of a group, written or still buffered, as struct fp_window *, each valid until the next."""
        blocks = self._blocks.get(group, ())
        block = not_cleared("uint8_t[]", max((n for _, n in blocks), default=1))
        for offset, n in blocks:
            self.read(offset, memoryview(ffi.buffer(block, n)))
            yield ffi.new("struct fp_window *", {"p": block, "n": n, "eof": 1})
        if buffer.n:
            yield ffi.new("struct fp_window *", {"p": buffer.p, "n": buffer.n, "eof": 1})
