"""Long names of functions without their arguments or template arguments."""

from collections.abc import Callable

from fastprof.core import lazy_re as re

_BRACKET = r"operator(?:\(\)|[<>=-]+)|->|=>|[()<>]"  # compiled on first use, to keep the start fast


def elided(text: str, bracket: str, longer_than: int = 3) -> str:
    """`text` with "..." in place of the contents of outermost brackets of this kind that follow a name.  This excludes
    `operator<` and Go's `main.(*T).f`.  Unmatched brackets change nothing.

    elided("void sort<int*>(int*, int*)", "(")     "void sort<int*>(...)"
    """
    if not _may_follow_a_name(bracket, text):
        return text
    pieces, at, start, depth, after_operator = [], 0, 0, 0, -1
    opened: list[tuple[str, bool]] = []
    for found in re.finditer(_BRACKET, text):
        sign = found.group()
        if sign in "(<":
            last = text[max(found.start() - 1, 0)]
            follows = found.start() == after_operator or last in "_>)" or last.isalnum()
            of_a_name = sign == bracket and not depth and found.start() > 0 and follows
            opened.append((sign, of_a_name))
            if of_a_name:
                start, depth = found.end(), len(opened)
        elif sign in ")>":
            if not opened or opened[-1][0] + sign not in ("()", "<>"):
                return text
            if opened.pop()[1]:
                if found.start() - start > longer_than:
                    pieces += [text[at:start], "..."]
                    at = found.start()
                depth = 0
        elif sign.startswith("o"):
            after_operator = found.end()
    return text if opened else "".join([*pieces, text[at:]])


def _may_follow_a_name(bracket: str, text: str) -> bool:
    """Whether one of these brackets may open arguments: most names have none, and then `re` is not imported."""
    if "operator" in text:
        return True
    at = text.find(bracket, 1)
    while at > 0 and not (text[at - 1] in "_>)" or text[at - 1].isalnum()):
        at = text.find(bracket, at + 1)
    return at > 0


def shortened(text: str, most: int, length: Callable[[str], int] = len) -> str:
    """`text` without its arguments, and then without template arguments, as long as it is longer than `most`."""
    for bracket in "(<":
        if length(text) <= most:
            break
        text = elided(text, bracket)
    return text
