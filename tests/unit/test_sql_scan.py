"""What a query reads of a table, and that reading only that changes no answer."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest

import fastprof
from fastprof.bridges.rows.as_table import LAYOUTS
from fastprof.core.engine import Scan
from fastprof.core.errors import UsageError
from fastprof.core.options import INT64, UINT64
from fastprof.verbs.profile import Table
from fastprof.verbs.sql import filter as sql_filter
from tests.support.distinct import INPUTS
from tests.support.paths import CORPUS

duckdb = pytest.importorskip("duckdb")

POOL = CORPUS / "xray/good/fdr5-pool-clang19.xray"
LABELS = CORPUS / "pprof/good/go-cpulabels.pb.gz"
GRAPH = CORPUS / "callgrind/good/cfi.callgrind"

# Each table's columns and rows are read as far as the conditions of all uses of it allow.
QUERIES = {
    POOL: [
        "select count(*) from {t}",
        "select sum(ts) from {t} where thread = 29283",
        "select thread, count(*) from {t} where thread in (29283, 29284, null) group by all order by all",
        "select count(*) from {t} where thread = 29283 or thread = 29284",
        "select count(*) from {t} where not (thread = 29283) and thread + 1 > 0",
        "select count(*), min(function) from {t} where 'thrower(int, bool)' = function and true",
        "select function, count(*) from {t} where function like '%_nsert(T%' and ts > 1e9 group by all order by all",
        "select distinct function from {t} where starts_with(function, 'insert') or function is null order by all",
        "select thread, function from {t} where upper(function) = 'INSERT(TREE*, UNSIGNED INT)' limit 3",
        "select count(*) from {t} where ts between (select min(ts) + 100_000 from {t}) and 99999999999999999",
        "select a.ts, b.thread from {t} a join {t} b on a.ts = b.ts where a.thread = 29283 order by all limit 9",
        "select count(*) from {t} a, {t} b where a.thread = 29283 and b.thread = 29284 and a.ts < b.ts - 300_000",
        "select a.thread, count(*) from {t} a left join {t} b on b.thread = 1 and a.ts = b.ts group by 1 order by 1",
        "with s as (select * from {t} where thread = 29283) select count(*) from s union all select count(*) from {t}",
        "with {t} as (select ts, 7 as thread from {t} where thread = 29283) select count(*) from {t} where thread = 7",
        "select 1 as thread, count(*) from {t} where thread = 1",
        "select count(*) filter (where thread = 29283), count(thread), count(function) from {t}",
        "select sum(x.ts), count(x) from {t} x where x.thread = 29283",
        "select {t} from {t} where thread = 29283 order by all limit 2",
        "select min(columns('t.*')) from {t} where thread = 29283",
        "select #2 from {t} limit 3",
        "select count(*) from {t} natural join {t} u where u.thread = 29283",
        "select count(*) from {t} t(x, y, z) where z is not null",
        "select count(*) from (from {t} tablesample reservoir(20 rows) repeatable (1)) where thread = 29283",
        "select count(*) from {t} where thread = 29283 using sample reservoir(20 rows) repeatable (1)",
        "select (select max(u.thread) from {t} u where u.ts = v.ts) from {t} v where thread = 29283 order by 1 limit 3",
        "select exists (from {t} where thread = 5), count(*) from {t} where ts < 0",
        "select list(thread order by ts)[:3], rank() over (order by count(*)) from {t} where cast(ts as double) > 1",
    ],
    LABELS: [
        "select count(*) from samples",
        "select sum(cpu), sum(samples) from samples where function = 'main.job' and thread is null",
        "select sum(cpu) from samples where labels['kind'] = 'text'",
        "select count(*) from samples where ts >= 0 or ts is null",
        "select count(*) from samples where ts >= 0",
        "select samples.samples, cpu from samples where thread = 5 order by all",
        "select f.function, sum(cpu) from samples join frames f using (stack_id) where depth = 1 group by 1 order by 2",
        "select count(distinct stack_id), max(depth) from frames where function = 'main.main.func1'",
        "select labels, count(*) from samples group by 1 order by 2, 1::text limit 2",
    ],
    GRAPH: [
        "select count(*) from graph",
        "select sum(\"Ir\") from graph where function = 'f' and kind = 'cost'",
        "select callee, ir from graph where function like 'f' and callee like '%'",
        "select function, callee from graph where callee = 'g'",
        "select g.function, h.function from graph g join graph h on g.callee = h.function where h.function = 'g'",
    ],
}


def asked(path: Path, query: str) -> list[Any]:
    with fastprof.sql(path, query) as answer:
        return [answer.columns, *answer.rows()]


MAP = "* replace (labels::json::map(varchar, varchar) as labels)"


@pytest.mark.parametrize("path, table", [(POOL, "spans"), (POOL, "events"), (LABELS, ""), (GRAPH, "")])
def test_answers_are_those_of_the_whole_table(path: Path, table: str) -> None:
    """As `fastprof.sql` asks, but with one connection for all queries, because each takes 0.1 s to begin."""
    queries = [query.format(t=table) for query in QUERIES[path]]
    if table == "spans":
        queries += [
            "select id, parent, depth from spans where thread = 29284 order by id limit 5",
            "select p.function, sum(s.self) from spans s join spans p on s.parent = p.id where s.thread = 29284 "
            "group by all order by all limit 5",
            "select sum(dur - self) from spans where function = 'insert(Tree*, unsigned int)' and thread = 29283",
        ]
    whole, scanned = duckdb.connect(config={"threads": 1}), duckdb.connect(config={"threads": 1})
    with fastprof.open(path) as profile:
        for name in profile.tables:
            rows = whole.from_arrow(profile.table(name))
            (rows.project(MAP) if name == "samples" else rows).create(name)
        for query in queries:
            asked_for = sql_filter.Conditions(scanned, query)
            for name in [table] if table else profile.tables:
                read = asked_for.scan(name)
                rows = scanned.from_arrow(Table(profile, name, read))
                (rows.project(MAP) if name == "samples" and read.reads("labels") else rows).create_view(name)
            assert scanned.execute(query).fetchall() == whole.execute(query).fetchall(), query


def scan(query: str, table: str = "spans") -> Scan:
    return sql_filter.Conditions(connection(), query).scan(table)


@cache
def connection() -> Any:
    return duckdb.connect(config={"threads": 1})


def columns(query: str, table: str) -> set[str]:
    found = scan(query, table)
    return {kind.name for kind in LAYOUTS[table] if found.reads(kind.name)}


@pytest.mark.parametrize(
    "query, table, read",
    [
        ("select count(*) from spans", "spans", set()),
        ("select sum(SELF), upper(function) from spans s where s.thread = 7", "spans", {"self", "function", "thread"}),
        ("select 1 from samples join frames using (stack_id)", "frames", {"stack_id"}),
        ("from graph", "graph", {kind.name for kind in LAYOUTS["graph"]}),
        ("select count(*) from samples order by ts", "samples", {"ts"}),
        ("not SQL", "graph", {kind.name for kind in LAYOUTS["graph"]}),
    ],
)
def test_columns(query: str, table: str, read: set[str]) -> None:
    assert columns(query, table) == read


ANY = (0, UINT64)


@pytest.mark.parametrize(
    "condition, threads, times",
    [
        ("thread = 7", {7}, ANY),
        ("thread in (7, 3 * 3, -1)", {7, 9, -1}, ANY),
        ("7 = spans.thread and ts >= 5 and ts < 1000 and ts <= 2e3", {7}, (5, 1000)),
        ("ts between 10 and 20 and 15.5 > ts", None, (10, 16)),
        ("ts > 99999999999999999999", None, (INT64, INT64)),
        ("ts > 20 and ts < 10", None, (1, 0)),
        ("ts = 1e18", None, (10**18 - 889, 10**18 + 889)),  # as a float, ts is a multiple of 128
        ("thread = 7 or ts = 5", None, ANY),
        ("thread = 7.0 and ts <> 5 and ts = true and thread = null and thread = depth", None, ANY),
        ("not thread = 7", None, ANY),
        ("thread = (select 7)", None, ANY),
    ],
)
def test_rows(condition: str, threads: set[int] | None, times: tuple[int, int]) -> None:
    found = scan(f"select 1 from spans where {condition}")
    assert (found.threads, found.functions) == (threads, None)
    assert (found.times[0], found.times[1]) == times or all(
        abs(a - b) < 200 for a, b in zip(found.times, times, strict=True)
    )


@pytest.mark.parametrize(
    "condition, matching, other",
    [
        ("function = 'f'", ["f"], ["", "g", "ff"]),
        ("function in ('f', 'g')", ["f", "g"], ["h"]),
        ("function like 'a%b_c%'", ["abxc", "aab-cbxc1"], ["abc", "xabxc", "ABXC"]),
        ("function like '%ab%ab'", ["abab", "xababab"], ["ab", "aba"]),
        ("function like 'a.c'", ["a.c"], ["abc"]),
        ("function like '_'", ["a", "\u00e9", "ab\u00e9"], ["ab"]),  # the last one is left to DuckDB
        ("contains(function, 'x') and suffix(function, 'y')", ["xy"], ["x", "y"]),
    ],
)
def test_functions(condition: str, matching: list[str], other: list[str]) -> None:
    test = scan(f"select 1 from spans where {condition}").functions
    assert test is not None
    assert [test(name) for name in matching + other] == [True] * len(matching) + [False] * len(other)


@pytest.mark.parametrize("condition", ["function like 'a\\b'", "function ilike 'a'", "function > 'a'", "function = 7"])
def test_functions_that_only_duckdb_compares(condition: str) -> None:
    assert scan(f"select 1 from spans where {condition}").functions is None


def test_two_uses_are_read_together() -> None:
    found = scan("select 1 from spans a, spans b where a.thread = 1 and b.thread = 2 and a.ts > 5 and b.ts < 9")
    assert (found.threads, found.times) == ({1, 2}, (0, INT64))
    assert scan("select 1 from spans where thread = 1 union all select 2 from spans").threads is None


def test_only_what_is_read_is_built() -> None:
    with fastprof.open(POOL) as profile:
        (whole,) = Table(profile, "spans")._rows()
        (found,) = Table(profile, "spans", Scan(frozenset({"self"}), frozenset({29284})))._rows()
        (numbered,) = Table(profile, "spans", Scan(frozenset({"id"}), frozenset({29284})))._rows()
    assert [column.name for column in found.columns] == [b"self"] and len(found) == len(numbered) < len(whole) // 2


def test_an_unknown_column_is_compared_with_all() -> None:
    with pytest.raises(UsageError, match=r'"threat" not found.*thread'):
        fastprof.sql(POOL, "select threat from spans")


def test_names_that_are_not_utf8_are_left_to_duckdb(tmp_path: Path) -> None:
    path = tmp_path / "a.callgrind"
    path.write_bytes(b"events: Ir\nfn=a\xff\n1 2\nfn=a\xfe\n1 3\nfn=\xef\xbf\xbd\n1 4\n")
    query = "select \"Ir\" from graph where function like 'a% [2]' or false union all from (select 1 from graph where "
    assert asked(path, query + "function = 'a\ufffd [2]')") == [["Ir"], (3,), (1,)]


def test_stacks_may_be_removed_unless_their_ids_are_read(tmp_path: Path) -> None:
    """The model's stacks beyond the limit, which begin at the first number again."""
    path = tmp_path / "in.pb"
    INPUTS["stacks"](path, 6_000)
    found = []
    for columns in (["function"], ["function", "stack_id"]):
        with fastprof.open(path, max_memory=1 << 16) as profile:
            rows = list(Table(profile, "samples", Scan(frozenset(columns))))
            found.append([row["function"] for row in rows])
            if "stack_id" in columns:
                assert len({row["stack_id"] for row in rows}) > 5_000
    assert found[0] == found[1] and len(set(found[0])) > 1000
