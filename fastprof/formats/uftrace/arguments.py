"""The lengths of arguments and return values, which `info` of uftrace states by function.

    argspec:inner@arg1;puts@arg1/s,arg2/i32        retspec:inner@retval        argauto:...  (with --auto-args)

With --auto-args, those of functions with debug information are in NAME.dbg instead.

Source: uftrace's utils/argspec.c and utils/fstack.c.
"""

import re
from collections.abc import Iterable

from fastprof.symbols.demangle import demangle

MOST_PATTERNS = 1000
_MOST_VALUES = 255  # of a function
_EMPTY, _TEXT, _MOST = 254, 255, 120  # _MOST: bytes of a value
_SIZES = {"c": 1, "f": 8, "e": 0, "s": _TEXT, "S": _TEXT, "t": 0}
_VALUE = re.compile(r"(fparg|arg|retval)(\d{0,3})(?:/([a-zA-Z]?)(\d{0,3})(?::\w+)?)?(?:%.*)?")
_SIMPLE = re.compile(r"\^?(?:\w|\.\*?)*\$?")


def _is_in(name: str, parts: list[re.Pattern[str]]) -> bool:
    """Without going back: the first place of a part leaves the most for those after it."""
    at = 0
    for part in parts:
        if not (m := part.search(name, at)):
            return False
        at = m.end()
    return True


def _short(name: str) -> str:
    """As uftrace has names, which it compares: `operator delete` of _ZdlPv and _ZdlPvm."""
    return demangle(name, "short", set()) if name.startswith("_Z") else name


class Arguments:
    """Sizes of functions, by name."""

    def __init__(self, info: str, word: int) -> None:
        self._word = word
        # By name, bytes by value (None: unknown): as specified, and uftrace's own list
        self._exact: list[dict[str, dict[str, int | None]]] = [{}, {}]
        # Parts between .* and values
        self.patterns: list[tuple[list[re.Pattern[str]], dict[str, int | None]]] = []
        for kind, text in re.findall(r"^(argspec|retspec|argauto|retauto):(?!lines=)(.*)$", info, re.MULTILINE):
            for one in text.split(";"):
                name, at, values = one.partition("@")
                if not at:
                    continue
                if re.fullmatch(r"[\w:~<>, &()@]+", name):
                    given = self._exact[kind.endswith("auto")].setdefault(_short(name), {})
                    given.update(self._values(values.split(",")))
                elif _SIMPLE.fullmatch(name) and name.count("*") < 4:
                    if len(self.patterns) > MOST_PATTERNS:
                        return
                    parts = [re.compile(part) for part in name.split(".*")]
                    self.patterns.append((parts, self._values(values.split(","))))

    def _values(self, given: Iterable[str]) -> dict[str, int | None]:
        matches = filter(None, map(_VALUE.fullmatch, given))
        return {m[1] + (m[2] if m[1] != "retval" else ""): self._size(m) for m in matches}

    def sizes(self, *names: str, debug: str = "") -> bytes:
        """Those of arguments, 0, and those of the return value; b"" if a value is unknown.  `debug`: the values by
        debug information, which precede uftrace's own list."""
        names = (*dict.fromkeys([*names, *map(_short, names)]),)
        values = dict[str, int | None]()
        for name in names:
            values |= self._exact[0].get(name, {})
        for parts, given in self.patterns:
            if any(_is_in(name, parts) for name in names):
                values |= given
        values = values or self._values(debug.split(","))
        for name in names if not values else ():
            values |= self._exact[1].get(name, {})
        if None in values.values() or len(values) > _MOST_VALUES:
            return b""
        returned = [size or _EMPTY for key, size in values.items() if key == "retval"]
        arguments: list[tuple[str, int, int]] = []
        for key, size in values.items():
            kind, _, number = key.rpartition("arg")
            if key != "retval":  # ahead of the first one of its kind with a higher number, or last
                n = int(number or 0)
                at = next((i for i, one in enumerate(arguments) if one[0] == kind and one[1] > n), len(arguments))
                arguments.insert(at, (kind, n, size or _EMPTY))
        return bytes([size for _, _, size in arguments] + [0] + returned) if values else b""

    def _size(self, value: re.Match[str]) -> int | None:
        kind, bits = value[3] or "", int(value[4] or 0)
        if kind == "t":
            return bits if value[4] and bits <= _MOST else None
        if bits:
            return bits // 8
        return _SIZES.get(kind) or (8 if value[1] == "fparg" else self._word)
