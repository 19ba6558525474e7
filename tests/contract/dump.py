"""Goldens: a reader's rows as text (tests/corpus/*/golden), a writer's output as a digest.

`python -m tests.contract.dump` writes missing entries: a golden for each good file, a line of bad/expected.tsv for each
bad one, a line of tests/corpus/WRITER/written.tsv for each good file of all formats.  Review its output before
committing it.
"""

from __future__ import annotations

import gzip
import hashlib
import io
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import IO

import pyarrow
import pyarrow.parquet

from fastprof import formats
from fastprof.cli.info import labelled
from fastprof.core.errors import FastprofError, FormatError
from fastprof.core.log import Log
from fastprof.core.model import Batch, Model
from fastprof.core.options import Options
from fastprof.core.version import __version__
from tests.support.conversions import HERE, WRITERS, Conversion, converted
from tests.support.paths import CORPUS
from tests.support.product import batches, open_input

ROWS_SHOWN = 40
# Names of counts in written.tsv that differ from the key.
_ROWS = {
    "rows_read": "read",
    "rows_summed": "summed up",
    "stacks_estimated": "estimated stacks",
    "stacks_written": "stacks of {value_type} written",
    "table_rows": "rows of {table}",
}

_OPS = ("enter", "exit", "tail", "enter-args", "argument", "custom", "typed", "buffer")
_WITH_AUX = ("argument", "buffer")
_KINDS = ("cost", "call", "jump", "jcnd", "block")


def files(kind: str) -> list[str]:
    """`format/kind/name` of every corpus file."""
    return [*_files(kind)]


@cache
def _files(kind: str) -> list[str]:
    return sorted(str(p.relative_to(CORPUS)) for p in CORPUS.glob(f"*/{kind}/*") if p.name != "expected.tsv")


def rows(batch: Batch, model: Model) -> Iterator[str]:
    """One line per row: only the fields that its view and kind define.  Columns are lists here, because the tests of
    damaged files print some ten million rows."""
    if batch.view == "timeline":
        names = ("op", "thread", "cpu", "time", "function", "aux")
        columns = zip(*(batch[name].tolist() for name in names), strict=True)
        for i, (code, thread, cpu, time, function, aux) in enumerate(columns):
            op = _OPS[code]
            head = f"{op} thread {thread} cpu {cpu} time {time} function {function}"
            if op in ("custom", "typed"):
                yield f"{head} {batch.payload(i)!r}"
            else:
                yield f"{head} {aux}" if op in _WITH_AUX else head
        return
    costs = _costs(batch)
    if batch.view == "stacks":
        columns = zip(*(batch[name].tolist() for name in ("stack", "thread", "label", "time")), costs, strict=True)
        for stack, thread, label, time, cost in columns:
            yield f"stack {stack} thread {thread} label {label} time {time}: {cost}"
        return
    positions = model.parts[batch.part].positions if model.parts else ()
    lines = [_GraphRows(batch, kind, positions) for kind in _KINDS]
    for i, (kind, cost) in enumerate(zip(batch["kind"].tolist(), costs, strict=True)):
        yield f"{lines[kind].line(i)}: {cost}"


def _costs(batch: Batch) -> list[str]:
    values = [map(str, batch.values(k).tolist()) for k in range(batch.c.n_values)]
    return [" ".join(row) for row in zip(*values, strict=True)] if values else [""] * len(batch)


class _GraphRows:
    """The rows of one kind in a batch."""

    def __init__(self, batch: Batch, kind: str, positions: tuple[str, ...]) -> None:
        names = ["function", "file"]
        if kind != "block":
            names += [{"instr": "address"}.get(p, p) for p in positions]
        if kind in ("call", "jump", "jcnd"):
            names += ["callee", "count"]
            names += ["target_" + {"instr": "address"}.get(p, p) for p in positions]
        if kind in ("jump", "jcnd"):
            names.append("target_file")
        if kind == "jcnd":
            names.append("count2")
        self._line = " ".join([f"part {batch.part} {kind}", *(f"{name} %d" for name in names)])
        self._columns = [batch[name] for name in names]

    def line(self, i: int) -> str:
        return self._line % tuple([column[i] for column in self._columns])


_TABLES = ("objects", "mappings", "functions", "lines", "frames", "stacks", "labels", "threads")


def tables(model: Model) -> Iterator[str]:
    for i in range(1, model.c.strings.n):
        yield f"string {i} {model.string(i)!r}"
    for table in _TABLES:
        for i in range(1, model.count(table)):
            yield f"{table} {i} " + " ".join(map(str, model.row(table, i)))
    for i, part in enumerate(model.parts):
        yield f"part {i} {part!r}"


def outcome(log: Log, name: str) -> Iterator[str]:
    for what in ("repairs", "losses"):
        for repair, n in sorted(getattr(log, what).texts().items()):
            yield f"{what} {n} {repair}"
    for warning in log.warnings:
        # which begins with the path, and that depends on the checkout
        yield f"warning {warning.removeprefix(name + ': ')}"
    for label, fact in labelled(log.facts):
        yield f"fact {label}: {fact}"


