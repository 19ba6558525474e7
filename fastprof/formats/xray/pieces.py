"""FDR logs for several cores: buffers are read in order, and decoded where they are folded (engine.Encoded).

Functions get their numbers in the model as decoders meet them, and these numbers have to be those that a single thread
would give.  So a decoder that meets a new function waits until the others have passed all earlier buffers:

    buffer        0    1    2    3    4    5           a decoder of share 0 meets a function in buffer 2:
    share         0    1    0    1    0    1           it waits until that of share 1 is in 3, or has no buffer left

That is rare: the first rows are read in one thread, until few functions in them are new.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial

from fastprof.core import workers
from fastprof.core._c import ffi, lib
from fastprof.core._typing import TYPE_CHECKING, Pointer, fp_feed, fp_shares, fp_xray
from fastprof.core.c_memory import enough, owned
from fastprof.core.engine import CAPACITY, Encoded, decode, finish, last
from fastprof.core.errors import check
from fastprof.core.model import Batch
from fastprof.core.options import UINT64
from fastprof.core.spill import not_cleared

if TYPE_CHECKING:
    from fastprof.formats.xray.read import XRayReader

# Bytes of a piece.  Larger pieces wake threads less often.  The reading thread decodes buffers that exceed a piece.
_BYTES = 2 << 20
_BUFFERS = 1 << 12
_FIRST = 1 << 18  # bytes of a range of the first rows,
_RARE = 300  # and the most new functions in it: each makes the threads wait for each other
# Pieces that are read and not yet taken.  A few for each share are still cached when they are taken; more let the
# other shares continue while one decodes a slower part of the log.
_FEW, _PIECES = 4, 20
_NO_BUFFER = (1 << 64) - 1


def read_in_pieces(reader: XRayReader, capacity: int | None) -> Iterator[Batch]:
    """As engine.read, but most batches are Encoded if the log has several threads."""
    reader.index()
    reader.model.nbytes_of_threads[reader.x.input] = partial(lib.fp_xray_thread_nbytes, reader.x)
    x, batch = reader.x, Batch("timeline", capacity or CAPACITY["timeline"])
    offset, nbytes = ffi.new("uint64_t *"), ffi.new("uint64_t *")
    several = lib.fp_xray_has_threads(x)
    most = _FIRST if several else UINT64
    while lib.fp_xray_range(x, most, offset, nbytes):
        n_known = len(reader.functions)
        yield from decode(reader, batch, offset[0], nbytes[0])
        n_new = len(reader.functions) - n_known
        if several and reader.n_read >= workers.FEW_ROWS and n_new < _RARE:
            break
    yield from last(reader, batch)
    shares = _Shares(reader)
    while True:
        piece = shares.next_piece()
        if piece.c_piece.n:
            yield from piece.decoded(batch)
        elif lib.fp_xray_range(x, 0, offset, nbytes):  # too large for a piece
            yield from shares.in_order(batch, offset[0], nbytes[0])
            shares.give_back(piece)
        else:
            break
    shares.end()
    finish(reader)


class _Shares:
    """The common state of a log's shares.  Buffers are numbered in order."""

    def __init__(self, reader: XRayReader) -> None:
        self.reader = reader
        self.decoders: dict[int, _Decoder] = {}
        self._n_buffers = 0  # so far
        self._moved = threading.Condition()  # for the fields below; only the reading thread adds to them
        self._free: list[_Piece] = []
        self._n_pieces = 0  # that are not free
        self._todo: dict[int, deque[int]] = {}  # by share: its first buffer in each piece that it has not taken
        self._waiting: dict[int, int] = {}  # by waiting share: the buffer that the others must pass
        self.awaited = ffi.new("uint64_t *", _NO_BUFFER)  # the least of these, for decoders

    def next_piece(self) -> _Piece:
        """A piece of the next buffers, not yet read; empty if the next one is too large."""
        if not self._has_room():
            with self.reader.model.lent(), self._moved:
                self._moved.wait_for(self._has_room)
        with self._moved:
            self._n_pieces += 1
            piece = self._free.pop() if self._free else _Piece(self)
        lib.fp_xray_fill(self.reader.x, piece.c_piece)
        piece.number = self._n_buffers
        self._n_buffers += piece.c_piece.n
        return piece

    def _has_room(self) -> bool:
        return self._n_pieces < _PIECES and (not self._todo or min(map(len, self._todo.values())) < _FEW)

    def lend(self, piece: _Piece, firsts: dict[int, int]) -> None:
        """By share, the first of its buffers."""
        with self._moved:
            piece.holders += len(firsts)
            for share, buffer in firsts.items():
                self._todo.setdefault(share, deque()).append(buffer)

    def taken(self, share: int, piece: _Piece) -> None:
        """The share is done with its current piece."""
        with self._moved:
            self._todo[share].popleft()
            self.release(piece)
            self._moved.notify_all()

    def release(self, piece: _Piece) -> None:
        with self._moved:
            piece.holders -= 1
            if not piece.holders:
                self.give_back(piece)

    def give_back(self, piece: _Piece) -> None:
        with self._moved:
            self._free.append(piece)
            self._n_pieces -= 1

    def define(self, share: int, buffer: int, x: fp_xray) -> None:
        """Name the new function that a share found in a buffer."""
        reader, function_id = self.reader, x.requested
        if function_id not in reader.functions:
            self._wait(share, buffer, lambda: function_id in reader.functions or self._is_first(share, buffer))
        with reader.model.lock:
            reader.define(x)
            reader.model.check_memory()
        self.moved()

    def wait_for_turn(self, share: int, buffer: int) -> None:
        """Wait until the others have passed all earlier buffers."""
        self._wait(share, buffer, lambda: self._is_first(share, buffer))

    def _is_first(self, share: int, buffer: int) -> bool:
        return all(not todo or self._at(other) > buffer for other, todo in self._todo.items() if other != share)

    def _at(self, share: int) -> int:
        """The current buffer."""
        decoder, first = self.decoders.get(share), self._todo[share][0]
        return first if decoder is None else max(first, lib.fp_xray_share_at(decoder.c))

    def _wait(self, share: int, buffer: int, until: Callable[[], bool]) -> None:
        """Wait until `until`, which a share makes true by passing a buffer or naming a function."""
        with self._moved:
            self._waiting[share] = buffer
            self._await()
            try:
                self._moved.wait_for(until)
            finally:
                del self._waiting[share]
                self._await()

    def _await(self) -> None:
        # If several shares wait, only the one with the earliest buffer can continue; the others wait for it.
        lib.fp_xray_await(self.awaited, min(self._waiting.values(), default=_NO_BUFFER))

    def moved(self) -> None:
        with self._moved:
            self._moved.notify_all()

    def _wait_for_all(self) -> None:
        if self._todo:
            with self.reader.model.lent(), self._moved:
                self._moved.wait_for(lambda: not any(self._todo.values()))

    def in_order(self, batch: Batch, offset: int, nbytes: int) -> Iterator[Batch]:
        """The rows of a buffer that the reading thread decodes, after all earlier ones."""
        self._wait_for_all()
        yield from decode(self.reader, batch, offset, nbytes)
        yield from last(self.reader, batch)

    def end(self) -> None:
        """Wait for all rows, and count them with those of the reader."""
        self._wait_for_all()
        self._free.clear()  # which refer to this
        reader = self.reader
        for decoder in self.decoders.values():
            reader.n_read += decoder.c.feed.n_rows
            for name, _ in ffi.typeof("struct fp_xray_stats").fields:
                counted = getattr(reader.x.stats, name) + getattr(decoder.c.x.stats, name)
                setattr(reader.x.stats, name, counted)


