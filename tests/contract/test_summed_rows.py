"""A writer of stacks counts rows, whether a row is one sample or the sum of several (`fp_batch.is_summed`): what counts
samples are the operators before it."""

from __future__ import annotations

from typing import Any

import pytest

from fastprof import formats
from fastprof.core.engine import Writer
from fastprof.core.errors import FastprofError
from fastprof.core.log import Log
from fastprof.core.model import Batch
from tests.support.conversions import OF_PROGRAMS, convert_bytes, format_of
from tests.support.paths import CORPUS
from tests.support.rich import sources

SAMPLES = 7  # of each row
FILES = ("folded/good/zero.folded", "folded/good/odd_names.folded")  # besides those that have all of their formats
WRITERS = [f.name for f in formats.formats() if f.writer and f.view == "stacks" and f.name not in OF_PROGRAMS]


def counts(log: Log) -> dict[str, Any]:
    """What was lost or left out, by code, and the rows that were written."""
    found = log.as_dict()
    lists = {name: {one["code"]: one["count"] for one in found[name]} for name in ("losses", "not_representable")}
    return lists | {"rows": {name: n for name, n in found["rows"].items() if name.endswith("_written")}}


@pytest.mark.parametrize("to", WRITERS)
def test_a_writer_counts_rows_not_samples(to: str, monkeypatch: pytest.MonkeyPatch) -> None:
    writer: type[Writer] = formats.get(to).writer_class()
    put = writer.put

    def summed(self: Writer, batch: Batch) -> None:
        if batch.view == "stacks":
            batch.c.is_summed = 1
            for row in range(len(batch)):
                batch.c.count[row] = SAMPLES
        put(self, batch)

    codes = set()
    inputs = [(one.format, one.data) for one in sources().values() if formats.get(one.format).view == "stacks"]
    inputs += [(format_of(file), (CORPUS / file).read_bytes()) for file in FILES]
    for from_, data in inputs:
        try:
            plain = counts(convert_bytes(data, from_, to).log)
        except FastprofError:  # nothing of it can be written
            continue
        with monkeypatch.context() as patched:
            patched.setattr(writer, "put", summed)
            assert counts(convert_bytes(data, from_, to).log) == plain, from_
        codes |= plain["not_representable"].keys()
    assert codes, "no file loses anything"
