"""Counts and warnings of this folder."""

from fastprof.core.reported import reported

REPORTED = reported(
    shared=("unreadable-lines",),
    repairs={
        "missing-totals": (
            "part without `{key}:` at its end",
            "parts without `{key}:` at their end",
        ),
        "wrong-totals": (
            "{key}: line that differs from the sum of the costs",
            "{key}: lines that differ from the sum of the costs",
        ),
        "command-newlines": ("newline in a command", "newlines in a command"),
        "composed-names": ("name composed of numbered names", "names composed of numbered names"),
        "costs-outside-functions": (
            "block of cost lines outside any function",
            "blocks of cost lines outside any function",
        ),
        "extra-numbers": ("calls= or jump line with extra numbers", "calls= or jump lines with extra numbers"),
        "indented-lines": ("indented line", "indented lines"),
        "late-definitions": ("name number used before its definition", "name numbers used before their definition"),
        "long-composed-names": (
            "composed name longer than 64 KiB, kept as written",
            "composed names longer than 64 KiB, kept as written",
        ),
        "negative-lines": ("line number below 0, read as 0", "line numbers below 0, read as 0"),
        "null-totals": (
            "totals: line of (null), read as no costs",
            "totals: lines of (null), read as no costs",
        ),
        "parts-without-events": (
            "part without `events:`, read with those of the previous part",
            "parts without `events:`, read with those of the previous part",
        ),
        "position-ranges": ("position that was a range", "positions that were ranges"),
        "positions-order": (
            "positions: line not in the order instr bb line",
            "positions: lines not in the order instr bb line",
        ),
        "renamed-events": (
            "event renamed to a single, distinct word",
            "events renamed to single, distinct words",
        ),
        "rounded-counts": ("count with a fraction or exponent, rounded", "counts with a fraction or exponent, rounded"),
        "sums-without-colon": ("summary or totals without a colon", "summary or totals without a colon"),
        "unknown-positions": ("position written as ?, read as 0", "positions written as ?, read as 0"),
        "unnamed-callees": ("calls= line without cfn=", "calls= lines without cfn="),
        "unnamed-numbers": (
            "number without a name, used as its name",
            "numbers without a name, used as their names",
        ),
        "unsigned-negatives": (
            "negative count written as 2^64 more",
            "negative counts written as 2^64 more",
        ),
        "wrapped-summary": (
            "summary: line that wrapped around below 0, dropped",
            "summary: lines that wrapped around below 0, dropped",
        ),
    },
    losses={
        "lost-totals": (
            "part without `{key}:` at its end",
            "parts without `{key}:` at their end",
        ),
        "cut-off-parts": ("incomplete part", "incomplete parts"),
        "wrapped-counts": (
            "count above 2^63, read as 2^64 less without a sum that confirms it",
            "counts above 2^63, read as 2^64 less without a sum that confirms it",
        ),
    },
    not_representable={
        "blanked-newlines": (
            "newline in the command, written as a space",
            "newlines in the command, written as spaces",
        ),
        "caller-contexts": (
            "line that separates callers or recursion levels (rec=, frfn=)",
            "lines that separate callers or recursion levels (rec=, frfn=)",
        ),
        "comments": ("comment, which cg_merge refuses", "comments, which cg_merge refuses"),
        "escaped-comments": (
            "comment with a line end or NUL byte, escaped",
            "comments with a line end or NUL byte, escaped",
        ),
        "escaped-names": (
            "name with a line end or NUL byte, escaped",
            "names with a line end or NUL byte, escaped",
        ),
        "excess-comments": ("comment beyond the first 1 MiB of them", "comments beyond the first 1 MiB of them"),
        "trailing-comments": ("comment after the counts of a line", "comments after the counts of a line"),
        "unknown-keys": ("line with an unknown key", "lines with unknown keys"),
    },
    warnings={
        "different-totals": "{file}: `{key}:` of part {part} is {stated}, but its costs add up to {sums}",
        "fractions": (
            "{file}: line {line}: a count with a fraction or exponent; such counts are rounded to the nearest whole"
            " number"
        ),
        "incomplete-part": "{file}: {detail}",
        "kept-as-text": "{file}: line {line}: {key}: {problem}; kept as text",
        "maybe-cut-off": "{file}: part {part} does not end in `{key}:`: the input may be truncated",
        "overflowed-costs": "{file}: the sum of a part's costs exceeds 2^63 - 1",
        "overflowed-summary": "a sum exceeds 2^63 - 1; the `summary:` line is left out, which cg_annotate requires",
        "overflowed-totals": "totals of a part exceed 2^63 - 1; its `totals:` line is left out",
        "unknown-key": "{file}: line {line}: unknown key {key!r}; such lines are ignored",
        "unknown-version": "{file}: format version {version!r} is read as version 1",
    },
)
