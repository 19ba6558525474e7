"""Counts and warnings of this folder."""

from __future__ import annotations

from fastprof.core.reported import reported

REPORTED = reported(
    shared=("unreadable-lines",),
    repairs={
        "missing-totals": (
            "part without `{key}:`, which its writer ends it with",
            "parts without `{key}:`, which their writer ends them with",
        ),
        "wrong-totals": (
            "{key}: line that does not equal the sum of the costs",
            "{key}: lines that do not equal the sum of the costs",
        ),
        "byte-order-mark": ("byte order mark skipped", "byte order mark skipped"),
        "command-newlines": ("newline in a command", "newlines in a command"),
        "composed-names": ("name made of numbered names, put together", "names made of numbered names, put together"),
        "costs-outside-functions": (
            "block of cost lines outside any function",
            "blocks of cost lines outside any function",
        ),
        "extra-numbers": ("calls= or jump line with extra numbers", "calls= or jump lines with extra numbers"),
        "indented-lines": ("line that was indented", "lines that were indented"),
        "late-definitions": ("number used before it was defined", "numbers used before they were defined"),
        "long-composed-names": (
            "name made of numbered names, longer than 64 KiB, left as it is written",
            "names made of numbered names, longer than 64 KiB, left as they are written",
        ),
        "negative-lines": ("line before 0, taken for 0", "lines before 0, taken for 0"),
        "null-totals": (
            "totals: line of (null), which stands for no costs",
            "totals: lines of (null), which stands for no costs",
        ),
        "parts-without-events": (
            "part without `events:`, which keeps those of the part before",
            "parts without `events:`, which keep those of the part before",
        ),
        "position-ranges": ("position that was a range", "positions that were ranges"),
        "positions-order": (
            "positions: line in another order than instr bb line",
            "positions: lines in another order than instr bb line",
        ),
        "renamed-events": (
            "event name changed to be a single, distinct word",
            "event names changed to be single, distinct words",
        ),
        "rounded-counts": ("count with a fraction or exponent, rounded", "counts with a fraction or exponent, rounded"),
        "sums-without-colon": ("summary or totals without a colon", "summary or totals without a colon"),
        "unnamed-callees": ("calls= without cfn=", "calls= without cfn="),
        "unnamed-numbers": (
            "number without a name, which became its name",
            "numbers without a name, which became their name",
        ),
        "unsigned-negatives": (
            "count below 0 that was written as 2^64 more",
            "counts below 0 that were written as 2^64 more",
        ),
        "wrapped-summary": (
            "summary: line that wrapped around below 0, left out",
            "summary: lines that wrapped around below 0, left out",
        ),
    },
    losses={
        "lost-totals": (
            "part without `{key}:`, which its writer ends it with",
            "parts without `{key}:`, which their writer ends them with",
        ),
        "cut-off-parts": ("part that ends before it is complete", "parts that end before they are complete"),
        "wrapped-counts": (
            "count of more than 2^63, read as 2^64 less though no sum says so",
            "counts of more than 2^63, read as 2^64 less though no sum says so",
        ),
    },
    not_representable={
        "blanked-newlines": (
            "newline in the command, written as a blank",
            "newlines in the command, written as blanks",
        ),
        "caller-contexts": (
            "line that tells callers and recursion levels apart (rec=, frfn=)",
            "lines that tell callers and recursion levels apart (rec=, frfn=)",
        ),
        "comments": ("comment, which cg_merge refuses", "comments, which cg_merge refuses"),
        "escaped-names": (
            "name with a line end or NUL byte, which was escaped",
            "names with a line end or NUL byte, which was escaped",
        ),
        "excess-comments": ("comment beyond the first 1 MiB of them", "comments beyond the first 1 MiB of them"),
        "trailing-comments": ("comment behind the counts of a line", "comments behind the counts of a line"),
        "unknown-keys": ("line of an unknown key", "lines of unknown keys"),
    },
    warnings={
        "different-totals": "{file}: `{key}:` of part {part} is {stated}, but its costs add up to {sums}",
        "fractions": (
            "{file}: line {line}: a count with a fraction or exponent; such counts are taken as the nearest whole"
            " number"
        ),
        "incomplete-part": "{file}: {detail}",
        "kept-as-text": "{file}: line {line}: {key}: {problem}; kept as text",
        "maybe-cut-off": "{file}: part {part} does not end in `{key}:`, so the input may have been cut off",
        "overflowed-costs": "{file}: the sum of a part's costs passes 2^63 - 1",
        "overflowed-summary": "a sum passes 2^63 - 1; the `summary:` line is left out, without which cg_annotate stops",
        "overflowed-totals": "totals of a part pass 2^63 - 1; its `totals:` line is left out",
        "unknown-key": "{file}: line {line}: unknown key {key!r}; such lines are ignored",
        "unknown-version": "{file}: version {version!r} of the format is read as version 1",
    },
)
