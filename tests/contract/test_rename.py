"""--mod-funcname and --mod-filename change only names, in every view and in archives."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import fastprof
from fastprof.core.errors import UsageError
from fastprof.core.model import Function
from tests.contract.dump import files
from tests.reference.filters import Row
from tests.support.chosen import cases
from tests.support.conversions import format_of
from tests.support.paths import CORPUS
from tests.support.rows import Reading

NAMES = (r"s/([a-m])(\w*)/\2-$1/gi", "s/^main$/f/", "s/.*x.*//")
FILES = (r"s/^.*\/(\w+)\.[ch]p*$/\1/", "s/A/aa/ig")


def new_name(name: str) -> str:
    """The name after the rules NAMES."""
    text = re.sub(r"([a-m])(\w*)", r"\2-\1", name, flags=re.IGNORECASE)
    return (re.sub(".*x.*", "", re.sub("^main$", "f", text), count=1) or "???") if name else ""


def new_file(name: str) -> str:
    return re.sub("A", "aa", re.sub(r"^.*/(\w+)\.[ch]p*$", r"\1", name), flags=re.IGNORECASE)


def new_bytes(name: bytes, new: Any) -> bytes:
    return new(name.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape") if name else name


def renamed(row: Row, view: str) -> Row:
    """The expected result."""

    def function(f: Any) -> Any:
        name = new_bytes(f.name, new_name)
        other = name != f.name
        return Function(
            f.object, new_bytes(f.file, new_file), name, b"" if other else f.system_name, 0 if other else f.line
        )

    if view == "graph":
        *columns, costs = row.says
        says = [
            function(v) if isinstance(v, Function) else new_bytes(v, new_file) if isinstance(v, bytes) else v
            for v in columns
        ]
        return row._replace(says=(*says, costs), function=(new_name(row.function[0]), row.function[1]))
    if view == "timeline":
        return row._replace(function=(new_name(row.function[0]), row.function[1]))
    unnamed = re.compile(r"\[.*\+0x[0-9a-f]+\]|0x[0-9a-f]+")
    stack = tuple(
        tuple((name if unnamed.fullmatch(name) else new_name(name), object_) for name, object_ in frame)
        for frame in row.stack
    )
    return row._replace(stack=stack)


@cache
def whole(file: str) -> Reading:
    return Reading((CORPUS / file).read_bytes(), format_of(file), {})


@pytest.mark.parametrize("file", cases(files("good")))
def test_names_change_and_nothing_else(file: str) -> None:
    expected = [renamed(row, whole(file).view) for row in whole(file).rows]
    for capacity in (None, 3):
        given = {"mod_funcname": NAMES, "mod_filename": FILES}
        found = Reading((CORPUS / file).read_bytes(), format_of(file), given, capacity)
        assert found.rows == expected
        numbers = {new_bytes(whole(file).model.get_function(f).name, new_name) for f in whole(file).model.numbers}
        assert {found.model.get_function(f).name for f in found.model.numbers} >= numbers


def test_functions_of_one_name_become_one(tmp_path: Path) -> None:
    source = tmp_path / "a.callgrind"
    source.write_text(
        "version: 1\ncreator: callgrind-3\nevents: Ir\nfl=/b/x.c\nfn=sort.part.0\n3 5\n"
        "fn=sort\n3 7\ncfi=/b/y.c\ncfn=cmp.isra.1\ncalls=2 9\n3 11\nfl=/b/y.c\nfn=cmp.isra.1\n9 11\n"
    )
    out = tmp_path / "a.cachegrind"
    modify = {"mod_funcname": [r"s/\.(part|isra)\.[0-9]+$//"], "mod_filename": ["s/^.b.//"]}
    fastprof.convert(source, out, **modify)
    assert out.read_text().splitlines()[-7:] == [
        "events: Ir", "fl=x.c", "fn=sort", "3 12", "fl=y.c", "fn=cmp", "9 11", "summary: 23"
    ][-7:]  # fmt: skip
    fastprof.convert(source, tmp_path / "again.callgrind", **modify)
    text = (tmp_path / "again.callgrind").read_text()
    assert "part" not in text.replace("part: 1", "") and "isra" not in text and "totals: 23" in text


def test_what_a_rename_makes_is_not_renamed_again(tmp_path: Path) -> None:
    """Neither in a later batch, nor if the new name is another function's old one."""
    source = tmp_path / "a.folded"
    source.write_text("".join(f"a;{'aa;' * (i % 3)}f{i} 1\n" for i in range(10_000)))
    for to in ("folded", "pprof", "fpa"):
        fastprof.convert(source, tmp_path / "out", to="archive" if to == "fpa" else to, mod_funcname=["s/^a/aa/"])
        fastprof.convert(tmp_path / "out", tmp_path / "out.folded")
        lines = (tmp_path / "out.folded").read_text().splitlines()
        assert Counter(line.rpartition(";")[0] for line in lines) == {
            "aa": 3334, "aa;aaa": 3333, "aa;aaa;aaa": 3333
        }  # fmt: skip


