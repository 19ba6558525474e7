"""Lines of text -> rows of stacks, without the GIL: what the parsers of this folder share.

A parser is a subclass with `read_line`, which gets one line without its end, and `at_end`, if rows or errors may follow
the last line.  It collects the frames of a stack with `push` and adds a row with `row`.
"""

from libc.stdlib cimport free
from libc.string cimport memchr

from fastprof.core.fp cimport *
from fastprof.formats.texts._machine cimport *


cdef enum:
    MOST_FRAMES = 1 << 20


cdef class Lines:
    """Reads lines into stacks batches.  Borrows the model, whose address it is given.

    Memory: the longest line, the frames of one stack, and the texts of frames.
    """

    def __cinit__(self, size_t model, bint lenient, *_):
        self.model = <fp_model *>model
        self.lenient = lenient
        if fp_strings_init(&self.texts):
            raise MemoryError("no memory for frames")

    def __dealloc__(self):
        free(self.frames)
        free(self.known)
        fp_strings_clear(&self.texts)

    @property
    def counts(self) -> dict[str, int]:
        """The fields of Counts, so far."""
        return self.seen

    def feed(self, size_t in_, size_t batch, size_t err) -> int:
        """Read the lines that the window has, given the addresses of `struct fp_window`, `fp_batch` and `fp_err`.

        Returns an fp_status.
        """
        cdef int status
        self.kept = 0
        with nogil:
            status = self.window(<fp_window *>in_, <fp_batch *>batch, <fp_err *>err)
        return status

    cdef int window(self, fp_window *in_, fp_batch *b, fp_err *err) noexcept nogil:
        cdef const uint8_t *p
        cdef const uint8_t *stop
        cdef const uint8_t *end = in_.p + in_.n
        cdef int status
        while True:
            if b.n == b.cap:
                return FP_FULL
            if in_.pos == in_.n:
                break
            p = in_.p + in_.pos
            stop = <const uint8_t *>memchr(p, c'\n', end - p)
            self.whole = stop != NULL
            if not self.whole:
                if not in_.eof:
                    return FP_MORE
                stop = end
            self.first, self.at = p, in_.base + in_.pos
            self.line += 1
            status = self.read_line(p, stop - (stop != p and (stop - 1)[0] == c'\r'), b, err)
            if status:
                self.line -= status == FP_FULL  # it is read again
                return status
            self.seen.carriage_returns += stop != p and (stop - 1)[0] == c'\r'
            in_.pos = stop + self.whole - in_.p
        if not in_.eof:
            return FP_MORE
        self.first, self.at, self.whole = in_.p + in_.pos, in_.base + in_.pos, False
        self.line += 1
        status = self.at_end(b, err)
        self.line -= 1
        return status

    cdef int read_line(self, const uint8_t *p, const uint8_t *stop, fp_batch *b, fp_err *err) noexcept nogil:
        """0, an error, or FP_FULL, to be called with the same line again."""
        return FP_E_MALFORMED

    cdef int at_end(self, fp_batch *b, fp_err *err) noexcept nogil:
        """FP_DONE, FP_FULL or an error."""
        return FP_DONE

    cdef int bad(self, fp_err *err, const char *what, const uint8_t *p, const uint8_t *stop,
                 const char *want) noexcept nogil:
        """The text from p to `stop`, of this line, cannot be read: an error, or a loss."""
        if self.lenient:
            self.seen.unreadable_lines += 1
            return 0
        return fp_fail_text(err, FP_E_MALFORMED if self.whole else FP_E_TRUNCATED, self.at + (p - self.first),
                            self.line, what, p, stop - p, want)

    cdef int push(self, uint32_t frame, fp_err *err) noexcept nogil:
        """Add a frame to the open stack.  0 or an error."""
        if self.n_frames == MOST_FRAMES:
            return fp_fail_text(err, FP_E_MALFORMED, self.at, self.line, "the stack", self.first, 0,
                                "at most a million frames")
        if frame == FP_NO_ID or self.n_frames == self.cap_frames and fp_array_room(
                &self.frames, &self.cap_frames, <uint64_t>self.n_frames + 1, sizeof(uint32_t)):
            return no_memory(err)
        self.frames[self.n_frames] = frame
        self.n_frames += 1
        return 0

    cdef int row(self, uint32_t start, bint leaf_first, int64_t value, fp_batch *b, fp_err *err) noexcept nogil:
        """Add a row of the frames from `start` on, called by `under`; this is its first value, 0 are
        others.  0 or an error."""
        cdef uint32_t i, node = self.stack(self.under, start, self.n_frames, leaf_first)
        if node == FP_NO_ID:
            return no_memory(err)
        b.stack[b.n] = node
        b.time[b.n] = 0
        b.thread[b.n] = b.label[b.n] = 0
        for i in range(b.n_values):
            b.values[i * <size_t>b.cap + b.n] = 0
        b.values[b.n] = value
        b.n += 1
        return 0

    cdef uint32_t stack(self, uint32_t node, uint32_t start, uint32_t n, bint leaf_first) noexcept nogil:
        """The stack of frames from `start` up to n, called by `node`; FP_NO_ID when memory ran out."""
        cdef uint32_t i
        for i in range(start, n):
            if node != FP_NO_ID:
                node = fp_model_stack(self.model, node, self.frames[start + n - 1 - i if leaf_first else i])
        return node

    cdef uint32_t text(self, const uint8_t *p, const uint8_t *stop) noexcept nogil:
        """The string; FP_NO_ID when memory ran out."""
        return fp_strings_intern(&self.model.strings, p, stop - p) if p != stop else 0

    cdef uint32_t seen_as(self, const uint8_t *p, const uint8_t *stop, uint32_t *id) noexcept nogil:
        """The frame of this text, 0 if it is new: then known[*id] is where to put it.  FP_NO_ID when memory ran out."""
        id[0] = fp_strings_intern(&self.texts, p, stop - p)
        if id[0] == FP_NO_ID or id[0] >= self.cap_known and fp_array_zeroed(
                &self.known, &self.cap_known, <uint64_t>id[0] + 1, sizeof(uint32_t)):
            return FP_NO_ID
        return self.known[id[0]]

    cdef uint32_t frame(self, const uint8_t *p, const uint8_t *stop, Place place) noexcept nogil:
        """The frame of a function with this name, or of an address; FP_NO_ID when memory ran out."""
        cdef uint32_t name, function, line
        cdef uint64_t address = 0
        if fp_is_hex(p, stop - p, &address):
            return fp_model_frame(self.model, 0, address, 0, 0)
        name = self.text(p, stop)
        if name == FP_NO_ID or place.object == FP_NO_ID or place.file == FP_NO_ID:
            return FP_NO_ID
        function = fp_model_function(self.model, place.object, place.file, name, 0, 0)
        line = FP_NO_ID if function == FP_NO_ID else fp_model_line(self.model, function, place.line, 0, 0)
        return FP_NO_ID if line == FP_NO_ID else fp_model_frame(self.model, 0, 0, 0, line)

    cdef uint32_t object(self, const uint8_t *p, const uint8_t *stop) noexcept nogil:
        """The object of this name, 0 if it is empty; FP_NO_ID when memory ran out."""
        cdef uint32_t name = self.text(p, stop)
        return name if name == FP_NO_ID or name == 0 else fp_model_object(self.model, name, 0)
