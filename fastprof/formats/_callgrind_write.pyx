"""Graph rows -> the body lines of a Callgrind part.

The door (`callgrind.py`) writes what stands once per part; this file writes
what stands once per row, without the GIL; runs of cost lines by
csrc/fp_callgrind_write.c.

A block of one function, names and positions compressed:

    fl=(2) util.c            the function's file, when it differs from the last fl=
    fn=(7) gcd
    0x401136 12 3            address, line, counts (trailing zeros are left out)
    +4 * 1                   +4 bytes, same line
    cfn=(9)                  callee; cob=, cfi= only when they differ from the caller's
    calls=2 0x401000 5       count, target position
    * * 60                   position of the call, inclusive counts
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memchr, memcpy, memset

from fastprof._fp cimport *

cdef enum:
    FN = 0
    FL = 1
    OB = 2
    NOTHING = 0xffffffff
    # Longest row apart from names and counts: jcnd= with two counts, three
    # target and three source positions.
    ROW_BYTES = 256
    RUN = 32  # rows that room is made for at once

cdef class Body:
    """Writes rows of graph batches into a `struct fp_buf`, part by part.

    Borrows the model and the buffer, whose addresses it is given.  Memory:
    8 bytes for each function, file and object.
    """

    cdef fp_model *model
    cdef fp_buf *out
    cdef bint compress_names
    cdef fp_cost_style style    # columns
    cdef int64_t *sums          # of the self costs of this part
    cdef readonly bint overflowed  # a sum passed 2^63 - 1
    # Per kind of name: number in this part << 32 | part, by id in the model.
    cdef uint64_t *numbers[3]
    cdef size_t n_numbers[3]
    cdef uint32_t next_number[3]
    cdef uint32_t part
    # Where we are.  NOTHING: not yet said in this part.
    cdef uint32_t function, object, block_file, file
    cdef bint empty             # the block only defined its number yet
    # A relative position counts from the last self cost line (Callgrind) or
    # from the last line with a source position (KCachegrind, spec).  We
    # write a relative one only while both are the same, for both to be right.
    cdef fp_position base, seen
    cdef readonly uint64_t escaped  # names that held a newline, CR or NUL

    def __cinit__(self, size_t model, size_t out, bint compress_names, bint compress_positions):
        self.model = <fp_model *>model
        self.out = <fp_buf *>out
        self.compress_names = compress_names
        self.style.compress = compress_positions
        self.style.wide = fp_costs_wide()

    def __dealloc__(self):
        cdef int kind
        free(self.sums)
        for kind in range(3):
            free(self.numbers[kind])

    @property
    def wide(self):
        """Writes counts by: 0, what every machine has; 1, AVX2; 2, AVX-512.  Cannot be set to more than there is."""
        return self.style.wide

    @wide.setter
    def wide(self, uint32_t wide):
        self.style.wide = min(wide, fp_costs_wide())

    def start_part(self, uint32_t n_values, bint instr, bint bb, bint lines):
        """Begin a part: names are defined anew, sums start at 0."""
        cdef int64_t *sums = <int64_t *>realloc(self.sums, (n_values + 1) * sizeof(int64_t))
        if sums == NULL:
            raise MemoryError("no memory for a part's totals")
        memset(sums, 0, (n_values + 1) * sizeof(int64_t))
        self.sums = sums
        self.style.n_values = n_values
        self.style.instr, self.style.bb, self.style.lines = instr, bb, lines
        self.overflowed = False
        self.part += 1
        self.next_number[FN] = self.next_number[FL] = self.next_number[OB] = 0
        self.function = self.block_file = self.file = NOTHING
        self.object = 0
        memset(&self.base, 0, sizeof(fp_position))
        memset(&self.seen, 0, sizeof(fp_position))

    def end_part(self):
        """End the last block.  Returns the sums of the part's self costs."""
        cdef uint8_t *p
        if self.function != NOTHING:
            if fp_buf_reserve(self.out, ROW_BYTES):
                raise MemoryError("no memory for output")
            p = self.close(self.out.p + self.out.n)
            if p == NULL:
                raise MemoryError("no memory for output")
            self.out.n = p - self.out.p
        return [self.sums[k] for k in range(self.style.n_values)]

    def put(self, size_t batch):
        """Append the rows of a `struct fp_batch` of the current part, which must have as many values."""
        cdef int status
        if (<const fp_batch *>batch).n and (<const fp_batch *>batch).n_values < self.style.n_values:
            raise ValueError("a batch has fewer values than its part has value types")
        with nogil:
            status = self.rows(<const fp_batch *>batch)
            if fp_batch_add_self(<const fp_batch *>batch, self.sums, self.style.n_values):
                self.overflowed = True
        if status == FP_E_NOMEM:
            raise MemoryError("no memory for output")

    # ---- names ----------------------------------------------------------

    cdef uint8_t *name(self, uint8_t *p, int kind, const char *key, uint32_t id, uint32_t string) noexcept nogil:
        """`key` and the name of entry `id`, whose text is `string`; NULL when memory ran out.

        With compression `(5) name` the first time in a part and `(5)` then.
        A name that could be taken for a number is always numbered, and one
        that begins with a blank or is empty never, or it would read back
        as another one.
        """
        cdef size_t n, i, cap
        cdef const uint8_t *text = fp_string(&self.model.strings, string, &n)
        cdef uint64_t *numbers
        cdef bint numbered, defined = False
        if id >= self.n_numbers[kind]:
            cap = id + 1 + id // 2
            numbers = <uint64_t *>realloc(self.numbers[kind], cap * sizeof(uint64_t))
            if numbers == NULL:
                return NULL
            memset(numbers + self.n_numbers[kind], 0, (cap - self.n_numbers[kind]) * sizeof(uint64_t))
            self.numbers[kind] = numbers
            self.n_numbers[kind] = cap
        self.out.n = p - self.out.p
        # a byte of a name takes up to four
        if fp_buf_reserve(self.out, 64 + 4 * n + ROW_BYTES + fp_cost_room(self.style.n_values)):
            return NULL
        p = self.out.p + self.out.n
        while key[0]:
            p[0] = key[0]
            p += 1
            key += 1
        if n == 0 or text[0] == c' ' or text[0] == c'\t':
            numbered = False
        else:
            numbered = self.compress_names or (n > 1 and text[0] == c'(' and c'0' <= text[1] <= c'9')
        if numbered:
            numbers = self.numbers[kind]
            defined = <uint32_t>numbers[id] == self.part
            if not defined:
                self.next_number[kind] += 1
                numbers[id] = <uint64_t>self.next_number[kind] << 32 | self.part
            p[0] = c'('
            p = fp_put_decimal(p + 1, numbers[id] >> 32)
            p[0] = c')'
            p += 1
        if not defined:
            if numbered:
                p[0] = c' '
                p += 1
            if memchr(text, c'\n', n) == NULL and memchr(text, c'\r', n) == NULL and memchr(text, 0, n) == NULL:
                memcpy(p, text, n)
                p += n
            else:
                self.escaped += 1
                for i in range(n):
                    p = escape(p, text[i])
        p[0] = c'\n'
        return p + 1

    cdef inline uint8_t *number(self, uint8_t *p, int kind, const char *key, uint32_t id, uint32_t string) noexcept nogil:
        """`name`, with a short way for what is compressed and was written before in this part."""
        if self.compress_names and id < self.n_numbers[kind] and <uint32_t>self.numbers[kind][id] == self.part:
            while key[0]:
                p[0] = key[0]
                p += 1
                key += 1
            p[0] = c'('
            p = fp_put_decimal(p + 1, self.numbers[kind][id] >> 32)
            p[0] = c')'
            p[1] = c'\n'
            return p + 2
        return self.name(p, kind, key, id, string)

    cdef uint8_t *block(self, uint8_t *p, uint32_t function) noexcept nogil:
        """The lines that begin a function's block."""
        cdef const uint32_t *f = fp_table_row(&self.model.functions, function)
        if self.function != NOTHING:
            p = self.close(p)
            if p == NULL:
                return NULL
            # Some readers keep the file over fn=, others do not: leave it as
            # the block began.
            if self.file != self.block_file:
                p = self.number(p, FL, b"fe=", self.block_file, self.block_file)
                if p == NULL:
                    return NULL
            p[0] = c'\n'
            p += 1
        if f[FP_FUNCTION_OBJECT] != self.object:
            self.object = f[FP_FUNCTION_OBJECT]
            p = self.number(p, OB, b"ob=", self.object, self.object_name(self.object))
            if p == NULL:
                return NULL
        if f[FP_FUNCTION_FILE] != self.block_file:
            self.block_file = f[FP_FUNCTION_FILE]
            p = self.number(p, FL, b"fl=", self.block_file, self.block_file)
            if p == NULL:
                return NULL
        self.file = self.block_file
        self.function = function
        memset(&self.base, 0, sizeof(fp_position))
        memset(&self.seen, 0, sizeof(fp_position))
        self.empty = function >= self.n_numbers[FN] or <uint32_t>self.numbers[FN][function] != self.part
        return self.number(p, FN, b"fn=", function, f[FP_FUNCTION_NAME])

    cdef uint8_t *close(self, uint8_t *p) noexcept nogil:
        """A numbered name that is not followed by rows only defines the number; named once more, it is a
        block of its own."""
        if self.empty and self.function < self.n_numbers[FN] and <uint32_t>self.numbers[FN][self.function] == self.part:
            self.empty = False
            return self.number(p, FN, b"fn=", self.function,
                               fp_table_row(&self.model.functions, self.function)[FP_FUNCTION_NAME])
        return p

    cdef inline uint32_t object_name(self, uint32_t object) noexcept nogil:
        return fp_table_row(&self.model.objects, object)[FP_OBJECT_NAME]

    cdef uint8_t *call(self, uint8_t *p, uint32_t callee) noexcept nogil:
        cdef const uint32_t *f = fp_table_row(&self.model.functions, callee)
        if f[FP_FUNCTION_OBJECT] != self.object:
            p = self.number(p, OB, b"cob=", f[FP_FUNCTION_OBJECT], self.object_name(f[FP_FUNCTION_OBJECT]))
            if p == NULL:
                return NULL
        if f[FP_FUNCTION_FILE] != self.file:
            p = self.number(p, FL, b"cfi=", f[FP_FUNCTION_FILE], f[FP_FUNCTION_FILE])
            if p == NULL:
                return NULL
        return self.number(p, FN, b"cfn=", callee, f[FP_FUNCTION_NAME])

    cdef uint8_t *jump(self, uint8_t *p, uint32_t function, uint32_t file) noexcept nogil:
        if file != self.file:
            p = self.number(p, FL, b"jfi=", file, file)
            if p == NULL:
                return NULL
        if function != self.function:
            p = self.number(p, FN, b"jfn=", function,
                            fp_table_row(&self.model.functions, function)[FP_FUNCTION_NAME])
        return p

    # ---- rows -----------------------------------------------------------

    cdef int rows(self, const fp_batch *b) noexcept nogil:
        cdef size_t room = fp_cost_room(self.style.n_values)
        cdef size_t need = 1024 + RUN * room
        cdef uint32_t i = 0, kind
        cdef fp_position at
        cdef uint8_t *p
        self.style.ahead = FP_NO_ROW
        if fp_buf_reserve(self.out, need):
            return FP_E_NOMEM
        p = self.out.p + self.out.n
        while i < b.n:
            if <size_t>(self.out.p + self.out.cap - p) < need:
                self.out.n = p - self.out.p
                if fp_buf_reserve(self.out, need):
                    return FP_E_NOMEM
                p = self.out.p + self.out.n
            kind = b.kind[i]
            if b.function[i] != self.function:
                p = self.block(p, b.function[i])
                if p == NULL:
                    return FP_E_NOMEM
            if kind == FP_BLOCK:
                i += 1
                continue
            self.empty = False
            if b.file[i] != self.file:
                self.file = b.file[i]
                if self.file == self.block_file:
                    p = self.number(p, FL, b"fe=", self.file, self.file)
                else:
                    p = self.number(p, FL, b"fi=", self.file, self.file)
                if p == NULL:
                    return FP_E_NOMEM

            self.style.base.address = self.base.address if self.base.address == self.seen.address else 0
            self.style.base.bb = self.base.bb if self.base.bb == self.seen.bb else 0
            self.style.base.line = self.base.line if self.base.line == self.seen.line else 0
            if kind == FP_COST:
                if <size_t>(self.out.p + self.out.cap - p) < RUN * room:
                    continue  # names took what there was
                p = fp_put_costs(&self.style, b, i, min(b.n, i + RUN), p, &i)
                self.base = self.seen = self.style.base
                continue
            if not self.style.compress:
                memset(&self.style.base, 0, sizeof(fp_position))
            if kind == FP_CALL:
                p = self.call(p, b.callee[i])
                if p == NULL:
                    return FP_E_NOMEM
                memcpy(p, b"calls=", 6)
                p = fp_put_decimal(p + 6, b.count[i])
            else:
                p = self.jump(p, b.callee[i], b.target_file[i])
                if p == NULL:
                    return FP_E_NOMEM
                memcpy(p, b"jump=" if kind == FP_JUMP else b"jcnd=", 5)
                p = fp_put_decimal(p + 5, b.count[i])
                if kind == FP_JCND:
                    p[0] = c'/'
                    p = fp_put_decimal(p + 1, b.count2[i])
            p[0] = c' '
            at.address = b.target_address[i]
            at.bb = b.target_bb[i]
            at.line = b.target_line[i]
            p = fp_put_positions(&self.style, &at, p + 1)
            p[0] = c'\n'
            if self.style.instr:
                self.seen.address = b.address[i]
            if self.style.bb:
                self.seen.bb = b.bb[i]
            if self.style.lines:
                self.seen.line = b.line[i]
            p = fp_put_positions(&self.style, &self.seen, p + 1)
            if kind == FP_CALL:
                p = fp_put_counts(&self.style, b, i, p)
            else:
                p[0] = c'\n'
                p += 1
            i += 1
        self.out.n = p - self.out.p
        return 0


