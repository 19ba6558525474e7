"""Rows of the tables of docs/tables.md -> batches.

    id  ts  dur  function  depth
     1  20   30  g             1       becomes   enter f 10, enter g 20, exit g 50, exit f 60
     0  10   50  f             0

Spans are sorted by their beginning, and a heap of the open ones ends each at its time: neither their order nor their
nesting is assumed.  Calls that overlap without nesting are repaired and counted by what reads the timeline, as those
of other formats.  Memory: 40 bytes a span, 16 a frame.  Errors: ValueError, which states the row.
"""

from cpython.number cimport PyNumber_Index
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, realloc

from fastprof.core.fp cimport *
from fastprof.formats.arrow._columns cimport Cells, id_of


cdef enum:
    CACHED = 4096  # threads

cdef uint32_t OWN = 1  # the first number of threads and processes whose ids are not numbers of 32 bits


cdef int known(uint32_t id) except -1:
    if id == FP_NO_ID:
        raise MemoryError("no memory for the model's tables")
    return 0


cdef void *grown(void *memory, size_t *cap, size_t need, size_t width) except NULL:
    """Memory for `need` items."""
    if need <= cap[0] and memory != NULL:
        return memory
    if need > UINT32_LIMIT:
        raise ValueError("has 2^32 rows or more")
    cdef size_t n = max(need, 2 * cap[0], <size_t>1024)
    cdef void *larger = realloc(memory, n * width)
    if larger == NULL:
        raise MemoryError("no memory for the rows of a table")
    cap[0] = n
    return larger

cdef size_t UINT32_LIMIT = 0xffffffff


cdef int sort(fp_keyed *items, size_t n) except -1:
    """fp_sort_keyed, which without a guard needs its memory to be there."""
    cdef void *probe = malloc(n * sizeof(fp_keyed) + 1)
    if probe == NULL:
        raise MemoryError("no memory to sort the rows of a table")
    free(probe)
    fp_sort_keyed(items, <uint32_t>n)
    return 0


# ---- threads

cdef struct Thread:
    uint64_t process, thread
    uint8_t kinds  # 1: the process is a number, 2: a text; 4 and 8 of the thread
    uint32_t id  # 0: none


cdef class Threads:
    """Threads by the values of two columns: numbers, or names, which get numbers.  `processes`, `threads` and `ids`
    are as Names.put takes them."""

    cdef fp_model *model
    cdef uint32_t input
    cdef Thread *cache
    cdef dict found, own
    cdef readonly dict processes, ids  #: dict[int, bytes]
    cdef readonly dict threads  #: dict[tuple[int, int], bytes]

    def __cinit__(self, size_t model, uint32_t input):
        self.model, self.input = <fp_model *>model, input
        self.found, self.own, self.processes, self.threads, self.ids = {}, {}, {}, {}, {}
        self.cache = <Thread *>calloc(CACHED, sizeof(Thread))
        if self.cache == NULL:
            raise MemoryError("no memory for threads")

    def __dealloc__(self):
        free(self.cache)

    cdef uint32_t of(self, Cells process, Cells thread, Py_ssize_t i) except? 0xffffffff:
        cdef uint64_t p = 0, t = 0
        cdef uint8_t kinds = value_of(process, i, &p) | value_of(thread, i, &t) << 2
        if not kinds:
            return 0
        cdef Thread *slot = &self.cache[((p * 31 + t) * 0x9e3779b97f4a7c15ULL >> 40) % CACHED]
        if not slot.id or slot.process != p or slot.thread != t or slot.kinds != kinds:
            slot.id = self.add(kinds & 3, p, kinds >> 2, t)
            slot.process, slot.thread, slot.kinds = p, t, kinds
        return slot.id

    def add(self, int process_kind, object process, int thread_kind, object thread) -> int:
        """The id of a thread in the model; a process without a thread is its main thread."""
        key = process_kind, process, thread_kind, thread
        if key in self.found:
            return self.found[key]
        cdef uint32_t pid = self.number(process_kind, process)
        cdef uint32_t tid = self.number(thread_kind, thread) if thread_kind else pid
        if process_kind == 2:
            self.processes[pid] = self.text(process)
        if thread_kind == 2:
            self.threads[pid, tid] = self.text(thread)
        self.found[key] = fp_model_thread(self.model, self.input, pid, tid)
        known(self.found[key])
        return self.found[key]

    def named(self, process, thread, str name: str | None = None) -> int:
        """The id of the thread of an object: a number, or a text.  `name`: of the thread with this number."""
        pair = []
        for value in (process, thread):
            if value is None:
                pair += [0, 0]
            elif isinstance(value, str):
                pair += [2, id_of(self.model, value, "a name of a thread", -1)]
            else:
                try:
                    pair += [1, PyNumber_Index(value) & 0xffffffffffffffff]
                except TypeError:
                    raise ValueError(f"a thread or process is {value!r:.80}, expected a number or a text") from None
        found = self.add(*pair)
        if name is not None:
            self.threads[pair[1], pair[3]] = name.encode("utf-8", "surrogateescape")
        return found

    cdef bytes text(self, uint32_t id):
        cdef size_t n = 0
        cdef const uint8_t *p = fp_string(&self.model.strings, id, &n)
        return (<const char *>p)[:n]

    cdef object number(self, int kind, object value):
        if kind == 0 or (kind == 1 and value < 0xffffffff):
            return value
        if (kind, value) not in self.own:
            self.own[kind, value] = OWN + len(self.own)
            signed = value - (1 << 64) if value >> 63 else value
            self.ids[OWN + len(self.own) - 1] = b"" if kind == 2 else b"%d" % signed
        return self.own[kind, value]


