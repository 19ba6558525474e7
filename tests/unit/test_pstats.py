"""Profiles of cProfile: the statements of docs/formats/pstats.md, against Python's own pstats and marshal."""

from __future__ import annotations

import marshal
import pstats
from collections import Counter
from pathlib import Path
from struct import pack
from types import CodeType
from typing import Any

import pytest

import fastprof
from fastprof.core.errors import FormatError
from fastprof.core.options import Options
from tests.support.paths import CORPUS
from tests.support.product import batches, open_input

GOOD = CORPUS / "pstats" / "good"
F, G = ("a.py", 3, "f"), ("b.py", 1, "g")
Stats = dict[Any, Any]


def stats_of(path: Path) -> Stats:
    return pstats.Stats(str(path)).stats  # type: ignore[attr-defined, no-any-return]


def rounded(stats: Stats) -> Stats:
    """Times in nanoseconds, callers as (calls, primitive calls, own time, cumulative time)."""

    def ns(values: Any) -> Any:
        return tuple(round(v * 1e9) if isinstance(v, float) else v for v in values)

    return {key: (*ns(v[:4]), {caller: ns(c) for caller, c in v[4].items()}) for key, v in stats.items()}


def read(data: bytes | Path, **options: Any) -> tuple[Stats, Any]:
    """The rows in the shape of pstats, and the log."""
    opened = open_input(data, Options(**options), from_="pstats")
    found: Stats = {}
    model = opened.model

    def key(function: int) -> tuple[str, int, str]:
        _, file, name, _, line = model.row("functions", function)
        path = model.string(file).decode()
        return path or "~", line, model.string(name).decode()

    for batch in batches(opened):
        for i, kind in enumerate(batch["kind"]):
            time, calls, primitive, cumulative, own = (batch.values(k)[i] for k in range(5))
            function = key(batch["function"][i])
            if kind:
                assert (time, int(batch["count"][i])) == (cumulative, max(0, calls))
                callers = found.setdefault(key(batch["callee"][i]), (0, 0, 0, 0, {}))[4]
                callers[function] = (calls, primitive, own, cumulative)
            else:
                assert time == own
                found[function] = (primitive, calls, own, cumulative, found.get(function, (0, 0, 0, 0, {}))[4])
    return found, opened.log


@pytest.mark.parametrize("name", ["py3.8.pstats", "py3.13.pstats"])
def test_rows_are_those_of_pstats(name: str) -> None:
    assert read(GOOD / name)[0] == rounded(stats_of(GOOD / name))


def test_python_2() -> None:
    """Python 3 cannot read its texts."""
    found, _ = read(GOOD / "py2.7.pstats")
    assert {key[2]: v[:2] for key, v in found.items() if key[0] == "prog.py"} == {
        "main": (1, 1), "even": (4, 12), "odd": (4, 12), "fact": (4, 12), "leaf": (7, 7)
    }  # fmt: skip
    assert {key[2]: v[0] for key, v in found[("prog.py", 9, "even")][4].items()} == {"main": 4, "odd": 8}


@pytest.mark.parametrize("name", ["py3.8.pstats", "py3.13.pstats"])
def test_written_again_nothing_changes(name: str, tmp_path: Path) -> None:
    log = fastprof.convert(GOOD / name, tmp_path / "again.pstats")
    assert stats_of(tmp_path / "again.pstats") == stats_of(GOOD / name)
    assert not log.not_representable and not log.warnings


def test_merged_as_by_pstats(tmp_path: Path) -> None:
    paths = [GOOD / "py3.8.pstats", GOOD / "py3.13.pstats"]
    fastprof.merge(paths, tmp_path / "both.pstats")
    expected = pstats.Stats(*map(str, paths))
    assert rounded(stats_of(tmp_path / "both.pstats")) == rounded(expected.stats)  # type: ignore[attr-defined]


def test_callers_without_times_get_a_part() -> None:
    data = marshal.dumps({F: (4, 6, 3e-6, 9e-6, {G: 3, ("c.py", 1, "h"): 1, F: 2})})
    found, log = read(data)
    assert found[F] == (4, 6, 3000, 9000, {
        G: (3, 3, 2250, 6750), ("c.py", 1, "h"): (1, 1, 750, 2250), F: (2, 0, 0, 0)
    })  # fmt: skip
    assert log.repairs == {"callers-without-times": 3}


