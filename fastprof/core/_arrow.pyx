"""Columns lent to Arrow through its C data interface, without pyarrow.

https://arrow.apache.org/docs/format/CDataInterface.html and CDataInterface/PyCapsuleInterface.html.
The structures are fixed by that interface.  Every exported array holds a
reference to its owner, so the memory outlives the exporter.
"""

from cpython.bytes cimport PyBytes_AsString
from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_New
from cpython.ref cimport Py_DECREF, Py_INCREF, PyObject
from libc.errno cimport EIO, ENOMEM
from libc.stdint cimport int64_t, uintptr_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from fastprof.core.arrow_c cimport ArrowArray, ArrowArrayStream, ArrowSchema
from fastprof.core.arrow_column import encoded_metadata as _encoded

cdef void *claim(size_t nbytes) except NULL:
    cdef void *p = calloc(1, nbytes)
    if p == NULL:
        raise MemoryError("no memory for an Arrow structure")
    return p


cdef enum:
    NULLABLE = 2  # a flag of a schema


# ---- schemas: a struct with one child per column; private_data owns the strings

cdef void release_schema(ArrowSchema *s) noexcept with gil:
    cdef int64_t i
    for i in range(s.n_children):
        # a consumer may have moved the child; then only an empty struct is left
        if s.children[i].release != NULL:
            s.children[i].release(s.children[i])
        free(s.children[i])
    free(s.children)
    if s.dictionary != NULL:
        if s.dictionary.release != NULL:
            s.dictionary.release(s.dictionary)
        free(s.dictionary)
    if s.private_data != NULL:
        Py_DECREF(<object>s.private_data)
    s.release = NULL


cdef int start_schema(ArrowSchema *s, bytes name, bytes format_, metadata) except -1:
    strings = (name, format_, _encoded(metadata) if metadata else b"")
    memset(s, 0, sizeof(ArrowSchema))
    Py_INCREF(strings)
    s.private_data = <PyObject *>strings
    s.name, s.format, s.release = PyBytes_AsString(name), PyBytes_AsString(format_), release_schema
    if metadata:
        s.metadata = PyBytes_AsString(strings[2])
    return 0


cdef int fill_schema(ArrowSchema *s, list columns, metadata) except -1:
    cdef ArrowSchema *child
    start_schema(s, b"", b"+s", metadata)
    s.children = <ArrowSchema **>calloc(len(columns) or 1, sizeof(ArrowSchema *))
    try:
        if s.children == NULL:
            raise MemoryError("no memory for an Arrow schema")
        for column in columns:
            child = <ArrowSchema *>claim(sizeof(ArrowSchema))
            s.children[s.n_children] = child
            s.n_children += 1
            start_schema(child, column.name, column.format, column.metadata)
            child.flags = NULLABLE if column.nullable else 0
            if column.texts is not None:
                child.dictionary = <ArrowSchema *>claim(sizeof(ArrowSchema))
                start_schema(child.dictionary, b"", b"U", None)
    except BaseException:
        release_schema(s)
        raise
    return 0


# ---- arrays: private_data owns the memory of the buffers

cdef void release_array(ArrowArray *a) noexcept with gil:
    cdef int64_t i
    for i in range(a.n_children):
        if a.children[i].release != NULL:
            a.children[i].release(a.children[i])
        free(a.children[i])
    free(a.children)
    if a.dictionary != NULL:
        if a.dictionary.release != NULL:
            a.dictionary.release(a.dictionary)
        free(a.dictionary)
    free(a.buffers)
    if a.private_data != NULL:
        Py_DECREF(<object>a.private_data)
    a.release = NULL


cdef int start_array(ArrowArray *a, object owner, int64_t length, int64_t n_buffers) except -1:
    memset(a, 0, sizeof(ArrowArray))
    a.buffers = <const void **>claim(n_buffers * sizeof(void *))  # [0] is the validity bitmap; NULL: nothing is null
    Py_INCREF(owner)
    a.private_data = <PyObject *>owner
    a.length, a.n_buffers, a.release = length, n_buffers, release_array
    return 0


