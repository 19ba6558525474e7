"""Lines of bpftrace, BCC and DTrace, of R's Rprof and of LuaJIT's profiler -> rows of stacks, without the GIL.

    @[                     bpftrace: a map's keys, of which stacks have a line for each frame, leaf first
        vfs_read+5
    , comm]: 12            its end, further keys, the value

        vfs_read           BCC and DTrace: frames, leaf first
        -       comm (7)   BCC: the process
            12             the value

    1#4 "f" 1#9 "main"     Rprof: names, leaf first, each after the place in it that is executed; a line is a sample

    60%  f < main          LuaJIT: a share (or, with `r`, a count) and callee < caller, or caller > callee
      <- 70%  main         and what it is split into: callers, callees, or other keys

Errors, repairs and losses: docs/formats of each.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memchr, memcmp, strlen

from fastprof.core.blanks cimport is_blank, skip_blanks, strip_blanks
from fastprof.core.fp cimport *
from fastprof.formats.texts._machine cimport *


cdef enum:
    MOST_MAPS = 64

cdef uint32_t NO_COLUMN = 0xffffffff


cdef class Tracers(Lines):
    """Stacks of bpftrace, BCC and DTrace.  `maps`: the names of maps with stacks, by column; "" is also that of
    stacks outside of maps."""

    cdef fp_strings maps
    cdef uint32_t columns[MOST_MAPS + 1]  # by id of a name
    cdef uint32_t n_maps  # names with a column are below it
    cdef uint32_t column  # of the next row
    cdef bint in_map
    cdef uint32_t key  # a frame that DTrace prints ahead of the stack; 0 = none
    cdef size_t indent  # of the first frame

    def __cinit__(self, size_t model, bint lenient, list maps: list[bytes]):
        cdef uint32_t column, id
        if fp_strings_init(&self.maps):
            raise MemoryError("no memory for maps")
        self.columns[0] = NO_COLUMN
        for column, name in enumerate(maps[:MOST_MAPS]):
            id = fp_strings_intern(&self.maps, <const char *><bytes>name, len(<bytes>name)) if name else 0
            if id == FP_NO_ID:
                raise MemoryError("no memory for maps")
            self.columns[id] = column
        self.n_maps = self.maps.n

    def __dealloc__(self):
        fp_strings_clear(&self.maps)

    cdef int read_line(self, const uint8_t *p, const uint8_t *stop, fp_batch *b, fp_err *err) noexcept nogil:
        cdef const uint8_t *text = skip_blanks(p, stop)
        cdef const uint8_t *end = strip_blanks(text, stop)
        if text == end:
            return 0
        if self.in_map:
            return self.in_keys(text, end, b, err)
        if p[0] == c'@':
            return self.map_line(p, stop, b, err)
        if text == p or is_event(text, end):
            self.seen.other_lines += text == p and not is_heading(p, stop)
            return 0
        if all_digits(text, end) and self.n_frames != 0:
            return self.value(text, end, b, err)
        if end - text <= 2 and text[0] == c'-':  # between the kernel's frames and the process's
            return 0
        if begins(text, end, "waker:") or begins(text, end, "target:"):
            return self.bad(err, "the line", text, end, "a frame or a count: print stacks of wakers with -f")
        if self.n_frames == 0:
            self.indent, self.column = text - p, self.columns[0]
        elif self.n_frames == 1 and self.key == 0 and <size_t>(text - p) > self.indent and not is_process(&text, end):
            self.key, self.n_frames, self.indent = self.frames[0], 0, text - p
        return self.push(self.frame_of(text, end), err)

    cdef int value(self, const uint8_t *p, const uint8_t *stop, fp_batch *b, fp_err *err) noexcept nogil:
        """The end of a stack, whose value is the text from p to `stop`."""
        cdef uint64_t value = 0
        cdef bint negative = p != stop and p[0] == c'-'
        cdef int status
        if not self.whole or not all_digits(p + negative, stop) or fp_decimal(p + negative, &value) != stop:
            status = self.bad(err, "the value", p, stop, "1 to 18 digits and a newline")
        elif self.column == NO_COLUMN:
            status = self.bad(err, "the stack's value", p, stop, "a stack of a map, like others of this file")
        else:
            status = self.push(self.key, err) if self.key != 0 else 0
            if status == 0:
                status = self.row(0, True, 0, b, err)
            if status == 0:
                b.values[self.column * <size_t>b.cap + b.n - 1] = -<int64_t>value if negative else <int64_t>value
        self.n_frames = self.key = 0
        self.in_map = False
        return status

    cdef int map_line(self, const uint8_t *p, const uint8_t *stop, fp_batch *b, fp_err *err) noexcept nogil:
        """`@name[` and keys; without a line for each frame the map has no stacks, or this one is empty."""
        cdef const uint8_t *open_ = <const uint8_t *>memchr(p, c'[', stop - p)
        cdef const uint8_t *last = strip_blanks(p, stop)
        cdef const uint8_t *q = stop
        cdef uint32_t name
        if not self.whole:
            return self.bad(err, "the line", p, stop, "a newline")
        if open_ == NULL:
            self.seen.maps_without_stacks += 1
            return 0
        while q != open_ and not (stop - q > 2 and q[0] == c']' and q[1] == c':'):
            q -= 1
        name = fp_strings_intern(&self.maps, p + 1, open_ - p - 1) if open_ - p > 1 else 0
        if name == FP_NO_ID:
            return no_memory(err)
        if (name > MOST_MAPS or self.columns[name] == NO_COLUMN or name >= self.n_maps
                or q != open_ and open_[1] != c',' and open_[1] != c']'
                or q == open_ and last - 1 != open_ and (last - 1)[0] != c','):
            self.seen.maps_without_stacks += 1
            return 0
        self.column = self.columns[name]
        self.in_map, self.n_frames, self.key = True, 0, 0
        if q != open_:  # an empty stack
            return self.in_keys(open_ + 1, stop, b, err)
        if last - 1 == open_:
            return 0
        q = skip_blanks(open_ + 1, last)
        self.key = self.frame(q, strip_blanks(q, last - 1), Place(0, 0, 0))
        return no_memory(err) if self.key == FP_NO_ID else 0

    cdef int in_keys(self, const uint8_t *p, const uint8_t *stop, fp_batch *b, fp_err *err) noexcept nogil:
        """A frame, or `, key]: value`, or the comma after a stack."""
        cdef const uint8_t *q = stop
        cdef const uint8_t *first
        cdef int status
        if p[0] != c',' and p[0] != c']':
            return self.push(self.frame_of(p, stop), err)
        while q != p and not (stop - q > 1 and q[0] == c']' and q[1] == c':'):
            q -= 1
        if p[0] == c',' and q != p:
            first = skip_blanks(p + 1, q)
            if first != q:
                status = self.push(self.frame(first, q, Place(0, 0, 0)), err)
                if status:
                    return status
        elif p[0] == c',':
            return 0
        return self.value(skip_blanks(min(q + 2, stop), stop), stop, b, err)

    cdef uint32_t frame_of(self, const uint8_t *p, const uint8_t *stop) noexcept nogil:
        """The frame of `vfs_read+0x5 [module]`, `module`vfs_read+0x5`, or `7f12 vfs_read+5 (/lib/libc.so)`; that of a
        process of `-  comm (7)` or `comm [7]`."""
        cdef uint32_t id = 0, found = self.seen_as(p, stop, &id)
        cdef const uint8_t *q
        cdef const uint8_t *module
        cdef Place place
        if found != 0:
            return found
        place.object = place.file = place.line = 0
        if is_process(&p, stop):
            while (stop - 1)[0] != c' ':
                stop -= 1
            found = self.frame(p, strip_blanks(p, stop), place)
        else:
            q = p
            while q != stop and fp_nibble(q[0]) < 16:
                q += 1
            if q - p >= 8 and q != stop and is_blank(q[0]):
                p = skip_blanks(q, stop)
            module = module_of(p, stop)
            if module != NULL:
                if stop - module != 11 or memcmp(module + 1, b"[unknown]", 9) != 0:
                    place.object = self.object(module + 1, stop - 1)
                stop = strip_blanks(p, module)
            q = stop
            while q != p and fp_nibble((q - 1)[0]) < 16:
                q -= 1
            if q != stop and q - p > 2 and (q - 1)[0] == c'x' and (q - 2)[0] == c'0':
                q -= 2
            if q != stop and q - p > 1 and (q - 1)[0] == c'+' and fp_is_digit(q[0]):
                stop = q - 1
            q = <const uint8_t *>memchr(p, c'`', stop - p)
            if q != NULL and q != p and q + 1 != stop:
                place.object = self.object(p, q)
                p = q + 1
            found = self.frame(p, stop, place)
        if found != FP_NO_ID:
            self.known[id] = found
        return found

    cdef int at_end(self, fp_batch *b, fp_err *err) noexcept nogil:
        if self.n_frames == 0 and not self.in_map:
            return FP_DONE
        if not self.lenient:
            return fp_fail_text(err, FP_E_TRUNCATED, self.at, self.line, "the stack", self.first, 0, "its value")
        self.seen.stacks_without_value += 1
        self.n_frames = 0
        self.in_map = False
        return FP_DONE


