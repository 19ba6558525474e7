"""Labels of inputs: added to their samples, kept by merges, grouped by `top`."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import fastprof
from fastprof.cli import main
from fastprof.core.errors import FastprofError, UsageError
from fastprof.core.path_pattern import PathPattern
from tests.support.paths import CORPUS

GRAPH = "events: Ir\nfl=a.c\nfn=main\n1 1\ncfn=f\ncalls=1 1\n2 4\nfn=f\n1 4\n"


@pytest.fixture
def dumps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two hosts with two dumps each."""
    monkeypatch.chdir(tmp_path)
    for host, f, g in (("web1", 10, 1), ("web2", 30, 2)):
        for day in (1, 2):
            path = tmp_path / "dumps" / host / f"api-{day}.folded"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"main;f {f + day}\nmain;g {g}\n")
    return tmp_path / "dumps"


PATTERN = "dumps/{host}/{service}-{day}.folded"


def groups(inputs: Any, by: str, **options: Any) -> dict[str, int]:
    found = fastprof.top(inputs, by=by, n=0, **options)
    return {f"{row.label} {row.name}".strip(): row.self for row in found.rows}


def test_labels_from_paths(dumps: Path) -> None:
    given = {"label_path": PATTERN}
    assert groups("dumps", "label:host", **given) == {"web1": 25, "web2": 67}
    assert groups("dumps", "label:day,host", **given) == {
        "day=1, host=web1": 12,
        "day=1, host=web2": 33,
        "day=2, host=web1": 13,
        "day=2, host=web2": 34,
    }
    assert groups("dumps", "label:host,function", **given) == {"web1 f": 23, "web1 g": 2, "web2 f": 63, "web2 g": 4}
    assert groups("dumps", "label:zone", **given) == {"(none)": 92}
    assert groups("dumps", "label:service", label=["host=web1"], **given) == {"api": 25}  # a filter sees them


def test_the_names_of_inputs(dumps: Path) -> None:
    assert groups("dumps/web1", "input") == {"dumps/web1/api-1.folded": 12, "dumps/web1/api-2.folded": 13}


def test_a_merge_keeps_labels(dumps: Path) -> None:
    fastprof.merge("dumps", "all.pb.gz", label_path=PATTERN, set_label=["env=prod", "day=none"])
    assert groups("all.pb.gz", "label:host") == {"web1": 25, "web2": 67}
    assert groups("all.pb.gz", "label:env") == {"prod": 92}
    assert groups("all.pb.gz", "label:day") == {"1": 45, "2": 47}  # paths come after --set-label
    fastprof.merge("dumps", "all.fpa", label_path=PATTERN)
    assert groups("all.fpa", "label:host,function") == groups("dumps", "label:host,function", label_path=PATTERN)
    # repeated: given labels replace those of the samples
    fastprof.convert("all.pb.gz", "again.pb.gz", set_label=["host=any"])
    assert groups("again.pb.gz", "label:host") == {"any": 92}


def test_stores_keep_labels(dumps: Path) -> None:
    assert main(["archive", "add", "-q", "one.fpa", "dumps", "--label-path", PATTERN]) == 0
    given = ["--label-path", PATTERN, "--set-label", "env=prod"]
    assert main(["batch", "archive", "-q", "dumps", "-o", "many.fpa", *given]) == 0
    want = groups("dumps", "label:day,host", label_path=PATTERN)
    assert groups("one.fpa:*", "label:day,host") == groups("many.fpa:*", "label:day,host") == want  # all members
    assert groups("many.fpa:*", "label:env") == {"prod": 92}


def test_a_store_is_labelled_like_a_folder(dumps: Path) -> None:
    assert main(["archive", "add", "-q", "one.fpa", "dumps"]) == 0
    pattern = PATTERN.removeprefix("dumps/")
    want = groups("dumps", "label:day,host", label_path=pattern)
    for one_pattern in (pattern, f"one.fpa:{pattern}"):
        assert groups("one.fpa:*", "label:day,host", label_path=one_pattern) == want
    assert main(["archive", "add", "-q", "flat.fpa", "dumps/web1"]) == 0
    Path("days.csv").write_text("input,day\napi-1.folded,first\napi-2.folded,second\n")
    assert groups("flat.fpa:*", "label:day", labels_from="days.csv") == {"first": 12, "second": 13}


