"""Columns lent to Arrow through its C data interface, without pyarrow.

https://arrow.apache.org/docs/format/CDataInterface.html and CDataInterface/PyCapsuleInterface.html.
The structures are fixed by that interface.  Every exported array holds a
reference to its owner, so the memory outlives whoever lent it.
"""

from cpython.bytes cimport PyBytes_AS_STRING
from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_New
from cpython.ref cimport Py_DECREF, Py_INCREF, PyObject
from libc.stdint cimport int64_t, uintptr_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

cdef extern from *:
    """
    struct ArrowSchema {
        const char *format, *name, *metadata;
        int64_t flags, n_children;
        struct ArrowSchema **children, *dictionary;
        void (*release)(struct ArrowSchema *);
        void *private_data;
    };
    struct ArrowArray {
        int64_t length, null_count, offset, n_buffers, n_children;
        const void **buffers;
        struct ArrowArray **children, *dictionary;
        void (*release)(struct ArrowArray *);
        void *private_data;
    };
    struct ArrowArrayStream {
        int (*get_schema)(struct ArrowArrayStream *, struct ArrowSchema *);
        int (*get_next)(struct ArrowArrayStream *, struct ArrowArray *);
        const char *(*get_last_error)(struct ArrowArrayStream *);
        void (*release)(struct ArrowArrayStream *);
        void *private_data;
    };
    """
    struct ArrowSchema:
        const char *format
        const char *name
        int64_t n_children
        ArrowSchema **children
        void (*release)(ArrowSchema *) noexcept
        void *private_data

    struct ArrowArray:
        int64_t length
        int64_t n_buffers
        int64_t n_children
        const void **buffers
        ArrowArray **children
        void (*release)(ArrowArray *) noexcept
        void *private_data

    struct ArrowArrayStream:
        int (*get_schema)(ArrowArrayStream *, ArrowSchema *) noexcept
        int (*get_next)(ArrowArrayStream *, ArrowArray *) noexcept
        const char *(*get_last_error)(ArrowArrayStream *) noexcept
        void (*release)(ArrowArrayStream *) noexcept
        void *private_data

cdef enum:
    EIO = 5


# ---- schemas: a struct of one child a column; private_data owns the strings

cdef void release_schema(ArrowSchema *s) noexcept with gil:
    cdef int64_t i
    for i in range(s.n_children):
        # a consumer may have moved the child away: then only its shell is left
        if s.children[i].release != NULL:
            s.children[i].release(s.children[i])
        free(s.children[i])
    free(s.children)
    if s.private_data != NULL:
        Py_DECREF(<object>s.private_data)
    s.release = NULL


cdef int fill_schema(ArrowSchema *s, list columns) except -1:
    cdef ArrowSchema *child
    memset(s, 0, sizeof(ArrowSchema))
    s.format, s.name, s.release = b"+s", b"", release_schema
    s.children = <ArrowSchema **>calloc(len(columns) or 1, sizeof(ArrowSchema *))
    if s.children == NULL:
        raise MemoryError("no memory for an Arrow schema")
    for name, format_, _ in columns:
        child = <ArrowSchema *>calloc(1, sizeof(ArrowSchema))
        if child == NULL:
            release_schema(s)
            raise MemoryError("no memory for an Arrow schema")
        strings = (name, format_)
        Py_INCREF(strings)
        child.private_data = <PyObject *>strings
        child.name, child.format = PyBytes_AS_STRING(name), PyBytes_AS_STRING(format_)
        child.release = release_schema
        s.children[s.n_children] = child
        s.n_children += 1
    return 0


# ---- arrays: private_data owns the memory behind the buffers

cdef void release_array(ArrowArray *a) noexcept with gil:
    cdef int64_t i
    for i in range(a.n_children):
        if a.children[i].release != NULL:
            a.children[i].release(a.children[i])
        free(a.children[i])
    free(a.children)
    free(a.buffers)
    if a.private_data != NULL:
        Py_DECREF(<object>a.private_data)
    a.release = NULL


cdef int start_array(ArrowArray *a, object owner, int64_t length, int64_t n_buffers) except -1:
    memset(a, 0, sizeof(ArrowArray))
    a.buffers = <const void **>calloc(n_buffers, sizeof(void *))  # [0]: no validity bitmap, nothing is null
    if a.buffers == NULL:
        raise MemoryError("no memory for an Arrow array")
    Py_INCREF(owner)
    a.private_data = <PyObject *>owner
    a.length, a.n_buffers, a.release = length, n_buffers, release_array
    return 0