cdef inline uint8_t value_of(Cells c, Py_ssize_t i, uint64_t *to) noexcept:
    """0: none, 1: a number, 2: the id of a string."""
    if c is None:
        return 0
    if c.texts != NULL:
        to[0] = c.texts[i]
        return 0 if c.texts[i] == FP_NO_ID else 2
    to[0] = c.numbers[i]
    return 0 if c.absent != NULL and c.absent[i] else 1


cdef inline uint32_t text_or_0(Cells c, Py_ssize_t i) noexcept:
    return 0 if c is None or c.texts[i] == FP_NO_ID else c.texts[i]


cdef int64_t number_or(Cells c, Py_ssize_t i, int64_t otherwise) noexcept:
    return otherwise if c is None or (c.absent != NULL and c.absent[i]) else c.numbers[i]


cdef uint32_t small(Cells c, Py_ssize_t i, str what) except? 0xffffffff:
    """A number of 32 bits, 0 if it is missing."""
    cdef int64_t found = number_or(c, i, 0)
    if not 0 <= found < 0xffffffff:
        raise ValueError(f"row {i}: {what} is {found}, expected 0 to 2^32 - 2")
    return <uint32_t>found


# ---- spans

cdef struct Span:
    int64_t start, end, tie
    uint32_t function, thread
    int32_t depth  # -1: not known


