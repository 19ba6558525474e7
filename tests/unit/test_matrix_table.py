"""`top --matrix` as Arrow and as Parquet: the same table as CSV, for data frames and databases."""

from __future__ import annotations

import csv
import random
import subprocess
import sys
from pathlib import Path

import duckdb
import polars
import pyarrow
import pyarrow.parquet
import pytest

from fastprof.cli import main
from fastprof.core.errors import FastprofError
from fastprof.core.model import ValueType
from fastprof.verbs.top.matrix import Column, Matrix, Row
from fastprof.verbs.top.matrix_table import table

OUTPUTS = ("m.parquet", "m.arrows", "m.arrows.zst")


@pytest.fixture
def dumps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Hosts with 300 functions; one is named like a column."""
    monkeypatch.chdir(tmp_path)
    choose = random.Random(5)
    for host in ("web1", "web2", "name"):
        lines = [f"main;f{i} {choose.randrange(1, 1 << 40)}\n" for i in range(300) if choose.random() < 0.8]
        (tmp_path / f"{host}.folded").write_text("".join(lines))
    return tmp_path


def top(*more: str) -> int:
    inputs = ("web1.folded", "web2.folded", "name.folded")
    return main(["top", *inputs, "--label-path", "{host}.folded", "--matrix", "host", *more])


def read(output: str) -> pyarrow.Table:
    if output.endswith(".parquet"):
        return pyarrow.parquet.read_table(output)
    with pyarrow.input_stream(output, compression="zstd" if output.endswith(".zst") else None) as file:
        return pyarrow.ipc.open_stream(file).read_all()


@pytest.mark.parametrize("output", OUTPUTS)
def test_the_table_is_that_of_csv(output: str, dumps: Path) -> None:
    assert not top("-n", "0", "-o", "m.csv")
    assert not top("-n", "0", "-o", output)
    with open("m.csv", newline="") as file:
        head, *rows = csv.reader(file)
    found = read(output)
    assert len(rows) == found.num_rows > 256
    assert found.column_names == [name if i < 7 or name != "name" else "name_2" for i, name in enumerate(head)]
    assert [["" if cell is None else str(cell) for cell in row.values()] for row in found.to_pylist()] == rows
    assert found.schema.field("web1").metadata == {b"unit": b"count"}
    assert {key: found.schema.metadata[key] for key in (b"table", b"key", b"value")} == {
        b"table": b"matrix",
        b"key": b"host",
        b"value": b"samples",
    }


def test_polars_and_duckdb_read_it(dumps: Path) -> None:
    for output in OUTPUTS[:2]:
        assert not top("-n", "0", "-o", output)
    rows = read("m.parquet").to_pylist()
    for frame in (polars.read_parquet("m.parquet"), polars.read_ipc_stream("m.arrows")):
        assert frame.to_dicts() == rows
    assert [dict(zip(rows[0], row, strict=True)) for row in duckdb.sql("from 'm.parquet'").fetchall()] == rows
    (most,) = duckdb.sql("select max(difference) from 'm.parquet' where difference > 0").fetchall()
    assert most[0] == max(row["difference"] for row in rows)


@pytest.mark.parametrize("output", OUTPUTS)
def test_without_rows(output: str, dumps: Path) -> None:
    assert not top("--focus", "nothing", "-o", output)
    assert (read(output).num_rows, read(output).num_columns) == (0, 10)


def test_pyarrow_is_not_needed(dumps: Path) -> None:
    code = "import sys; sys.modules.update(pyarrow=None, polars=None, duckdb=None); from fastprof.cli import main; "
    words = ["top", "web1.folded", "web2.folded", "--matrix", "input"]
    for output in OUTPUTS:
        subprocess.run([sys.executable, "-c", f"{code}sys.exit(main({[*words, '-o', output]}))"], check=True)


def test_thousands_of_hosts() -> None:
    n = 3_000
    columns = [Column(f"h{i}", 1, 0.0) for i in range(n)]
    rows = [Row("f", "", "", 0.5, "h1", 1.0, 0.5, tuple(range(n)))]
    found = pyarrow.record_batch(table(Matrix("host", columns, rows, 1), ValueType("cpu", "ns")))
    assert found.column("h2999").to_pylist() == [2999]


def test_a_cost_of_more_than_64_bits_is_an_error() -> None:
    one = Matrix("host", [Column("a", 1 << 63, 0.0)], [Row("f", "", "", 1.0, "a", 1.0, 0.0, (1 << 63,))], 1)
    with pytest.raises(FastprofError, match=r"a: the cost 9223372036854775808 does not fit 64 bits"):
        table(one, ValueType("cpu", "ns"))


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["-o", "m.parquet"], "m.parquet: top writes parquet only of --matrix"),
        (["-o", "m.arrow"], "m.arrow: Arrow's file format is not written; an Arrow stream has the suffix .arrows"),
        (["--matrix", "input", "-o", "m.arrow"], "an Arrow stream has the suffix .arrows"),
        (["--matrix", "input", "-o", "m.arrows", "--csv"], "--csv does not apply to m.arrows"),
        (["--matrix", "input", "-o", "m.arrows", "--width", "none"], "--width does not apply to m.arrows"),
    ],
)
def test_refusals(words: list[str], error: str, dumps: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["top", "web1.folded", *words]) == 2
    assert error in capsys.readouterr().err
    assert not [*dumps.glob("m.*")]