cdef int fill_array(ArrowArray *a, object owner, int64_t length, list columns) except -1:
    cdef ArrowArray *child
    start_array(a, owner, length, 1)
    a.children = <ArrowArray **>calloc(len(columns) or 1, sizeof(ArrowArray *))
    if a.children == NULL:
        release_array(a)
        raise MemoryError("no memory for an Arrow array")
    for _, _, address in columns:
        child = <ArrowArray *>calloc(1, sizeof(ArrowArray))
        try:
            if child == NULL:
                raise MemoryError("no memory for an Arrow array")
            start_array(child, owner, length, 2)
        except MemoryError:
            free(child)
            release_array(a)
            raise
        child.buffers[1] = <const void *><uintptr_t>address
        a.children[a.n_children] = child
        a.n_children += 1
    return 0


# ---- capsules

cdef void drop_schema(object capsule) noexcept:
    cdef ArrowSchema *s = <ArrowSchema *>PyCapsule_GetPointer(capsule, "arrow_schema")
    if s.release != NULL:
        s.release(s)
    free(s)


cdef void drop_array(object capsule) noexcept:
    cdef ArrowArray *a = <ArrowArray *>PyCapsule_GetPointer(capsule, "arrow_array")
    if a.release != NULL:
        a.release(a)
    free(a)


cdef void drop_stream(object capsule) noexcept:
    cdef ArrowArrayStream *s = <ArrowArrayStream *>PyCapsule_GetPointer(capsule, "arrow_array_stream")
    if s.release != NULL:
        s.release(s)
    free(s)


cdef void *claim(size_t nbytes) except NULL:
    cdef void *p = calloc(1, nbytes)
    if p == NULL:
        raise MemoryError("no memory for an Arrow structure")
    return p


def schema(list columns):
    """A capsule "arrow_schema": a struct of `columns`, each (name, Arrow format, address)."""
    cdef ArrowSchema *s = <ArrowSchema *>claim(sizeof(ArrowSchema))
    try:
        fill_schema(s, columns)
    except MemoryError:
        free(s)
        raise
    return PyCapsule_New(s, "arrow_schema", drop_schema)


def array(object owner, Py_ssize_t length, list columns):
    """A capsule "arrow_array" over the columns' memory, which `owner` keeps alive."""
    cdef ArrowArray *a = <ArrowArray *>claim(sizeof(ArrowArray))
    try:
        fill_array(a, owner, length, columns)
    except MemoryError:
        free(a)
        raise
    return PyCapsule_New(a, "arrow_array", drop_array)


# ---- streams

cdef class _Stream:
    """What a stream needs: (owner, length, columns) one after the other, the first one looked at for the schema."""

    cdef object items
    cdef object first
    cdef list columns
    cdef bytes error

    def __init__(self, items, empty):
        self.items = iter(items)
        self.first = None
        self.columns = empty
        self.error = b""
        self.started = False

    cdef bint started

    cdef object pull(self):
        if not self.started:
            self.started = True
            self.first = next(self.items, None)
            if self.first is not None:
                self.columns = self.first[2]
        if self.first is not None:
            item, self.first = self.first, None
            return item
        return next(self.items, None)

    cdef int schema(self, ArrowSchema *out) except -1:
        self.first = self.pull()
        return fill_schema(out, self.columns)

    cdef int next(self, ArrowArray *out) except -1:
        memset(out, 0, sizeof(ArrowArray))
        item = self.pull()
        if item is None:
            return 0
        owner, length, columns = item
        if [c[:2] for c in columns] != [c[:2] for c in self.columns]:
            raise ValueError("the profile's parts have different columns, which one Arrow stream cannot")
        return fill_array(out, owner, length, columns)


cdef int stream_schema(ArrowArrayStream *s, ArrowSchema *out) noexcept with gil:
    cdef _Stream state = <_Stream>s.private_data
    try:
        return state.schema(out)
    except BaseException as error:
        state.error = str(error).encode()
        return EIO


cdef int stream_next(ArrowArrayStream *s, ArrowArray *out) noexcept with gil:
    cdef _Stream state = <_Stream>s.private_data
    try:
        return state.next(out)
    except BaseException as error:
        state.error = str(error).encode()
        return EIO


cdef const char *stream_error(ArrowArrayStream *s) noexcept with gil:
    return PyBytes_AS_STRING((<_Stream>s.private_data).error)


cdef void release_stream(ArrowArrayStream *s) noexcept with gil:
    Py_DECREF(<object>s.private_data)
    s.release = NULL


def stream(items, list empty):
    """A capsule "arrow_array_stream" of `items`, each (owner, length, columns); `empty`: the columns if there is none."""
    state = _Stream(items, empty)
    cdef ArrowArrayStream *s = <ArrowArrayStream *>claim(sizeof(ArrowArrayStream))
    Py_INCREF(state)
    s.private_data = <PyObject *>state
    s.get_schema, s.get_next, s.get_last_error, s.release = stream_schema, stream_next, stream_error, release_stream
    return PyCapsule_New(s, "arrow_array_stream", drop_stream)
