"""Processed profiles of the Firefox Profiler: JSON.  See docs/formats/firefox.md."""

from __future__ import annotations

from fastprof.core.engine import Budget, Format, Holds
from fastprof.core.options import BUDGET, SPLIT

FORMATS = (
    Format(
        name="firefox",
        view="stacks",
        also="timeline",
        title="Firefox Profiler (processed profile, JSON), for profiler.firefox.com",
        suffixes=(".profile.json", ".firefox.json"),
        writer="write:FirefoxWriter",
        holds=Holds(
            nested=True,
            labels=False,
            threads=True,
            times=False,
            short_names=True,
            lacks=frozenset(
                {
                    "default-type",
                    "system-names",
                    "mappings",
                    "columns",
                    "cpus",
                    "idle-threads",
                    "long-names",
                    "inherited-events",
                    "parts",
                }
            ),
            header=frozenset({"command", "comments", "descriptions", "time_ns"}),
        ),
        budget=Budget(100 << 20, call=35, event=60, stack=40, sample=24),
        writes=(BUDGET, SPLIT),
    ),
)
