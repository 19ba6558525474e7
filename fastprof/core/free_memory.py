"""How much memory is available without swapping."""

import os

from fastprof.core.errors import FastprofError
from fastprof.core.messages import Message


def available(root: str = "/") -> int | None:
    """Available bytes of the machine or of this process's control groups, whichever are fewer; None if unknown.

    The page cache counts as available: the system reclaims it on demand.
    """
    left = [_machine(root), *_groups(root)]
    return min((n for n in left if n is not None), default=None)


def check_left(inputs: str, used: int, needed: int) -> None:
    """Errors: FastprofError if less than `needed` bytes are available.  `used`: of the tables so far."""
    left = available()
    if left is not None and left < needed:
        raise FastprofError(
            Message(
                "{inputs}names and distinct stacks take {used} MiB and need more, but only {left} MiB of memory "
                "are left; select less of the input ({--part}, {--thread}, {--time-range})",
                inputs=inputs,
                used=used >> 20,
                left=left >> 20,
            )
        )


def _machine(root: str) -> int | None:
    for line in _lines(root, "proc/meminfo"):
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return None


def _groups(root: str) -> list[int]:
    """The available bytes of each control group of this process."""
    found = []
    for line in _lines(root, "proc/self/cgroup"):
        _, controllers, path = (*line.strip().split(":", 2), "", "")[:3]
        if controllers == "":
            base, limit, usage, files = "sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"
        elif "memory" in controllers.split(","):
            base, limit, usage = "sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes"
            files = "total_inactive_file"
        else:
            continue
        parts = [part for part in path.split("/") if part]
        for depth in range(len(parts), -1, -1):
            group = "/".join((base, *parts[:depth]))
            most, used = (_number(root, f"{group}/{name}") for name in (limit, usage))
            if most is not None and used is not None:
                stat = dict(pair for pair in map(str.split, _lines(root, f"{group}/memory.stat")) if len(pair) == 2)
                found.append(max(0, most - used + int(stat.get(files, 0))))
    return found


def _number(root: str, path: str) -> int | None:
    text = "".join(_lines(root, path)).strip()
    return int(text) if text.isdigit() else None  # "max": no limit


def _lines(root: str, path: str) -> list[str]:
    try:
        with open(os.path.join(root, path)) as file:
            return file.readlines()
    except OSError:
        return []
