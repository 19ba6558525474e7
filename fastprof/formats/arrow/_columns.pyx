"""Columns of other programs as numbers and as ids of strings: Arrow's arrays, buffers and lists.

    Arrow's C stream, a batch of an IPC stream      Array ─┐
    array.array, NumPy, memoryview, list, tuple            ┴▶ Cells: 64-bit numbers, or ids of strings of the model

Memory that another program lends through the C interface is trusted, because it has no lengths; every length, offset
and index that can be checked is.  Errors: ValueError, which states the row and what was found.
Source: https://arrow.apache.org/docs/format/CDataInterface.html and Columnar.html.
"""

from cpython.buffer cimport PyBUF_FORMAT, PyBUF_ND, PyBuffer_Release, PyObject_CheckBuffer, PyObject_GetBuffer
from cpython.list cimport PyList_GetItem, PyList_Size
from cpython.number cimport PyNumber_Index
from cpython.pycapsule cimport PyCapsule_GetPointer
from cpython.unicode cimport PyUnicode_AsUTF8AndSize
from libc.math cimport isfinite, llround
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t, uintptr_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcmp, memcpy, memset

from fastprof.core.times import nanoseconds as _nanoseconds

from fastprof.core.arrow_c cimport ArrowArray, ArrowArrayStream, ArrowSchema
from fastprof.core.fp cimport FP_NO_ID, fp_model, fp_strings_intern


cdef extern from *:
    """
    #define fp_times_overflows(a, b, to) __builtin_mul_overflow(a, b, to)
    """
    bint fp_times_overflows(int64_t a, int64_t b, int64_t *to) nogil


cdef enum:
    LONGEST_NAME = 1 << 20  # bytes: FP_NAME_MOST
    MOST_COLUMNS = 4096
    MOST_ROWS = 0x7fffffff  # of one batch
    DEEPEST = 2  # a column and its dictionary
    VIEWS_OF_BYTE = 4  # new texts that may have a byte

cdef int64_t MOST_LENT = <int64_t>1 << 48  # of lengths and offsets: no sum of them wraps


cdef class Array:
    """One column of some rows: buffers that `owner` keeps alive; a size of -1 is not known."""

    cdef bytes format
    cdef int64_t n, offset, n_buffers
    cdef const uint8_t **buffers
    cdef int64_t *sizes
    cdef Array dictionary
    cdef object owner
    cdef Cells words  # of a dictionary, once they are read, with ids of the model `words_of`
    cdef size_t words_of

    def __cinit__(self, bytes format, int64_t n, int64_t n_buffers):
        self.format, self.n, self.n_buffers = format, n, n_buffers
        self.buffers = <const uint8_t **>calloc(n_buffers + 1, sizeof(void *))
        self.sizes = <int64_t *>calloc(n_buffers + 1, sizeof(int64_t))
        if self.buffers == NULL or self.sizes == NULL:
            raise MemoryError("no memory for a column")

    def __dealloc__(self):
        free(<void *>self.buffers)
        free(self.sizes)

    @staticmethod
    def of(bytes format, int64_t n, list buffers: list[tuple[int, int]], Array dictionary: Array | None, owner) -> Array:
        """A column over `buffers`, each (address, size), which `owner` keeps alive."""
        if not 0 <= n <= MOST_ROWS:
            raise ValueError(f"has {n} rows")
        cdef Array made = Array.__new__(Array, format, n, len(buffers))
        for i, (address, size) in enumerate(buffers):
            made.buffers[i], made.sizes[i] = <const uint8_t *><uintptr_t>address, size
        made.dictionary, made.owner = dictionary, owner
        return made

    def __len__(self) -> int:
        return self.n

    cdef const uint8_t *buffer(self, int64_t i, int64_t nbytes) except? NULL:
        """Buffer i, of which the rows use `nbytes`.  NULL if it is missing and may be."""
        if i >= self.n_buffers:
            raise ValueError(f"has {self.n_buffers} buffers, expected more than {i}")
        if self.buffers[i] == NULL or not self.sizes[i]:
            if i and nbytes > 0:
                raise ValueError(f"buffer {i} is missing")
            return NULL
        if 0 <= self.sizes[i] < nbytes:
            raise ValueError(f"buffer {i} has {self.sizes[i]} bytes, its rows take {nbytes}")
        return self.buffers[i]


