"""Rows of Python objects -> batches: stacks, calls, and what a tracer records.

A frame is a name, or (name, file, line, object, address) with any number of them.  Objects of any class may come, and
what they run may do anything, so a row is taken apart into what cannot change before a batch is touched.
Errors: RowError; exceptions of the caller's iterators and objects pass through.
"""

cimport cython
from cpython.number cimport PyNumber_Index
from cpython.ref cimport Py_DECREF, Py_INCREF, PyObject
from cpython.tuple cimport PyTuple_GetItem, PyTuple_Size
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t, uintptr_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memcmp, memcpy, memset

from collections.abc import Set as _Set

from fastprof.verbs.profile import Frame as _Frame

from fastprof.core.fp cimport *
from fastprof.formats.arrow._columns cimport id_of


cdef extern from "Python.h":
    PyObject *borrowed "PyTuple_GetItem" (PyObject *tuple, Py_ssize_t i) except NULL

cdef enum:
    KNOWN = 1 << 14  # frames found by the address of their object
    VALUES = 1 << 16  # frames found by their value
    SHORT = 1 << 10  # characters of the texts of these
    DEEPEST = 1 << 24  # frames
    SEEN = 1 << 18  # stacks found by their frames
    SEEN_FRAMES = 1 << 22  # frames of these

cdef object _END = object()


class RowError(Exception):
    """A row that is none."""


cdef struct Known:
    PyObject *frame  # owned
    uint32_t id


# A stack that may come again.
cdef struct Seen:
    uint64_t hash
    uint32_t start, n  # its frames
    uint32_t node


cdef int64_t integer(object value, str what) except? -1:
    try:
        found = PyNumber_Index(value)
    except TypeError:
        raise RowError(f"{what} is {type(value).__name__}, expected an integer") from None
    try:
        return found
    except OverflowError:
        raise RowError(f"{what} is {found!r:.40}, expected an integer of 64 bits") from None


cdef class Names:
    """Frames and functions of the model by the objects that name them."""

    cdef fp_model *model
    cdef Known *known
    cdef dict values  # ids of frames by value
    cdef uint32_t turn

    def __cinit__(self, size_t model, *_):
        self.model, self.values = <fp_model *>model, {}
        self.known = <Known *>calloc(KNOWN, sizeof(Known))
        if self.known == NULL:
            raise MemoryError("no memory for frames")

    def __dealloc__(self):
        if self.known != NULL:
            for i in range(KNOWN):
                if self.known[i].frame != NULL:
                    Py_DECREF(<object>self.known[i].frame)
        free(self.known)

    cdef uint32_t have(self, uint32_t id) except 0xffffffff:
        if id == FP_NO_ID:
            raise MemoryError("no memory for the model's tables")
        return id

    cdef uint32_t text(self, object text, str what) except 0xffffffff:
        try:
            return id_of(self.model, text, what, -1)
        except ValueError as error:
            raise RowError(str(error)) from None

    cdef uint32_t function(self, object frame, uint32_t *file, uint32_t *line, uint64_t *address) except 0xffffffff:
        """The function of a frame, and its place."""
        cdef uint32_t name, of = 0
        cdef int64_t number = 0
        cdef Py_ssize_t n
        file[0] = line[0] = address[0] = 0
        if isinstance(frame, (str, bytes)):
            return self.have(fp_model_function(self.model, 0, 0, self.text(frame, "a name"), 0, 0))
        n = len(<tuple>frame) if isinstance(frame, tuple) else 0
        if not 1 <= n <= 5:
            raise RowError(f"a frame is {frame!r:.80}, expected a name, (name, file, line) or a Frame")
        name = self.text(<object>PyTuple_GetItem(frame, 0), "a name")
        if n > 1 and frame[1]:
            file[0] = self.text(frame[1], "a file")
        if n > 2 and frame[2] is not None:
            number = integer(frame[2], "a line")
            if not 0 <= number < 0xffffffff:
                raise RowError(f"a line is {number}, expected 0 to 2^32 - 2")
            line[0] = <uint32_t>number
        if n > 3 and frame[3]:
            of = self.have(fp_model_object(self.model, self.text(frame[3], "an object"), 0))
        if n > 4 and frame[4] is not None:
            try:
                address[0] = frame[4]
            except (OverflowError, TypeError):
                raise RowError(f"an address is {frame[4]!r:.40}, expected 0 to 2^64 - 1") from None
        return self.have(fp_model_function(self.model, of, file[0], name, 0, 0))

    cdef inline Known *slot(self, PyObject *frame) noexcept:
        return &self.known[(<uintptr_t>frame >> 4) * 0x9e3779b97f4a7c15ULL >> 50]

    cdef uint32_t frame(self, object frame) except 0xffffffff:
        cdef Known *slot = self.slot(<PyObject *>frame)
        cdef uint32_t id, file = 0, line = 0
        cdef uint64_t address = 0
        cdef PyObject *old
        cdef bint is_plain = plain(frame)
        found = self.values.get(frame) if is_plain else None
        if found is not None:
            id = found
        else:
            id = self.function(frame, &file, &line, &address)
            id = self.have(fp_model_line(self.model, id, line, 0, 0))
            id = self.have(fp_model_frame(self.model, 0, address, 0, id))
            if is_plain:
                if len(self.values) == VALUES:
                    self.values.clear()
                self.values[frame] = id
        self.turn += 1
        # if objects are new each time, keeping each would cost more than finding their values
        if not is_plain or (found is not None and slot.frame != NULL and self.turn & 7):
            return id
        Py_INCREF(frame)
        old, slot.frame, slot.id = slot.frame, <PyObject *>frame, id
        if old != NULL:
            Py_DECREF(<object>old)
        return id


