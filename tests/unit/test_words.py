"""Messages speak of flags on the command line, and of keyword arguments in Python."""

from __future__ import annotations

import ast
import importlib
import pickle
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import fastprof
from fastprof import plan
from fastprof.cli import main
from fastprof.core import words
from fastprof.core.errors import FastprofError, FormatError, UsageError
from fastprof.store.adding import add
from tests.support.paths import CORPUS, REPO
from tests.support.xraylog import FdrLog

POOL = str(CORPUS / "xray/good/fdr5-pool-clang19.xray")
CUT = str(CORPUS / "xray/bad/fdr5-cut-record.xray")
GRAPH = str(CORPUS / "callgrind/good/xdebug.callgrind")

# One mistake a line: in Python, what it says there, on the command line, what it says there.  "OUT" is a folder.
Call = Callable[[str], Any]
MISTAKES: list[tuple[Call, str, str, str]] = [
    (
        lambda out: fastprof.convert(POOL, f"{out}/x.unknown"),
        "names no format to write; use to=, see",
        f"convert {POOL} -o OUT/x.unknown",
        "names no format to write; use --to, see",
    ),
    (
        lambda out: fastprof.convert(POOL, f"{out}/x.callgrind", max_memory=0),
        "max_memory: 0 is not",
        f"convert {POOL} -o OUT/x.callgrind --max-memory 0",
        "fastprof: --max-memory: '0' is not",
    ),
    (
        lambda out: fastprof.convert(POOL, f"{out}/x.callgrind", value="x"),
        "value: there is no value type 'x'",
        f"convert {POOL} -o OUT/x.callgrind --value x",
        "--value: there is no value type 'x'",
    ),
    (
        lambda out: fastprof.convert(GRAPH, f"{out}/x.folded", symbols=["a"]),
        "symbols= would do nothing from",
        f"convert {GRAPH} -o OUT/x.folded -s a",
        "--symbols would do nothing from",
    ),
    (
        lambda out: fastprof.convert(GRAPH, f"{out}/x.folded", aggregate=True),
        "aggregate=True would do nothing from",
        f"convert {GRAPH} -o OUT/x.folded --aggregate",
        "--aggregate would do nothing from",
    ),
    (
        lambda out: fastprof.convert(GRAPH, f"{out}/x.speedscope.json", split="time:1"),
        "split=time:SECONDS is for timelines",
        f"convert {GRAPH} -o OUT/x.speedscope.json --split time:1",
        "--split=time:SECONDS is for timelines",
    ),
    (
        lambda out: fastprof.convert(POOL, f"{out}/x.callgrind", threads=[1]),
        "no row is left by threads=1; the threads are",
        f"convert {POOL} -o OUT/x.callgrind --thread 1",
        "no row is left by --thread=1; the threads are",
    ),
    (
        lambda out: fastprof.merge([POOL, POOL], f"{out}/x.callgrind", union=True, intersect=True),
        "union=True keeps all value types and intersect=True those of all inputs",
        f"merge {POOL} {POOL} -o OUT/x.callgrind --union --intersect",
        "--union keeps all value types and --intersect those of all inputs",
    ),
    (
        lambda out: fastprof.diff(GRAPH, GRAPH, f"{out}/x.callgrind", n=3),
        "n= is for rows",
        f"diff {GRAPH} {GRAPH} -o OUT/x.callgrind -n 3",
        "-n is for rows",
    ),
    (
        lambda out: fastprof.top(GRAPH, tree="both", by="line"),
        "tree= shows functions, not by=line",
        f"top {GRAPH} --tree both --by line",
        "--tree shows functions, not --by=line",
    ),
    (
        lambda out: fastprof.annotate(GRAPH, "a.c", threshold=0.5),
        "threshold= would do nothing",
        f"annotate {GRAPH} a.c --threshold 0.5",
        "--threshold would do nothing",
    ),
    (
        lambda out: fastprof.info(str(CORPUS / "xray/pool-clang19")),
        "give it with symbols=, beside a profile",
        f"info {CORPUS}/xray/pool-clang19",
        "give it with --symbols, beside a profile",
    ),
    (
        lambda out: fastprof.batch_merge(GRAPH, f"{out}/x.callgrind", fan_in=8),
        "fan_in= would do nothing without jobs= or engine: all",
        f"batch merge {GRAPH} -o OUT/x.callgrind --fan-in 8",
        "--fan-in would do nothing without --jobs or --engine",
    ),
    (
        lambda out: add(f"{out}/x.fpa", [POOL, GRAPH], name="x"),
        "name= names one INPUT",
        f"archive add OUT/x.fpa {POOL} {GRAPH} --name x",
        "--name names one INPUT",
    ),
    (
        lambda out: add(f"{out}/x.fpa", [POOL], skip_existing=True, replace=True),
        "not both: skip_existing=True or replace=True",
        f"archive add OUT/x.fpa {POOL} --skip-existing --replace",
        "not both: --skip-existing or --replace",
    ),
]
IDS = [f"{line.split()[0]}-{n}" for n, (_, _, line, _) in enumerate(MISTAKES)]


