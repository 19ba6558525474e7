"""Body lines of Callgrind and Cachegrind -> graph rows.

read.py reads the lines that occur once per part, this module those that occur once per row, without the GIL.  It is
compiled from several files, each of which uses those below it:

    _lexer.pyx                    the text's windows, and what Python sees
    lines.pxd   other_lines.pxd   lines as Callgrind writes them;  any line
    body.pxd                      which function, callee and jump the next rows belong to
    names.pxd                     `name`, `(12) name` and `(12)`
    positions.pxd                 positions and counts

Only whole lines are read.  csrc/callgrind/lines.c splits some 2 KB of text into lines and numbers,
csrc/callgrind/rows.c makes rows of cost lines, lines.pxd reads the other lines in the form that Callgrind writes them,
and other_lines.pxd the rest.

Rules that the format document leaves open (docs/formats/callgrind.md):
  - a relative position counts from the last self cost line; call and jump
    lines and their targets do not move it
  - fn= takes the file back to the last fl=; in Cachegrind fl= ends the function
  - in Callgrind's own files so does the next cost line after a call, unless
    its file is given
  - cfi= and cob= hold for one call and may come before or after cfn=
  - old Xdebug gives no file of a callee, which is the last function of its name
  - a number stays bound to its first function, unless file or object are given
    and differ; a definition without rows binds nothing
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcmp, memcpy, memset, strlen

from fastprof.core.fp cimport *
from fastprof.formats.callgrind.c cimport *
from fastprof.formats.callgrind.body cimport *
from fastprof.formats.callgrind.lines cimport *
from fastprof.formats.callgrind.names cimport *
from fastprof.formats.callgrind.other_lines cimport *
from fastprof.formats.callgrind.positions cimport *

# kinds of names, each with separate numbers, by the words of lines
KINDS: dict[str, int] = {"fn": FP_NAMED_FUNCTION, "fl": FP_NAMED_FILE, "ob": FP_NAMED_OBJECT}


def nearest(bytes word not None) -> int | None:
    """A decimal number as the nearest whole one, 2^64 - 1 at most; None if it is not a number."""
    cdef const uint8_t *p = word
    cdef uint64_t v = 0
    cdef bint fits = True, negative = p[0] == c'-'
    p = rounded_number(p + negative, &v, &fits)
    if p == NULL or p != <const uint8_t *>word + len(word):
        return None
    return (-1 if negative else 1) * (v if fits else 0xffffffffffffffff)


cdef class Lexer:
    """Reads body lines into graph batches, part by part.

    `numbered`: names may be `(12) name`, as in Callgrind and not in Cachegrind.  Borrows the model, whose address it
    is given.  Memory: at most 256 bytes a number plus 1 MiB a kind of names, 16 bytes where numbers are dense.
    """

    cdef Body body
    # Whether this writer ends every line with a newline: then a line without one was cut and may lack digits.
    cdef public bint whole_lines
    # the last line with a newline added, if it has none
    cdef uint8_t *tail
    cdef size_t tail_cap

    def __cinit__(self, size_t model, bint lenient, bint numbered):
        self.body.model = self.body.names.model = <fp_model *>model
        self.body.lenient = self.body.names.lenient = lenient
        self.body.names.numbered = numbered
        self.body.names.counts = &self.body.counts
        self.body.names.expands = self.body.keeps_comments = True
        self.body.costs.wide = fp_callgrind_costs_wide()
        self.start_part(0, False, False, True, False)

    def __dealloc__(self):
        cdef int kind
        for kind in range(3):
            fp_callgrind_numbers_clear(&self.body.names.numbers[kind])
        free(self.body.names.expansion)
        free(self.body.costs.totals)
        free(self.body.latest)
        free(self.tail)

    # ---- a part -------------------------------------------------------------

    def start_part(self, uint32_t n_values, bint instr, bint bb, bint lines, bint has_events,
                   bint keeps_names=False) -> None:
        """Begin a part: no current names, no base position, sums at 0.  Numbers of names stay.

        Without `has_events`, the first cost line returns FP_NEEDS if the part may inherit the `n_values` of the previous
        part.
        `keeps_names`: the current names and the base position stay as well.
        """
        cdef Body *body = &self.body
        cdef size_t nbytes = (4 * <size_t>n_values + 1) * sizeof(int64_t)
        cdef int64_t *sums = <int64_t *>realloc(body.costs.totals, nbytes)
        if sums == NULL:
            raise MemoryError("no memory for a part's totals")
        memset(sums, 0, nbytes)
        body.costs.totals = sums
        body.costs.recent = &sums[n_values]
        body.costs.beyond = &sums[2 * <size_t>n_values]
        body.wrapped_in = &sums[3 * <size_t>n_values]
        body.wrapped.n = 0
        body.costs.n_values = n_values
        body.costs.instr, body.costs.bb, body.costs.lines = instr, bb, lines
        body.has_events = has_events
        body.begun = False
        body.pending = FP_COST
        if keeps_names:
            return
        memset(&body.costs.base, 0, sizeof(fp_callgrind_position))
        body.object = body.file = 0
        begin_lines(body)
        body.block_file = UNSET
        body.function = UNRESOLVED
        body.fn_name = body.fn_file = body.fn_object = 0
        body.fn_key = 0
        body.fn_defined = True
        body.in_function = body.has_callee = False
        body.cob = body.cfi = body.jfi = body.jfn = UNSET

    def take_events(self, bint instr, bint bb, bint lines) -> None:
        """The part has the events of the previous one, and a cost line, perhaps without naming a function again."""
        cdef Body *body = &self.body
        body.costs.instr, body.costs.bb, body.costs.lines = instr, bb, lines
        body.has_events = body.begun = True

    def end_part(self, size_t batch, size_t err) -> int:
        """End the part: FP_DONE, FP_FULL when the batch must be drained first, or an error."""
        return finish_body(&self.body, <fp_batch *>batch, <fp_err *>err)

    def read_names(self, bint expands, bint binds, bint by_cost_file) -> None:
        """How to read the names of this part's writer.

        `expands`: names like (3)'2'(5) are made of numbers.  `binds`: a number is one function, whatever file is given.
        `by_cost_file`: files are omitted if they equal that of the last cost line, see `target_home`.
        """
        self.body.by_cost_file = by_cost_file
        self.body.names.expands = expands
        self.body.binds = binds

    def find_callees_by_name(self, bint by_name) -> None:
        """This part's writer never gives the file of a callee, see `named_last`."""
        self.body.by_name = by_name

    def count_comments(self) -> None:
        """From now on do not ask about comments, count them."""
        self.body.keeps_comments = False

    @property
    def has_events(self) -> bool:
        return self.body.has_events

    @property
    def begun(self) -> bool:
        """Was a body line seen in this part?"""
        return self.body.begun

    @property
    def totals(self) -> list[int]:
        """Sums of the self costs of this part so far."""
        return [self.body.costs.totals[k] for k in range(self.body.costs.n_values)]

    @property
    def overflowed(self) -> bool:
        """Is a total not an int64?"""
        return any(self.body.costs.beyond[k] != 0 for k in range(self.body.costs.n_values))

    @property
    def wrapped(self) -> Wrapped:
        """Counts of more than 2^63 in this part: the fields of Wrapped (positions.pxd)."""
        return self.body.wrapped

    @property
    def wrapped_columns(self) -> set[int]:
        """The columns that have such counts."""
        return {k for k in range(self.body.costs.n_values) if self.body.wrapped_in[k]}

    # ---- the text -----------------------------------------------------------

    def feed(self, size_t in_, size_t batch, size_t err) -> int:
        """Read what the window has, given the addresses of `struct fp_window`, `fp_batch` and `fp_err`.

        Returns an fp_status.  FP_NEEDS: the line at in.pos, `line_length` bytes long with its newline, is not a body
        line.  The caller reads it, calls `drop_line` and calls again.  If `undefined` is not 0, it is a body line with
        a number that has no name yet.  The caller names it with `define` and calls again.
        """
        cdef int status
        with nogil:
            status = self.window(<fp_window *>in_, <fp_batch *>batch, <fp_err *>err)
            fp_callgrind_costs_flush(&self.body.costs)
        return status

    @property
    def line_length(self) -> int:
        return self.body.line_length

    @property
    def undefined_kind(self) -> int:
        """The kind of the number that has no name yet: a number of KINDS."""
        return self.body.names.undefined_kind

    @property
    def undefined(self) -> int:
        """That number + 1; 0: none."""
        return self.body.names.undefined

    def drop_line(self, size_t in_) -> None:
        """Continue after the line that FP_NEEDS returned."""
        cdef fp_window *input = <fp_window *>in_
        cdef uint8_t c = input.p[input.pos]
        self.body.counts.indented_lines += c == c' ' or c == c'\t'
        input.pos += self.body.line_length
        self.body.line += 1

    def define(self, int kind, uint64_t number, uint32_t name) -> None:
        """Give an undefined number its name (a definition further on in the file)."""
        cdef fp_callgrind_numbers *numbers = &self.body.names.numbers[kind]
        cdef fp_callgrind_number *e = fp_callgrind_numbers_find(numbers, number)
        if e == NULL:
            raise MemoryError("no memory for name numbers")
        fp_callgrind_numbers_define(numbers, e, name)
        if kind == FP_NAMED_OBJECT:
            e.object = fp_model_object(self.body.model, name, 0)
            if e.object == FP_NO_ID:
                raise MemoryError("no memory for objects")

    @property
    def line(self) -> int:
        """Lines read so far."""
        return self.body.line

    @property
    def counts(self) -> dict[str, int]:
        """Repairs, omissions and losses so far: the fields of Counts (positions.pxd)."""
        return self.body.counts

    @property
    def wide(self) -> int:
        """Reads cost lines by: 0, baseline; 1, AVX2; 2, AVX-512.  Limited to what the machine has."""
        return self.body.costs.wide

    @wide.setter
    def wide(self, uint32_t wide):
        self.body.costs.wide = min(wide, fp_callgrind_costs_wide())

    # ---- the window -----------------------------------------------------

    cdef int window(self, fp_window *in_, fp_batch *b, fp_err *err) noexcept nogil:
        cdef const uint8_t *p = in_.p + in_.pos
        cdef const uint8_t *end = in_.p + in_.n
        cdef size_t n
        cdef int status
        if b.n == 0:
            clear(&self.body.costs, b)
        while end != p and (end - 1)[0] != c'\n':
            end -= 1
        if p != end:
            self.body.shift = in_.base - <size_t>in_.p
            status = read_lines(&self.body, &p, end, in_.p + in_.n, b, err)
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
            self.body.shift = in_.base + in_.pos - <size_t>self.tail
            if self.whole_lines and is_cut(p, n, self.body.names.numbered):
                self.body.line += 1
                status = fp_fail(err, FP_E_TRUNCATED, in_.base + in_.pos, b"the input ends inside a line")
                err.line = self.body.line
                if not self.body.lenient:
                    return status
                self.body.counts.unreadable_lines += 1
                in_.pos = in_.n
                return finish_body(&self.body, b, err)
            status = read_lines(&self.body, &p, p + n + 1, p + n + 1, b, err)
            if status == FP_NEEDS:
                self.body.line_length = n
            if status != FP_MORE:
                return status
            in_.pos = in_.n
        return finish_body(&self.body, b, err)


