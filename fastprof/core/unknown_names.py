"""Names as text, and files and objects that are not known.

Names of those are empty or, as in Callgrind's files, `???`.  In JSON, CSV and Python they are empty, in tables of Arrow
and SQL they have no value.  Text for people may show `???`.
"""

UNKNOWN = ("", "???")
UNKNOWN_BYTES = (b"", b"???")


def known(name: bytes, errors: str = "backslashreplace") -> str:
    """The name of a file or an object as text; empty if it is unknown."""
    return "" if name in UNKNOWN_BYTES else name.decode("utf-8", errors)


def text_of(name: bytes) -> str:
    """A name as text; bytes that are not UTF-8 as \\xe9."""
    return name.decode("utf-8", "backslashreplace")


def readable(text: str) -> str:
    """Text in which surrogates stand for bytes that are not UTF-8, as `text_of` has them."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
