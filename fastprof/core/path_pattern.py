"""Path patterns with fields that become labels.

dumps/{host}/{service}-{date}.prof    dumps/web1/api-0314.prof    host=web1, service=api, date=0314
"""

from fastprof.core import lazy_re as re

_TOKEN = re.compile(r"\{(\w+)\}|(\*\*|\*|\?)")


class PathPattern:
    """`dumps/{host}/{date}.prof`, for the end of a path: fields, * and ? have no slash, ** may have any.

    Of several ways to match, the first field or wildcard is as long as possible, then the next one ...  A regular
    expression would try all ways, whose number is a power of the path's length.  Here a set of positions is a number
    with a bit for each, and each token takes a few operations on such numbers.

    Errors: ValueError.
    """

    def __init__(self, text: str) -> None:
        self._tokens: list[tuple[str, str]] = []  # kind ("{", "*", "**", "?", or "" for itself) and text
        self.names: list[str] = []
        at = 0
        for found in _TOKEN.finditer(text):
            name, wildcard = found.groups()
            if at < found.start():
                self._tokens.append(("", text[at : found.start()]))
            at = found.end()
            if name in self.names:
                raise ValueError(f"{text!r:.80} has the field {name} twice")
            self._tokens.append((wildcard or "{", name or ""))
            self.names += [name] if name else []
        if not self.names or any(name[0].isdigit() for name in self.names):
            raise ValueError(f"{text!r:.80} has no field such as {{host}}")
        if at < len(text):
            self._tokens.append(("", text[at:]))

    def match(self, path: str) -> dict[str, str] | None:
        """The fields of a path that ends with the pattern, after a slash or as a whole; None for another path."""
        n, slashes = len(path), _found(path, "/")
        inside = ~slashes & (1 << n) - 1
        # ends[k]: bit i is set if tokens k, k + 1 ... match the last i characters
        ends = [1]
        for kind, text in reversed(self._tokens):
            ends.append(_before(ends[-1], kind, text, path, inside))
        ends.reverse()
        if ends[0] >> n & 1:
            left = n
        elif after_slash := ends[0] & slashes:
            left = _lowest(after_slash)
        else:
            return None
        fields = {}
        for (kind, text), after in zip(self._tokens, ends[1:], strict=True):
            if kind in ("", "?"):
                left -= len(text) if text else 1
                continue
            least = 0 if kind == "**" else (slashes & (1 << left) - 1).bit_length()
            end = least + _lowest(after >> least)
            if kind == "{":
                fields[text] = path[n - left : n - end]
            left = end
        return fields


def _found(path: str, text: str) -> int:
    """Where `text` is in a path: bit i is set if it ends i characters before the path's end."""
    marks = bytearray(b"0" * len(path) or b"0")
    at = path.find(text)
    while at >= 0:
        marks[at + len(text) - 1] = 49  # b"1"
        at = path.find(text, at + 1)
    return int(marks, 2)


def _before(ends: int, kind: str, text: str, path: str, inside: int) -> int:
    """The lengths of what matches a token and then one of `ends`.  `inside`: characters that are no slashes."""
    if not kind:
        return (ends & _found(path, text)) << len(text)
    if kind == "?":
        return (ends & inside) << 1
    if kind == "**":
        return (1 << len(path) + 1) - (ends & -ends) if ends else 0
    if kind == "{":
        ends = (ends & inside) << 1
    # as far as bits of `inside` follow: a carry runs through them
    return ((ends & inside) + inside ^ inside) | ends


def _lowest(bits: int) -> int:
    return (bits & -bits).bit_length() - 1
