"""Lists of symbols inside profiles: `0x40052c main`, or of Java `0x1 a.B.c (B.java:12)`."""

from fastprof.core import lazy_re as re

SYMBOL_LINE = rb"\s*0x([0-9a-fA-F]{1,16})\s+(.*)$"  # address and name
_JAVA_LINE = rb"-?[0-9]+"
_BLANKS = (b" ", b"\t", b"\f", b"\v", b"\r")


def java_frame(text: bytes) -> tuple[bytes, bytes, int]:
    """`name (File.java:12)`, `name (lib.so)` or only a name: (name, file, line).

    Source: google/pprof, profile/legacy_java_profile.go.
    """
    if text.endswith(b")"):
        file, colon, line = text[:-1].rpartition(b":")
        if colon and re.fullmatch(_JAVA_LINE, line) and (at := _last_bracket(file[:-1])) >= 0:
            # too many digits for a line number: not converted
            number = int(line) if len(line) < 20 else 0
            return file[:at].rstrip(), file[at + 2 :], number if 0 < number < 1 << 31 else 0
        if (at := _last_bracket(text[:-1])) >= 0:
            return text[:at].rstrip(), text[at + 2 : -1], 0
    return (b"STUB" if b"generated stub/JIT" in text else text.strip()), b"", 0


def _last_bracket(text: bytes) -> int:
    """The index of the last blank before a bracket, or -1."""
    return max(text.rfind(blank + b"(") for blank in _BLANKS)
