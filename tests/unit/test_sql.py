"""SQL queries: answers, output formats, forbidden statements, errors in one line."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest

import fastprof
from fastprof.core.errors import FormatError, UsageError
from fastprof.verbs.sql import _CONFIG
from tests.support.paths import CORPUS, PYTHON, REPO
from tests.support.signals import heard

POOL = CORPUS / "xray/good/fdr5-pool-clang19.xray"
CFI = CORPUS / "callgrind/good/cfi.callgrind"
LABELS = CORPUS / "pprof/good/go-cpulabels.pb.gz"
TOP = "select function, sum(self) self, count(*) n from spans group by 1 order by 2 desc, 1"


def run(*arguments: Any, input: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "fastprof", "sql", *map(str, arguments)]
    return subprocess.run(command, input=input, capture_output=True, cwd=REPO)


def test_an_answer() -> None:
    with fastprof.sql(POOL, TOP) as answer:
        assert answer.columns == ["function", "self", "n"]
        assert answer.numeric == [False, True, True]
        found = list(answer.rows())
    top = fastprof.top(POOL, n=0).rows
    assert {(name, n) for name, _, n in found} == {(row.name, row.calls) for row in top}


def test_text() -> None:
    done = run(CFI, 'select kind, function, callee, "Ir" from graph where kind = \'cost\' order by "Ir"')
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.decode() == (
        "kind  function  callee  Ir\ncost  f         NULL     5\ncost  g         NULL     9\n"
    )


def test_json_and_csv() -> None:
    query = 'select function, line, callee, "Ir" from graph'
    with fastprof.sql(CFI, query) as answer:
        want = list(answer.rows())
    done = run(CFI, query, "--json")
    assert [tuple(row.values()) for row in json.loads(done.stdout)["rows"]] == want
    found = list(csv.reader(io.StringIO(run("--csv", CFI, query).stdout.decode())))
    assert found[0] == ["function", "line", "callee", "Ir"]
    assert found[1:] == [["" if cell is None else str(cell) for cell in row] for row in want]
    assert json.loads(run(CFI, "from graph where false", "--json").stdout)["rows"] == []


@pytest.mark.parametrize("table", ["samples", "frames"])
def test_rows_of_other_tables_are_not_missing(table: str, tmp_path: Path) -> None:
    """They can be asked for: only what no table holds is reported."""
    with fastprof.sql(LABELS, f"select count(stack_id) from {table}") as answer:
        assert list(answer.rows()) != [(0,)]
        assert not {"frames", "samples"} & {*answer.log.not_representable}
    done = fastprof.convert(LABELS, tmp_path / "t.parquet", table=table)
    assert {"frames", "samples"} & {*done.not_representable}


def test_cpus_are_in_another_table(tmp_path: Path) -> None:
    """The calls of a timeline lack them, its events have them."""
    with fastprof.sql(POOL, "select sum(self) from spans") as answer:
        assert list(answer.rows()) != [(0,)]
        assert "cpus" not in answer.log.not_representable
    assert "cpus" in fastprof.convert(POOL, tmp_path / "t.parquet", table="spans").not_representable


def test_several_profiles() -> None:
    with fastprof.sql(
        [POOL, CFI, LABELS], "select (select count(*) from p1.spans), (select count(*) from P2.graph)"
    ) as a:
        assert list(a.rows()) == [(2329, 3)]
    with fastprof.sql([POOL, CFI], "show all tables") as answer:
        assert {(row[1], row[2]) for row in answer.rows()} >= {("p1", "spans"), ("p1", "events"), ("p2", "graph")}


def test_standard_input() -> None:
    query = "select count(*) n from spans s join spans parent on s.parent = parent.id"
    assert run("-", query, input=POOL.read_bytes()).stdout == run(POOL, query).stdout == b"    n\n2,319\n"


@pytest.mark.parametrize(
    "query",
    [
        "from read_csv('/etc/passwd')",
        "from '/etc/passwd'",
        "copy spans to 'out.csv'",
        "attach 'out.db'",
        "from glob('*')",
        "set enable_external_access = true",
        "install httpfs",
        "from answer",
    ],
)
def test_a_query_sees_the_profile_alone(query: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    answer = [1]  # noqa: F841
    with pytest.raises(UsageError):
        fastprof.sql(POOL, query)
    assert list(tmp_path.iterdir()) == []


def test_errors_are_one_line() -> None:
    done = run(POOL, "select nonsense\nfrom spans")
    assert done.returncode == 2
    assert done.stderr.startswith(b'fastprof: Binder Error: Referenced column "nonsense" not found')
    assert done.stderr.count(b"\n") == 1 and b"^" not in done.stderr  # DuckDB's mark below the query
    done = run(POOL, "from graph")
    assert b"(tables: spans, events)" in done.stderr and done.stderr.count(b"\n") == 1


@pytest.mark.parametrize(
    "query,says",
    [
        ("", "the query is empty"),
        (";", "the query is empty"),
        ("select '\udcff'", "the query is not in UTF-8"),
        ("select interval '99999999 years'", "Python int too large"),
    ],
)
def test_what_cannot_be_asked_or_answered(query: str, says: str) -> None:
    done = run(POOL, query)
    assert done.returncode == 2 and done.stderr.startswith(f"fastprof: {says}".encode())
    assert done.stderr.count(b"\n") == 1


def test_standard_input_that_the_disk_has_no_room_for() -> None:
    words = f"ulimit -f 8; cat '{POOL}' | TMPDIR=/tmp {PYTHON} -m fastprof sql - 'from spans'"
    done = subprocess.run(["bash", "-c", words], capture_output=True)
    assert (done.returncode, done.stderr) == (1, b"fastprof: <stdin>: temporary file in /tmp: File too large\n")


def test_damage_is_said_as_everywhere() -> None:
    damaged = b"events: Ir\nfn=f\n1 2\n1 x\n"
    with pytest.raises(FormatError, match="line 4, byte 20: count is 'x', expected a number"):
        fastprof.sql(damaged, "from graph")
    late = b"events: Ir\nfn=f\n" + b"1 2\n" * 300_000 + b"1 x\n"
    with pytest.raises(FormatError, match="line 300003"):
        fastprof.sql(late, "select count(*) from graph").rows()
    done = run("-", "from graph", input=damaged)
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr == b"fastprof: <stdin>: callgrind: line 4, byte 20: count is 'x', expected a number\n"
    done = run("-", "select count(*) from graph", "--lenient", input=damaged)
    assert (done.returncode, done.stdout.split()) == (3, [b"count_star()", b"1"])
    assert b"losses" in done.stderr


def test_without_duckdb(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(UsageError, match=r"sql needs DuckDB: run `pip install (?:-e )?'(?:\.|fastprof-tools)\[sql\]'`"):
        fastprof.sql(POOL, "from spans")


def test_options_are_those_of_open() -> None:
    with fastprof.sql(POOL, "select count(distinct thread) from spans", time_unit="ticks") as answer:
        assert next(answer.rows())[0] > 0
    with pytest.raises(UsageError, match="has no effect"):
        fastprof.sql(CFI, "from graph", time_unit="ticks")


def test_json_has_words_for_everything() -> None:
    query = "select 'nan'::double n, [1, '-inf'::double] l, {'s': 'inf'::double} s, map {date '2020-01-02': 1} m, "
    query += "'\\xff'::blob b, 4611686018427387904::hugeint * 1024 h, 2 n, 3 n_1"
    done = run(CFI, query, "--json")
    assert json.loads(done.stdout, parse_constant=pytest.fail)["rows"] == [
        {"n": None, "l": [1, None], "s": {"s": None}, "m": {"2020-01-02": 1}, "b": "b'\\xff'", "h": 1 << 72}
        | {"n_2": 2, "n_1": 3}
    ]


def test_what_memory_has_no_room_for_is_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was in /tmp/fastprof-sql-PID, which others could create first, and read."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr("fastprof.verbs.sql._CONFIG", {**_CONFIG, "memory_limit": "60MB", "threads": 1})
    with fastprof.sql(CFI, "select r from range(2000000) t(r) order by hash(r)") as answer:
        (folder,) = tmp_path.iterdir()
        assert next(answer.rows()) and str(os.getpid()) not in folder.name
        assert folder.stat().st_mode & 0o777 == 0o700 and any(folder.iterdir())
    assert list(tmp_path.iterdir()) == []
    done = run(CFI, "select current_setting('temp_directory') d", "--csv")
    assert done.stdout.decode().splitlines()[1].startswith(str(tmp_path)) and list(tmp_path.iterdir()) == []


def child_of(process: subprocess.Popen[bytes]) -> int:
    """The child process that runs DuckDB."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    while process.poll() is None and not children.read_text():
        time.sleep(0.05)
    return int(children.read_text())