def dump(
    data: bytes | Path | IO[bytes],
    *,
    from_: str | None = None,
    window: int | None = None,
    capacity: int | None = None,
    options: Options | None = None,
) -> list[str]:
    """Rows, then tables, then the outcome.  perf's stacks would depend on the machine's libraries."""
    opened = open_input(data, options or (HERE if from_ == "perf" else None), window, from_)
    lines: list[str] = []
    for batch in batches(opened, capacity):
        lines += rows(batch, opened.model)
    lines += tables(opened.model)
    return [*lines, *outcome(opened.log, opened.reader.source.name)]


def golden(lines: list[str]) -> str:
    """A dump as stored: its first and last lines, and a digest of all."""
    digest = hashlib.sha256("\n".join(lines).encode("utf-8", "surrogateescape")).hexdigest()
    shown = lines
    if len(lines) > 4 * ROWS_SHOWN:
        shown = [*lines[: 2 * ROWS_SHOWN], "...", *lines[-2 * ROWS_SHOWN :]]
    return "\n".join([f"{len(lines)} lines, sha256 {digest}", *shown, ""])


def golden_path(file: str) -> Path:
    format_, _, name = file.split("/")
    return CORPUS / format_ / "golden" / f"{name}.txt"


def failure(file: str) -> str:
    """`code offset line message` of a bad file, "-" for missing values."""
    try:
        dump(CORPUS / file, from_=file.split("/")[0])
    except FormatError as error:
        return f"{error.code}\t{_or(error.offset)}\t{_or(error.line)}\t{error.detail}"
    except FastprofError as error:
        return f"-\t-\t-\t{str(error).replace(str(CORPUS) + '/', '')}"
    return "accepted"


def _or(value: int | None) -> str:
    return "-" if value is None else str(value)


def expected_failures(format_: str) -> dict[str, str]:
    """Bad file name -> its failure, from bad/expected.tsv."""
    path = CORPUS / format_ / "bad" / "expected.tsv"
    return _table(path) if path.exists() else {}


def _table(path: Path) -> dict[str, str]:
    lines = [line for line in path.read_text().splitlines() if line]
    return {name: rest for name, _, rest in (line.partition("\t") for line in lines)}


# ---- written outputs -----------------------------------------------------


def content(done: Conversion, to: str) -> bytes:
    """The bytes that stay the same in every release and on every machine: without our version or a compressor's
    output."""
    if formats.get(to).holds.table:
        table = pyarrow.parquet.read_table(io.BytesIO(done.data)) if to == "parquet" else read_stream(done.data)
        shown = [str(table.schema.remove_metadata()), *map(str, table.to_pylist())]
        data = "\n".join(shown).encode("utf-8", "surrogateescape")
    elif formats.get(to).holds.verbatim and formats.get(to).reader:
        # compressed inside: use the rows that a reader finds
        lines = [line for line in dump(done.data, from_=to) if not line.startswith("fact ")]
        data = "\n".join(lines).encode("utf-8", "surrogateescape")
    else:
        data = gzip.decompress(done.data) if done.data.startswith(b"\x1f\x8b") else done.data
    return data.replace(f"fastprof-{__version__}".encode(), b"fastprof")


def read_stream(data: bytes) -> pyarrow.Table:
    return pyarrow.ipc.open_stream(data).read_all()


def written(file: str, to: str) -> str:
    """Bytes, digest and report of a corpus file converted to `to`, or the reason for a refusal."""
    try:
        done = converted(file, to)
    except FormatError:
        raise
    except FastprofError as error:
        return f"refused\t-\t{error}"
    data, log = content(done, to), done.log
    said = [
        ", ".join(f"{n} {_ROWS.get(key, key.replace('_', ' ')).format_map(log.facts)}" for key, n in log.rows.items())
    ]
    for title, counts in (
        ("repairs", log.repairs),
        ("losses", log.losses),
        ("not representable", log.not_representable),
    ):
        if counts:
            said.append(f"{title}: " + ", ".join(f"{n} {name}" for name, n in sorted(counts.texts().items())))
    return f"{len(data)}\t{hashlib.sha256(data).hexdigest()[:16]}\t{'; '.join(said)}"


def expected_written(to: str) -> dict[str, str]:
    """Corpus file -> the result of `written`, from written.tsv."""
    path = CORPUS / to / "written.tsv"
    return _table(path) if path.exists() else {}


def main() -> None:
    for file in files("good"):
        path = golden_path(file)
        if not path.exists():
            path.parent.mkdir(exist_ok=True)
            path.write_text(golden(dump(CORPUS / file, from_=file.split("/")[0])), errors="surrogateescape")
            print("wrote", path)
    for format_ in sorted({f.split("/")[0] for f in files("bad")}):
        known = expected_failures(format_)
        for file in files("bad"):
            name = file.split("/")[-1]
            if file.startswith(f"{format_}/") and name not in known:
                known[name] = failure(file)
                print(name, known[name], sep="\t")
        lines = [f"{name}\t{rest}\n" for name, rest in sorted(known.items())]
        (CORPUS / format_ / "bad" / "expected.tsv").write_text("".join(lines))
    for to in WRITERS:
        known = expected_written(to)
        for file in files("good"):
            if file not in known:
                known[file] = written(file, to)
                print(to, file, known[file], sep="\t")
        lines = [f"{file}\t{known[file]}\n" for file in files("good")]
        (CORPUS / to).mkdir(exist_ok=True)
        (CORPUS / to / "written.tsv").write_text("".join(lines))


if __name__ == "__main__":
    main()
