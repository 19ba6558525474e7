"""Lines of folded stacks -> rows of stacks, without the GIL.

    main;f;g 5        frames from the root on, a blank, a count
    main;f;g 5 7      two counts: those before and after, of a comparison
    main;f_[j];g_[i] 5    suffixes that state the kind of code, which an option reads

Repairs, errors and losses: docs/formats/folded.md.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memchr, memcmp, memcpy

from fastprof.core.blanks cimport is_blank, strip_blanks
from fastprof.core.fp cimport *
from fastprof.formats.folded.c cimport *


cdef enum:
    OK = 0  # a line was read
    BAD = 1  # it is malformed, skip it
    N_COUNTS = 2

cdef int64_t INT64_LIMIT = 0x7fffffffffffffff


# A frame of the last stack.
cdef struct Level:
    size_t end  # of its text
    uint32_t node  # the stack down to it
    uint32_t caller  # the stack that its location is a leaf of: not that of its name, if it is inlined
    uint32_t line  # its function, inlined into those of the location before
    uint32_t empty  # frames without a name down to it


# A name with a suffix, as the file has it.
cdef struct Named:
    uint32_t function  # 0 = none yet
    bint is_inlined


# Counts over all lines.
cdef struct Counts:
    uint64_t rows
    uint64_t unreadable_lines  # lenient: unreadable lines
    uint64_t comments
    uint64_t blank_lines  # lines
    uint64_t carriage_returns  # at the end of lines
    uint64_t blanks_after_counts  # after counts
    uint64_t trailing_empty_frames  # lines that end in frames without a name
    uint64_t empty_frames  # others
    uint64_t no_frames  # lines that have a count alone, after a blank
    uint64_t rounded_counts
    uint64_t first_rounded  # the line of the first
    uint64_t kinds_of_code  # names whose kind of code is dropped
    bint open_end  # no newline at the end


cdef class Lexer:
    """Reads lines into stacks batches.

    `n_counts`: the counts of a line, 1 or 2.  `decimals`: counts are taken times 10 to the power of this, 9 at most.
    `suffixes`: read suffixes of names as kinds of code.
    Borrows the model, whose address it is given.  Memory: the model's growth, 4 bytes for each of its strings, the
    longest line, and up to 20 MiB for stacks that come again (csrc/folded/stack_memo.h).
    """

    cdef fp_model *model
    cdef bint lenient
    cdef uint32_t n_counts
    cdef uint32_t decimals
    cdef uint64_t line  # lines read
    cdef Counts seen
    # The last stack, most of which the next line shares if lines are sorted.
    cdef uint8_t *last
    cdef size_t last_n, last_cap
    cdef Level *levels
    cdef uint32_t n_levels, cap_levels
    cdef uint32_t *frames  # by string: the frame of that name, 0 = none yet
    cdef uint32_t cap_frames
    cdef uint32_t unknown  # the string of a frame without a name
    cdef bint suffixes
    cdef fp_strings names  # with suffixes
    cdef Named *named  # by name
    cdef uint32_t cap_named
    cdef fp_folded_known known
    cdef uint32_t n_renewed  # of the model: when this changes, earlier nodes are invalid

    def __cinit__(self, size_t model, bint lenient, uint32_t n_counts, uint32_t decimals, uint32_t unknown,
                  bint suffixes):
        if not 1 <= n_counts <= N_COUNTS or decimals > 9:
            raise ValueError("a line has one or two counts, of up to nine decimals")
        self.model = <fp_model *>model
        self.lenient = lenient
        self.n_counts = n_counts
        self.decimals = decimals
        self.unknown = unknown
        self.suffixes = suffixes
        if suffixes and fp_strings_init(&self.names):
            raise MemoryError("no memory for names")

    def __dealloc__(self):
        free(self.named)
        if self.suffixes:
            fp_strings_clear(&self.names)
        fp_folded_known_clear(&self.known)
        free(self.last)
        free(self.levels)
        free(self.frames)

    @property
    def counts(self) -> dict[str, int]:
        """The fields of Counts, so far."""
        return self.seen

    def feed(self, size_t in_, size_t batch, size_t err) -> int:
        """Read the lines that the window has, given the addresses of `struct fp_window`, `fp_batch` and `fp_err`.

        The batch has `n_counts` value columns.  Returns an fp_status.
        """
        cdef int status
        with nogil:
            status = self.window(<fp_window *>in_, <fp_batch *>batch, <fp_err *>err)
        return status

    cdef int window(self, fp_window *in_, fp_batch *b, fp_err *err) noexcept nogil:
        cdef const uint8_t *p = in_.p + in_.pos
        cdef const uint8_t *end = in_.p + in_.n
        cdef const uint8_t *stop
        cdef bint whole
        cdef int status
        if self.n_renewed != self.model.n_renewed:
            self.n_renewed = self.model.n_renewed
            self.n_levels = self.last_n = 0
            fp_folded_known_empty(&self.known)
        while p != end:
            if b.n == b.cap:
                return FP_FULL
            if self.n_counts == 1 and self.decimals == 0:
                status = self.plain_lines(&p, end, b)
                if status < 0:
                    return fp_fail(err, status, 0, "memory")
                in_.pos = p - in_.p
                if status == FP_MORE or p == end:
                    continue
            stop = <const uint8_t *>memchr(p, c'\n', end - p)
            whole = stop != NULL
            if not whole:
                if not in_.eof:
                    return FP_MORE
                stop = end
            status = self.read_line(p, stop, in_.base + in_.pos, whole, b, err)
            if status < 0:
                return status
            p = stop + whole
            in_.pos = p - in_.p
        return FP_DONE if in_.eof else FP_MORE

    cdef int plain_lines(self, const uint8_t **p, const uint8_t *end, fp_batch *b) noexcept nogil:
        """Reads plain lines (csrc/folded/stack_memo.h) and moves *p past them.

        FP_MORE, FP_DONE if the next line is not plain or not whole, or FP_E_NOMEM.
        """
        cdef fp_folded_plain lines[FP_PLAIN_LINES]
        cdef const uint8_t *next
        cdef const fp_folded_known_stack *stack
        cdef uint32_t most = min(<uint32_t>FP_PLAIN_LINES, b.cap - b.n)
        cdef uint32_t n = fp_folded_plain_lines(p[0], end, lines, most, &next), i, node, empty
        cdef bint looked_up = fp_folded_known_prefetch(&self.known, lines, n, next - p[0])
        for i in range(n):
            stack = fp_folded_known_find(&self.known, &lines[i]) if looked_up else NULL
            if stack != NULL:
                node = stack.node
                self.seen.empty_frames += stack.empty
            else:
                node = self.stack(lines[i].p, lines[i].n)
                if node == FP_NO_ID:
                    return FP_E_NOMEM
                empty = self.levels[self.n_levels - 1].empty
                if looked_up and fp_folded_known_add(&self.known, &lines[i], node, empty):
                    return FP_E_NOMEM
            add_row(b, node)
            b.values[b.n - 1] = lines[i].count
        self.line += n
        self.seen.rows += n
        p[0] = next
        if n != 0:
            self.seen.open_end = False
        return FP_MORE if n == most else FP_DONE

    cdef int read_line(self, const uint8_t *p, const uint8_t *stop, uint64_t offset, bint whole, fp_batch *b,
                       fp_err *err) noexcept nogil:
        """Reads the line from p to `stop`, p being byte `offset` of the input.  OK, BAD or an error."""
        cdef const uint8_t *first = p
        cdef const uint8_t *token
        cdef int64_t values[N_COUNTS]
        cdef uint32_t k = self.n_counts, node
        cdef int status
        self.line += 1
        self.seen.open_end = not whole
        if stop != p and (stop - 1)[0] == c'\r':
            self.seen.carriage_returns += 1
            stop -= 1
        token = stop
        stop = strip_blanks(p, stop)
        if stop == p:
            self.seen.blank_lines += 1
            return OK
        if p[0] == c'#' and (stop - p == 1 or is_blank(p[1]) or memchr(p, c';', stop - p) == NULL):
            self.seen.comments += 1
            return OK
        self.seen.blanks_after_counts += stop != token
        while k != 0:
            k -= 1
            token = stop
            while token != p and not is_blank((token - 1)[0]):
                token -= 1
            if token == p:
                return self.bad(err, FP_E_MALFORMED if whole else FP_E_TRUNCATED, offset, "the line", first,
                                stop - first, "frames, a blank and a count" if self.n_counts == 1 else
                                "frames and two counts, like the first lines")
            status = self.number(token, stop, &values[k])
            if status == FP_E_OVERFLOW:
                return self.bad(err, status, offset + (token - first), "the count", token, stop - token,
                                "at most 2^63 - 1")
            if status != OK:
                return self.bad(err, FP_E_MALFORMED if whole else FP_E_TRUNCATED, offset + (token - first),
                                "the count", token, stop - token, "digits")
            stop = strip_blanks(p, token)
        if stop != p and (stop - 1)[0] == c';':
            self.seen.trailing_empty_frames += 1
            while stop != p and (stop - 1)[0] == c';':
                stop -= 1
        self.seen.no_frames += stop == p
        node = self.stack(p, stop - p)
        if node == FP_NO_ID:
            return fp_fail(err, FP_E_NOMEM, 0, "memory")
        for k in range(self.n_counts):
            b.values[k * <size_t>b.cap + b.n] = values[k]
        add_row(b, node)
        self.seen.rows += 1
        return OK

    cdef int bad(self, fp_err *err, int code, uint64_t offset, const char *what, const uint8_t *text, size_t n,
                 const char *want) noexcept nogil:
        """The line cannot be read: an error, or a loss."""
        if self.lenient:
            self.seen.unreadable_lines += 1
            return BAD
        return fp_fail_text(err, code, offset, self.line, what, text, n, want)

    # ---- counts ---------------------------------------------------------------

    cdef int number(self, const uint8_t *p, const uint8_t *stop, int64_t *to) noexcept nogil:
        """Digits, perhaps a point, perhaps digits: rounded to a whole number, times 10^decimals.

        OK, BAD or FP_E_OVERFLOW.
        """
        cdef const uint8_t *first = p
        cdef uint64_t v = 0, digit
        cdef bint fits = True, up = False, exact = True
        cdef uint32_t k
        while p != stop and fp_is_digit(p[0]):
            fits = fits and times_ten(&v, p[0] - c'0')
            p += 1
        if p == first:
            return BAD
        if p != stop:
            if p[0] != c'.':
                return BAD
            p += 1
        for k in range(self.decimals):
            digit = 0
            if p != stop and fp_is_digit(p[0]):
                digit = p[0] - c'0'
                p += 1
            fits = fits and times_ten(&v, digit)
        if p != stop and fp_is_digit(p[0]):
            up = p[0] >= c'5'
            while p != stop and fp_is_digit(p[0]):
                exact = exact and p[0] == c'0'
                p += 1
        if p != stop:
            return BAD
        v += up
        if not fits or v > <uint64_t>INT64_LIMIT:
            return FP_E_OVERFLOW
        if not exact:
            self.seen.rounded_counts += 1
            if self.seen.first_rounded == 0:
                self.seen.first_rounded = self.line
        to[0] = <int64_t>v
        return OK

    # ---- stacks ---------------------------------------------------------------

    cdef uint32_t stack(self, const uint8_t *p, size_t n) noexcept nogil:
        """The stack of n bytes of text; FP_NO_ID when memory ran out."""
        cdef size_t same = common(p, self.last, min(n, self.last_n)), at = 0
        cdef const uint8_t *stop
        cdef uint32_t k = self.n_levels
        cdef Level level
        level.node = level.caller = level.line = level.empty = 0
        if n == 0:
            return 0
        # the levels that stay: equal text that ends at the end of a frame
        while k != 0 and (self.levels[k - 1].end > same
                          or self.levels[k - 1].end == same and same != n and p[same] != c';'):
            k -= 1
        if k != 0:
            level = self.levels[k - 1]
            at = level.end + 1
        self.n_levels = 0
        if n > self.last_cap and fp_bytes_room(&self.last, &self.last_cap, n):
            return FP_NO_ID
        if n > same:
            memcpy(self.last + same, p + same, n - same)
        self.last_n = n
        while at < n:
            stop = <const uint8_t *>memchr(p + at, c';', n - at)
            level.end = n if stop == NULL else stop - p
            level.empty += level.end == at
            if self.suffixes:
                self.add_named(&level, p + at, level.end - at)
            else:
                level.node = self.child(level.node, p + at, level.end - at)
            if level.node == FP_NO_ID or fp_array_room(&self.levels, &self.cap_levels, <uint64_t>k + 1, sizeof(Level)):
                self.last_n = 0
                return FP_NO_ID
            self.levels[k] = level
            k += 1
            at = level.end + 1
        self.n_levels = k
        self.seen.empty_frames += level.empty
        return level.node

    cdef uint32_t child(self, uint32_t parent, const uint8_t *name, size_t n) noexcept nogil:
        """The stack of `parent` and a frame of that name."""
        cdef uint32_t string = fp_strings_intern(&self.model.strings, name, n) if n != 0 else self.unknown
        cdef uint32_t frame
        if string == FP_NO_ID:
            return FP_NO_ID
        if string >= self.cap_frames and fp_array_zeroed(&self.frames, &self.cap_frames, <uint64_t>string + 1,
                                                          sizeof(uint32_t)):
            return FP_NO_ID
        frame = self.frames[string]
        if frame == 0:
            frame = fp_model_name_frame(self.model, string)
            if frame == FP_NO_ID:
                return FP_NO_ID
            self.frames[string] = frame
        return fp_model_stack(self.model, parent, frame)

    cdef void add_named(self, Level *level, const uint8_t *name, size_t n) noexcept nogil:
        """Moves the level to the frame of that name, whose suffix may state its kind; `node` is FP_NO_ID when memory ran
        out.

        An inlined function belongs to the location of its caller: `f;g_[i]` is one location, of g inlined into f.
        """
        cdef uint32_t id = fp_strings_intern(&self.names, name, n) if n != 0 else 0, frame
        cdef uint32_t caller = level.node, outer = 0
        level.node = FP_NO_ID
        if id == FP_NO_ID or id >= self.cap_named and fp_array_zeroed(&self.named, &self.cap_named, <uint64_t>id + 1,
                                                                     sizeof(Named)):
            return
        if self.named[id].function == 0 and not self.name(&self.named[id], name, n):
            return
        if self.named[id].is_inlined and level.line != 0:
            caller, outer = level.caller, level.line
        level.caller = caller
        level.line = fp_model_line(self.model, self.named[id].function, 0, 0, outer)
        frame = FP_NO_ID if level.line == FP_NO_ID else fp_model_frame(self.model, 0, 0, 0, level.line)
        if frame != FP_NO_ID:
            level.node = fp_model_stack(self.model, caller, frame)

    cdef bint name(self, Named *its, const uint8_t *name, size_t n) noexcept nogil:
        """Makes the function of a name without its suffix.  False when memory ran out."""
        cdef uint8_t kind = 0
        cdef uint32_t string, kernel, object = 0
        if n > 4 and name[n - 4] == c'_' and name[n - 3] == c'[' and name[n - 1] == c']':
            kind = name[n - 2]
        if is_kind(kind):
            n -= 4
        string = fp_strings_intern(&self.model.strings, name, n) if n != 0 else self.unknown
        if kind == c'k':
            kernel = fp_strings_intern(&self.model.strings, b"[kernel.kallsyms]", 17)
            object = FP_NO_ID if kernel == FP_NO_ID else fp_model_object(self.model, kernel, 0)
        if string == FP_NO_ID or object == FP_NO_ID:
            return False
        its.is_inlined = kind == c'i'
        self.seen.kinds_of_code += kind == c'j' or kind == c'0' or kind == c'1'
        its.function = fp_model_function(self.model, object, 0, string, 0, 0)
        if its.function == FP_NO_ID:
            its.function = 0
        return its.function != 0


cdef inline void add_row(fp_batch *b, uint32_t node) noexcept nogil:
    """A row of that stack; its values are the caller's."""
    b.stack[b.n] = node
    b.time[b.n] = 0
    b.thread[b.n] = b.label[b.n] = 0
    b.n += 1


cdef inline bint is_kind(uint8_t c) noexcept nogil:
    """Whether `_[c]` states the kind of code: kernel, inlined, compiled by one compiler or the other, interpreted."""
    return c == c'k' or c == c'i' or c == c'j' or c == c'1' or c == c'0'


cdef inline bint times_ten(uint64_t *v, uint64_t digit) noexcept nogil:
    """v * 10 + digit; False if that is 2^63 or more."""
    if v[0] > (<uint64_t>INT64_LIMIT - digit) / 10:
        return False
    v[0] = v[0] * 10 + digit
    return True


cdef inline size_t common(const uint8_t *a, const uint8_t *b, size_t n) noexcept nogil:
    """How many of the first n bytes are the same."""
    cdef size_t i = 0
    while i + 16 <= n and memcmp(a + i, b + i, 16) == 0:
        i += 16
    while i < n and a[i] == b[i]:
        i += 1
    return i
