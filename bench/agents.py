"""Thirty questions about profiles of twelve formats, answered through `fastprof mcp` by a fixed plan of tool calls.

    python -m bench.agents

Each answer of a tool has at most 2,000 tokens.  What is right comes from another tool, whose command is stated with
each question, not from fastprof; of the series of commits (bench/commits.py) it is counted anew.  The same questions
are then asked of the text of `go tool pprof -top FILE`, as a person would paste it: a question counts if that text has
the answer.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import anyio
from mcp import Client
from mcp.client.stdio import StdioServerParameters

from bench import commits
from bench.commits import Series

CORPUS = Path(__file__).parents[1] / "tests" / "corpus"
TOKENS = 2000
GO = "pprof/good/go-cpulabels.pb"
HEAP = "pprof/good/go-heap.pb.gz"
OLD, NEW = "pair/old.callgrind", "pair/new.callgrind"
CACHE = "cachegrind/good/head.cachegrind"
JFR = "jfr/good/real-async.jfr.gz"
MASSIF = "massif/good/depth3.massif"
OPROFILE = "oprofile/good/threads.tar"
COMMITS = "commits"  # a folder that is made
XRAY = "xray/good/fdr5-pool-clang19.xray"


class Question(NamedTuple):
    """`call`: the tool and its arguments; `find`: the answer in its document; `pasted`: what text of `pprof -top` has
    to contain."""

    text: str
    format: str
    right: Any
    oracle: str
    call: tuple[str, dict[str, Any]]
    find: Callable[[Any], Any]
    pasted: str


def top(path: str, **arguments: Any) -> tuple[str, dict[str, Any]]:
    return "top", {"path": path, **arguments}


def info(path: str) -> tuple[str, dict[str, Any]]:
    return "info", {"path": path}


def row(field: str, n: int = 0) -> Callable[[Any], Any]:
    return lambda found: found["rows"][n][field]


def named(name: str, field: str = "self", by: str = "name") -> Callable[[Any], Any]:
    """A figure of the row whose name, or object, contains a text."""
    return lambda found: next(one[field] for one in found["rows"] if name in one[by])


def total(name: str) -> Callable[[Any], Any]:
    return lambda found: found["facts"]["totals"][name]


def grown(found: Any) -> Any:
    sides = found["rows"][0]["values"]["Ir"]
    return sides["new"] - sides["old"]


def within(text: str) -> Callable[[Any], Any]:
    """A text, if it is part of the first row's name or object."""
    return lambda found: text if text in found["rows"][0]["name"] + found["rows"][0]["object"] else found["rows"][0]


PPROF, ANNOTATE = "go tool pprof -top", "callgrind_annotate"
QUESTIONS = [
    Question(
        "Who is the culprit?",
        "pprof",
        "runtime.asyncPreempt",
        PPROF,
        top(GO, n=1),
        row("name"),
        r"runtime\.asyncPreempt$",
    ),
    Question(
        "What is its share?",
        "pprof",
        39.66,
        PPROF,
        top(GO, n=1),
        lambda d: round(100 * d["rows"][0]["self_share"], 2),
        r"39\.66%",
    ),
    Question(
        "How much with callees has main.(*tree).put?",
        "pprof",
        680,
        PPROF,
        top(GO, focus=r"^main\.\(\*tree\)\.put$"),
        lambda d: d["rows"][0]["inclusive"] / 1e6,
        r"0\.68s.*tree|680ms.*tree",
    ),
    Question(
        "Which kind of request costs most?",
        "pprof",
        "sort",
        "go tool pprof -tags",
        top(GO, by="label:kind", label="kind=sort"),
        row("name"),
        r"kind",
    ),
    Question(
        "Who allocated most?",
        "pprof",
        "main.(*tree).put",
        f"{PPROF} -sample_index=alloc_space",
        top(HEAP, value="alloc_space", n=1),
        row("name"),
        r"100%.*tree\)\.put",
    ),
    Question(
        "Who waits most?",
        "pprof",
        "sync.(*Mutex).Lock",
        PPROF,
        top("pprof/good/go-block.pb.gz", n=1),
        row("name"),
        r"sync\.\(\*Mutex\)\.Lock",
    ),
    Question("Who is the culprit?", "callgrind", "next_word", ANNOTATE, top(NEW, n=1), row("name"), "next_word"),
    Question("How many instructions ran?", "callgrind", 564427, ANNOTATE, info(NEW), total("Ir"), "564427"),
    Question(
        "What made it slower?",
        "callgrind",
        "find",
        f"{ANNOTATE} of both",
        ("diff", {"old": OLD, "new": NEW, "n": 1}),
        row("name"),
        r"\bfind\b",
    ),
    Question(
        "By how much?",
        "callgrind",
        108288 - 73020,
        f"{ANNOTATE} of both",
        ("diff", {"old": OLD, "new": NEW, "n": 1}),
        grown,
        "35268",
    ),
    Question(
        "Who runs most instructions?",
        "cachegrind",
        "intel_check_word.constprop.0",
        "cg_annotate",
        top(CACHE, n=1),
        row("name"),
        "intel_check_word",
    ),
    Question(
        "Who reads most data?",
        "cachegrind",
        "__ctype_init",
        "cg_annotate",
        top(CACHE, value="Dr", n=1),
        row("name"),
        "ctype_init",
    ),
    Question(
        "How many samples?",
        "perf",
        30,
        "perf script | grep -c",
        info("recordings/go.data"),
        total("cpu-clock_samples"),
        "30 ",
    ),
    Question(
        "Which thread has most samples?",
        "perf",
        "worker",
        "perf script, column 1",
        top("recordings/rust.data", by="thread", n=1),
        within("worker"),
        "worker",
    ),
    Question("How many samples?", "jfr", 31, "jfr summary: jdk.ExecutionSample", info(JFR), total("samples"), "31 "),
    Question(
        "Which thread has most?",
        "jfr",
        "C2 CompilerThre",
        "jfr print: sampledThread",
        top(JFR, by="thread", n=1),
        within("C2 CompilerThre"),
        "C2 Compiler",
    ),
    Question(
        "How many samples has it?",
        "jfr",
        15,
        "jfr print: sampledThread",
        top(JFR, by="thread", value="samples", n=1),
        row("self"),
        "15 ",
    ),
    Question(
        "Which function is on top most often?",
        "jfr",
        "libmPow",
        "jfr print: first frame",
        top(JFR, n=1),
        row("name"),
        "libmPow",
    ),
    Question(
        "Who allocated most at the peak?",
        "massif",
        "long* app::make<long>(int)",
        "ms_print",
        top(MASSIF, n=1),
        row("name"),
        "make",
    ),
    Question("How many bytes is that?", "massif", 523024, "ms_print", top(MASSIF, n=1), row("self"), "make"),
    Question(
        "Which image costs most?",
        "oprofile",
        "libdemo.so.1",
        "opreport",
        top(OPROFILE, by="object", n=1),
        within("libdemo.so.1"),
        "libdemo",
    ),
    Question(
        "How many samples has it?",
        "oprofile",
        251 + 951,
        "opreport",
        top(OPROFILE, by="object"),
        named("libdemo", by="object"),
        "1202",
    ),
    Question(
        "How many threads ran?",
        "xray",
        4,
        "llvm-xray convert -f yaml",
        info(XRAY),
        lambda d: d["facts"]["threads"],
        "threads",
    ),
    Question(
        "How often is the most called function called?",
        "xray",
        799,
        "llvm-xray convert -f yaml",
        top(XRAY, sort="calls", n=1),
        row("calls"),
        "799",
    ),
    Question(
        "How much CPU time?",
        "gperftools",
        60,
        PPROF,
        info("gperftools/good/small.prof"),
        lambda d: d["facts"]["totals"]["cpu"] / 1e6,
        "60ms",
    ),
    Question(
        "Who holds most memory?", "heap", "GC", PPROF, top("heap/good/java.heap", n=1), row("name"), r"60\.?.*GC|GC$"
    ),
    Question(
        "How many calls, without recursive ones?",
        "pstats",
        28,
        "python -m pstats",
        info("pstats/good/py3.13.pstats"),
        total("primitive_calls"),
        "28",
    ),
    Question(
        "How many page faults has demo?",
        "perf-script",
        210,
        "awk: sum of periods",
        top("perf-script/good/real-default-multi-freq.perf", by="thread"),
        named("demo"),
        "demo",
    ),
]