cdef class Cells:
    """The values of a column: `numbers`, or ids of strings in `texts` (FP_NO_ID: missing)."""

    def __dealloc__(self):
        free(self.numbers)
        free(self.texts)
        free(self.absent)

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, Py_ssize_t row) -> int | None:
        """For tests and messages: a number, the id of a string, or None."""
        if not 0 <= row < self.n:
            raise IndexError(row)
        if self.texts != NULL:
            return None if self.texts[row] == FP_NO_ID else self.texts[row]
        return None if self.absent != NULL and self.absent[row] else self.numbers[row]

    @property
    def is_text(self) -> bool:
        return self.texts != NULL

    @property
    def is_empty(self) -> bool:
        """Whether all values are missing."""
        cdef Py_ssize_t i
        for i in range(self.n):
            if self.texts[i] != FP_NO_ID if self.texts != NULL else (self.absent == NULL or not self.absent[i]):
                return False
        return True

    cdef int hold(self, Py_ssize_t n, bint texts) except -1:
        if n > MOST_ROWS:
            raise ValueError(f"has {n} rows")
        self.n = n
        if texts:
            self.texts = <uint32_t *>malloc(n * sizeof(uint32_t) + 1)
        else:
            self.numbers = <int64_t *>malloc(n * sizeof(int64_t) + 1)
        if self.texts == NULL and self.numbers == NULL:
            raise MemoryError("no memory for a column")
        return 0

    cdef int miss(self, Py_ssize_t row) except -1:
        if self.texts != NULL:
            self.texts[row] = FP_NO_ID
            return 0
        if self.absent == NULL:
            self.absent = <uint8_t *>calloc(self.n + 1, 1)
            if self.absent == NULL:
                raise MemoryError("no memory for a column")
        self.absent[row], self.numbers[row] = 1, 0
        return 0


cdef uint32_t text_id(fp_model *m, const void *p, int64_t n, Py_ssize_t row) except? 0xffffffff:
    if n > LONGEST_NAME:
        raise ValueError(f"row {row}: a text of {n} bytes is longer than the limit of 1 MiB")
    cdef uint32_t found = fp_strings_intern(&m.strings, p, n)
    if found == FP_NO_ID:
        raise MemoryError("no memory for names")
    return found


cdef uint32_t id_of(fp_model *m, object text, str what, Py_ssize_t row) except? 0xffffffff:
    """The id of a str, whose surrogates stand for bytes, or of bytes.  Errors name the `row`, or if it is -1 `what`."""
    cdef Py_ssize_t n = 0
    cdef const char *p = NULL
    if isinstance(text, str):
        try:
            p = PyUnicode_AsUTF8AndSize(text, &n)
        except UnicodeEncodeError:  # bytes of a name that is not UTF-8
            try:
                text = str.encode(text, "utf-8", "surrogateescape")
            except UnicodeEncodeError:
                raise ValueError(f"{place(what, row)} {text!r:.80} has surrogates") from None
    elif not isinstance(text, bytes):
        raise ValueError(f"{place(what, row)} is {type(text).__name__}, expected a text")
    if isinstance(text, bytes):
        p, n = <bytes>text, len(<bytes>text)
    if n > LONGEST_NAME:
        raise ValueError(f"{place(what, row)} is longer than the limit of 1 MiB")
    return text_id(m, p, n, row)


cdef str place(str what, Py_ssize_t row):
    return what if row < 0 else f"row {row}:"


# ---- Arrow

