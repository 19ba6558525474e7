"""Graph rows -> the body lines of a Callgrind part, and those of Cachegrind.

write.py and cachegrind.py write the lines that occur once per part; this file and csrc/callgrind/write.c those that
occur once per row, without the GIL.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memcpy, memset

from fastprof.core.fp cimport *
from fastprof.formats.callgrind.c cimport *

cdef class Body:
    """Writes rows of graph batches into a `struct fp_buf`, part by part.

    Borrows the model and the buffer, whose addresses it is given.
    """

    cdef fp_callgrind_body body
    cdef int64_t *sums          # of the self costs of this part
    cdef readonly bint overflowed  # a sum passed 2^63 - 1

    def __cinit__(self, size_t model, size_t out, bint compress_names, bint compress_positions):
        self.body.model = <fp_model *>model
        self.body.out = <fp_buf *>out
        self.body.compress_names = compress_names
        self.body.compress_positions = compress_positions
        self.body.wide = fp_callgrind_costs_wide()

    def __dealloc__(self):
        free(self.sums)
        fp_callgrind_body_free(&self.body)

    @property
    def wide(self) -> int:
        """Writes counts by: 0, baseline; 1, AVX2; 2, AVX-512.  Limited to what the machine has."""
        return self.body.wide

    @wide.setter
    def wide(self, uint32_t wide):
        self.body.wide = min(wide, fp_callgrind_costs_wide())

    @property
    def escaped(self) -> int:
        """Names that held a newline, CR or NUL."""
        return sum([self.body.line_names[kind].escaped for kind in range(FP_NAMED_KINDS)])

    def start_part(self, uint32_t n_values, bint instr, bint bb, bint lines, bint all_counts) -> None:
        """Begin a part: names are defined again, sums start at 0."""
        cdef int64_t *sums = <int64_t *>realloc(self.sums, (n_values + 1) * sizeof(int64_t))
        if sums == NULL:
            raise MemoryError("no memory for a part's totals")
        memset(sums, 0, (n_values + 1) * sizeof(int64_t))
        self.sums = sums
        self.overflowed = False
        fp_callgrind_body_start_part(&self.body, n_values, instr, bb, lines, all_counts)

    def end_part(self) -> list[int]:
        """End the last block.  Returns the sums of the part's self costs."""
        if fp_callgrind_body_end_part(&self.body):
            raise MemoryError("no memory for output")
        return [self.sums[k] for k in range(self.body.n_values)]

    def put(self, size_t batch) -> None:
        """Append the rows of a `struct fp_batch` of the current part, which must have as many values."""
        cdef int status
        if (<const fp_batch *>batch).n and (<const fp_batch *>batch).n_values < self.body.n_values:
            raise ValueError("a batch has fewer values than its part has value types")
        with nogil:
            status = fp_callgrind_body_put(&self.body, <const fp_batch *>batch)
            if fp_batch_add_self(<const fp_batch *>batch, self.sums, self.body.n_values):
                self.overflowed = True
        if status:
            raise MemoryError("no memory for output")


cdef class CostLines:
    """Writes rows of self cost into a `struct fp_buf` as Cachegrind has them: every count of every
    line, names in full, no relative positions.  Borrows the model and the buffer."""

    cdef fp_model *model
    cdef fp_buf *out
    cdef fp_callgrind_body body
    cdef uint32_t function, file, n_values
    cdef int64_t *sums
    cdef readonly bint overflowed  # a sum passed 2^63 - 1

    def __cinit__(self, size_t model, size_t out, uint32_t n_values):
        self.model = <fp_model *>model
        self.out = self.body.out = <fp_buf *>out
        self.n_values = n_values
        self.body.wide = fp_callgrind_costs_wide()
        fp_callgrind_body_start_part(&self.body, n_values, False, False, True, True)
        self.function = self.file = FP_NO_ID
        self.sums = <int64_t *>calloc(n_values + 1, sizeof(int64_t))
        if self.sums == NULL:
            raise MemoryError("no memory for totals")

    def __dealloc__(self):
        free(self.sums)
        fp_callgrind_body_free(&self.body)

    @property
    def escaped(self) -> int:
        """Names that held a newline, CR or NUL."""
        return self.body.line_names[FP_NAMED_FILE].escaped + self.body.line_names[FP_NAMED_FUNCTION].escaped

    @property
    def wide(self) -> int:
        """Writes counts by: 0, baseline; 1, AVX2; 2, AVX-512.  Limited to what the machine has."""
        return self.body.wide

    @wide.setter
    def wide(self, uint32_t wide):
        self.body.wide = min(wide, fp_callgrind_costs_wide())

    @property
    def totals(self) -> list[int]:
        """The sums of all rows."""
        return [self.sums[k] for k in range(self.n_values)]

    def put(self, size_t batch) -> None:
        """Append the rows of a `struct fp_batch`, all of them costs, of as many values as there are sums."""
        cdef int status
        if (<const fp_batch *>batch).n and (<const fp_batch *>batch).n_values < self.n_values:
            raise ValueError("a batch has fewer values than its part has value types")
        with nogil:
            status = self.rows(<const fp_batch *>batch)
            if fp_batch_add_self(<const fp_batch *>batch, self.sums, self.n_values):
                self.overflowed = True
        if status:
            raise MemoryError("no memory for output")

    cdef int name(self, const char *key, int kind, uint32_t string) noexcept nogil:
        cdef size_t n
        cdef const uint8_t *text = fp_callgrind_line_name(&self.body.line_names[kind], &self.model.strings, string, &n)
        cdef uint8_t *p
        if text == NULL or fp_buf_reserve(self.out, n + 8):
            return FP_E_NOMEM
        p = self.out.p + self.out.n
        memcpy(p, key, 3)
        memcpy(p + 3, text, n)
        p[n + 3] = c'\n'
        self.out.n += n + 4
        return 0

    cdef void fetch_names(self, const fp_batch *b) noexcept nogil:
        """Sorted names are scattered in memory: prefetch all of a batch together."""
        cdef const fp_table *functions = &self.model.functions
        cdef uint32_t i, stage
        for stage in range(3):
            for i in range(b.n):
                if i and b.function[i] == b.function[i - 1]:
                    continue
                if stage == 0:
                    fp_prefetch(fp_table_row(functions, b.function[i]))
                elif stage == 1:
                    fp_strings_prefetch_start(&self.model.strings,
                                              fp_table_row(functions, b.function[i])[FP_FUNCTION_NAME])
                else:
                    fp_strings_prefetch_bytes(&self.model.strings,
                                              fp_table_row(functions, b.function[i])[FP_FUNCTION_NAME])

    cdef int rows(self, const fp_batch *b) noexcept nogil:
        cdef uint32_t i = 0
        cdef const uint32_t *f
        self.fetch_names(b)
        while i < b.n:
            if b.function[i] != self.function:
                self.function = b.function[i]
                f = fp_table_row(&self.model.functions, self.function)
                if f[FP_FUNCTION_FILE] != self.file:
                    self.file = f[FP_FUNCTION_FILE]
                    if self.name(b"fl=", FP_NAMED_FILE, self.file):
                        return FP_E_NOMEM
                if self.name(b"fn=", FP_NAMED_FUNCTION, f[FP_FUNCTION_NAME]):
                    return FP_E_NOMEM
            if fp_buf_reserve(self.out, self.body.room):
                return FP_E_NOMEM
            self.out.n = fp_callgrind_body_lines(&self.body, b, i, self.out.p + self.out.n, &i) - self.out.p
        return 0
