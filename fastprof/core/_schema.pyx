"""Compares plain values with shapes (shapes.py)."""

_LOW, _HIGH = -(1 << 63), 1 << 64


cpdef bint fits(object value, object shape) except -1:
    """Whether a value matches the shape."""
    cdef Py_ssize_t n
    if isinstance(shape, dict):
        return isinstance(value, dict) and _items_fit(value, shape)
    if isinstance(shape, (list, tuple)):
        if not isinstance(value, type(shape)):
            return False
        n = len(shape)
        if n == 1 or (n and shape[n - 1] is ...):
            first = shape[0]
            for item in value:
                if not fits(item, first):
                    return False
            return True
        if len(value) != n:
            return False
        for item, one in zip(value, shape):
            if not fits(item, one):
                return False
        return True
    if shape is int:
        return isinstance(value, int) and not isinstance(value, bool) and _LOW <= value < _HIGH
    if isinstance(shape, range):
        return isinstance(value, int) and not isinstance(value, bool) and value in shape
    return isinstance(value, shape)


cdef bint _items_fit(dict value, dict shape) except -1:
    others = shape.get(str, object)
    for key, item in value.items():
        if not isinstance(key, str) or not fits(item, shape.get(key, others)):
            return False
    return True