@pytest.mark.parametrize("call, says, _, __", MISTAKES, ids=IDS)
def test_python_speaks_of_arguments(call: Call, says: str, _: str, __: str, tmp_path: Path) -> None:
    with pytest.raises(FastprofError) as caught:
        call(str(tmp_path))
    assert says in str(caught.value)
    assert not re.search(r"(^|[ (])--?[a-z]", str(caught.value))


@pytest.mark.parametrize("_, __, line, says", MISTAKES, ids=IDS)
def test_the_command_line_speaks_of_flags(
    _: Call, __: str, line: str, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        assert main(line.replace("OUT", str(tmp_path)).split())
    except SystemExit as ended:  # argparse
        assert ended.code == 2
    assert says in capsys.readouterr().err
    assert not words.speaks_of_flags()  # any more


def test_workers_speak_as_the_one_who_began_the_batch(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    inputs = tmp_path / "in"
    inputs.mkdir()
    (inputs / "a").write_bytes((CORPUS / "xray/pool-clang19").read_bytes())
    assert main(["batch", "convert", str(inputs), "-t", "folded", "-o", f"{tmp_path}/one"]) == 1
    assert "give it with --symbols, beside" in capsys.readouterr().err
    (failed,) = fastprof.batch_convert(inputs, tmp_path / "two", to="folded").failed
    assert "give it with symbols=, beside" in failed["error"]["message"]


def test_pickle_keeps_the_flags() -> None:
    """An error of a worker process is said by the process that gets it."""
    for error in (UsageError("use --to"), FormatError("a", "xray", "cut; --lenient reads it", offset=3)):
        sent = pickle.dumps(error)
        assert b"--" in sent
        assert "--" not in str(pickle.loads(sent))
        before = words.speak_of_flags(True)
        assert "--" in str(pickle.loads(sent))
        words.speak_of_flags(before)


def test_reports(tmp_path: Path) -> None:
    """Warnings and the texts of counts, too."""
    log = FdrLog()
    log.buffer().cpu(0, 1000).enter(1).exit(1)
    (tmp_path / "x.xray").write_bytes(log.bytes())
    (warning,) = fastprof.convert(tmp_path / "x.xray", tmp_path / "x.callgrind").warnings
    assert warning.endswith("with symbols=")
    left_out = fastprof.convert(
        POOL, tmp_path / "b.callgrind", symbols=[f"{CORPUS}/xray/pool-clang19"], function="worker"
    ).left_out
    assert [*left_out] == ["rows by function="]


def texts() -> Iterator[str]:
    """What fastprof says, of its source: all texts but docstrings, help, and what is given to argparse."""
    for path in sorted(REPO.glob("fastprof/**/*.py")):
        if path.parent.name == "cli":
            continue
        tree = ast.parse(path.read_text())
        passed_over = {
            id(inner)
            for node in ast.walk(tree)
            for inner in ast.walk(node)
            if (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
            or (isinstance(node, ast.keyword) and node.arg in ("help", "flag", "short"))
            or isinstance(node, ast.List)  # arguments of other programs
        }
        yield from (
            node.value
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in passed_over
        )


def test_every_flag_in_a_message_is_known() -> None:
    for module in ("annotate", "diff", "report", "sql", "top", "batch.archive", "batch.merge"):
        importlib.import_module(f"fastprof.verbs.{module}")
    plan.known_options()
    found = {match[1] for text in texts() for match in re.finditer(words.FLAG, re.sub("`.*?`", "", text))}
    found = {flag for flag in found if not flag.endswith("-")}  # pieces of words
    others = {"--serve", "--port", "-O", "--dump-instr", "-fxray-instrument", "-X"}
    assert {"--lenient", "--to", "--value"} < found
    assert found - words.ARGUMENTS.keys() <= others


@pytest.mark.parametrize(
    "text",
    [
        "--lenient.prof: no format",
        "a/--value: no format",
        "my--lenient: no format",
        "--lenient/x: no format",
        "record with `--tool=memcheck --xtree-memory=full` instead",
        "Callgrind writes them with --dump-instr=yes",
        "built without -fxray-instrument",
        "'--lenient' is none of full, short",
        "--too: no format",
        "--to-x: no format",
    ],
)
def test_what_is_no_flag_of_ours_stays(text: str) -> None:
    assert words.worded(text) == text


def test_a_damaged_file_called_like_a_flag(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("--lenient").write_bytes(Path(CUT).read_bytes())
    with pytest.raises(FormatError, match=r"^--lenient: xray: at byte"):
        fastprof.info("--lenient")


@pytest.mark.parametrize(
    "things, one",
    [
        ("orphan exits", "orphan exit"),
        ("calls and jumps", "call or jump"),
        ("labels, threads and times of samples", "label, thread or time of samples"),
        ("lines that were indented", "line that was indented"),
        ("sample files that end too early", "sample file that ends too early"),
        ("numbers used before they were defined", "number used before it was defined"),
        ("numbers without a name, which became their name", "number without a name, which became its name"),
        (
            "parts without `events:`, which keep those of the part before",
            "part without `events:`, which keeps those of the part before",
        ),
        ("calls= or jump lines with extra numbers", "calls= or jump line with extra numbers"),
        ("totals: lines of (null), which stands for no costs", "totals: line of (null), which stands for no costs"),
        ("bytes behind the ends of sample files", "byte behind the ends of sample files"),
        ("late entries", "late entry"),
        ("indexes", "index"),
        ("addresses", "address"),
        ("processes", "process"),
        ("duplicated leaves removed", "duplicated leaf removed"),
        ("byte order mark skipped", "byte order mark skipped"),
        ("samples were lost", "sample was lost"),
        ("names would take too much and stay as they are", "name would take too much and stays as it is"),
    ],
)
def test_one_of_several_things(things: str, one: str) -> None:
    assert words.counted(1, things) == f"1 {one}"
    assert words.counted(2000, things) == f"2,000 {things}" and words.counted(0, things) == f"0 {things}"


def test_messages_count_by_one_rule() -> None:
    """`{n} files` is wrong of one file: `counted(n, "files")`."""
    several = r"\{[^{}]*\} (samples|calls|functions|files|profiles|lines|rows|names|inputs|warnings|addresses|parts)\b"
    where = [REPO / "fastprof" / folder for folder in ("cli", "verbs", "bridges", "symbols", "formats")]
    for path in (each for folder in where for each in folder.rglob("*.py")):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if re.search(several, line) and not re.search(ALWAYS_SEVERAL, line):
                pytest.fail(f"{path}:{number}: {line.strip()}")


# Of what there are always several, or what counts a limit.
ALWAYS_SEVERAL = "else f|CAPACITY|_ID_LIMIT|profiles need|expected up to"
