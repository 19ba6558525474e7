"""A self-contained page of HTML: its text, its style, its code, and data as packed columns.

    <script type="application/octet-stream" id="data">BASE64</script>

BASE64 is zlib data: the length of the head in 4 bytes, the head, the columns.  The head is JSON with the type and the
number of items of each column.  A column is stored in byte planes, the lowest byte of each item first, which compresses
well.

The page's security policy allows only the code and the style of the page, by digest: no requests, no other scripts.
Names from profiles occur only in the data, and the code shows them as text.
"""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from array import array
from collections.abc import Sequence
from importlib.resources import files

from fastprof.core._typing import Any
from fastprof.core.workers import side_by_side

_CODE = (
    *(
        "data.js",
        "text.js",
        "times.js",
        "tree.js",
        "colours.js",
        "boxes.js",
        "samples.js",
        "groups.js",
        "tracks.js",
        "minimap.js",
        "flame.js",
    ),
    *(
        "table.js",
        "columns.js",
        "rowgroups.js",
        "labels.js",
        "source.js",
        "asm.js",
        "calls.js",
        "callgraph.js",
        "treemap.js",
    ),
    *("selection.js", "details.js", "series.js", "about.js", "tip.js", "export.js", "address.js", "shell.js"),
    "transforms.js",
    "prepare.js",
    "transformmenu.js",
    "page.js",
)
_FEW = 1 << 18  # bytes to compress; threads do not pay for fewer
_TYPES = {"B": "u1", "I": "u4", "d": "f8"}
NONE = 0xFFFFFFFF  # in a column of indices


class Columns:
    """Columns by name, each an array of one of _TYPES."""

    def __init__(self) -> None:
        self._columns: dict[str, array[Any]] = {}
        self._packed: dict[str, tuple[array[Any], bytes]] = {}  # as they were compressed last, also by copies
        self._nbytes: dict[str, int] = {}  # compressed bytes of each

    def copy(self) -> Columns:
        """Another object with these columns, to which more can be added.  None of these is compressed again."""
        other = Columns()
        other._columns, other._packed = dict(self._columns), self._packed
        return other

    def add(self, name: str, type_: str, items: Sequence[Any]) -> None:
        """An array of that type is kept, not copied."""
        if type_ == "d" and min(items, default=0) >= 0 and max(items, default=0) <= NONE and not _has_fractions(items):
            type_ = "I"  # smaller and faster to read
        column = items if isinstance(items, array) and items.typecode == type_ else array(type_, items)
        self._columns[name] = column

    def __getitem__(self, name: str) -> array[Any]:
        return self._columns[name]

    def nbytes(self, prefix: str) -> int:
        """The approximate size in the packed page of the columns with this prefix."""
        return sum(nbytes for name, nbytes in self._nbytes.items() if name.startswith(prefix)) * 4 // 3

    def packed(self, head: dict[str, Any], cores: int = 1) -> bytes:
        """`head` and the columns, compressed: zlib's format, each of them in blocks that refer to no others."""
        described = [[name, _TYPES[c.typecode], len(c)] for name, c in self._columns.items()]
        text = json.dumps(head | {"columns": described}, ensure_ascii=False, separators=(",", ":"))
        data = text.encode("utf-8", "backslashreplace")
        data = len(data).to_bytes(4, "little") + data
        blocks, check = [b"\x78\x9c", _deflated(data)], zlib.adler32(data)
        new = {name: c for name, c in self._columns.items() if self._packed.get(name, (None,))[0] is not c}
        many = cores > 1 and sum(len(column) * column.itemsize for column in new.values()) > _FEW
        packed = side_by_side(_deflated_column, new.values(), cores) if many else map(_deflated_column, new.values())
        self._packed.update(zip(new, zip(new.values(), packed, strict=True), strict=True))
        for name, column in self._columns.items():
            check = zlib.adler32(_planes(column), check)
            blocks.append(self._packed[name][1])
            self._nbytes[name] = len(blocks[-1])
        return b"".join([*blocks, b"\x03\x00", check.to_bytes(4, "big")])  # an empty last block


def _has_fractions(items: Sequence[Any]) -> bool:
    """Of numbers of one type."""
    return len(items) > 0 and isinstance(items[0], float)


def _deflated(data: bytes) -> bytes:
    compressor = zlib.compressobj(6, wbits=-15)
    return compressor.compress(data) + compressor.flush(zlib.Z_FULL_FLUSH)


def _deflated_column(column: array[Any]) -> bytes:
    return _deflated(_planes(column))


def _planes(column: array[Any]) -> bytes:
    import sys

    if sys.byteorder == "big":
        column = array(column.typecode, column)
        column.byteswap()
    raw = column.tobytes()
    return b"".join(raw[i :: column.itemsize] for i in range(column.itemsize))


def html(packed: bytes) -> bytes:
    """The whole page around the packed data."""
    folder = files(__package__)
    style = folder.joinpath("page.css").read_bytes()
    code = b"".join(folder.joinpath(name).read_bytes() for name in _CODE)
    code = b'"use strict";\n(() => {\n' + code + b"})();\n"
    page = folder.joinpath("page.html").read_bytes()
    for mark, text in (
        (b"STYLE_DIGEST", _digest(style)),
        (b"CODE_DIGEST", _digest(code)),
        (b"/* STYLE */", style),
        (b"/* CODE */", code),
        (b"DATA", base64.b64encode(packed)),
    ):
        before, found, after = page.partition(mark)
        assert found, mark
        page = before + text + after
    return page


def _digest(text: bytes) -> bytes:
    return b"sha256-" + base64.b64encode(hashlib.sha256(text).digest())
