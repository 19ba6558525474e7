"""Numbers in a line, in every form that the grammar has: positions and counts.

Part of _lexer.pyx, and the lowest of its files: the statuses and the counts that all of them use are here, too.

The functions get only whole lines, which end in a newline, so their loops need no check for the end of the text: the
newline stops them.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from fastprof.core.fp cimport *
from fastprof.formats.callgrind.c cimport *

cdef extern from *:
    """
    #define fp_uadd_overflows(a, b, to) __builtin_add_overflow(a, b, to)
    """
    bint fp_uadd_overflows(uint64_t a, uint64_t b, uint64_t *to) nogil

# Statuses in addition to fp_status, of the lexer only.
cdef enum:
    OK = 100
    BAD = 101  # err is filled in; the line can be skipped


cdef struct Counts:
    # Repairs, omissions and losses so far.
    uint64_t unreadable_lines         # lines, and numbers of names, that could not be read
    uint64_t indented_lines           # lines
    uint64_t position_ranges          # positions like 10-20 or 10:20; the first number is used
    uint64_t negative_lines           # relative lines that end up below 0
    uint64_t unknown_positions        # positions written as question marks
    uint64_t extra_numbers            # calls= or jump lines with more numbers than they need
    uint64_t unnamed_callees          # calls= without cfn=
    uint64_t costs_outside_functions  # blocks of cost lines outside any function
    uint64_t composed_names           # names composed of numbered ones,
    uint64_t long_composed_names      # and composed names that would be too long
    uint64_t rounded_counts           # counts with a fraction or exponent,
    uint64_t first_rounded            # and the line of the first
    uint64_t caller_contexts          # rec= and frfn= lines
    uint64_t trailing_comments        # comments after the counts of a line
    uint64_t excess_comments          # comments that were not passed to the reader


cdef struct Wrapped:
    # Counts of more than 2^63 in this part.  They are read as 2^64 less: as negative numbers that were written
    # unsigned.  The sums at the part's end show whether that is right.
    uint64_t n
    uint64_t first         # the first of them as written,
    uint64_t line, offset  # and its place


cdef inline bint begins_cost(uint8_t c) noexcept nogil:
    """Is this how a position begins?"""
    return fp_is_digit(c) or c == c'+' or c == c'-' or c == c'*' or c == c'?'


cdef inline const uint8_t *blanks(const uint8_t *p) noexcept nogil:
    """The first byte after the blanks at p."""
    while p[0] == c' ' or p[0] == c'\t':
        p += 1
    return p


cdef inline bint ends_word(const uint8_t *p, const uint8_t *stop) noexcept nogil:
    return p >= stop or p[0] == c' ' or p[0] == c'\t'


# ---- one number -----------------------------------------------------------
# Each function returns the first byte after the number, or NULL if there is none.  A number that is too large sets
# fits[0] to False.

cdef inline const uint8_t *unsigned_number(const uint8_t *p, uint64_t *to, bint *fits) noexcept nogil:
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
    while fp_is_digit(p[0]):
        d = p[0] - 48
        if v > (<uint64_t>0xffffffffffffffff - d) // 10:
            fits[0] = False
        v = v * 10 + d
        p += 1
    to[0] = v
    return p if p != first else NULL


cdef inline const uint8_t *rounded_number(const uint8_t *p, uint64_t *to, bint *fits) noexcept nogil:
    """Decimal with a fraction, an exponent or both, as the nearest whole number, half to even: exact at any length."""
    cdef const uint8_t *first = p
    cdef const uint8_t *stop
    cdef int64_t whole, exponent = 0  # `whole`: digits left before the point
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


cdef inline const uint8_t *count_number(Counts *counts, uint64_t line, const uint8_t *p, uint64_t *to,
                                        bint *fits) noexcept nogil:
    """A number of any length; one with a fraction or exponent, as printf's %g writes it, is rounded."""
    cdef bint whole_fits = True
    cdef const uint8_t *after = unsigned_number(p, to, &whole_fits)
    cdef uint8_t next = p[0] if after == NULL else after[0]
    if next == c'.' or (after != NULL and (next | 0x20) == c'e'):
        after = rounded_number(p, to, fits)
        if after != NULL:
            if not counts.rounded_counts:
                counts.first_rounded = line
            counts.rounded_counts += 1
    elif not whole_fits:
        fits[0] = False
    return after


# ---- positions ------------------------------------------------------------

cdef inline int position(Counts *counts, const uint8_t **at, const uint8_t *stop, uint64_t offset, uint64_t base,
                         uint64_t limit, uint64_t *to, fp_err *err) noexcept nogil:
    """The position at at[0], which moves past it, relative to `base` if it is written so.  At the end of the
    text, `stop`, or at a comment there is none, and to[0] stays as it is.  OK or BAD."""
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
            # Lua and V8 write -1 for no line
            counts.negative_lines += 1
            v = base
        v = base - v
    elif p[0] == c'?':
        # old pprof writes the `??:?` of addr2line
        while p[0] == c'?':
            p += 1
        counts.unknown_positions += 1
    else:
        p = unsigned_number(p, &v, &fits)
        if p != NULL and (p[0] == c'+' or p[0] == c'-' or p[0] == c':'):
            # KCachegrind's ranges: only the first position is used
            p = unsigned_number(p + 1, &ignored, &fits)
            counts.position_ranges += 1
    if p == NULL or not ends_word(p, stop):
        fp_fail_text(err, FP_E_MALFORMED, offset, 0, "position", first, stop - first,
                     "a number, +number, -number, * or ?")
        return BAD
    if not fits or v > limit:
        fp_fail_text(err, FP_E_OVERFLOW, offset, 0, "position", first, p - first,
                     "0..2^32-1 for a line, 0..2^64-1 for an address")
        return BAD
    to[0] = v
    at[0] = p
    return OK


cdef inline int positions(const fp_callgrind_costs *costs, Counts *counts, const uint8_t **at, const uint8_t *stop,
                          uint64_t offset, fp_callgrind_position *to, fp_err *err) noexcept nogil:
    """As many positions as the part has columns; missing ones are 0.  OK or BAD."""
    cdef int status
    to.address = to.bb = to.line = 0
    if costs.instr:
        status = position(counts, at, stop, offset, costs.base.address, <uint64_t>-1, &to.address, err)
        if status != OK:
            return status
    if costs.bb:
        status = position(counts, at, stop, offset, costs.base.bb, <uint64_t>-1, &to.bb, err)
        if status != OK:
            return status
    if costs.lines:
        return position(counts, at, stop, offset, costs.base.line, 0xffffffff, &to.line, err)
    return OK
