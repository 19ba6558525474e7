"""Messages name flags on the command line, and keyword arguments in Python."""

from __future__ import annotations

import ast
import importlib
import json
import pickle
import re
import string
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import fastprof
from fastprof import plan
from fastprof.cli import main, messages
from fastprof.core import messages as of_core
from fastprof.core.errors import FastprofError, FormatError, UsageError
from fastprof.core.log import Log
from fastprof.core.messages import Message, joined, packed, spelled, unpacked
from fastprof.store.adding import add
from fastprof.verbs import top
from tests.support.paths import CORPUS, REPO
from tests.support.xraylog import FdrLog

POOL = str(CORPUS / "xray/good/fdr5-pool-clang19.xray")
CUT = str(CORPUS / "xray/bad/fdr5-cut-record.xray")
GRAPH = str(CORPUS / "callgrind/good/xdebug.callgrind")

# One mistake per line: the call in Python, its message, the command line, its message.  "OUT" is a folder.
Call = Callable[[str], Any]
MISTAKES: list[tuple[Call, str, str, str]] = [
    (
        lambda out: fastprof.convert(POOL, f"{out}/x.unknown"),
        "no output format has this suffix; use to=, see",
        f"convert {POOL} -o OUT/x.unknown",
        "no output format has this suffix; use --to, see",
    ),
    (
        lambda out: fastprof.convert(POOL, f"{out}/x.callgrind", max_memory=0),
        "max_memory: 0 is not",
        f"convert {POOL} -o OUT/x.callgrind --max-memory 0",
        "fastprof: --max-memory: '0' is not",
    ),
    (
        lambda out: fastprof.convert(POOL, f"{out}/x.callgrind", value="x"),
        "value: unknown value type 'x'",
        f"convert {POOL} -o OUT/x.callgrind --value x",
        "--value: unknown value type 'x'",
    ),
    (
        lambda out: fastprof.convert(GRAPH, f"{out}/x.folded", symbols=["a"]),
        "symbols= has no effect from",
        f"convert {GRAPH} -o OUT/x.folded -s a",
        "--symbols has no effect from",
    ),
    (
        lambda out: fastprof.convert(GRAPH, f"{out}/x.folded", aggregate=True),
        "aggregate=True has no effect from",
        f"convert {GRAPH} -o OUT/x.folded --aggregate",
        "--aggregate has no effect from",
    ),
    (
        lambda out: fastprof.convert(GRAPH, f"{out}/x.speedscope.json", split="time:1"),
        "split=time:SECONDS needs a timeline",
        f"convert {GRAPH} -o OUT/x.speedscope.json --split time:1",
        "--split=time:SECONDS needs a timeline",
    ),
    (
        lambda out: fastprof.convert(POOL, f"{out}/x.callgrind", threads=[1]),
        "no row matches threads=1; the threads are",
        f"convert {POOL} -o OUT/x.callgrind --thread 1",
        "no row matches --thread=1; the threads are",
    ),
    (
        lambda out: fastprof.merge([POOL, POOL], f"{out}/x.callgrind", union=True, intersect=True),
        "union=True keeps all value types and intersect=True those of all inputs",
        f"merge {POOL} {POOL} -o OUT/x.callgrind --union --intersect",
        "--union keeps all value types and --intersect those of all inputs",
    ),
    (
        lambda out: fastprof.diff(GRAPH, GRAPH, f"{out}/x.callgrind", n=3),
        "n= chooses printed rows",
        f"diff {GRAPH} {GRAPH} -o OUT/x.callgrind -n 3",
        "-n chooses printed rows",
    ),
    (
        lambda out: fastprof.top(GRAPH, tree="both", by="line"),
        "tree= shows functions, not by=line",
        f"top {GRAPH} --tree both --by line",
        "--tree shows functions, not --by=line",
    ),
    (
        lambda out: fastprof.annotate(GRAPH, "a.c", threshold=0.5),
        "threshold= has no effect",
        f"annotate {GRAPH} a.c --threshold 0.5",
        "--threshold has no effect",
    ),
    (
        lambda out: fastprof.info(str(CORPUS / "xray/pool-clang19")),
        "pass it with symbols=, together with a profile",
        f"info {CORPUS}/xray/pool-clang19",
        "pass it with --symbols, together with a profile",
    ),
    (
        lambda out: fastprof.batch_merge(GRAPH, f"{out}/x.callgrind", fan_in=8),
        "fan_in= has no effect without jobs= or engine: one",
        f"batch merge {GRAPH} -o OUT/x.callgrind --fan-in 8",
        "--fan-in has no effect without --jobs or --engine",
    ),
    (
        lambda out: add(f"{out}/x.fpa", [POOL, GRAPH], name="x"),
        "name= takes a single INPUT",
        f"archive add OUT/x.fpa {POOL} {GRAPH} --name x",
        "--name takes a single INPUT",
    ),
    (
        lambda out: add(f"{out}/x.fpa", [POOL], skip_existing=True, replace=True),
        "skip_existing=True and replace=True exclude each other",
        f"archive add OUT/x.fpa {POOL} --skip-existing --replace",
        "--skip-existing and --replace exclude each other",
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
        words = line.replace(str(CORPUS), "CORPUS").split()  # its path may have blanks
        assert main([word.replace("CORPUS", str(CORPUS)).replace("OUT", str(tmp_path)) for word in words])
    except SystemExit as ended:  # argparse
        assert ended.code == 2
    assert says in capsys.readouterr().err


def test_records_of_a_batch_keep_what_a_message_is_made_of(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    inputs = tmp_path / "in"
    inputs.mkdir()
    (inputs / "a").write_bytes((CORPUS / "xray/pool-clang19").read_bytes())
    assert main(["batch", "convert", str(inputs), "-t", "folded", "-o", f"{tmp_path}/one"]) == 1
    assert "pass it with --symbols, together" in capsys.readouterr().err
    log = fastprof.batch_convert(inputs, tmp_path / "two", to="folded")
    (failed,) = log.failed
    assert "pass it with symbols=, together" in failed["error"]["message"]
    assert "pass it with --symbols, together" in log.as_dict(flags=True)["failed"][0]["error"]["message"]


def test_pickle_keeps_what_a_message_is_made_of() -> None:
    """The process that receives a worker's error reports it."""
    use = Message("{file}: use {--to}", file="{--from}")
    for error in (UsageError(use), FormatError("{a}", "xray", use, offset=3)):
        again = pickle.loads(pickle.dumps(error))
        assert str(again).endswith("{--from}: use to=") and again.text(flags=True).endswith("{--from}: use --to")


def test_messages_in_messages() -> None:
    assert plan.known_options() and top.options()  # options get their flags once they are declared
    lenient = Message("{--lenient} or {--split:=}thread, {-O pprof.time_ns}", file="a")
    error = FormatError("f", "xray", lenient)
    whole = joined("; ", ["{x}", error.message(), spelled("--value", "name"), spelled("--tree", "=") + "both"])
    assert str(whole) == "{x}; f: xray: lenient=True or split=thread, time_ns=; value; tree=both"
    flags = "{x}; f: xray: --lenient or --split=thread, -O pprof.time_ns; --value; --tree=both"
    assert whole.text(flags=True) == flags
    ((_, again),) = unpacked(json.loads(json.dumps(packed([("", whole)]))))
    assert again == whole


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
    assert [*left_out.texts()] == ["rows by function="]


def texts() -> Iterator[str]:
    """The messages in fastprof's source: all texts except docstrings, help and arguments of argparse."""
    for path in sorted(REPO.glob("fastprof/**/*.py")):
        if path.parent.name == "cli":
            continue
        tree = ast.parse(path.read_text())
        passed_over = {
            id(inner)
            for node in ast.walk(tree)
            if (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
            or (isinstance(node, ast.keyword) and node.arg in ("help", "details", "flag", "short"))
            or isinstance(node, ast.List)  # arguments of other programs
            for inner in ast.walk(node)
        }
        yield from (
            node.value
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in passed_over
        )


# A flag as typed: after a blank or a bracket, and not the beginning of a longer word or of a file's name.
FLAG = r"(?<![^\s(])(-O [a-z-]+\.[a-z_]+|--?[A-Za-z][a-z-]*)(?![\w-]|[./]\w)"


def test_every_option_in_a_message_is_a_field_and_known() -> None:
    for module in ("annotate", "diff", "explain", "report", "sql", "top", "trend", "batch.archive", "batch.merge"):
        importlib.import_module(f"fastprof.verbs.{module}")
    plan.known_options()
    said = [re.sub("`.*?`", "", text) for text in texts() if "var(--" not in text]  # in style sheets
    fields = {match[1] for text in said for match in re.finditer(r"\{(--?[A-Za-z][\w .-]*)", text)}
    assert {"--lenient", "--to", "--value", "-o"} < fields <= of_core.ARGUMENTS.keys()
    bare = {match[1] for text in said if " " in text for match in re.finditer(FLAG, text)}
    # flags that only the command line has, and options of other programs
    others = {"-o", "--serve", "--port", "-O", "-fxray-instrument", "-X", "-e", "--dump-instr", "--no-"}
    others |= {
        "--tui",
        "--binary",
        "--protobuf",
        "-pg",
        "-b",
        "-p",
        "-P",
        "-pj",
        "-jp",
        "-mllvm",
        "-sample-profile-use-profi",
    }
    assert bare <= others


def test_every_field_of_a_message_is_filled() -> None:
    """In messages created where they are raised, in counts and in warnings."""
    n = 0
    for path in sorted(REPO.glob("fastprof/**/*.py")):
        table = path.parent / "reported.py"
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call) or not node.args or any(keyword.arg is None for keyword in node.keywords):
                continue
            name = getattr(node.func, "id", getattr(node.func, "attr", ""))
            first = node.args[0]
            if name in ("Message", "usage_error") and isinstance(first, ast.Constant):
                template = first.value
            elif name in ("count", "warn") and isinstance(first, ast.Subscript) and table.exists():
                entries = importlib.import_module(".".join(table.relative_to(REPO).with_suffix("").parts)).REPORTED
                codes = [code.value for code in ast.walk(first.slice) if isinstance(code, ast.Constant)]
                template = "".join(entries[code].several for code in codes if code in entries)
                if not template:
                    continue  # a variable
            else:
                continue
            fields = {field for _, field, _, _ in string.Formatter().parse(template) if field}
            filled = {str(keyword.arg) for keyword in node.keywords}
            assert {field for field in fields if field[0] != "-"} == filled, f"{path}:{node.lineno}"
            n += 1
    assert n > 120


def test_a_damaged_file_called_like_a_flag(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("--lenient").write_bytes(Path(CUT).read_bytes())
    with pytest.raises(FormatError, match=r"^--lenient: xray: at byte"):
        fastprof.info("--lenient")


def test_one_of_several_things() -> None:
    assert of_core.counted(1, "file") == "1 file" and of_core.counted(2000, "file") == "2,000 files"
    assert of_core.counted(0, "entry", "entries") == "0 entries" and of_core.counted(1, "entry", "entries") == "1 entry"


def test_rows_of_one() -> None:
    log = Log()
    log.rows.update(stacks_written=1, stacks_estimated=1, calls=1)
    log.facts["value_type"] = "cpu/ns"
    assert messages.rows_text(log) == ("1 stack of cpu/ns, 1 estimated stack", "1 call")


def test_rows_of_all_kinds_have_a_noun() -> None:
    used = {
        key for path in REPO.glob("fastprof/**/*.py") for key in re.findall(r"log\.rows\[\"(\w+)\"\]", path.read_text())
    }
    assert used - {"rows_summed"} == {*messages._NOUNS} and len(used) > 10


def test_messages_count_by_one_rule() -> None:
    """`{n} files` is wrong for one file: use `counted(n, "file")`."""
    several = (
        r"\{[^{}-][^{}]*\} (samples|calls|functions|files|profiles|lines|rows|names|inputs|warnings|addresses|parts)\b"
    )
    where = [REPO / "fastprof" / folder for folder in ("cli", "verbs", "bridges", "symbols", "formats")]
    for path in (each for folder in where for each in folder.rglob("*.py")):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if re.search(several, line) and not re.search(ALWAYS_SEVERAL, line):
                pytest.fail(f"{path}:{number}: {line.strip()}")


# Nouns that are always plural here, or follow a limit.
ALWAYS_SEVERAL = "else f|CAPACITY|_ID_LIMIT|profiles need|expected up to"
