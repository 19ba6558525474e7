"""Tables of a profile: against a slow reference, and through each reader of Arrow streams."""

from __future__ import annotations

import gc
import subprocess
from collections import Counter
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import polars
import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given

import fastprof
from fastprof import plan
from fastprof.bridges import TABLES
from fastprof.bridges.rows.as_table import CAPACITY, of_timeline
from fastprof.core._c import lib
from fastprof.core.arrow_column import Decoder
from fastprof.core.engine import Scan
from fastprof.core.errors import FastprofError, FormatError, UsageError
from fastprof.core.log import Log
from fastprof.core.model import Batch, Model, Part
from fastprof.core.options import INT64, UINT64, checked
from fastprof.verbs.profile import Table
from tests.contract.dump import CORPUS, files
from tests.reference import tables
from tests.support.chosen import cases
from tests.support.conversions import format_of
from tests.support.paths import PYTHON, REPO
from tests.support.strategies_xray import Case, fdr_cases
from tests.support.xraylog import FdrLog
from tests.unit.test_io import Unseekable

XDEBUG = CORPUS / "callgrind/good/xdebug.callgrind"
POOL = CORPUS / "xray/good/fdr5-pool-clang19.xray"
LABELS = CORPUS / "pprof/good/go-cpulabels.pb.gz"


DUCKDB = duckdb.connect()  # for all files: a database of its own takes longer than most of them

# Their sums exceed 64 bits.
BEYOND = ("callgrind/good/everything.callgrind", "folded/good/two_fractions.folded")


def opened(data: Any, **options: Any) -> fastprof.Profile:
    return fastprof.open(data, symbolize=False, **options) if _has_addresses(data) else fastprof.open(data, **options)


def _has_addresses(data: Any) -> bool:
    with fastprof.open(data) as profile:
        return profile.view == "stacks" and profile._reader.addresses


def truth(profile: fastprof.Profile) -> tables.Tables:
    reference = tables.Tables(profile._model)
    for batch in profile.batches(reuse=True):
        reference.put(batch)
    reference.end()
    return reference


def rows(table: Table) -> list[dict[str, Any]]:
    """Read by pyarrow."""
    found = pyarrow.table(table)
    found.validate(full=True)
    return found.to_pylist()  # type: ignore[no-any-return]


def check(profile: fastprof.Profile) -> None:
    reference = truth(profile)
    for name in TABLES[profile.view]:
        table = profile.table(name)
        found = rows(table)
        names = pyarrow.schema(table).names
        # a value type that a row's part does not count is null
        want = [dict.fromkeys(names) | row for row in reference.rows[name]]
        if name == "spans":  # open spans come at the end, by thread; all others as they end
            found, want = (sorted(rows_, key=lambda row: row["id"]) for rows_ in (found, want))
        assert found == want


@pytest.mark.parametrize("file", cases(files("good")))
def test_rows_of_the_corpus(file: str) -> None:
    with opened(CORPUS / file) as profile:
        check(profile)


@pytest.mark.parametrize("file", cases(files("good")))
def test_sums_are_those_of_info_and_top(file: str) -> None:
    if file in BEYOND:
        with pytest.raises(FastprofError, match="beyond 64 bits"):
            fastprof.info(CORPUS / file)
        return
    facts = fastprof.info(CORPUS / file).facts
    with opened(CORPUS / file) as profile:
        if profile.view == "timeline":
            events = Counter(row["op"] for row in rows(profile.table("events")))
            assert events == facts.get("records_by_kind", {})
            top: Counter[str] = Counter()  # functions of several objects may share a name
            for row in fastprof.top(CORPUS / file, n=0, time_unit="ticks").rows:
                top[row.name] += row.self
            own: Counter[str] = Counter()
            with fastprof.open(CORPUS / file, time_unit="ticks") as in_ticks:
                for row in rows(in_ticks.table("spans")):
                    own[row["function"]] += row["self"]
            if not any("\ufffd" in name for name in own):  # `top` escapes these
                assert own == top
            assert sorted(own.values()) == sorted(top.values())
            return
        table = pyarrow.table(profile.table("graph" if profile.view == "graph" else "samples"))
        counted = table.to_pylist()
        if profile.view == "graph":
            counted = [row for row in counted if row["kind"] == "cost"]
        columns = {name: f"{name}_2" if f"{name}_2" in table.column_names else name for name in facts.get("totals", {})}
        sums = {name: sum(row[column] or 0 for row in counted) for name, column in columns.items()}
        assert sums == facts.get("totals", {})


@pytest.mark.parametrize("file", cases(files("good")))
def test_everybody_reads_the_same(file: str) -> None:
    with opened(CORPUS / file) as profile:
        for name in TABLES[profile.view]:
            made = profile.table(name)
            want = [tuple(row.values()) for row in rows(made)]
            assert polars.DataFrame(made).rows() == want
            assert DUCKDB.sql("from made").fetchall() == want


