"""fastprof batch: many files, each converted to its own output, or added to an archive."""

import argparse
import os
import re
import sys

from fastprof.cli import arguments
from fastprof.cli.as_json import document, json_text
from fastprof.cli.messages import Steps, print_message, print_warnings, print_written
from fastprof.cli.parser import Parser, action_of
from fastprof.cli.text import print_raw, print_table
from fastprof.core._typing import Any
from fastprof.core.errors import printable
from fastprof.core.messages import counted
from fastprof.core.urls import shown
from fastprof.inputs.expand import names_in
from fastprof.verbs.batch import convert as batch
from fastprof.verbs.batch import merge as merging
from fastprof.verbs.batch.archive import batch_archive
from fastprof.verbs.batch.archive import options as archive_options
from fastprof.verbs.batch.convert import BatchLog, batch_convert, batch_plan
from fastprof.verbs.batch.jobs import CRASHED, ERROR, LOSSY, OK, Record, message_of
from fastprof.verbs.batch.remote_folder import FOLDER
from fastprof.verbs.batch.status import batch_status

DESCRIPTION = """\
Convert many files, one output each, or add them to an
archive, in worker processes that cache symbols.  A file
that is damaged, crashes its worker or times out does not
stop the others.  Run the same command again to resume."""
EXAMPLES = """\
examples:
  fastprof batch convert dumps/ -t callgrind -o out
  find dumps -name '*.prof' -print0 |
      fastprof batch convert --files0-from - -t pprof -o out
  fastprof batch convert dumps/ -t pprof -o out --shard 3/8
  fastprof batch archive dumps/ -o nightly.fpa
  fastprof batch status out

`fastprof batch ACTION --help` shows the options of each.
"""
_EXIT_CODES = """
exit codes:
  0  every file has its output
  1  some have none (see `fastprof batch status`)
  3  all have one, some with losses (--lenient)
"""
_CONVERT_EXAMPLES = (
    """\
examples:
  fastprof batch convert dumps/ -t callgrind -o out
  fastprof batch convert dumps/ --include '*.prof' \\
      -s ./server -t pprof -o out -j 4
  fastprof batch convert --plan dumps.plan -t pprof -o out \\
      --shard $SLURM_ARRAY_TASK_ID/$SLURM_ARRAY_TASK_COUNT
"""
    + _EXIT_CODES
)
_MERGE_EXAMPLES = """\
examples:
  fastprof batch merge dumps/ -o all.pb.gz
  fastprof batch merge dumps/ --include '*.prof' \\
      -o all.callgrind --engine dask://head:8786
"""
_ARCHIVE_EXAMPLES = """\
examples:
  fastprof batch archive dumps/ -o nightly.fpa
  fastprof batch archive dumps/ -s ./server -o nightly.fpa
  fastprof batch status nightly.fpa

exit codes:
  0  every file is in the archive
  1  some are not (see `fastprof batch status`)
  3  all are, some with losses (--lenient)
"""
_PLAN_EXAMPLES = """\
examples:
  fastprof batch plan dumps/ --exclude '*.tmp' -o dumps.plan
  fastprof batch convert --plan dumps.plan -t pprof -o out \\
      --shard 1/8
"""
_STATUS_EXAMPLES = """\
examples:
  fastprof batch status out
  fastprof batch status out --json | jq .failed

exit codes:
  0  every file has its output
  1  some have none, or a shard is missing, running or
     stopped
  3  all have one, some with losses (--lenient)
"""


