"""The archive's metadata encoding: the part of CBOR (RFC 8949) that plain values need.

None, bool, int of any size up to 64 bits, float, str, bytes, list, dict;
tuple (an array under tag 60500, so that it comes back as a tuple) and the
model's ValueType (the array of its fields under tag 60501).
An index of 100,000 profiles has millions of values, which are Python's, so it is Cython.
"""

from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcpy

from fastprof.core.model import ValueType as _ValueType

cdef enum:
    MAX_DEPTH = 32
    TUPLE = 60500
    VALUE_TYPE = 60501


class CborError(ValueError):
    """Bytes that this encoding cannot have, or a value without an encoding."""


def loads(bytes data not None, int64_t room=1 << 62) -> object:
    """The value encoded in `data`.  Its lists and maps may take about `room` bytes.  Errors: CborError."""
    cdef _Decoder decoder = _Decoder()
    decoder.p, decoder.n, decoder.at, decoder.room = data, len(data), 0, room
    value = decoder.value(0)
    if decoder.at != decoder.n:
        raise CborError("bytes after the value")
    return value


cdef class _Decoder:
    cdef const uint8_t *p
    cdef Py_ssize_t n, at
    cdef int64_t room  # bytes that lists and maps may still take

    cdef uint64_t number(self, int info) except? 0:
        """The number after a head, big-endian."""
        cdef uint64_t n = 0
        cdef Py_ssize_t size
        if info < 24:
            return info
        if info > 27:
            raise CborError("indefinite length")
        size = 1 << (info - 24)
        if size > self.n - self.at:
            raise CborError("ends inside a number")
        for _ in range(size):
            n = n << 8 | self.p[self.at]
            self.at += 1
        return n

    cdef object simple(self, int info):
        cdef uint64_t bits
        cdef double value
        if info == 27 and self.n - self.at >= 8:
            bits = self.number(27)
            memcpy(&value, &bits, 8)
            return value
        if info == 20:
            return False
        if info == 21:
            return True
        if info == 22:
            return None
        raise CborError("unknown simple value")

    cdef object string(self, uint64_t n, bint is_text):
        cdef const char *start = <const char *>self.p + self.at
        if n > <uint64_t>(self.n - self.at):
            raise CborError("ends inside a string")
        self.at += <Py_ssize_t>n
        if not is_text:
            return start[:<Py_ssize_t>n]
        try:
            return start[:<Py_ssize_t>n].decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:
            raise CborError("text is not UTF-8") from None

    cdef object tagged(self, uint64_t tag, int depth):
        value = self.value(depth + 1)
        if tag == TUPLE and isinstance(value, list):
            return tuple(value)
        if tag == VALUE_TYPE and isinstance(value, list) and all([isinstance(item, str) for item in value]):
            try:
                return _ValueType(*value)
            except TypeError:
                pass  # fields added by a later version
        raise CborError(f"unknown tag {tag}")

    cdef object value(self, int depth):
        cdef int major, info
        cdef uint64_t n
        if depth > MAX_DEPTH:
            raise CborError("nested too deeply")
        if self.at >= self.n:
            raise CborError("ends inside a value")
        major, info = self.p[self.at] >> 5, self.p[self.at] & 31
        self.at += 1
        if major == 7:
            return self.simple(info)
        n = self.number(info)
        if major == 0:
            return n
        if major == 1:
            return -1 - <object>n
        if major == 2 or major == 3:
            return self.string(n, major == 3)
        if major == 6:
            return self.tagged(n, depth)
        if n > <uint64_t>(self.n - self.at):  # every item takes a byte or more
            raise CborError("ends inside a list")
        self.room -= 64 + 8 * <int64_t>n  # approximately: an empty container and its slots
        if self.room < 0:
            raise CborError("lists and maps take more memory than the size of the section justifies")
        return self.items(n, depth) if major == 4 else self.pairs(n, depth)

    cdef list items(self, uint64_t n, int depth):
        cdef list found = []
        for _ in range(n):
            found.append(self.value(depth + 1))
        return found

    cdef dict pairs(self, uint64_t n, int depth):
        cdef dict found = {}
        for _ in range(n):
            key = checked(self.value(depth + 1))
            found[key] = self.value(depth + 1)
        return found


cdef object checked(object key):
    """A key of a map.  Tuples are refused: Python's hash of them is public; colliding keys can be constructed."""
    if not isinstance(key, (str, bytes, int)):
        raise CborError(f"a key is {key!r:.80}, expected a text, a byte string or a whole number")
    return key


def dumps(value) -> bytes:
    """`value` as bytes.  Errors: CborError for a type or number that has no encoding here."""
    cdef bytearray out = bytearray()
    encode(value, out, 0)
    return bytes(out)


cdef int head(int major, uint64_t n, bytearray out) except -1:
    cdef int log = 0  # of the bytes of the number
    if n < 24:
        out.append(<uint8_t>(major << 5 | <int>n))
        return 0
    while log < 3 and n >> (8 << log):
        log += 1
    out.append(<uint8_t>(major << 5 | (24 + log)))
    for i in range((1 << log) - 1, -1, -1):
        out.append(<uint8_t>(n >> 8 * i & 0xFF))
    return 0


cdef int string(int major, bytes data, bytearray out) except -1:
    head(major, len(data), out)
    out += data
    return 0


cdef int whole(object value, bytearray out) except -1:
    cdef bint is_negative = value < 0
    try:
        return head(is_negative, -1 - value if is_negative else value, out)
    except OverflowError:
        raise CborError(f"{value} does not fit in 64 bits") from None


cdef int real(double value, bytearray out) except -1:
    cdef uint64_t bits
    memcpy(&bits, &value, 8)
    out.append(0xFB)
    for i in range(7, -1, -1):
        out.append(<uint8_t>(bits >> 8 * i & 0xFF))
    return 0


cdef int items_of(object values, bytearray out, int depth) except -1:
    head(4, len(values), out)
    for item in values:
        encode(item, out, depth + 1)
    return 0


cdef int encode(object value, bytearray out, int depth) except -1:
    if depth > MAX_DEPTH:
        raise CborError("nested too deeply")
    if value is None:
        out.append(0xF6)
    elif isinstance(value, bool):
        out.append(0xF5 if value else 0xF4)
    elif isinstance(value, int):
        whole(value, out)
    elif isinstance(value, float):
        real(value, out)
    elif isinstance(value, (bytes, bytearray)):
        string(2, bytes(value), out)
    elif isinstance(value, str):
        string(3, value.encode("utf-8", "surrogatepass"), out)
    elif isinstance(value, list):
        items_of(value, out, depth)
    elif isinstance(value, tuple):
        is_type = isinstance(value, _ValueType)
        if is_type and not all([isinstance(item, str) for item in value]):
            raise CborError(f"{value!r:.120} has a field that is not a text")
        head(6, VALUE_TYPE if is_type else TUPLE, out)
        items_of(value, out, depth + 1)
    elif isinstance(value, dict):
        head(5, len(value), out)
        for key, item in value.items():
            encode(checked(key), out, depth + 1)
            encode(item, out, depth + 1)
    else:
        raise CborError(f"a {type(value).__name__} cannot be stored")
    return 0