cdef class Spans:
    """Calls with a beginning and an end, in any order."""

    cdef fp_model *model
    cdef readonly Threads threads
    cdef Span *spans
    cdef fp_keyed *order
    cdef uint32_t *heap  # places in `order` of the open calls; the one that ends first is first
    cdef size_t n, cap, cap_order, cap_heap, n_heap, at

    def __cinit__(self, size_t model, Threads threads):
        self.model, self.threads = <fp_model *>model, threads

    def __dealloc__(self):
        free(self.spans)
        free(self.order)
        free(self.heap)

    def __len__(self) -> int:
        return self.n

    def add(self, dict cells: dict[str, Cells]) -> None:
        """Adds the rows of columns by name."""
        cdef Cells name = cells["function"], start = cells["ts"], end = cells.get("end"), duration = cells.get("dur")
        cdef Cells process = cells.get("process"), thread = cells.get("thread"), object_ = cells.get("object")
        cdef Cells category = cells.get("category"), depth = cells.get("depth"), id = cells.get("id")
        cdef Cells last = duration if end is None else end
        cdef Py_ssize_t i
        cdef Span *s
        cdef uint32_t of, last_of = 0, text, last_text = FP_NO_ID
        self.spans = <Span *>grown(self.spans, &self.cap, self.n + name.n, sizeof(Span))
        for i in range(name.n):
            s = &self.spans[self.n]
            if start.absent != NULL and start.absent[i]:
                raise ValueError(f"row {i}: has no start")
            if last.absent != NULL and last.absent[i]:
                raise ValueError(f"row {i}: has no {'duration' if end is None else 'end'}")
            s.start = start.numbers[i]
            if end is not None:
                s.end = number_or(end, i, -1)
            elif fp_adds_overflow(s.start, number_or(duration, i, -1), &s.end) or number_or(duration, i, -1) < 0:
                raise ValueError(f"row {i}: its duration is {number_or(duration, i, -1)}")
            if s.start < 0 or s.end < s.start:
                raise ValueError(f"row {i}: begins at {s.start} and ends at {s.end}, expected 0 or more, in this order")
            text, of = text_or_0(name, i), text_or_0(object_, i)
            of = of if of else text_or_0(category, i)
            if text != last_text or of != last_of or not i:
                last_text, last_of = text, of
                of = fp_model_object(self.model, of, 0) if of else 0
                known(of)
                s.function = fp_model_function(self.model, of, 0, text, 0, 0) if text or of else 0
                known(s.function)
            else:
                s.function = (s - 1).function
            s.thread = self.threads.of(process, thread, i)
            if not -1 <= number_or(depth, i, -1) <= 0x7fffffff:
                raise ValueError(f"row {i}: depth is {number_or(depth, i, -1)}, expected 0 to 2^31 - 1")
            s.depth = <int32_t>number_or(depth, i, -1)
            # calls that begin at the same time: as they began, from the outermost one, or from the longest one
            s.tie = number_or(id, i, s.depth) if id is not None or depth is not None else -s.end
            self.n += 1

    def sort(self) -> None:
        """Call it after the last `add`."""
        cdef size_t i, k, n = self.n
        self.order = <fp_keyed *>grown(self.order, &self.cap_order, n, sizeof(fp_keyed))
        for i in range(n):
            self.order[i].key, self.order[i].more, self.order[i].item = self.spans[i].start, 0, <uint32_t>i
        sort(self.order, n)
        i = 0
        while i < n:
            k = i + 1
            while k < n and self.order[k].key == self.order[i].key:
                k += 1
            if k - i > 1:
                self.sort_ties(self.order + i, k - i)
            i = k

    cdef int sort_ties(self, fp_keyed *run, size_t n) except -1:
        cdef size_t i
        cdef uint64_t start = run.key
        for i in range(n):
            run[i].key = <uint64_t>self.spans[run[i].item].tie + (<uint64_t>1 << 63)
        sort(run, n)
        for i in range(n):
            run[i].key = start
        return 0

    cdef inline bint ends_before(self, uint32_t a, uint32_t b) noexcept nogil:
        """Of calls that end at the same time the one that began later is first."""
        cdef int64_t x = self.spans[self.order[a].item].end, y = self.spans[self.order[b].item].end
        return x < y or (x == y and a > b)

    cdef int push(self, uint32_t place) except -1:
        cdef size_t at = self.n_heap, up
        self.heap = <uint32_t *>grown(self.heap, &self.cap_heap, at + 1, sizeof(uint32_t))
        self.n_heap += 1
        while at:
            up = (at - 1) >> 1
            if not self.ends_before(place, self.heap[up]):
                break
            self.heap[at] = self.heap[up]
            at = up
        self.heap[at] = place
        return 0

    cdef void pop(self) noexcept nogil:
        cdef size_t at = 0, down
        self.n_heap -= 1
        cdef uint32_t place = self.heap[self.n_heap]
        while (down := 2 * at + 1) < self.n_heap:
            if down + 1 < self.n_heap and self.ends_before(self.heap[down + 1], self.heap[down]):
                down += 1
            if not self.ends_before(self.heap[down], place):
                break
            self.heap[at] = self.heap[down]
            at = down
        self.heap[at] = place

    cdef inline bint ends_first(self, const Span *next) noexcept nogil:
        """Whether a call ends before the next one begins; its caller does not, if both depths are known."""
        cdef const Span *s = &self.spans[self.order[self.heap[0]].item]
        if s.end != next.start:
            return s.end < next.start
        return s.thread != next.thread or s.depth < 0 or s.depth >= next.depth

    def feed(self, size_t batch) -> bool:
        """Appends rows to a batch.  Returns whether there are more."""
        cdef fp_batch *b = <fp_batch *>batch
        cdef const Span *s
        while b.n < b.cap:
            if self.n_heap and (self.at == self.n or self.ends_first(&self.spans[self.order[self.at].item])):
                s = &self.spans[self.order[self.heap[0]].item]
                self.pop()
                b.time[b.n], b.op[b.n] = s.end, FP_OP_EXIT
            elif self.at < self.n:
                s = &self.spans[self.order[self.at].item]
                self.push(<uint32_t>self.at)
                self.at += 1
                b.time[b.n], b.op[b.n] = s.start, FP_OP_ENTER
            else:
                return False
            b.function[b.n], b.thread[b.n], b.cpu[b.n] = s.function, s.thread, 0
            b.n += 1
        return True


cdef extern from *:
    """
    #define fp_adds_overflow(a, b, to) __builtin_add_overflow(a, b, to)
    """
    bint fp_adds_overflow(int64_t a, int64_t b, int64_t *to) nogil