@pytest.mark.parametrize("version", range(5))
def test_versions_of_marshal(version: int) -> None:
    callers = {G: (3, 2, 1.5e-6, 0.25)}
    stats = {F: (2, 3, 1.5e-6, 0.25, callers), G: (1, 1, 0.0, 1.0, {}), ("é.py", 1 << 30, "λ"): (1, 1, 0.0, 0.0, {})}
    assert read(marshal.dumps(stats, version))[0] == rounded(stats)


def test_slices_of_version_5_are_refused() -> None:
    """Python 3.14 writes profiles as version 4 does; what its version 5 adds, slices (`:`), no profile has."""
    data = marshal.dumps({F: (1, 1, 0.0, 0.0, {})}, 4)
    assert data.endswith(b"{00")  # no callers; the end of the profile
    with pytest.raises(FormatError, match="the type of a value is 0x3a"):
        read(data[:-1] + b":NNNN0")


def test_the_mark_of_samples_is_no_function() -> None:
    """Python 3.15's profiling.sampling writes it last, and numbers of samples for callers."""
    stats: Stats = {F: (2, 5, 0.002, 0.005, {}), G: (3, 3, 0.003, 0.003, {F: 3}), ("__sampled__",): True}
    found, log = read(marshal.dumps(stats))
    assert found == {
        F: (2, 5, 2_000_000, 5_000_000, {}),
        G: (3, 3, 3_000_000, 3_000_000, {F: (3, 3, 3_000_000, 3_000_000)}),
    }
    assert log.facts["sampled"] is True
    with pytest.raises(FormatError, match="the key of a function"):
        read(marshal.dumps({("__traced__",): True}))


def test_numbers_of_any_size() -> None:
    stats = {F: (1 << 40, (1 << 63) - 1, -1e-6, 9e9, {})}
    assert read(marshal.dumps(stats))[0] == {F: (1 << 40, (1 << 63) - 1, -1000, 9 * 10**18, {})}
    for beyond in (1 << 63, 1 << 200):
        with pytest.raises(FormatError, match="a number of calls"):
            read(marshal.dumps({F: (1, beyond, 0.0, 0.0, {})}))


def test_a_shared_dict_of_callers_is_no_bomb() -> None:
    callers = {("a.py", n, "f"): (1, 1, 0.0, 0.0) for n in range(1000)}
    stats = {("b.py", n, "g"): (1, 1, 0.0, 0.0, callers) for n in range(1000)}
    with pytest.raises(FormatError, match="functions share their callers"):
        read(marshal.dumps(stats))


def test_deep_values_are_refused() -> None:
    with pytest.raises(FormatError, match="nested more than 8 deep"):
        read(b"{" + b"\xa9\1" * 100_000 + b"N")


def test_lenient_leaves_out_what_is_broken() -> None:
    stats = {F: (1, 1, 0.0, 0.0, {G: (1, 1, 0.0, 0.0), ("g",): 3}), G: (1.5, 1, 0.0, 0.0, {})}
    found, log = read(marshal.dumps(stats), lenient=True)
    assert found == {F: (1, 1, 0, 0, {G: (1, 1, 0, 0)})}
    assert log.losses == {"broken-functions": 2}
    found, log = read(marshal.dumps({F: (1, 1, 0.0, 0.0, {})})[:-1] + b"c", lenient=True)
    assert (found, log.losses) == ({F: (1, 1, 0, 0, {})}, {"unreadable-rest": 1})


def test_bytes_after_the_profile() -> None:
    found, log = read(marshal.dumps({F: (1, 1, 0.0, 0.0, {})}) + b"\0\0\0")
    assert found and log.repairs == {"trailing-bytes": 3}


def described(code: CodeType) -> str:
    return f'<code object {code.co_name}, file "{code.co_filename}", line {code.co_firstlineno}>'


SOURCE = """'a docstring'
def main(a=(1, (2, 3))):
    def inner():
        def innermost(b, *, c):
            return lambda: (a, b, c, 3 + 4j, 1 << 70, b'\\0', 'é', ..., None, True, 0.5)
        return innermost
    return inner if a in {1, 'main'} else a in [7, 8]
"""