cdef inline bint begins(const uint8_t *p, const uint8_t *stop, const char *text) noexcept nogil:
    cdef size_t n = strlen(text)
    return <size_t>(stop - p) >= n and memcmp(p, text, n) == 0


cdef inline bint is_heading(const uint8_t *p, const uint8_t *stop) noexcept nogil:
    """Whether the tools print a line with every profile."""
    return (begins(p, stop, "Attaching ") or begins(p, stop, "Sampling at ") or begins(p, stop, "Tracing ")
            or begins(p, stop, "Detaching") or begins(p, stop, "^C") or begins(p, stop, "CPU "))


cdef inline bint is_event(const uint8_t *p, const uint8_t *stop) noexcept nogil:
    """`1  64091   :tick-60s`: an event that DTrace prints."""
    cdef const uint8_t *q
    cdef int i
    for i in range(2):
        q = p
        while q != stop and fp_is_digit(q[0]):
            q += 1
        if q == p or q == stop or not is_blank(q[0]):
            return False
        p = skip_blanks(q, stop)
    return memchr(p, c':', stop - p) != NULL


cdef inline bint is_process(const uint8_t **p, const uint8_t *stop) noexcept nogil:
    """Whether the text ends in a process id, `(7)` or `[7]`; moves *p past the `-` that precedes its name."""
    cdef const uint8_t *q = stop - 1
    cdef uint8_t close = q[0]
    cdef bint dash = p[0][0] == c'-' and stop - p[0] > 1 and is_blank(p[0][1])
    if close != c']' and not (dash and close == c')'):
        return False
    while q != p[0] and fp_is_digit((q - 1)[0]):
        q -= 1
    if q == stop - 1 or q - p[0] < 3 or (q - 1)[0] != (c'[' if close == c']' else c'(') or (q - 2)[0] != c' ':
        return False
    if dash:
        p[0] = skip_blanks(p[0] + 1, q - 2)
    return True


