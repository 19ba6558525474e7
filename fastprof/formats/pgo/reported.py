"""Counts and warnings of this folder."""

from fastprof.core.reported import reported

REPORTED = reported(
    "fp_pgo_reader",
    "fp_pgo_binary",
    "fp_pgo_fdata",
    losses={"unread-sections": "section(s) that could not be read"},
    not_representable={
        "sections": "section(s) of checksums or symbols",
        "calls-elsewhere": (
            "call that no call instruction made (a jump into another symbol), not written as a target",
            "calls that no call instruction made (jumps into other symbols), not written as targets",
        ),
        "jumps": "jump(s)",
        "instructions-elsewhere": "instruction(s) of (an object|objects) that (was|were) not found or not chosen",
        "lines-elsewhere": "line(s) of (a function|functions) that (was|were) not found or not chosen",
        "negative-counts": "count(s) below 0",
        "rows-without-address": (
            "row without the address of an instruction in an object",
            "rows without addresses of instructions in objects",
        ),
        "unplaced-lines": "line(s) without (an instruction|instructions) in (its|their) function(s)",
        "unplaced-instructions": "instruction(s) without a line in a function of (its|their) inline chain(s)",
        "wrong-runs": "straight run(s) across (a jump|jumps) or outside of the code",
        "unsymbolized-instructions": "instruction(s) outside of functions with debug information",
    },
    warnings={
        "mixed-builds": "{sentence} were recorded; only counts of the builds that were found are written",
        "other-build": "{share} of the recorded calls, lines or runs do not fit the code of the program, which is "
        "probably another build",
        "stale-program": "{sentence}: the counts may belong to other lines",
        "counts-by-line": "the counts are by line, and spread evenly over the instructions of each line; "
        "Callgrind's --dump-instr=yes makes them exact",
        "few-samples": "compilers gain little from so few samples, and fewer than 1,000 may make the program slower "
        "than without a profile; thousands, or the exact counts of Callgrind (--dump-instr=yes), give more; this "
        "profile has {samples}",
        "optimized-program": "the program that was counted is optimized: counts of some lines are missing or too low, "
        "and loops may become slower than without a profile; count a program built with -O0, or give clang "
        "-mllvm -sample-profile-use-profi",
        "programs-not-found": "{reason}; its code has {share} of the counts",
        "low-coverage": "only {placed} of the counts belong to lines of functions; the program may be another build, "
        "or have no debug information",
    },
)
