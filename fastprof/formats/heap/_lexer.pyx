"""Lines of the text profiles of allocators, Go and Java -> rows of stacks, without the GIL.

    heap profile: 54: 13717984 [ 54: 13717984] @ heap_v2/65536     the reader (read.py) decides by this line
    1: 8388608 [ 1: 8388608] @ 0x7f3290e186cc 0x560f28efe1f9       HEAP: objects, bytes in use [allocated] @ stack
    #	0x560f28efe1f8	main.leak+0x2e	./prof.go:5                 Go: the name of an address above, minus 1

    @ 0x7f2e82aa2630 0x7f2e82aa2d21                                JEMALLOC: a stack
      t*: 19: 58133 [19: 58133]                                      of all threads
      t1: 13: 39775 [13: 39775] worker                               of a thread

    263633882 109 @ 0x4b46b0 0x4b4625                              PAIRS: delay, contentions
    4 @ 0x44cb3 0x45045                                            COUNTS

    --- Thread 7f794ab90940 (name: main/14748) stack: ---          THREADS
      PC:  0x00bc8f1c: helper(arg *)
      0x0040be31: main

Mapped objects and names follow the rows, so stacks are kept as addresses and become rows at the end of the input.
Rows with the same stack, labels and object size are added up while reading.  docs/formats/heap.md has all kinds.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memchr, memcpy

from fastprof.core.blanks cimport is_blank, skip_blanks, strip_blanks
from fastprof.core.fp cimport *
from fastprof.formats.heap.lines cimport *
from fastprof.formats.heap.scaling cimport *
from fastprof.formats.heap.store cimport *


cdef enum:
    OK = 0
    BAD = 1  # the line is malformed
    MOST_NAMES = 1 << 10  # per row, in Go's comments

cdef enum Mode:
    M_HEAD, M_TAIL  # lines for Python: the header; what follows the rows
    M_HEAP, M_JEMALLOC, M_PAIRS, M_COUNTS, M_THREADS  # rows

HEAD, TAIL, HEAP, JEMALLOC, PAIRS, COUNTS, THREADS = M_HEAD, M_TAIL, M_HEAP, M_JEMALLOC, M_PAIRS, M_COUNTS, M_THREADS


cdef struct Counts:
    uint64_t rows
    uint64_t comments
    uint64_t unreadable_lines  # lenient: unreadable lines
    uint64_t carriage_returns
    uint64_t thread_names
    uint64_t unmapped  # addresses in no mapped object
    bint open_end  # no newline at the end


# A closed row.  It is added up after the next one is closed, so that its index slot is prefetched meanwhile.
cdef struct Held:
    bint is_row
    uint32_t n_values, hash
    uint32_t *key  # as `pcs` of the open row
    uint32_t n_pcs, cap_pcs
    int64_t values[N_VALUES]
    uint64_t line, at


# The name of an address of the current row, from a comment.
cdef struct Name:
    uint32_t pc, function, line


cdef class Lexer:
    """Reads lines into stacks batches.

    FP_NEEDS: if `line_length` is not 0, Python reads the line `text` and either consumes it or calls `use` to have it read
    as a row.  Otherwise the input is at its end and Python calls `describe`.  Borrows the model at the given address.
    Memory: distinct stacks, and distinct pairs of stacks and labels.
    """

    cdef fp_model *model
    cdef bint lenient, described, merge, java, swapped, sized
    cdef Mode mode
    cdef uint32_t n_values  # of a row
    cdef int64_t rate, period, hertz
    cdef uint64_t line, at  # of the current line: its number and offset
    cdef const uint8_t *line_p
    cdef size_t line_n, text_n
    cdef Counts seen
    # the open row
    cdef bint open_row
    cdef int64_t values[N_VALUES]
    cdef uint32_t text  # its labels, as in the file
    cdef uint64_t row_line, row_at
    cdef uint32_t *pcs  # KEY_WORDS words, then its addresses, leaf first
    cdef uint32_t n_pcs, cap_pcs
    cdef size_t word_n  # bytes of the previous address's text
    cdef Held held
    cdef Name names[MOST_NAMES]
    cdef uint32_t n_names
    # JEMALLOC: the context's rows
    cdef bint has_context, has_threads, has_all
    cdef uint32_t last_key  # THREADS: of the previous thread
    cdef Store store
    cdef readonly size_t kept  # the address of the struct fp_key_sums of stacks
    cdef bint allocated  # a row has different figures for allocated objects and objects in use

    def __cinit__(self, size_t model, bint lenient):
        self.model = <fp_model *>model
        self.kept = <size_t>&self.store.kept
        self.lenient = lenient
        if store_init(&self.store, self.model) or fp_array_room(&self.pcs, &self.cap_pcs, KEY_WORDS, sizeof(uint32_t)):
            raise MemoryError("no memory to read a heap profile")

    def __dealloc__(self):
        store_clear(&self.store)
        free(self.pcs)
        free(self.held.key)

    # ---- for the reader ---------------------------------------------------------

    @property
    def counts(self) -> dict[str, int]:
        """The fields of Counts, so far."""
        self.seen.unmapped = self.store.unmapped
        return self.seen

    @property
    def line_length(self) -> int:
        """The size of the line for Python, with its newline; 0 at the end of the input."""
        return self.line_n

    @property
    def text(self) -> bytes:
        """That line, without its newline."""
        return self.line_p[:self.text_n]

    @property
    def line_number(self) -> int:
        return self.line

    @property
    def offset(self) -> int:
        """The offset of that line."""
        return self.at

    @property
    def has_allocated(self) -> bool:
        """Whether the figures of allocated objects differ from those in use."""
        return self.allocated

    @property
    def texts(self) -> list[bytes]:
        """The labels of rows as in the file, by id; the first is empty."""
        cdef size_t n
        cdef const uint8_t *p
        found = []
        for i in range(self.store.texts.n):
            p = fp_string(&self.store.texts, i, &n)
            found.append(p[:n])
        return found

    def consume(self, size_t in_) -> None:
        """Skip the line, which Python has read."""
        (<fp_window *>in_).pos += self.line_n

    def use(self, int mode, *, bint again=False, int64_t rate=0, int64_t period=0, int64_t hertz=0, bint swapped=False,
            bint sized=False, bint java=False) -> None:
        """Set how lines are read from here on; `again`: starting with the line offered to Python.

        `rate`: bytes between two samples of a heap.  `period`, `hertz`: of contentions, as pprof scales them.
        `swapped`: bytes or delay come first.  `sized`: rows of PAIRS are objects and bytes.  `java`: addresses are
        numbers of names.
        """
        self.mode = <Mode>mode
        self.rate, self.period, self.hertz = rate, period, hertz
        self.swapped, self.sized, self.java = swapped, sized, java
        self.n_values = 1 if mode == M_COUNTS or mode == M_THREADS else 2 if mode == M_PAIRS else N_VALUES
        self.line -= again

    def name(self, uint64_t address, uint32_t lines) -> None:
        """Add a name from one of the file's tables."""
        if store_name(&self.store, address, lines):
            raise MemoryError("no memory for names")

    def add_range(self, uint64_t start, uint64_t limit, uint32_t mapping) -> None:
        """Add the addresses of a mapping, in order; ranges do not overlap."""
        cdef Store *s = &self.store
        if fp_array_room(&s.ranges, &s.cap_ranges, <uint64_t>s.n_ranges + 1, sizeof(Range)):
            raise MemoryError("no memory for mappings")
        s.ranges[s.n_ranges].start, s.ranges[s.n_ranges].limit = start, limit
        s.ranges[s.n_ranges].mapping = mapping
        s.n_ranges += 1

    def describe(self, columns: Sequence[int], labels: Sequence[int], uint32_t bytes_key) -> None:
        """At the end of the input, set the values of rows (indexes below N_VALUES), the labels of each text, and the
        key of the label for object sizes (0: none).  Rows follow."""
        cdef Store *s = &self.store
        s.n_columns = len(columns)
        for i, column in enumerate(columns):
            s.columns[i] = column
        if fp_array_room(&s.labels, &s.cap_labels, len(labels), sizeof(uint32_t)):
            raise MemoryError("no memory for labels")
        for i, label in enumerate(labels):
            s.labels[i] = label
        s.bytes_key, s.java, s.next = bytes_key, self.java, 1
        self.merge = self.java or len(set(labels)) < len(labels)
        if store_frames(s) or self.merge and store_stacks(s):
            raise MemoryError("no memory for stacks")
        self.described = True

    def feed(self, size_t in_, size_t batch, size_t err) -> int:
        """Read what the window has, given the addresses of `struct fp_window`, `fp_batch` and `fp_err`.

        Returns an fp_status.
        """
        cdef int status
        with nogil:
            status = self.drain(<fp_batch *>batch, <fp_err *>err) if self.described \
                else self.window(<fp_window *>in_, <fp_err *>err)
        return status

    cdef int drain(self, fp_batch *b, fp_err *err) noexcept nogil:
        cdef int status = store_merge(&self.store, self.lenient, err) if self.merge else 0
        self.merge = False
        return status if status != 0 else store_drain(&self.store, b, err)

    cdef int window(self, fp_window *in_, fp_err *err) noexcept nogil:
        cdef const uint8_t *p
        cdef const uint8_t *stop
        cdef const uint8_t *end = in_.p + in_.n
        cdef bint whole
        cdef int status
        while in_.pos != in_.n:
            p = in_.p + in_.pos
            stop = <const uint8_t *>memchr(p, c'\n', end - p)
            whole = stop != NULL
            if not whole:
                if not in_.eof:
                    return FP_MORE
                stop = end
            self.line += 1
            self.at = in_.base + in_.pos
            self.seen.open_end = not whole
            self.line_p, self.line_n = p, stop + whole - p
            if stop != p and (stop - 1)[0] == c'\r':
                stop -= 1
                self.seen.carriage_returns += 1
            self.text_n = stop - p
            status = FP_NEEDS if self.mode == M_HEAD or self.mode == M_TAIL else self.read_line(p, stop, whole, err)
            if status != OK:
                return status
            in_.pos += self.line_n
        if not in_.eof:
            return FP_MORE
        status = self.close(err)
        if status == OK:
            status = self.add_held(err)
        self.line_n = 0
        return status if status < 0 else FP_NEEDS

    # ---- lines ----------------------------------------------------------------

    cdef int read_line(self, const uint8_t *first, const uint8_t *stop, bint whole, fp_err *err) noexcept nogil:
        """Read a line of rows.  OK, FP_NEEDS if the line is for Python, or an error."""
        cdef const uint8_t *p = skip_blanks(first, stop)
        cdef int status
        stop = strip_blanks(p, stop)
        if p != stop and p[0] == c'#':
            return self.comment(p, stop, err)
        if self.mode == M_THREADS:
            return self.thread_line(first, p, stop, whole, err)
        if p == stop:
            return OK
        # the sections after the rows: mapped objects, Java's names
        if begins(p, stop, b"---") or begins(p, stop, b"MAPPED_LIBRARIES:") or self.java and begins(p, stop, b"0x"):
            return self.end_rows(err)
        if self.mode == M_JEMALLOC:
            return self.jemalloc_line(p, stop, whole, err)
        status = self.close(err)
        return self.row(p, stop, whole, err) if status == OK else status

    cdef int end_rows(self, fp_err *err) noexcept nogil:
        cdef int status = self.close(err)
        self.mode = M_TAIL
        return status if status < 0 else FP_NEEDS

    cdef int bad(self, fp_err *err, bint whole, const uint8_t *p, const uint8_t *stop, const char *want) noexcept nogil:
        """Report a malformed line: an error, or a loss."""
        if self.lenient:
            self.seen.unreadable_lines += 1
            return OK
        return fp_fail_text(err, FP_E_MALFORMED if whole else FP_E_TRUNCATED, self.at, self.line, "the line", p,
                            stop - p, want)

    cdef int too_large(self, fp_err *err, const uint8_t *p, const uint8_t *stop) noexcept nogil:
        if self.lenient:
            self.seen.unreadable_lines += 1
            return OK
        return fp_fail_text(err, FP_E_OVERFLOW, self.at, self.line, "the line", p, stop - p,
                            "counts below 2^63 and addresses below 2^64")

    cdef int row(self, const uint8_t *p, const uint8_t *stop, bint whole, fp_err *err) noexcept nogil:
        """`1: 96 [1: 96] @ 0x43742b`, `263633882 109 @ 0x4b46b0` or `4 @ 0x44cb3` opens a row."""
        cdef const uint8_t *q
        cdef bint overflows = False
        cdef int64_t *v = self.values
        cdef int status
        if self.mode == M_HEAP:
            q = two_pairs(p, stop, v, &overflows)
        else:
            q = whole_number(p, stop, &v[0], &overflows)
            if q != NULL and self.mode == M_PAIRS:
                q = whole_number(q, stop, &v[1], &overflows)
            if v[0] < 0 or self.mode == M_PAIRS and v[1] < 0:
                q = NULL
        if q != NULL:
            q = expect(q, stop, c'@')
        if q == NULL:
            return self.bad(err, whole, p, stop, b"objects: bytes [objects: bytes] @ addresses"
                            if self.mode == M_HEAP else b"counts @ addresses")
        status = self.stack(q, stop, &overflows)
        if status == FP_E_NOMEM:
            return fp_fail(err, status, 0, "memory")
        if status != OK:
            return self.bad(err, whole, p, stop, b"addresses after the @, as 0x7fbd1344524a")
        if overflows:
            return self.too_large(err, p, stop)
        if self.swapped:
            v[0], v[1] = v[1], v[0]
        # objects without bytes exist, bytes without objects do not
        if (self.mode == M_HEAP and (v[0] == 0 and v[1] != 0 or v[2] == 0 and v[3] != 0)
                or self.sized and v[0] == 0):
            return self.bad(err, whole, p, stop, b"a number of objects, because bytes follow")
        self.begin_row()
        return OK

    cdef void begin_row(self) noexcept nogil:
        self.open_row = True
        self.row_line, self.row_at = self.line, self.at
        self.text = 0

    cdef int stack(self, const uint8_t *p, const uint8_t *stop, bint *overflows) noexcept nogil:
        """Read addresses to the end of the line into the row.  OK, BAD or FP_E_NOMEM."""
        cdef int status = OK
        cdef const uint8_t *q
        self.n_pcs = 0
        p = skip_blanks(p, stop)
        # at most one address for 4 bytes: `0x1 `
        if fp_array_room(&self.pcs, &self.cap_pcs, KEY_WORDS + <uint64_t>(stop - p) // 4 + 1, sizeof(uint32_t)):
            return FP_E_NOMEM
        while p != stop and status == OK:
            q = store_word(&self.store, p, stop, self.word_n, &self.pcs[KEY_WORDS + self.n_pcs])
            if q != NULL:
                self.n_pcs += 1
            else:
                q = p
                status = self.address(&q, stop, overflows)
                if status == OK and q != stop and not is_blank(q[0]):
                    status = BAD
                if status == OK and not overflows[0]:
                    self.word_n = q - p
                    status = store_set_word(&self.store, p, q - p, self.pcs[KEY_WORDS + self.n_pcs - 1])
            p = skip_blanks(q, stop)
        return status

    cdef int address(self, const uint8_t **p, const uint8_t *stop, bint *overflows) noexcept nogil:
        """Read an address into the row and move *p past it.  OK, BAD or FP_E_NOMEM."""
        cdef uint64_t address = 0
        cdef uint32_t row[ADDRESS_WORDS]
        cdef uint32_t id_
        cdef const uint8_t *q = hex_number(p[0], stop, &address, overflows)
        if q == NULL:
            return BAD
        if fp_array_room(&self.pcs, &self.cap_pcs, KEY_WORDS + <uint64_t>self.n_pcs + 1, sizeof(uint32_t)):
            return FP_E_NOMEM
        row[0], row[1] = <uint32_t>address, <uint32_t>(address >> 32)
        row[2] = self.mode == M_THREADS and self.n_pcs == 0
        id_ = store_address(&self.store, row)
        if id_ == FP_NO_ID:
            return FP_E_NOMEM
        self.pcs[KEY_WORDS + self.n_pcs] = id_
        self.n_pcs += 1
        p[0] = q
        return OK

    cdef int jemalloc_line(self, const uint8_t *p, const uint8_t *stop, bint whole, fp_err *err) noexcept nogil:
        """Read `@ addresses`, or a row of all threads or of one.  Rows before the first stack are totals: skip them."""
        cdef const uint8_t *q
        cdef const uint8_t *id_ = p + 1
        cdef int64_t v[N_VALUES]
        cdef int64_t thread = 0
        cdef bint overflows = False, all_
        cdef int status = OK
        if p[0] == c'@':
            status = self.close(err)
            if status != OK:
                return status
            status = self.stack(p + 1, stop, &overflows)
            if status == FP_E_NOMEM:
                return fp_fail(err, status, 0, "memory")
            self.has_threads = self.has_all = False
            self.has_context = status == OK and not overflows
            if overflows:
                return self.too_large(err, p, stop)
            return OK if status == OK else self.bad(err, whole, p, stop, b"addresses after the @, as 0x7fbd1344524a")
        all_ = stop - p > 1 and p[1] == c'*'
        q = NULL
        if p[0] == c't':
            q = p + 2 if all_ else whole_number(id_, stop, &thread, &overflows)
        if q != NULL:
            q = expect(q, stop, c':')
        if q != NULL:
            q = two_pairs(q, stop, v, &overflows)
        if q == NULL:
            return self.bad(err, whole, p, stop, b"@ addresses, or t*: objects: bytes [objects: bytes]")
        if overflows:
            return self.too_large(err, p, stop)
        if not self.has_context or all_ and self.has_threads:
            return OK
        if all_ and self.has_all:
            return self.bad(err, whole, p, stop, b"a single row of all threads for each stack")
        # the rows of threads replace the row of all threads
        if self.has_threads:
            status = self.close(err)
            if status != OK:
                return status
        self.has_threads = not all_
        self.has_all = True
        self.begin_row()
        memcpy(self.values, v, sizeof(v))
        if not all_:
            # `t1: 13: 39775 [13: 39775] worker` has the label text `t1: worker`
            self.text = store_thread(&self.store, id_, skip_blanks(q, stop), stop)
        return OK if self.text != FP_NO_ID else fp_fail(err, FP_E_NOMEM, 0, "memory")

    cdef int thread_line(self, const uint8_t *first, const uint8_t *p, const uint8_t *stop, bint whole,
                         fp_err *err) noexcept nogil:
        cdef int64_t one = 1
        cdef int status
        if p == stop:
            return OK
        if first == p and begins(p, stop, b"---"):
            if not begins(p, stop, b"--- Thread "):  # the map, or `---- no stack trace for`
                return self.end_rows(err)
            status = self.close(err)
            if status != OK:
                return status
            if memchr(p, c')', stop - p) == NULL:
                return self.bad(err, whole, p, stop, b"--- Thread 7f794ab90940 (name: main/14748) stack: ---")
            self.seen.thread_names += 1
            self.begin_row()
            self.n_pcs = 0
            self.values[0] = 1
            return OK
        if not self.open_row:
            return self.bad(err, whole, p, stop, b"--- Thread, before its stack")
        if begins(p, stop, b"[same as previous thread]"):
            self.open_row = False
            if self.last_key != 0 and not store_add(&self.store, self.last_key, &one, 1):
                return self.too_large(err, p, stop)
            return OK
        return self.thread_frames(p, stop, whole, err)

    cdef int thread_frames(self, const uint8_t *p, const uint8_t *stop, bint whole, fp_err *err) noexcept nogil:
        """`PC: 0xbc8f1c 0xbcae55`, `creator: 0xa45b96`, or an address with a name: `0x0040be31: main`."""
        cdef const uint8_t *q
        cdef bint overflows = False
        cdef int status
        if not begins(p, stop, b"0x"):
            q = <const uint8_t *>memchr(p, c':', stop - p)
            if q == NULL:
                return self.bad(err, whole, p, stop, b"PC: addresses")
            p = skip_blanks(q + 1, stop)
        while p != stop:
            status = self.address(&p, stop, &overflows)
            if status == OK and p != stop and p[0] != c':' and not is_blank(p[0]):
                status = BAD
            if status == BAD:
                return self.bad(err, whole, self.line_p, stop, b"addresses, as 0x7fbd1344524a")
            if status == OK and p != stop and p[0] == c':':
                q = skip_blanks(p + 1, stop)
                status = store_frame_name(&self.store, self.pcs[KEY_WORDS + self.n_pcs - 1], q, stop - q)
                p = stop
            if status != OK:
                return fp_fail(err, status, 0, "memory")
            p = skip_blanks(p, stop)
        return self.too_large(err, self.line_p, stop) if overflows else OK

    # ---- comments: Go's names and labels ------------------------------------------

    cdef int comment(self, const uint8_t *p, const uint8_t *stop, fp_err *err) noexcept nogil:
        """`#	0x4b448e	main.leak+0x2e		./prof.go:5` or `# labels: {"k":"v"}` of the open row; else ignored."""
        cdef const uint8_t *q = skip_blanks(p + 1, stop)
        cdef uint64_t address = 0
        cdef bint overflows = False
        if self.open_row and self.mode != M_JEMALLOC and begins(q, stop, b"labels: "):
            self.text = fp_strings_intern(&self.store.texts, q + 8, stop - q - 8)
            return OK if self.text != FP_NO_ID else fp_fail(err, FP_E_NOMEM, 0, "memory")
        if self.open_row and begins(q, stop, b"0x"):
            q = hex_number(q, stop, &address, &overflows)
            if q != NULL and not overflows and q != stop and q[0] == c'\t':
                return OK if self.go_name(address, skip_blanks(q, stop), stop) == OK \
                    else fp_fail(err, FP_E_NOMEM, 0, "memory")
            return OK  # `#	0x0`, of a thread without a stack
        self.seen.comments += p + 1 != stop
        return OK

    cdef int go_name(self, uint64_t address, const uint8_t *p, const uint8_t *stop) noexcept nogil:
        """`main.leak+0x2e		./prof.go:5`.  The address is that of the frame, minus 1.  OK or FP_E_NOMEM."""
        cdef uint32_t id_ = store_find(&self.store, address + 1), name, path, function
        cdef GoPlace place
        if id_ == 0 or self.store.lines[id_] != 0 or self.n_names == MOST_NAMES:
            return OK
        go_place(p, stop, &place)
        name = fp_strings_intern(&self.model.strings, place.name, place.name_n)
        path = fp_strings_intern(&self.model.strings, place.file, place.file_n)
        function = FP_NO_ID if name == FP_NO_ID or path == FP_NO_ID else \
            fp_model_function(self.model, 0, path, name, 0, 0)
        if function == FP_NO_ID:
            return FP_E_NOMEM
        self.names[self.n_names].pc, self.names[self.n_names].function = id_, function
        self.names[self.n_names].line = place.line
        self.n_names += 1
        return OK

    cdef int chain_names(self) noexcept nogil:
        """Convert the names of the row to line chains: names of one address are adjacent, innermost first."""
        cdef uint32_t k = self.n_names, outer = 0, pc = 0
        while k != 0:
            k -= 1
            if self.names[k].pc != pc:
                outer = 0
            pc = self.names[k].pc
            outer = fp_model_line(self.model, self.names[k].function, self.names[k].line, 0, outer)
            if outer == FP_NO_ID:
                return FP_E_NOMEM
            self.store.lines[pc] = outer
        self.n_names = 0
        return OK

    # ---- sums -------------------------------------------------------------------

    cdef int close(self, fp_err *err) noexcept nogil:
        """Scale the open row, if any, and hold it."""
        cdef int64_t nbytes = 0
        cdef int64_t *v = self.values
        if not self.open_row:
            return OK
        self.open_row = False
        if self.mode == M_HEAP or self.mode == M_JEMALLOC or self.sized:
            if self.sized:
                v[2] = v[3] = 0
            self.allocated = self.allocated or (v[2] != v[0] and v[2] != 0) or (v[3] != v[1] and v[3] != 0)
            nbytes = bytes_of_object(v)
            if not scale_pairs(v, self.rate):
                return self.beyond(self.row_line, self.row_at, err)
        elif self.mode == M_PAIRS and not contention(v, self.period, self.hertz, self.java):
            return self.beyond(self.row_line, self.row_at, err)
        if self.chain_names():
            return fp_fail(err, FP_E_NOMEM, 0, "memory")
        return self.hold(v, nbytes, err)

    cdef int hold(self, const int64_t *v, int64_t nbytes, fp_err *err) noexcept nogil:
        """Add the row held so far to the sums and hold the open row."""
        cdef Held *h = &self.held
        cdef uint32_t hash_ = store_hash(&self.store, self.pcs, self.n_pcs, self.text, nbytes)
        cdef int status = self.add_held(err)
        if status != OK:
            return status
        if fp_array_room(&h.key, &h.cap_pcs, KEY_WORDS + <uint64_t>self.n_pcs, sizeof(uint32_t)):
            return fp_fail(err, FP_E_NOMEM, 0, "memory")
        memcpy(h.key, self.pcs, (KEY_WORDS + <size_t>self.n_pcs) * sizeof(uint32_t))  # jemalloc: of several rows
        h.n_pcs, h.hash = self.n_pcs, hash_
        h.n_values, h.line, h.at = self.n_values, self.row_line, self.row_at
        memcpy(h.values, v, sizeof(h.values))
        h.is_row = True
        # the next line may refer to the row: `[same as previous thread]`
        return self.add_held(err) if self.mode == M_THREADS else OK

    cdef int add_held(self, fp_err *err) noexcept nogil:
        """Add the row held, if any, to the sums."""
        cdef Held *h = &self.held
        if not h.is_row:
            return OK
        h.is_row = False
        self.last_key = store_key(&self.store, h.key, h.n_pcs, h.hash)
        if self.last_key == FP_NO_ID:
            return fp_fail(err, FP_E_NOMEM, 0, "memory")
        if not store_add(&self.store, self.last_key, h.values, h.n_values):
            return self.beyond(h.line, h.at, err)
        sums_of(&self.store, self.last_key).line, sums_of(&self.store, self.last_key).at = h.line, h.at
        self.seen.rows += 1
        return OK

    cdef int beyond(self, uint64_t line, uint64_t at, fp_err *err) noexcept nogil:
        """Report a value, or a sum of rows, of 2^63 or more."""
        if self.lenient:
            self.seen.unreadable_lines += 1
            return OK
        fp_fail(err, FP_E_OVERFLOW, at, "a value, or the sum of a stack's values, is 2^63 or more")
        err.line = line
        return FP_E_OVERFLOW