def test_the_corpus_has_tables_of_each_view() -> None:
    assert {format_of(file) for file in files("good")} >= {"xray", "pprof", "callgrind"}


@given(fdr_cases())
def test_any_log(case: Case) -> None:
    with fastprof.open(case.data) as profile:
        check(profile)


@pytest.mark.parametrize("name", ["interp-args-clang14", "events-clang19", "rotated", "busy", ""])
def test_calls_are_counted_without_columns(name: str) -> None:
    """As for `select count(*)`: with arguments, events, repairs, and several batches of rows."""
    with fastprof.open(CORPUS / f"xray/good/fdr5-{name}.xray" if name else growing_log()) as profile:

        def read(scan: Scan) -> tuple[list[int], dict[str, int]]:
            lengths = [len(batch) for batch in Table(profile, "spans", scan)._rows()]
            return lengths, profile.log.repairs.texts() | profile.log.not_representable.texts()

        whole = read(Scan())
        assert read(Scan(frozenset())) == whole
        assert sum(read(Scan(frozenset(), times=(0, 0)))[0]) < sum(whole[0])


@pytest.mark.parametrize("hz", [1, 2, 3, 10**9 - 1, 10**9, 10**9 + 1, 2_600_000_000, 2**32, INT64, 2**63, UINT64])
def test_times_are_exact(hz: int) -> None:
    """Each close to the one before, or far from it."""
    most = min(UINT64, (2**63 * hz - 1) // 10**9)
    chance = Random(hz)
    ticks = sorted(chance.randrange(most) for _ in range(50))
    ticks += [t + d for t in ticks[::7] for d in (1, hz - 1, hz, hz + 1, 2**32 - 1, 2**32)]
    ticks = [t for t in ticks if t <= most] + [most, 0, 5, most - 1]
    model, batch = Model(), Batch("timeline", len(ticks))
    batch.c.part = model.add_part(Part(extra={"ticks_per_second": hz}))
    thread = lib.fp_model_thread(model.c, 0, 1, 7)
    batch.c.n = len(ticks)
    for i, time in enumerate(ticks):
        batch["time"][i], batch["op"][i], batch["function"][i] = time, lib.FP_OP_ENTER, 0
        batch["thread"][i], batch["cpu"][i] = thread, 0
    options = checked({"table": "events"}, plan.known_options())
    (found,) = of_timeline([batch], model, options, Log())
    assert [row["ts"] for row in Decoder().rows(len(found), found.columns)] == [t * 10**9 // hz for t in ticks]


# ---- names that come late


def growing_log(n: int = 3) -> bytes:
    """Each batch of rows has functions that are new, and all earlier ones."""
    log = FdrLog()
    buffer = log.buffer(tid=7).cpu(0, 0)
    for k in range(n * 3):
        for i in range(CAPACITY // 6):
            function = 1 + (i % (k + 1)) * 100
            buffer.enter(function, 1).exit(function, 1)
    return log.bytes()


def test_names_that_come_late() -> None:
    data = growing_log()
    with fastprof.open(data) as profile:
        events = profile.table("events")
        batches = list(pyarrow.RecordBatchReader.from_stream(events))
        gc.collect()
        assert len(batches) > 2
        columns = [batch.column("function") for batch in batches]
        for one, other in pairwise(columns):  # each has the texts of those before, and more
            assert other.dictionary[: len(one.dictionary)].equals(one.dictionary)
            assert len(other.dictionary) > len(one.dictionary)
        want = Counter(row["function"] for row in truth(profile).rows["events"])
        assert Counter(name for column in columns for name in column.to_pylist()) == want
        unified = pyarrow.table(events).unify_dictionaries()
        by_arrow = unified.group_by("function").aggregate([([], "count_all")]).to_pylist()
        assert {row["function"]: row["count_all"] for row in by_arrow} == want
        by_duckdb = duckdb.connect().sql("select function, count(*) from events group by 1").fetchall()
        assert dict(by_duckdb) == want
        by_polars = polars.DataFrame(events).group_by("function").len().rows()
        assert dict(by_polars) == want


def test_streams_begin_anew_and_take_turns() -> None:
    with fastprof.open(growing_log(2)) as profile:
        spans = profile.table("spans")
        streams = [pyarrow.RecordBatchReader.from_stream(spans) for _ in range(2)]
        pairs = list(zip(*streams, strict=True))
        want = pyarrow.table(spans)
        for stream in zip(*pairs, strict=True):
            assert pyarrow.Table.from_batches(stream).to_pylist() == want.to_pylist()
        joined = "select count(*) from spans a join spans b using (id)"
        assert duckdb.connect().sql(joined).fetchall() == [(want.num_rows,)]


def test_the_query_of_the_documentation() -> None:
    path = CORPUS / "callgrind/good/cfi.callgrind"
    with fastprof.open(path) as profile:
        p = profile.table("graph")  # noqa: F841
        found = duckdb.connect().sql("""select function, sum("Ir") from p where kind = 'cost' group by 1""")
        top = fastprof.top(path, n=0, value="Ir").rows
        assert dict(found.fetchall()) == {row.name: row.self for row in top if row.self}


def test_the_inclusive_costs_by_frames() -> None:
    with fastprof.open(LABELS) as profile:
        samples, frames = profile.table("samples"), profile.table("frames")  # noqa: F841
        found = duckdb.connect().sql(
            "with f as (select distinct stack_id, function from frames) "
            "select f.function, sum(cpu)::bigint from samples join f using (stack_id) group by 1"
        )
        top = fastprof.top(LABELS, n=0, value="cpu", sort="inclusive").rows
        assert dict(found.fetchall()) == {row.name: row.inclusive for row in top}


# ---- schemas


def test_a_schema_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read, rows = [], Table._rows
    monkeypatch.setattr(Table, "_rows", lambda table: (read.append(table), rows(table))[1])
    for name in ("spans", "events"):
        table = fastprof.open(POOL).table(name)
        schemas = [pyarrow.schema(table) for _ in range(3)]
        assert all(schema.equals(pyarrow.table(table).schema, check_metadata=True) for schema in schemas)
    assert len(read) == 2 * (1 + 3)


def test_metadata() -> None:
    schema = pyarrow.schema(fastprof.open(POOL).table("spans"))
    said = {"version": fastprof.__version__, "view": "timeline", "format": "xray", "table": "spans", "clock": "ns"}
    assert schema.metadata == {key.encode(): value.encode() for key, value in said.items()}
    assert [schema.field(name).metadata for name in ("ts", "dur", "self")] == [{b"unit": b"ns"}] * 3
    assert not any(pyarrow.types.is_duration(field.type) for field in schema)
    cpu = pyarrow.schema(fastprof.open(LABELS).table("samples")).field("cpu")
    assert cpu.metadata == {b"unit": b"nanoseconds"}


def test_ticks_are_called_ticks() -> None:
    with fastprof.open(POOL, time_unit="ticks") as profile:
        schema = pyarrow.table(profile.table("events")).schema
        assert schema.metadata[b"clock"] == b"ticks" and schema.field("ts").metadata == {b"unit": b"ticks"}
        first = next(iter(profile))
        assert pyarrow.table(profile.table("events")).column("ts")[0].as_py() in first["time"].tolist()


def test_columns_have_names_of_their_own() -> None:
    data = b"events: line ir Ir calls\nfn=f\n1 2 3 4 5\n"
    with fastprof.open(data) as profile:
        made = pyarrow.table(profile.table("graph"))
        assert made.column_names[-4:] == ["line_2", "ir", "Ir_2", "calls_2"]
        assert duckdb.connect().sql('select line_2, ir, "Ir_2", calls_2 from made').fetchall() == [(2, 3, 4, 5)]


def test_parts_of_different_events() -> None:
    data = b"events: Ir\nfn=f\n1 2\n\npart: 2\nevents: Dr Ir\nfn=f\n1 3 4\n"
    with fastprof.open(data) as profile:
        found = rows(profile.table("graph"))
        assert [(row["Ir"], row["Dr"]) for row in found] == [(2, None), (4, 3)]


def test_events_that_come_too_late() -> None:
    data = b"events: Ir\nfn=f\n" + b"1 2\n" * (CAPACITY + 1) + b"\npart: 2\nevents: Dr\nfn=f\n1 3\n"
    with (
        fastprof.open(data) as profile,
        pytest.raises(OSError, match=r"part 2 counts Dr, which the 131,072 rows before"),
    ):
        pyarrow.table(profile.table("graph"))


def test_an_empty_profile_has_its_columns() -> None:
    with fastprof.open(FdrLog().bytes()) as profile:
        for name in TABLES["timeline"]:
            table = pyarrow.table(profile.table(name))
            assert table.num_rows == 0 and table.column_names[0] in ("id", "ts")


# ---- errors


def test_a_table_of_another_view() -> None:
    with (
        fastprof.open(POOL) as profile,
        pytest.raises(UsageError, match="a timeline profile has no table 'graph', only sp"),
    ):
        profile.table("graph")


def test_a_pipe_has_one_table() -> None:
    profile = fastprof.open(Unseekable(XDEBUG.read_bytes()))  # type: ignore[arg-type]
    assert pyarrow.table(profile.table("graph")).num_rows == 155
    with pytest.raises(UsageError, match="can be read only once"):
        pyarrow.table(profile.table("graph"))


def test_damage_comes_through() -> None:
    log = FdrLog()
    log.buffer().cpu(0, 5).enter(1).metadata(10)
    with fastprof.open(log.bytes()) as profile, pytest.raises(OSError, match="at byte 120: metadata kind is 10"):
        pyarrow.table(profile.table("spans"))


def test_nothing_is_read_when_it_is_closed() -> None:
    with fastprof.open(XDEBUG) as profile:
        table = profile.table("graph")
    with pytest.raises(UsageError, match="is closed"):
        pyarrow.table(table)


def test_filters_hold_for_tables() -> None:
    path = Path(POOL)
    with fastprof.open(path) as profile:
        everything = rows(profile.table("events"))
    thread = everything[0]["thread"]
    with fastprof.open(path, threads=[thread]) as profile:
        assert rows(profile.table("events")) == [row for row in everything if row["thread"] == thread]


# ---- files


def read_back(path: Path) -> list[dict[str, Any]]:
    """By pyarrow, after Polars, and DuckDB if it can, have read the same."""
    if path.suffix == ".parquet":
        found = pyarrow.parquet.read_table(path).to_pylist()
        assert polars.read_parquet(path).to_dicts() == found
        assert duckdb.connect().read_parquet(str(path)).fetchall() == [tuple(row.values()) for row in found]
    else:
        found = pyarrow.ipc.open_stream(path).read_all().to_pylist()
        assert polars.read_ipc_stream(path).to_dicts() == found
    return found  # type: ignore[no-any-return]


def test_parquet_has_no_dictionaries_of_distinct_numbers(tmp_path: Path) -> None:
    fastprof.convert(POOL, tmp_path / "out.parquet")
    group = pyarrow.parquet.ParquetFile(tmp_path / "out.parquet").metadata.row_group(0)
    columns = [group.column(i) for i in range(group.num_columns)]
    differences = {one.path_in_schema for one in columns if "DELTA_BINARY_PACKED" in one.encodings}
    assert differences == {"id", "ts", "dur", "self", "depth", "parent"}
    assert not {one.path_in_schema for one in columns if one.has_dictionary_page} & differences


@pytest.mark.parametrize("suffix", ["parquet", "arrows"])
@pytest.mark.parametrize(
    "file", ["xray/good/fdr5-busy.xray", "pprof/good/everything.pb", "callgrind/good/xtree.callgrind"]
)
def test_files_have_what_streams_have(file: str, suffix: str, tmp_path: Path) -> None:
    out = tmp_path / f"out.{suffix}"
    with opened(CORPUS / file) as profile:
        for name in profile.tables:
            log = fastprof.convert(CORPUS / file, out, table=name)
            want = rows(profile.table(name))
            assert read_back(out) == want
            assert log.rows == {"table_rows": len(want)}
        fastprof.convert(CORPUS / file, out)
        assert read_back(out) == rows(profile.table(profile.tables[0]))


@pytest.mark.parametrize("suffix", ["parquet", "arrows"])
def test_files_of_names_that_come_late(suffix: str, tmp_path: Path) -> None:
    out = tmp_path / f"out.{suffix}"
    fastprof.convert(growing_log(2), out, table="events")
    with fastprof.open(growing_log(2)) as profile:
        assert read_back(out) == rows(profile.table("events"))


@pytest.mark.parametrize("suffix", ["parquet", "arrows"])
def test_a_file_without_rows_has_columns(suffix: str, tmp_path: Path) -> None:
    out = tmp_path / f"out.{suffix}"
    fastprof.convert(FdrLog().bytes(), out)
    assert read_back(out) == []
    found = polars.read_parquet(out) if suffix == "parquet" else polars.read_ipc_stream(out)
    assert found.columns[:4] == ["id", "ts", "dur", "self"]


def test_errors_leave_no_file(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="line 4, byte 20"):
        fastprof.convert(b"events: Ir\nfn=f\n1 2\n1 x\n", tmp_path / "out.parquet")
    with pytest.raises(UsageError, match=r"a timeline profile has no table frames, only spans, events"):
        fastprof.convert(POOL, tmp_path / "out.parquet", table="frames")
    with pytest.raises(UsageError, match="table= has no effect"):
        fastprof.convert(POOL, tmp_path / "out.callgrind", table="spans")
    assert list(tmp_path.iterdir()) == []


def test_the_reader_of_a_pipe_leaves(tmp_path: Path) -> None:
    big = tmp_path / "big.xray"
    big.write_bytes(growing_log())
    command = f"{PYTHON} -m fastprof convert -q {big} -t arrow | head -c 100 | wc -c; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, cwd=REPO)
    assert (done.stdout.split(), done.stderr) == (["100", "0"], "")