@pytest.mark.parametrize(
    ("change", "name", "expected"),
    [
        ("s/a/b/", "aaa", "baa"),
        ("s/a/b/g", "aAa", "bAb"),
        ("s/a/b/gi", "aAa", "bbb"),
        ("s/a/b/ig", "aAa", "bbb"),
        (r"s/(\w+)::(\w+)/$2.$1/", "x::y", "y.x"),
        (r"s/(\w+)::(\w+)/\2.\1/", "x::y", "y.x"),
        (r"s/(\w+)::/${1}0/", "x::y", "x0y"),
        (r"s/(?P<who>\w+)::/\g<who>1/", "x::y", "x1y"),
        (r"s/(?P<who>\w+)::/\g<1>1/", "x::y", "x1y"),
        ("s/b/[$&]/", "abc", "a[b]c"),
        (r"s/b/\$1 \\ \//", "abc", r"a$1 \ /c"),
        ("s/b/$ $x $/", "abc", "a$ $x $c"),
        (r"s/\/tmp\///", "/tmp/a", "a"),
        ("s/(x)?b/<$1>/", "ab", "a<>"),
        ("s/.*//", "abc", "???"),
        ("s/é/e/", "café", "cafe"),
        (r"s/\s+$//", "a b" + " " * 3, "a b"),
    ],
)
def test_substitutions(change: str, name: str, expected: str, tmp_path: Path) -> None:
    source, out = tmp_path / "a.folded", tmp_path / "out.folded"
    source.write_text(f"{name} 1\n")
    fastprof.convert(source, out, from_="folded", mod_funcname=[change])
    assert out.read_text() == f"{expected} 1\n"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ("", "is not s/OLD/NEW/"),
        ("s/a/b", "is not s/OLD/NEW/"),
        ("s|a|b|", "is not s/OLD/NEW/"),
        ("s/a/b/x", "is not s/OLD/NEW/"),
        ("s/a/b/c/", "is not s/OLD/NEW/"),
        ("y/a/b/", "is not s/OLD/NEW/"),
        ("s/(/b/", "is not a regular expression"),
        ("s/a/$1/", "has no such group"),
        (r"s/(a)/\2/", "has no such group"),
        (r"s/(a)/\g<x>/", "has no such group"),
        (r"s/a/\n/", "is not an escape"),
        ("s/a/\udc00\ud800/", "not valid Unicode"),
    ],
)
def test_bad_substitutions_are_usage_errors(change: str, says: str, tmp_path: Path) -> None:
    for name in ("mod_funcname", "mod_filename"):
        with pytest.raises(UsageError, match=f"{name}: .*{says}"):
            fastprof.convert(CORPUS / "folded/good/plain.folded", tmp_path / "out.folded", **{name: [change]})
    assert [*tmp_path.iterdir()] == []


def test_only_the_beginning_of_an_endless_name_changes(tmp_path: Path) -> None:
    source, out = tmp_path / "a.folded", tmp_path / "out.folded"
    source.write_text("root;" + "a" * 1_000_000 + " 1\n")
    fastprof.convert(source, out, from_="folded", mod_funcname=["s/a.*b/x/", "s/a/b/g"])
    assert out.read_text() == "root;" + "b" * 16384 + "a" * (1_000_000 - 16384) + " 1\n"
