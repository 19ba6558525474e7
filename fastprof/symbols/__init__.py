"""Names for addresses.  This file is light: it declares the options, symbolizer.py does the work."""

from __future__ import annotations

from fastprof.core.options import Option, Switch, Text, Words

SYMBOLS: Option[tuple[str, ...]] = Option(
    "symbols",
    Text("BINARY"),
    (),
    several=True,
    short="-s",
    group="symbols",
    help="program or shared object to take names from, a directory of them, or a map made by `llvm-xray extract`; "
    "may be repeated",
)
SYMBOLIZE = Option("symbolize", Switch(), True, flag="--no-symbols", group="symbols", help="do not look up addresses")
SYSROOT = Option("sysroot", Text("DIR"), "", group="symbols", help="look for mapped objects below DIR")
DEBUG_DIRS: Option[tuple[str, ...]] = Option(
    "debug_dirs",
    Text("DIR"),
    ("/usr/lib/debug",),
    several=True,
    flag="--debug-dir",
    group="symbols",
    help="separate debug files (default: /usr/lib/debug); may be repeated",
)
FORCE_SYMBOLS = Option(
    "force_symbols",
    Switch(),
    False,
    group="symbols",
    help="use a named binary although its build id is another",
)
DEMANGLE = Option(
    "demangle",
    Words("full", "templates", "none"),
    "full",
    group="symbols",
    help="how C++, Rust and D names are shown: in full (default), without parameters, or as the linker has them",
)