cdef inline uint8_t *escape(uint8_t *p, uint8_t byte) noexcept nogil:
    """The byte itself, or what stands for one that would end the line or the reader."""
    if byte == c'\n' or byte == c'\r' or byte == 0:
        p[0] = c'\\'
        p[1] = c'n' if byte == c'\n' else c'r' if byte == c'\r' else c'0'
        return p + 2
    p[0] = byte
    return p + 1


cdef class CostLines:
    """Writes rows of self cost into a `struct fp_buf` as Cachegrind has them: every count of every
    line, names in full, no relative positions.  Borrows the model and the buffer."""

    cdef fp_model *model
    cdef fp_buf *out
    cdef uint32_t function, file
    cdef readonly uint64_t escaped  # names that held a newline, CR or NUL

    def __cinit__(self, size_t model, size_t out):
        self.model = <fp_model *>model
        self.out = <fp_buf *>out
        self.function = self.file = NOTHING

    def put(self, size_t batch):
        """Append the rows of a `struct fp_batch`, all of them costs."""
        cdef int status
        with nogil:
            status = self.rows(<const fp_batch *>batch)
        if status:
            raise MemoryError("no memory for output")

    cdef int name(self, const char *key, uint32_t string) noexcept nogil:
        cdef size_t n, i
        cdef const uint8_t *text = fp_string(&self.model.strings, string, &n)
        cdef uint8_t *p
        if fp_buf_reserve(self.out, 2 * n + 8):
            return FP_E_NOMEM
        p = self.out.p + self.out.n
        memcpy(p, key, 3)
        p += 3
        for i in range(n):
            p = escape(p, text[i])
        self.escaped += <size_t>(p - self.out.p) - self.out.n != n + 3
        p[0] = c'\n'
        self.out.n = p + 1 - self.out.p
        return 0

    cdef int rows(self, const fp_batch *b) noexcept nogil:
        cdef uint32_t i, k
        cdef const uint32_t *f
        cdef uint8_t *p
        for i in range(b.n):
            if b.function[i] != self.function:
                self.function = b.function[i]
                f = fp_table_row(&self.model.functions, self.function)
                if f[FP_FUNCTION_FILE] != self.file:
                    self.file = f[FP_FUNCTION_FILE]
                    if self.name(b"fl=", self.file):
                        return FP_E_NOMEM
                if self.name(b"fn=", f[FP_FUNCTION_NAME]):
                    return FP_E_NOMEM
            if fp_buf_reserve(self.out, fp_cost_room(b.n_values)):
                return FP_E_NOMEM
            p = fp_put_decimal(self.out.p + self.out.n, b.line[i])
            for k in range(b.n_values):
                p[0] = c' '
                p = fp_put_signed(p + 1, b.values[<size_t>k * b.cap + i])
            p[0] = c'\n'
            self.out.n = p + 1 - self.out.p
        return 0
