"""Sums of allocations by stack (csrc/core/heap_sums.h): their value types, and memory over time."""

from fastprof.core._typing import Any, fp_heap_sums
from fastprof.core.model import ValueType

# In the order of enum fp_heap_column; the last one is the default.
TYPES = [
    ValueType(f"{kind}_{what}", unit)
    for kind in ("alloc", "temporary", "leaked", "peak")
    for what, unit in (("objects", "count"), ("space", "bytes"))
]


def facts_of(heap: fp_heap_sums, page_size: int = 1) -> dict[str, Any]:
    """Memory over time, in milliseconds, as a series of snapshots of the heap."""
    points = [heap.points[i] for i in range(heap.n_points)]
    found: dict[str, Any] = {"peak_bytes": int(heap.peak), "peak_ms": int(heap.peak_time)}
    if points:
        found["time_unit"] = "ms"
        found["snapshots"] = [
            {
                "number": i,
                "time": int(point.time),
                "heap_bytes": int(point.heap),
                "extra_bytes": 0,
                "stacks_bytes": 0,
                "total_bytes": int(point.heap),
                "resident_bytes": int(point.resident) * page_size,
                "tree": "",
                "read": False,
            }
            for i, point in enumerate(points)
        ]
    return found
