# Blanks and tabs between the words of a line.
from libc.stdint cimport uint8_t


cdef inline bint is_blank(uint8_t c) noexcept nogil:
    return c == c' ' or c == c'\t'


cdef inline const uint8_t *skip_blanks(const uint8_t *p, const uint8_t *stop) noexcept nogil:
    """The first byte of p up to `stop` that is not a blank; `stop` if all are blanks."""
    while p != stop and is_blank(p[0]):
        p += 1
    return p


cdef inline const uint8_t *strip_blanks(const uint8_t *p, const uint8_t *stop) noexcept nogil:
    """The end of p up to `stop` without its trailing blanks."""
    while stop != p and is_blank((stop - 1)[0]):
        stop -= 1
    return stop
