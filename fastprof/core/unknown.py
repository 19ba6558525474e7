"""Files and objects that are not known.

Their names are empty or, as in Callgrind's files, `???`.  In JSON, CSV and Python they are empty, in tables of Arrow
and SQL they have no value.  Text for people may show `???`.
"""

from __future__ import annotations

UNKNOWN = ("", "???")
UNKNOWN_BYTES = (b"", b"???")


def known(name: bytes, errors: str = "backslashreplace") -> str:
    """The name of a file or an object as text; empty if it is unknown."""
    return "" if name in UNKNOWN_BYTES else name.decode("utf-8", errors)
