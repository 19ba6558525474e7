"""`batch convert --partition`: one dataset for DuckDB, Polars and pyarrow, with labels of inputs as columns."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

import fastprof
from fastprof.core.errors import UsageError
from fastprof.verbs.batch.convert import BatchLog
from tests.unit import test_remote
from tests.unit.test_remote import Bucket

bucket, server = test_remote.bucket, test_remote.server  # fixtures

PATTERN = "dumps/{host}/{date}.folded"
HOSTS = {"web1": 1, "we b=2%": 2, "NULL": 4, "é:3": 8}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """dumps/HOST/DATE.folded of four hosts and two dates, and one file without a host."""
    monkeypatch.chdir(tmp_path)
    for host, n in HOSTS.items():
        (tmp_path / "dumps" / host).mkdir(parents=True)
        for date in ("0314", "0315"):
            (tmp_path / "dumps" / host / f"{date}.folded").write_text(f"main;f {n}\nmain {10 * n}\n")
    (tmp_path / "dumps/_any.folded").write_text("main;f 16\n")
    return tmp_path


def convert(out: str = "out", **options: Any) -> BatchLog:
    given = {"to": "parquet", "jobs": 1, "label_path": PATTERN, "partition": "host,date", **options}
    return fastprof.batch_convert("dumps", out, **given)


def paths(out: str = "out") -> set[str]:
    return {str(path.relative_to(out)) for path in Path(out).rglob("*.parquet")}


EXPECTED: list[tuple[str | None, str | None, int]] = [
    *((host, date, 11 * n) for host, n in HOSTS.items() for date in ("0314", "0315")),
    (None, None, 16),
]


def ordered(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return sorted(rows, key=str)


def test_each_label_is_a_folder() -> None:
    log = convert()
    assert log.statuses == {"ok": 9} and len(log.warnings) == 1 and "dumps/_any.folded" in log.warnings[0]
    assert paths() == {
        "host=web1/date=0314/web1%2F0314.folded.parquet",
        "host=web1/date=0315/web1%2F0315.folded.parquet",
        "host=we b%3D2%25/date=0314/we b%3D2%25%2F0314.folded.parquet",
        "host=we b%3D2%25/date=0315/we b%3D2%25%2F0315.folded.parquet",
        "host=%4EULL/date=0314/NULL%2F0314.folded.parquet",
        "host=%4EULL/date=0315/NULL%2F0315.folded.parquet",
        "host=é%3A3/date=0314/é%3A3%2F0314.folded.parquet",
        "host=é%3A3/date=0315/é%3A3%2F0315.folded.parquet",
        # Spark skips names that begin with an underscore
        "host=__HIVE_DEFAULT_PARTITION__/date=__HIVE_DEFAULT_PARTITION__/%5Fany.folded.parquet",
    }


def test_duckdb_reads_one_table() -> None:
    duckdb = pytest.importorskip("duckdb")
    convert()
    found = duckdb.sql(
        "select host, date, sum(samples)::int from read_parquet('out/**/*.parquet', hive_partitioning = true, "
        "hive_types_autocast = false) group by all"
    )
    assert ordered(found.fetchall()) == ordered(EXPECTED)
    # a condition selects files: the others are not opened
    for path in Path("out").rglob("*0315*.parquet"):
        path.write_bytes(b"damaged")
    found = duckdb.sql("select host, sum(samples)::int from 'out/*/*/*.parquet' where date = '0314' group by all")
    assert ordered(found.fetchall()) == ordered([(host, 11 * n) for host, n in HOSTS.items()])


def test_polars_and_pyarrow_read_one_table() -> None:
    pl, dataset = pytest.importorskip("polars"), pytest.importorskip("pyarrow.dataset")
    convert()
    types = {"host": pl.String, "date": pl.String}
    rows = pl.scan_parquet("out/**/*.parquet", hive_partitioning=True, hive_schema=types)
    found = rows.group_by("host", "date").agg(pl.col("samples").sum()).collect().rows()
    assert ordered(found) == ordered(EXPECTED)
    convert("dates", partition="date")
    table = dataset.dataset("dates", partitioning="hive", exclude_invalid_files=False).to_table()
    assert {"date", "samples", "function"} <= {*table.column_names} and table.num_rows == 17


def test_a_batch_continues() -> None:
    convert()
    paths = sorted(Path("out").rglob("*.parquet"))
    paths[0].unlink()
    Path("dumps/web1/0314.folded").write_text("main 7\n")
    before = {path: path.stat().st_mtime_ns for path in paths[1:]}
    log = convert()
    assert (log.files, log.earlier) == (9, 7) and paths[0].exists()
    assert [path.parent.parent.name for path in before if path.stat().st_mtime_ns != before[path]] == ["host=web1"]
    assert convert(partition="date,host", out="other").earlier == 0


def test_shards_have_each_file_once() -> None:
    fastprof.batch_plan("dumps", "plan")
    for number in (1, 2, 3):
        fastprof.batch_convert(
            [], "out", to="parquet", jobs=1, label_path=PATTERN, partition="host", plan="plan", shard=(number, 3)
        )
    assert len(paths()) == 9 and fastprof.batch_status("out").statuses == {"ok": 9}
    for number in (1, 2):
        convert("more", shard=(number, 2))
    assert len(paths("more")) == 9


def test_other_labels_of_the_same_files_are_refused() -> None:
    """Their rows would count twice."""
    Path("hosts.csv").write_text("input,host\n0314.folded,a\n0315.folded,b\n_any.folded,c\n")
    convert(label_path=None, labels_from="hosts.csv", partition="host")
    Path("hosts.csv").write_text("input,host\n0314.folded,a\n0315.folded,b\n_any.folded,d\n")
    with pytest.raises(UsageError, match=r"1 output of the same inputs .* first host=c/%5Fany\.folded\.parquet"):
        convert(label_path=None, labels_from="hosts.csv", partition="host")
    Path("out/host=c/%5Fany.folded.parquet").unlink()
    assert convert(label_path=None, labels_from="hosts.csv", partition="host").earlier == 8


def test_other_inputs_are_added_on_request_only() -> None:
    shutil.copytree("dumps", "monday")
    convert()
    given: dict[str, Any] = {"to": "parquet", "jobs": 1, "label_path": "*/{host}/{date}.folded"}

    def other(**options: Any) -> Any:
        return fastprof.batch_convert("monday", "out", **given, **options)

    says = r"out: the dataset has rows of another input, \S+/dumps/\S+ \(host=\S+\); append=True adds to it"
    for options in ({}, {"dry_run": True}, {"shard": (1, 2)}):
        with pytest.raises(UsageError, match=says):
            other(partition="host,date", **options)
    with pytest.raises(UsageError, match=r"host=\S+ was made with partition=host,date of another input, \S+/dumps/"):
        other(partition="host", append=True)
    with pytest.raises(UsageError, match=r"host=\S+ was made with partition=host,date of another input, \S+/dumps/"):
        other()
    assert len(paths()) == 9
    os.remove("dumps/web1/0314.folded")  # its row remains, but it is of the same inputs
    assert convert().earlier == 8
    for path in Path("monday").rglob("*.folded"):
        path.rename(path.with_name("m" + path.name))
    log = other(partition="host,date", append=True)
    assert log.statuses == {"ok": 9} and len(paths()) == 18
    assert other(partition="host,date", append=True).earlier == 9
    with pytest.raises(UsageError, match="append=True adds to a dataset: it needs partition="):
        other(append=True)
    assert fastprof.batch_convert("monday", "plain", to="parquet", jobs=1).statuses == {"ok": 9}
    with pytest.raises(UsageError, match=r"parquet was made without partition= of another input, \S+/monday/"):
        convert("plain")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"to": "pprof"}, "partition= divides tables, as of parquet, not pprof"),
        ({"partition": "hots"}, "partition=hots: inputs have date, host; label them with set_label"),
        ({"label_path": None}, "partition=host: inputs have no labels"),
        ({"partition": "host,Host"}, "expected distinct keys of labels"),
        ({"partition": "host,"}, "expected distinct keys of labels"),
        ({"set_label": ["function=f"], "partition": "function"}, "the table has a column of this name"),
        ({"set_label": ["a/b=f"], "partition": "a/b"}, "no column of a dataset has such a name"),
    ],
)
def test_usage(options: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=says.replace("=", "(=|.*=)")):
        convert(**options)
    assert not Path("out").exists()


def test_graphs_and_timelines_and_values_with_the_name_of_a_label() -> None:
    pl = pytest.importorskip("polars")
    Path("graphs").mkdir()
    for host in "ab":
        Path(f"graphs/{host}.out").write_text("events: host Ir\nfn=f\n1 3 4\n")
    log = fastprof.batch_convert(
        "graphs", "out", to="parquet", jobs=1, label_path="{host}.out", partition="host", from_="callgrind"
    )
    assert not log.idle and log.n_warnings == 0
    rows = pl.read_parquet("out/*/*.parquet", hive_partitioning=True).select("host", "host_2", "Ir").rows()
    assert sorted(rows) == [("a", 3, 4), ("b", 3, 4)]


def test_long_names() -> None:
    long = "x" * 120
    os.makedirs(f"long/{long}/{long}")
    for name in "ab":
        Path(f"long/{long}/{long}/{name}").write_text("main 1\n")
    log = fastprof.batch_convert(
        "long", "out", to="parquet", jobs=1, from_="folded", set_label=["host=a"], partition="host"
    )
    names = {path.name[-9:] for path in Path("out/host=a").iterdir()}
    assert log.statuses == {"ok": 2} and names == {"a.parquet", "b.parquet"}


def test_a_bucket(bucket: Bucket) -> None:
    log = convert("s3://bucket/out")
    assert log.statuses == {"ok": 9}
    assert {"out/host=we b%3D2%25/date=0314/we b%3D2%25%2F0314.folded.parquet"} <= {*bucket.keys()}
    assert convert("s3://bucket/out").earlier == 9


def test_a_plain_run_does_not_count_rows_of_a_dataset_twice() -> None:
    convert()
    before = paths()
    for folder in ("dumps", "dumps/web1"):
        with pytest.raises(UsageError, match=r"out: (8|9|2) outputs of the same inputs made with partition="):
            fastprof.batch_convert(folder, "out", to="parquet", jobs=1)
    assert paths() == before
    for path in Path("out").rglob("*.parquet"):
        path.unlink()
    assert fastprof.batch_convert("dumps", "out", to="parquet", jobs=1).statuses == {"ok": 9}
    assert convert("folders").statuses == {"ok": 9}
    assert fastprof.batch_convert("dumps", "folders", to="folded", jobs=1).statuses == {"ok": 9}  # no table


def test_labels_too_long_for_a_folder_are_one_error() -> None:
    with pytest.raises(UsageError, match=r"partition=host: \S+ has a label of 305 bytes as a folder"):
        convert(label_path=None, set_label=[f"host={'é' * 150}", "date=1"])
    assert not Path("out").exists()


def test_outputs_follow_the_table_of_labels() -> None:
    table = Path("hosts.csv")
    given: dict[str, Any] = {"labels_from": "hosts.csv", "label_path": None, "include": ["*.folded"], "jobs": 1}

    def done(rows: str) -> list[int]:
        """The number of files redone by each kind of batch."""
        table.write_text(f"input,zone\n{rows}")
        logs = [
            fastprof.batch_convert("dumps/web1", "out", to="pprof", **given),
            fastprof.batch_archive("dumps/web1", "all.fpa", **given),
        ]
        return [log.files - log.earlier for log in logs]

    assert done("0314.folded,a\n0315.folded,b\n") == [2, 2]
    assert done("0315.folded,b\n0314.folded,a\n_any.folded,c\n") == [0, 0]
    assert done("0315.folded,c\n0314.folded,a\n") == [1, 1]
    for path in ("out/0315.folded.pb.gz", "all.fpa:0315.folded"):
        assert [row.name for row in fastprof.top(path, by="label:zone").rows] == ["c"]
    table.rename("moved.csv")
    given["labels_from"] = "moved.csv"
    log = fastprof.batch_convert("dumps/web1", "out", to="pprof", **given)
    assert log.earlier == 2
