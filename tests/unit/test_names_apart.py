"""Non-UTF-8 names are written with U+FFFD; names that become equal are made distinct, for every viewer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import fastprof
from tests.reference.profile_proto import Profile

NAMES = [b"f\xff", b"f\xfe", "f\N{REPLACEMENT CHARACTER}".encode(), "f\N{REPLACEMENT CHARACTER} [2]".encode(), b"g"]


def source(tmp_path: Path, names: list[bytes], target: str) -> Path:
    """Calls (in a trace) or samples of functions with these names, each with a different time."""
    path = tmp_path / ("x.callgrind" if target == "pprof" else "x.json")
    if target == "pprof":
        costs = [b"fn=%b\n%d %d\n" % (name, i, 1 << i) for i, name in enumerate(names)]
        path.write_bytes(b"version: 1\ncreator: x\nevents: Ir\nfl=a.c\n" + b"".join(costs))
    else:
        calls = [b'{"ph":"X","ts":%d,"dur":%d,"name":"%b"}' % (100 * i, 1 << i, name) for i, name in enumerate(names)]
        path.write_bytes(b'{"traceEvents":[' + b",".join(calls) + b"]}")
    return path


@pytest.mark.parametrize("names", [NAMES, NAMES[::-1]], ids=["forwards", "backwards"])
@pytest.mark.parametrize("target", ["pprof", "speedscope", "trace-event"])
def test_names_come_back_apart(target: str, names: list[bytes], tmp_path: Path) -> None:
    out, again = tmp_path / "out", tmp_path / "again"
    log = fastprof.convert(source(tmp_path, names, target), out, to=target)
    assert any("UTF-8" in text for text in log.not_representable.texts())
    rows = fastprof.top(out, n=0).rows
    assert len({row.name for row in rows}) == len(names)
    unit = 1 if target == "pprof" else 1000
    assert sorted(row.self for row in rows) == [unit << i for i in range(len(names))]
    fastprof.convert(out, again, from_=target, to=target)
    assert again.read_bytes() == out.read_bytes()


@pytest.mark.parametrize("names", [NAMES, NAMES[::-1]], ids=["forwards", "backwards"])
def test_names_for_firefox_are_apart(names: list[bytes], tmp_path: Path) -> None:
    out = tmp_path / "x.profile.json"
    fastprof.convert(source(tmp_path, names, "firefox"), out)
    profile = json.loads(out.read_text())
    strings = profile["shared"]["stringArray"] if "shared" in profile else profile["threads"][0]["stringArray"]
    assert len(strings) == len(set(strings)) and {
        "g",
        *(s for s in strings if s.startswith("f\N{REPLACEMENT CHARACTER}")),
    }
    assert len([s for s in strings if s.startswith("f\N{REPLACEMENT CHARACTER}")]) == 4


@pytest.mark.parametrize("names", [NAMES, NAMES[::-1]], ids=["forwards", "backwards"])
def test_names_for_perfetto_are_apart(names: list[bytes], tmp_path: Path) -> None:
    out = tmp_path / "x.pftrace"
    fastprof.convert(source(tmp_path, names, "perfetto"), out)
    written = out.read_bytes()
    texts = [b"f\xef\xbf\xbd" + end for end in (b"", b" [2]", b" [3]", b" [2] [2]")]
    assert [written.count(b"\x12" + bytes([len(text)]) + text) for text in texts[:2]] == [1, 1]
    assert written.count(b"f\xef\xbf\xbd") == 4


@pytest.mark.parametrize("names", [NAMES, NAMES[::-1]], ids=["forwards", "backwards"])
def test_tables_tell_them_apart_alike_in_all_columns(names: list[bytes], tmp_path: Path) -> None:
    path = tmp_path / "x.callgrind"
    lines = [b"fn=%b\n%d %d\ncfn=%b\ncalls=1 0\n%d 1\n" % (n, i, 1 << i, n, i) for i, n in enumerate(names)]
    # the callees of the first function have another order
    calls = [b"cfn=%b\ncalls=1 0\n0 1\n" % name for name in reversed(names)]
    path.write_bytes(b"events: Ir\nfl=a.c\nfn=main\n0 1\n" + b"".join(calls + lines))
    query = "select function, Ir from graph where kind = 'cost' and function != 'main'"
    with fastprof.sql(path, query) as answer:
        costs = dict(answer.rows())
    assert sorted(costs.values()) == [1 << i for i in range(len(names))]
    with fastprof.sql(path, "select function, callee from graph where kind = 'call' and function != 'main'") as answer:
        assert all(function == callee for function, callee in answer.rows())


def test_equal_label_sets_are_one_group_of_sql(tmp_path: Path) -> None:
    p = Profile()
    p.string_table[:] = ["", "samples", "count", "a", "b", "x", "y"]
    p.sample_type.add(type=1, unit=2)
    for keys in ((3, 4), (4, 3)):
        sample = p.sample.add(value=[1])
        for key in keys:
            sample.label.add(key=key, str=key + 2)
    path = tmp_path / "x.pb"
    path.write_bytes(p.SerializeToString())
    with fastprof.sql(path, "select labels, sum(samples) from samples group by 1") as answer:
        assert [*answer.rows()] == [({"a": "x", "b": "y"}, 2)]
