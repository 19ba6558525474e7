"""The writing half of csrc/core/wire.h; the reading half is pprof's and is tested and fuzzed with it."""

from __future__ import annotations

import pytest

from fastprof.core._c import ffi, lib
from fastprof.core._typing import Any


def varint(v: int) -> bytes:
    out = b""
    while v > 127:
        out, v = out + bytes([v & 127 | 128]), v >> 7
    return out + bytes([v])


@pytest.fixture
def buf() -> Any:
    return ffi.gc(ffi.new("struct fp_buf *"), lib.fp_buf_free)


def content(buf: Any) -> bytes:
    return bytes(ffi.buffer(buf.p, buf.n)) if buf.n else b""


@pytest.mark.parametrize("v", [0, 1, 127, 128, 1 << 63, (1 << 64) - 1])
@pytest.mark.parametrize("number", [1, 15, 16, (1 << 29) - 1])
def test_numbers(buf: Any, number: int, v: int) -> None:
    assert lib.fp_wire_put_number(buf, number, v) == 0
    assert content(buf) == varint(number << 3) + varint(v)
    buf.n = 0
    assert lib.fp_wire_put_nonzero(buf, number, v) == 0
    assert content(buf) == (varint(number << 3) + varint(v) if v else b"")


@pytest.mark.parametrize("inner", [0, 1, 125, 126, 127, 128, 16_380, 16_384, 3_000_000])
def test_messages_in_messages_have_the_shortest_length(buf: Any, inner: int) -> None:
    text = bytes(range(256)) * (inner // 256 + 1)
    text = text[:inner]
    outer_mark = lib.fp_wire_begin(buf, 3)
    lib.fp_wire_put_number(buf, 1, 7)
    inner_mark = lib.fp_wire_begin(buf, 20)
    lib.fp_wire_put_bytes(buf, 2, text, len(text))
    assert lib.fp_wire_end(buf, inner_mark) == 0
    lib.fp_wire_put_number(buf, 4, 9)
    assert lib.fp_wire_end(buf, outer_mark) == 0
    message = b"\x12" + varint(inner) + text
    whole = b"\x08\x07" + varint(20 << 3 | 2) + varint(len(message)) + message + b"\x20\x09"
    assert content(buf) == b"\x1a" + varint(len(whole)) + whole
