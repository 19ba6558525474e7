"""Options of formats are in the format's namespace: -O NAME=VALUE, folded={"root": ...}, flags that some have."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

import fastprof
from fastprof import cli, formats, plan
from fastprof.cli import main
from fastprof.core.errors import UsageError
from fastprof.core.options import Option, Text, Whole, checked
from fastprof.verbs import annotate, diff, report, sql, top
from fastprof.verbs.batch import convert, merge
from tests.support.paths import CORPUS

GRAPH = str(CORPUS / "callgrind/good/cfi.callgrind")
STACKS = str(CORPUS / "folded/good/plain.folded")


def test_every_option_of_a_format_is_in_its_namespace() -> None:
    names = {f.name for f in formats.formats()}
    keys = {name.replace("-", "_") for name in names}
    shared = {option.name for option in plan.known_options() if not option.format}
    for f in formats.formats():
        for option in (*f.reads, *f.selects, *f.writes):
            assert option.format in ("", f.name) and (not option.format or option.name not in shared), option
    assert not {option.name for option in plan.known_options()} & keys, "folded={...} would mean two things"


def test_a_name_means_one_thing() -> None:
    """Options of one name have the same kind of value in all verbs, and the same default; verbs have other names."""
    own_default, own_words = {"threshold"}, {"by", "sort"}  # rows of verbs differ in what may be hidden, and in columns
    found: dict[str, set[tuple[Any, ...]]] = {}
    for verb in (annotate, convert, diff, merge, report, sql, top):
        for option in verb.options():
            kind = () if option.name in own_words else (type(option.kind), option.kind.values)
            default = () if option.name in own_default else (option.default,)
            found.setdefault(option.key, set()).add((*kind, *default))
    assert {name: several for name, several in found.items() if len(several) > 1} == {}
    assert not {option.name for option in plan.known_options()} & cli.VERBS.keys()


@pytest.mark.parametrize(
    ("words", "options"),
    [
        ("--root top", {"root": "top"}),
        ("-O root=top", {"folded": {"root": "top"}}),
        ("-O folded.root=top", {"folded.root": "top"}),
        ("-O root=top -O nanoseconds", {"folded": {"root": "top", "nanoseconds": True}}),
        ("-Oroot=top -Onanoseconds=yes", {"root": "top", "nanoseconds": True}),
        ("-O root=top -O nanoseconds=no", {"root": "top", "nanoseconds": False}),
    ],
)
def test_ways_to_set_one(words: str, options: dict[str, Any], tmp_path: Path) -> None:
    assert main(["convert", GRAPH, *shlex.split(words), "-q", "-o", str(tmp_path / "a.folded")]) == 0
    fastprof.convert(GRAPH, tmp_path / "b.folded", **options)
    assert (tmp_path / "a.folded").read_text() == (tmp_path / "b.folded").read_text() == "top;f 5\ntop;f;g 9\n"


def test_a_switch_that_is_on_and_dashes(tmp_path: Path) -> None:
    texts, out = [], tmp_path / "a.callgrind"
    for words in ("--no-compress-names", "-O compress-names=no", "-O callgrind.compress_names=no"):
        assert main(["convert", GRAPH, *shlex.split(words), "-q", "-o", str(out)]) == 0
        texts.append(out.read_text())
    assert "(1)" not in texts[0] and texts[0] == texts[1] == texts[2]


def test_values_add_up(tmp_path: Path) -> None:
    out = tmp_path / "a.pb"
    words = ["--comment", "a", "-O", "comments=b", "-O", "pprof.comments=c", "-O", "time_ns=7"]
    assert main(["convert", STACKS, *words, "-q", "-o", str(out)]) == 0
    with fastprof.open(out) as profile:
        list(profile)
        part = profile._model.parts[-1]
    assert (part.comments, part.extra["time_ns"]) == ([b"a", b"b", b"c"], 7)


def test_an_option_of_several_formats_is_listed_once(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["convert", GRAPH, "-O", "qqqqqqq=x", "-t", "folded"])
    assert ", events, format, join_classes, " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("folded.rot=x", "-O folded.rot=x: unknown option 'folded.rot'; did you mean 'folded.root'?"),
        ("rot=x", "-O rot=x: unknown option 'rot'; did you mean 'root'?"),
        ("gprof.root=x", "-O gprof.root=x: unknown option 'gprof.root'\n"),
        ("budget=1M", "-O budget=1M: 'budget' is not an option of a format: use --budget"),
        ("root", "-O root: NAME is missing: add a root frame of this name to every stack"),
        ("nanoseconds=maybe", "-O nanoseconds=maybe: 'maybe' is neither yes nor no"),
        ("decimals=10", "-O decimals=10: 10 is not a whole number from 0 to 9"),
        ("time_ns=1", f"{GRAPH}: -O pprof.time_ns has no effect from callgrind to folded: it applies to writing pprof"),
        ("root=x root=y z", "z: No such file or directory"),
    ],
)
def test_mistakes_on_the_command_line(words: str, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    first, *rest = words.split()
    try:
        assert main(["convert", GRAPH, "-O", first, *rest, "-t", "folded"])
    except SystemExit as ended:
        assert ended.code == 2
    assert f"fastprof: {says}" in capsys.readouterr().err or rest


def test_what_is_expected_are_options_of_formats(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["top", STACKS, "-O", "xyzzy=1"])
    expected = capsys.readouterr().err.partition(", expected ")[2].partition("\n")[0].split(", ")
    assert "cpus" in expected
    assert not {"by", "cores", "n", "sort"} & {*expected}


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"folded": {"rot": "x"}}, "unknown option 'folded.rot'; did you mean 'folded.root'"),
        ({"rot": "x"}, "unknown option 'rot'; did you mean 'root'"),
        ({"folded": {"root": 3}}, "root: 3 is not a string"),
        ({"pprof": {"time_ns": 1}}, "time_ns= has no effect from callgrind to folded"),
        ({"folded": "root"}, "unknown option 'folded'"),
    ],
)
def test_mistakes_in_python(options: dict[str, Any], says: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=says):
        fastprof.convert(GRAPH, tmp_path / "a.folded", **options)


def test_every_kind_of_value_says_how_it_completes() -> None:
    kinds = {option.kind.completes for option in plan.known_options()}
    assert kinds == {"", "word", "words", "file", "folder"}
    for option in plan.known_options():
        assert bool(option.kind.words) == (option.kind.completes in ("word", "words")), option
        for word in option.kind.words if option.kind.completes == "word" else ():
            assert word.endswith(":") or option.kind.parse(word) in (word, True, False)


# ---- two formats with options of the same name


@pytest.fixture
def two(monkeypatch: pytest.MonkeyPatch) -> None:
    """Callgrind's reader gets a `root`, like the folded writer, and its writer a `level` that is a text."""
    root = Option("root", Text(), "", format="callgrind", help="a root")
    level = Option("level", Text(), "", format="callgrind", help="a text")
    callgrind = formats.get("callgrind")
    changed = callgrind._replace(reads=(root,), writes=(level,))
    of_room = formats._of_folder
    monkeypatch.setattr(
        formats,
        "_of_folder",
        lambda folder: (changed, *of_room(folder)[1:]) if folder == "callgrind" else of_room(folder),
    )
    monkeypatch.setitem(formats._by_name(), "callgrind", changed)
    monkeypatch.setattr(plan, "known_options", plan.known_options.__wrapped__)  # without its cache