@pytest.mark.parametrize(
    "words",
    [
        ["from samples", "--function", "(a+)+$"],  # endless in Python
        ["select count(*) from range(10000000) a, range(10000000) b where a.range + b.range = 7"],  # in DuckDB
        ["select sum(samples) from samples, range(10000000) a, range(10000000) b where a.range + b.range = 7"],
    ],
)
def test_ctrl_c_ends_a_query(words: list[str], tmp_path: Path) -> None:
    source, temporary = tmp_path / "in.folded", tmp_path / "temporary"
    source.write_text(f"{'a' * 60}b 1\n")
    temporary.mkdir()
    command = [sys.executable, "-m", "fastprof", "sql", str(source), *words]
    environment = os.environ | {"TMPDIR": str(temporary)}
    with subprocess.Popen(command, stderr=subprocess.PIPE, preexec_fn=heard, env=environment) as process:
        child = child_of(process)
        while process.poll() is None and cpu_seconds(child) < 1:
            time.sleep(0.05)
        (folder,) = temporary.iterdir()
        (folder / "duckdb_temp_storage").write_text("as DuckDB does if memory is short")
        process.send_signal(signal.SIGINT)
        assert process.stderr and process.stderr.read() == b""
    assert process.returncode == -signal.SIGINT
    assert list(temporary.iterdir()) == [] and not Path(f"/proc/{child}").exists()


def test_a_query_that_the_system_kills_is_an_error(tmp_path: Path) -> None:
    words = "select count(*) from range(10000000) a, range(10000000) b where a.range + b.range = 7"
    command = [sys.executable, "-m", "fastprof", "sql", str(CFI), words]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
        os.kill(child_of(process), signal.SIGKILL)
        assert process.stderr
        assert process.stderr.read() == b"fastprof: the process that ran DuckDB was killed by signal 9\n"
    assert process.returncode == 1


def cpu_seconds(pid: int) -> float:
    ticks = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")