def test_batches_merge_the_same(dumps: Path) -> None:
    fastprof.merge("dumps", "one.pb", label_path=PATTERN)
    fastprof.batch_merge("dumps", "many.pb", label_path=PATTERN, fan_in=2, jobs=2)
    assert groups("many.pb", "label:day,host") == groups("one.pb", "label:day,host")


def test_graphs_and_timelines_become_stacks(dumps: Path) -> None:
    Path("a.callgrind").write_text(GRAPH)
    Path("b.callgrind").write_text(GRAPH.replace("4", "9"))
    assert groups(["a.callgrind", "b.callgrind"], "input") == {"a.callgrind": 5, "b.callgrind": 10}
    fastprof.merge(["a.callgrind", "b.callgrind"], "both.pb", label_input=True)
    assert groups("both.pb", "label:input,function") == {
        "a.callgrind f": 4,
        "a.callgrind main": 1,
        "b.callgrind f": 9,
        "b.callgrind main": 1,
    }
    for to in ("pstats", "parquet"):  # no format for labels of a graph
        with pytest.raises(UsageError, match="set_label"):
            fastprof.convert("a.callgrind", "c", to=to, set_label=["host=a"])
    with pytest.raises(UsageError, match="set_label"):
        fastprof.top("a.callgrind", set_label=["host=a"])


def parts_of(path: str) -> list[tuple[dict[str, str], int]]:
    """The descriptions of each part of a graph that are labels, and its total."""
    fastprof.convert(path, "parts.callgrind")
    parts = re.findall(r"(?s)(.*?)\ntotals: (.*?)\n", Path("parts.callgrind").read_text())
    labels = [re.search("desc: Labels: (.*)", part) for part, _ in parts]
    return [
        (dict(pair.split("=") for pair in found[1].split(" ")) if found else {}, int(total))
        for found, (_, total) in zip(labels, parts, strict=True)
    ]


GRAPHS = [({"day": day, "host": host}, n) for day, host, n in (("1", "a", 5), ("1", "b", 3), ("2", "a", 10))]


@pytest.fixture
def graphs(dumps: Path) -> Path:
    """graphs/HOST/DAY-N.callgrind: two files of one host and day, one of each of two others."""
    for name, n in (("a/1-x", 1), ("a/1-y", 2), ("a/2-x", 9), ("b/1-x", 2)):
        path = Path(f"graphs/{name}.callgrind")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(GRAPH.replace("4", str(n)))
    return Path("graphs")


def test_graphs_keep_labels_as_parts(graphs: Path) -> None:
    given: Any = {"label_path": "{host}/{day}-*.callgrind"}
    for to in ("m.callgrind", "m.fpa"):
        fastprof.merge("graphs", to, **given)
        assert parts_of(to) == GRAPHS
    fastprof.merge(["m.fpa", "m.fpa"], "twice.fpa")  # an archive has labels, by which others are merged
    assert parts_of("twice.fpa") == [(labels, 2 * n) for labels, n in GRAPHS]
    fastprof.convert("m.fpa", "one.callgrind", part=2)
    assert parts_of("one.callgrind") == [GRAPHS[1]]
    fastprof.merge("m.fpa", "more.fpa", set_label=["host=c", "env=x"])
    assert parts_of("more.fpa") == [({"day": day, "env": "x", "host": "c"}, n) for day, n in (("1", 8), ("2", 10))]
    fastprof.archive_add("store.fpa", "graphs", **given)
    fastprof.merge("store.fpa:*", "m.fpa")
    assert parts_of("m.fpa") == GRAPHS and parts_of("store.fpa:a/2-x.callgrind") == [GRAPHS[2]]