cdef struct Number:
    int width  # bytes; 16: a decimal without digits after the point
    bint is_signed
    bint is_real
    int64_t unit  # nanoseconds of one, or 0


cdef int number_of(bytes format, Number *to) except -1:
    """What a format of numbers is; 0 if it is none."""
    cdef dict plain = {b"c": (1, 1, 0), b"C": (1, 0, 0), b"s": (2, 1, 0), b"S": (2, 0, 0), b"i": (4, 1, 0), b"I": (4, 0, 0),
                       b"l": (8, 1, 0), b"L": (8, 0, 0), b"f": (4, 1, 1), b"g": (8, 1, 1)}
    cdef dict units = {b"s": 1000000000, b"m": 1000000, b"u": 1000, b"n": 1}
    to.unit = 0
    if format in plain:
        to.width, to.is_signed, to.is_real = plain[format]
        return 1
    if format[:2] in (b"ts", b"tD") and format[2:3] in units:
        to.width, to.is_signed, to.is_real, to.unit = 8, True, False, units[format[2:3]]
        return 1
    if format[:2] == b"d:" and format.count(b",") == 1 and format.endswith(b",0"):
        to.width, to.is_signed, to.is_real = 16, True, False
        return 1
    return 0


cdef int put_real(Cells c, Py_ssize_t row, double value, int64_t scale) except -1:
    """A time or a number that is not an integer; NaN is missing, as in pandas."""
    if value != value:
        return c.miss(row)
    value *= max(scale, 1)
    if not isfinite(value) or not -9.2e18 < value < 9.2e18:
        raise ValueError(f"row {row}: is {value!r}, expected less than 2^63")
    c.numbers[row] = llround(value)
    if scale <= 1 and <double>c.numbers[row] != value:
        raise ValueError(f"row {row}: is {value!r}, expected an integer")
    return 0


cdef int put_integer(Cells c, Py_ssize_t row, int64_t value, int64_t scale) except -1:
    if scale > 1 and fp_times_overflows(value, scale, &value):
        raise ValueError(f"row {row}: is 2^63 nanoseconds or more")
    c.numbers[row] = value
    return 0


cdef int64_t integer_at(const uint8_t *p, Number *kind, int64_t at, Py_ssize_t row, int64_t scale) except? -1:
    """`scale` 0: 64 bits, whatever their sign."""
    cdef int64_t word = 0, high = 0
    p += at * kind.width
    if kind.width == 8 or kind.width == 16:
        memcpy(&word, p, 8)
        if kind.width == 16:
            memcpy(&high, p + 8, 8)
            if high != (-1 if word < 0 else 0):
                raise ValueError(f"row {row}: is a number beyond 64 bits")
        elif not kind.is_signed and word < 0 and scale:
            raise ValueError(f"row {row}: is {<uint64_t>word}, expected less than 2^63")
        return word
    memcpy(&word, p, kind.width)
    if kind.is_signed:
        word = <int64_t>(<uint64_t>word << (64 - 8 * kind.width)) >> (64 - 8 * kind.width)
    return word


cdef inline bint is_valid(const uint8_t *bits, int64_t i) noexcept nogil:
    return bits == NULL or bits[i >> 3] >> (i & 7) & 1


cdef int read_numbers(Array a, Cells c, Number *kind, int64_t scale) except -1:
    cdef int64_t i, end = a.offset + a.n
    cdef const uint8_t *bits = a.buffer(0, (end + 7) >> 3)
    cdef const uint8_t *items = a.buffer(1, end * kind.width)
    cdef float single = 0
    cdef double real = 0
    if kind.unit:
        scale = kind.unit
    c.hold(a.n, False)
    if kind.width == 8 and not kind.is_real and (kind.is_signed or not scale) and scale <= 1 and bits == NULL:
        if a.n:
            memcpy(c.numbers, items + 8 * a.offset, 8 * a.n)
        return 0
    for i in range(a.n):
        if not is_valid(bits, a.offset + i):
            c.miss(i)
        elif not kind.is_real:
            put_integer(c, i, integer_at(items, kind, a.offset + i, i, scale), scale)
        elif kind.width == 4:
            memcpy(&single, items + 4 * (a.offset + i), 4)
            put_real(c, i, single, scale)
        else:
            memcpy(&real, items + 8 * (a.offset + i), 8)
            put_real(c, i, real, scale)
    return 0


