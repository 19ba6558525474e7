"""Rows of branch stacks: their value types, and the option that asks for them (csrc/core/branches.h)."""

from __future__ import annotations

from fastprof.core._typing import TYPE_CHECKING
from fastprof.core.errors import FastprofError
from fastprof.core.messages import Message
from fastprof.core.options import MAX_MEMORY, THREADS, TIME_RANGE, Options, ValueOption

if TYPE_CHECKING:
    from fastprof.core.model import ValueType

BRANCHES = ValueOption.switch(
    "branches",
    rare=True,
    help="read branch stacks (perf record -b), not samples",
    details="Rows are branches, from source to target, with the value types `taken` and `mispredicted`, and "
    "straight runs of code, from first to last instruction, with the value type `straight`.",
)
NAMES = ("taken", "mispredicted", "straight")


def value_types() -> list[ValueType]:
    from fastprof.core.model import ValueType

    return [ValueType(name, "count") for name in NAMES]


def none(file: str, options: Options) -> FastprofError:
    """The error if a file has no branch stacks, which an option or a target asks for."""
    records = "there are no branch stacks; `perf record -b` records them"
    if options[BRANCHES]:
        return FastprofError(Message(f"{{file}}: {{--branches}}: {records}", file=file))
    prints = f"{records}, and `perf script -F ip,brstack` prints them"
    return FastprofError(f"{file}: a profile for compilers needs addresses of instructions or branches, and {prints}")


def most(options: Options) -> int:
    """The number of distinct branches in memory."""
    from fastprof.core._c import lib

    limit: int = options[MAX_MEMORY]
    return min(limit, 1 << 30) // int(lib.FP_BRANCHES_ROW)


def apart(options: Options) -> int:
    """Which branches must not be added up (enum fp_perf_apart): those of samples that filters distinguish."""
    from fastprof.core._c import lib

    if TIME_RANGE in options:
        return int(lib.FP_PERF_SAMPLES_APART)
    is_filtered = THREADS in options or "label" in options.given
    return int(lib.FP_PERF_THREADS_APART) if options[BRANCHES] or is_filtered else 0
