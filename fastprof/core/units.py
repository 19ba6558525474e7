"""Units by their names in value types: the factor to the smallest one of their kind."""

TIMES = {
    "nanoseconds": 1,
    "ns": 1,
    "microseconds": 10**3,
    "us": 10**3,
    "milliseconds": 10**6,
    "ms": 10**6,
    "seconds": 10**9,
    "s": 10**9,
}
SIZES = {"bytes": 1, "byte": 1, "kilobytes": 1 << 10, "megabytes": 1 << 20}
