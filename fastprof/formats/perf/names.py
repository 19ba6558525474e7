"""Names of events that a recording does not name, as perf composes them."""

from fastprof.formats.perf.container import Attr

HARDWARE, SOFTWARE, TRACEPOINT, CACHE, RAW, BREAKPOINT = range(6)
CONTEXT_SWITCHES, DUMMY, BPF_OUTPUT = 3, 9, 10  # software events; DUMMY counts nothing
_HARDWARE = (
    "cycles",
    "instructions",
    "cache-references",
    "cache-misses",
    "branches",
    "branch-misses",
    "bus-cycles",
    "stalled-cycles-frontend",
    "stalled-cycles-backend",
    "ref-cycles",
)
_SOFTWARE = (
    "cpu-clock",
    "task-clock",
    "page-faults",
    "context-switches",
    "cpu-migrations",
    "minor-faults",
    "major-faults",
    "alignment-faults",
    "emulation-faults",
    "dummy",
    "bpf-output",
    "cgroup-switches",
)
_CACHES = ("L1-dcache", "L1-icache", "LLC", "dTLB", "iTLB", "branch", "node")
_OPERATIONS = (("load", "loads"), ("store", "stores"), ("prefetch", "prefetches"))


def name_of(attr: Attr) -> str:
    """`cpu-clock:u`, `L1-dcache-load-misses`, `raw 0x1c2`."""
    modifiers = _modifiers(attr.flags)
    return _base(attr) + (":" + modifiers if modifiers else "")


def _base(attr: Attr) -> str:
    config = attr.config
    if attr.type == HARDWARE:
        return _HARDWARE[config] if config < len(_HARDWARE) else "unknown-hardware"
    if attr.type == SOFTWARE:
        return _SOFTWARE[config] if config < len(_SOFTWARE) else "unknown-software"
    if attr.type == TRACEPOINT:
        return f"tracepoint:{config}"
    if attr.type == CACHE:
        return _cache(config & 255, config >> 8 & 255, config >> 16)
    if attr.type == RAW:
        return f"raw {config:#x}"
    if attr.type == BREAKPOINT:
        return f"mem:{attr.config1:#x}"
    return f"unknown attr type: {attr.type}"


def _cache(cache: int, operation: int, result: int) -> str:
    if cache >= len(_CACHES) or operation >= len(_OPERATIONS) or result > 1:
        return "unknown-ext-hardware-cache"
    one, several = _OPERATIONS[operation]
    return f"{_CACHES[cache]}-{one}-misses" if result else f"{_CACHES[cache]}-{several}"


def _modifiers(flags: int) -> str:
    """The letters of the counted modes (`u`, `k` ...); perf omits the default ones."""
    found, excludes = "", False
    if flags >> 4 & 7:
        found += "".join(letter for letter, bit in (("k", 5), ("u", 4), ("h", 6)) if not flags >> bit & 1)
        excludes = True
    if flags >> 15 & 3:
        found += "p" * (flags >> 15 & 3)
        excludes = True
    host, guest = flags >> 19 & 1, flags >> 20 & 1
    if host or guest == excludes:
        found += ("" if host else "H") + ("" if guest else "G")
    return found
