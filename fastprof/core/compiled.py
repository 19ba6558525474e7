"""Rows of profiles that compilers read: counts at stacks of functions that are inlined in each other.

The value types: executions of a place, calls of a target (the leaf), entries of a function.
"""

NAMES = ("samples", "calls", "entries")
