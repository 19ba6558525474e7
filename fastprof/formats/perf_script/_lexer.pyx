"""Lines of `perf script` -> rows of stacks, without the GIL.

    demo  6598/6599 [001]  1593.383339:     250000 cpu-clock:        a sample: process, thread, CPU, time, period, event
    	            1415 hot+0x25 (/srv/demo/demo)                   its frames, leaf first
    	            118f main+0x5f (/srv/demo/demo)

A sample ends where the next one begins.  Without a call chain the sample's place stands on the event's own line.
docs/formats/perf-script.md lists the shapes, repairs and errors.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memchr, memcmp, memcpy, memset

from fastprof.core.blanks cimport is_blank, skip_blanks, strip_blanks
from fastprof.core.fp cimport *
from fastprof.formats.perf_script.chains cimport *
from fastprof.formats.perf_script.lines cimport *


cdef int64_t INT64_LIMIT = 0x7fffffffffffffff
cdef uint64_t MOST_32 = 0xffffffff
cdef uint32_t NONE = 0xffffffff


cdef class Lexer:
    """Reads the lines of `perf script` into stacks batches.

    `comm_frames`: stacks begin with the process's name.  Borrows the model, whose address it is given.  Memory:
    the model's growth, a million frame lines at most, the frames of one sample, and ROWS samples, which are gathered
    so that their events are known; later only as many as a batch takes, so that stacks can be emptied after it.
    """

    cdef fp_model *model
    cdef bint lenient, comm_frames
    cdef uint32_t input_, unknown, comm_key, comm
    cdef uint64_t line
    cdef Counts seen
    cdef fp_strings lines  # frame lines that were read
    cdef Location *locations  # by line
    # the open sample
    cdef bint in_sample, blank_seen, in_namespaces, has_place
    cdef Row sample
    cdef Comms comm_of
    cdef Location place
    cdef Location *frames  # leaf first
    cdef uint32_t n_frames, cap_frames, cap_locations
    cdef Chains chains
    cdef uint32_t chain  # of the open sample; 0: none, or not cached
    cdef uint32_t known_stack  # of the open sample, if its chain is known
    cdef uint32_t *comm_roots  # by string: the stack of a frame of that name
    cdef uint32_t cap_comm_roots
    # samples on their way to batches
    cdef Row *rows
    cdef uint32_t n_rows, drained
    cdef bint draining, ended, waits  # waits: the model must keep stacks
    cdef uint32_t n_renewed  # of the model: when this changes, no earlier stack is known
    # events
    cdef uint32_t events[MOST_EVENTS]  # names
    cdef bint has_period[MOST_EVENTS]
    cdef uint32_t order[MOST_EVENTS]  # of the events' columns
    cdef uint32_t n_events, n_columns, n_known_columns
    cdef uint32_t sample_column[MOST_EVENTS]
    cdef uint32_t period_column[MOST_EVENTS]
    cdef uint8_t *header
    cdef size_t header_n

    def __cinit__(self, size_t model, bint lenient, bint comm_frames, uint32_t input_, uint32_t unknown,
                  uint32_t comm_key):
        self.model = <fp_model *>model
        self.lenient = lenient
        self.comm_frames = comm_frames
        self.input_ = input_
        self.unknown = unknown
        self.comm_key = comm_key
        self.rows = <Row *>malloc(ROWS * sizeof(Row))
        self.header = <uint8_t *>malloc(HEADER)
        if self.rows == NULL or self.header == NULL or fp_strings_init(&self.lines) \
                or fp_strings_init(&self.chains.texts):
            raise MemoryError("no memory to read perf script")

    def __dealloc__(self):
        fp_strings_clear(&self.lines)
        fp_strings_clear(&self.chains.texts)
        free(self.chains.rows)
        free(self.locations)
        free(self.frames)
        free(self.comm_roots)
        free(self.comm_of.p)
        free(self.rows)
        free(self.header)

    @property
    def counts(self) -> dict[str, int]:
        """The fields of Counts, so far."""
        return self.seen

    @property
    def comments(self) -> bytes:
        """The first comments, which `--header` prints."""
        return self.header[:self.header_n]

    @property
    def comms(self) -> dict[int, int]:
        """By thread of the model: the string of its last name."""
        return {i: self.comm_of.p[i] for i in range(self.comm_of.cap) if self.comm_of.p[i]}

    @property
    def columns(self) -> list[tuple[int, bool]]:
        """For each event its name's string, and whether a column for its period follows that of its samples."""
        return [(self.events[self.order[k]], bool(self.has_period[self.order[k]])) for k in range(self.n_events)]

    def feed(self, size_t in_, size_t batch, size_t err) -> int:
        """Read what the window has, given the addresses of `struct fp_window`, `fp_batch` and `fp_err`.

        Returns an fp_status.  FP_NEEDS: `columns` are more than before: the batch, which is empty or has to be drained
        first, needs a part with them.
        """
        cdef int status
        with nogil:
            if self.n_renewed != self.model.n_renewed:
                self.forget_stacks()
            self.model.n_waiting -= self.waits
            status = self.window(<fp_window *>in_, <fp_batch *>batch, <fp_err *>err)
            self.waits = self.draining or (self.in_sample and self.known_stack != 0)
            self.model.n_waiting += self.waits
        return status

    cdef void forget_stacks(self) noexcept nogil:
        self.n_renewed, self.chain = self.model.n_renewed, 0
        forget_chains(&self.chains)
        if self.cap_comm_roots:
            memset(self.comm_roots, 0, self.cap_comm_roots * sizeof(uint32_t))

    cdef bint has_enough(self, const fp_batch *b) noexcept nogil:
        cdef bint gathers = self.n_known_columns == 0
        return self.n_rows >= (ROWS if gathers else min(ROWS, b.cap - b.n)) \
            or (gathers and self.model.stacks.n > GATHERED_STACKS)

    def declare(self, names: list[int]) -> None:
        """Give events with these names, strings of the model, the first columns in this order, although only some have
        samples yet: the others have periods if the first sample has one.  Call it once, before `use_columns`."""
        known = [self.events[i] for i in range(self.n_events)]
        ranks = {name: k for k, name in enumerate(names)}
        events = [*known, *(name for name in ranks if name not in known)][:MOST_EVENTS]
        for i in range(self.n_events, len(events)):
            self.events[i], self.has_period[i] = events[i], self.has_period[0]
        self.n_events = len(events)
        for k, event in enumerate(sorted(events, key=lambda name: ranks.get(name, MOST_EVENTS))):
            self.order[k] = events.index(event)
        self.number_columns()

    def use_columns(self) -> None:
        """The next rows belong to the part with the current `columns`."""
        self.n_known_columns = self.n_columns

    cdef int window(self, fp_window *in_, fp_batch *b, fp_err *err) noexcept nogil:
        cdef int status
        while True:
            if self.draining:
                if self.n_known_columns != self.n_columns:
                    return FP_NEEDS
                if not self.drain(b):
                    return FP_FULL
            if self.ended:
                return FP_DONE
            if b.n == b.cap:
                return FP_FULL
            status = self.fill(in_, b, err)
            if status != FP_FULL:
                return status

    cdef bint drain(self, fp_batch *b) noexcept nogil:
        """Gives out rows; False if the batch is full before."""
        cdef Row *row
        cdef uint32_t k
        cdef size_t cap = b.cap
        while self.drained != self.n_rows:
            if b.n == b.cap:
                return False
            row = &self.rows[self.drained]
            b.stack[b.n] = row.stack
            b.time[b.n] = row.time
            b.thread[b.n] = row.thread
            b.label[b.n] = row.label
            for k in range(self.n_columns):
                b.values[k * cap + b.n] = 0
            b.values[self.sample_column[row.event] * cap + b.n] = 1
            if self.has_period[row.event]:
                b.values[self.period_column[row.event] * cap + b.n] = row.period
            b.n += 1
            self.drained += 1
        self.draining, self.n_rows, self.drained = False, 0, 0
        return True

    cdef int fill(self, fp_window *in_, const fp_batch *b, fp_err *err) noexcept nogil:
        """Reads lines.  FP_FULL: there are rows to give out, or the end was reached."""
        cdef const uint8_t *p
        cdef const uint8_t *end = in_.p + in_.n
        cdef const uint8_t *stop
        cdef const uint8_t *next
        cdef bint whole
        cdef int status
        while True:
            p = in_.p + in_.pos
            if p == end:
                break
            stop = <const uint8_t *>memchr(p, c'\n', end - p)
            whole = stop != NULL
            if not whole:
                if not in_.eof:
                    return FP_MORE
                stop = end
            next = stop + whole
            # a line of the source may follow a frame, and is read with it
            if not in_.eof and (end - next < 2 or (next[0] == c' ' and next[1] == c' '
                                                   and memchr(next, c'\n', end - next) == NULL)):
                return FP_MORE
            self.line += 1
            status = self.read_line(p, stop, &next, end, in_.base + in_.pos, whole, err)
            if status < 0:
                return status
            in_.pos = next - in_.p
            if self.n_rows != 0 and self.has_enough(b):
                self.draining = True
                return FP_FULL
        if not in_.eof:
            return FP_MORE
        self.ended = True
        status = self.close_sample(err)
        if status < 0:
            return status
        self.draining = True
        return FP_FULL

    # ---- lines ----------------------------------------------------------------

    cdef int read_line(self, const uint8_t *p, const uint8_t *stop, const uint8_t **next, const uint8_t *end,
                       uint64_t offset, bint whole, fp_err *err) noexcept nogil:
        cdef const uint8_t *first = p
        cdef Start start
        cdef bint tab
        if stop != p and (stop - 1)[0] == c'\r':
            self.seen.carriage_returns += 1
            stop -= 1
        self.seen.open_end = not whole
        if p == stop:
            self.blank_seen = True
            self.in_namespaces = False
            return OK
        tab = p[0] == c'\t'
        if is_message(p, stop):
            self.seen.messages += 1
            return OK
        if not tab and p[0] != c'#' and read_start(p, stop, &start):
            return self.begin(&start, stop, offset, first, whole, err)
        if tab and self.in_namespaces and not self.in_sample:
            return OK
        p = skip_blanks(p, stop)
        if p == stop:
            self.blank_seen = True
            return OK
        if address_end(p, stop) != NULL:
            return self.frame_line(first, stop, next, end, offset, whole, err)
        return self.other_line(first, p, stop, offset, whole, err)

    cdef int other_line(self, const uint8_t *first, const uint8_t *p, const uint8_t *stop, uint64_t offset, bint whole,
                        fp_err *err) noexcept nogil:
        """Neither a sample's beginning nor a frame.  `p`: after the blanks that the line begins with."""
        if first[0] == c'#':
            self.comment(first, stop)
            return OK
        if begins(p, stop, b"PERF_RECORD_", 12):
            self.seen.side_records += 1
            return OK
        # ` ABI:2    AX:0x...` and ` 0x400080/0x400100/M/-/-/7`, which end a sample
        if first[0] == c' ' and self.in_sample and (begins(p, stop, b"ABI:", 4) or begins(p, stop, b"0x", 2)
                                                    or begins(p, stop, b"ilen:", 5) or begins(p, stop, b"insn:", 5)):
            self.seen.registers_and_branches += 1
            return OK
        if self.in_sample and self.has_place and first[0] == c' ' and first[1] == c' ':  # -F srcline, below the place
            if self.source_line(p, strip_blanks(p, stop), &self.place):
                return fp_fail(err, FP_E_NOMEM, 0, "memory")
            return OK
        if p[0] == c'|' and self.in_sample:  # -F srccode
            self.seen.registers_and_branches += 1
            return OK
        # `demo `, the start line of -F comm,ip,sym
        if first == p and whole and (stop - 1)[0] == c' ' and (not self.in_sample or self.blank_seen):
            return self.begin_named(first, strip_blanks(first, stop), err)
        return self.bad(err, FP_E_MALFORMED if whole else FP_E_TRUNCATED, offset, "the line", first, stop - first,
                        "a sample (comm tid time: event:), a frame (address symbol (object)) or a comment")

    cdef void comment(self, const uint8_t *p, const uint8_t *stop) noexcept nogil:
        cdef size_t n = stop - p
        self.seen.comments += 1
        if self.header_n + n + 1 <= HEADER:
            memcpy(self.header + self.header_n, p, n)
            self.header[self.header_n + n] = c'\n'
            self.header_n += n + 1

    cdef int bad(self, fp_err *err, int code, uint64_t offset, const char *what, const uint8_t *text, size_t n,
                 const char *want) noexcept nogil:
        """The line cannot be read: an error, or a loss."""
        if self.lenient:
            self.seen.unreadable_lines += 1
            return OK
        return fp_fail_text(err, code, offset, self.line, what, text, n, want)

    # ---- samples --------------------------------------------------------------

    cdef int begin(self, Start *start, const uint8_t *stop, uint64_t offset, const uint8_t *first, bint whole,
                   fp_err *err) noexcept nogil:
        cdef int status = self.close_sample(err)
        cdef const uint8_t *rest
        if status < 0:
            return status
        self.in_namespaces = False
        rest = skip_blanks(start.event, stop)
        if begins(rest, stop, b"PERF_RECORD_", 12):
            self.seen.side_records += 1
            self.in_namespaces = begins(rest, stop, b"PERF_RECORD_NAMESPACES", 22)
            return OK
        if not whole and start.event_n == 0:
            return self.bad(err, FP_E_TRUNCATED, offset, "the line", first, stop - first, "a complete line")
        if start.period > <uint64_t>INT64_LIMIT:
            return self.bad(err, FP_E_OVERFLOW, offset, "the sample", first, stop - first,
                            "a period of at most 2^63 - 1")
        status = self.open_sample(start, offset, err)
        if status < 0 or not self.in_sample:
            return status
        rest = skip_blanks(start.rest, stop)
        if rest != stop:
            return self.read_place(first, start.rest, stop, offset, whole, err)
        return OK

    cdef int begin_named(self, const uint8_t *p, const uint8_t *stop, fp_err *err) noexcept nogil:
        cdef Start start
        cdef int status = self.close_sample(err)
        if status < 0:
            return status
        read_start(p, p, &start)
        without_time(p, stop, &start)
        return self.open_sample(&start, 0, err)

    cdef int open_sample(self, const Start *start, uint64_t offset, fp_err *err) noexcept nogil:
        cdef uint32_t name = fp_strings_intern(&self.model.strings, start.event, start.event_n)
        cdef uint32_t i
        if name == FP_NO_ID:
            return fp_fail(err, FP_E_NOMEM, 0, "memory")
        for i in range(self.n_events):
            if self.events[i] == name:
                break
        else:
            i = self.n_events
            if i == MOST_EVENTS:
                return self.bad(err, FP_E_MALFORMED, offset, "the event", start.event, start.event_n,
                                "at most 256 different events")
            self.events[i] = name
            self.has_period[i] = False
            self.order[i] = i
            self.n_events += 1
            self.number_columns()
        if start.has_period and not self.has_period[i]:
            self.has_period[i] = True
            self.number_columns()
        self.sample.event = i
        self.sample.time = start.time
        self.sample.period = <int64_t>start.period if start.has_period else 1
        self.seen.without_period += self.has_period[i] and not start.has_period
        self.seen.cpu_numbers += start.has_cpu
        self.comm = fp_strings_intern(&self.model.strings, start.comm, start.comm_n)
        self.sample.thread = self.sample.label = 0
        if start.pid or start.tid:
            self.sample.thread = fp_model_thread(self.model, self.input_, start.pid, start.tid)
        if start.comm_n:
            self.sample.label = fp_model_label(self.model, 0, self.comm_key, self.comm, 0, 0)
        if self.comm == FP_NO_ID or self.sample.label == FP_NO_ID \
                or not note_comm(&self.comm_of, self.sample.thread, self.comm):
            return fp_fail(err, FP_E_NOMEM, 0, "memory")
        self.in_sample = True
        self.blank_seen = self.has_place = False
        self.n_frames = self.chain = self.known_stack = 0
        return OK

    cdef void number_columns(self) noexcept nogil:
        cdef uint32_t i, k, n = 0
        for k in range(self.n_events):
            i = self.order[k]
            self.sample_column[i] = n
            n += 1
            self.period_column[i] = n
            n += self.has_period[i]
        self.n_columns = n

    cdef int read_place(self, const uint8_t *line, const uint8_t *p, const uint8_t *stop, uint64_t offset, bint whole,
                        fp_err *err) noexcept nogil:
        """The text after the event: the place of a sample without a call chain, or the fields of a tracepoint.  An
        address of -F +addr may precede the place."""
        cdef const uint8_t *end = place_end(p, stop)
        cdef const uint8_t *again = stop
        cdef int status
        if end == NULL:
            self.seen.fields += 1
            return OK
        stop = without_branches(end, stop)
        self.seen.registers_and_branches += stop != again
        again = place_end(end, stop)
        p = skip_blanks(end if again == NULL else again, stop)
        if not whole and (stop == p or (stop - 1)[0] != c')'):
            self.in_sample = False
            return self.bad(err, FP_E_TRUNCATED, offset, "the line", line, stop - line, "a complete line")
        status = self.locate(p, strip_blanks(p, stop), &self.place)
        if status < 0:
            return fp_fail(err, FP_E_NOMEM, 0, "memory")
        self.has_place = not self.place.inlined
        return OK

    cdef int close_sample(self, fp_err *err) noexcept nogil:
        """The open sample becomes a row."""
        if not self.in_sample:
            return OK
        self.in_sample = False
        cdef uint32_t node = FP_NO_ID
        if self.n_frames != 0 or not self.has_place or not self.push(&self.place):
            node = self.known_stack if self.known_stack else self.stack()
        if node == FP_NO_ID:
            return fp_fail(err, FP_E_NOMEM, 0, "memory")
        if self.chain and self.chains.rows[self.chain].n_frames == self.n_frames:  # each of its lines is a frame
            self.chains.rows[self.chain].stack = node
        self.sample.stack = node
        self.rows[self.n_rows] = self.sample
        self.n_rows += 1
        return OK

    # ---- frames ---------------------------------------------------------------

    cdef int frame_line(self, const uint8_t *p, const uint8_t *stop, const uint8_t **next, const uint8_t *end,
                        uint64_t offset, bint whole, fp_err *err) noexcept nogil:
        cdef Start start
        cdef const uint8_t *more = next[0]
        cdef const uint8_t *more_stop = source_line_end(more, end)
        cdef int status
        if not whole and (stop - 1)[0] != c')':
            return self.bad(err, FP_E_TRUNCATED, offset, "the line", p, stop - p, "a complete line")
        if not self.in_sample or (self.blank_seen and self.n_frames):  # -F ip,sym has empty start lines
            status = self.close_sample(err)
            if status < 0:
                return status
            read_start(p, p, &start)
            status = self.open_sample(&start, offset, err)
            if status < 0 or not self.in_sample:
                return status
        self.blank_seen = False
        if more_stop != NULL:
            next[0] = more_stop + (more_stop != end)
            status = self.frame_with_source(p, stop, more, more_stop)
        else:
            status = self.plain_frame(p, stop, next, end)
        return fp_fail(err, FP_E_NOMEM, 0, "memory") if status < 0 else OK

    cdef int frame_with_source(self, const uint8_t *p, const uint8_t *stop, const uint8_t *more,
                               const uint8_t *more_stop) noexcept nogil:
        """OK or FP_E_NOMEM."""
        cdef Location location
        cdef int status
        self.line += 1
        p = skip_blanks(p, stop)
        p = skip_blanks(address_end(p, stop), stop)
        status = self.locate(p, strip_blanks(p, stop), &location)
        if status == OK:
            status = self.source_line(skip_blanks(more, more_stop), strip_blanks(more, more_stop), &location)
        return FP_E_NOMEM if status < 0 or self.push(&location) else OK

    cdef int plain_frame(self, const uint8_t *p, const uint8_t *stop, const uint8_t **next,
                         const uint8_t *end) noexcept nogil:
        """The frame of a line, or those of a whole chain that is known.  OK or FP_E_NOMEM."""
        cdef Location location
        cdef uint32_t i = NONE
        if self.n_frames == 0 and p[0] == c'\t' and not self.comm_frames:
            if find_chain(&self.chains, p, next, end, &self.chain):
                return FP_E_NOMEM
            if self.chain and self.chains.rows[self.chain].stack:
                self.known_stack = self.chains.rows[self.chain].stack
                self.n_frames = self.chains.rows[self.chain].n_frames
                self.line += self.n_frames - 1
                return OK
        if stop - p <= LONGEST_CACHED:
            i = fp_strings_intern(&self.lines, p, stop - p)
            if i == FP_NO_ID or fp_array_zeroed(&self.locations, &self.cap_locations, <uint64_t>i + 1,
                                                sizeof(Location)):
                return FP_E_NOMEM
            if self.locations[i].name:
                return FP_E_NOMEM if self.push(&self.locations[i]) else OK
        p = skip_blanks(p, stop)
        p = skip_blanks(address_end(p, stop), stop)
        if self.locate(p, strip_blanks(p, stop), &location):
            return FP_E_NOMEM
        if i != NONE:
            location.frame = 0 if location.inlined else frame_of(self.model, &location, 0)
            if location.frame == FP_NO_ID:
                return FP_E_NOMEM
            self.remember(i, &location)
        return FP_E_NOMEM if self.push(&location) else OK

    cdef void remember(self, uint32_t i, const Location *location) noexcept nogil:
        """Cache a line's frame; the cache is cleared when full."""
        cdef uint32_t k
        if self.lines.n > CACHED_LINES:
            fp_strings_empty(&self.lines)
            for k in range(self.cap_locations):
                self.locations[k].name = 0
            return
        self.locations[i] = location[0]

    cdef int locate(self, const uint8_t *p, const uint8_t *stop, Location *to) noexcept nogil:
        """`hot+0x25 (/srv/demo/demo)`: either may be missing.  OK or FP_E_NOMEM."""
        cdef const uint8_t *object = object_start(p, stop)
        cdef const uint8_t *name_end = strip_blanks(p, object)
        cdef fp_strings *strings = &self.model.strings
        to.object = to.file = to.line = to.frame = 0
        to.inlined = False
        if object != stop:
            if stop - object == 9 and memcmp(object, b"(inlined)", 9) == 0:
                to.inlined = True
            elif not (stop - object == 11 and memcmp(object, b"([unknown])", 11) == 0) and stop - object > 2:
                to.object = fp_strings_intern(strings, object + 1, stop - object - 2)
                if to.object != FP_NO_ID:
                    to.object = fp_model_object(self.model, to.object, 0)
        name_end = without_offset(p, name_end)
        to.name = self.unknown if name_end == p else fp_strings_intern(strings, p, name_end - p)
        return FP_E_NOMEM if to.object == FP_NO_ID or to.name == FP_NO_ID else OK

    cdef int source_line(self, const uint8_t *p, const uint8_t *stop, Location *to) noexcept nogil:
        """`demo.c:11 (inlined)`; of an unknown one `libc.so.6[7f844bb8199a]`.  OK or FP_E_NOMEM."""
        cdef const uint8_t *colon
        cdef uint64_t line
        if stop - p > 10 and memcmp(stop - 10, b" (inlined)", 10) == 0:
            to.inlined = True
            stop -= 10
        colon = stop
        while colon != p and fp_is_digit((colon - 1)[0]):
            colon -= 1
        if colon == stop or colon - p < 2 or (colon - 1)[0] != c':' or not number(colon, stop, &line) \
                or line > MOST_32:
            self.seen.unknown_source_lines += 1
            return OK
        to.line = <uint32_t>line
        to.file = fp_strings_intern(&self.model.strings, p, colon - 1 - p)
        return FP_E_NOMEM if to.file == FP_NO_ID else OK

    cdef bint push(self, const Location *location) noexcept nogil:
        """True when memory ran out."""
        cdef Location copy = location[0]
        if fp_array_room(&self.frames, &self.cap_frames, <uint64_t>self.n_frames + 1, sizeof(Location)):
            return True
        self.frames[self.n_frames] = copy
        self.n_frames += 1
        return False

    cdef uint32_t stack(self) noexcept nogil:
        """The stack of the open sample's frames; FP_NO_ID when memory ran out."""
        cdef uint32_t k = self.n_frames, node = 0, frame, inner
        if self.comm_frames:
            node = self.comm_root()
        while k != 0 and node != FP_NO_ID:
            k -= 1
            inner = 0
            if self.frames[k].inlined:  # into nothing: the innermost frames of a cut stack
                self.frames[k].inlined = False
                self.frames[k].frame = 0
            while inner < k and self.frames[k - 1 - inner].inlined:
                inner += 1
            frame = 0 if inner else self.frames[k].frame
            if frame == 0:
                frame = frame_of(self.model, &self.frames[k], inner)
            if frame == FP_NO_ID:
                return FP_NO_ID
            node = fp_model_stack(self.model, node, frame)
            k -= inner
        return node

    cdef uint32_t comm_root(self) noexcept nogil:
        cdef uint32_t frame, name = self.comm if self.comm else self.unknown
        cdef Location location
        if fp_array_zeroed(&self.comm_roots, &self.cap_comm_roots, <uint64_t>name + 1, sizeof(uint32_t)):
            return FP_NO_ID
        if self.comm_roots[name] == 0:
            location.name = name
            location.object = location.file = location.line = 0
            frame = frame_of(self.model, &location, 0)
            if frame == FP_NO_ID:
                return FP_NO_ID
            self.comm_roots[name] = fp_model_stack(self.model, 0, frame)
        return self.comm_roots[name]