cdef inline const uint8_t *module_of(const uint8_t *p, const uint8_t *stop) noexcept nogil:
    """Where `(module)` or `[module]` begins, after a blank, at the end of a frame; NULL if it has none."""
    cdef const uint8_t *q = stop - 2
    cdef uint8_t close = (stop - 1)[0]
    cdef uint8_t open_ = c'(' if close == c')' else c'['
    if stop - p < 5 or close != c')' and close != c']':
        return NULL
    while q != p and q[0] != c' ' and q[0] != open_ and q[0] != close:
        q -= 1
    return q if q - p > 1 and q[0] == open_ and (q - 1)[0] == c' ' and stop - q > 2 else NULL


cdef class Rprof(Lines):
    """Samples of Rprof: two values, 1 and the interval in nanoseconds."""

    cdef int64_t interval
    cdef uint32_t *files  # by number: strings
    cdef uint32_t cap_files

    def __dealloc__(self):
        free(self.files)

    cdef int read_line(self, const uint8_t *p, const uint8_t *stop, fp_batch *b, fp_err *err) noexcept nogil:
        cdef int status
        cdef int i
        cdef uint64_t number = 0
        if not self.whole:
            return self.bad(err, "the line", p, stop, "a newline")
        if p == stop:
            self.seen.blank_lines += 1
            return 0
        if p[0] == c'#':
            return self.file(p, stop, err)
        if fp_is_alpha(p[0]):
            return self.header(p, stop, err)
        if self.interval == 0:
            return self.bad(err, "the line", p, stop, "sample.interval=20000 before samples")
        if p[0] == c':':  # vectors, nodes and duplications, with memory profiling
            for i in range(4):
                p = fp_decimal(p + 1, &number)
                if p == NULL or p[0] != c':':
                    return self.bad(err, "the line", self.first, stop, "four numbers between colons")
            p += 1
            self.seen.memory_figures += 1
        self.n_frames = 0
        status = self.names(p, stop, err)
        if status or self.n_frames == 0:
            return 0 if status == SKIPPED else status
        status = self.row(0, True, 1, b, err)
        if status == 0:
            b.values[b.cap + b.n - 1] = self.interval
        return status

    cdef int names(self, const uint8_t *p, const uint8_t *stop, fp_err *err) noexcept nogil:
        cdef const uint8_t *first = p
        cdef const uint8_t *q
        cdef const uint8_t *place = p
        cdef uint64_t file = 0, line = 0
        cdef uint32_t frame, id = 0
        cdef int status
        cdef Place at
        at.object = 0
        while p != stop:
            if is_blank(p[0]):
                p += 1
                continue
            if p[0] != c'"':
                place = p
                q = fp_decimal(p, &file)
                if q != NULL:
                    q = fp_decimal(q + 1, &line) if q[0] == c'#' else <const uint8_t *>NULL
                if q == NULL or q != stop and q[0] != c' ' or file >= self.cap_files or self.files[file] == 0 or line >> 31:
                    self.n_frames = 0
                    status = self.bad(err, "the line", first, stop, "names in quotes, and places as 1#7 of files before")
                    return status if status else SKIPPED
                p = q
                if p != stop:
                    continue
                return 0
            q = p + 1
            while q != stop and not (q[0] == c'"' and (q + 1 == stop or q[1] == c' ')):
                q += 1
            if q == stop:
                self.n_frames = 0
                status = self.bad(err, "the line", p, stop, "a quote at the end of the name")
                return status if status else SKIPPED
            frame = self.seen_as(place if line else p, q, &id)
            if frame == 0:
                at.file, at.line = self.files[file] if line else 0, <uint32_t>line
                frame = self.frame(p + 1, q, at)
                if frame != FP_NO_ID:
                    self.known[id] = frame
            status = self.push(frame, err)
            if status:
                return status
            p = q + 1
            line = 0
        return 0

    cdef int file(self, const uint8_t *p, const uint8_t *stop, fp_err *err) noexcept nogil:
        """`#File 1: path`"""
        cdef uint64_t number = 0
        cdef const uint8_t *q = fp_decimal(p + 6, &number) if begins(p, stop, "#File ") else NULL
        if q == NULL or stop - q < 3 or q[0] != c':' or number >= MOST_FILES:
            return self.bad(err, "the line", p, stop, "#File 1: path, with a number below 1,000,000")
        if fp_array_zeroed(&self.files, &self.cap_files, number + 1, sizeof(uint32_t)):
            return no_memory(err)
        self.files[number] = self.text(q + 2, stop)
        return no_memory(err) if self.files[number] == FP_NO_ID else 0

    cdef int header(self, const uint8_t *p, const uint8_t *stop, fp_err *err) noexcept nogil:
        """`line profiling: sample.interval=20000`, again where R appends"""
        cdef const uint8_t *q = stop
        cdef uint64_t number = 0
        while q != p and (q - 1)[0] != c'=':
            q -= 1
        if q - p < 16 or memcmp(q - 16, b"sample.interval=", 16) or fp_decimal(q, &number) != stop or number == 0 \
                or number > MOST_INTERVAL:
            return self.bad(err, "the line", p, stop, "sample.interval= and microseconds")
        self.interval = <int64_t>number * 1000
        return 0