# ---- samples and frames

cdef struct Frame:
    uint32_t frame, row


cdef class Stacks:
    """The frames of stacks, in any order, then samples that refer to them by stack_id."""

    cdef fp_model *model
    cdef readonly Threads threads
    cdef Frame *frames
    cdef fp_keyed *order  # key: stack_id << 32 | depth, later stack_id alone; item: number of the frame, later the node
    cdef size_t n, cap, cap_order, n_stacks
    cdef dict labels  # by id of their text

    def __cinit__(self, size_t model, Threads threads):
        self.model, self.threads, self.labels = <fp_model *>model, threads, {}

    def __dealloc__(self):
        free(self.frames)
        free(self.order)

    def add_frames(self, dict cells: dict[str, Cells]) -> None:
        """Adds the rows of columns by name."""
        cdef Cells stack = cells["stack_id"], depth = cells["depth"], function = cells.get("function")
        cdef Cells file = cells.get("file"), line = cells.get("line"), address = cells.get("address")
        cdef Cells object_ = cells.get("object")
        cdef Py_ssize_t i
        cdef fp_model *m = self.model
        cdef fp_keyed *o
        cdef uint32_t of, at
        self.frames = <Frame *>grown(self.frames, &self.cap, self.n + stack.n, sizeof(Frame))
        self.order = <fp_keyed *>grown(self.order, &self.cap_order, self.n + stack.n, sizeof(fp_keyed))
        for i in range(stack.n):
            o = &self.order[self.n]
            o.key = <uint64_t>small(stack, i, "stack_id") << 32 | small(depth, i, "depth")
            o.more, o.item = 0, <uint32_t>self.n
            of = text_or_0(object_, i)
            of = fp_model_object(m, of, 0) if of else 0
            known(of)
            at = 0
            if of or text_or_0(function, i) or text_or_0(file, i):
                at = fp_model_function(m, of, text_or_0(file, i), text_or_0(function, i), 0, 0)
                known(at)
            at = fp_model_line(m, at, small(line, i, "line"), 0, 0)
            known(at)
            at = fp_model_frame(m, 0, <uint64_t>number_or(address, i, 0), 0, at)
            known(at)
            self.frames[self.n] = Frame(at, <uint32_t>i)
            self.n += 1

    def sort(self) -> None:
        """Call it after the last `add_frames`."""
        cdef size_t i
        cdef uint32_t node = 0
        cdef fp_keyed *o = self.order
        if not self.n:
            return
        sort(o, self.n)
        for i in range(self.n):
            if i and o[i].key == o[i - 1].key:
                raise ValueError(f"row {self.frames[o[i].item].row}: stack {o[i].key >> 32} has another frame at depth "
                                 f"{o[i].key & 0xffffffff}")
            node = node if i and o[i].key >> 32 == o[i - 1].key >> 32 else 0
            node = fp_model_stack(self.model, node, self.frames[o[i].item].frame)
            known(node)
            o[i].more = node
        for i in range(self.n):  # of each stack the last one
            if i + 1 == self.n or o[i].key >> 32 != o[i + 1].key >> 32:
                o[self.n_stacks].key, o[self.n_stacks].item = o[i].key >> 32, o[i].more
                self.n_stacks += 1

    cdef uint32_t stack_of(self, uint32_t id, Py_ssize_t row) except? 0xffffffff:
        cdef size_t low = 0, high = self.n_stacks, middle
        while low < high:
            middle = (low + high) >> 1
            if self.order[middle].key < id:
                low = middle + 1
            else:
                high = middle
        if low < self.n_stacks and self.order[low].key == id:
            return self.order[low].item
        if id:
            raise ValueError(f"row {row}: stack {id} has no frames")
        return 0

    def feed(self, size_t batch, Py_ssize_t start, dict cells: dict[str, Cells], list values: list[Cells | None],
             object label_of: Callable[[int], int]) -> int:
        """Appends the samples from row `start` on to a batch.  Returns the row after the last one.  Without frames the
        stacks have one: `function`.  `label_of` returns the label set of the id of a text."""
        cdef Cells stack = cells["stack_id"], time = cells.get("ts"), function = cells.get("function")
        cdef Cells process = cells.get("process"), thread = cells.get("thread"), labels = cells.get("labels")
        cdef fp_batch *b = <fp_batch *>batch
        cdef Py_ssize_t i, end = min(start + b.cap - b.n, stack.n)
        cdef uint32_t k, text
        cdef list of_values = values
        for i in range(start, end):
            if self.n:
                b.stack[b.n] = self.stack_of(small(stack, i, "stack_id"), i)
            else:
                text = text_or_0(function, i)
                k = fp_model_name_frame(self.model, text) if text else 0
                known(k)
                b.stack[b.n] = fp_model_stack(self.model, 0, k) if text else 0
                known(b.stack[b.n])
            b.time[b.n] = number_or(time, i, 0)
            if number_or(time, i, 0) < 0:
                raise ValueError(f"row {i}: ts is {number_or(time, i, 0)}, expected 0 or more")
            b.thread[b.n] = self.threads.of(process, thread, i)
            text = text_or_0(labels, i)
            if text and text not in self.labels:
                self.labels[text] = label_of(text)
            b.label[b.n] = self.labels[text] if text else 0
            for k in range(b.n_values):
                b.values[k * b.cap + b.n] = number_or(<Cells>of_values[k], i, 0)
            b.n += 1
        return end


