"""Lines of Massif's snapshots -> rows of stacks, without the GIL.

    snapshot=3
    time=103352
    mem_heap_B=318320                                 the keys come in this order
    ...
    heap_tree=peak
    n2: 318320 (heap allocation functions) malloc/new/new[], --alloc-fns, etc.
     n1: 148000 0x1097DF: char* app::make<char>(int) (mem.cc:6)        its callers: 148000 of the 318320 bytes
      n0: 148000 0x1092D7: main (mem.cc:9)
     n0: 170320 in 3 places, all below massif's threshold (1.00%)

A node has `n` children, one blank deeper; its self cost is what its children do not account for.  The first pass reads
and checks the whole file and lists the snapshots; the second reads the chosen trees.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memchr, memcmp, memset, strlen

from fastprof.core.fp cimport *


cdef enum:
    OK = 0
    MOST_DEPTH = 1 << 20
    N_KEYS = 6
    IN_TREE = N_KEYS  # a value of `state`, otherwise the index of the next key

cdef enum TreeKind:
    EMPTY = 0
    DETAILED = 1
    PEAK = 2

cdef const char **KEYS = ["snapshot=", "time=", "mem_heap_B=", "mem_heap_extra_B=", "mem_stacks_B=", "heap_tree="]


cdef struct Counts:
    uint64_t unreadable_lines  # lenient: unreadable lines
    uint64_t cut_trees  # lenient: incomplete trees
    uint64_t carriage_returns


cdef struct Snapshot:
    uint64_t number
    uint64_t time
    uint64_t nanos  # the fraction of `time`, which heaptrack_print writes, in 10^-9
    uint64_t heap_bytes
    uint64_t extra_bytes
    uint64_t stacks_bytes
    uint64_t kind
    uint64_t tree_at  # bytes of the tree
    uint64_t tree_end
    uint64_t line  # lines before the tree


# A node of the tree from the root to the current one.
cdef struct Level:
    uint64_t remaining  # children to come
    int64_t value
    int64_t below  # sum of the children so far
    uint32_t text


cdef struct Place:
    uint64_t address
    uint32_t function
    uint32_t line
    bint known


cdef struct Row:
    int64_t value
    uint32_t stack


cdef class Lexer:
    """Reads lines into stacks batches of one value.

    FP_NEEDS: `text` is a line of the header (`header_taken`) or, if `is_place`, a frame whose `place` is requested; then
    feed again.  Borrows the model.  Memory: snapshots, distinct frames, the depth of a tree.
    """

    cdef fp_model *model
    cdef bint lenient, second, asks_place
    cdef uint64_t line, at
    cdef uint32_t state, part_label
    cdef bint abandoned  # lenient: the rest of a tree is skipped
    cdef Counts seen
    cdef Snapshot *snapshots
    cdef uint32_t n_snapshots, cap_snapshots
    cdef Level *levels
    cdef uint32_t n_levels, cap_levels
    cdef bint tree_begun
    cdef fp_strings texts
    cdef Place *places
    cdef uint32_t cap_places
    cdef Row *rows
    cdef uint32_t n_rows, cap_rows, drained
    cdef uint32_t wanted  # the text whose place is requested
    cdef const uint8_t *header
    cdef size_t header_n, line_n

    def __cinit__(self, size_t model, bint lenient):
        self.model = <fp_model *>model
        self.lenient = lenient
        if fp_strings_init(&self.texts):
            raise MemoryError("no memory to read a Massif profile")

    def __dealloc__(self):
        fp_strings_clear(&self.texts)
        free(self.snapshots)
        free(self.levels)
        free(self.places)
        free(self.rows)

    @property
    def counts(self) -> dict[str, int]:
        """The fields of Counts, so far."""
        return self.seen

    @property
    def text(self) -> bytes:
        """The line or frame that FP_NEEDS is about."""
        cdef size_t n
        cdef const uint8_t *p
        if not self.asks_place:
            return self.header[:self.header_n]
        p = fp_string(&self.texts, self.wanted, &n)
        return p[:n]

    @property
    def is_place(self) -> bool:
        return self.asks_place

    @property
    def snapshots(self) -> list[Snapshot]:
        """The snapshots found by the first pass."""
        return [self.snapshots[i] for i in range(self.n_snapshots)]

    def header_taken(self) -> None:
        self.header = NULL

    def place(self, uint64_t address, uint32_t function, uint32_t line) -> None:
        """Set the place of `text`."""
        cdef Place *to = &self.places[self.wanted]
        to.address, to.function, to.line, to.known = address, function, line, True
        self.asks_place = False

    def select(self, uint32_t snapshot, uint32_t label) -> None:
        """Prepare to read the tree of a snapshot, whose rows get that label."""
        self.second = True
        self.line = self.snapshots[snapshot].line
        self.state = IN_TREE
        self.n_levels = 0
        self.tree_begun = self.abandoned = False
        self.part_label = label

    def feed(self, size_t in_, size_t batch, size_t err) -> int:
        """Read what the window has, given the addresses of `struct fp_window`, `fp_batch` and `fp_err`.

        Returns an fp_status.
        """
        cdef int status
        with nogil:
            status = self.window(<fp_window *>in_, <fp_batch *>batch, <fp_err *>err)
        return status

    cdef int window(self, fp_window *in_, fp_batch *b, fp_err *err) noexcept nogil:
        cdef const uint8_t *p
        cdef const uint8_t *stop
        cdef const uint8_t *end = in_.p + in_.n
        cdef bint whole
        cdef int status
        while True:
            if not self.drain(b):
                return FP_FULL
            if in_.pos == in_.n:
                break
            p = in_.p + in_.pos
            stop = <const uint8_t *>memchr(p, c'\n', end - p)
            whole = stop != NULL
            if not whole:
                if not in_.eof:
                    return FP_MORE
                stop = end
            self.line += 1
            self.at = in_.base + in_.pos
            self.line_n = stop + whole - p
            if stop != p and (stop - 1)[0] == c'\r':
                stop -= 1
                self.seen.carriage_returns += not self.second
            status = self.read_line(p, stop, whole, err)
            if status == FP_NEEDS and self.asks_place:
                self.line -= 1  # the line is read again
                return status
            if status < 0:
                return status
            in_.pos += self.line_n
            if status == FP_NEEDS:
                return status
        if not in_.eof:
            return FP_MORE
        status = self.end(err)
        if status < 0:
            return status
        return FP_DONE if self.drain(b) else FP_FULL

    cdef bint drain(self, fp_batch *b) noexcept nogil:
        """Return rows; False if the batch becomes full."""
        while self.drained != self.n_rows:
            if b.n == b.cap:
                return False
            b.stack[b.n] = self.rows[self.drained].stack
            b.values[b.n] = self.rows[self.drained].value
            b.time[b.n] = 0
            b.thread[b.n] = 0
            b.label[b.n] = self.part_label
            b.n += 1
            self.drained += 1
        self.drained = self.n_rows = 0
        return True

    cdef int bad(self, fp_err *err, bint whole, const uint8_t *p, const uint8_t *stop, const char *want) noexcept nogil:
        """Report a malformed line: an error, or a loss."""
        if self.lenient:
            self.seen.unreadable_lines += not self.second
            return self.abandon(err)
        return fp_fail_text(err, FP_E_MALFORMED if whole else FP_E_TRUNCATED, self.at, self.line, "the line", p,
                            stop - p, want)

    # ---- lines ----------------------------------------------------------------

    cdef int read_line(self, const uint8_t *p, const uint8_t *stop, bint whole, fp_err *err) noexcept nogil:
        cdef Snapshot *s
        if stop == p or p[0] == c'#':
            if self.state == IN_TREE and not self.abandoned:
                return self.cut(err, p, stop)
            self.abandoned = False
            self.state = 0 if self.state == IN_TREE else self.state
            return OK
        if self.state == IN_TREE:
            return OK if self.abandoned else self.node(p, stop, whole, err)
        if self.state == 0:
            if not begins(p, stop, KEYS[0]):
                if self.n_snapshots != 0 and not is_header(p, stop):
                    return self.bad(err, whole, p, stop, b"snapshot=")
                self.header, self.header_n, self.asks_place = p, stop - p, False
                return FP_NEEDS
            if fp_array_room(&self.snapshots, &self.cap_snapshots, <uint64_t>self.n_snapshots + 1, sizeof(Snapshot)):
                return fp_fail(err, FP_E_NOMEM, 0, "memory")
            memset(&self.snapshots[self.n_snapshots], 0, sizeof(Snapshot))
            self.n_snapshots += 1
        if not begins(p, stop, KEYS[self.state]):
            return self.bad(err, whole, p, stop, KEYS[self.state])
        s = &self.snapshots[self.n_snapshots - 1]
        if self.state == N_KEYS - 1:
            return self.tree_kind(s, p, p + strlen(KEYS[self.state]), stop, whole, err)
        return self.figure(s, p, p + strlen(KEYS[self.state]), stop, whole, err)

    cdef int figure(self, Snapshot *s, const uint8_t *first, const uint8_t *p, const uint8_t *stop, bint whole,
                    fp_err *err) noexcept nogil:
        cdef uint64_t value = 0
        cdef const uint8_t *dot = NULL
        if self.state == 1:
            dot = <const uint8_t *>memchr(p, c'.', stop - p)
        if not number(p, stop if dot == NULL else dot, &value) or not whole:
            return self.bad(err, whole, first, stop, b"a number below 2^63")
        if dot != NULL and not fraction(dot + 1, stop, &s.nanos):
            return self.bad(err, whole, first, stop, b"a time with at most 9 decimals")
        if self.state == 0:
            s.number = value
        elif self.state == 1:
            s.time = value
        elif self.state == 2:
            s.heap_bytes = value
        elif self.state == 3:
            s.extra_bytes = value
        else:
            s.stacks_bytes = value
        self.state += 1
        return OK

    cdef int tree_kind(self, Snapshot *s, const uint8_t *first, const uint8_t *p, const uint8_t *stop, bint whole,
                       fp_err *err) noexcept nogil:
        cdef size_t n = stop - p
        if n == 5 and memcmp(p, b"empty", 5) == 0:
            self.state = 0
            return OK
        if n == 4 and memcmp(p, b"peak", 4) == 0:
            s.kind = PEAK
        elif n == 8 and memcmp(p, b"detailed", 8) == 0:
            s.kind = DETAILED
        else:
            return self.bad(err, whole, first, stop, b"heap_tree=empty, detailed or peak")
        s.tree_at = s.tree_end = self.at + self.line_n
        s.line = self.line
        self.state = IN_TREE
        self.n_levels = 0
        self.tree_begun = self.abandoned = False
        return OK

    cdef int cut(self, fp_err *err, const uint8_t *p, const uint8_t *stop) noexcept nogil:
        """Report a tree that ends before all announced nodes."""
        if self.lenient:
            self.seen.cut_trees += not self.second
            return self.abandon(err)
        return fp_fail_text(err, FP_E_MALFORMED if p != stop else FP_E_TRUNCATED, self.at, self.line, "the tree", p,
                            stop - p, b"the nodes that its parents announce")

    cdef int end(self, fp_err *err) noexcept nogil:
        """Handle the end of the input."""
        if self.state == 0 or self.abandoned:
            return OK
        if self.state == IN_TREE:
            return self.cut(err, b"", b"")
        if self.lenient:
            self.seen.cut_trees += not self.second
            self.n_snapshots -= not self.second
            self.state = 0
            return OK
        return fp_fail_text(err, FP_E_TRUNCATED, self.at, self.line, "the snapshot", b"", 0, KEYS[self.state])

    # ---- trees ------------------------------------------------------------------

    cdef int node(self, const uint8_t *p, const uint8_t *stop, bint whole, fp_err *err) noexcept nogil:
        """` n1: 148000 0x1097DF: main (mem.cc:6)`"""
        cdef const uint8_t *first = p
        cdef const uint8_t *q
        cdef uint64_t n_children = 0, value = 0
        cdef uint32_t text, n = self.n_levels
        cdef Level *level
        while p != stop and p[0] == c' ':
            p += 1
        if <uint64_t>(p - first) != n:
            return self.bad(err, whole, first, stop, b"a node indented by one blank per parent")
        q = <const uint8_t *>memchr(p, c':', stop - p)
        if p == stop or p[0] != c'n' or q == NULL or not number(p + 1, q, &n_children) or stop - q < 3 or q[1] != c' ':
            return self.bad(err, whole, first, stop, b"n2: 318320 and a frame")
        p = q + 2
        q = <const uint8_t *>memchr(p, c' ', stop - p)
        if q == NULL or not number(p, q, &value) or not whole:
            return self.bad(err, whole, first, stop, b"n2: 318320 and a frame")
        if n != 0 and <int64_t>value > self.levels[n - 1].value - self.levels[n - 1].below:
            return self.bad(err, whole, first, stop, b"at most the bytes left of its parent")
        if n == MOST_DEPTH:
            return self.bad(err, whole, first, stop, b"at most a million nested nodes")
        text = 0
        if self.second and n != 0:
            text = fp_strings_intern(&self.texts, q + 1, stop - q - 1)
            if text == FP_NO_ID or fp_array_zeroed(&self.places, &self.cap_places, <uint64_t>text + 1, sizeof(Place)):
                return fp_fail(err, FP_E_NOMEM, 0, "memory")
            if not self.places[text].known:
                self.wanted, self.asks_place = text, True
                return FP_NEEDS
        if fp_array_room(&self.levels, &self.cap_levels, <uint64_t>n + 1, sizeof(Level)):
            return fp_fail(err, FP_E_NOMEM, 0, "memory")
        if n != 0:
            self.levels[n - 1].below += <int64_t>value
            self.levels[n - 1].remaining -= 1
        level = &self.levels[n]
        level.remaining, level.value, level.below, level.text = n_children, <int64_t>value, 0, text
        self.n_levels += 1
        return self.close(err)

    cdef int close(self, fp_err *err) noexcept nogil:
        """Add rows for nodes whose children are complete."""
        cdef int status
        while self.n_levels != 0 and self.levels[self.n_levels - 1].remaining == 0:
            status = self.own(err)
            if status != OK:
                return status
        if self.n_levels == 0:
            self.state = 0
            if not self.second:
                self.snapshots[self.n_snapshots - 1].tree_end = self.at + self.line_n
        return OK

    cdef int abandon(self, fp_err *err) noexcept nogil:
        """Skip the rest of a snapshot; open nodes keep the cost that their children do not account for."""
        cdef int status
        if self.state == IN_TREE:
            while self.n_levels != 0:
                status = self.own(err)
                if status != OK:
                    return status
            if not self.second:
                self.snapshots[self.n_snapshots - 1].tree_end = self.at + self.line_n
            self.abandoned = True
        elif self.n_snapshots != 0 and self.state != 0:
            self.n_snapshots -= 1
            self.state = 0
        return OK

    cdef int own(self, fp_err *err) noexcept nogil:
        """Add a row for the self cost of the last node, and remove the node."""
        cdef Level *level = &self.levels[self.n_levels - 1]
        cdef int64_t value = level.value - level.below
        cdef uint32_t node
        if self.second and value != 0:
            node = self.stack()
            if node == FP_NO_ID or fp_array_room(&self.rows, &self.cap_rows, <uint64_t>self.n_rows + 1, sizeof(Row)):
                return fp_fail(err, FP_E_NOMEM, 0, "memory")
            self.rows[self.n_rows].value, self.rows[self.n_rows].stack = value, node
            self.n_rows += 1
        self.n_levels -= 1
        return OK

    cdef uint32_t stack(self) noexcept nogil:
        """The stack of the last node; its callers are below it.  Functions of one address are inlined into the next,
        unless they are the same function, which is recursive.  FP_NO_ID when memory ran out."""
        cdef uint32_t i = self.n_levels, node = 0, chain, frame, text
        cdef Place *place
        cdef uint64_t address
        while i > 1:  # the root is Massif's own
            chain = 0
            text = self.levels[i - 1].text
            address = self.places[text].address
            while True:
                place = &self.places[self.levels[i - 1].text]
                if place.function != 0:
                    chain = fp_model_line(self.model, place.function, place.line, 0, chain)
                    if chain == FP_NO_ID:
                        return FP_NO_ID
                i -= 1
                if (i == 1 or address == 0 or self.levels[i - 1].text == text
                        or self.places[self.levels[i - 1].text].address != address):
                    break
            frame = fp_model_frame(self.model, 0, address, 0, chain)
            node = FP_NO_ID if frame == FP_NO_ID else fp_model_stack(self.model, node, frame)
            if node == FP_NO_ID:
                return FP_NO_ID
        return node


cdef inline bint begins(const uint8_t *p, const uint8_t *stop, const char *text) noexcept nogil:
    cdef size_t n = strlen(text)
    return <size_t>(stop - p) >= n and memcmp(p, text, n) == 0


cdef inline bint is_header(const uint8_t *p, const uint8_t *stop) noexcept nogil:
    """Whether a line belongs to the header, which heaptrack_print writes last."""
    return begins(p, stop, b"desc: ") or begins(p, stop, b"cmd: ") or begins(p, stop, b"time_unit: ")


cdef inline bint fraction(const uint8_t *p, const uint8_t *stop, uint64_t *nanos) noexcept nogil:
    """Parse the decimals of a time.  False if there is anything else."""
    cdef int i
    if stop - p > 9 or not number(p, stop, nanos):
        return False
    for i in range(9 - <int>(stop - p)):
        nanos[0] *= 10
    return True


cdef inline bint number(const uint8_t *p, const uint8_t *stop, uint64_t *to) noexcept nogil:
    """Parse digits of a number below 2^63.  False if there is anything else."""
    cdef uint64_t v = 0
    if p == stop or stop - p > 19:
        return False
    while p != stop:
        if not fp_is_digit(p[0]):
            return False
        v = v * 10 + (p[0] - c'0')
        p += 1
    to[0] = v
    return v >> 63 == 0