def test_functions_of_graphs_are_those_without_labels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Inlined code stays in its function, and no cost in [pruned], also in functions far below the limit."""
    monkeypatch.chdir(tmp_path)
    rare = "".join(f"fn=rare{i}\n{i + 9} 1\n" for i in range(4))
    for side, cost in (("old", 4_000_000), ("new", 5_000_000)):
        calls = f"fn=main\n1 2\ncfn=f\ncalls=1 2\n2 {cost + 7}\n"
        text = f"events: Ir\nob=app\nfl=a.c\n{calls}fn=f\n2 {cost}\nfi=a.h\n7 7\nfe=a.c\n{rare}"
        Path(f"{side}.callgrind").write_text(text)
    plain = {(row.name, row.file, row.self) for row in fastprof.top("old.callgrind", n=0).rows}
    assert ("f", "a.c", 4_000_007) in plain and len(plain) == 6
    given: Any = {"set_label": ["host=a"], "n": 0}
    found = fastprof.top("old.callgrind", by="label:host,function", **given)
    assert {(row.name, row.file, row.self) for row in found.rows} == plain and not found.log.warnings
    cells = fastprof.top("old.callgrind", matrix="host", **given).matrix
    assert cells and {(row.name, row.file, row.costs[0]) for row in cells.rows} == plain
    want = fastprof.diff("old.callgrind", "new.callgrind", n=0)
    got = fastprof.diff("old.callgrind", "new.callgrind", by="label:host,function", **given)
    assert [(row.name, row.old, row.new) for row in got.rows] == [(row.name, row.old, row.new) for row in want.rows]
    assert not got.log.warnings


def test_labels_of_parts_become_those_of_samples(graphs: Path) -> None:
    """What was merged is grouped as the inputs are."""
    given: Any = {"label_path": "{host}/{day}-*.callgrind"}
    wanted = {by: groups("graphs", by, **given) for by in ("label:day,host", "label:host,function")}
    assert wanted["label:day,host"] == {"day=1, host=a": 5, "day=1, host=b": 3, "day=2, host=a": 10}
    for to in ("m.callgrind", "m.fpa"):
        fastprof.merge("graphs", to, **given)
        assert {by: groups(to, by) for by in wanted} == wanted
        assert groups(to, "label:host", label=["day=1"]) == {"a": 5, "b": 3}
        assert fastprof.top(to, label=["day=1"]).total == 8
        with pytest.raises(UsageError, match="the labels are day, host"):
            fastprof.top(to, label=["day=3"])
        assert groups(to, "label:host", set_label=["host=c"]) == {"c": 18}  # given ones replace them
        assert fastprof.top(to, matrix="host", n=0).matrix == fastprof.top("graphs", matrix="host", n=0, **given).matrix
        log = fastprof.convert(to, "m.pb")
        assert not any("labels" in line for line in log.not_representable.lines())
        assert groups("m.pb", "label:day,host") == wanted["label:day,host"]
        fastprof.convert(to, "none.pb", labels=[])
        assert groups("none.pb", "label:host") == {"(none)": 18}
    log = fastprof.convert("graphs/a/1-x.callgrind", "one.cachegrind", set_label=["host=a b"])
    assert groups("one.cachegrind", "label:host") == {"a b": 2}


def test_all_labels_share_the_memory(graphs: Path) -> None:
    """Rows of each set of labels are spilled when another's come."""
    found = []
    for limit in (1, 32 << 20):
        fastprof.merge("graphs", "m.callgrind", label_path="{host}/{day}-{n}.callgrind", max_memory=limit)
        found.append(Path("m.callgrind").read_bytes())
    assert found[0] == found[1]


def test_stacks_that_become_a_graph_keep_labels_as_parts(dumps: Path) -> None:
    fastprof.merge("dumps", "m.callgrind", label_path="{host}/*")
    want = fastprof.top("dumps", by="label:host", label_path="{host}/*")
    assert [(labels["host"], n) for labels, n in parts_of("m.callgrind")] == sorted(
        (row.name, row.self) for row in want.rows
    )


def test_a_tree_of_merges_keeps_parts(graphs: Path) -> None:
    given: Any = {"label_path": "{host}/{day}-*.callgrind"}
    fastprof.merge("graphs", "one.fpa", **given)
    fastprof.batch_merge("graphs", "many.fpa", fan_in=2, jobs=2, **given)
    assert Path("many.fpa").read_bytes() == Path("one.fpa").read_bytes()
    with pytest.raises(UsageError, match="label_path= makes parts of a graph"):
        fastprof.batch_merge("dumps", "m.callgrind", fan_in=2, jobs=2, label_path="{host}/*")


def test_formats_without_parts(graphs: Path) -> None:
    """Cachegrind has one part: labels that differ are descriptions.  pprof reports them."""
    fastprof.merge("graphs", "m.fpa", label_path="{host}/{day}-*.callgrind")
    log = fastprof.convert("m.fpa", "m.cachegrind")
    lines = Path("m.cachegrind").read_text().splitlines()
    assert "desc: host: a" in lines and "desc: host: b" in lines and "header-fields" not in log.not_representable
    log = fastprof.convert("m.fpa", "m.folded")
    assert any("labels" in line for line in log.not_representable.lines())


