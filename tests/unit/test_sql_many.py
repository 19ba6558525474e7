"""Queries of many profiles: one table with their names, input labels as columns; only the needed profiles are read."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import fastprof
from fastprof.cli import main
from fastprof.core.errors import FastprofError, UnrecognizedError, UsageError
from fastprof.store.adding import add
from fastprof.verbs.archive import archive_compact, archive_rm
from fastprof.verbs.sql import Answer
from fastprof.verbs.sql.joined_tables import Together
from tests.support.paths import CORPUS

pytest.importorskip("duckdb")

GRAPH = CORPUS / "callgrind/good/cfi.callgrind"
LABELS = CORPUS / "pprof/good/go-cpulabels.pb.gz"
HEAP = CORPUS / "pprof/good/go-heap.pb.gz"


@pytest.fixture
def dumps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """web1: a.pb.gz (cpu) and g.callgrind; web2: a.pb.gz (heap)."""
    monkeypatch.chdir(tmp_path)
    for host, source, name in (("web1", LABELS, "a.pb.gz"), ("web1", GRAPH, "g.callgrind"), ("web2", HEAP, "a.pb.gz")):
        (tmp_path / "dumps" / host).mkdir(parents=True, exist_ok=True)
        shutil.copy(source, tmp_path / "dumps" / host / name)
    return tmp_path


def asked(inputs: Any, query: str, **options: Any) -> list[Any]:
    with fastprof.sql(inputs, query, **options) as answer:
        return sorted(answer.rows(), key=repr)


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Collects the names of the profiles that are opened."""
    found = set[str]()
    before = Together.open

    def counted(self: Together, number: int) -> Any:
        found.add(self.names[number])
        return before(self, number)

    monkeypatch.setattr(Together, "open", counted)
    return found


def test_a_folder_is_one_table(dumps: Path) -> None:
    alone = {
        name: asked(name, f"select count(*), sum({value}) from samples")[0]
        for name, value in (("dumps/web1/a.pb.gz", "cpu"), ("dumps/web2/a.pb.gz", "inuse_space"))
    }
    found = asked("dumps", "select profile, count(*), sum(cpu), sum(inuse_space) from samples group by 1")
    (n1, cpu), (n2, space) = alone.values()
    assert found == [("dumps/web1/a.pb.gz", n1, cpu, None), ("dumps/web2/a.pb.gz", n2, None, space)]
    assert asked("dumps", "select profile, sum(\"Ir\") from graph where kind = 'cost' group by 1") == [
        ("dumps/web1/g.callgrind", 14)
    ]


def test_a_store_is_the_same_table(dumps: Path, capfd: pytest.CaptureFixture[str]) -> None:
    add("s.fpa", ["dumps"])
    query = "select regexp_extract(profile, 'web.*'), function, labels, sum(cpu), count(*) from samples group by all"
    assert asked("s.fpa", query) == asked("dumps", query) == asked("s.fpa:web*", query)
    assert {row[0] for row in asked("s.fpa:*/a.pb.gz", "select profile from samples")} == {
        "s.fpa:web1/a.pb.gz",
        "s.fpa:web2/a.pb.gz",
    }
    assert main(["sql", "-q", "--csv", "s.fpa", "--member", "web1/g.callgrind", "select count(*) from graph"]) == 0
    assert capfd.readouterr().out.splitlines()[1:] == ["3"]
    # a single profile of a store is not many
    with pytest.raises(UsageError, match='"profile" not found'):
        asked("s.fpa:web1/a.pb.gz", "select profile from samples")


def test_joined_by_profile(dumps: Path) -> None:
    query = "select function, sum(cpu) from samples s join (select distinct {} stack_id, function f from frames) "
    query += "using ({} stack_id) where f = 'main.main.func1' group by 1"
    both = asked("dumps", query.format("profile,", "profile,"))
    assert both == asked("dumps/web1/a.pb.gz", query.format("", "")) and both


def test_labels_are_a_map(dumps: Path) -> None:
    (kinds,) = asked("dumps/web1/a.pb.gz", "select list_sort(list(distinct labels['kind'])) from samples")
    assert "text" in kinds[0]
    query = "select distinct map_keys(labels) from samples where host = 'web2'"
    assert (["bytes", "host"],) in asked("dumps", query, label_path="{host}/*")


