# The words of a line.  Each function gets [p, stop) and returns the byte after what it read, NULL if that is not there.
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memchr, memcmp, strlen

from fastprof.core.blanks cimport is_blank, skip_blanks
from fastprof.core.fp cimport fp_hexadecimal, fp_is_digit, fp_nibble


cdef extern from *:
    """
    static inline int fp_heap_add(int64_t *sum, int64_t v) {
        return __builtin_add_overflow(*sum, v, sum);
    }
    static inline int fp_heap_multiply(int64_t *v, int64_t factor) {
        return __builtin_mul_overflow(*v, factor, v);
    }
    """
    bint fp_heap_add(int64_t *sum, int64_t v) nogil  # sum += v; whether it overflows
    bint fp_heap_multiply(int64_t *v, int64_t factor) nogil


cdef inline bint begins(const uint8_t *p, const uint8_t *stop, const char *text) noexcept nogil:
    cdef size_t n = strlen(text)
    return <size_t>(stop - p) >= n and memcmp(p, text, n) == 0


cdef inline const uint8_t *expect(const uint8_t *p, const uint8_t *stop, uint8_t c) noexcept nogil:
    """A byte, perhaps after blanks."""
    p = skip_blanks(p, stop)
    if p == stop or p[0] != c:
        return NULL
    return p + 1


cdef inline const uint8_t *whole_number(const uint8_t *p, const uint8_t *stop, int64_t *to,
                                        bint *overflows) noexcept nogil:
    """A decimal number, perhaps after blanks, perhaps negative.  `overflows` becomes true beyond 63 bits."""
    cdef const uint8_t *first
    cdef uint64_t v = 0
    cdef bint negative
    p = skip_blanks(p, stop)
    negative = p != stop and p[0] == c'-'
    p += negative
    first = p
    while p != stop and fp_is_digit(p[0]):
        if v > 922337203685477579UL:  # times 10 plus 9 would not fit
            if v != 922337203685477580UL or p[0] > c'7':
                overflows[0] = True
                v = 0
        v = v * 10 + (p[0] - c'0')
        p += 1
    to[0] = -<int64_t>v if negative else <int64_t>v
    if p == first:
        return NULL
    return p


cdef inline const uint8_t *hex_number(const uint8_t *p, const uint8_t *stop, uint64_t *to,
                                      bint *overflows) noexcept nogil:
    """0x7fbd1344524a"""
    cdef const uint8_t *first
    to[0] = 0
    if stop - p < 3 or p[0] != c'0' or p[1] != c'x':
        return NULL
    p += 2
    first = p
    if fp_hexadecimal(&p, stop, to):
        overflows[0] = True
    if p == first:
        return NULL
    return p


cdef inline const uint8_t *pair(const uint8_t *p, const uint8_t *stop, int64_t *count, int64_t *size,
                                bint *overflows) noexcept nogil:
    """`64:  6434272`: objects and bytes."""
    p = whole_number(p, stop, count, overflows)
    if p != NULL:
        p = expect(p, stop, c':')
    if p != NULL:
        p = whole_number(p, stop, size, overflows)
    return p


cdef inline const uint8_t *two_pairs(const uint8_t *p, const uint8_t *stop, int64_t *v, bint *overflows) noexcept nogil:
    """`64: 6434272 [ 64: 6434272]`: in use, and allocated, which is never negative."""
    cdef const uint8_t *first = skip_blanks(p, stop)
    cdef const uint8_t *q
    cdef size_t n
    p = pair(first, stop, &v[0], &v[1], overflows)
    if p == NULL:
        return NULL
    n = p - first
    p = expect(p, stop, c'[')
    if p != NULL:
        q = skip_blanks(p, stop)
        if <size_t>(stop - q) > n and memcmp(q, first, n) == 0 and q[n] == c']' and v[0] >= 0 and v[1] >= 0:
            v[2], v[3] = v[0], v[1]  # the same text
            return q + n + 1
        p = pair(p, stop, &v[2], &v[3], overflows)
    if p == NULL or v[2] < 0 or v[3] < 0:
        return NULL
    return expect(p, stop, c']')


cdef struct GoPlace:
    const uint8_t *name
    size_t name_n
    const uint8_t *file
    size_t file_n
    uint32_t line


cdef inline void go_place(const uint8_t *p, const uint8_t *stop, GoPlace *to) noexcept nogil:
    """`main.leak+0x2e		./prof.go:5`, the function, where in its code, and its file and line."""
    cdef const uint8_t *end = <const uint8_t *>memchr(p, c'\t', stop - p)
    cdef const uint8_t *q
    cdef int64_t line = 0
    cdef bint overflows = False
    if end == NULL:
        end = stop
    to.file = skip_blanks(end, stop)
    q = stop
    while q != to.file and fp_is_digit((q - 1)[0]):
        q -= 1
    if q == to.file or q == stop or (q - 1)[0] != c':':
        q = stop
    elif whole_number(q, stop, &line, &overflows) != NULL:
        q -= 1
    to.file_n = q - to.file
    to.line = 0 if overflows or line > 0x7fffffff else <uint32_t>line
    q = end
    while q != p and fp_nibble((q - 1)[0]) < 16:
        q -= 1
    if q - p > 3 and (q - 1)[0] == c'x' and (q - 2)[0] == c'0' and (q - 3)[0] == c'+':
        end = q - 3
    to.name, to.name_n = p, end - p