def test_a_table_of_inputs(dumps: Path) -> None:
    Path("hosts.csv").write_text(
        "input,zone,kernel\ndumps/web1/api-1.folded,a,6.1\napi-2.folded,b,\ndumps/web2/api-2.folded,c,6.2\n"
    )
    found = fastprof.top("dumps", by="label:zone,kernel", labels_from="hosts.csv")
    assert {row.name: row.self for row in found.rows} == {
        "zone=a, kernel=6.1": 12,
        "zone=b, kernel=(none)": 13,
        "zone=(none), kernel=(none)": 33,
        "zone=c, kernel=6.2": 34,
    }
    assert found.log.warnings == ["dumps/web2/api-1.folded: is not in hosts.csv, so it gets no labels from it"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("name,zone\na,b\n", "at line 1: expected distinct names of columns, one of them input"),
        ("input\na\n", "at line 1"),
        ("", "at line 1"),
        ("input,zone\na\n", "at line 2: 1 cells, expected 2"),
    ],
)
def test_bad_tables(text: str, says: str, dumps: Path) -> None:
    Path("bad.csv").write_text(text)
    with pytest.raises(FastprofError, match=f"bad.csv: {says}"):
        fastprof.top("dumps", labels_from="bad.csv")
    with pytest.raises(FastprofError, match=r"none\.csv: No such file"):
        fastprof.top("dumps", labels_from="none.csv")


def test_a_path_that_does_not_match(dumps: Path) -> None:
    found = fastprof.top("dumps", by="label:host", label_path="other/{host}.prof")
    assert [(row.name, row.self) for row in found.rows] == [("(none)", 92)]
    assert ["does not match" in one for one in found.log.warnings] == [True] * 4 + [False]
    assert "no sample has the label host" in found.log.warnings[4]


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("{host}.prof", "/a/b/web.1.prof", {"host": "web.1"}),
        ("{host}/*.prof", "dumps/web1/x.prof", {"host": "web1"}),
        ("{host}/**/x-{n}", "r/web1/a/b/x-7", {"host": "r", "n": "7"}),
        ("{a}-{b}", "x-y-z", {"a": "x-y", "b": "z"}),
        ("h?{n}", "hx1", {"n": "1"}),
        ("{host}.prof", "web.pprof", None),
        ("{host}.p.of", "web.prof", None),
    ],
)
def test_patterns(pattern: str, path: str, expected: dict[str, str] | None) -> None:
    assert PathPattern(pattern).match(path) == expected


_PIECES = st.sampled_from(["{a}", "{b}", "{c}", "*", "**", "?", "/", "-", "x", "xy"])


@given(st.lists(_PIECES, min_size=1, max_size=6), st.text("xy-/\n", max_size=12))
def test_patterns_match_as_regular_expressions(pieces: list[str], path: str) -> None:
    """Which try every way, the longest first."""
    assume(any(pieces.count(field) == 1 for field in ("{a}", "{b}", "{c}")))
    assume(all(pieces.count(field) <= 1 for field in ("{a}", "{b}", "{c}")))
    text, made = "".join(pieces), ""
    for piece in re.findall(r"\{\w\}|\*\*|\*|\?|[^{*?]", text):
        field = f"(?P<{piece[1:2]}>[^/]+)" if piece[0] == "{" else None
        made += field or {"**": ".*", "*": "[^/]*", "?": "[^/]"}.get(piece) or re.escape(piece)
    found = re.fullmatch(f"(?:.*/)??{made}", path, re.DOTALL)
    assert PathPattern(text).match(path) == (found.groupdict() if found else None)


@pytest.mark.parametrize("end", [".prof", ".pb"])
def test_a_pattern_takes_linear_time(end: str) -> None:
    """A regular expression tries 10^12 ways, or more."""
    found = PathPattern("{a}-{b}-{c}.prof").match("-" * 10_000 + end)
    assert found == ({"a": "-" * 9996, "b": "-", "c": "-"} if end == ".prof" else None)


@pytest.mark.parametrize("pattern", ["", "a/b", "{}", "{1a}", "{a}{a}", "*"])
def test_bad_patterns(pattern: str, dumps: Path) -> None:
    with pytest.raises(UsageError, match="label_path: "):
        fastprof.top("dumps", label_path=pattern)


@pytest.mark.parametrize("by", ["label:", "label:a,,b", "label:a,a", "host", ""])
def test_bad_groups(by: str, dumps: Path) -> None:
    with pytest.raises(UsageError, match="by: "):
        fastprof.top("dumps", by=by)


