"""One of several value types: `--value`, and the input of formats that hold only one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import fastprof
from fastprof.bridges import VALUE
from fastprof.bridges.rows.choose import one_value
from fastprof.core.engine import EVERYTHING, Capabilities
from fastprof.core.errors import UsageError
from fastprof.core.log import Log
from fastprof.core.model import Model, ValueType
from fastprof.core.options import Options
from tests.support import profiles
from tests.support.paths import REPO
from tests.support.profiles import Fn, Frame, Sample

CALLGRIND = b"events: Ir Dr\nsummary: 12 7\nfn=main\n1 10 5\ncfn=f\ncalls=1 3\n1 2 2\nfn=f\n3 2 2\ntotals: 12 7\n"


def stacks(rows: list[tuple[int, ...]], types: list[ValueType], default: str | None = None) -> tuple[Model, Any]:
    model = Model()
    frame = Frame(((Fn("f"), 1),))
    batches = profiles.stacks(model, [Sample((frame,), values, label=str(i)) for i, values in enumerate(rows)], 2)

    def typed() -> Any:
        for batch in batches:
            part = model.parts[batch.part]
            part.value_types = types
            if default:
                part.extra["default_sample_type"] = default
            yield batch

    return model, typed()


ALLOC = [ValueType("alloc", "count"), ValueType("space", "bytes"), ValueType("cpu", "nanoseconds")]
ONE = Capabilities(values=False)


def chosen(
    rows: list[tuple[int, ...]], holds: Capabilities = ONE, default: str | None = None, **options: Any
) -> tuple[str, list[int], Log]:
    """The name of the kept type, its values, and the report."""
    model, batches = stacks(rows, ALLOC, default)
    log, values, names = Log(), [], set()
    for batch in one_value(batches, model, Options(**options), log, holds):
        assert batch.c.n_values == 1
        names.add(tuple(t.name for t in model.parts[batch.part].value_types))
        values += batch.values(0)
    ((name,),) = names
    return name, sorted(values), log


def test_the_default_is_the_one_the_source_names_else_the_last() -> None:
    rows = [(1, 10, 100), (2, 20, 200), (3, 30, 300)]
    assert chosen(rows)[:2] == ("cpu", [100, 200, 300])
    name, values, log = chosen(rows, default="space")
    assert (name, values) == ("space", [10, 20, 30])
    assert log.not_representable == {"value-types": 2}
    assert {entry["code"] for entry in log.not_representable.entries()} == {"value-types"}


def test_what_is_asked_for_is_not_counted_as_lost() -> None:
    name, values, log = chosen([(1, 10, 100)], EVERYTHING, value="alloc")
    assert (name, values, dict(log.not_representable)) == ("alloc", [1], {})


def test_a_default_that_is_0_everywhere_is_replaced_by_the_first_of_its_kind() -> None:
    rows = [(1, 10, 0), (2, 20, 0)]
    name, values, log = chosen(rows)
    assert (name, values) == ("alloc", [1, 2])
    assert log.warnings == ["cpu is 0 everywhere, so alloc takes its place; value=NAME selects another"]
    assert chosen([*rows, (0, 0, 5)])[:2] == ("cpu", [0, 0, 5])
    assert not chosen([*rows, (0, 0, 5)])[2].warnings
    assert not chosen(rows, default="alloc")[2].warnings
    name, values, log = chosen(rows, value="cpu")
    assert (name, values, log.warnings) == ("cpu", [0, 0], [])
    assert "cpu is 0 everywhere" in str(log.zeros)


def test_a_count_of_samples_takes_no_costs_place() -> None:
    types = [ValueType("samples", "count"), ValueType("cpu", "nanoseconds"), ValueType("faults_samples", "count")]
    model, batches = stacks([(3, 0, 1)], types, default="cpu")
    log = Log()
    assert [batch.values(0).tolist() for batch in one_value(batches, model, Options(), log, ONE)] == [[0]]
    assert "cpu is 0 everywhere" in str(log.zeros) and "samples, faults_samples" in str(log.zeros)
    model, batches = stacks([(0, 5, 1)], types, default="samples")
    assert [batch.values(0).tolist() for batch in one_value(batches, model, Options(), Log(), ONE)] == [[1]]


def test_rows_are_held_back_until_the_default_has_a_cost() -> None:
    """Thousands of rows, whose stacks stay in the model although they need not be kept."""
    rows = [(i + 1, 10, 0) for i in range(20_000)]
    assert chosen(rows)[:2] == ("alloc", [row[0] for row in rows])
    assert chosen([*rows, (1, 1, 7)])[:2] == ("cpu", [0] * 20_000 + [7])


def test_parts_of_other_value_types_have_none_of_the_first_part(tmp_path: Path) -> None:
    """Regression: microseconds and samples became one column."""
    source = REPO / "tests/corpus/trace-event/good/sampled_mixed.json"
    log = fastprof.convert(source, tmp_path / "x.folded")
    assert log.rows == {"stacks_written": 4}
    assert sum(int(line.split()[-1]) for line in (tmp_path / "x.folded").read_text().splitlines()) == 5
    assert log.not_representable["value-types"] == 3  # time, and those of the other part
    assert (fastprof.top(source).value.name, fastprof.top(source).total) == ("samples", 5)
    only_time = fastprof.convert(source, tmp_path / "y.folded", value="time")
    assert only_time.rows == {"stacks_written": 1}


def test_a_format_says_what_suits_it() -> None:
    def rank(value_type: ValueType) -> int | None:
        return {"count": 1, "bytes": 0}.get(value_type.unit)

    assert chosen([(1, 10, 100)], Capabilities(values=False, rank=rank))[0] == "space"
    with pytest.raises(UsageError, match=r"value types are alloc, space, cpu: the format only holds"):
        chosen([(1, 10, 100)], Capabilities(values=False, rank=lambda value_type: None))


def test_types_of_which_one_tells_the_others_are_not_lost(tmp_path: Path) -> None:
    source = REPO / "tests/corpus/gperftools/good/small.prof"
    assert not fastprof.convert(source, tmp_path / "same.prof").not_representable.get("value-types")


def test_an_unknown_name_says_those_there_are(tmp_path: Path) -> None:
    path = tmp_path / "x.callgrind"
    path.write_bytes(CALLGRIND)
    with pytest.raises(UsageError, match=f"^{path}: value: unknown value type 'Dw', expected Ir, Dr"):
        fastprof.convert(path, tmp_path / "out.callgrind", value="Dw")
    assert not (tmp_path / "out.callgrind").exists()
    assert VALUE.flag == "--value"


def test_a_graph_keeps_its_shape(tmp_path: Path) -> None:
    path, out = tmp_path / "x.callgrind", tmp_path / "out.callgrind"
    path.write_bytes(CALLGRIND)
    fastprof.convert(path, out, value="Dr")
    text = out.read_bytes()
    assert b"events: Dr\nsummary: 7\n" in text and text.endswith(b"totals: 7\n")
    assert fastprof.info(out).facts["totals"] == {"Dr": 7}
    assert fastprof.info(out).facts["calls"] == 1


def test_a_value_of_a_graph_for_stacks(tmp_path: Path) -> None:
    path, out = tmp_path / "x.callgrind", tmp_path / "out.prof"
    path.write_bytes(CALLGRIND.replace(b" Dr", b" samples"))
    fastprof.convert(path, tmp_path / "x.pb", value="samples")
    assert fastprof.info(tmp_path / "x.pb").facts["totals"] == {"samples": 7}
    with pytest.raises(
        fastprof.UsageError,
        match=r"x\.pb: no row can be written as gperftools: .* without address.*frames=address",
    ):
        fastprof.convert(tmp_path / "x.pb", out)
    assert not out.exists()


def test_verbs_agree_where_the_first_event_of_a_graph_is_0(tmp_path: Path) -> None:
    path = tmp_path / "x.callgrind"
    path.write_bytes(b"events: Ge Ir Dr\nfn=main\n1 0 10 5\nfn=f\n3 0 2 2\n")
    warning = "Ge is 0 everywhere, so Ir takes its place; value=NAME selects another"
    assert warning in fastprof.convert(path, tmp_path / "x.folded").warnings
    assert (tmp_path / "x.folded").read_bytes() == b"main 10\nf 2\n"
    found, same = fastprof.top(path), fastprof.diff(path, path)
    assert (found.value.name, found.total, found.log.warnings) == ("Ir", 12, [warning])
    assert (same.values[same.shown].name, same.log.warnings) == ("Ir", [warning])
    annotated = fastprof.annotate(path)
    assert (annotated.value, annotated.log.warnings) == (1, [warning])
    assert warning in fastprof.report(path, tmp_path / "x.html").warnings
    assert fastprof.info(path).facts["default_value_type"] == "Ir"
    assert fastprof.convert(path, tmp_path / "x.pb").warnings == [warning]
    assert fastprof.info(tmp_path / "x.pb").facts["default_value_type"] == "Ir"
    assert not fastprof.info(tmp_path / "x.pb").warnings
    with pytest.raises(fastprof.FastprofError, match="no row has a cost: Ge is 0 everywhere") as error:
        fastprof.convert(path, tmp_path / "y.folded", value="Ge")
    assert not isinstance(error.value, UsageError) and not (tmp_path / "y.folded").exists()


GE = b"events: Ge Ir\nfn=main\n1 %d 10\nfn=f\n3 0 2\n"


def test_one_value_type_is_chosen_for_all_inputs(tmp_path: Path) -> None:
    """The default stays if any input has a cost in it; else all inputs get the same other one."""
    zero, other, some = (tmp_path / f"{name}.callgrind" for name in ("zero", "other", "some"))
    zero.write_bytes(GE % 0)
    other.write_bytes((GE % 0).replace(b"events: Ge Ir", b"events: Ge Dr Ir").replace(b" 10", b" 0 10"))
    some.write_bytes(GE % 5)
    for paths in ([zero, some], [some, zero]):
        assert (fastprof.top(paths).value.name, fastprof.top(paths).total) == ("Ge", 5)
        fastprof.convert(paths, tmp_path / "x.folded")
        assert (tmp_path / "x.folded").read_text() == "main 5\n"
        fastprof.merge(paths, tmp_path / "x.fpa")
        assert fastprof.top(tmp_path / "x.fpa").value.name == "Ge"
        found = fastprof.diff(*paths, sort="inclusive")
        assert found.values[found.shown].name == "Ge"
        inclusive = {row.name: row.inclusive for row in found.rows}
        assert inclusive["main"] == ((0, 5) if paths[0] == zero else (5, 0))
        assert not found.log.warnings
    found = fastprof.diff(zero, other, union=True, sort="inclusive")
    assert found.values[found.shown].name == "Ir"
    assert fastprof.top([zero, other], union=True).value.name == "Ir"
    store = tmp_path / "s.fpa"
    fastprof.archive_add(store, [zero, some])
    assert (fastprof.top(f"{store}:*").value.name, fastprof.top(f"{store}:*").total) == ("Ge", 5)
    fastprof.archive_add(tmp_path / "t.fpa", [zero])
    assert fastprof.top(tmp_path / "t.fpa").value.name == "Ir"


@pytest.mark.parametrize("verb", [fastprof.top, fastprof.report, fastprof.convert])
def test_errors_name_the_file(verb: Any, tmp_path: Path) -> None:
    source, out = tmp_path / "in.callgrind", [] if verb is fastprof.top else [tmp_path / "out.folded"]
    source.write_bytes(CALLGRIND)
    with pytest.raises(UsageError, match=f"^{source}: value: unknown value type 'x', expected Ir, Dr"):
        verb(source, *out, value="x")


SPEEDSCOPE = (
    '{"$schema":"https://www.speedscope.app/file-format-schema.json","shared":{"frames":[{"name":"a"}]},'
    '"profiles":[{"type":"sampled","name":"","unit":"UNIT","startValue":0,"endValue":3,"samples":[[0]],"weights":[3]}]}'
)


@pytest.mark.parametrize(
    "unit, target, says",
    [
        ("bytes", "x.prof", "value types are size: the format only holds a count of samples or a time"),
        ("nanoseconds", "x.folded", "all times are below half a microsecond"),
    ],
)
def test_errors_of_formats_name_the_file(unit: str, target: str, says: str, tmp_path: Path) -> None:
    source = tmp_path / "in.speedscope.json"
    source.write_text(SPEEDSCOPE.replace("UNIT", unit))
    with pytest.raises(UsageError, match=f"^{source}: {says}"):
        fastprof.convert(source, tmp_path / target)
    assert not (tmp_path / target).exists()