cdef bint plain(object frame) noexcept:
    """Whether a frame is of exact texts and numbers, and short: equal ones are the same, and no code of another program
    runs when one is compared or freed, such as by a garbage collection that has freed the model."""
    if type(frame) is str:
        return len(<str>frame) <= SHORT
    if type(frame) is not tuple and type(frame) is not _Frame:
        return False
    for one in <tuple>frame:
        if not (len(<str>one) <= SHORT if type(one) is str else one is None or type(one) is int):
            return False
    return True


cdef tuple values_of(object given, Py_ssize_t n):
    """The values of a row as a tuple."""
    cdef tuple found
    if isinstance(given, (tuple, list)):
        found = tuple(given)
        if PyTuple_Size(found) != n:
            raise RowError(f"has {len(found)} values, expected {n}")
        return found
    if n != 1:
        raise RowError(f"has one value, expected {n}")
    return (given,)


cdef int put_values(fp_batch *b, uint32_t row, tuple values) except -1:
    for k, value in enumerate(values):
        b.values[<size_t>k * b.cap + row] = integer(value, "a value")
    return 0


cdef class StackRows(Names):
    """Rows (stack, value or values, label ...) of samples.  `labels`: of each label its key as an id of a string, or
    "time", "thread" or "process"; `thread_of` returns the thread for a process and a thread."""

    cdef Py_ssize_t n_values
    cdef tuple labels
    cdef bint leaf_first
    cdef object thread_of
    cdef uint32_t always  # labels of all samples
    cdef readonly uint64_t n_rows
    cdef uint32_t *path  # frames of a stack, the outermost first
    cdef Py_ssize_t cap
    cdef Seen *seen
    cdef uint32_t *seen_frames
    cdef size_t n_seen_frames
    cdef bint busy

    def __cinit__(self, *_):
        self.seen = <Seen *>calloc(SEEN, sizeof(Seen))
        self.seen_frames = <uint32_t *>larger(NULL, SEEN_FRAMES)
        if self.seen == NULL:
            raise MemoryError("no memory for stacks")

    def __init__(self, size_t model, Py_ssize_t n_values, tuple labels: tuple[str | int, ...], bint leaf_first,
                 object thread_of: Callable[[object, object], int], uint32_t always=0):
        self.n_values, self.labels, self.leaf_first = n_values, labels, leaf_first
        self.thread_of, self.always = thread_of, always

    def __dealloc__(self):
        free(self.path)
        free(self.seen)
        free(self.seen_frames)

    cdef uint32_t stack(self, object given) except 0xffffffff:
        cdef Py_ssize_t i, n
        cdef PyObject *frame
        cdef PyObject *frames
        cdef Known *slot
        cdef tuple kept
        if type(given) is tuple:
            kept = given
        elif isinstance(given, (str, bytes)):
            raise RowError(f"a stack is {given!r:.80}, expected a sequence of frames")
        elif isinstance(given, _Set):
            raise RowError(f"a stack is {type(given).__name__}, which has no order, expected a sequence of frames")
        elif not hasattr(given, "__iter__"):
            raise RowError(f"a stack is {type(given).__name__}, expected a sequence of frames")
        else:
            kept = tuple(given)
        frames, n = <PyObject *>kept, PyTuple_Size(kept)
        if n > DEEPEST:
            raise RowError(f"a stack has {n} frames, more than the limit of {DEEPEST}")
        if n > self.cap:
            self.path = <uint32_t *>larger(self.path, 2 * n)
            self.cap = 2 * n
        if not n:
            return 0
        cdef uint64_t hash = n
        for i in range(n):
            frame = borrowed(frames, n - 1 - i if self.leaf_first else i)
            slot = self.slot(frame)
            self.path[i] = slot.id if slot.frame == frame else self.frame(<object>frame)
            hash = (hash ^ self.path[i]) * 0x9e3779b97f4a7c15ULL
            hash ^= hash >> 29
        return self.node(hash, n)

    cdef uint32_t node(self, uint64_t hash, Py_ssize_t n) except 0xffffffff:
        """The stack of the frames in `path`."""
        cdef Seen *seen = &self.seen[hash % SEEN]
        cdef uint32_t node = 0
        cdef Py_ssize_t i
        if seen.hash == hash and seen.n == n and not memcmp(self.seen_frames + seen.start, self.path, 4 * n):
            return seen.node
        for i in range(n):
            node = self.have(fp_model_stack(self.model, node, self.path[i]))
        if n <= 1024:
            if self.n_seen_frames + n > SEEN_FRAMES:
                memset(self.seen, 0, SEEN * sizeof(Seen))
                self.n_seen_frames = 0
            memcpy(self.seen_frames + self.n_seen_frames, self.path, 4 * n)
            seen.hash, seen.start, seen.n, seen.node = hash, <uint32_t>self.n_seen_frames, <uint32_t>n, node
            self.n_seen_frames += n
        return node

    cdef int put(self, fp_batch *b, object row) except -1:
        """Objects of a row may call what made this call: then there are two rows at once."""
        if self.busy:
            raise RowError("comes from within another row")
        self.busy = True
        try:
            return self.put_row(b, row)
        finally:
            self.busy = False

    cdef int put_row(self, fp_batch *b, object row) except -1:
        cdef tuple given, values
        cdef uint32_t node, label = self.always, thread = 0
        cdef int64_t time = 0
        cdef Py_ssize_t i
        if not isinstance(row, (tuple, list)):
            raise RowError(f"is {type(row).__name__}, expected (stack, value)")
        given = tuple(row)
        if PyTuple_Size(given) != 2 + PyTuple_Size(self.labels):
            raise RowError(f"has {len(given)} items, expected {2 + len(self.labels)}")
        node = self.stack(given[0])
        values = values_of(given[1], self.n_values)
        process = thread_ = None
        for i in range(PyTuple_Size(self.labels)):
            key, value = self.labels[i], given[2 + i]
            if value is None:
                continue
            if key == "time":
                time = integer(value, "a time")
                if time < 0:
                    raise RowError(f"a time is {time}, expected 0 or more nanoseconds")
            elif key == "thread":
                thread_ = value
            elif key == "process":
                process = value
            else:
                label = self.label(label, key, value)
        if process is not None or thread_ is not None:
            try:
                thread = self.thread_of(process, thread_)
            except ValueError as error:
                raise RowError(str(error)) from None
        put_values(b, b.n, values)
        b.stack[b.n], b.label[b.n], b.thread[b.n], b.time[b.n] = node, label, thread, time
        b.n += 1
        self.n_rows += 1
        return 0

    cdef uint32_t label(self, uint32_t after, uint32_t key, object value) except 0xffffffff:
        cdef uint32_t text
        if isinstance(value, (str, bytes)):
            text = self.text(value, "a label")
            return self.have(fp_model_label(self.model, after, key, text, 0, 0)) if text else after
        return self.have(fp_model_label(self.model, after, key, 0, integer(value, "a label"), 0))

    def fill(self, size_t batch, object rows: Iterator[object]) -> bool:
        """Appends rows of an iterator to a batch.  Returns whether it became full."""
        cdef fp_batch *b = <fp_batch *>batch
        while b.n < b.cap:
            row = next(rows, _END)
            if row is _END:
                return False
            self.put(b, row)
        return True

    def sample(self, size_t batch, object row) -> bool:
        """Appends one row.  Returns whether the batch is full."""
        cdef fp_batch *b = <fp_batch *>batch
        self.put(b, row)
        return b.n == b.cap


