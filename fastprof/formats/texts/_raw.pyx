"""Lines of `pprof -raw` -> rows of stacks, without the GIL.

    Samples:
    samples/count cpu/nanoseconds
              1   10000000: 1 2                    values: locations, leaf first
                    tenant:[blue] n:[512 bytes]    labels of the sample above
    Locations
         1: 0x4ba0d0 M=1 f /srv/a.go:90:3 s=80     address, mapping, function, file, line and column, the first line
                 main.main /srv/a.go:119:0 s=0     the function that the one above is inlined into
         2: 0x404f7c M=1 [F] g /srv/a.go:7:0 s=0(_g)   folded; system name
    Mappings
    1: 0x400000/0x4bb000/0x0 /srv/app id [FN][FL][LN][IN]

Sections are read from the last to the first.  Errors and losses: docs/formats/pprof-raw.md.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memchr, memcmp, memcpy

from fastprof.core.blanks cimport is_blank, skip_blanks, strip_blanks
from fastprof.core.fp cimport *
from fastprof.formats.texts._machine cimport *


cdef enum:
    SAMPLES
    LOCATIONS
    MAPPINGS
    MOST_VALUES = 64


# A function of a location, the innermost first.
cdef struct Line:
    uint32_t function
    uint32_t line
    uint32_t column


cdef class PprofRaw(Lines):
    """Reads one section at a time, after `begin`.  Memory: that of locations and mappings."""

    cdef int section
    cdef uint32_t n_values
    cdef bint is_open  # a location or a sample, which further lines may belong to
    cdef uint32_t id, mapping, flags  # of the location
    cdef uint64_t address
    cdef Line *lines
    cdef uint32_t n_lines, cap_lines
    cdef int64_t values[MOST_VALUES]  # of the sample, whose locations are `frames`
    cdef uint32_t labels

    def __cinit__(self, size_t model, bint lenient, uint32_t n_values):
        if not 1 <= n_values <= MOST_VALUES:
            raise ValueError("1 to 64 values")
        self.n_values = n_values

    def __dealloc__(self):
        free(self.lines)

    def begin(self, int section, uint64_t line) -> None:
        """Read a section, which follows this number of lines."""
        self.section, self.line, self.is_open = section, line, False

    cdef int read_line(self, const uint8_t *p, const uint8_t *stop, fp_batch *b, fp_err *err) noexcept nogil:
        cdef const uint8_t *text = skip_blanks(p, stop)
        cdef const uint8_t *end = strip_blanks(text, stop)
        if not self.whole:
            return self.bad(err, "the line", p, stop, "a newline")
        if text == end:
            return 0
        if self.section == MAPPINGS:
            return self.map_line(p, text, stop, err)
        if self.section == LOCATIONS:
            return self.location(p, text, end, err)
        if memchr(text, c'[', end - text) != NULL:
            return self.label_line(text, end, err)
        return self.sample(text, end, b, err)

    cdef int at_end(self, fp_batch *b, fp_err *err) noexcept nogil:
        cdef int status = 0
        if self.is_open:
            status = self.flush(b, err) if self.section == SAMPLES else self.close(err)
        return FP_DONE if status == 0 else status

    # ---- mappings ---------------------------------------------------------------

    cdef int map_line(self, const uint8_t *first, const uint8_t *p, const uint8_t *stop, fp_err *err) noexcept nogil:
        cdef uint8_t key[32]
        cdef uint64_t places[3]
        cdef const uint8_t *q = p
        cdef const uint8_t *bits
        cdef const uint8_t *build_id
        cdef uint32_t id = 0, object, flags = 0, name, build
        cdef int k
        while q != stop and fp_is_digit(q[0]):
            q += 1
        if q == p or q - p > 20 or stop - q < 2 or q[0] != c':' or q[1] != c' ':
            return self.bad(err, "the line", first, stop, "1: 0x400000/0x401000/0x0 file")
        memcpy(key, b"M=", 2)
        memcpy(key + 2, p, q - p)
        if self.seen_as(key, key + 2 + (q - p), &id) == FP_NO_ID:
            return no_memory(err)
        p = q + 2
        for k in range(3):
            q = p
            while q != stop and q[0] != c'/' and q[0] != c' ':
                q += 1
            if not fp_is_hex(p, q - p, &places[k]) or k < 2 and (q == stop or q[0] != c'/'):
                return self.bad(err, "the line", first, stop, "1: 0x400000/0x401000/0x0 file")
            p = q + (q != stop)
        bits = before(p, stop)
        build_id = before(p, bits - 1) if bits != p else p
        flags = flags_of(bits, stop)
        name = self.text(p, build_id - (build_id != p))
        build = self.text(build_id, bits - 1) if bits - build_id > 1 else 0
        object = FP_NO_ID if name == FP_NO_ID or build == FP_NO_ID else fp_model_object(self.model, name, build)
        if object == FP_NO_ID:
            return no_memory(err)
        self.known[id] = fp_model_mapping(self.model, object, places[0], places[1], places[2], flags)
        return no_memory(err) if self.known[id] == FP_NO_ID else 0

    # ---- locations ---------------------------------------------------------------

    cdef int location(self, const uint8_t *first, const uint8_t *p, const uint8_t *stop, fp_err *err) noexcept nogil:
        cdef const uint8_t *q = p
        cdef int status
        while q != stop and fp_is_digit(q[0]):
            q += 1
        if p - first >= 13 or q == p or stop - q < 4 or q[0] != c':' or q[1] != c' ' or q[2] != c'0' or q[3] != c'x':
            if not self.is_open:
                return self.bad(err, "the line", first, stop, "1: 0x4ba0d0 M=1, a function and its place")
            return self.line_of(p, stop, err)
        if self.is_open:
            status = self.close(err)
            if status:
                return status
        self.is_open = False
        if self.seen_as(p, q, &self.id) == FP_NO_ID:
            return no_memory(err)
        p = q + 2
        q = p
        while q != stop and q[0] != c' ':
            q += 1
        self.mapping = self.flags = self.n_lines = 0
        if not fp_is_hex(p, q - p, &self.address):
            return self.bad(err, "the address", p, q, "0x and up to 16 hexadecimal digits")
        p = skip_blanks(q, stop)
        if stop - p > 2 and p[0] == c'M' and p[1] == c'=':
            q = p
            while q != stop and q[0] != c' ':
                q += 1
            self.mapping = self.find(p, q)
            if self.mapping == 0:
                return self.bad(err, "the mapping", p, q, "the number of a mapping below")
            if self.mapping == FP_NO_ID:
                return no_memory(err)
            p = skip_blanks(q, stop)
        if stop - p > 2 and memcmp(p, b"[F]", 3) == 0:
            self.flags = FP_FRAME_FOLDED
            p = skip_blanks(p + 3, stop)
        self.is_open = True
        return 0 if p == stop else self.line_of(p, stop, err)

    cdef int line_of(self, const uint8_t *p, const uint8_t *stop, fp_err *err) noexcept nogil:
        """`main.main /srv/a.go:119:0 s=0(system)`; older releases write no column."""
        cdef const uint8_t *q = stop
        cdef const uint8_t *name_end
        cdef uint64_t numbers[3]
        cdef uint32_t file, name, system = 0, n = 0
        cdef Line *line
        if stop - p == 2 and p[0] == c'?' and p[1] == c'?':
            return 0
        while q - p > 3 and not (memcmp(q - 3, b" s=", 3) == 0 and q != stop and fp_is_digit(q[0])):
            q -= 1
        if q - p <= 3 or fp_decimal(q, &numbers[2]) == NULL:
            return self.bad(err, "the line", p, stop, "a function, file:1:0 and s=1")
        if fp_decimal(q, &numbers[2])[0] == c'(' and (stop - 1)[0] == c')':
            system = self.text(fp_decimal(q, &numbers[2]) + 1, stop - 1)
        stop = q - 3
        numbers[0] = numbers[1] = 0
        while n < 2:  # the line, and ahead of it the column of the newer releases
            q = stop
            while q != p and fp_is_digit((q - 1)[0]):
                q -= 1
            if q == stop or q == p or (q - 1)[0] != c':':
                break
            numbers[1] = numbers[0]
            if fp_decimal(q, &numbers[0]) != stop:
                break
            stop = q - 1
            n += 1
        if n == 0:
            return self.bad(err, "the line", p, stop, "file:1:0 ahead of s=")
        name_end = path_of(p, stop)
        file, name = self.text(name_end, stop), self.text(p, strip_blanks(p, name_end))
        if fp_array_room(&self.lines, &self.cap_lines, <uint64_t>self.n_lines + 1, sizeof(Line)) or file == FP_NO_ID \
                or name == FP_NO_ID or system == FP_NO_ID:
            return no_memory(err)
        line = &self.lines[self.n_lines]
        # functions of a mapping belong to its object
        line.function = fp_model_function(self.model, self.object_of(), file, name, system if system != 0 else name,
                                          small(numbers[2]))
        line.line, line.column = small(numbers[0]), small(numbers[1])
        self.n_lines += 1
        return no_memory(err) if line.function == FP_NO_ID else 0

    cdef int close(self, fp_err *err) noexcept nogil:
        """Make the frame of the open location."""
        cdef uint32_t chain = 0
        while self.n_lines != 0:
            self.n_lines -= 1
            chain = fp_model_line(self.model, self.lines[self.n_lines].function, self.lines[self.n_lines].line,
                                  self.lines[self.n_lines].column, chain)
            if chain == FP_NO_ID:
                return no_memory(err)
        self.known[self.id] = fp_model_frame(self.model, self.mapping, self.address, self.flags, chain)
        return no_memory(err) if self.known[self.id] == FP_NO_ID else 0

    cdef uint32_t object_of(self) noexcept nogil:
        return fp_table_row(&self.model.mappings, self.mapping)[0] if self.mapping != 0 else 0

    cdef uint32_t find(self, const uint8_t *p, const uint8_t *stop) noexcept nogil:
        cdef uint32_t id = 0
        return self.seen_as(p, stop, &id)

    # ---- samples -------------------------------------------------------------------

    cdef int sample(self, const uint8_t *p, const uint8_t *stop, fp_batch *b, fp_err *err) noexcept nogil:
        cdef const uint8_t *first = p
        cdef const uint8_t *q
        cdef uint32_t k, frame
        cdef int status
        if self.is_open:
            status = self.flush(b, err)
            if status:
                return status
        self.n_frames = 0
        for k in range(self.n_values):
            q = p
            while q != stop and not is_blank(q[0]) and q[0] != c':':
                q += 1
            if not signed(p, q, &self.values[k]) or (k + 1 == self.n_values) != (q != stop and q[0] == c':'):
                return self.bad(err, "the line", first, stop, "a number for each value type, a colon and locations")
            p = skip_blanks(q + (q != stop and q[0] == c':'), stop)
        while p != stop:
            q = p
            while q != stop and not is_blank(q[0]):
                q += 1
            frame = self.find(p, q) if all_digits(p, q) else 0  # "M=1" is a mapping
            if frame == 0:
                return self.bad(err, "the location", p, q, "the number of a location below")
            status = self.push(frame, err)
            if status:
                return status
            p = skip_blanks(q, stop)
        self.is_open, self.labels = True, 0
        return 0

    cdef int flush(self, fp_batch *b, fp_err *err) noexcept nogil:
        cdef uint32_t k
        cdef int status = self.row(0, True, 0, b, err)
        self.is_open = False
        if status == 0:
            b.label[b.n - 1] = self.labels
            for k in range(self.n_values):
                b.values[k * <size_t>b.cap + b.n - 1] = self.values[k]
        return status

    cdef int label_line(self, const uint8_t *p, const uint8_t *stop, fp_err *err) noexcept nogil:
        """`tenant:[blue] bytes:[512 bytes]`"""
        cdef const uint8_t *key
        cdef const uint8_t *value
        cdef const uint8_t *unit
        cdef uint32_t name, text, unit_id
        cdef int64_t number
        if not self.is_open:
            return self.bad(err, "the line", p, stop, "a sample above its labels")
        while p != stop:
            key = p
            while stop - p > 1 and not (p[0] == c':' and p[1] == c'['):
                p += 1
            value = p + 2
            while p != stop and not (p[0] == c']' and p >= value and (p + 1 == stop or p[1] == c' ')):
                p += 1
            if p == stop:
                return self.bad(err, "the label", key, stop, "key:[value]")
            unit = value
            while unit != p and unit[0] != c' ':
                unit += 1
            number, text, unit_id = 0, 0, 0
            name = self.text(key, value - 2)
            if signed(value, unit, &number) and (unit == p or p - unit > 1 and not fp_is_digit(unit[1]) and unit[1] != c'-'):
                unit_id = self.text(unit + 1, p) if unit != p else 0
            else:
                number, text = 0, self.text(value, p)
            if name == FP_NO_ID or text == FP_NO_ID or unit_id == FP_NO_ID:
                return no_memory(err)
            self.labels = fp_model_label(self.model, self.labels, name, text, number, unit_id)
            if self.labels == FP_NO_ID:
                return no_memory(err)
            p = skip_blanks(p + 1, stop)
        return 0


cdef inline const uint8_t *before(const uint8_t *p, const uint8_t *stop) noexcept nogil:
    """The byte after the last blank, from p on."""
    while stop != p and (stop - 1)[0] != c' ':
        stop -= 1
    return stop


cdef inline const uint8_t *path_of(const uint8_t *p, const uint8_t *stop) noexcept nogil:
    """Where the path begins after a function's name; both may contain blanks."""
    cdef const uint8_t *q = stop
    while q != p and not (q[0] == c'/' and (q - 1)[0] == c' '):
        q -= 1
    return q if q != p else before(p, stop)


cdef inline uint32_t flags_of(const uint8_t *p, const uint8_t *stop) noexcept nogil:
    """enum fp_mapping_flag, of `[FN][FL][LN][IN]`."""
    cdef uint32_t flags = 0
    while stop - p > 3:
        if p[0] == c'[':
            flags |= 8 if p[1] == c'I' else 4 if p[1] == c'L' else 1 if p[2] == c'N' else 2
        p += 1
    return flags


cdef inline uint32_t small(uint64_t n) noexcept nogil:
    return <uint32_t>n if n >> 31 == 0 else 0


cdef inline bint signed(const uint8_t *p, const uint8_t *stop, int64_t *to) noexcept nogil:
    """A whole number of 64 bits.  False if it is something else."""
    cdef bint negative = p != stop and p[0] == c'-'
    cdef uint64_t v = 0
    p += negative
    if p == stop or stop - p > 19:
        return False
    while p != stop:
        if not fp_is_digit(p[0]):
            return False
        v = v * 10 + (p[0] - c'0')
        p += 1
    if v > (<uint64_t>1 << 63) - (not negative):
        return False
    to[0] = <int64_t>(0 - v) if negative else <int64_t>v
    return True