class _Decoder:
    """Of a share."""

    def __init__(self, reader: XRayReader, share: int, shares: fp_shares, awaited: Pointer[int]) -> None:
        self.batch = Batch("timeline", CAPACITY["timeline"])
        self.batch.c.part = reader.part
        self.c = owned(lib.fp_xray_share_new(reader.x, share, shares, awaited, self.batch.c), "an XRay decoder")


class _Piece(Encoded):
    """Buffers that are in memory."""

    def __init__(self, shares: _Shares) -> None:
        super().__init__()
        self.c.part = shares.reader.part
        self._shares = shares
        self._bytes = not_cleared("uint8_t[]", _BYTES)
        self._memory = memoryview(ffi.buffer(self._bytes))
        self._buffers = ffi.new("struct fp_xray_buffer[]", _BUFFERS)
        self.c_piece = ffi.new("struct fp_xray_piece *")
        self.c_piece.bytes, self.c_piece.cap_bytes = self._bytes, _BYTES
        self.c_piece.buffers, self.c_piece.cap_buffers = self._buffers, _BUFFERS
        self.number = 0  # of its first buffer
        self._first = self._end = 0  # the buffers that are lent
        self._firsts: dict[int, int] = {}  # by share
        self._c_shares: fp_shares = ffi.NULL
        self.holders = 0  # shares that have not taken it, plus the reading thread until all of it is lent

    def _read(self) -> None:
        c, source, at, next_ = self.c_piece, self._shares.reader.source, 0, ffi.new("uint32_t *")
        while next_[0] < c.n:
            offset = self._buffers[next_[0]].offset
            nbytes = lib.fp_xray_run(c, next_)
            source.read_next(offset, self._memory[at : at + nbytes])
            at += nbytes

    def decoded(self, batch: Batch) -> Iterator[Batch]:
        """Its rows: this itself, and `batch` for a buffer that has those of several threads."""
        reader, c = self._shares.reader, self.c_piece
        with reader.model.lent():
            self._read()
        self.holders, self._end = 1, 0
        while self._end < c.n:
            self._first, self._end = self._end, enough(lib.fp_xray_threads(reader.x, c, self._end))
            if self._end > self._first:
                yield self
            if self._end < c.n:
                buffer = self._buffers[self._end]
                yield from self._shares.in_order(batch, buffer.offset, buffer.nbytes)
                self._end += 1
        self._shares.release(self)

    def takers(self, shares: fp_shares, give: Callable[[int], None]) -> list[int]:
        firsts = ffi.new("uint32_t[]", [lib.FP_NO_ID] * shares.n)
        next_ = ffi.new("uint32_t *", self._first)
        find = partial(lib.fp_xray_firsts, self.c_piece, next_, self._end, shares, firsts)
        while (thread := find()) != lib.FP_NO_ID:
            give(thread)
        self._c_shares = shares
        self._firsts = {share: first for share, first in enumerate(firsts) if first != lib.FP_NO_ID}
        self._shares.lend(self, {share: self.number + first for share, first in self._firsts.items()})
        return [*self._firsts]

    def feed(self, share: int) -> fp_feed:
        shares = self._shares
        if share not in shares.decoders:
            with shares.reader.model.lock:
                shares.decoders[share] = _Decoder(shares.reader, share, self._c_shares, shares.awaited)
        c = shares.decoders[share].c
        lib.fp_xray_share_take(c, self.c_piece, self.number, self._firsts[share], self._end)
        feed = ffi.addressof(c.feed)
        return feed

    def answer(self, share: int) -> bool:
        shares, decoder = self._shares, self._shares.decoders[share]
        c, buffer = decoder.c, self.number + decoder.c.next
        if c.feed.status != lib.FP_NEEDS:
            shares.wait_for_turn(share, buffer)  # earlier errors are reported first
            check(c.feed.status, ffi.addressof(c.err), shares.reader.source.name, shares.reader.format)
        if c.passed:
            shares.moved()
            return False
        shares.define(share, buffer, c.x)
        return True

    def taken(self, share: int) -> None:
        self._shares.taken(share, self)
