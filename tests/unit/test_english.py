"""Comments, docstrings, messages and docs avoid constructions that read as translated."""

from __future__ import annotations

import re

import pytest

from tests.support.paths import REPO

# Each with its replacement.
CONSTRUCTIONS = {
    r"\b[Ww]hoever\b": "name the caller, the reader, the thread",
    r"\bis no (error|verb|format|number|row)\b": "is not a ...",
    r"\bin there[.,:;]": "name the place",
    r"\bnothing is said\b": "no value, no report",
    r"\b(is|are) (said|told) of\b": "the message about ...",
    r"\bmakes none of\b": "write what it makes",
    r"\b(of )?an only (one|input|row|part)\b": "a single ...",
    r"\bcalled as (its|their)\b": "named after",
    r"\bwithout a word\b": "silently",
    r"\bas so many\b": "that many",
    r"\b(one|those) who\b": "who is for people",
    r"\bso many are done\b": "n are done",
    r"\bstands? behind\b": "follows",
    r"\bwhat is no\b": "other values",
    r"\bis told of\b": "gets, receives, collects",
    r"\btells? (why|whether|which|what)\b": "states, is set, decides",
    r"\b(told|tells?) \w* ?apart\b": "distinguish",
    r"\bstands? (in|at|before|behind|beside)\b": "is in, follows, comes before",
    r"\bsays? (whether|which|how|what)\b": "states, records, decides",
    r"\b(most|about|into|than|in|have) so many\b": "this many, n",
    r"\b(is|are) asked for\b": "is requested",
    r"\bbeside\b(?!-)": "next to, in addition to",
    r"\bbehind (the|it|its|a|an) (?!URL)": "after",
    r"\bin (a )?threads? of (its|their) own\b": "in another thread",
    r"\b_?(asked|told|suits|foreseen|tally|worded|looked_at|undecoded|hasty)(_\w+)?\b": "requested, fits, ...",
}
EXCEPTIONS: dict[str, str] = {}  # a line, stripped: the reason to keep it.  Ten at most.


def lines() -> list[tuple[str, str]]:
    paths = [
        *(path for suffix in ("py", "pyx", "pxd") for path in REPO.glob(f"fastprof/**/*.{suffix}")),
        *(path for suffix in ("c", "h") for path in REPO.glob(f"csrc/**/*.{suffix}")),
        *REPO.glob("docs/**/*.md"),
        REPO / "README.md",
        REPO / "CONTRIBUTING.md",
        REPO / "bench" / "RESULTS.md",
    ]
    return [
        (f"{path.relative_to(REPO)}:{number}", line.strip())
        for path in sorted(paths)
        for number, line in enumerate(path.read_text().splitlines(), 1)
    ]


def test_constructions() -> None:
    known = lines()
    text = "\n".join(line for _, line in known)
    found = [
        f"{place}: {line}\n    rather: {rather}"
        for construction, rather in CONSTRUCTIONS.items()
        if re.search(construction, text, re.MULTILINE)  # in half the time of all lines one by one
        for place, line in known
        if re.search(construction, line) and line not in EXCEPTIONS
    ]
    assert not found, "\n".join(found)


def test_few_exceptions() -> None:
    assert len(EXCEPTIONS) <= 10
    assert EXCEPTIONS.keys() <= {line for _, line in lines()}


@pytest.mark.parametrize(
    "line",
    [
        "Whoever reads it waits.",
        "So it is no error.",
        "A file is called by its path in there.",
        "the last one if nothing is said",
        "outputs are called as their inputs",
        "with an only input",
        "it is skipped without a word",
        "`reason` tells why there is none",
        "threads are told apart by number",
        "the count stands in section 0",
        "`seekable` says whether it may go back",
        "at most so many bytes",
        "valid until the next one is asked for",
        "it is compressed in a thread of its own",
        "uint32_t asked_column;",
    ],
)
def test_finds_them(line: str) -> None:
    assert any(re.search(construction, line) for construction in CONSTRUCTIONS)
