"""Readable names from linker symbols.

C++ (Itanium) goes through LLVM's own demangler (llvm_demangler.py), so names are spelled as llvm-symbolizer
spells them; Rust (v0 and legacy) and D have small parsers here.  Each distinct name is demangled once.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from fastprof.core import lazy_re as re
from fastprof.core._typing import Literal
from fastprof.core.messages import counted
from fastprof.symbols import llvm_demangler

Demangle = Literal["full", "templates", "short", "none"]

_RUST_HASH = re.compile(r"17h[0-9a-f]{16}E(?=$|[.@])")
_RUST_HASH_SHOWN = re.compile(r"::h[0-9a-f]{16}(?=$|[ .@])")
_RUST_ESCAPE = re.compile(r"\$(SP|BP|RF|LT|GT|LP|RP|C|u[0-9a-f]{1,6})\$")
_RUST_ESCAPES = {"SP": "@", "BP": "*", "RF": "&", "LT": "<", "GT": ">", "LP": "(", "RP": ")", "C": ","}
_QUALIFIERS = re.compile(
    r"(?<! const)(?<! volatile)(?<! noexcept)(?<!&)"  # only from the first qualifier on: else quadratic
    r"(?: const| volatile| noexcept|\s?&)+$"
)
_CLONE = re.compile(r" (?:\([.\w]+\)|\[[^\[\]]*\])")
_QUALIFIER = re.compile(r"(?<=\)) (?:const|volatile|noexcept|&&?)(?=::| |$)")  # of a function around this one
_DIGITS = re.compile(r"\d+")
_BRACKET = re.compile(
    r"""(?P<kept>\(anonymous[ ]namespace\)|[ ]\([.\w]+\)$|[ ]\[[^\[\]]*+\]|->
        |(?<![\w$])operator(?:\(\)|<<=?(?=<|\((?!anon)|$)|<=>|<=?|>>=?|>=?|->\*?))  # operator<<char> is < of char
    |(?P<open>[<(])|(?P<close>>|\)(?:[ ]const|[ ]volatile|[ ]noexcept|[ ]?&)*)""",
    re.VERBOSE,
)
_OPERATOR = re.compile(r"(?:(?<=^)|(?<=[:\s]))operator(?!\w)")


def demangle(name: str, mode: Demangle = "full", refused: set[str] | None = None) -> str:
    """The readable form of one linker symbol.

    Returns a name that is not mangled unchanged, and so a name that would take too much time or memory to demangle,
    which is added to `refused`.

    `full`: everything, parameter lists and template arguments included, as llvm-symbolizer prints it.
    `templates`: as pprof's `demangle=templates`: scope, name and template arguments; the parameter list, the
    qualifiers after it and the return type are dropped (overloads become one name). The parameters of an
    enclosing function (`main(int)::'lambda'(...)`) stay.
    `short`: as pprof by default: of C++ names all of these are dropped, and so are the template arguments
    (`main::'lambda'`, `std::vector::push_back`).  `none`: the symbol itself.
    Loses: the hash of a legacy Rust symbol (`::h0123456789abcdef`) in all but the last.
    """
    if mode == "none" or not name.startswith(("_", "?")):
        return name
    mangled, at, suffix = _without_version(name)
    text = _demangle(mangled, mode)
    if text is None and refused is not None:
        refused.add(name)
    return name if text is None else text + at + suffix


def demangle_ahead(names: Iterable[str], mode: Demangle) -> None:
    """Prepare `demangle` of many names: those that another process demangles are sent to it together."""
    if mode != "none":
        llvm_demangler.ask_ahead(_without_version(name)[0] for name in names if not name.startswith("_D"))


def _without_version(name: str) -> tuple[str, str, str]:
    """A linker symbol without its version, or `plt`, and that."""
    return name.partition("@") if name.startswith("_") else (name, "", "")


@lru_cache(maxsize=1 << 17)
def _demangle(name: str, mode: Demangle) -> str | None:
    """As `demangle`; None if it would take too much time or memory."""
    if name.startswith("_D"):
        return _demangle_d(name)
    try:
        text = llvm_demangler.demangle(name)
    except llvm_demangler.TooMuchError:
        return None
    if text is None:
        return name
    if name.startswith("_ZN") and _RUST_HASH.search(name):
        return _clean_legacy_rust(text)
    if mode == "full" or not name.startswith("_Z"):
        return text
    text = _drop_parameters(text)
    return _shorten(text) if mode == "short" else text


def left_mangled(refused: set[str]) -> str:
    """The warning about names that `demangle` refused."""
    return counted(
        len(refused),
        "name is too complex to demangle, kept as it is",
        "names are too complex to demangle, kept as they are",
    )


def _clean_legacy_rust(text: str) -> str:
    """Rust before the v0 scheme borrowed C++ mangling and escaped what C++ names cannot hold."""

    def unescape(match: re.Match[str]) -> str:
        code = match.group(1)
        if code in _RUST_ESCAPES:
            return _RUST_ESCAPES[code]
        point = int(code[1:], 16)
        return chr(point) if point < 0x110000 and not 0xD800 <= point < 0xE000 else match.group()

    text = _RUST_HASH_SHOWN.sub("", text)
    text = _RUST_ESCAPE.sub(unescape, text).replace("..", "::")
    return re.sub(r"(^|::)_(?=[<{])", r"\1", text)


def _demangle_d(name: str) -> str:
    """The qualified name of a D symbol: `_D3std5stdio7writelnFZv` is std.stdio.writeln; types are dropped.

    Template instances and back references are not decoded: such a symbol stays mangled.
    """
    if name == "_Dmain":
        return "D main"
    parts: list[str] = []
    at = 2
    while match := _DIGITS.match(name, at):
        start, size = match.end(), int(match.group()[:9])
        part = name[start : start + size]
        if len(part) < size or size == 0 or part.startswith("__T"):
            return name
        parts.append(part)
        at = start + size
    return ".".join(parts) if parts and (at == len(name) or name[at] not in "QS_") else name


def _drop_parameters(text: str) -> str:
    """Cut the last parameter list, the text after it, and the return type (only templates show one)."""
    end = len(text)
    # clones are matched one by one from the end: a pattern for all of them would try every beginning
    while text.endswith((")", "]"), 0, end):
        at = text.rfind(" (" if text[end - 1] == ")" else " [", 0, end)
        if at < 0 or not _CLONE.fullmatch(text, at, end):
            break
        end = at
    clone = text[end:]
    tail = _QUALIFIERS.search(text, 0, end)
    end = tail.start() if tail else end
    if not text.endswith(")", 0, end):
        return text
    depth, at = 1, end - 1
    while depth and at > 0:
        at -= 1
        depth += {")": 1, "(": -1}.get(text[at], 0)
    if depth or at == 0 or text.endswith("operator", 0, at) or text[at:end] == "(anonymous namespace)":
        return text
    return _drop_return_type(text[:at]) + clone


def _drop_return_type(text: str) -> str:
    operators = list(_OPERATOR.finditer(text))
    stop = operators[-1].start() if operators else len(text)
    depth, cut = 0, 0
    for at in range(stop):
        char = text[at]
        if char in "<([{":
            depth += 1
        elif char in ">)]}":
            depth -= 1
        elif char == " " and depth == 0 and not _QUALIFIER.match(text, at):
            cut = at + 1
    return text[cut:] if depth == 0 else text


def _shorten(text: str) -> str:
    """Drop text in `<>`, and in `()` except `(anonymous namespace)`, clones and operators; a name that would become
    empty is unchanged."""
    kept: list[str] = []
    depth = at = 0
    for match in _BRACKET.finditer(text):
        if depth == 0:
            kept.append(text[at : match.start()])
        if match.lastgroup == "kept":
            if depth == 0:
                kept.append(match["kept"])
        elif match.lastgroup == "open":
            depth += 1
        elif depth:
            depth -= 1
        at = match.end()
    short = "".join(kept) + text[at:] if depth == 0 else text
    return short if short.strip(" :&*") else text
