"""Body lines of Callgrind and Cachegrind -> graph rows.

The door (`callgrind.py`) reads what stands once per part; this file reads
what stands once per row, without the GIL.

Only whole lines are looked at, each of which ends in a newline (one is lent
to a last line that has none), so number loops need no bounds check: the
newline stops them.  Text is taken apart by csrc/callgrind/lines.c, some
2 KB at a time.  Cost lines in the form that Callgrind writes are made rows by
csrc/callgrind/rows.c, other lines of that form are read by `short_line`;
anything else - tabs, CR, hex or negative counts, ranges - falls to
`long_line` and `position_line`, which know the whole grammar and name what
is wrong.

Rules that the format document leaves open (docs/formats/callgrind.md):
  - a relative position counts from the last self cost line; call and jump
    lines and their targets do not move it
  - fn= takes the file back to the last fl=; in Cachegrind fl= ends the function
  - cfi= and cob= hold for one call and may stand before or after cfn=
  - a number stays bound to the function that it first stood for, as far as
    file and object are not said otherwise; a definition without rows binds
    nothing
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memchr, memcmp, memcpy, memset

from fastprof.core.fp cimport *

cdef extern from *:
    """
    #define fp_uadd_overflows(a, b, to) __builtin_add_overflow(a, b, to)
    #define fp_prefetch(p) __builtin_prefetch(p)
    """
    void fp_prefetch(const void *p) nogil
    bint fp_uadd_overflows(uint64_t a, uint64_t b, uint64_t *to) nogil

cdef enum:
    FN = 0
    FL = 1
    OB = 2
    UNRESOLVED = 0        # a function that was named but not looked up yet
    NO_FILE = 0xffffffff  # no fl= yet
    SEEN = 256            # names looked at ahead of time, a power of 2
    EXPANDED_NBYTES = 1 << 16  # of a name put together: each may be made of many of the ones before
    DISCARD = 255         # pending: the next position line belongs to a line that was skipped

# Statuses beside fp_status, of this file only.
cdef enum:
    OK = 100
    BAD = 101  # err is filled in; the line can be skipped


cdef struct Seen:
    # A definition that was looked at ahead of time: its number's parenthesis, the number, the name and its hash.
    const uint8_t *p
    uint64_t id
    const uint8_t *name
    size_t n
    uint32_t hash


# ---- numbers ------------------------------------------------------------
# Each returns the first byte after the number, or NULL when there is no number or it does not fit
# (`fits` tells these apart).

cdef const uint8_t *unsigned_number(const uint8_t *p, uint64_t *to, bint *fits) noexcept nogil:
    """Decimal or 0x hex of any length."""
    cdef const uint8_t *first
    cdef uint64_t v = 0, d
    if p[0] == c'0' and (p[1] | 0x20) == c'x' and fp_nibble(p[2]) < 16:
        p += 2
        while fp_nibble(p[0]) < 16:
            if v >> 60:
                fits[0] = False
            v = v << 4 | fp_nibble(p[0])
            p += 1
        to[0] = v
        return p
    first = p
    while c'0' <= p[0] <= c'9':
        d = p[0] - 48
        if v > <uint64_t>0xffffffffffffffff // 10 or v * 10 > <uint64_t>0xffffffffffffffff - d:
            fits[0] = False
        v = v * 10 + d
        p += 1
    to[0] = v
    return p if p != first else NULL


cdef const uint8_t *rounded_number(const uint8_t *p, uint64_t *to, bint *fits) noexcept nogil:
    """Decimal with a fraction, an exponent or both, as the nearest whole number, half to even: exact at any length."""
    cdef const uint8_t *first = p
    cdef const uint8_t *stop
    cdef int64_t whole, exponent = 0  # `whole`: digits before the point that are still to come
    cdef uint64_t v = 0
    cdef uint8_t tenth = 0
    cdef bint more = False, below
    while fp_is_digit(p[0]):
        p += 1
    whole = p - first
    if p[0] == c'.':
        p += 1
        while fp_is_digit(p[0]):
            p += 1
        if p - first == 1:
            return NULL
    stop = p
    if first != stop and (p[0] | 0x20) == c'e':
        below = p[1] == c'-'
        p += 1 + (below or p[1] == c'+')
        if not fp_is_digit(p[0]):
            return NULL
        while fp_is_digit(p[0]):
            exponent = min(exponent * 10 + p[0] - 48, <int64_t>1 << 56)  # beyond the length of any text
            p += 1
        whole += -exponent if below else exponent
    while first != stop:
        if first[0] != c'.':
            if whole > 0:
                if v > (<uint64_t>0xffffffffffffffff - (first[0] - 48)) // 10:
                    fits[0] = False
                v = v * 10 + first[0] - 48
            elif whole == 0:
                tenth = first[0] - 48
            else:
                more |= first[0] != c'0'
            whole -= 1
        first += 1
    while whole > 0 and v and fits[0]:
        if v > <uint64_t>0xffffffffffffffff // 10:
            fits[0] = False
        v *= 10
        whole -= 1
    if tenth > 5 or (tenth == 5 and (more or v & 1)):
        v += 1
        if v == 0:
            fits[0] = False
    to[0] = v
    return p


def nearest(bytes word not None):
    """A decimal number as the nearest whole one, 2^64 - 1 at most; None when it is none."""
    cdef const uint8_t *p = word
    cdef uint64_t v = 0
    cdef bint fits = True, negative = p[0] == c'-'
    p = rounded_number(p + negative, &v, &fits)
    if p == NULL or p != <const uint8_t *>word + len(word):
        return None
    return (-1 if negative else 1) * (v if fits else 0xffffffffffffffff)


cdef inline bint begins_cost(uint8_t c) noexcept nogil:
    """Is this how a position begins?"""
    return fp_is_digit(c) or c == c'+' or c == c'-' or c == c'*'


cdef inline const uint8_t *blanks(const uint8_t *p) noexcept nogil:
    while p[0] == c' ' or p[0] == c'\t':
        p += 1
    return p


cdef inline bint at_end(const uint8_t *p) noexcept nogil:
    """At the end of a line, a CR before it or not?"""
    while p[0] == c'\r':
        p += 1
    return p[0] == c'\n'


cdef class Lexer:
    """Reads body lines into graph batches, part by part.

    `feed` takes addresses of `struct fp_in`, `fp_batch`, `fp_err` and returns
    an fp_status; FP_ASK means that the line at in.pos, `asked` bytes long
    with its newline, is not a body line: the door reads it, calls
    `drop_line` and goes on; or, if `undefined` is not 0, that the line uses
    a number without a name, which the door gives with `define`.
    `numbered`: names may be `(12) name`, as in Callgrind and not in
    Cachegrind.  Borrows the model.  Memory: at most 256 bytes a number beside 1 MiB a kind, 16 where they are dense.
    """

    cdef fp_model *model
    cdef bint lenient, numbered
    cdef fp_numbers numbers[3]
    cdef fp_lines lines                     # of the text at hand
    cdef Seen seen[SEEN]                    # names that are about to be defined, in the order of the text
    cdef uint32_t n_seen, next_seen         # entries that were ever filled in and used
    # this part
    cdef readonly bint has_events
    cdef fp_costs costs                     # columns, base, totals
    cdef uint32_t object, block_file, file, function
    cdef uint32_t fn_name, fn_file, fn_object  # of an UNRESOLVED function
    cdef uint64_t fn_key                    # its number + 1, or 0
    cdef bint fn_defined                    # fn= defined a number: no block of its own
    cdef bint in_function
    # the callee being named
    cdef uint32_t cob, cfi, callee_name, callee
    cdef uint32_t called                    # the callee of the call that is pending
    cdef uint64_t callee_key                # likewise
    cdef bint has_cob, has_cfi, has_callee
    # the jump being named
    cdef uint32_t jfi, jfn
    cdef bint has_jfi, has_jfn
    # calls=, jump= or jcnd= seen, its position line awaited
    cdef uint32_t pending                   # FP_COST: nothing
    cdef uint64_t pending_line, pending_offset
    cdef size_t shift                       # a pointer into the text plus this is the absolute offset
    cdef uint64_t count, count2
    cdef fp_position target
    # a last line without newline, with one
    cdef uint8_t *tail
    cdef size_t tail_cap
    # a name put together from numbered ones
    cdef uint8_t *expansion
    cdef size_t expansion_cap

    cdef public bint expands                # names like (3)'2'(5) are made of numbers
    cdef public bint binds                  # a number is one function, whatever file is said
    cdef public uint64_t line               # lines read so far
    cdef readonly size_t asked
    cdef readonly bint body                 # a body line was seen in this part
    cdef public bint keeps_comments         # the door is asked about them; else they are counted
    cdef readonly uint64_t comments
    # what was mended, and what was lost
    cdef readonly uint64_t skipped, indented, ranges, extra_numbers, unnamed_callees, outside, expanded
    cdef readonly uint64_t before_zero      # lines
    cdef readonly uint64_t trailing         # comments behind the counts of a line
    cdef readonly uint64_t rounded          # counts with a fraction or exponent,
    cdef readonly uint64_t first_rounded    # and the line of the first
    cdef readonly uint64_t unexpanded       # names that are too long when put together
    cdef readonly uint64_t contexts         # rec= and frfn= lines
    cdef readonly int undefined_kind        # with FP_ASK: a number that has no name yet,
    cdef readonly uint64_t undefined        # + 1; 0 when it is something else that is asked

    def __cinit__(self, size_t model, bint lenient, bint numbered):
        self.model = <fp_model *>model
        self.lenient = lenient
        self.numbered = numbered
        self.expands = self.keeps_comments = True
        self.costs.wide = fp_costs_wide()
        self.start_part(0, False, False, True, False)

    def __dealloc__(self):
        cdef int kind
        for kind in range(3):
            fp_numbers_clear(&self.numbers[kind])
        free(self.costs.totals)
        free(self.tail)
        free(self.expansion)

    def start_part(self, uint32_t n_values, bint instr, bint bb, bint lines, bint has_events):
        """Begin a part: no current names, no base position, sums at 0.  Numbers stay."""
        cdef size_t nbytes = (3 * <size_t>n_values + 1) * sizeof(int64_t)
        cdef int64_t *sums = <int64_t *>realloc(self.costs.totals, nbytes)
        if sums == NULL:
            raise MemoryError("no memory for a part's totals")
        memset(sums, 0, nbytes)
        self.costs.totals = sums
        self.costs.recent = &sums[n_values]
        self.costs.beyond = &sums[2 * <size_t>n_values]
        self.costs.n_values = n_values
        self.costs.instr, self.costs.bb, self.costs.lines = instr, bb, lines
        self.has_events = has_events
        self.body = False
        memset(&self.costs.base, 0, sizeof(fp_position))
        self.object = self.file = 0
        self.block_file = NO_FILE
        self.function = UNRESOLVED
        self.fn_name = self.fn_file = self.fn_object = 0
        self.fn_key = 0
        self.fn_defined = True
        self.in_function = False
        self.has_cob = self.has_cfi = self.has_callee = self.has_jfi = self.has_jfn = False
        self.pending = FP_COST

    @property
    def overflowed(self):
        """Is a total not an int64?"""
        return any(self.costs.beyond[k] != 0 for k in range(self.costs.n_values))

    @property
    def wide(self):
        """Reads cost lines by: 0, what every machine has; 1, AVX2; 2, AVX-512.  Cannot be set to more than there is."""
        return self.costs.wide

    @wide.setter
    def wide(self, uint32_t wide):
        self.costs.wide = min(wide, fp_costs_wide())

    @property
    def totals(self):
        """Sums of the self costs of this part so far."""
        return [self.costs.totals[k] for k in range(self.costs.n_values)]

    def feed(self, size_t in_, size_t batch, size_t err):
        cdef int status
        with nogil:
            status = self.window(<fp_in *>in_, <fp_batch *>batch, <fp_err *>err)
            fp_costs_settle(&self.costs)
        return status

    def end_part(self, size_t batch, size_t err):
        """End the part: FP_DONE, FP_FULL when the batch must be drained first, or an error."""
        return self.finish_block(<fp_batch *>batch, <fp_err *>err)

    def define(self, int kind, uint64_t number, uint32_t name):
        """Give an undefined number its name (a definition that stands further on)."""
        cdef fp_number *e = fp_numbers_find(&self.numbers[kind], number)
        if e == NULL:
            raise MemoryError("no memory for name numbers")
        fp_numbers_define(&self.numbers[kind], e, name)
        if kind == OB:
            e.object = fp_model_object(self.model, name, 0)
            if e.object == FP_NO_ID:
                raise MemoryError("no memory for objects")

    def drop_line(self, size_t in_):
        """Go on behind the line that was asked about."""
        cdef fp_in *input = <fp_in *>in_
        cdef uint8_t c = input.p[input.pos]
        self.indented += c == c' ' or c == c'\t'
        input.pos += self.asked
        self.line += 1

    # ---- the window -----------------------------------------------------

    cdef int window(self, fp_in *in_, fp_batch *b, fp_err *err) noexcept nogil:
        cdef const uint8_t *p = in_.p + in_.pos
        cdef const uint8_t *end = in_.p + in_.n
        cdef size_t n
        cdef int status
        if b.n == 0:
            self.clear(b)
        while end != p and (end - 1)[0] != c'\n':
            end -= 1
        if p != end:
            self.shift = in_.base - <size_t>in_.p
            status = self.body_lines(&p, end, in_.p + in_.n, b, err)
            in_.pos = p - in_.p
            if status != FP_MORE:
                return status
        if not in_.eof:
            return FP_MORE
        n = in_.n - in_.pos
        if n:
            # the last line, without a newline
            if n + 1 > self.tail_cap:
                free(self.tail)
                self.tail = <uint8_t *>malloc(n + 1)
                self.tail_cap = n + 1 if self.tail != NULL else 0
                if self.tail == NULL:
                    return FP_E_NOMEM
            memcpy(self.tail, in_.p + in_.pos, n)
            self.tail[n] = c'\n'
            p = self.tail
            self.shift = in_.base + in_.pos - <size_t>self.tail
            status = self.body_lines(&p, p + n + 1, p + n + 1, b, err)
            if status == FP_ASK:
                self.asked = n
            if status != FP_MORE:
                return status
            in_.pos = in_.n
        return self.finish_block(b, err)

    cdef void clear(self, fp_batch *b) noexcept nogil:
        """What a row does not say is 0.  Cheaper for the whole batch than row by row."""
        memset(b.callee, 0, b.cap * sizeof(b.callee[0]))
        memset(b.target_file, 0, b.cap * sizeof(b.target_file[0]))
        memset(b.target_line, 0, b.cap * sizeof(b.target_line[0]))
        memset(b.target_address, 0, b.cap * sizeof(b.target_address[0]))
        memset(b.target_bb, 0, b.cap * sizeof(b.target_bb[0]))
        memset(b.count, 0, b.cap * sizeof(b.count[0]))
        memset(b.count2, 0, b.cap * sizeof(b.count2[0]))
        if not self.costs.instr:
            memset(b.address, 0, b.cap * sizeof(b.address[0]))
        if not self.costs.bb:
            memset(b.bb, 0, b.cap * sizeof(b.bb[0]))
        if not self.costs.lines:
            memset(b.line, 0, b.cap * sizeof(b.line[0]))

    cdef int body_lines(self, const uint8_t **at, const uint8_t *end, const uint8_t *readable, fp_batch *b,
                        fp_err *err) noexcept nogil:
        """Lines from at[0] to `end`; bytes up to `readable` may be looked at.

        FP_MORE when all were read; at[0] stands at the first line that was not.
        """
        cdef fp_lines *lines = &self.lines
        cdef const uint8_t *p = at[0]
        cdef const uint8_t *next
        cdef uint32_t i, n, columns = self.costs.instr + self.costs.bb + self.costs.lines
        cdef int status
        while p != end:
            next = fp_lines_read(lines, p, end, readable, columns, self.costs.wide)
            self.look_ahead(p)
            i = 0
            while i < lines.n:
                if fp_line_bits(lines.cost, i) & 1:
                    n = self.cost_lines(p, i, b)
                else:
                    n = self.short_line(p, i)
                self.line += n
                i += n
                if n == 0:
                    at[0] = p + lines.begin[i]
                    status = self.other_line(at, end, b, err)
                    if status != OK:
                        return status
                    i += 1
            if next == p:
                # a line too long to be taken apart
                at[0] = p
                status = self.other_line(at, end, b, err)
                if status != OK:
                    return status
                next = at[0]
            p = next
        at[0] = end
        return FP_MORE

    cdef void look_ahead(self, const uint8_t *p) noexcept nogil:
        """Have what is known of the functions that the lines at p name brought from memory.

        Their numbers, and their names when they are defined, are looked up at random in tables that
        no cache holds; a lookup that waits takes as long as reading 200 bytes of text.
        """
        cdef fp_lines *lines = &self.lines
        cdef fp_numbers *t = &self.numbers[FN]
        cdef const uint8_t *q
        cdef const uint8_t *stop
        cdef Seen *seen
        cdef uint32_t i, first
        cdef uint64_t others, id
        self.next_seen = self.n_seen
        if not self.numbered:
            return
        for first in range(0, lines.n, 56):
            others = ~fp_line_bits(lines.cost, first) & <uint64_t>0xffffffffffffff
            while others:
                i = first + fp_lowest_bit(others)
                others &= others - 1
                if i >= lines.n:
                    break
                q = p + lines.begin[i]
                stop = p + lines.begin[i + 1] - 1
                q += q[0] == c'c'
                if q[0] != c'f' or q[1] != c'n' or q[2] != c'=' or q[3] != c'(':
                    continue
                q += 3
                if self.is_reference(q, stop, i):
                    id = <uint64_t>lines.value[lines.first[i]]
                elif self.n_seen - self.next_seen != SEEN:
                    seen = &self.seen[self.n_seen % SEEN]
                    seen.p = q
                    q = fp_decimal(q + 1, &id)
                    if q == NULL or q[0] != c')' or q[1] != c' ':
                        continue
                    self.n_seen += 1
                    seen.id = id
                    seen.name = q + 2
                    seen.n = stop - seen.name
                    seen.hash = fp_strings_hash(seen.name, seen.n)
                    fp_strings_prefetch(&self.model.strings, seen.hash)
                else:
                    continue
                fp_prefetch(fp_numbers_place_of(t, id))

    cdef inline bint is_reference(self, const uint8_t *p, const uint8_t *stop, uint32_t i) noexcept nogil:
        """Is what line i has from p on a number like `(12)`, of at most eight digits?  That is the line's first then."""
        # a line with one run of digits, which begins and ends there
        return (p[0] == c'(' and fp_is_digit(p[1]) and (stop - 1)[0] == c')' and fp_is_digit((stop - 2)[0])
                and stop - p <= 10 and self.lines.first[i + 1] - self.lines.first[i] == 1)

    cdef inline Seen *seen_at(self, const uint8_t *p) noexcept nogil:
        """What was seen ahead of time of the number at p, or NULL.  They are asked for in the order of the text."""
        cdef Seen *seen
        while self.next_seen != self.n_seen:
            seen = &self.seen[self.next_seen % SEEN]
            if seen.p >= p:
                return seen if seen.p == p else NULL
            self.next_seen += 1
        return NULL

    cdef inline uint32_t cost_lines(self, const uint8_t *p, uint32_t line, fp_batch *b) noexcept nogil:
        """Cost lines as Callgrind writes them, from that line on; returns how many were read."""
        cdef uint32_t i = b.n, n, kind = self.pending
        if (not self.has_events or kind == DISCARD or i == b.cap
                or self.function == UNRESOLVED and self.resolve() != OK):
            return 0
        self.costs.function = self.function
        self.costs.file = self.file
        n = fp_cost_rows(&self.costs, kind, &self.lines, line, b)
        if n == 0 and not fp_cost_row(&self.costs, kind, p + self.lines.begin[line], b):
            return 0
        if kind != FP_COST:
            self.finish_row(b, i, kind)
            self.pending = FP_COST
        return max(n, <uint32_t>1)

    cdef inline void finish_row(self, fp_batch *b, uint32_t i, uint32_t kind) noexcept nogil:
        """What a call or jump row has beyond a cost row."""
        b.count[i] = self.count
        b.target_line[i] = <uint32_t>self.target.line
        b.target_address[i] = self.target.address
        b.target_bb[i] = self.target.bb
        if kind == FP_CALL:
            b.callee[i] = self.called
            return
        b.count2[i] = self.count2
        b.callee[i] = self.jfn if self.has_jfn else self.function
        b.target_file[i] = self.jfi if self.has_jfi else self.file
        self.has_jfi = self.has_jfn = False

    cdef bint short_line(self, const uint8_t *p, uint32_t i) noexcept nogil:
        """Line i of the text at p, if it is a reference like `cfn=(12)`, the definition of a function's number, a
        calls= or a jump line as Callgrind writes them, or empty.  False, and nothing was done, if it is not."""
        cdef fp_number *e
        cdef uint64_t id
        cdef bint defined
        cdef const uint8_t *stop = p + self.lines.begin[i + 1] - 1
        p += self.lines.begin[i]
        if not self.has_events and not self.numbered:
            return False
        if p[0] == c'c':
            # a byte is looked at only when the one before it is not the newline
            if p[1] == c'f' and (p[2] == c'n' or p[2] == c'i' or p[2] == c'l') and p[3] == c'=':
                if p[2] == c'n':
                    e = self.function_name(p + 4, stop, i, &id, &defined)
                    if e == NULL:
                        return False
                    self.body = True
                    self.callee_name = e.name
                    self.callee_key = id + 1
                    self.has_callee = True
                    self.callee = UNRESOLVED
                    return True
                e = self.reference(p + 4, stop, i, FL)
                if e == NULL:
                    return False
                self.cfi = e.name
                self.has_cfi = True
                return True
            if p[1] == c'o' and p[2] == c'b' and p[3] == c'=':
                e = self.reference(p + 4, stop, i, OB)
                if e == NULL:
                    return False
                self.cob = e.object
                self.has_cob = True
                return True
            if p[1] == c'a' and p[2] == c'l' and p[3] == c'l' and p[4] == c's' and p[5] == c'=':
                return self.short_count(p, p + 6, FP_CALL)
        elif p[0] == c'f':
            if (p[1] == c'i' or p[1] == c'e' or p[1] == c'l') and p[2] == c'=':
                e = self.reference(p + 3, stop, i, FL)
                if e == NULL:
                    return False
                self.file = e.name
                if p[1] == c'l':
                    self.block_file = e.name
                return True
            if p[1] == c'n' and p[2] == c'=' and not self.block_is_due():
                e = self.function_name(p + 3, stop, i, &id, &defined)
                if e == NULL:
                    return False
                self.body = True
                self.begin_function(e.name, id + 1, defined)
                return True
        elif p[0] == c'j':
            if p[1] == c'u' and p[2] == c'm' and p[3] == c'p' and p[4] == c'=':
                return self.short_count(p, p + 5, FP_JUMP)
            if p[1] == c'c' and p[2] == c'n' and p[3] == c'd' and p[4] == c'=':
                return self.short_count(p, p + 5, FP_JCND)
            if p[1] == c'f' and p[2] == c'i' and p[3] == c'=':
                e = self.reference(p + 4, stop, i, FL)
                if e == NULL:
                    return False
                self.jfi = e.name
                self.has_jfi = True
                return True
        elif p[0] == c'o' and p[1] == c'b' and p[2] == c'=':
            e = self.reference(p + 3, stop, i, OB)
            if e == NULL:
                return False
            self.object = e.object
            return True
        return p[0] == c'\n'

    cdef inline bint short_count(self, const uint8_t *line, const uint8_t *p, uint32_t kind) noexcept nogil:
        """`2 0x4011 +3 ` or `3/4 +2 ` at p, behind calls=, jump= or jcnd=; False if it is not that simple."""
        cdef fp_position target
        cdef uint64_t count, count2 = 0
        if self.pending != FP_COST:
            return False
        memset(&target, 0, sizeof(fp_position))
        p = fp_decimal(p, &count)
        if p == NULL:
            return False
        if kind == FP_JCND:
            if p[0] != c'/':
                return False
            p = fp_decimal(p + 1, &count2)
            if p == NULL:
                return False
        if p[0] != c' ':
            return False
        p += 1
        if self.costs.instr:
            p = fp_text_position(p, self.costs.base.address, &target.address)
            if p == NULL:
                return False
        if self.costs.bb:
            p = fp_text_position(p, self.costs.base.bb, &target.bb)
            if p == NULL:
                return False
        if self.costs.lines:
            p = fp_text_position(p, self.costs.base.line, &target.line)
            if p == NULL or target.line > <uint64_t>0xffffffff:
                return False
        if p[0] != c'\n':
            return False
        if kind == FP_CALL and self.resolve_callee() != OK:
            return False
        self.body = True
        self.count = count
        self.count2 = count2
        self.target = target
        self.pending = kind
        self.pending_line = self.line + 1
        self.pending_offset = <size_t>line + self.shift
        return True

    cdef inline fp_number *reference(self, const uint8_t *p, const uint8_t *stop, uint32_t i, int kind) noexcept nogil:
        """`(12)` up to the end of line i, of a number that has a name; NULL for anything else."""
        cdef fp_number *e
        if not self.numbered or not self.is_reference(p, stop, i):
            return NULL
        e = fp_numbers_find(&self.numbers[kind], <uint64_t>self.lines.value[self.lines.first[i]])
        if e == NULL or e.name == 0:
            return NULL
        self.body = True
        return e

    cdef inline fp_number *function_name(self, const uint8_t *p, const uint8_t *stop, uint32_t i, uint64_t *id,
                                         bint *defined) noexcept nogil:
        """The same of functions, and `(12) name` where that was seen ahead of time."""
        cdef fp_number *e = self.reference(p, stop, i, FN)
        cdef Seen *seen
        cdef uint32_t s
        defined[0] = e == NULL
        if e != NULL:
            id[0] = <uint64_t>self.lines.value[self.lines.first[i]]
            return e
        seen = self.seen_at(p)
        if seen == NULL or seen.name[0] <= c' ' or seen.name[0] == c'(' or (stop - 1)[0] == c'\r':
            return NULL
        id[0] = seen.id
        e = fp_numbers_find(&self.numbers[FN], seen.id)
        s = fp_strings_intern_hashed(&self.model.strings, seen.name, seen.n, seen.hash)
        if e == NULL or s == FP_NO_ID:
            return NULL
        fp_numbers_define(&self.numbers[FN], e, s)
        e.again = True
        return e

    # ---- any line but the ordinary ---------------------------------------

    cdef int other_line(self, const uint8_t **at, const uint8_t *end, fp_batch *b, fp_err *err) noexcept nogil:
        """One line of any kind at at[0], which is set behind it unless the status is FP_FULL, FP_ASK or
        an error."""
        cdef const uint8_t *p = at[0]
        cdef const uint8_t *next
        cdef uint64_t offset = <size_t>p + self.shift
        cdef uint64_t rounded = self.rounded, indented = self.indented
        cdef int status
        self.line += 1
        self.undefined = 0
        next = <const uint8_t *>memchr(p, c'\n', end - p) + 1
        status = self.long_line(p, next, offset, b, err)
        if status == OK:
            at[0] = next
            return OK
        if status == BAD:
            err.line = self.line
            if not self.lenient:
                return err.code
            self.skipped += 1
            self.rounded = rounded
            at[0] = next
            return OK
        # it will be looked at once more, or dropped
        self.line -= 1
        self.indented = indented
        if status == FP_ASK:
            self.asked = next - p
        return status

    cdef int long_line(self, const uint8_t *p, const uint8_t *next, uint64_t offset, fp_batch *b,
                       fp_err *err) noexcept nogil:
        cdef const uint8_t *stop = next - 1  # behind the text, at CR or newline
        cdef uint8_t c
        cdef size_t n
        cdef bint indented
        while stop != p and (stop - 1)[0] == c'\r':
            stop -= 1
        indented = p[0] == c' ' or p[0] == c'\t'
        if indented:
            p = blanks(p)
            if p >= stop:
                return OK
            self.indented += 1
        if p == stop:
            return OK
        if not self.has_events and not self.numbered:
            # of Cachegrind's header every line is the door's: a command may hold any
            return FP_ASK
        c = p[0]
        if begins_cost(c):
            return self.position_line(p, stop, offset, b, err)
        n = stop - p
        if c == c'#':
            if self.keeps_comments:
                return FP_ASK
            self.comments += 1
            return OK
        if n >= 3 and p[2] == c'=':
            if p[0] == c'f':
                if p[1] == c'n':
                    return self.fn_line(p, stop, offset, b, err)
                if p[1] == c'l' or p[1] == c'i' or p[1] == c'e':
                    return self.file_line(p, stop, offset, b, err)
            elif p[0] == c'o' and p[1] == c'b':
                self.body = True
                return self.object_line(p + 3, stop, offset, &self.object, err)
        if n >= 4 and p[3] == c'=':
            if memcmp(p, b"cfn", 3) == 0:
                self.callee = UNRESOLVED
                self.has_callee = True
                self.body = True
                return self.name(p + 4, stop, FN, offset, &self.callee_name, &self.callee_key, NULL, err)
            if memcmp(p, b"cfi", 3) == 0 or memcmp(p, b"cfl", 3) == 0:
                self.has_cfi = True
                self.body = True
                return self.name(p + 4, stop, FL, offset, &self.cfi, NULL, NULL, err)
            if memcmp(p, b"cob", 3) == 0:
                self.has_cob = True
                self.body = True
                return self.object_line(p + 4, stop, offset, &self.cob, err)
            if memcmp(p, b"jfi", 3) == 0:
                self.has_jfi = True
                self.body = True
                return self.name(p + 4, stop, FL, offset, &self.jfi, NULL, NULL, err)
            if memcmp(p, b"jfn", 3) == 0:
                self.body = True
                return self.jfn_line(p, stop, offset, err)
        if n >= 5 and p[4] == c'=' and (memcmp(p, b"jump", 4) == 0 or memcmp(p, b"jcnd", 4) == 0):
            return self.count_line(p + 5, stop, offset, FP_JUMP if p[1] == c'u' else FP_JCND, err)
        if n >= 6 and memcmp(p, b"calls=", 6) == 0:
            return self.count_line(p + 6, stop, offset, FP_CALL, err)
        if n >= 7 and memcmp(p, b"rcalls=", 7) == 0:
            return self.count_line(p + 7, stop, offset, FP_CALL, err)
        if n >= 5 and memcmp(p, b"frfn=", 5) == 0:
            self.body = True
            return self.context_line(p + 5, stop, offset, err)
        if n >= 4 and memcmp(p, b"rec=", 4) == 0:
            self.body = True
            self.contexts += 1
            return OK
        return FP_ASK

    # ---- names ------------------------------------------------------------

    cdef int name(self, const uint8_t *p, const uint8_t *stop, int kind, uint64_t offset, uint32_t *string,
                  uint64_t *key, bint *defined, fp_err *err) noexcept nogil:
        """`name`, `(12) name` or `(12)` up to `stop`: its string, number + 1 (0: none), and whether
        the number is defined here."""
        cdef uint64_t id
        cdef bint fits = True
        cdef fp_number *e
        cdef uint32_t s
        cdef const uint8_t *q
        if defined != NULL:
            defined[0] = False
        if key != NULL:
            key[0] = 0
        if not self.numbered or stop - p < 3 or p[0] != c'(' or not c'0' <= p[1] <= c'9':
            s = fp_strings_intern(&self.model.strings, p, stop - p)
            if s == FP_NO_ID:
                return FP_E_NOMEM
            string[0] = s
            return OK
        q = unsigned_number(p + 1, &id, &fits)
        if q[0] != c')':
            # a name that only looks like a number
            s = fp_strings_intern(&self.model.strings, p, stop - p)
            if s == FP_NO_ID:
                return FP_E_NOMEM
            string[0] = s
            return OK
        if not fits or id >> 63:
            fp_fail_text(err, FP_E_OVERFLOW, offset, 0, "number of a name", p, stop - p, "below 2^63")
            if not self.lenient:
                return BAD
            # what follows belongs to this name, known or not, rather than to the one before
            self.skipped += 1
            q = blanks(q + 1)
            string[0] = fp_strings_intern(&self.model.strings, q, stop - q)
            return OK if string[0] != FP_NO_ID else FP_E_NOMEM
        e = fp_numbers_find(&self.numbers[kind], id)
        if e == NULL:
            return FP_E_NOMEM
        q = blanks(q + 1)
        if q < stop:
            s = self.defined_name(q, stop, kind)
            e = fp_numbers_find(&self.numbers[kind], id)  # once more: the numbers in the name may have moved it
            if s == FP_NO_ID or e == NULL:
                return FP_E_NOMEM
            fp_numbers_define(&self.numbers[kind], e, s)
            e.again = True
            if defined != NULL:
                defined[0] = True
        elif e.name == 0:
            self.undefined_kind = kind
            self.undefined = id + 1
            return FP_ASK
        string[0] = e.name
        if key != NULL:
            key[0] = id + 1
        return OK

    cdef uint32_t defined_name(self, const uint8_t *p, const uint8_t *stop, int kind) noexcept nogil:
        """The string of a name that is being defined; FP_NO_ID when memory ran out.

        `(3)'2'(5)`, as --compress-mangled writes it, is made of numbers: f, its recursion 2, called by g.
        """
        cdef const uint8_t *q = p
        cdef const uint8_t *text
        cdef uint64_t id
        cdef bint fits = True
        cdef size_t n, have = 0
        cdef fp_number *e
        if kind != FN or not self.expands or p[0] != c'(' or not c'0' <= p[1] <= c'9':
            return fp_strings_intern(&self.model.strings, p, stop - p)
        while q < stop:
            if q[0] == c'(' and c'0' <= q[1] <= c'9':
                q = unsigned_number(q + 1, &id, &fits)
                if q[0] != c')' or not fits or id >> 63:
                    break
                e = fp_numbers_find(&self.numbers[FN], id)
                if e == NULL:
                    return FP_NO_ID
                if e.name == 0:
                    break
                text = fp_string(&self.model.strings, e.name, &n)
                q += 1
            elif q[0] == c'\'' or c'0' <= q[0] <= c'9':
                text = q
                n = 1
                q += 1
            else:
                break
            if have + n > EXPANDED_NBYTES:
                self.unexpanded += 1
                return fp_strings_intern(&self.model.strings, p, stop - p)
            if have + n > self.expansion_cap:
                if not self.expand(2 * (have + n)):
                    return FP_NO_ID
            memcpy(self.expansion + have, text, n)
            have += n
        if q != stop:
            # not of that form: a name that happens to begin like one
            return fp_strings_intern(&self.model.strings, p, stop - p)
        self.expanded += 1
        return fp_strings_intern(&self.model.strings, self.expansion, have)

    cdef bint expand(self, size_t cap) noexcept nogil:
        cdef uint8_t *bigger = <uint8_t *>realloc(self.expansion, cap)
        if bigger == NULL:
            return False
        self.expansion = bigger
        self.expansion_cap = cap
        return True

    cdef int object_line(self, const uint8_t *p, const uint8_t *stop, uint64_t offset, uint32_t *object,
                         fp_err *err) noexcept nogil:
        cdef uint32_t s = 0
        cdef uint64_t key = 0
        cdef fp_number *e
        cdef int status = self.name(p, stop, OB, offset, &s, &key, NULL, err)
        if status == OK:
            object[0] = fp_model_object(self.model, s, 0) if s else 0
            if object[0] == FP_NO_ID:
                return FP_E_NOMEM
            if key:
                e = fp_numbers_find(&self.numbers[OB], key - 1)
                if e == NULL:
                    return FP_E_NOMEM
                e.object = object[0]
        return status

    cdef int file_line(self, const uint8_t *p, const uint8_t *stop, uint64_t offset, fp_batch *b,
                       fp_err *err) noexcept nogil:
        cdef uint32_t s = 0
        # In Cachegrind fl= ends the function, too: what stands before the next fn= is no function's.
        cdef bint ends = p[1] == c'l' and not self.numbered
        cdef int status = self.flush_block(b) if ends else OK
        if status != OK:
            return status
        status = self.name(p + 3, stop, FL, offset, &s, NULL, NULL, err)
        if status == OK:
            self.body = True
            self.file = s
            if p[1] == c'l':
                self.block_file = s
            if ends:
                self.function = UNRESOLVED
                self.in_function = False
        return status

    cdef int fn_line(self, const uint8_t *p, const uint8_t *stop, uint64_t offset, fp_batch *b,
                     fp_err *err) noexcept nogil:
        cdef uint32_t s = 0
        cdef uint64_t key = 0
        cdef bint defined = False
        cdef int status = self.flush_block(b)
        if status != OK:
            return status
        status = self.name(p + 3, stop, FN, offset, &s, &key, &defined, err)
        if status == OK:
            self.body = True
            self.begin_function(s, key, defined)
        return status

    cdef inline void begin_function(self, uint32_t name, uint64_t key, bint defined) noexcept nogil:
        self.file = self.home()
        self.fn_name = name
        self.fn_file = self.file
        self.fn_object = self.object
        self.fn_key = key
        self.fn_defined = defined
        self.function = UNRESOLVED
        self.in_function = True
        self.has_callee = False

    cdef inline uint32_t home(self) noexcept nogil:
        """The file of a function that is named now."""
        # lsprofcalltree and its kin write only fi=
        return self.block_file if self.block_file != NO_FILE else self.file

    cdef int jfn_line(self, const uint8_t *p, const uint8_t *stop, uint64_t offset, fp_err *err) noexcept nogil:
        cdef uint32_t s = 0
        cdef uint64_t key = 0
        cdef fp_number *e
        cdef int status = self.name(p + 4, stop, FN, offset, &s, &key, NULL, err)
        if status == OK:
            # A jump does not say where its function is, so it finds but never binds.
            self.jfn = UNRESOLVED
            if key:
                e = fp_numbers_find(&self.numbers[FN], key - 1)
                if e == NULL:
                    return FP_E_NOMEM
                self.jfn = UNRESOLVED if e.again else e.function
            if self.jfn == UNRESOLVED:
                self.jfn = fp_model_function(self.model, self.object, self.jfi if self.has_jfi else self.file, s, 0, 0)
            if self.jfn == FP_NO_ID:
                return FP_E_NOMEM
            self.has_jfn = True
        return status

    cdef int context_line(self, const uint8_t *p, const uint8_t *stop, uint64_t offset, fp_err *err) noexcept nogil:
        # --mangle-names=no: rec= and frfn= (the caller) tell blocks of a function apart, but no call says which
        # of them it enters; so all are that function.  A number may be defined here.
        cdef uint32_t caller = 0
        cdef int status = self.name(p, stop, FN, offset, &caller, NULL, NULL, err)
        self.contexts += status == OK
        return status

    cdef uint32_t lookup(self, uint32_t name, uint64_t key, uint32_t file, bint file_said, uint32_t object,
                         bint object_said) noexcept nogil:
        """The function of a name in a file and object; one that is bound to the number if nothing that was
        said contradicts it.  FP_NO_ID when memory ran out."""
        cdef fp_number *e = NULL
        cdef uint32_t function
        cdef bint same
        if key:
            e = fp_numbers_find(&self.numbers[FN], key - 1)
            if e == NULL:
                return FP_NO_ID
            if e.again:
                same = e.file == file and e.object == object
            else:
                same = ((not file_said or e.file == file or self.binds)
                        and (not object_said or e.object == object or e.object_assumed))
            if same and e.function != UNRESOLVED and e.name == name:
                if e.again:
                    e.again = False
                    e.object_assumed = not object_said
                return e.function
        function = fp_model_function(self.model, object, file, name, 0, 0)
        # by now the number may have been defined as another one
        if e != NULL and e.name == name and function != FP_NO_ID:
            e.function = function
            e.file = file
            e.object = object
            e.object_assumed = not object_said
            e.again = False
        return function

    cdef int resolve(self) noexcept nogil:
        """Look up the current function, now that it has a row."""
        cdef uint32_t function
        self.body = True
        if not self.in_function:
            self.outside += 1
            if not self.numbered:
                # what the newer cg_annotate calls it
                self.fn_name = fp_strings_intern(&self.model.strings, b"<unspecified>", 13)
                if self.fn_name == FP_NO_ID:
                    return FP_E_NOMEM
            self.fn_file = self.home()
            self.fn_object = self.object
        function = self.lookup(self.fn_name, self.fn_key, self.fn_file, True, self.fn_object, True)
        if function == FP_NO_ID:
            return FP_E_NOMEM
        self.function = function
        return OK

    cdef inline bint block_is_due(self) noexcept nogil:
        """Was the current function named, not defined, and given no row?"""
        return self.function == UNRESOLVED and not self.fn_defined and self.in_function and self.has_events

    cdef int flush_block(self, fp_batch *b) noexcept nogil:
        """A function that was named without rows becomes a row of its own."""
        cdef int status
        if not self.block_is_due():
            return OK
        if b.n == b.cap:
            return FP_FULL
        status = self.resolve()
        if status != OK:
            return status
        b.file[self.row(b, FP_BLOCK, 0)] = self.fn_file  # self.file may be that of the block that follows
        return OK

    cdef int finish_block(self, fp_batch *b, fp_err *err) noexcept nogil:
        cdef int status
        if self.pending != FP_COST:
            status = fp_fail(err, FP_E_TRUNCATED, self.pending_offset, "no cost line follows this line")
            err.line = self.pending_line
            if not self.lenient:
                return status
            self.skipped += 1
            self.pending = FP_COST
        status = self.flush_block(b)
        return FP_DONE if status == OK else status

    # ---- positions and counts ------------------------------------------------

    cdef uint32_t row(self, fp_batch *b, uint32_t kind, uint32_t n_counts) noexcept nogil:
        """Begin a row with the current names, which has its first counts already."""
        cdef uint32_t i = b.n, k
        b.n += 1
        b.kind[i] = kind
        b.function[i] = self.function
        b.file[i] = self.file
        b.line[i] = 0
        b.address[i] = 0
        b.bb[i] = 0
        for k in range(n_counts, b.n_values):
            b.values[<size_t>k * b.cap + i] = 0
        return i

    cdef int positions(self, const uint8_t **at, const uint8_t *stop, uint64_t offset, fp_position *to,
                       fp_err *err) noexcept nogil:
        """As many positions as the part has columns; missing ones are 0."""
        cdef int status
        to.address = to.bb = to.line = 0
        if self.costs.instr:
            status = self.position(at, stop, offset, self.costs.base.address, <uint64_t>-1, &to.address, err)
            if status != OK:
                return status
        if self.costs.bb:
            status = self.position(at, stop, offset, self.costs.base.bb, <uint64_t>-1, &to.bb, err)
            if status != OK:
                return status
        if self.costs.lines:
            return self.position(at, stop, offset, self.costs.base.line, 0xffffffff, &to.line, err)
        return OK

    cdef int position(self, const uint8_t **at, const uint8_t *stop, uint64_t offset, uint64_t base,
                      uint64_t limit, uint64_t *to, fp_err *err) noexcept nogil:
        cdef const uint8_t *p = blanks(at[0])
        cdef const uint8_t *first = p
        cdef uint64_t v = 0, ignored
        cdef bint fits = True
        if p >= stop or p[0] == c'#':
            at[0] = p
            return OK
        if p[0] == c'*':
            v = base
            p += 1
        elif p[0] == c'+':
            p = unsigned_number(p + 1, &v, &fits)
            if fp_uadd_overflows(base, v, &v):
                fits = False
        elif p[0] == c'-':
            p = unsigned_number(p + 1, &v, &fits)
            if v > base and limit >> 32:
                fits = False
            elif v > base:
                # -1 is how Lua and V8 say that there is no line
                self.before_zero += 1
                v = base
            v = base - v
        else:
            p = unsigned_number(p, &v, &fits)
            if p != NULL and (p[0] == c'+' or p[0] == c'-' or p[0] == c':'):
                # KCachegrind's ranges: the first position stands for all
                p = unsigned_number(p + 1, &ignored, &fits)
                self.ranges += 1
        if p == NULL or not (p >= stop or p[0] == c' ' or p[0] == c'\t'):
            fp_fail_text(err, FP_E_MALFORMED, offset, 0, "position", first, stop - first,
                         "a number, +number, -number or *")
            return BAD
        if not fits or v > limit:
            fp_fail_text(err, FP_E_OVERFLOW, offset, 0, "position", first, p - first,
                         "0..2^32-1 for a line, 0..2^64-1 for an address")
            return BAD
        to[0] = v
        at[0] = p
        return OK

    cdef int position_line(self, const uint8_t *p, const uint8_t *stop, uint64_t offset, fp_batch *b,
                           fp_err *err) noexcept nogil:
        cdef const uint8_t *first
        cdef fp_position here
        cdef uint32_t i, k, kind
        cdef uint64_t v
        cdef int64_t x
        cdef bint fits, negative
        cdef int status
        if not self.has_events:
            fp_fail_text(err, FP_E_MALFORMED, offset, 0, "line before `events:`", p, stop - p, "a header line")
            return BAD
        if self.pending == DISCARD:
            # its calls= or jump= line was skipped: it is not self cost
            self.pending = FP_COST
            self.skipped += 1
            return OK
        if b.n == b.cap:
            return FP_FULL
        if self.function == UNRESOLVED:
            status = self.resolve()
            if status != OK:
                return status
        kind = self.pending
        self.pending = FP_COST  # also when this line is skipped
        status = self.positions(&p, stop, offset, &here, err)
        if status != OK:
            return status
        if kind == FP_COST:
            self.costs.base = here  # also when its counts are not understood
        i = b.n
        k = 0
        while kind < FP_JUMP:
            p = blanks(p)
            if p >= stop:
                break
            if p[0] == c'#':
                self.trailing += 1
                break
            first = p
            fits = True
            negative = p[0] == c'-'
            if p[0] == c'.' and not fp_is_digit(p[1]):
                v = 0
                p += 1
            else:
                p = self.count_number(p + negative, &v, &fits)
            if p == NULL or not (p >= stop or p[0] == c' ' or p[0] == c'\t'):
                fp_fail_text(err, FP_E_MALFORMED, offset, 0, "count", first, stop - first, "a number")
                return BAD
            if k == self.costs.n_values:
                fp_fail_text(err, FP_E_MALFORMED, offset, 0, "count beyond the last event", first, stop - first,
                             "as many counts as events")
                return BAD
            if not fits or v > <uint64_t>0x7fffffffffffffff:
                fp_fail_text(err, FP_E_OVERFLOW, offset, 0, "count", first, p - first, "at most 2^63 - 1")
                return BAD
            x = -<int64_t>v if negative else <int64_t>v
            b.values[<size_t>k * b.cap + i] = x
            k += 1
        if kind >= FP_JUMP and blanks(p) < stop:
            self.extra_numbers += 1  # a jump costs nothing
        self.row(b, kind, k)
        b.address[i] = here.address
        b.bb[i] = here.bb
        b.line[i] = <uint32_t>here.line
        if kind == FP_COST:
            while k:
                k -= 1
                fp_costs_add(&self.costs, k, b.values[<size_t>k * b.cap + i])
            return OK
        self.finish_row(b, i, kind)
        return OK

    cdef const uint8_t *count_number(self, const uint8_t *p, uint64_t *to, bint *fits) noexcept nogil:
        """A number of any length; one with a fraction or exponent, as printf's %g writes it, is rounded."""
        cdef bint whole_fits = True
        cdef const uint8_t *behind = unsigned_number(p, to, &whole_fits)
        cdef uint8_t next = p[0] if behind == NULL else behind[0]
        if next == c'.' or (behind != NULL and (next | 0x20) == c'e'):
            behind = rounded_number(p, to, fits)
            if behind != NULL:
                if not self.rounded:
                    self.first_rounded = self.line
                self.rounded += 1
        elif not whole_fits:
            fits[0] = False
        return behind

    cdef int count_line(self, const uint8_t *p, const uint8_t *stop, uint64_t offset, uint32_t kind,
                        fp_err *err) noexcept nogil:
        """What follows calls=, jump= or jcnd=."""
        cdef const uint8_t *first = p
        cdef bint fits = True
        cdef int status
        cdef uint32_t was = self.pending
        self.body = True
        self.pending = DISCARD
        if was != FP_COST:
            status = fp_fail(err, FP_E_MALFORMED, self.pending_offset, "no cost line follows this line")
            if not self.lenient:
                self.line = self.pending_line
                return BAD
            self.skipped += 1
        self.pending_line = self.line
        self.pending_offset = offset
        self.count2 = 0
        p = self.count_number(blanks(p), &self.count, &fits)
        if p != NULL and kind == FP_JCND:
            # 3/4, or 3 4 as the format document has it
            p = self.count_number(blanks(p + (p[0] == c'/')), &self.count2, &fits)
        if p == NULL or not (p >= stop or p[0] == c' ' or p[0] == c'\t'):
            fp_fail_text(err, FP_E_MALFORMED, offset, 0, "count of calls or jumps", first, stop - first, "a number")
            return BAD
        if not fits:
            fp_fail_text(err, FP_E_OVERFLOW, offset, 0, "count of calls or jumps", first, stop - first,
                         "below 2^64")
            return BAD
        status = self.positions(&p, stop, offset, &self.target, err)
        if status != OK:
            return status
        if blanks(p) < stop:
            self.extra_numbers += 1
        if kind == FP_CALL:
            status = self.resolve_callee()
            if status != OK:
                return status
        self.pending = kind
        return OK

    cdef int resolve_callee(self) noexcept nogil:
        if not self.has_callee:
            self.unnamed_callees += 1
            self.callee_name = 0
            self.callee_key = 0
            self.callee = UNRESOLVED
        if self.callee == UNRESOLVED or self.has_cob or self.has_cfi:
            self.callee = self.lookup(self.callee_name, self.callee_key, self.cfi if self.has_cfi else self.file,
                                      self.has_cfi, self.cob if self.has_cob else self.object, self.has_cob)
            if self.callee == FP_NO_ID:
                return FP_E_NOMEM
            self.has_cob = self.has_cfi = False
        self.called = self.callee
        return OK
