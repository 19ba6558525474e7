"""Writes memory.md, the memory of each conversion: `make memory`, which takes some minutes.

Each figure is from a separate process, on an input in which nearly every row is distinct.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from pathlib import Path

from fastprof import formats
from tests.support import stack_files
from tests.support.conversions import OF_PROGRAMS
from tests.support.distinct import FUNCTIONS, INPUTS, SOURCE
from tests.support.paths import REPO
from tests.support.peak import peak, peaks

MIB = 1 << 20
ROWS = {"timeline": 1_500_000, "stacks": 300_000, "recording": 300_000, "labelled": 1_000_000, "graph": 1_500_000}
TABLES = {"timeline": "spans", "stacks": "samples", "recording": "samples", "labelled": "samples", "graph": "graph"}
ADDRESSES = ("stacks", "labelled")
LIMITS = (8, 32)  # MiB; the latter is the default
EXTRA = 48  # MiB that a process may take in addition to the sums: batches, windows, compressed chunks

TITLE = """\
# Memory

```
fastprof convert trace.xray --max-memory 8M -o trace.callgrind
```

A conversion takes {least} MiB for the program, up to {extra} MiB for batches, windows of files and runs, and chunks
being compressed, and `--max-memory` (default: 32M) for sums of distinct rows.  Larger sums go to a temporary file,
and the output has the same bytes for every limit ([architecture.md](architecture.md#batch-and-model)).  The length
of an input does not matter, only its distinct names, stacks and call arcs.  Names beyond 8 MiB leave memory for a
temporary file (not those of an open `Profile`); what they are looked up by stays, some 40 bytes for each.  If a
temporary file cannot grow, the error names its folder, which `TMPDIR` changes.

The tables show the peak resident memory of the whole process in MiB, on {cores} cores, for inputs in which nearly
every row is distinct (`make memory` measures it).  **Extra** is what exceeds {least} MiB and the
default limit.  Letters explain an extra above {extra} ([below](#what-exceeds-the-limit)).

These inputs have few parts and threads.  Each part of a profile takes 3 KB more in `report` and in estimates of
stacks, each thread of a timeline 1 KB, 3 KB in a page and 10 KB in the Firefox Profiler's format.
Each thread of a Firefox profile takes 6 KB when it is read, each sequence of a Perfetto trace 2 KB, each process of a
recording 1 KB, and each of its mapped files 3 to 4 KB where names are looked up.
Each value type of a page takes 16 bytes for each context and, of stacks and graphs, 28 bytes for each distinct arc
that has such a cost; with many value types, up to 140 bytes for each function and type.  Of
a timeline, callers and callees take at most 2 KB for each function, and durations of single calls 4 KB, at most 17 KB.
A flight recording takes the constants of its largest chunk, up to 14 MiB for frames and stacks that are repeated, and
up to 40 MiB for samples with many stacks and labels.
Heaps as text and profiles of DHAT and gperftools, whose mapped objects and names come last, keep their stacks in a
temporary file beyond half of the limit, and take 11 to 22 bytes for each distinct stack until the names come;
Perfetto traces take 20 to 40, as samples may refer to any earlier stack.  Massif takes one tree, OpenTelemetry the
dictionary of one message.
"""
ABOUT = {
    "timeline": """An XRay log of {rows:,} calls in 2,000 functions and 64 threads, nearly every
one on a distinct call path, with 1.2 million distinct arcs.""",
    "stacks": """A pprof profile of {rows:,} samples, each with a distinct stack of 12 of 2,000 functions: 2.4
million contexts.""",
    "recording": """A perf.data of {rows:,} samples at the same stacks, without marks of rounds: all of it is sorted, in
a temporary file.""",
    "labelled": "A pprof profile of 1,000 stacks, each with 1,000 labels: {rows:,} distinct samples.",
    "graph": "A Callgrind profile of {rows:,} rows in 2,000 functions: costs and calls, each at a distinct line.",
}
# What may exceed the limit: why, and which commands by input.  A test holds all others to the limit.
REASONS = {
    "a": (
        """Distinct stacks that stay in the model take about 40 bytes for each context.  They need not stay where the
reader adds a stack again when it occurs again (pprof, OTLP, folded, gperftools, JFR, perf.data, perf script, archives,
speedscope, Firefox, Perfetto, heaps as text, DHAT): their sums are written to the temporary file as walks of the tree
([architecture.md](architecture.md#batch-and-model)), archives and tables are written in rounds of 500,000 contexts, and
`info` counts contexts by sorted hashes.  They stay if the Firefox Profiler's samples have times, in queries that read
`stack_id`, for chosen sizes (`--budget`) and in merges and differences of timelines.  Of a Firefox profile, and of an
archive written before these rounds, each context of the file takes 12 bytes.  The stacks of CPU profiles of V8 and of
Chrome's traces stay, because their nodes may precede their callers and are read once: 100 to 190 bytes each.
A million distinct stacks of 30 functions take 1.2 GB on the way to speedscope, and 1.4 GB to the Firefox Profiler,
whose sizes are chosen by default.""",
        {"timeline": "(merge two|diff) to pprof"},
    ),
    "b": (
        """The estimate of stacks keeps each place of the graph, the arcs that have contexts, and up to 2 million
contexts (64 MiB, [bridges.md](bridges.md#graph-to-stacks)); the model keeps each place as a frame.""",
        {"graph": "convert to (pprof|otlp|folded|speedscope|firefox)|(merge two|diff) to pprof|report"},
    ),
    "c": (
        """A page lists callers and callees of functions, so distinct arcs of stacks stay in memory in addition to
contexts, and what the page shows takes 30 to 80 MiB while it is made, most if contexts
just fit.  If contexts exceed the limit, the smaller ones are dropped; a timeline's arcs are written away.""",
        {"timeline": "report", "stacks": "report"},
    ),
    "d": (
        """The stack machine, which finds calls that do not nest in a timeline, adds up calls within the default limit;
`info` has no option to change it.""",
        {"timeline": "info"},
    ),
    "e": (
        """Each pair of a source line and a function that it calls takes 60 to 100 bytes, shown or not: 3 million pairs
here, in the 2,000 lines of one file.""",
        {"stacks": "annotate"},
    ),
    "f": (
        "DuckDB's library takes 35 to 80 MiB, and has its own limit for sorting and grouping.",
        dict.fromkeys(TABLES, "sql"),
    ),
    "g": (
        """Label sets of a page, here one for each sample, take some 90 bytes each while their values are chosen.""",
        {"labelled": "report"},
    ),
    "h": (
        "The table of differences keeps the call arcs of both graphs, for inclusive costs.",
        {"graph": "diff"},
    ),
    "i": (
        """The writer of pstats adds up each function and each pair of caller and callee, some 50 bytes for each.""",
        dict.fromkeys(("timeline", "stacks"), "convert to pstats"),
    ),
    "j": (
        """A section of a store that is compressed with an earlier one needs that one and zstandard's tables for
both.""",
        {"graph": "archive add"},
    ),
}


def reasons(name: str, command: str) -> list[str]:
    """The letters of why a command may exceed the limit."""
    return [letter for letter, (_, by) in REASONS.items() if re.fullmatch(by.get(name, ""), command)]


def commands(name: str, path: str, folder: str) -> dict[str, list[str]]:
    """What is done with an input: words for the table, and the arguments."""
    timeline = name == "timeline"
    if name == "recording":  # other commands are those of stacks
        found = {
            f"convert to {to}": ["convert", path, "-o", os.devnull, "-t", to] for to in ("pprof", "folded", "callgrind")
        }
        found |= {verb: [verb, path] for verb in ("info", "top")}
        return {word: [*command, "--no-symbols", "-q"] for word, command in found.items()}
    to_null = ["-o", os.devnull, "-t"]
    found = {
        f"convert to {to.name}": ["convert", path, *to_null, to.name]
        for to in formats.formats()
        # gperftools holds addresses, which only these have
        # and of these the programs are not there, which profiles for compilers need
        if to.writer
        and (to.name != "gperftools" or name in ADDRESSES)
        and (to.view != "timeline" or timeline)
        and to.name not in OF_PROGRAMS
    }
    if timeline:
        for threads in 1, 4:
            for to in "callgrind", "pprof":
                found[f"convert to {to}, --cores {threads}"] = [*found[f"convert to {to}"], "--cores", f"{threads}"]
    for to in "pprof", "callgrind":
        found[f"merge two to {to}"] = ["merge", path, path, *to_null, to]
        found[f"diff to {to}"] = ["diff", path, path, *to_null, to]
    found["diff"] = ["diff", path, path]
    found["info"] = ["info", path]
    found["top"] = ["top", path]
    if not timeline:
        found["annotate"] = ["annotate", path, SOURCE, "-I", folder]
    found["sql"] = ["sql", path, f"SELECT count(*) FROM {TABLES[name]}"]
    found["report"] = ["report", path, "-o", os.path.join(folder, "page.html")]
    found["archive add"] = ["archive", "add", os.path.join(folder, name + ".fpa"), path, "--replace"]
    return {word: [*command, "-q"] for word, command in found.items()}


def peaks_of(command: list[str], limits: tuple[int, ...]) -> list[int]:
    """Bytes, for each limit."""
    return [peak(*command, "--max-memory", f"{limit}M") for limit in limits]


# By format: verbs, or the target of a conversion.
VERBS = ("folded", "callgrind", "pprof", "speedscope", "firefox", "archive")
VERBS += ("info", "top", "diff", "report", "sql")
STACKS = 100_000
ABOUT_FORMATS = """{n:,} stacks of 30 of 2,000 functions, written in each format: 1.5 million contexts.  MiB with
the default limit: at most 64 beyond it, of `report` 96, except for `sql`, because of DuckDB (f), and Chrome's and V8's
stacks (a)."""


def of_verb(verb: str, path: str, folder: str) -> list[str]:
    """A verb of VERBS, or `merge`, as a command."""
    found = {
        "info": ["info", path],
        "top": ["top", path],
        "diff": ["diff", path, path],
        "report": ["report", path, "-o", os.path.join(folder, "page.html")],
        "sql": ["sql", path, "SELECT count(*) FROM samples"],
        "merge": ["merge", path, path, "-o", os.devnull, "-t", "pprof"],
    }
    return [*found.get(verb, ["convert", path, "-o", os.devnull, "-t", verb]), "-q"]


def formats_section(folder: str) -> str:
    lines = ["## Formats of stacks", "", ABOUT_FORMATS.format(n=STACKS), ""]
    lines += [f"| | {' | '.join(VERBS)} |", "| --- |" + " ---: |" * len(VERBS)]
    made, path = stack_files.stacks(STACKS), os.path.join(folder, "stacks")
    for name, write in stack_files.WRITE.items():
        write(Path(path), made)
        found = peaks(of_verb(verb, path, folder) for verb in VERBS)
        lines.append(f"| {name} | {' | '.join(f'{nbytes // MIB}' for nbytes in found)} |")
    return "\n".join([*lines, ""])


def section(name: str, folder: str, least: int) -> str:
    path = os.path.join(folder, name)
    INPUTS[name](Path(path), ROWS[name])
    Path(folder, SOURCE).write_text("x = 1;\n" * FUNCTIONS)
    heads = [f"`--max-memory {limit}M`" for limit in LIMITS]
    lines = [f"## {name.capitalize()}", "", ABOUT[name].format(rows=ROWS[name]), ""]
    lines += [f"| | {' | '.join(heads)} | extra | |", "| --- |" + " ---: |" * (len(LIMITS) + 1) + " --- |"]
    for word, command in commands(name, path, folder).items():
        peaks = [one // MIB for one in peaks_of(command, LIMITS)]
        extra = max(0, peaks[-1] - least - LIMITS[-1])
        why = reasons(name, word)
        if bool(why) != (extra > EXTRA):
            print(f"{name}, {word}: {extra} MiB beyond the limit, and reasons {why}", file=sys.stderr)
        lines.append(f"| {word} | {' | '.join(map(str, peaks))} | {extra} | {', '.join(why)} |")
    return "\n".join([*lines, ""])


def text() -> str:
    shm = "/dev/shm"
    with tempfile.TemporaryDirectory(dir=shm if os.path.isdir(shm) else None) as folder:
        os.environ["TMPDIR"] = folder
        tiny = Path(folder, "tiny.folded")
        tiny.write_text("main 1\n")
        least = peak("info", str(tiny)) // MIB
        sections = [*(section(name, folder, least) for name in INPUTS), formats_section(folder)]
    why = [f"* **{letter}**: " + text.replace("\n", "\n  ") for letter, (text, _) in REASONS.items()]
    title = TITLE.format(cores=os.cpu_count(), least=least, extra=EXTRA)
    return "\n".join([title, *sections, "## What exceeds the limit", "", *why, ""])


if __name__ == "__main__":
    (REPO / "docs" / "memory.md").write_text(text())