def test_printed(dumps: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["top", "dumps", "--label-path", PATTERN, "--by", "label:host,function"]
    assert main(words) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[2].split()[-2:] == ["host", "function"] and lines[3].split()[-2:] == ["web2", "f"]
    assert main([*words, "--csv"]) == 0
    assert capsys.readouterr().out.splitlines()[0].startswith("label,name,file")
    assert main([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"][0]["label"] == "web2"
    assert main(["top", "dumps", "--label-path", PATTERN, "--by", "label:host"]) == 0
    assert "in 2 groups" in capsys.readouterr().out


def changes(old: Any, new: Any, by: str, **options: Any) -> dict[tuple[str, str], tuple[int, int]]:
    found = fastprof.diff(old, new, by=by, n=0, **options)
    return {(row.label, row.name): (row.old[0], row.new[0]) for row in found.rows}


def test_a_difference_by_labels(dumps: Path) -> None:
    given = {"label_path": "dumps/web1/{service}-{day}.folded"}
    old, new = "dumps/web1/api-1.folded", "dumps/web1"
    assert changes(old, new, "label:day", **given) == {("", "2"): (0, 13), ("", "1"): (12, 12)}
    assert changes(old, new, "label:day,function", **given) == {
        ("2", "f"): (0, 12),
        ("2", "g"): (0, 1),
        ("1", "f"): (11, 11),
        ("1", "g"): (1, 1),
    }
    assert changes(old, new, "label:zone,function", **given) == {
        ("(none)", name): costs for (_, name), costs in changes(old, new, "function").items() if name != "main"
    }
    by_input = changes(old, new, "input")
    assert by_input == {("", "dumps/web1/api-2.folded"): (0, 13), ("", old): (12, 12)}
    runs = fastprof.diff([old, old], ["dumps/web1/api-2.folded"] * 2, by="label:service,function", **given)
    assert [(row.label, row.name, row.old, row.new) for row in runs.rows] == [("api", "f", (11,), (12,))]


def test_functions_with_labels_pair_across_builds(dumps: Path) -> None:
    for name in ("1", "2"):
        text = GRAPH.replace("fl=a.c", f"ob=/opt/v{name}/server-{name}\nfl=/home/{name}/a.c")
        (dumps / f"{name}.callgrind").write_text(text)
    given: dict[str, Any] = {"by": "label:host,function", "set_label": ["host=a"]}
    paths = str(dumps / "1.callgrind"), str(dumps / "2.callgrind")
    assert fastprof.diff(*paths, **given).n_changed == 0
    assert fastprof.diff(*paths, pair="exact", **given).n_changed == 4


def test_a_printed_difference_by_labels(dumps: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["diff", "dumps/web1", "dumps", "--label-path", PATTERN, "--by", "label:host,function"]
    assert main(words) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[3].split()[-2:] == ["host", "function"] and lines[4].split()[-2:] == ["web2", "f"]
    assert main([*words, "--csv"]) == 0
    assert capsys.readouterr().out.splitlines()[:2] == [
        "label,name,file,object,line,callee,samples old,samples new",
        "web2,f,,,0,,0,63",
    ]
    assert main([*words, "--fail-over", "f=5"]) == 4
    assert "not part of the output" not in capsys.readouterr().err
    assert main([*words, "--fail-over", "h=5"]) == 2
    assert "neither profile has a value type or a function named h" in capsys.readouterr().err
    assert main([*words, "-o", "x.pb.gz"]) == 2
    assert "--by=label:host,function groups printed rows" in capsys.readouterr().err
    assert main(["diff", "dumps/web1", "dumps", "--label-path", PATTERN, "--by", "label:host"]) == 0
    assert capsys.readouterr().out.splitlines()[3].split()[-1] == "host"


def test_inputs_that_cannot_be_read_are_skipped(dumps: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A README in a folder must not end a verb."""
    (dumps / "README").write_text("who, when and why\n")
    for verb in (["top", "dumps"], ["diff", "dumps", "dumps"], ["report", "dumps", "-o", "page.html"]):
        assert main(verb) == 1
        assert main([*verb, "--keep-going"]) == 3
        said = capsys.readouterr().err
        assert "README" in said and "input" in said
    assert fastprof.top("dumps", keep_going=True).total == 92
    assert fastprof.diff("dumps/web1", "dumps", keep_going=True).values[0].new == 92
    Path("g").mkdir()
    Path("g/a.callgrind").write_text(GRAPH)
    Path("g/README").write_text("who, when and why\n")
    Path("a.c").write_text("one\ntwo\n")
    assert main(["annotate", "g", "a.c"]) == 1
    assert main(["annotate", "--keep-going", "g", "a.c"]) == 3


def test_trees_of_groups(dumps: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (dumps / "web2" / "api-1.folded").write_text("main;g;f 20\nmain;f 11\nmain;g 2\nweb2 1\n")
    given: dict[str, Any] = {"label_path": PATTERN, "tree": "both", "n": 0}

    def calls(by: str) -> dict[str, tuple[int, int | None, dict[str, int], dict[str, int]]]:
        return {
            f"{row.label} {row.name}".strip(): (
                row.self,
                row.inclusive,
                {call.name: call.cost for call in row.callers},
                {call.name: call.cost for call in row.callees},
            )
            for row in fastprof.top("dumps", by=by, **given).rows
        }

    assert calls("label:host") == {  # a function may be named like a host
        "web2": (68, 68, {}, {"main": 67, "web2": 1}),
        "web1": (25, 25, {}, {"main": 25}),
    }
    assert calls("label:host,function") == {
        "web1 main": (0, 25, {}, {"f": 23, "g": 2}),
        "web1 f": (23, 23, {"main": 23}, {}),
        "web1 g": (2, 2, {"main": 2}, {}),
        "web2 main": (0, 67, {}, {"f": 43, "g": 24}),
        "web2 f": (63, 63, {"main": 43, "g": 20}, {}),
        "web2 g": (4, 24, {"main": 24}, {"f": 20}),
        "web2 web2": (1, 1, {}, {}),
    }
    assert next(iter(calls("input").values())) == (34, 34, {}, {"main": 33, "web2": 1})
    for by, head in (("label:host", "host"), ("label:host,function", "host function")):
        assert main(["top", "dumps", "--label-path", PATTERN, "--by", by, "--tree", "callees"]) == 0
        assert f"object {head}" in " ".join(capsys.readouterr().out.splitlines()[2].split())
    with pytest.raises(UsageError, match="tree= shows functions, not by=label"):
        fastprof.top("dumps", by="label", tree="both")


@pytest.mark.parametrize("path", ["pprof/good/everything.pb", "pprof/good/go-cpulabels.pb", "xray/good/fdr3-busy.xray"])
def test_trees_of_groups_have_the_totals_of_tables(path: str) -> None:
    for by in ("label:key", "label:key,function,kind"):
        rows = [
            {
                (row.label, row.name, row.object): row.self
                for row in fastprof.top(str(CORPUS / path), by=by, n=0, **given).rows
            }
            for given in ({}, {"tree": "both", "max_memory": 1 << 20})
        ]
        assert rows[0] == {key: cost for key, cost in rows[1].items() if cost or key in rows[0]}


def test_parts_of_timelines_keep_labels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In archives, stores of several views and merges; samples and graphs made of them have the labels."""
    monkeypatch.chdir(tmp_path)
    Path("mix").mkdir()
    for name in ("web1.xray", "web2.xray"):
        Path("mix", name).write_bytes((CORPUS / "xray/good/fdr5-busy.xray").read_bytes())
    Path("mix", "web3.callgrind").write_text(GRAPH)
    options: dict[str, Any] = {"label_path": "mix/{host}.*"}
    fastprof.archive_add("s.fpa", ["mix"], **options)
    fastprof.merge(["mix/web1.xray", "mix/web2.xray"], "merged.fpa", **options)
    fastprof.convert("mix/web1.xray", "one.fpa", **options)
    cost = fastprof.top("mix/web1.xray").total
    both = {"web1": cost, "web2": cost}
    assert groups("s.fpa:*.xray", "label:host") == groups("merged.fpa", "label:host") == both
    assert groups("one.fpa", "label:host") == {"web1": cost}
    fastprof.convert("s.fpa:web2.xray", "x.callgrind")
    assert "desc: Labels: host=web2\n" in Path("x.callgrind").read_text()
    # labels given to the input replace those of the same key
    assert groups("one.fpa", "label:host", set_label=["host=db"]) == {"db": cost}
    # other formats of timelines have them in the names of processes
    log = fastprof.convert("one.fpa", "one.json", to="speedscope")
    assert not log.not_representable["header-fields"] and "[host=web1]" in Path("one.json").read_text()
    fastprof.convert("mix/web1.xray", "x.json", to="speedscope", set_label=["a=b"])
    assert "[a=b]" in Path("x.json").read_text()
    with pytest.raises(UsageError, match="set_label= has no effect from xray to xray"):
        fastprof.convert("mix/web1.xray", "x.xray", set_label=["a=b"])