def add_arguments(parser: Parser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for add in (_add_convert, _add_merge, _add_archive, _add_plan, _add_status):
        add(actions)


def _add_convert(actions: Any) -> None:
    convert = action_of(
        actions,
        "convert",
        "convert each file to its own output",
        "Convert each file of INPUT to OUTDIR/NAME.SUFFIX, where NAME\nis the file's path within the folder INPUT.",
        _CONVERT_EXAMPLES,
    )
    _add_inputs(convert)
    arguments.add_input(convert)
    arguments.add_file(convert, "output folder; created if missing", "OUTDIR", required=True)
    output = arguments.heading_of(convert, "output")
    output.add_argument("-t", "--to", required=True, metavar="FORMAT", help="output format")
    arguments.add_log(convert, of_files=True)
    arguments.add_options(convert, batch.options())


def _add_merge(actions: Any) -> None:
    merge = action_of(
        actions,
        "merge",
        "merge all files into one",
        "Merge all files of INPUT into OUTPUT, like `fastprof merge`.\n--jobs or --engine divide the work among "
        "several workers.",
        _MERGE_EXAMPLES,
    )
    _add_inputs(merge)
    arguments.add_input(merge)
    arguments.add_output(merge)
    arguments.add_log(merge)
    arguments.add_options(merge, merging.options())


def _add_archive(actions: Any) -> None:
    archive = action_of(
        actions,
        "archive",
        "add each file to an archive",
        "Add each file of INPUT to the archive STORE, like\n"
        "`fastprof archive add`, named after its path within the\nfolder INPUT.",
        _ARCHIVE_EXAMPLES,
    )
    _add_inputs(archive)
    arguments.add_input(archive)
    arguments.add_file(archive, "the archive; created if missing", "STORE", required=True)
    arguments.add_log(archive, of_files=True)
    arguments.add_options(archive, archive_options())


def _add_plan(actions: Any) -> None:
    plan = action_of(
        actions,
        "plan",
        "list the input files, for --plan",
        "Write the list of input files, largest first, so that all\n"
        "shards of a batch see the same files and get about the same\nnumber of bytes each.",
        _PLAN_EXAMPLES,
    )
    _add_inputs(plan)
    arguments.add_file(plan, "file to write", "PLAN", required=True)
    output = arguments.heading_of(plan, "output")
    output.add_argument("-q", "--quiet", action="store_true", help="suppress the summary")
    output.add_argument("--json", action="store_true", help="print the summary as JSON on stderr")
    arguments.add_options(plan, batch.FINDING)


def _add_status(actions: Any) -> None:
    status = action_of(
        actions,
        "status",
        "show the progress and the failures of a batch",
        "Show the progress of a batch, and the files that failed.",
        _STATUS_EXAMPLES,
    )
    status.add_argument("outdir", metavar="OUTDIR", help="output folder or archive of the batch")
    status.add_argument("--json", action="store_true", help="print JSON")


def _add_inputs(parser: Parser) -> None:
    parser.add_argument("inputs", nargs="*", metavar="INPUT", help="a file, or a directory (all files below it)")
    arguments.add_names(parser)
    parser.set_defaults(more="inputs")


def run(args: argparse.Namespace) -> int:
    if args.action == "status":
        return _status(args)
    inputs = [*args.inputs, *(names_in(args.files0_from) if args.files0_from else ())]
    if args.action == "plan":
        log = batch_plan(inputs, args.output, **arguments.given(args, batch.FINDING))
        if args.json:
            print_raw(json_text(document("batch", log.as_dict(flags=True))) + "\n")
            return 1 if log.errors else 0
        if not args.quiet:
            print_message(f"{counted(log.files, 'file')} ({counted(log.bytes_read, 'byte')}) -> {shown(args.output)}")
        _print_failed(log.failed)
        return 1 if log.errors else 0
    if args.action == "merge":
        given = arguments.given(args, merging.options())
        bar = Steps(args.quiet or args.json, "merges", least=1)
        merged = merging.batch_merge(inputs, args.output, to=args.to, from_=args.from_, progress=bar.count, **given)
        bar.close()
        return print_written(args, merged, "batch-merge")
    progress = _Progress(args)
    try:
        if args.action == "archive":
            given = arguments.given(args, archive_options())
            log = batch_archive(inputs, args.output, from_=args.from_, progress=progress, **given)
        else:
            given = arguments.given(args, batch.options())
            log = batch_convert(inputs, args.output, to=args.to, from_=args.from_, progress=progress, **given)
    finally:
        progress.close()
    if batch.DRY_RUN.name in given:
        for job in log.todo:
            print(printable(f"{job['input']} -> {job['output']}"))
    _tell(args, log)
    return _exit_code(log)


def _exit_code(log: BatchLog) -> int:
    return 1 if log.errors else 3 if log.statuses[LOSSY] else 0


def _tell(args: argparse.Namespace, log: BatchLog) -> None:
    if args.json:
        print_raw(json_text(document("batch", log.as_dict(flags=True))) + "\n")
        return
    _print_failed([record for record in log.failed if "input" not in record])
    print_warnings(log.warned(flags=True))
    for flag in log.idle_flags:
        print_message(f"warning: {flag} had no effect on any of these files")
    noted = []
    if log.n_warnings:
        noted.append(f"{counted(log.n_warnings, 'warning')}, see {os.path.join(_folder(args), FOLDER)}")
    if args.quiet:
        lossy = [f"{counted(log.statuses[LOSSY], 'file')} with losses"] * bool(log.statuses[LOSSY])
        if lossy or noted:
            print_message(f"{args.output}: {', '.join([*lossy, *noted])}")
        return
    done = log.files - log.errors
    files = f"{done:,} of {counted(log.files, 'file')}" if log.errors else counted(log.files, "file")
    notes = [counted(log.bytes_written, "byte")]
    notes += [f"{n:,} {what}" for n, what in ((log.errors, "failed"), (log.statuses[LOSSY], "with losses")) if n]
    if log.earlier:
        notes.append(f"{log.earlier:,} in earlier runs")
    print_message(f"wrote {args.output}: {files} ({', '.join(notes + noted)})")


def _folder(args: argparse.Namespace) -> str:
    """The folder of the manifest: that of the outputs, or of the store."""
    output: str = args.output
    return os.path.dirname(output) if args.action == "archive" else output


def _print_failed(records: list[Record]) -> None:
    for record in records:
        print_message(message_of(record["error"]).text(flags=True))


class _Progress:
    """Print the first failure of each kind as it happens, and at the end how many were like it, unless --json reports
    them; and a bar over the bytes of all files, if stderr is a terminal and not --quiet."""

    def __init__(self, args: argparse.Namespace) -> None:
        self._silent, self._manifests = args.json, os.path.join(_folder(args), FOLDER)
        self._shows = not args.quiet and sys.stderr.isatty()
        self._bar: Any = None
        self._failures: dict[str, list[Any]] = {}  # by kind: the first file, and how many

    def __call__(self, log: BatchLog, record: Record | None) -> None:
        if self._silent:
            return
        if record is None:
            if self._shows:
                self._begin(log)
            return
        if "error" in record:
            self._report(record)
        if self._bar is not None:
            done = log.files - len(log.todo) + self._n
            self._n += 1
            errors = f", {log.errors:,} failed" if log.errors else ""
            self._nbytes += record["size"]
            self._bar.move(self._nbytes, f"{done + 1:,} of {counted(log.files, 'file')}{errors}")

    def _report(self, record: Record) -> None:
        """Print the first failure of each kind, and count the others."""
        text = message_of(record["error"]).text(flags=True)
        found = self._failures.setdefault(_kind_of(text, record["input"]), [record["input"], 0])
        found[1] += 1
        if found[1] == 1:
            if self._bar is not None:
                self._bar.clear()
            print_message(text)

    def _begin(self, log: BatchLog) -> None:
        from fastprof.cli.bar import Bar

        self._n = self._nbytes = 0
        self._bar = Bar(sum(job["size"] for job in log.todo))

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
        for first, n in self._failures.values():
            if n > 1:
                print_message(f"{counted(n - 1, 'more file')} failed as {shown(first)} did; {self._manifests} has all")


def _kind_of(text: str, path: str) -> str:
    """What failures that differ only in the file, its contents and numbers have in common."""
    return re.sub(r"begins with .*\)|'[^']*'|\d+", "", text.replace(path, "").replace(shown(path), ""))


def _status(args: argparse.Namespace) -> int:
    found = batch_status(args.outdir)
    if args.json:
        print(json_text(document("batch-status", found.as_dict()), indent=1))
    else:
        print_table([("shard", "files", "done earlier", "left", "state"), *found.shards], right=(1, 2, 3))
        counts = ", ".join(f"{found.statuses[name]:,} {name}" for name in (OK, LOSSY, ERROR, CRASHED))
        print(f"\n{counts}; {counted(found.bytes_written, 'byte')} in {found.cpu_seconds:,.1f} CPU seconds")
        if found.unfinished:
            print(f"{len(found.unfinished):,} of {counted(len(found.shards), 'shard')} not done")
        for record in found.failed:
            print(printable(message_of(record["error"]).text(flags=True)))
    return 1 if found.failed or found.unfinished else 3 if found.statuses[LOSSY] else 0
