"""The options that choose roots, hide functions and collapse frames, in the order in which they apply (rows/focus.py,
rows/transform.py)."""

from fastprof.core._typing import Any
from fastprof.core.options import FilterOption, Option, Pattern, Text


def names_of_path(text: str) -> list[bytes]:
    """The names of a path, outermost first: `main;a\\;b` has main and a;b."""
    found, is_literal = [""], False
    for letter in text:
        if is_literal or letter not in "\\;":
            found[-1] += letter
            is_literal = False
        elif letter == ";":
            found.append("")
        else:
            is_literal = True
    return [name.encode("utf-8", "surrogateescape") for name in found]


class NamePath(Text):
    """Names of functions, the outermost first."""

    def check(self, value: Any) -> Any:
        if not all(names_of_path(value := super().check(value))):
            raise ValueError(f"{value!r:.80} has an empty name; a path is as 'main;a;f'")
        return value


ROOT_AT: Option[tuple[str, ...]] = FilterOption(
    "root_at",
    Pattern(),
    (),
    several=True,
    help="make matching functions the roots, without callers",
    details="Drops samples and calls outside of such functions.  Repeatable: the second applies below the first.  Not "
    "for graphs.",
    rare=True,
)
SUBTREE: Option[str | None] = FilterOption(
    "subtree",
    NamePath("PATH"),
    None,
    help="make the end of a path the root, as 'main;a;f'",
    details="PATH has the names of its callers and its own, from a root on, separated by semicolons; in a name write "
    "\\; and \\\\.  Not for graphs.",
    rare=True,
)
MERGE_LINES = FilterOption.switch(
    "merge_lines",
    help="merge functions that differ in their first line only",
    details="With the same name, file and object: they become the first one that is read.",
    rare=True,
)

HIDE: Option[tuple[str, ...]] = FilterOption(
    "hide",
    Pattern(),
    (),
    several=True,
    help="hide functions: their cost goes to their callers",
    details="Without a caller the cost goes to [hidden].  A graph does not record which caller's call led to which "
    "cost: that of a function with several callers is divided in proportion to their arcs, with a warning.  "
    "Repeatable.",
    rare=True,
)
HIDE_OBJECT: Option[tuple[str, ...]] = FilterOption(
    "hide_object",
    Pattern(),
    (),
    several=True,
    help="hide the functions of programs, libraries, categories",
    details="Like --hide, for the name of the program or shared object, or the category of a trace.  Repeatable.",
    rare=True,
)
COLLAPSE_OBJECT: Option[tuple[str, ...]] = FilterOption(
    "collapse_object",
    Pattern(),
    (),
    several=True,
    help="merge adjacent frames of a matching object into one",
    details="The frame has the base name of the object, such as libc.so.6.  Each matching object gets its own.  "
    "Repeatable.",
    rare=True,
)
COLLAPSE_RECURSION = FilterOption.switch(
    "collapse_recursion",
    help="merge adjacent frames of a function into one",
    details="For functions that call themselves directly.  Recursion through other functions stays.",
    rare=True,
)
ROOTS = (ROOT_AT, SUBTREE)
TRANSFORMS = (MERGE_LINES, HIDE, HIDE_OBJECT, COLLAPSE_OBJECT, COLLAPSE_RECURSION)