# ---- graphs

def feed_graph(size_t model, size_t batch, Py_ssize_t start, dict cells: dict[str, Cells],
               list values: list[Cells | None], dict functions: dict[int, dict[int, int]],
               dict kinds: dict[int, int]) -> int:
    """Appends rows of a graph to a batch.  Returns the row after the last one.  The column `callee` of the batch has the
    ids of names: `resolve` replaces them.  `functions`: by name those found so far, by object; `kinds`: the codes by id of
    their texts."""
    cdef Cells kind = cells["kind"], function = cells["function"], file = cells.get("file"), line = cells.get("line")
    cdef Cells object_ = cells.get("object"), address = cells.get("address")
    cdef Cells callee = cells.get("callee"), calls = cells.get("calls")
    cdef fp_model *m = <fp_model *>model
    cdef fp_batch *b = <fp_batch *>batch
    cdef Py_ssize_t i, end = min(start + b.cap - b.n, kind.n)
    cdef uint32_t k, name, of, last_name = FP_NO_ID, last_of = 0, found = 0
    for i in range(start, end):
        name, of = text_or_0(function, i), text_or_0(object_, i)
        if name != last_name or of != last_of:
            found = functions.setdefault(name, {}).get(of, 0xffffffff)
            if found == FP_NO_ID:
                k = fp_model_object(m, of, 0) if of else 0
                known(k)
                found = fp_model_function(m, k, text_or_0(file, i), name, 0, 0)
                known(found)
                functions[name][of] = found
            last_name, last_of = name, of
        if kind.texts[i] not in kinds:
            raise ValueError(f"row {i}: its kind is none of those of graphs")
        b.kind[b.n] = kinds[kind.texts[i]]
        b.function[b.n], b.file[b.n], b.line[b.n] = found, text_or_0(file, i), small(line, i, "line")
        b.address[b.n] = <uint64_t>number_or(address, i, 0)
        b.callee[b.n] = text_or_0(callee, i)
        b.bb[b.n] = b.target_file[b.n] = b.target_line[b.n] = b.target_address[b.n] = b.target_bb[b.n] = b.count2[b.n] = 0
        if number_or(calls, i, 0) < 0:
            raise ValueError(f"row {i}: calls is {number_or(calls, i, 0)}, expected 0 or more")
        b.count[b.n] = number_or(calls, i, 0)
        if b.kind[b.n] == FP_JCND:
            b.count2[b.n] = b.count[b.n]
        for k in range(b.n_values):
            b.values[k * b.cap + b.n] = number_or(<Cells>values[k], i, 0)
        b.n += 1
    return end


def resolve(size_t model, size_t batch, dict functions: dict[int, dict[int, int]]) -> None:
    """Replaces names of callees by functions: those of the caller's object, if it has one of this name, or the first."""
    cdef fp_model *m = <fp_model *>model
    cdef fp_batch *b = <fp_batch *>batch
    cdef uint32_t i, of
    for i in range(b.n):
        if b.kind[i] == FP_COST or b.kind[i] == FP_BLOCK:
            b.callee[i] = 0
            continue
        found = functions.setdefault(b.callee[i], {})
        of = fp_table_row(&m.objects, fp_table_row(&m.functions, b.function[i])[FP_FUNCTION_OBJECT])[FP_OBJECT_NAME]
        if not found:
            found[0] = fp_model_function(m, 0, 0, b.callee[i], 0, 0)
            known(found[0])
        b.callee[i] = found[of] if of in found else next(iter(found.values()))
        if b.kind[i] != FP_CALL:
            b.target_file[i] = fp_table_row(&m.functions, b.callee[i])[FP_FUNCTION_FILE]
