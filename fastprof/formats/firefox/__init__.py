"""Profiles of the Firefox Profiler: JSON.  See docs/formats/firefox.md."""

from fastprof.core.engine import MAYBE, NO, SURE, Budget, Capabilities, Format
from fastprof.core.options import BUDGET, MAX_MEMORY, SPLIT, Option

MARKERS = Option.switch(
    "markers",
    format="firefox",
    help="read markers and counters as a timeline instead of samples",
    details="Timeline formats get them anyway.",
)


def sniff(head: bytes) -> int:
    """Recognized by the version of a processed profile, fields of `meta` in raw ones, or the tables of threads."""
    from re import search

    text = head.lstrip()
    if text[:1] != b"{" or search(rb'"(?:traceEvents|\$schema)"\s*:', text):
        return NO
    if search(rb'"preprocessedProfileVersion"\s*:\s*\d', text):
        return SURE
    if search(rb'"meta"\s*:\s*\{', text) and search(rb'"(?:processType|stackwalk)"\s*:', text):
        return MAYBE
    tables = search(rb'"(?:stackTable|frameTable|funcTable)"\s*:\s*\{|"stringArray"\s*:\s*\[', text)
    threads = search(rb'"(?:threads|shared)"\s*:\s*[\[{]', text)
    libraries = search(rb'\{\s*"libs"\s*:\s*\[', text) and search(rb'"breakpadId"\s*:', text)
    processed = search(rb'\{\s*"threads"\s*:\s*\[\s*\{', text) and search(rb'"processName"\s*:', text)
    return MAYBE if (tables and threads) or libraries or processed else NO


FORMATS = (
    Format(
        name="firefox",
        view="stacks",
        second_view="timeline",
        title="profile of Firefox, samply or profiler.firefox.com (JSON)",
        suffixes=(".profile.json", ".firefox.json"),
        sniff=sniff,
        reader="read:FirefoxReader",
        writer="write:FirefoxWriter",
        holds=Capabilities(
            nested=True,
            labels=False,
            threads=True,
            in_time=True,
            keeps_stacks=False,
            short_names=True,
            lacks=frozenset(
                {
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
        reads=(MARKERS, MAX_MEMORY),
        writes=(BUDGET, SPLIT),
    ),
)