cdef void *larger(void *memory, size_t n) except NULL:
    cdef void *found = realloc(memory, n * sizeof(uint32_t))
    if found == NULL:
        raise MemoryError("no memory for a stack")
    return found


cdef class CallRows(Names):
    """Rows (function, value or values) of self costs, and (caller, callee, calls, value or values) of calls."""

    cdef Py_ssize_t n_values
    cdef readonly uint64_t n_rows

    def __init__(self, size_t model, Py_ssize_t n_values):
        self.n_values = n_values

    cdef uint32_t place(self, object frame, uint32_t *file, uint32_t *line) except 0xffffffff:
        cdef uint64_t address = 0
        cdef uint32_t found = self.function(frame, file, line, &address)
        if address:
            raise RowError("a function of a graph has an address, which only frames of stacks have")
        return found

    def fill(self, size_t batch, object rows: Iterator[object]) -> bool:
        """Appends rows of an iterator to a batch.  Returns whether it became full."""
        cdef fp_batch *b = <fp_batch *>batch
        cdef uint32_t function, file = 0, line = 0, callee, its_file = 0, its_line = 0, n
        cdef int64_t calls
        cdef tuple given, values
        while b.n < b.cap:
            row = next(rows, _END)
            if row is _END:
                return False
            given = tuple(row) if isinstance(row, (tuple, list)) else ()
            if len(given) not in (2, 4):
                raise RowError(f"is {row!r:.80}, expected (function, value) or (caller, callee, calls, value)")
            callee = calls = 0
            if len(given) == 4:
                callee = self.place(given[1], &its_file, &its_line)
                calls = 0 if given[2] is None else integer(given[2], "the number of calls")
                if calls < 0:
                    raise RowError(f"the number of calls is {calls}, expected 0 or more")
            function = self.place(given[0], &file, &line)
            values, n = values_of(given[len(given) - 1], self.n_values), b.n
            put_values(b, n, values)
            b.kind[n] = FP_CALL if len(given) == 4 else FP_COST
            b.function[n], b.file[n], b.line[n], b.callee[n], b.count[n] = function, file, line, callee, calls
            b.address[n] = b.bb[n] = b.target_address[n] = b.target_bb[n] = b.count2[n] = 0
            b.target_file[n] = b.target_line[n] = 0
            b.n += 1
            self.n_rows += 1
        return True