cdef bint is_cut(const uint8_t *p, size_t n, bint numbered) noexcept nogil:
    """Whether a last line without a newline is more than blanks, a comment or a part's sums, which are compared."""
    cdef const char *sums = b"totals:" if numbered else b"summary:"
    cdef const uint8_t *end = p + n
    while p != end and (p[0] == c' ' or p[0] == c'\t' or p[0] == c'\r'):
        p += 1
    if p == end or p[0] == c'#':
        return False
    return <size_t>(end - p) < strlen(sums) or memcmp(p, sums, strlen(sums)) != 0


cdef void clear(const fp_callgrind_costs *costs, fp_batch *b) noexcept nogil:
    """Sets to 0 the columns that a row lacks.  Cheaper for the whole batch than row by row."""
    memset(b.callee, 0, b.cap * sizeof(b.callee[0]))
    memset(b.target_file, 0, b.cap * sizeof(b.target_file[0]))
    memset(b.target_line, 0, b.cap * sizeof(b.target_line[0]))
    memset(b.target_address, 0, b.cap * sizeof(b.target_address[0]))
    memset(b.target_bb, 0, b.cap * sizeof(b.target_bb[0]))
    memset(b.count, 0, b.cap * sizeof(b.count[0]))
    memset(b.count2, 0, b.cap * sizeof(b.count2[0]))
    if not costs.instr:
        memset(b.address, 0, b.cap * sizeof(b.address[0]))
    if not costs.bb:
        memset(b.bb, 0, b.cap * sizeof(b.bb[0]))
    if not costs.lines:
        memset(b.line, 0, b.cap * sizeof(b.line[0]))