@pytest.mark.usefixtures("two")
def test_a_name_is_that_of_the_format_that_takes_part(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    samples, out = tmp_path / "a.pb", tmp_path / "a.folded"
    fastprof.convert(GRAPH, samples)
    fastprof.convert(samples, out, root="top")
    assert out.read_text() == "top;f 5\ntop;f;g 9\n"
    assert main(["convert", str(samples), "-O", "root=up", "-q", "-o", str(out)]) == 0
    assert out.read_text() == "up;f 5\nup;f;g 9\n"
    assert main(["convert", GRAPH, "-O", "root=up", "-q", "-o", f"{out}.callgrind"]) == 0
    capsys.readouterr()
    assert main(["convert", str(samples), "-O", "root=up", "-o", f"{out}.callgrind"]) == 2
    assert "has no effect from pprof to callgrind" in capsys.readouterr().err


@pytest.mark.usefixtures("two")
def test_a_name_that_two_formats_of_a_conversion_have(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["convert", GRAPH, "-q", "-o", str(tmp_path / "a.folded")]
    says = "option 'root' is ambiguous: callgrind.root or folded.root"
    with pytest.raises(UsageError, match=says):
        fastprof.convert(GRAPH, tmp_path / "a.folded", root="top")
    assert main([*words, "-O", "root=top"]) == 2
    assert says in capsys.readouterr().err
    assert main([*words, "-O", "folded.root=top", "-O", "callgrind.root=x"]) == 0
    assert main([*words, "-O", "folded.root=top"]) == 0


@pytest.mark.usefixtures("two")
def test_a_value_that_means_different_things(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["convert", STACKS, "-O", "level=3", "-t", "archive"])
    assert re.search(r"option 'level' is ambiguous: \w+\.level or \w+\.level", capsys.readouterr().err)
    known = [Option("n", Whole(0), 0, format="a", help=""), Option("n", Whole(5), 5, format="b", help="")]
    assert checked({"n": 7}, known).given == {"n": 7}
    assert checked({"a.n": 1}, known)[known[0]] == 1 and checked({"a.n": 1}, known)[known[1]] == 5
