"""The survey of a flight recording: what is in its chunks, before they are read."""

from collections import Counter
from collections.abc import Generator, Iterator

from fastprof.core import lazy_re as re
from fastprof.core._c import ffi, lib
from fastprof.core._typing import Any, fp_jfr_reader
from fastprof.core.c_memory import owned
from fastprof.core.errors import hexdump
from fastprof.core.native import NativeReader
from fastprof.core.options import LENIENT
from fastprof.formats.jfr.chunk import CHECKPOINT_NBYTES, HEADER_NBYTES, MAGIC, Chunk, Place, checkpoint, header
from fastprof.formats.jfr.reported import REPORTED

_NEXT = re.compile(rb"FLR\0\0[\1\2]")
_SEARCHED = 1 << 20  # bytes at a time
_MOST_SETTINGS = 20_000  # of a chunk; JDK 25 has 500

# What a reader does with the current range.
WALK, WALK_OPEN, READ_METADATA, READ_CONSTANTS, READ_EVENTS, READ_ROWS = range(6)


class Survey(NativeReader):
    """Finds the chunks, the events by type, and what describes the recording."""

    format = "jfr"
    _r: fp_jfr_reader

    def start(self) -> None:
        self._r = owned(lib.fp_jfr_reader_new(self.model.c), "the JFR decoder")
        self._lenient = self._r.lenient = self.options[LENIENT]
        self._survey_log = self.log
        self._phase = WALK
        self._failed = False  # lenient: the range is damaged
        self._is_stream = False  # the input is read chunk by chunk
        self._chunk: Chunk | None = None
        self._chunks: list[Chunk] = []
        self._counts: Counter[str] = Counter()  # events by type
        self._stated: dict[str, Any] = {}  # for `info`
        self._pids: dict[int, None] = {}
        self._lost_samples = self._lost_nbytes = 0

    def _range(self, phase: int, at: int, end: int) -> tuple[int, int]:
        self._phase, self._failed, self._r.chunk.stop = phase, False, end
        return at, end - at

    def _lose(self, code: str, detail: str, offset: int, kind: int = lib.FP_E_MALFORMED) -> None:
        """Report damage.  Errors: FormatError, unless lenient."""
        if not self._lenient:
            raise self.damaged(detail, offset, kind)
        self._survey_log.count(REPORTED[code])

    def _survey(self, at: int, size: int) -> Generator[tuple[int, int | None], None, int]:
        """Survey the chunk at byte `at` of the first `size`.  Returns where the next one may begin."""
        data = self.source.read_at(at, HEADER_NBYTES)
        found = header(data)
        if found is None:
            return self._no_chunk(at, data, size)
        if found.major not in (1, 2):
            whose = "; version 0 is another format, of JRockit and Oracle's JDK 7 and 8" if not found.major else ""
            detail = f"the version is {found.major}.{found.minor}, expected 1.0 to 2.x{whose}"
            raise self.damaged(detail, at + 4, lib.FP_E_VERSION)
        chunk = Chunk(at, found)
        yield from self._survey_chunk(chunk, size)
        return chunk.following

    def _no_chunk(self, at: int, data: bytes, size: int) -> int:
        """Skip bytes that are no chunk.  Returns the next chunk's offset.  Errors: FormatError, unless lenient."""
        if data[: len(MAGIC)] == MAGIC[: len(data)]:
            detail, code = f"the head of a chunk has {len(data)} bytes, expected {HEADER_NBYTES}", lib.FP_E_TRUNCATED
        else:
            detail, code = f"a chunk begins with {hexdump(data[:4])}, expected {hexdump(MAGIC)}", lib.FP_E_MALFORMED
        if not self._lenient:
            raise self.damaged(detail, at, code)
        then = self._next_chunk(at + 1, size)
        self._survey_log.count(REPORTED["skipped-bytes"], then - at)
        return then

    def _next_chunk(self, at: int, size: int) -> int:
        """The offset of the next header from `at` on; `size` if there is none."""
        while at < size:
            data = self.source.read_at(at, _SEARCHED)
            if match := _NEXT.search(data):
                return at + match.start()
            at += max(1, len(data) - 5)
        return size

    def _trusted(self, chunk: Chunk, size: int) -> bool:
        """Check the header of a finished chunk.  Errors: FormatError if it is wrong, unless lenient."""
        found, at = chunk.header, chunk.at
        if found.nbytes < HEADER_NBYTES:
            self._lose(
                "damaged-chunks", f"the size of a chunk is {found.nbytes}, expected {HEADER_NBYTES} or more", at + 8
            )
        elif found.nbytes > size - at:
            detail = f"a chunk has {found.nbytes} bytes, but only {size - at} follow"
            self._lose("damaged-chunks", detail, at + 8, lib.FP_E_TRUNCATED)
        elif not HEADER_NBYTES <= found.metadata < found.nbytes:
            self._lose("damaged-chunks", f"the offset of the metadata is {found.metadata}", at + 24)
        elif not HEADER_NBYTES <= found.constants < found.nbytes:
            self._lose("damaged-chunks", f"the offset of the last checkpoint is {found.constants}", at + 16)
        else:
            return True
        return False

    def _survey_chunk(self, chunk: Chunk, size: int) -> Iterator[tuple[int, int | None]]:
        found = chunk.header
        self._chunk = chunk
        self._begin(chunk)
        self._survey_log.count(REPORTED["unfinished-chunks"], not found.finished)
        if found.finished and self._trusted(chunk, size):
            end = chunk.at + found.nbytes
            yield self._range(READ_METADATA, chunk.at + found.metadata, end)
            if not self._failed:
                yield self._range(WALK, chunk.records, end)
                self._end_walk(chunk, end)
                self._check_chain(chunk)
                if chunk.end < end:
                    self._add_after_damage(chunk, end)
                chunk.following = end
                self._chunks.append(chunk)
                return
        if self._is_stream:
            size = self.source.spool_part(chunk.at, None)  # lenient: the size of a damaged chunk is not known
        yield self._range(WALK_OPEN, chunk.records, size)
        self._end_walk(chunk, size)
        if found.flushed > chunk.end - chunk.at:
            detail = f"a chunk has {found.flushed} bytes or more, but only {chunk.end - chunk.at} follow"
            self._lose("damaged-chunks", detail, chunk.at + 8, lib.FP_E_TRUNCATED)
        if chunk.metadata is None:
            if chunk.end > chunk.records:
                self._lose("damaged-chunks", "a chunk has no metadata", chunk.at)
            return
        end = chunk.end
        yield self._range(READ_METADATA, chunk.metadata.at, chunk.metadata.at + chunk.metadata.nbytes)
        if not self._failed:
            self._r.walked.n_places = 0
            yield self._range(WALK, chunk.records, end)
            self._end_walk(chunk, end)
            self._chunks.append(chunk)

    def _begin(self, chunk: Chunk) -> None:
        """Begin a chunk in the decoder."""
        r, found = self._r.chunk, chunk.header
        lib.fp_jfr_begin(self._r)
        r.compressed = found.compressed
        r.start_ns, r.start_ticks = found.start_ns, found.start_ticks
        r.ticks_per_second = found.ticks_per_second if found.ticks_per_second > 0 else 1_000_000_000
        r.pid = chunk.pid

    def _end_walk(self, chunk: Chunk, limit: int) -> None:
        """Take over the results of the walk up to `limit`."""
        r = self._r
        chunk.end = chunk.following = int(r.walked.end)
        places = [r.walked.places[i] for i in range(r.walked.n_places)]
        chunk.checkpoints = [Place(int(one.at), int(one.size), int(one.delta)) for one in places if one.is_checkpoint]
        metadata = [Place(int(one.at), int(one.size), 0) for one in places if not one.is_checkpoint]
        chunk.metadata = metadata[-1] if metadata else None
        if chunk.end < limit and not r.walked.is_next:  # lenient
            chunk.following = self._next_chunk(chunk.end + 1, limit)
            self._survey_log.count(REPORTED["skipped-bytes"], chunk.following - chunk.end)
        now = Counter({self._name(i): int(lib.fp_jfr_counted(r, i)) for i in range(1, r.walked.counted.n)})
        chunk.counts = now - self._counts
        self._counts = now

    def _name(self, i: int) -> str:
        """The name of an event type that was counted."""
        strings = self._r.walked.counted
        return bytes(strings.bytes[strings.start[i] : strings.start[i + 1]]).decode("utf-8", "replace")

    def _check_chain(self, chunk: Chunk) -> None:
        """Check that the header leads to the metadata and the last checkpoint, and each checkpoint to the previous one.

        Errors: FormatError if not, unless lenient.
        """
        if chunk.end < chunk.at + chunk.header.nbytes:
            return  # lenient: the walk did not reach the end
        at = chunk.at + chunk.header.metadata
        if chunk.metadata is None or chunk.metadata.at != at:
            self._lose("damaged-chunks", f"the head leads to metadata at byte {at}, where none is", chunk.at + 24)
        deltas = {one.at: one.delta for one in chunk.checkpoints}
        at, leads = chunk.at + chunk.header.constants, chunk.at + 16
        while True:
            if at not in deltas:
                self._lose("damaged-chunks", f"a checkpoint is expected at byte {at}, where none is", leads)
                return
            delta = deltas[at]
            if delta > 0:
                self._lose("damaged-chunks", "a checkpoint leads to a later one", at)
                return
            if not delta:
                return
            at, leads = at + delta, at

    def _add_after_damage(self, chunk: Chunk, end: int) -> None:
        """Add metadata and checkpoints after the damaged record that ended the walk; the header leads to them."""
        found = chunk.header
        chunk.metadata = Place(chunk.at + found.metadata, end - chunk.at - found.metadata, 0)
        at, more = chunk.at + found.constants, list[Place]()
        known = {one.at for one in chunk.checkpoints}
        while chunk.records <= at < end and at not in known:
            one = checkpoint(self.source.read_at(at, CHECKPOINT_NBYTES), at, compressed=found.compressed)
            if one is None or one.nbytes > end - at:
                break
            more.append(one)
            if one.delta >= 0:
                break
            at += one.delta
        chunk.checkpoints += reversed(more)

    def take_fact(self) -> None:
        """Record an event that describes the recording."""
        r, chunk = self._r, self._chunk
        assert chunk is not None
        numbers = [int(r.fact[i].number) for i in range(3)]
        texts = [self._text(i) for i in range(3)]
        if r.requested_kind == lib.FP_JFR_SETTING:
            type_, name, value = texts
            if len(chunk.settings) < _MOST_SETTINGS:
                chunk.settings[type_, name] = value
        elif r.requested_kind == lib.FP_JFR_JVM:
            self._stated["jvm"], self._stated["jvm_version"] = texts[0], texts[1]
            chunk.pid = numbers[2] & 0xFFFFFFFF
            self._pids[chunk.pid] = None
        elif r.requested_kind == lib.FP_JFR_OS:
            self._stated["os"] = " ".join(texts[0].split())
        elif r.requested_kind == lib.FP_JFR_LOST_SAMPLES:
            self._lost_samples += max(0, numbers[0])
        else:
            self._lost_nbytes += max(0, numbers[0])

    def _text(self, i: int) -> str:
        fact = self._r.fact[i]
        return bytes(ffi.buffer(self._r.text.p + fact.text, fact.n)).decode("utf-8", "replace") if fact.n else ""