def test_labels_of_inputs_are_columns(dumps: Path, opened: set[str]) -> None:
    options: dict[str, Any] = {"label_path": "{host}/*", "set_label": ["env=prod"]}
    query = "select profile, host, env from profiles"
    assert asked("dumps", query, **options) == [
        (f"dumps/{name}", name[:4], "prod") for name in ("web1/a.pb.gz", "web1/g.callgrind", "web2/a.pb.gz")
    ]
    assert opened == set()  # this query needs no profile
    assert asked("dumps", "select distinct host, function from graph", **options) == [("web1", "f"), ("web1", "g")]
    # the table already has this name
    assert asked("dumps", "select distinct function_2 from graph", set_label=["function=x"]) == [("x",)]


def test_the_index_of_a_store_counts_rows(dumps: Path, opened: set[str]) -> None:
    """Of samples and graphs, if the query needs nothing else of them."""
    add("s.fpa", ["dumps"], label_path="{host}/*")
    counted = [
        "select count(*) from {}",
        "select profile, host, count(*) from {} group by 1, 2 order by 1 limit 9",
        "select host, count(*) from {} where profile like '%web1%' group by all",
        "select count(distinct profile), count(*) from {}",
    ]
    for table in ("samples", "graph"):
        for query in counted:
            opened.clear()
            found = asked("s.fpa", query.format(table))
            assert opened == set() and found[0][-1] > 0
            whole = query.format(f"(select *, function || '' as f from {table})")
            assert [*map(str, found)] == [*map(str, asked("s.fpa", whole))]
            assert opened != set()
    n = asked("s.fpa", "select count(*) from graph")
    opened.clear()
    for query in (
        "select count(*) from samples where thread = 1",
        "select count(*) from samples where function like 'm%'",
        "select count(samples) from samples",
        "select count(*) from spans",
    ):
        with suppress(UsageError):
            asked("s.fpa", query)
        assert opened != set()
        opened.clear()
    # options that choose rows
    assert asked("s.fpa", "select count(*) from graph", part=1) == n
    assert opened != set()


