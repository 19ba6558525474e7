# Call chains that occurred before, which most samples have: looked up by their text, in one piece.  Names of threads.
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memchr, memset

from fastprof.core.fp cimport *


cdef enum:
    LONGEST_CHAIN = 1 << 16  # bytes of a chain that is looked up whole
    CHAIN_BYTES = 1 << 24  # of all of these; then the cache is cleared


cdef struct Comms:  # by thread: its last name
    uint32_t *p
    uint32_t cap


cdef inline bint note_comm(Comms *comms, uint32_t thread, uint32_t comm) noexcept nogil:
    """Whether there was memory, and a thread."""
    if thread == FP_NO_ID or fp_array_zeroed(&comms.p, &comms.cap, <uint64_t>thread + 1, sizeof(uint32_t)):
        return False
    if thread:
        comms.p[thread] = comm
    return True


cdef struct Chain:
    uint32_t stack  # 0: not known yet
    uint32_t n_frames  # the lines it has


cdef struct Chains:
    fp_strings texts
    Chain *rows  # by text
    uint32_t cap
    size_t nbytes


cdef inline void forget_chains(Chains *c) noexcept nogil:
    fp_strings_empty(&c.texts)
    if c.cap:
        memset(c.rows, 0, c.cap * sizeof(Chain))
    c.nbytes = 0


cdef inline int find_chain(Chains *c, const uint8_t *p, const uint8_t **next, const uint8_t *end,
                           uint32_t *found) noexcept nogil:
    """Sets *found to the chain that begins at p; *next, the line after its first, moves past it if it has a stack.

    It is one if its lines begin with tabs and an empty line follows; *found is 0 for other text, and for chains that
    are too long or have carriage returns, which are counted.  0, or FP_E_NOMEM.
    """
    cdef const uint8_t *q = next[0]
    cdef uint32_t n = 1
    found[0] = 0
    while q < end and q[0] == c'\t':
        q = <const uint8_t *>memchr(q, c'\n', end - q)
        if q == NULL:
            return 0
        q += 1
        n += 1
    if q == end or q[0] != c'\n' or q - p > LONGEST_CHAIN:
        return 0
    if c.nbytes > CHAIN_BYTES:
        forget_chains(c)
    found[0] = fp_strings_intern(&c.texts, p, q - p)
    if found[0] == FP_NO_ID or fp_array_zeroed(&c.rows, &c.cap, <uint64_t>found[0] + 1, sizeof(Chain)):
        return FP_E_NOMEM
    if c.rows[found[0]].stack:
        next[0] = q
        return 0
    c.nbytes += q - p
    c.rows[found[0]].n_frames = n
    if memchr(p, c'\r', q - p) != NULL:
        found[0] = 0
    return 0