cdef int read_texts(Array a, Cells c, fp_model *m, int width) except -1:
    """Texts with offsets of `width` bytes."""
    cdef int64_t i, end = a.offset + a.n, first = 0, last = 0
    cdef bint valid
    cdef const uint8_t *bits = a.buffer(0, (end + 7) >> 3)
    cdef const uint8_t *offsets = a.buffer(1, (end + 1) * width if a.n else 0)
    cdef const uint8_t *data = a.buffers[2] if a.n_buffers > 2 else NULL
    c.hold(a.n, True)
    for i in range(a.n):
        valid = is_valid(bits, a.offset + i)
        first = last = 0
        memcpy(&first, offsets + (a.offset + i) * width, width)
        memcpy(&last, offsets + (a.offset + i + 1) * width, width)
        if not 0 <= first <= last or (valid and ((a.sizes[2] >= 0 and last > a.sizes[2]) or (data == NULL and last > first))):
            raise ValueError(f"row {i}: its text is at bytes {first} to {last}")
        c.texts[i] = text_id(m, data + first if last > first else offsets, last - first, i) if valid else FP_NO_ID
    return 0


cdef int read_views(Array a, Cells c, fp_model *m) except -1:
    """Texts as views: up to 12 bytes in place, others in one of the following buffers, whose sizes the last one has.

    Views may overlap.  What they make of their buffers is limited: new texts (memory), and all texts (time)."""
    if a.n_buffers < 2:
        raise ValueError(f"has {a.n_buffers} buffers, expected those of views")
    cdef int64_t i, end = a.offset + a.n, size, room, time, n_data = a.n_buffers - 2 - (a.sizes[1] < 0)
    cdef uint32_t before
    cdef const uint8_t *bits = a.buffer(0, (end + 7) >> 3)
    cdef const uint8_t *view = a.buffer(1, end * 16)
    cdef int32_t length = 0, buffer = 0, start = 0
    if n_data < 0 or (a.sizes[1] < 0 and n_data and a.buffers[a.n_buffers - 1] == NULL):
        raise ValueError(f"has {a.n_buffers} buffers, expected those of views")
    c.hold(a.n, True)
    room = VIEWS_OF_BYTE * min(sum([view_bytes(a, i) for i in range(n_data)]), 1 << 48)
    time = room + (a.n << 16) + (1 << 30)
    for i in range(a.n):
        if not is_valid(bits, a.offset + i):
            c.texts[i] = FP_NO_ID
            continue
        memcpy(&length, view + 16 * (a.offset + i), 4)
        if 0 <= length <= 12:
            c.texts[i] = text_id(m, view + 16 * (a.offset + i) + 4, length, i)
            continue
        memcpy(&buffer, view + 16 * (a.offset + i) + 8, 4)
        memcpy(&start, view + 16 * (a.offset + i) + 12, 4)
        if length < 0 or not 0 <= buffer < n_data or start < 0:
            raise ValueError(f"row {i}: its text has {length} bytes at {start} of buffer {buffer} of {n_data}")
        size = view_bytes(a, buffer)
        if start + <int64_t>length > size or a.buffers[2 + buffer] == NULL:
            raise ValueError(f"row {i}: its text ends at {start + <int64_t>length} of {size} bytes")
        before = m.strings.n
        c.texts[i] = text_id(m, a.buffers[2 + buffer] + start, length, i)
        time -= length
        if m.strings.n != before:
            room -= length
        if room < 0 or time < 0:
            raise ValueError(f"row {i}: the texts up to it are views that overlap, of far more bytes than their buffers")
    return 0


