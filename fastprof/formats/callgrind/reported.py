"""Counts and warnings of this folder."""

from fastprof.core.reported import reported

REPORTED = reported(
    shared=("unreadable-lines",),
    repairs={
        "missing-totals": "part(s) without `{key}:` at (its|their) end",
        "wrong-totals": "{key}: line(s) that (differs|differ) from the sum of the costs",
        "command-newlines": "newline(s) in a command",
        "composed-names": "name(s) composed of numbered names",
        "costs-outside-functions": "block(s) of cost lines outside any function",
        "extra-numbers": "calls= or jump line(s) with extra numbers",
        "indented-lines": "indented line(s)",
        "late-definitions": "name number(s) used before (its|their) definition",
        "long-composed-names": "composed name(s) longer than 64 KiB, kept as written",
        "negative-lines": "line number(s) below 0, read as 0",
        "null-totals": "totals: line(s) of (null), read as no costs",
        "parts-without-events": "part(s) without `events:`, read with those of the previous part",
        "position-ranges": "position(s) that (was a range|were ranges)",
        "positions-order": "positions: line(s) not in the order instr bb line",
        "renamed-events": (
            "event renamed to a single, distinct word",
            "events renamed to single, distinct words",
        ),
        "rounded-counts": "count(s) with a fraction or exponent, rounded",
        "sums-without-colon": "summary or totals without a colon",
        "unknown-positions": "position(s) written as ?, read as 0",
        "unnamed-callees": "calls= line(s) without cfn=",
        "unnamed-numbers": "number(s) without a name, used as (its|their) name(s)",
        "unsigned-negatives": "negative count(s) written as 2^64 more",
        "wrapped-summary": "summary: line(s) that wrapped around below 0, dropped",
    },
    losses={
        "lost-totals": "part(s) without `{key}:` at (its|their) end",
        "cut-off-parts": "incomplete part(s)",
        "wrapped-counts": "count(s) above 2^63, read as 2^64 less without a sum that confirms it",
    },
    not_representable={
        "blanked-newlines": "newline(s) in the command, written as (a space|spaces)",
        "caller-contexts": "line(s) that (separates|separate) callers or recursion levels (rec=, frfn=)",
        "comments": "comment(s), which cg_merge refuses",
        "escaped-comments": "comment(s) with a line end or NUL byte, escaped",
        "escaped-names": "name(s) with a line end or NUL byte, escaped",
        "excess-comments": "comment(s) beyond the first 1 MiB of them",
        "trailing-comments": "comment(s) after the counts of a line",
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