cdef int fill_array(ArrowArray *a, object owner, int64_t length, list columns) except -1:
    cdef ArrowArray *child
    start_array(a, owner, length, 1)
    try:
        a.children = <ArrowArray **>claim(len(columns) * sizeof(ArrowArray *) or 1)
        for column in columns:
            child = <ArrowArray *>claim(sizeof(ArrowArray))
            a.children[a.n_children] = child
            a.n_children += 1
            start_array(child, owner, length, 2)
            child.buffers[0] = <const void *><uintptr_t>column.valid
            child.buffers[1] = <const void *><uintptr_t>column.items
            child.null_count = -1 if column.valid else 0  # -1: left to the consumer to count
            if column.texts is not None:
                child.dictionary = <ArrowArray *>claim(sizeof(ArrowArray))
                start_array(child.dictionary, column.texts.owner, column.texts.n, 3)
                child.dictionary.buffers[1] = <const void *><uintptr_t>column.texts.offsets
                child.dictionary.buffers[2] = <const void *><uintptr_t>column.texts.bytes
    except BaseException:
        release_array(a)
        raise
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


def schema(list columns: list[ArrowColumn], dict metadata: dict[bytes, bytes] | None = None) -> object:
    """A capsule "arrow_schema": a struct of `columns` (core/arrow_column.py)."""
    cdef ArrowSchema *s = <ArrowSchema *>claim(sizeof(ArrowSchema))
    try:
        fill_schema(s, columns, metadata)
    except BaseException:
        free(s)
        raise
    return PyCapsule_New(s, "arrow_schema", drop_schema)


def array(object owner, Py_ssize_t length, list columns: list[ArrowColumn]) -> object:
    """A capsule "arrow_array" over the columns' memory, which `owner` keeps alive."""
    cdef ArrowArray *a = <ArrowArray *>claim(sizeof(ArrowArray))
    try:
        fill_array(a, owner, length, columns)
    except BaseException:
        free(a)
        raise
    return PyCapsule_New(a, "arrow_array", drop_array)


# ---- streams

cdef class _Stream:
    """The state of a stream of (owner, length, columns); the first one determines the schema."""

    cdef object items
    cdef object first
    cdef list columns
    cdef object metadata
    cdef object failed
    cdef bytes error

    def __init__(self, items, empty, metadata, failed):
        self.items = iter(items)
        self.first = None
        self.columns = empty
        self.metadata = metadata
        self.failed = failed
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
        return fill_schema(out, self.columns, self.metadata() if self.metadata else None)

    cdef int next(self, ArrowArray *out) except -1:
        memset(out, 0, sizeof(ArrowArray))
        item = self.pull()
        if item is None:
            return 0
        owner, length, columns = item
        if len(columns) != len(self.columns) or not all(c.is_like(d) for c, d in zip(columns, self.columns)):
            raise ValueError("the profile's parts have different columns, which one Arrow stream cannot")
        return fill_array(out, owner, length, columns)

    cdef int fail(self, error) noexcept:
        self.error = str(error).encode("utf-8", "backslashreplace")
        if self.failed is not None:
            self.failed(error)
        return ENOMEM if isinstance(error, MemoryError) else EIO


cdef int stream_schema(ArrowArrayStream *s, ArrowSchema *out) noexcept with gil:
    cdef _Stream state = <_Stream>s.private_data
    try:
        return state.schema(out)
    except BaseException as error:
        return state.fail(error)


cdef int stream_next(ArrowArrayStream *s, ArrowArray *out) noexcept with gil:
    cdef _Stream state = <_Stream>s.private_data
    try:
        return state.next(out)
    except BaseException as error:
        return state.fail(error)


cdef const char *stream_error(ArrowArrayStream *s) noexcept with gil:
    return PyBytes_AsString((<_Stream>s.private_data).error)


cdef void release_stream(ArrowArrayStream *s) noexcept with gil:
    Py_DECREF(<object>s.private_data)
    s.release = NULL


def stream(
    items: Iterable[tuple[object, int, list[ArrowColumn]]],
    list empty: list[ArrowColumn],
    metadata: Callable[[], dict[bytes, bytes]] | None = None,
    failed: Callable[[BaseException], object] | None = None,
) -> object:
    """A capsule "arrow_array_stream" of `items`, each (owner, length, columns); `empty`: the columns if there are no items.
    `metadata` is called for the schema's metadata once the first item is there.  `failed` is called with an exception
    that ends the stream: consumers get at most its text."""
    state = _Stream(items, empty, metadata, failed)
    cdef ArrowArrayStream *s = <ArrowArrayStream *>claim(sizeof(ArrowArrayStream))
    Py_INCREF(state)
    s.private_data = <PyObject *>state
    s.get_schema, s.get_next, s.get_last_error, s.release = stream_schema, stream_next, stream_error, release_stream
    return PyCapsule_New(s, "arrow_array_stream", drop_stream)