cdef int64_t view_bytes(Array a, int64_t i) except -1:
    """The size of buffer i of the texts of views."""
    cdef int64_t size = a.sizes[2 + i]
    if size < 0:
        memcpy(&size, a.buffers[a.n_buffers - 1] + 8 * i, 8)
    if size < 0:
        raise ValueError(f"buffer {2 + i} has {size} bytes")
    return size


cdef int read_coded(Array a, Cells c, fp_model *m) except -1:
    """Indices of a dictionary of texts."""
    cdef Number kind
    cdef Cells words
    cdef int64_t i, at, end = a.offset + a.n
    if not number_of(a.format, &kind) or kind.is_real or kind.width > 8:
        raise ValueError("has a dictionary, but no indices")
    if a.dictionary.words is None or a.dictionary.words_of != <size_t>m:
        a.dictionary.words, a.dictionary.words_of = read(a.dictionary, <size_t>m, 1), <size_t>m
    words = a.dictionary.words
    if words.texts == NULL:
        raise ValueError("has a dictionary of numbers, expected one of texts")
    cdef const uint8_t *bits = a.buffer(0, (end + 7) >> 3)
    cdef const uint8_t *items = a.buffer(1, end * kind.width)
    c.hold(a.n, True)
    for i in range(a.n):
        if not is_valid(bits, a.offset + i):
            c.texts[i] = FP_NO_ID
            continue
        at = integer_at(items, &kind, a.offset + i, i, 1)
        if not 0 <= at < words.n:
            raise ValueError(f"row {i}: its index is {at}, and the dictionary has {words.n} texts")
        c.texts[i] = words.texts[at]
    return 0


def read(Array a, size_t model, int64_t scale) -> Cells:
    """The cells of a column.  Numbers are multiplied by `scale`; 0: any 64 bits are a number."""
    cdef Cells c = Cells.__new__(Cells)
    cdef fp_model *m = <fp_model *>model
    cdef Number kind
    if a.dictionary is not None:
        read_coded(a, c, m)
    elif number_of(a.format, &kind):
        read_numbers(a, c, &kind, scale)
    elif a.format in (b"u", b"z"):
        read_texts(a, c, m, 4)
    elif a.format in (b"U", b"Z"):
        read_texts(a, c, m, 8)
    elif a.format in (b"vu", b"vz"):
        read_views(a, c, m)
    else:
        raise ValueError(f"has Arrow's type {a.format.decode('utf-8', 'replace')!r}, expected numbers or texts")
    return c


# ---- objects of Python

def convert(object column, size_t model, int64_t scale) -> Cells:
    """The cells of a list, of an object with a buffer of numbers, or of one with `tolist`."""
    cdef Py_buffer view
    cdef Array a
    cdef str code
    if not isinstance(column, bytes) and PyObject_CheckBuffer(column):
        try:
            PyObject_GetBuffer(column, &view, PyBUF_ND | PyBUF_FORMAT)
        except (BufferError, ValueError):  # not contiguous; not numbers
            pass
        else:
            try:
                code = "B" if view.format == NULL else (<bytes>view.format).decode().lstrip("@=<")
                if view.ndim == 1 and len(code) == 1 and code in "bBhHiIlLqQnNfd":
                    real = code in "fd"
                    format = {1: b"c", 2: b"s", 4: b"f" if real else b"i", 8: b"g" if real else b"l"}[view.itemsize]
                    format = format if real or code.islower() else format.upper()
                    a = Array.of(format, view.shape[0], [(0, 0), (<uintptr_t>view.buf, view.len)], None, column)
                    return read(a, model, scale)
            finally:
                PyBuffer_Release(&view)
    if not isinstance(column, (list, tuple)):
        listed = getattr(column, "tolist", None) or getattr(column, "to_list", None)
        column = listed() if callable(listed) else None
        if not isinstance(column, list):
            raise ValueError("is no column: expected a list, an array or a column of a data frame")
    return convert_list([*column], <fp_model *>model, scale)