def of_commits(series: Series) -> Iterator[Question]:
    """Questions about a program at several commits, what is right as callgrind_annotate counts it for each."""
    call, oracle = ("trend", {"path": COMMITS, "n": 5}), f"{ANNOTATE} of each commit"

    def since(found: Any) -> tuple[str, str]:
        first = found["findings"][0]
        return first["name"], first["since"].rpartition("/")[2]

    right = series.function, series.since
    yield Question("Which function got slower, since which commit?", "callgrind", right, oracle, call, since, "commit")
    grown = series.percent
    yield Question(
        "By how many percent?", "callgrind", grown, oracle, call, lambda d: round(d["findings"][0]["change"]), "%"
    )


async def answers(tokens: int) -> list[tuple[Question, Any, int]]:
    """The answers, and the bytes of the largest document."""
    found: list[tuple[Question, Any, int]] = []
    with tempfile.TemporaryDirectory() as made:
        questions = [*QUESTIONS, *of_commits(commits.made(Path(made, COMMITS)))]
        folders = ["-m", "fastprof", "mcp", str(CORPUS), made]
        async with Client(StdioServerParameters(command=sys.executable, args=folders)) as client:
            await ask(client, questions, tokens, found)
    return found


async def ask(client: Client, questions: list[Question], tokens: int, found: list[tuple[Question, Any, int]]) -> None:
    """Add the answers to all questions."""
    for question in questions:
        tool, arguments = question.call
        done = await client.call_tool(tool, {**arguments, "budget_tokens": tokens})
        text = done.content[0].text
        try:
            answer = question.find(json.loads(text))
        except (LookupError, StopIteration, TypeError) as error:
            answer = f"{type(error).__name__}: {text[:200]}"
        found.append((question, answer, len(text.encode())))


def pasted(question: Question) -> bool:
    """Whether the text of `go tool pprof -top FILE` has the answer."""
    paths = [value for key, value in question.call[1].items() if key in ("path", "new")]
    command = ["go", "tool", "pprof", "-symbolize=none", "-top", str(CORPUS / paths[0])]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode == 0 and bool(re.search(question.pasted, done.stdout, re.MULTILINE))


def main() -> int:
    right = by_pprof = largest = 0
    found = anyio.run(answers, TOKENS)
    for question, answer, nbytes in found:
        is_right = answer == question.right
        text_has = pasted(question)
        right, by_pprof, largest = right + is_right, by_pprof + text_has, max(largest, nbytes)
        mark = "right" if is_right else f"WRONG, {question.right!r} by {question.oracle}"
        print(f"{question.format:12} {question.text:48} {answer!s:32.60} {mark:8} {'pprof -top' * text_has}")
    n, formats = len(found), len({question.format for question, *_ in found})
    print(f"{right} of {n} over {formats} formats, the largest answer has {largest / 4:.0f} tokens")
    print(f"text of `go tool pprof -top`: {by_pprof} of {n}")
    return right != n


if __name__ == "__main__":
    sys.exit(main())
