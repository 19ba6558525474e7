"""Call trees, of which each line is a node below its callers, -> rows of stacks, without the GIL.

     main  Main  fib.hs:(8,1)-(10,48)  296  1  7.7  17.5  100.0  99.9  2  11040304     GHC: depth by blanks ahead of a name
    4.93 s  99.9%<tab>846.00 ms<tab>    main                                            Instruments: by those of the last column

Errors and losses: docs/formats/ghc-prof.md and instruments.md.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memchr, memcmp, strlen

from fastprof.core.blanks cimport is_blank, skip_blanks, strip_blanks
from fastprof.core.fp cimport *
from fastprof.formats.texts._machine cimport *

cdef int64_t MOST = 0x7fffffffffffffff


cdef inline const uint8_t *word(const uint8_t *p, const uint8_t *stop) noexcept nogil:
    """The end of the word at p."""
    while p != stop and not is_blank(p[0]):
        p += 1
    return p


cdef inline const uint8_t *last_word(const uint8_t *p, const uint8_t *stop) noexcept nogil:
    """Where the last word before `stop` begins."""
    while stop != p and not is_blank((stop - 1)[0]):
        stop -= 1
    return stop


cdef inline bint number(const uint8_t *p, const uint8_t *stop, uint64_t scale, uint64_t *to) noexcept nogil:
    """A number with commas and decimals, times a scale, rounded down.  False if it is something else, or too large."""
    cdef uint64_t v = 0, part = scale
    cdef const uint8_t *first = p
    while p != stop and (fp_is_digit(p[0]) or p[0] == c',' and p != first):
        if p[0] != c',':
            if v > (<uint64_t>MOST // scale - 9) // 10:
                return False
            v = v * 10 + p[0] - c'0'
        p += 1
    if p == first:
        return False
    v *= scale
    if p != stop and p[0] == c'.':
        p += 1
        while p != stop and fp_is_digit(p[0]):
            part //= 10
            v += part * (p[0] - c'0')
            p += 1
    to[0] = v
    return p == stop and v <= <uint64_t>MOST


cdef class Ghc(Lines):
    """The tree of cost centres of a GHC profile: time in nanoseconds, bytes allocated, entries.

    With `-P` values are those of the columns `ticks` and `bytes`, with `-p` shares of the totals.  `tick`: nanoseconds.
    """

    cdef uint64_t tick, total_time, total_bytes
    cdef bint in_tree, has_ticks

    def __cinit__(self, size_t model, bint lenient, uint64_t tick, uint64_t total_time, uint64_t total_bytes):
        self.tick, self.total_time, self.total_bytes = tick, total_time, total_bytes

    @property
    def exact(self) -> bool:
        """Whether the tree has ticks and bytes."""
        return self.has_ticks or not self.in_tree

    cdef int read_line(self, const uint8_t *p, const uint8_t *stop, fp_batch *b, fp_err *err) noexcept nogil:
        cdef const uint8_t *end = strip_blanks(p, stop)
        cdef const uint8_t *last
        if not self.whole:
            return self.bad(err, "the line", p, stop, "a newline")
        if end == p:
            return 0
        if not self.in_tree:
            last = last_word(p, end)
            # the list of cost centres that precedes the tree has no such columns
            if end - p > 60 and memcmp(p, b"COST CENTRE", 11) == 0 and has_word(p, end, "entries"):
                self.in_tree, self.has_ticks = True, end - last == 5 and memcmp(last, b"bytes", 5) == 0
            return 0
        return self.node(p, end, b, err)

    cdef int node(self, const uint8_t *p, const uint8_t *stop, fp_batch *b, fp_err *err) noexcept nogil:
        cdef const uint8_t *first = p
        cdef const uint8_t *q
        cdef const uint8_t *at
        cdef const uint8_t *end = stop
        cdef uint64_t values[8]
        cdef uint32_t depth, n = 8 if self.has_ticks else 6
        cdef int status
        while n != 0:  # no., entries, four shares, ticks, bytes
            n -= 1
            q = last_word(p, end)
            if not number(q, end, 10 if 2 <= n < 6 else 1, &values[n]):
                return self.bad(err, "the line", first, stop, "a cost centre, its module and place, and its columns")
            end = strip_blanks(p, q)
        p = skip_blanks(p, end)
        depth = p - first
        q = word(p, end)
        at = skip_blanks(q, end)
        if q == p or at == end or depth > self.n_frames:
            return self.bad(err, "the line", first, stop, "a cost centre at most one blank deeper than the one above")
        self.n_frames = depth
        if self.has_ticks:
            if values[6] > <uint64_t>MOST // max(self.tick, <uint64_t>1):
                return self.bad(err, "the ticks", first, stop, "a time below 2^63 nanoseconds")
            values[2], values[3] = values[6] * self.tick, values[7]
        else:
            values[2] = share(values[2], self.total_time)
            values[3] = share(values[3], self.total_bytes)
        status = self.push(self.centre(p, q, at, end), err)
        if status or (values[1] | values[2] | values[3]) == 0:
            return status
        status = self.row(0, False, <int64_t>values[2], b, err)
        if status == 0:
            b.values[<size_t>b.cap + b.n - 1] = <int64_t>values[3]
            b.values[2 * <size_t>b.cap + b.n - 1] = <int64_t>values[1]
        return status

    cdef uint32_t centre(self, const uint8_t *p, const uint8_t *stop, const uint8_t *module,
                         const uint8_t *end) noexcept nogil:
        """The frame of `name`, of `module  file.hs:(8,1)-(10,48)` or `module  <place>`."""
        cdef uint32_t id = 0, found = self.seen_as(p, end, &id)
        cdef const uint8_t *src = word(module, end)
        cdef const uint8_t *q
        cdef uint64_t line = 0
        cdef Place place
        if found != 0:
            return found
        place.object, place.file, place.line = self.object(module, src), 0, 0
        src = skip_blanks(src, end)
        q = end
        while q != src and (q - 1)[0] != c':':
            q -= 1
        if q - src > 2 and fp_is_digit(q[0]) and fp_is_digit((q - 2)[0]):  # file.hs:4:1-64
            q -= 1
            while fp_is_digit((q - 1)[0]):
                q -= 1
        if q - src > 1 and q != end and (q - 1)[0] == c':' and src[0] != c'<':
            if fp_decimal(q + (q[0] == c'('), &line) != NULL and line >> 31 == 0:
                place.file, place.line = self.text(src, q - 1), <uint32_t>line
        found = self.frame(p, stop, place)
        if found != FP_NO_ID:
            self.known[id] = found
        return found


cdef inline uint64_t share(uint64_t thousandths, uint64_t total) noexcept nogil:
    cdef uint64_t n = min(thousandths, <uint64_t>1000)
    return total // 1000 * n + (total % 1000 * n + 500) // 1000


cdef inline bint has_word(const uint8_t *p, const uint8_t *stop, const char *text) noexcept nogil:
    cdef const uint8_t *end
    cdef size_t n = strlen(text)
    while p != stop:
        end = word(p, stop)
        if <size_t>(end - p) == n and memcmp(p, text, n) == 0:
            return True
        p = skip_blanks(end, stop)
    return False


cdef class Instruments(Lines):
    """Rows of a deep copy.  `own`: the column of self values, 0 = none: then they are what callees leave of a value.
    `name`: the column of names, which blanks indent."""

    cdef uint32_t own, name
    cdef size_t base  # blanks of the root
    cdef bint begun
    cdef int64_t *left  # by open node: its value without those of its callees
    cdef uint32_t cap_left

    def __cinit__(self, size_t model, bint lenient, uint32_t own, uint32_t name):
        self.own, self.name = own, name

    def __dealloc__(self):
        free(self.left)

    cdef int read_line(self, const uint8_t *p, const uint8_t *stop, fp_batch *b, fp_err *err) noexcept nogil:
        cdef const uint8_t *text = p
        cdef const uint8_t *tab = stop
        cdef const uint8_t *value = p
        cdef uint32_t column = 0
        cdef size_t depth
        cdef int64_t cost = 0
        cdef int status
        if self.line == 1 or skip_blanks(p, stop) == stop:
            return 0
        while column != self.name:
            tab = <const uint8_t *>memchr(text, c'\t', stop - text)
            if tab == NULL:
                return self.bad(err, "the line", p, stop, "a value, further columns and a name, separated by tabs")
            column += 1
            text = tab + 1
            if column == self.own:
                value = text
        tab = text
        text = skip_blanks(text, stop)
        depth = text - tab
        if not self.begun:
            self.base = depth
        if text == stop or depth < self.base or depth - self.base > self.n_frames \
                or not amount(value, tab - 1, self.own != 0, &cost):
            return self.bad(err, "the line", p, stop, "a value with a known unit, and a name at most one blank deeper "
                            "than the one above")
        depth -= self.base
        if self.own == 0:
            status = self.close(<uint32_t>depth, b, err)
            if status:
                return status
            if fp_array_room(&self.left, &self.cap_left, <uint64_t>depth + 1, sizeof(int64_t)):
                return no_memory(err)
            self.left[depth] = cost
            if depth != 0:
                self.left[depth - 1] -= min(self.left[depth - 1], cost)
        self.begun, self.n_frames = True, <uint32_t>depth
        status = self.push(self.frame(text, strip_blanks(text, stop), Place(0, 0, 0)), err)
        if status or self.own == 0 or cost == 0:
            return status
        return self.row(0, False, cost, b, err)

    cdef int close(self, uint32_t depth, fp_batch *b, fp_err *err) noexcept nogil:
        """Rows of open nodes from this depth on: 0, FP_FULL or an error."""
        cdef int64_t left
        cdef int status
        while self.n_frames > depth:
            if b.n == b.cap:
                return FP_FULL
            left = self.left[self.n_frames - 1]
            if left > 0:
                status = self.row(0, False, left, b, err)
                if status:
                    return status
            self.n_frames -= 1
        return 0

    cdef int at_end(self, fp_batch *b, fp_err *err) noexcept nogil:
        cdef int status = self.close(0, b, err) if self.own == 0 else 0
        return FP_DONE if status == 0 else status


cdef inline bint amount(const uint8_t *p, const uint8_t *stop, bint own, int64_t *to) noexcept nogil:
    """`846.00 ms`, `1.00ms`, `429.93 MB`, `96.08 Gc`, `532 cycles`, `12.0` (ms), `-` (0), perhaps with a share after it."""
    cdef const uint8_t *q
    cdef const uint8_t *unit
    cdef uint64_t scale = 0, value = 0
    cdef size_t n
    p = skip_blanks(p, stop)
    q = p
    while q != stop and (fp_is_digit(q[0]) or q[0] == c'.' or q[0] == c','):
        q += 1
    if q == p:
        to[0] = 0
        return p != stop and p[0] == c'-'
    unit = skip_blanks(q, stop)
    n = word(unit, stop) - unit if unit != stop and unit[0] != c'\t' else 0
    scale = scale_of(unit, n)
    if scale == 0 or not number(p, q, scale, &value):
        return False
    to[0] = <int64_t>value
    return True


cdef inline bint equals(const uint8_t *p, size_t n, const char *text) noexcept nogil:
    return n == strlen(text) and memcmp(p, text, n) == 0


cdef inline uint64_t scale_of(const uint8_t *unit, size_t n) noexcept nogil:
    """Nanoseconds, bytes or cycles of a unit; 0 if it is unknown."""
    if n == 0 or equals(unit, n, "ms"):
        return 1000000
    if equals(unit, n, "s"):
        return 1000000000
    if equals(unit, n, "us") or equals(unit, n, "\xc2\xb5s"):
        return 1000
    if equals(unit, n, "min"):
        return 60000000000
    if equals(unit, n, "h"):
        return 3600000000000
    if equals(unit, n, "ns") or equals(unit, n, "Bytes") or equals(unit, n, "cycles") or equals(unit, n, "c"):
        return 1
    return scale_of_many(unit, n)


cdef inline uint64_t scale_of_many(const uint8_t *unit, size_t n) noexcept nogil:
    """Of `KB`, `MiB`, `Gc`."""
    cdef bint binary = n == 3 and unit[1] == c'i' and unit[2] == c'B' or n == 2 and unit[1] == c'B'
    cdef uint64_t k = 1024 if binary else 1000
    if not binary and not (n == 2 and unit[1] == c'c'):
        return 0
    if unit[0] == c'K':
        return k
    if unit[0] == c'M':
        return k * k
    if unit[0] == c'G':
        return k * k * k
    return k * k * k * k if unit[0] == c'T' else 0