@cython.no_gc
cdef class Kept:
    """Refers to objects unseen by the garbage collector.  It finalizes all that is garbage in any order, and would free
    memory of C before another finalizer, such as that of a traced object, makes a last call."""

    cdef object objects

    def __init__(self, *objects: object):
        self.objects = objects


cdef class Calls(Names):
    """Calls of tracers, in the order in which they come, each with its time.  `threads`: [id, functions of open calls]."""

    cdef dict functions

    def __init__(self, size_t model):
        self.functions = {}

    def function_of(self, object frame) -> int:
        """The id of a function."""
        cdef uint32_t file = 0, line = 0
        cdef uint64_t address = 0
        if type(frame) is not str:
            return self.function(frame, &file, &line, &address)
        found = self.functions.get(frame)
        if found is None:
            if len(self.functions) > KNOWN:
                self.functions.clear()
            found = self.functions[frame] = self.function(frame, &file, &line, &address)
        return found

    def put(self, size_t batch, uint8_t op, uint32_t function, uint32_t thread, uint64_t time) -> bool:
        """Appends an event.  Returns whether the batch is full."""
        cdef fp_batch *b = <fp_batch *>batch
        b.time[b.n], b.op[b.n], b.function[b.n], b.thread[b.n], b.cpu[b.n] = time, op, function, thread, 0
        b.n += 1
        return b.n == b.cap