def test_labels_in_a_store_are_columns(dumps: Path, opened: set[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Of additions by one process and by several, of copies, and without an index."""
    add("s.fpa", ["dumps/web1"], label_path="{host}/*", set_label=["env=prod"])
    add("s.fpa", ["dumps/web2/a.pb.gz"], name="heap")
    hosts = "select profile, host, env from profiles"
    expected = [("s.fpa:a.pb.gz", "web1", "prod"), ("s.fpa:g.callgrind", "web1", "prod"), ("s.fpa:heap", None, None)]
    assert asked("s.fpa", hosts) == asked("s.fpa:*", hosts) == expected
    assert opened == set()
    assert asked("s.fpa", "select distinct host, function from graph") == [("web1", "f"), ("web1", "g")]
    assert asked("s.fpa", hosts + " where host = 'db'", set_label=["host=db"])[0] == ("s.fpa:a.pb.gz", "db", "prod")
    with monkeypatch.context() as few:
        few.setattr("fastprof.verbs.sql.joined_tables._MOST_KEYS", 2)
        with pytest.raises(UsageError, match="labels of 2 keys, at most 1 can be columns"):
            asked("s.fpa", hosts)
    opened.clear()
    assert asked("s.fpa", "select count(stack_id) > 0 from samples where host is null") == [(True,)]
    assert opened == {"s.fpa:heap"}

    fastprof.batch_archive("dumps", "b.fpa", jobs=2, label_path="{host}/*")
    add("c.fpa", ["b.fpa:web1/*"], set_label=["env=test"])
    found = asked(["b.fpa:web2/*", "c.fpa"], hosts)
    assert found == [("b.fpa:web2/a.pb.gz", "web2", None)] + [
        (f"c.fpa:web1/{name}", "web1", "test") for name in ("a.pb.gz", "g.callgrind")
    ]
    archive_rm("c.fpa", "*.callgrind")
    archive_compact("c.fpa")
    assert asked(["c.fpa", "s.fpa:heap"], hosts) == [("c.fpa", "web1", "test"), ("s.fpa:heap", None, None)]
    Path("s.fpa").write_bytes(Path("s.fpa").read_bytes()[:-1])
    Path("t.fpa").write_bytes(Path("s.fpa").read_bytes()[:-700])
    assert asked("t.fpa", hosts, lenient=True)[:2] == [(f"t{name[1:]}", *more) for name, *more in expected[:2]]


A1, G1, A2 = "dumps/web1/a.pb.gz", "dumps/web1/g.callgrind", "dumps/web2/a.pb.gz"


@pytest.mark.parametrize(
    "condition, read",
    [
        ("where profile like '%web2%'", [A2]),
        ("where PROFILE = 'dumps/web1/a.pb.gz' and ts is null", [A1]),
        ("where host = 'web2' and samples.host in ('web1', 'web2')", [A2]),
        ("where not (host = 'web2')", [A1, G1]),
        ("where lower(host) = 'web2' or profile like '%g.callgrind'", [G1, A2]),
        ("where host = 'web2' or function = 'f'", [A1, G1, A2]),  # depends on rows
        ("where host || 'x' = (select 'web2x')", [A1, G1, A2]),
        ("s left join frames f using (profile, stack_id) where f.profile is null", [A1, G1, A2]),
        ("s, (select 1 as one) where s.host = 'web2'", [A1, G1, A2]),
        ("s join profiles p using (profile) where s.host = 'web2'", [A2]),
        ("where host = 'web2' union all select 1 from samples where host = 'web1'", [A1, G1, A2]),
        ("where host = 'web2' union all select 1 from samples", [A1, G1, A2]),
        ("where host = 'web2' using sample reservoir(99 rows) repeatable (1)", [A1, G1, A2]),  # before `where`
        ("where profile = 'none'", [A1]),  # its columns are those of the table
        ("s(x, profile) where profile = 'web2'", [A1, G1, A2]),  # that is the host
        ("events where events.host = 'web2'", [A2]),  # not a use of the table events
        ("where host = 'web2' and profile in (select profile from query('from samples'))", [A1, G1, A2]),
    ],
)
def test_only_profiles_that_a_query_asks_for_are_read(
    condition: str, read: Sequence[str], dumps: Path, opened: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    query = f"select count(*) from samples {condition}"
    found = asked("dumps", query, label_path="{host}/*")
    assert opened == {*read}
    monkeypatch.setattr("fastprof.verbs.sql.filter.Conditions.numbers", lambda self, table, columns, n: [*range(n)])
    assert asked("dumps", query, label_path="{host}/*") == found


def test_a_condition_that_fails_by_itself_is_left_to_the_query(dumps: Path, opened: set[str]) -> None:
    Path("hosts.csv").write_text(f"input,host,n\n{A1},web1,x\n{A2},web2,7\n{G1},web1,\n")
    query = "select count(*) from samples where host = 'web2' and n = 7"
    assert asked("dumps", query, labels_from="hosts.csv") == [(4056,)]
    assert opened == {A2}
    with pytest.raises(UsageError, match="Could not convert string 'x' to INT32"):
        asked("dumps", "select count(*) from samples where n = 7", labels_from="hosts.csv")


def test_labels_named_like_columns(dumps: Path, opened: set[str]) -> None:
    """The label `profile` is not the name of the input, and k8s.pod is a column k8s.pod, not pod of k8s."""
    options: dict[str, Any] = {"set_label": ["profile=x", "k8s.pod=y"]}
    query = f"""select distinct profile, profile_2, "k8s.pod" from {{}} where profile = '{A2}' and profile_2 = 'x'"""
    assert asked("dumps", query.format("samples"), **options) == [(A2, "x", "y")]
    assert opened == {A2}
    assert asked("dumps", query.format("profiles"), **options) == [(A2, "x", "y")]
    with pytest.raises(UsageError, match="k8s"):
        asked("dumps", "select 1 from samples where k8s.pod = 'y'", **options)


def test_tables_that_a_query_names_elsewhere(dumps: Path) -> None:
    (n,) = asked("dumps", "select count(*) from samples")
    for source in ("query('select * from sam' || 'ples')", "query_table('samples')", "query_table(['samples'])"):
        assert asked("dumps", f"select count(*) from {source}") == [n]
    for query in ("show samples", "describe samples", "from pragma_table_info('samples')"):
        assert {"profile", "cpu", "inuse_space"} <= {cell for row in asked("dumps", query) for cell in row}
    joined = "select count(*) from profiles a join profiles b on a.profile = b.profile and exists (from graph)"
    assert asked("dumps", joined) == [(3,)]


def test_names_have_no_secrets() -> None:
    url = "https://me:secret@host/a.prof?X-Amz-Signature=1f"
    together = Together([url], None, {"label_input": True}, keep_going=False)
    assert together.constants_of(0) == {"": "https://host/a.prof", "input": "https://host/a.prof"}


def test_inputs_without_labels_are_reported(dumps: Path) -> None:
    for table in ("profiles", "samples"):
        with fastprof.sql("dumps", f"select 1 from {table}", label_path="web1/{name}.pb.gz") as answer:
            assert [*answer.rows()]
            assert [warning.partition(":")[0] for warning in answer.log.warnings] == [G1, A2]


def test_several_files_have_both(dumps: Path) -> None:
    assert asked([A1, A2], "select profile, count(*) from samples group by 1") == [(A1, 171), (A2, 4056)]
    assert asked([A1, A2], "select (select count(*) from p1.samples), (select count(*) from p2.samples)") == [
        (171, 4056)
    ]


def test_keep_going(dumps: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (dumps / "dumps/web2/README").write_text("bad")
    damaged = dumps / "dumps/web2/late.callgrind"
    damaged.write_bytes(b"events: Ir\nfn=f\n" + b"1 2\n" * 140_000 + b"1 x\n")
    query = "select profile, count(*) from graph group by 1"
    with pytest.raises(UnrecognizedError, match="web2/README"):
        asked("dumps", query)
    with fastprof.sql("dumps", query, keep_going=True) as answer:
        assert [*answer.rows()] == [(G1, 3)]  # a damaged profile is left out completely
        assert sum(answer.log.losses.values()) == 2
    assert main(["sql", "dumps", query, "--keep-going"]) == 3
    said = capfd.readouterr().err
    assert "dumps/web2/README: unknown format" in said and "late.callgrind: callgrind: line 140003" in said
    with pytest.raises(FastprofError, match="none of the inputs can be read; the last one: "):
        asked([str(damaged), "dumps/web2/README"], query, keep_going=True)
    assert main(["info", "dumps"]) == 1
    capfd.readouterr()
    assert main(["info", "dumps", "--keep-going"]) == 3
    said, err = capfd.readouterr()
    assert said.count("format  ") == 3 and err.count("warning: dumps/web2/") == 2


def test_a_profile_that_is_not_selected_has_no_losses(dumps: Path) -> None:
    bad = "dumps/web1/a.callgrind"
    Path(bad).write_text("events: Ir\nfn=f\n1 x\n1 2\n")
    with fastprof.sql("dumps/web1", "select * from graph where profile = 'x'", lenient=True) as answer:
        assert not [*answer.rows()] and "Ir" in answer.columns and not answer.log.losses
    Path(bad).write_text("bad")
    query = "select * from graph where profile = 'x'"
    with fastprof.sql("dumps", query, keep_going=True) as answer:
        assert not [*answer.rows()] and "Ir" in answer.columns and not answer.log.losses
    with fastprof.sql("dumps", "select * from graph where profile like '%.callgrind'", keep_going=True) as answer:
        assert len([*answer.rows()]) == 3 and sum(answer.log.losses.values()) == 1


def test_keep_going_keeps_numbers(dumps: Path) -> None:
    Path("bad").write_text("bad")
    add("s.fpa", [A1, G1])
    Path("bad.fpa").write_bytes(Path("s.fpa").read_bytes()[:40])
    query = "select count(*) from p3.samples"
    for bad in ("bad", "bad.fpa"):
        with fastprof.sql(["bad", bad, A2], query, keep_going=True) as answer:
            assert [*answer.rows()] == [(4056,)] and answer.log.losses.total() == 2
        with pytest.raises(FastprofError, match=f"none of the inputs can be read; the last one: {bad}: "):
            asked(["bad", bad], query, keep_going=True)
        assert asked([A1, bad], "select count(*) from samples", keep_going=True) == [(171,)]
    Path("empty").mkdir()
    with pytest.raises(FastprofError, match="none of the inputs can be read; the last one: empty: "):
        asked("empty", query, keep_going=True)


def test_names_of_files_are_not_numbers(dumps: Path) -> None:
    shutil.copy(A1, "p1.pb.gz")
    assert asked(["p1.pb.gz", A2], "select count(*) from samples where profile = 'p1.pb.gz'") == [(171,)]
    assert asked([A1, A2], """select (select count(*) from "P1" . samples), (select count(*) from p2."samples")""") == [
        (171, 4056)
    ]


def test_units_are_compared(dumps: Path) -> None:
    for unit in ("ms", "us"):
        Path(f"{unit}.collapsed").write_text("a;b 7\n")
        log = fastprof.convert(f"{unit}.collapsed", f"{unit}.pb", from_="folded", rename_value=[f"samples=t/{unit}"])
        assert not log.losses
    with pytest.raises(UsageError, match=r"column t has .* in ms\.pb and .* in us\.pb: convert one with rename_value="):
        asked(["ms.pb", "us.pb"], "select sum(t) from samples")


def test_options_that_nothing_uses(dumps: Path) -> None:
    with pytest.raises(UsageError, match="debug_dirs= has no effect on any input"):
        asked("dumps", "select count(*) from graph where profile like '%g.callgrind'", debug_dirs=["dumps"])
    assert asked("dumps", "select count(*) from graph", symbolize=True) == [(3,)]


def test_a_filter_may_leave_no_row_of_some_profiles(dumps: Path) -> None:
    """As in other verbs, it must leave one of any."""
    Path("svc").mkdir()
    for name, function in (("api", "parse"), ("db", "scan")):
        Path(f"svc/{name}.folded").write_text(f"main;{function} 10\nmain;gc 3\n")
    query = "select profile, sum(samples) from samples group by 1"
    given: Any = {"label_path": "{service}.folded"}
    fastprof.archive_add("svc.fpa", "svc", **given)
    both: list[Any] = [("svc", given), ("svc.fpa", {})]
    chosen: list[Any] = [{"label": ["service=api"]}, {"function": "^parse$"}]
    for inputs, labels in both:
        for filters in chosen:
            found = asked(inputs, query, **labels, **filters)
            total = fastprof.top("svc", **given, **filters).total
            assert [(Path(name).name.rpartition(":")[2], n) for name, n in found] == [("api.folded", total)]
        with pytest.raises(UsageError, match="no row matches label='service=web'; the labels are service"):
            asked(inputs, query, **labels, label=["service=web"])
    with pytest.raises(UsageError, match=r"db\.folded: no row matches"):
        asked("svc", query + " having profile like '%db%'", label=["service=web"], **given)


def test_many_names_stay_apart(dumps: Path) -> None:
    """Each batch has different texts: DuckDB must not use those of another."""
    for number in range(60):
        Path("dumps/web1/g.callgrind").parent.joinpath(f"g{number:02}.callgrind").write_text(
            f"events: Ir\nfn=f{number}\n1 {number + 1}\n"
        )
    found = asked("dumps", "select profile, function, sum(\"Ir\") from graph where function <> 'g' group by 1, 2")
    want = [(f"dumps/web1/g{n:02}.callgrind", f"f{n}", n + 1) for n in range(60)]
    assert [row for row in found if row[0] != G1] == want


def test_profiles_in_memory_and_with_steps_of_their_own() -> None:
    """Their names are made different, because rows are joined by them."""
    labelled = fastprof.open(CORPUS / "pprof/good/go-cpulabels.pb.gz")
    costs = {"f": 1, "g": 2}.items()
    made = [fastprof.from_stacks([([name], cost)], values=[("cpu", "nanoseconds")]) for name, cost in costs]
    query = "select profile, sum(cpu)::int from samples join frames using (profile, stack_id) where depth = 0 "
    query += "group by 1 order by 2"
    with fastprof.sql([labelled, labelled.where(labels={"kind": "text"}), *made], query) as answer:
        found = [*answer.rows()]
    name = labelled.name
    assert found == [("<from_stacks>", 1), ("<from_stacks> [2]", 2), (f"{name} [2]", 150000000), (name, 1740000000)]


def test_what_cannot_be_queried_together(dumps: Path) -> None:
    with open(__file__, "rb") as file, pytest.raises(UsageError, match="needs files or URLs"):
        asked(["dumps", file], "select 1 from samples")
    with pytest.raises(UsageError, match="querying several profiles together needs files or URLs"):
        asked(["dumps", "-"], "select 1 from samples")
    with pytest.raises(UsageError, match=r"spans does not exist! \(tables: frames, graph, samples, profiles\)$"):
        asked("dumps", "from spans")
    with pytest.raises(UsageError, match=r"tables: .*graph, .*profiles\)"):
        Answer("from nothing", ["dumps"], None, {})


def test_an_error_lists_similar_columns(dumps: Path) -> None:
    with pytest.raises(UsageError, match=r'"functio" not found.*"function"'):
        asked("dumps", "select functio from samples")
