"""Labels samples with the origin of their profile (csrc/bridges/rows/label.h).

    --set-label env=prod                              env=prod
    --label-path 'dumps/{host}/{service}-{date}.prof' dumps/web1/api-0314.prof: host=web1, service=api, date=0314
    --label-input                                     input=dumps/web1/api-0314.prof
    --labels-from hosts.csv                           the columns of the row whose `input` is the path or its base name

If several give the same key, the later in this list applies; a sample's own labels with that key are replaced.  Kept:
all rows.
"""

import csv
from collections.abc import Iterable, Iterator, Mapping

from fastprof.bridges import LABEL_INPUT, LABEL_PATH, LABELS_FROM, SET_LABEL
from fastprof.bridges.rows.reported import REPORTED
from fastprof.core._c import ffi, lib
from fastprof.core.c_memory import owned
from fastprof.core.errors import FastprofError, check_sums, printable, raise_as
from fastprof.core.loaded import copied
from fastprof.core.log import Log
from fastprof.core.model import Batch, Model, Part
from fastprof.core.operator_copy import Changed
from fastprof.core.options import Options
from fastprof.core.parts import labels_of
from fastprof.core.path_pattern import PathPattern

INPUT = "input"  # the key of --label-input, and the column of inputs in a table
_MOST_COLUMNS = 64


class InputLabels:
    """The labels of inputs by input name.  Errors: FastprofError for a table that cannot be read."""

    def __init__(self, options: Options) -> None:
        self._path: str | None = options[LABEL_PATH]
        self._file: str | None = options[LABELS_FROM]
        self._set = dict(one.split("=", 1) for one in options[SET_LABEL])
        self._pattern = PathPattern(self._path) if self._path else None
        self._input = options[LABEL_INPUT]
        self._table = _read(self._file) if self._file else None
        self._are_none = not (self._set or self._pattern or self._input or self._file)

    @property
    def keys(self) -> set[str]:
        """All keys that inputs may have."""
        found = {*self._set, *([INPUT] if self._input else ())}
        found.update(self._pattern.names if self._pattern else ())
        return found | {key for row in (self._table or {}).values() for key in row}

    def of(self, name: str, log: Log) -> dict[str, str]:
        """The labels of an input, sorted by key.  Warns if the pattern does not match or the table lacks the name."""
        if self._are_none:
            return {}
        found = dict(self._set)
        path = _in_folder(name)
        if self._pattern:
            fields = self._pattern.match(path) or self._pattern.match(name)
            if fields is None:
                log.warn(REPORTED["no-path-labels"], file=printable(name), pattern=self._path)
            found |= fields or {}
        if self._input:
            found[INPUT] = name
        if self._table is not None:
            row = self._table.get(name, self._table.get(path.rpartition("/")[2]))
            if row is None:
                log.warn(REPORTED["no-table-labels"], file=printable(name), table=self._file)
            found |= row or {}
        return dict(sorted(found.items()))


def _in_folder(name: str) -> str:
    """nightly.fpa:host1/web.prof as nightly.fpa/host1/web.prof, so that a store is labelled like a folder."""
    return name.replace(".fpa:", ".fpa/", 1)


def _read(path: str) -> dict[str, dict[str, str]]:
    """The rows of a CSV file by their column `input`, without empty cells.  Errors: FastprofError."""
    found: dict[str, dict[str, str]] = {}
    try:
        with open(path, encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
            rows = csv.reader(file)
            head = next(rows, [])
            if INPUT not in head or len({*head}) < len(head) or not 2 <= len(head) <= _MOST_COLUMNS:
                what = f"{path}: at line 1: expected distinct names of columns, one of them {INPUT}"
                raise FastprofError(f"{what}, and at most {_MOST_COLUMNS}; found {','.join(head)!r:.80}")
            at = head.index(INPUT)
            for row in rows:
                if row and len(row) != len(head):
                    raise FastprofError(f"{path}: at line {rows.line_num}: {len(row)} cells, expected {len(head)}")
                if row:
                    cells = zip(head, row, strict=True)
                    found[row[at]] = {key: cell for key, cell in cells if cell and key and key != INPUT}
    except (OSError, csv.Error) as error:
        raise_as(path, error)
    return found


def labelled(batches: Iterable[Batch], model: Model, labels: Mapping[str, str], view: str) -> Iterator[Batch]:
    """Stacks, or parts of a graph or a timeline, with these labels, changed in place."""
    given = {key.encode("utf-8", "surrogateescape"): labels[key].encode("utf-8", "surrogateescape") for key in labels}
    return (labelled_rows if view == "stacks" else _labelled_parts)(batches, model, given)


def _labelled_parts(batches: Iterable[Batch], model: Model, labels: dict[bytes, bytes]) -> Iterator[Batch]:
    def change(part: Part) -> Part:
        other = copied(part)
        other.extra = part.extra | {"input_labels": tuple(sorted((dict(labels_of(part)) | labels).items()))}
        return other

    changed = Changed(model)
    for batch in batches:
        yield from changed.lend(batch, change)
    changed.end()


def labelled_rows(batches: Iterable[Batch], model: Model, labels: Mapping[bytes, bytes]) -> Iterator[Batch]:
    """Stacks with these labels, changed in place."""
    ids = [model.intern(text) for pair in labels.items() for text in pair]
    c = owned(lib.fp_label_rows_new(model.c, ids or [0], len(labels)), "the labels of samples")
    err = ffi.new("struct fp_err *")
    for batch in batches:
        check_sums(lib.fp_label_rows_batch(c, batch.c, err), err, model, "labels of samples", [])
        yield batch
