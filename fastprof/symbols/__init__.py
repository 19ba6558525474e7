"""Names for addresses.  This file only declares the options and imports nothing heavy; symbolizer.py does the work."""

from __future__ import annotations

from fastprof.core.options import FilePath, FolderPath, Option, Switch, Words

SYMBOLS: Option[tuple[str, ...]] = Option(
    "symbols",
    FilePath("BINARY"),
    (),
    several=True,
    short="-s",
    group="symbols",
    help="read symbols from BINARY; repeatable",
    details="BINARY is a program, a shared object, a vmlinux, a kallsyms, a perf-PID.map, a jit-PID.dump, a directory "
    "of them, or a map made by `llvm-xray extract`.",
)
SYMBOLIZE = Option("symbolize", Switch(), True, flag="--no-symbols", group="symbols", help="do not look up addresses")
SYSROOT = Option(
    "sysroot", FolderPath("DIR"), "", group="symbols", help="look for programs and shared objects below DIR first"
)
DEBUG_DIRS: Option[tuple[str, ...]] = Option(
    "debug_dirs",
    FolderPath("DIR"),
    ("/usr/lib/debug",),
    several=True,
    flag="--debug-dir",
    group="symbols",
    help="look for debug files in DIR (default: /usr/lib/debug)",
    details="Separate debug files, by build id or debug link.  Repeatable.",
)
FORCE_SYMBOLS = Option(
    "force_symbols",
    Switch(),
    False,
    group="symbols",
    help="accept a BINARY of another build",
    details="By default its build id must be the profile's.",
    kept_unused=(True,),
)
DEMANGLE = Option(
    "demangle",
    Words("full", "templates", "short", "none", metavar="STYLE"),
    "full",
    group="symbols",
    help="write C++ names as full, templates, short or none",
    details="Also Rust and D names: in full (default), without parameters (`templates`), also without template "
    "arguments (`short`, the default for targets made for viewing: pprof, folded, speedscope ...), or as the linker "
    "has them (`none`).",
)
