"""The options that hide functions and collapse frames, in the order in which they apply (rows/transform.py)."""

from __future__ import annotations

from fastprof.core.options import Option, Pattern, Switch

HIDE: Option[tuple[str, ...]] = Option(
    "hide",
    Pattern(),
    (),
    several=True,
    group="filters",
    help="hide functions: their cost goes to their callers",
    details="Without a caller the cost goes to [hidden].  A graph does not record which caller's call led to which "
    "cost: that of a function with several callers is divided in proportion to their arcs, with a warning.  "
    "Repeatable.",
    rare=True,
)
HIDE_OBJECT: Option[tuple[str, ...]] = Option(
    "hide_object",
    Pattern(),
    (),
    several=True,
    group="filters",
    help="hide the functions of programs, libraries, categories",
    details="Like --hide, for the name of the program or shared object, or the category of a trace.  Repeatable.",
    rare=True,
)
COLLAPSE_OBJECT: Option[tuple[str, ...]] = Option(
    "collapse_object",
    Pattern(),
    (),
    several=True,
    group="filters",
    help="merge adjacent frames of a matching object into one",
    details="The frame has the base name of the object, such as libc.so.6.  Each matching object gets its own.  "
    "Repeatable.",
    rare=True,
)
COLLAPSE_RECURSION = Option(
    "collapse_recursion",
    Switch(),
    False,
    group="filters",
    help="merge adjacent frames of a function into one",
    details="For functions that call themselves directly.  Recursion through other functions stays.",
    rare=True,
)
TRANSFORMS = (HIDE, HIDE_OBJECT, COLLAPSE_OBJECT, COLLAPSE_RECURSION)
