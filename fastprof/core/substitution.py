r"""Substitutions as in sed, Perl and cg_annotate: s/old/new/, s/old/new/gi.

`old` is a regular expression of Python's.  In `new` a group is `\1` or `$1`, also `\g<1>`, `\g<name>` and `${1}`, and
the whole match is `$&` or `\g<0>`.  `\/`, `\\` and `\$` are these characters.  Flags: g, every match and not only the
first; i, ignore case.

    s/(\w+)::/$1./     a::b::c   becomes   a.b::c
"""

import re
from collections.abc import Callable

# Anything but a slash or backslash, or an escaped character: as cg_annotate parses it.
_PIECE = r"((?:[^/\\]|\\.)*)"
_WHOLE = re.compile(rf"s/{_PIECE}/{_PIECE}/([gi]*)", re.DOTALL)
_TOKEN = re.compile(
    r"""\\g<(?P<name>\w+)> | \\(?P<back>[0-9]{1,2}) | \$(?P<dollar>[0-9]{1,2}) | \$\{(?P<braces>[0-9]{1,2})\}
      | (?P<all>\$&) | \\(?P<escaped>.) | (?P<text>[^\\$]+|\$)""",
    re.DOTALL | re.VERBOSE,
)


def parse(text: str) -> Callable[[str], str]:
    """A function that replaces in a name.  Errors: ValueError with the reason."""
    found = _WHOLE.fullmatch(text)
    if not found:
        raise ValueError(f"{text!r:.80} is not s/OLD/NEW/, optionally followed by the flags g and i")
    old, new, flags = found.groups()
    try:
        pattern = re.compile(old, re.IGNORECASE if "i" in flags else 0)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"{old!r:.80} is not a regular expression: {error}") from None
    pieces = [*_pieces(new, pattern)]
    count = 0 if "g" in flags else 1

    def replacement(match: re.Match[str]) -> str:
        return "".join(piece if isinstance(piece, str) else match[piece[0]] or "" for piece in pieces)

    return lambda name: pattern.sub(replacement, name, count=count)


def _pieces(new: str, pattern: re.Pattern[str]) -> list[str | tuple[int]]:
    """Texts, and numbers of groups."""
    pieces: list[str | tuple[int]] = []
    for token in _TOKEN.finditer(new):
        kind, value = token.lastgroup, token[token.lastgroup or 0]
        if kind == "text":
            pieces.append(value)
        elif kind == "escaped":
            if value.isalnum():
                raise ValueError(f"\\{value} in {new!r:.80} is not an escape: write \\\\ for a backslash")
            pieces.append(value)
        else:
            number = 0 if kind == "all" else pattern.groupindex.get(value, value)
            if not isinstance(number, int):
                number = int(number) if number.isdecimal() else -1
            if not 0 <= number <= pattern.groups:
                raise ValueError(f"{token[0]} in {new!r:.80}: the pattern has no such group")
            pieces.append((number,))
    return pieces