cdef int read_lines(Body *body, const uint8_t **at, const uint8_t *end, const uint8_t *readable, fp_batch *b,
                    fp_err *err) noexcept nogil:
    """Reads lines from at[0] to `end`; bytes up to `readable` may be looked at.

    FP_MORE when all were read; at[0] is then the first line that was not.
    """
    cdef fp_callgrind_lines *lines = &body.lines
    cdef const uint8_t *p = at[0]
    cdef const uint8_t *next
    cdef uint32_t i, n, columns = body.costs.instr + body.costs.bb + body.costs.lines
    cdef int status
    while p != end:
        next = fp_callgrind_lines_read(lines, p, end, readable, columns, body.costs.wide)
        look_ahead(&body.names, lines, p)
        i = 0
        while i < lines.n:
            if fp_callgrind_line_bits(lines.cost, i) & 1:
                n = cost_lines(body, i, p, b)
            else:
                n = short_line(body, i, p)
            body.line += n
            i += n
            if n == 0:
                at[0] = p + lines.begin[i]
                status = other_line(body, at, end, b, err)
                if status != OK:
                    return status
                i += 1
        if next == p:
            # a line too long to be split
            at[0] = p
            status = other_line(body, at, end, b, err)
            if status != OK:
                return status
            next = at[0]
        p = next
    at[0] = end
    return FP_MORE
