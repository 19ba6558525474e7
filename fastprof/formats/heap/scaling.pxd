# From what was sampled to what there was.
from libc.math cimport exp
from libc.stdint cimport int64_t, uint64_t

from fastprof.formats.heap.lines cimport fp_heap_multiply


cdef inline int64_t bytes_of_object(const int64_t *v) noexcept nogil:
    """Bytes of an object, before scaling: of those in use, else of those allocated; rounded toward zero."""
    cdef int k = 0 if v[0] != 0 else 2
    if v[k] == 0:
        return 0
    return <int64_t>(0 - <uint64_t>v[k + 1]) if v[k] == -1 else v[k + 1] // v[k]


cdef inline bint scale(int64_t *count, int64_t *size, int64_t rate) noexcept nogil:
    """All objects of that size, of which one in `rate` bytes was sampled (as pprof's scaleHeapSample).

    Whether they fit:  1 object of 100,000 bytes at 65,536:  1 / (1 - exp(-100000 / 65536)) = 1.27784 objects
    """
    cdef double factor, c, s
    if rate <= 0:  # not sampled
        return True
    if count[0] == 0 or size[0] == 0:
        count[0] = size[0] = 0
        return True
    if rate == 1:
        return True
    factor = 1 / (1 - exp(-(<double>size[0] / <double>count[0]) / <double>rate))
    c, s = <double>count[0] * factor, <double>size[0] * factor
    if not (-9.2233720368547748e18 < c < 9.2233720368547748e18 and -9.2233720368547748e18 < s < 9.2233720368547748e18):
        return False
    count[0], size[0] = <int64_t>c, <int64_t>s
    return True


cdef inline bint scale_pairs(int64_t *v, int64_t rate) noexcept nogil:
    """Both pairs of a row, which are often equal.  Whether they fit."""
    cdef bint equal = v[2] == v[0] and v[3] == v[1]
    if not scale(&v[0], &v[1], rate):
        return False
    if equal:
        v[2], v[3] = v[0], v[1]
        return True
    return scale(&v[2], &v[3], rate)


cdef inline bint contention(int64_t *v, int64_t period, int64_t hertz, bint java) noexcept nogil:
    """v: contentions, delay.  Whether the scaled ones fit."""
    cdef double delay
    if period <= 0:
        return True
    if java and fp_heap_multiply(&v[1], period):
        return False
    if not java and hertz > 0:
        delay = <double>v[1] * <double>period / (<double>hertz / 1e9)
        if not delay < 9.2233720368547748e18:
            return False
        v[1] = <int64_t>delay
    return not fp_heap_multiply(&v[0], period)