@pytest.mark.parametrize("version", range(5))
def test_code_objects_are_described(version: int) -> None:
    """`python -m profile` has the code of the script in a key."""
    code = compile(SOURCE, "prog.py", "exec")
    main = next(constant for constant in code.co_consts if isinstance(constant, CodeType))
    key, called = ("profile", 0, code), ("prog.py", 2, "main")
    stats = {called: (1, 2, 1.0, 2.0, {key: 2}), key: (1, 1, 0.0, 2.0, {}), ("prog.py", 2, main): (1, 1, 0.0, 0.0, {})}
    found, _ = read(marshal.dumps(stats, version))
    of_code = ("profile", 0, described(code))
    assert found == {
        called: (1, 2, 10**9, 2 * 10**9, {of_code: (2, 2, 10**9, 2 * 10**9)}),
        of_code: (1, 1, 0, 2 * 10**9, {}),
        ("prog.py", 2, described(main)): (1, 1, 0, 0, {}),
    }


def test_texts_of_code_are_no_strings_of_the_profile() -> None:
    """Unless later values refer to them: they would be written to archives."""
    stats = {("profile", 0, compile(SOURCE, "prog.py", "exec")): (1, 1, 0.0, 0.0, {})}
    opened = open_input(marshal.dumps(stats), Options(), from_="pstats")
    for _ in batches(opened):
        pass
    texts = {opened.model.string(i) for i in range(opened.model.count("strings"))}
    assert b"a docstring" not in texts and b"innermost" not in texts


def of_version(version: str, *, constant: bytes = b"N", name: bytes = b"u\1\0\0\0f") -> bytes:
    """The fields of a code object in the order of that version's Python/marshal.c."""
    number, code, none, text = pack("<i", 1), b"s\x01\0\0\0S", b"(\0\0\0\0", b"u\4\0\0\0a.py"
    consts = b"(\1\0\0\0" + constant
    line, table = pack("<i", 3), b"s\0\0\0\0"
    if version == "3.14":
        fields = [*[number] * 5, code, consts, none, none, code, text, name, name, line, table, table]
    else:
        ints = {"2.7": 4, "3.7": 5, "3.10": 6}[version]
        fields = [*[number] * ints, code, consts, none, none, none, none, text, name, line, table]
    return b"c" + b"".join(fields)


def with_code(code: bytes) -> bytes:
    """A profile of one function, whose name is a code object."""
    key = b")\3u\7\0\0\0profilei\0\0\0\0" + code
    return b"{" + key + marshal.dumps((1, 1, 0.0, 0.0, {}), 2) + b"0"


VERSIONS = ["2.7", "3.7", "3.10", "3.14"]


@pytest.mark.parametrize("version", VERSIONS)
def test_layouts_of_code_objects(version: str) -> None:
    inner = of_version(version, constant=b")\1S", name=b"u\5\0\0\0inner")
    slice_ = b":i\1\0\0\0N." if version == "3.14" else b"x\x011\x012"
    constants = [b"N", inner, slice_, b">\1\0\0\0" + inner, b"y" + bytes(16), b"l\1\0\0\0\1\0"]
    for constant in constants:
        found, _ = read(with_code(of_version(version, constant=constant)))
        assert [*found] == [("profile", 0, '<code object f, file "a.py", line 3>')]


@pytest.mark.parametrize("version", VERSIONS)
def test_cut_code_objects(version: str) -> None:
    whole = with_code(of_version(version, constant=of_version(version)))
    for n in range(20, len(whole) - 1):
        with pytest.raises(FormatError):
            read(whole[:n])


def test_code_nested_too_deep() -> None:
    code = b"N"
    for _ in range(100):  # as deep as Python allows
        code = of_version("3.7", constant=code)
    assert read(with_code(code))
    for _ in range(100):
        code = of_version("3.7", constant=code)
    with pytest.raises(FormatError, match="a code object is not one of Python"):
        read(with_code(code))


def test_layouts_do_not_mix() -> None:
    with pytest.raises(FormatError, match="a code object is not one of Python"):
        read(with_code(of_version("2.7", constant=of_version("3.10"))))