cdef Cells convert_list(list column, fp_model *m, int64_t scale):
    """Objects may run anything while they are converted, so the list must be a copy."""
    cdef Cells c = Cells.__new__(Cells)
    cdef Py_ssize_t i, n = PyList_Size(column)
    cdef object item, last = None
    cdef uint32_t id = FP_NO_ID
    cdef bint texts = any(isinstance(item, (str, bytes)) for item in column)
    c.hold(n, texts)
    for i in range(n):
        item = <object>PyList_GetItem(column, i)
        if item is None:
            c.miss(i)
        elif texts:
            if item is not last:
                id, last = id_of(m, item, "", i), item
            c.texts[i] = id
        elif isinstance(item, float):
            put_real(c, i, item, scale)
        else:
            put_object(c, i, item, scale)
    return c


cdef int put_object(Cells c, Py_ssize_t row, object item, int64_t scale) except -1:
    cdef int64_t value
    try:
        item = PyNumber_Index(item)
    except TypeError:
        if (found := _nanoseconds(item)) is None:
            raise ValueError(f"row {row}: is {type(item).__name__}, expected a number") from None
        item, scale = PyNumber_Index(found), 1
    try:
        value = item if scale or item < 1 << 63 else item - (1 << 64)
    except OverflowError:
        raise ValueError(f"row {row}: is {item!r:.40}, expected less than 2^63") from None
    return put_integer(c, row, value, scale)


# ---- Arrow's C stream

cdef class _Lent:
    """A batch of rows, released with the last column that refers to it."""

    cdef ArrowArray array

    def __dealloc__(self):
        if self.array.release != NULL:
            self.array.release(&self.array)


cdef tuple described(ArrowSchema *s, int depth):
    """(name, format, metadata, format of the dictionary or None) of a column."""
    cdef bytes metadata = b""
    cdef dict pairs = {}
    cdef const char *p = s.metadata
    cdef int32_t n = 0, length = 0
    if s == NULL or s.format == NULL or depth > DEEPEST:
        raise ValueError("has no type")
    if p != NULL:
        memcpy(&n, p, 4)
        p += 4
        texts = []
        for _ in range(2 * n):
            memcpy(&length, p, 4)
            if length < 0:
                break
            texts.append(p[4 : 4 + length])
            p += 4 + length
        pairs = dict(zip(texts[::2], texts[1::2]))
    inner = described(s.dictionary, depth + 1)[1] if s.dictionary != NULL else None
    return (<bytes>s.name if s.name != NULL else b"").decode("utf-8", "replace"), <bytes>s.format, pairs, inner


