# Columns as numbers or as ids of strings: see _columns.pyx.
from libc.stdint cimport int64_t, uint8_t, uint32_t

from fastprof.core.fp cimport fp_model


cdef uint32_t id_of(fp_model *m, object text, str what, Py_ssize_t row) except? 0xffffffff

cdef class Cells:
    cdef Py_ssize_t n
    cdef int64_t *numbers
    cdef uint32_t *texts
    cdef uint8_t *absent  # by row; NULL: no number is missing
    cdef int hold(self, Py_ssize_t n, bint texts) except -1
    cdef int miss(self, Py_ssize_t row) except -1