cdef enum:
    SKIPPED = 1  # lenient: a line that cannot be read
    MOST_FILES = 1000000
    MOST_INTERVAL = 1000000000  # microseconds


cdef inline bint fp_is_alpha(uint8_t c) noexcept nogil:
    return c'a' <= (c | 0x20) <= c'z'


cdef enum:
    MOST_CHAIN = 4096  # functions of a line
    MOST_CALLED = 64  # of a line that is split by callers, where LuaJIT prints one


cdef class LuaJIT(Lines):
    """Lines of `luajit -jp`: samples, or shares in hundredths of a percent, of which the lines below a line are parts."""

    cdef bint shares
    cdef bint begun
    cdef uint64_t value  # of the line above, in its own unit
    cdef int64_t left  # of its value, not in a line below it

    cdef int read_line(self, const uint8_t *p, const uint8_t *stop, fp_batch *b, fp_err *err) noexcept nogil:
        cdef const uint8_t *q
        cdef uint64_t value = 0
        cdef uint8_t part = 0
        cdef bint share
        if not self.whole:
            return self.bad(err, "the line", p, stop, "a newline")
        if p == stop:
            self.seen.blank_lines += 1
            return 0
        if begins(p, stop, "[No samples collected]"):
            return 0
        if stop - p > 5 and p[0] == c' ' and p[1] == c' ' and (p[2] == c'<' or p[2] == c'-') and p[4] == c' ':
            part = p[3] if p[2] == c'-' else c'<'
            p += 5
        p = skip_blanks(p, stop)
        q = fp_decimal(p, &value)
        share = q != NULL and q[0] == c'%'
        if q == NULL or stop - q - share < 3 or q[share] != c' ' or q[share + 1] != c' ' or share and value > 100 \
                or self.begun and share != self.shares or part != 0 and not self.begun:
            return self.bad(err, "the line", p, stop, "a count or share like the lines before, two blanks and a name")
        self.shares = share
        return self.part(part, value, q + share + 2, stop, b, err) if part else self.top(value, q + share + 2, stop, b, err)

    cdef int top(self, uint64_t value, const uint8_t *p, const uint8_t *stop, fp_batch *b, fp_err *err) noexcept nogil:
        cdef int status = self.rest(b, err)
        if status == 0:
            self.n_frames, self.begun, self.value, self.kept = 0, True, value, 0
            self.left = <int64_t>value * (100 if self.shares else 1)
            status = self.chain(p, stop, err)
        return status

    cdef int rest(self, fp_batch *b, fp_err *err) noexcept nogil:
        """A row for what is left of the last line."""
        cdef int status = self.row(0, False, self.left, b, err) if self.begun and self.left > 0 else 0
        self.left = 0
        return status

    cdef int part(self, uint8_t kind, uint64_t value, const uint8_t *p, const uint8_t *stop, fp_batch *b,
                  fp_err *err) noexcept nogil:
        cdef uint32_t n = self.n_frames, i
        cdef int64_t of_it = <int64_t>(value * self.value if self.shares else value)
        cdef bint is_caller = kind == c'<' and not is_state(p, stop)
        cdef int status = self.chain(p, stop, err)
        if is_caller and n > MOST_CALLED:
            status = self.bad(err, "the line", self.first, stop, "callers of at most 64 functions")
            self.n_frames = n
            return status
        for i in range(n if is_caller else 0):
            if status == 0:
                status = self.push(self.frames[i], err)
        if not is_caller and self.kept == 0:
            self.kept = self.stack(0, 0, n, False)
        if status == 0:
            self.under = 0 if is_caller else self.kept
            status = self.row(n, False, of_it, b, err)
            self.under = 0
        self.left -= min(self.left, of_it)
        self.n_frames = n
        return status

    cdef int chain(self, const uint8_t *p, const uint8_t *stop, fp_err *err) noexcept nogil:
        """Push the frames of `callee < caller` or `caller > callee`, root first."""
        cdef uint32_t first = self.n_frames, i, frame
        cdef bint leaf_first = False
        cdef const uint8_t *q
        cdef int status
        while True:
            q = p
            while q != stop and not (q[0] == c' ' and stop - q > 3 and (q[1] == c'<' or q[1] == c'>') and q[2] == c' '):
                q += 1
            if self.n_frames - first == MOST_CHAIN:
                return fp_fail_text(err, FP_E_MALFORMED, self.at, self.line, "the line", self.first, stop - self.first,
                                    "at most 4096 functions")
            status = self.push(self.frame(p, q, Place(0, 0, 0)), err)
            if status or q == stop:
                break
            leaf_first = q[1] == c'<'
            p = q + 3
        for i in range((self.n_frames - first) // 2 if leaf_first and status == 0 else 0):
            frame = self.frames[first + i]
            self.frames[first + i] = self.frames[self.n_frames - 1 - i]
            self.frames[self.n_frames - 1 - i] = frame
        return status

    cdef int at_end(self, fp_batch *b, fp_err *err) noexcept nogil:
        cdef int status = self.rest(b, err)
        self.begun = False
        return FP_DONE if status == 0 else status


cdef inline bint is_state(const uint8_t *p, const uint8_t *stop) noexcept nogil:
    """Whether a key is a state of LuaJIT's virtual machine, not a caller."""
    return (begins(p, stop, "Compiled") or begins(p, stop, "Interpreted") or begins(p, stop, "C code")
            or begins(p, stop, "Garbage Collector") or begins(p, stop, "JIT Compiler"))
