"""Parts in archives: exactly the fields that core/model.py declares are written and read."""

from __future__ import annotations

import io
import re
from typing import Any

import pytest

from fastprof.core.engine import write
from fastprof.core.errors import FastprofError, FormatError
from fastprof.core.log import Log
from fastprof.core.model import EXTRA, FIELDS, Batch, Model, Part, ValueType
from fastprof.core.options import Options
from fastprof.core.sink import Sink
from fastprof.formats.archive import sections as archive_sections
from fastprof.formats.archive.write import ArchiveWriter
from tests.support.archives import graph, write_archive
from tests.support.paths import REPO
from tests.unit.test_archive import read_dump, replaced, sections

NONSENSE: list[tuple[str, Any]] = [
    *(("value_types", v) for v in ([1], "Ir", [("Ir", "")], [ValueType("Ir")] * 1025)),
    *(("positions", v) for v in (("line", "instr"), ("x",), (1,), ["line"])),
    *(("pid", v) for v in (b"1", 1.5, True, {}, -(1 << 64))),
    *(("descriptions", v) for v in ([1], [(b"a",)], [("a", "b")])),
    *(("comments", v) for v in ([1], [[]], "x")),
    *(("summary", v) for v in ([[]], [1.5], 3)),
    *(("extra", {"period": v}) for v in (1.5, "x", True, -(1 << 64))),
    *(("extra", v) for v in ({"remarks": [1]}, {"inherited": [()]}, {"period_type": "x"}, {"labels": ["cpu"]})),
    *(("extra", v) for v in ({1: 2}, {"whatever": 1}, {"ticks_per_second": -1})),
    ("whatever", 1),
]


@pytest.mark.parametrize(("field", "value"), NONSENSE)
def test_parts_that_say_nonsense_are_damage(field: str, value: object) -> None:
    data, _ = write_archive(graph, rows=50)
    whole = replaced(data, archive_sections.PARTS, lambda said: [[said[0][0], said[0][1] | {field: value}], *said[1:]])
    with pytest.raises(FormatError, match="parts: ") as error:
        read_dump(whole)
    assert error.value.offset == next(s.offset for s in sections(whole) if s.type == archive_sections.PARTS)
    assert read_dump(whole, lenient=True)[1].losses["archive-parts"] == 1


@pytest.mark.parametrize(("field", "value"), NONSENSE)
def test_parts_that_say_nonsense_are_not_written(field: str, value: object) -> None:
    model, out = Model(), io.BytesIO()
    writer = ArchiveWriter(model, Sink(out), Options(), Log())
    batches = graph(model, 50, 256, 0)
    first = next(batches)
    setattr(model.parts[first.part], field, value)
    key = next(iter(value)) if field == "extra" and isinstance(value, dict) else field
    with pytest.raises(FastprofError, match=rf"archive: part 0 of the profile: .* {key!r}"):
        write([first], writer)


def test_what_is_refused_says_what_is_expected() -> None:
    model = Model()
    model.add_part(Part(extra={"period": 1.5}))
    batch = Batch("stacks", 1)
    batch.c.n = 1
    with pytest.raises(FastprofError, match=r"key of extra 'period' is 1\.5, expected a whole number of 64 bits$"):
        write([batch], ArchiveWriter(model, Sink(io.BytesIO()), Options(), Log()))
    model.parts[0].extra = {"period_type": ["cpu"]}
    with pytest.raises(FastprofError, match=r"'period_type' is \['cpu'\], expected a tuple of a text and a text$"):
        write([batch], ArchiveWriter(model, Sink(io.BytesIO()), Options(), Log()))
    model.parts[0] = Part([ValueType("Ir", 5)])  # type: ignore[arg-type]
    with pytest.raises(FastprofError, match="has a field that is not a text"):
        write([batch], ArchiveWriter(model, Sink(io.BytesIO()), Options(), Log()))


def test_every_field_and_key_is_declared() -> None:
    assert FIELDS.keys() == vars(Part()).keys()
    used = set()
    for path in (REPO / "fastprof").rglob("*.py"):
        used.update(re.findall(r"""extra(?:\[|\.(?:get|pop|setdefault)\()["'](\w+)""", path.read_text()))
    assert {"period_type", "inherited", "labels", "ticks_per_second"} <= used <= EXTRA.keys()
