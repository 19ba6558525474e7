"""Reads and writes profiles of StackProf slowly: Ruby's Marshal 4.8, and stacks by `raw`."""

from __future__ import annotations

from collections import Counter
from typing import Any


class Symbol(str):
    __slots__ = ()


def fixnum(n: int) -> bytes:
    if n == 0:
        return b"\0"
    if -124 < n < 123:
        return (n + 5 if n > 0 else n - 5).to_bytes(1, "little", signed=True)
    size = next(k for k in (1, 2, 3, 4) if -(1 << 8 * k) <= n < 1 << 8 * k)
    head = (size if n > 0 else -size).to_bytes(1, "little", signed=True)
    return head + (n % (1 << 8 * size)).to_bytes(size, "little")


def write(value: Any) -> bytes:
    """Symbols and texts that occur again are links, as Ruby writes them."""
    symbols: list[str] = []
    texts: dict[str, int] = {}
    n_objects = 0

    def one(v: Any) -> bytes:
        nonlocal n_objects
        if v is None or isinstance(v, bool):
            return {None: b"0", True: b"T", False: b"F"}[v]
        if isinstance(v, Symbol):
            if v in symbols:
                return b";" + fixnum(symbols.index(v))
            symbols.append(v)
            return b":" + fixnum(len(v.encode())) + v.encode()
        if isinstance(v, int) and -(1 << 30) <= v < 1 << 30:
            return b"i" + fixnum(v)
        if isinstance(v, str) and v in texts:
            return b"@" + fixnum(texts[v])
        n_objects += 1
        if isinstance(v, int):
            words = (abs(v).bit_length() + 15) // 16
            return b"l" + (b"+" if v >= 0 else b"-") + fixnum(words) + abs(v).to_bytes(2 * words, "little")
        if isinstance(v, float):
            text = repr(v).encode()
            return b"f" + fixnum(len(text)) + text
        if isinstance(v, str):
            texts[v] = n_objects - 1
            data = v.encode()
            return b'I"' + fixnum(len(data)) + data + fixnum(1) + one(Symbol("E")) + b"T"
        if isinstance(v, list):
            return b"[" + fixnum(len(v)) + b"".join(map(one, v))
        return b"{" + fixnum(len(v)) + b"".join(one(k) + one(w) for k, w in v.items())

    return b"\4\b" + one(value)


def stacks(profile: dict[str, Any]) -> Counter[tuple[tuple[str, str, int], ...]]:
    """Samples by stack, outermost first: name, file and first line."""
    found: Counter[tuple[tuple[str, str, int], ...]] = Counter()
    raw, at = profile["raw"], 0
    while at < len(raw):
        n = raw[at]
        frames = [profile["frames"][id_] for id_ in raw[at + 1 : at + 1 + n]]
        found[tuple((f["name"], f["file"], f.get("line") or 0) for f in frames)] += raw[at + 1 + n]
        at += n + 2
    return found
