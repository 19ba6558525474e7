"""Names for addresses.  This file has options and a constant, and imports nothing heavy."""

from fastprof.core.options import FilePath, FolderPath, Option, Words

DELETED = " (deleted)"  # the kernel's suffix of paths whose files are gone

SYMBOLS: Option[tuple[str, ...]] = Option(
    "symbols",
    FilePath("BINARY"),
    (),
    several=True,
    short="-s",
    group="symbols",
    help="read symbols from BINARY; repeatable",
    details="BINARY is a program, a shared object, a vmlinux, a kallsyms, a perf-PID.map, a jit-PID.dump, a directory "
    "of them, or a map written by `llvm-xray extract`.",
)
SYMBOLIZE = Option.switch(
    "symbolize", default=True, flag="--no-symbols", group="symbols", help="do not resolve addresses to symbols"
)
SYSROOT = Option(
    "sysroot", FolderPath("DIR"), "", group="symbols", help="search DIR first for programs and shared objects"
)
DEBUG_DIRS: Option[tuple[str, ...]] = Option(
    "debug_dirs",
    FolderPath("DIR"),
    ("/usr/lib/debug",),
    several=True,
    flag="--debug-dir",
    group="symbols",
    help="search DIR for debug files (default: /usr/lib/debug)",
    details="Finds separate debug files by build id or debug link.  Repeatable.",
    rare=True,
)
FORCE_SYMBOLS = Option.switch(
    "force_symbols",
    group="symbols",
    help="use BINARY even if its build id differs",
    details="By default, the build ids must match.",
    kept_unused=(True,),
    rare=True,
)
FINDING = (SYMBOLS, SYSROOT, DEBUG_DIRS, FORCE_SYMBOLS)  # the options for finding programs
DEMANGLE = Option(
    "demangle",
    Words("full", "templates", "short", "none", metavar="STYLE"),
    "full",
    group="symbols",
    help="demangling: full (default), templates, short or none",
    details="Demangles C++, Rust and D names: in full (default), without parameters (`templates`), also without "
    "template "
    "arguments (`short`, the default for viewers' formats: pprof, folded, speedscope ...), or not at all (`none`).",
)
