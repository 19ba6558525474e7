"""Questions in SQL: answers, forms of output, what a query may not do, errors in one line."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import fastprof
from fastprof.core.errors import FormatError, UsageError
from tests.support.paths import CORPUS, REPO
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
    assert [tuple(row.values()) for row in json.loads(done.stdout)] == want
    found = list(csv.reader(io.StringIO(run("--csv", CFI, query).stdout.decode())))
    assert found[0] == ["function", "line", "callee", "Ir"]
    assert found[1:] == [["" if cell is None else str(cell) for cell in row] for row in want]
    assert json.loads(run(CFI, "from graph where false", "--json").stdout) == []


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
    assert done.stderr.count(b"\n") == 1
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
    words = f"ulimit -f 8; cat {POOL} | TMPDIR=/tmp {sys.executable} -m fastprof sql - 'from spans'"
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
    assert done.stderr == b"fastprof: <file>: callgrind: line 4, byte 20: count is 'x', expected a number\n"
    done = run("-", "select count(*) from graph", "--lenient", input=damaged)
    assert (done.returncode, done.stdout.split()) == (3, [b"count_star()", b"1"])
    assert b"losses" in done.stderr


def test_without_duckdb(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(UsageError, match=r"sql needs DuckDB: pip install 'fastprof\[sql\]'"):
        fastprof.sql(POOL, "from spans")


def test_options_are_those_of_open() -> None:
    with fastprof.sql(POOL, "select count(distinct thread) from spans", time_unit="ticks") as answer:
        assert next(answer.rows())[0] > 0
    with pytest.raises(UsageError, match="would do nothing"):
        fastprof.sql(CFI, "from graph", time_unit="ticks")


def test_ctrl_c_is_no_error_of_the_query(tmp_path: Path) -> None:
    """Within a query DuckDB hears of it, too, but may wait for ever for its other threads: that is not tested."""
    (tmp_path / "in.folded").write_text(f"{'a' * 60}b 1\n")
    words = [sys.executable, "-m", "fastprof", "sql", str(tmp_path / "in.folded"), "from samples", "-q"]
    words += ["--function", "(a+)+$"]  # takes for ever
    with subprocess.Popen(words, stderr=subprocess.PIPE, preexec_fn=heard) as process:
        while process.poll() is None and cpu_seconds(process.pid) < 3:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        assert process.stderr and process.stderr.read() == b""
    assert process.returncode == 130


def cpu_seconds(pid: int) -> float:
    ticks = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")