cdef class Stream:
    """Arrow's C stream of another program, taken over from its capsule.  `columns`: (name, format, metadata, format of
    the dictionary or None) of each; `metadata`: that of the schema."""

    cdef ArrowArrayStream stream
    cdef readonly list columns  #: list[tuple[str, bytes, dict[bytes, bytes], bytes | None]]
    cdef readonly dict metadata  #: dict[bytes, bytes]
    cdef dict dictionaries  # by column the last one, which most streams lend again

    def __cinit__(self, object capsule):
        cdef ArrowArrayStream *given
        cdef ArrowSchema schema
        try:
            given = <ArrowArrayStream *>PyCapsule_GetPointer(capsule, "arrow_array_stream")
        except ValueError:
            raise ValueError(f"__arrow_c_stream__ gave {type(capsule).__name__}, expected an arrow_array_stream") from None
        if given.release == NULL:
            raise ValueError("the Arrow stream was read before")
        self.stream, self.dictionaries = given[0], {}
        given.release = NULL
        memset(&schema, 0, sizeof(schema))
        self.check(self.stream.get_schema(&self.stream, &schema))
        try:
            if schema.format == NULL or schema.format != b"+s" or not 0 <= schema.n_children <= MOST_COLUMNS:
                raise ValueError("the Arrow stream has no columns")
            n = schema.n_children if schema.children != NULL else 0
            self.columns = [described(schema.children[i], 0) for i in range(n)]
            self.metadata = described(&schema, 0)[2]
        finally:
            if schema.release != NULL:
                schema.release(&schema)

    def __dealloc__(self):
        if self.stream.release != NULL:
            self.stream.release(&self.stream)

    cdef int check(self, int status) except -1:
        cdef const char *why
        if status:
            why = self.stream.get_last_error(&self.stream) if self.stream.get_last_error != NULL else NULL
            text = (<bytes>why).decode("utf-8", "replace") if why != NULL else f"error {status}"
            raise ValueError(f"the Arrow stream failed: {text}")
        return 0

    def __iter__(self) -> Iterator[list[Array]]:
        return self

    def __next__(self) -> list[Array]:
        """The next rows: a list of columns."""
        cdef _Lent lent = _Lent.__new__(_Lent)
        cdef ArrowArray *a = &lent.array
        if self.stream.release == NULL:
            raise StopIteration
        self.check(self.stream.get_next(&self.stream, a))
        if a.release == NULL:
            self.stream.release(&self.stream)
            self.stream.release = NULL
            raise StopIteration
        if a.n_children != len(self.columns) or (a.n_children and a.children == NULL):
            raise ValueError(f"the Arrow stream gave {a.n_children} columns, its schema has {len(self.columns)}")
        if not 0 <= a.length < MOST_LENT or not 0 <= a.offset < MOST_LENT:
            raise ValueError(f"the Arrow stream gave {a.length} rows from {a.offset} on")
        if a.null_count > 0 and a.n_buffers > 0 and a.buffers != NULL and a.buffers[0] != NULL:
            raise ValueError(f"the Arrow stream has {a.null_count} rows that are null")
        cdef Array made
        found = [lent_column(a.children[i], self.columns[i], a.offset, a.length, lent) for i in range(a.n_children)]
        for i, made in enumerate(found):
            if made.dictionary is not None:
                made.dictionary = self.dictionaries[i] = same_or_new(self.dictionaries.get(i), made.dictionary)
        return found


cdef Array same_or_new(Array last, Array new):
    """The last one if it has the same memory, which is not used for others while `last` keeps it."""
    if last is None or last.n != new.n or last.offset != new.offset or last.n_buffers != new.n_buffers:
        return new
    return new if memcmp(last.buffers, new.buffers, new.n_buffers * sizeof(void *)) else last


cdef Array lent_column(ArrowArray *c, tuple column, int64_t offset, int64_t n, _Lent lent):
    """`offset`, `n`: of the rows; -1: all, of a dictionary."""
    cdef Array made
    cdef int64_t i
    if c == NULL or c.release == NULL or not 0 <= c.n_buffers <= 1 << 20 or (c.n_buffers and c.buffers == NULL) or (
        not 0 <= c.offset < MOST_LENT or not 0 <= c.length < MOST_LENT
    ):
        raise ValueError(f"column {column[0]!r:.80}: its Arrow array is not valid")
    if n > c.length - offset:
        raise ValueError(f"column {column[0]!r:.80}: has {c.length} values for {offset + n} rows")
    if (c.dictionary == NULL) != (column[3] is None):
        raise ValueError(f"column {column[0]!r:.80}: only its schema or only its array has a dictionary")
    made = Array.__new__(Array, column[1], c.length if n < 0 else n, c.n_buffers)
    made.offset, made.owner = c.offset + offset, lent
    for i in range(c.n_buffers):
        made.buffers[i], made.sizes[i] = <const uint8_t *>c.buffers[i], -1
    if c.null_count == 0 and c.n_buffers:
        made.buffers[0], made.sizes[0] = NULL, 0
    if c.dictionary != NULL:
        made.dictionary = lent_column(c.dictionary, (column[0], column[3], {}, None), 0, -1, lent)
    return made