def test_items_of_code_are_not_of_the_profile() -> None:
    """A key may refer to a tuple in code, whose items are not kept."""
    code = of_version("3.14", constant=b"\xa9\1N")
    data = with_code(code)[:-1] + b"r\0\0\0\0" + marshal.dumps((1, 1, 0.0, 0.0, {}), 2) + b"0"
    with pytest.raises(FormatError, match="the key of a function"):
        read(data)


def test_calls_that_were_not_counted() -> None:
    """pyinstrument writes -1."""
    stats: Stats = {F: (-1, -1, 0.5, 1.0, {G: (-1, -1, 0.5, 1.0)}), G: (-1, -1, 0.0, 1.0, {})}
    opened = open_input(marshal.dumps(stats), Options(), from_="pstats")
    rows = [(v, int(n)) for batch in batches(opened) for v, n in zip(batch.values(1), batch["count"], strict=True)]
    assert rows == [(-1, 0)] * 3
    found, _ = read(marshal.dumps({F: (-1, -1, 0.5, 1.0, {G: -1})}))
    assert found[F][4] == {G: (-1, 0, 0, 0)}


CALLGRIND = b"""events: ns
fn=main
3 10
cfi=a.c
cfn=f
calls=2 7
4 60
cfi=a.c
cfn=g
calls=1 9
5 40
fl=a.c
fn=f
7 50
cfn=f
calls=3 7
8 20
fn=g
9 15
cfn=f
calls=1 7
10 10
ob=/lib/c.so
fl=
fn=h
0 5
"""


def test_numbers_that_follow_from_call_arcs(tmp_path: Path) -> None:
    (tmp_path / "a.callgrind").write_bytes(CALLGRIND)
    log = fastprof.convert(tmp_path / "a.callgrind", tmp_path / "a.pstats")
    main, f, g = ("~", 3, "main"), ("a.c", 7, "f"), ("a.c", 9, "g")
    found = stats_of(tmp_path / "a.pstats")
    assert {k: v[:4] for k, v in found.items()} == {
        main: (0, 0, 10.0, 110.0), f: (3, 6, 50.0, 70.0), g: (1, 1, 15.0, 40.0), ("/lib/c.so", 0, "h"): (0, 0, 5.0, 5.0)
    }  # fmt: skip
    assert found[f][4] == {main: (2, 2, 42.0, 60.0), f: (3, 0, 0.0, 20.0), g: (1, 1, 7.0, 10.0)}
    assert found[g][4] == {main: (1, 1, 15.0, 40.0)}
    assert "estimates" in log.warnings[0]


@pytest.mark.parametrize("file", ["callgrind/good/xdebug.callgrind", "folded/good/plain.folded"])
def test_every_caller_is_a_function(file: str, tmp_path: Path) -> None:
    """Otherwise tuna fails; it also fails without a function that has no callers."""
    fastprof.convert(CORPUS / file, tmp_path / "x.pstats")
    found = stats_of(tmp_path / "x.pstats")
    assert {caller for v in found.values() for caller in v[4]} <= found.keys()
    assert any(not v[4] and v[3] for v in found.values())


def test_names_that_are_not_utf8_stay_apart(tmp_path: Path) -> None:
    (tmp_path / "x.folded").write_bytes(b"main;\xff 1\nmain;\xfe 2\n")
    log = fastprof.convert(tmp_path / "x.folded", tmp_path / "x.pstats", from_="folded")
    assert Counter(len(k[2]) for k in stats_of(tmp_path / "x.pstats")) == {4: 1, 1: 1, 5: 1}
    assert {entry["code"]: entry["count"] for entry in log.not_representable.entries()}["replaced-bytes"] == 2


@pytest.mark.parametrize("path", sorted(GOOD.glob("p*[!7].pstats")), ids=lambda p: p.name)
def test_top_shows_the_calls_of_the_file(path: Path) -> None:
    """Also of functions without callers, such as `main`."""
    expected = {name: calls for (_, _, name), (_, calls, *_) in stats_of(path).items()}
    assert {
        row.name: row.calls for row in fastprof.top(path, n=0).rows if not row.name.startswith("<cycle")
    } == expected
