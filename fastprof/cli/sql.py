"""fastprof sql: query profiles with SQL."""

import argparse
import os
import signal
import sys
import traceback
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain, count

from fastprof.cli import arguments, ended
from fastprof.cli.as_json import json_text, schema_of
from fastprof.cli.budget import BYTES, print_answer
from fastprof.cli.budget import Answer as Fitted
from fastprof.cli.messages import exit_code, print_problems
from fastprof.cli.parser import Parser
from fastprof.cli.text import PIPE, Screen, print_csv, print_table, text_of
from fastprof.core import workers
from fastprof.core._typing import Any, NoReturn
from fastprof.core.errors import FastprofError
from fastprof.core.made_folders import PrivateFolder
from fastprof.core.urls import shown
from fastprof.verbs.batch.worker import begin
from fastprof.verbs.sql import FIRST, Answer, options

DESCRIPTION = """\
Query profiles with DuckDB's SQL (see docs/tables.md). A
timeline has the tables spans and events, stacks have
samples and frames, a graph has the table graph. For a
folder, a store or several files, each table has the rows
of all profiles, a column `profile` and one per label; the
table profiles has only these columns. p1.spans are the
spans of the first file. series has the cost of each
function at each point of --over. The query cannot read
other files."""
EXAMPLES = """\
examples:
  fastprof sql trace.xray "select function, sum(self)
    from spans group by 1 order by 2 desc limit 10"
  fastprof sql callgrind.out.1 "describe graph"
  fastprof sql --csv cpu.pb.gz "from samples" > samples.csv
  fastprof sql nightly.fpa --over date "select point, value
    from series where name = 'main' order by place"
"""


def add_arguments(parser: Parser) -> None:
    parser.add_inputs("input", metavar="FILE", help="a file, a folder, STORE:NAME, or - for stdin")
    parser.add_argument("query", metavar="QUERY", help="the SQL query")
    arguments.add_input(parser, keep_going=True)
    group = arguments.heading_of(parser, "output")
    group.add_argument("-q", "--quiet", action="store_true", help="suppress the summary")
    form = group.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON: columns, rows, log")
    form.add_argument("--csv", action="store_true", help="print CSV with a header line")
    arguments.add_budget(parser)
    arguments.add_options(parser, options())


def run(args: argparse.Namespace) -> int:
    """Query in a separate process that can be killed: an interrupted DuckDB may wait for its threads forever, and then
    no signal handler runs."""
    parent, child = os.getpid(), -1
    folder: PrivateFolder | None = None
    try:
        with workers.blocked():  # until this process knows the folder and the child
            try:
                folder = PrivateFolder("fastprof-sql-")
                child = os.fork()
            except OSError as error:
                raise FastprofError(f"cannot start the process that runs DuckDB: {error.strerror}") from None
            if not child:
                _end_with_answer(args, folder.path, parent)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        child = -1
    finally:
        if child > 0:
            with suppress(ProcessLookupError, ChildProcessError):  # it may have ended just before
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
        if folder is not None:
            folder.remove()
    if code < 0:
        raise FastprofError(f"the process that ran DuckDB was killed by signal {-code}")
    return code


def _end_with_answer(args: argparse.Namespace, folder: str, parent: int) -> NoReturn:
    """Answer in the child process and end it."""
    code = 1
    try:
        begin(parent)
        code = ended(lambda: _ask(args, folder))
    except BaseException:  # with FASTPROF_DEBUG=1
        traceback.print_exc()
    finally:
        os._exit(code)


def _ask(args: argparse.Namespace, folder: str) -> int:
    given = arguments.given(args, options())
    with Answer(args.query, args.input, args.from_, given, keep_going=args.keep_going, spill=folder) as answer:
        if args.budget_tokens:
            _print_fitted(args, answer)
            return exit_code(answer.log)
        if args.json:
            _print_json(answer)
        elif args.csv:
            _print_csv(answer)
        elif answer.columns:
            _print_table(answer, answer.rows())
    log = answer.log  # complete for the rows read
    print_problems(log, ", ".join(map(shown, args.input)), args.quiet)
    return exit_code(log)


def _print_table(answer: Answer, found: Iterable[Sequence[Any]], screen: Screen = PIPE) -> None:
    rows: list[tuple[Any, ...]] = [tuple(answer.columns)]
    rows += (tuple("NULL" if cell is None else cell for cell in row) for row in found)
    numbers = [i for i, numeric in enumerate(answer.numeric) if numeric]
    texts = [i for i, numeric in enumerate(answer.numeric) if not numeric]
    print_table(rows, right=numbers, narrow=texts, screen=screen)


def _print_fitted(args: argparse.Namespace, answer: Answer) -> None:
    """Print as many rows as --budget-tokens allows, and read no more than that needs."""
    rows: list[tuple[Any, ...]] = []
    size, found = 0, answer.rows()
    for row in found:
        rows.append(row)
        size += sum(min(len(str(cell)), 40) + 1 for cell in row)
        if size > 2 * BYTES * args.budget_tokens:
            break
    n = None if next(found, None) is not None else len(rows)
    names, log = _distinct(answer.columns), answer.log

    def build(k: int) -> dict[str, Any]:
        columns = [{"name": name, "type": kind} for name, kind in zip(names, answer.types, strict=True)]
        return {"columns": columns, "rows": [dict(zip(names, row, strict=True)) for row in rows[:k]], "log": log}

    def show(k: int) -> None:
        if args.csv:
            print_csv(chain([answer.columns], rows[:k]))
        elif answer.columns:
            _print_table(answer, rows[:k], Screen(160))

    def problems() -> None:
        print_problems(log, ", ".join(map(shown, args.input)), args.quiet)

    more = "limit and offset in the query"
    print_answer(args, Fitted("sql", len(rows), "rows", build, show, more, of=n), problems)


def text(answer: Answer) -> str:
    """The first rows as `str` of the result."""
    found = answer.first()
    more = ["..."] if len(found) > FIRST else []
    return "\n".join([text_of(partial(_print_table, answer, found[:FIRST])), *more])


def _print_json(answer: Answer) -> None:
    names = _distinct(answer.columns)
    columns = [{"name": name, "type": kind} for name, kind in zip(names, answer.types, strict=True)]
    before = f'{{"schema": "{schema_of("sql")}",\n"columns": {json_text(columns)},\n"rows": ['
    for row in answer.rows():
        sys.stdout.write(before + json_text(dict(zip(names, row, strict=True))))
        before = ",\n "
    rest = "" if before.startswith(",") else before
    sys.stdout.write(f'{rest}],\n"log": {json_text(answer.log)}}}\n')


def _distinct(columns: list[str]) -> list[str]:
    """Make names distinct for JSON objects, as DuckDB does for data frames: a, a, b becomes a, a_1, b."""
    names: dict[str, None] = {}
    taken = {*columns}
    for column in columns:
        name = column
        if column in names:
            numbered = (f"{column}_{n}" for n in count(1))
            name = next(name for name in numbered if name not in taken)
            taken.add(name)
        names[name] = None
    return list(names)


def _print_csv(answer: Answer) -> None:
    print_csv(chain([answer.columns], answer.rows()))
