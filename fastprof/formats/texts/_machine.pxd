# The machine that readers of text lines share (_machine.pyx).
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from fastprof.core.fp cimport *


# Counts of all formats of this folder; those of others stay 0.
cdef struct Counts:
    uint64_t blank_lines
    uint64_t carriage_returns
    uint64_t unreadable_lines  # lenient
    uint64_t stacks_without_value  # lenient: stacks without a value
    uint64_t other_lines  # lines that are not of a stack
    uint64_t maps_without_stacks  # values
    uint64_t memory_figures


# Where a frame is: model ids.
cdef struct Place:
    uint32_t object
    uint32_t file
    uint32_t line


cdef class Lines:
    cdef fp_model *model
    cdef bint lenient
    cdef Counts seen
    cdef uint64_t line  # number of the line that is read
    cdef uint64_t at  # its offset
    cdef const uint8_t *first  # its text
    cdef bint whole  # it ends in a newline
    cdef uint32_t *frames  # of the open stack
    cdef uint32_t n_frames, cap_frames
    cdef uint32_t kept  # a stack to go on from, which the model keeps until `feed` returns; 0 = none
    cdef uint32_t under  # the stack that frames of a row are called by; 0 = none
    cdef fp_strings texts  # of frames that were read before
    cdef uint32_t *known  # by text: the frame, 0 = none yet
    cdef uint32_t cap_known

    cdef int read_line(self, const uint8_t *p, const uint8_t *stop, fp_batch *b, fp_err *err) noexcept nogil
    cdef int at_end(self, fp_batch *b, fp_err *err) noexcept nogil
    cdef int window(self, fp_window *in_, fp_batch *b, fp_err *err) noexcept nogil
    cdef int bad(self, fp_err *err, const char *what, const uint8_t *p, const uint8_t *stop,
                 const char *want) noexcept nogil
    cdef int push(self, uint32_t frame, fp_err *err) noexcept nogil
    cdef int row(self, uint32_t start, bint leaf_first, int64_t value, fp_batch *b, fp_err *err) noexcept nogil
    cdef uint32_t stack(self, uint32_t node, uint32_t start, uint32_t n, bint leaf_first) noexcept nogil
    cdef uint32_t text(self, const uint8_t *p, const uint8_t *stop) noexcept nogil
    cdef uint32_t seen_as(self, const uint8_t *p, const uint8_t *stop, uint32_t *id) noexcept nogil
    cdef uint32_t frame(self, const uint8_t *p, const uint8_t *stop, Place place) noexcept nogil
    cdef uint32_t object(self, const uint8_t *p, const uint8_t *stop) noexcept nogil


cdef inline int no_memory(fp_err *err) noexcept nogil:
    return fp_fail(err, FP_E_NOMEM, 0, "memory")


cdef inline bint all_digits(const uint8_t *p, const uint8_t *stop) noexcept nogil:
    if p == stop:
        return False
    while p != stop and fp_is_digit(p[0]):
        p += 1
    return p == stop
