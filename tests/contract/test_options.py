"""An option has an effect or is refused: for every reader, every writer and every declared option."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

import fastprof
from fastprof import formats, plan
from fastprof.bridges import COMMON_VALUES, INTERSECT, NAME_ADDRESSES, UNION
from fastprof.cli import main
from fastprof.core.engine import Input
from fastprof.core.errors import FastprofError, UsageError
from fastprof.core.messages import spelled
from fastprof.core.options import (
    BUDGET,
    CORES,
    LENIENT,
    SPLIT,
    Option,
    Options,
    Pair,
    Range,
    Share,
    Split,
    Substitution,
    Switch,
    Whole,
    WordList,
    Words,
)
from fastprof.symbols import finder
from tests.contract.dump import files
from tests.support.chosen import cases
from tests.support.conversions import HERE, OF_ANY, WRITERS, convert, format_of
from tests.support.paths import CORPUS
from tests.support.product import open_input

KNOWN = plan.known_options()
KEPT = "kept"
MOST = 8  # files of a format
NAMING = NAME_ADDRESSES.options


class Spy(Options):
    """Options that record which of them are read."""

    __slots__ = ("seen",)

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.seen: set[Option[Any]] = set()

    def __getitem__(self, option: Option[Any]) -> Any:
        self.seen.add(option)
        return super().__getitem__(option)

    def __contains__(self, option: Option[Any]) -> bool:
        given = super().__contains__(option)
        if given:
            self.seen.add(option)
        return given


@pytest.fixture(autouse=True)
def no_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    """Objects on this machine are looked up, and found to be empty."""
    empty = finder.ElfObject(os.devnull)
    monkeypatch.setattr(finder, "cached_object", lambda *_, **__: empty)


def other_than_default(option: Option[Any]) -> Any:
    kind, value = option.kind, "x"
    if isinstance(kind, Switch):
        value = not option.default
    elif isinstance(kind, Words):
        value = kind.words if isinstance(kind, WordList) else next(w for w in kind.words if w != option.default)
    elif isinstance(kind, Share):
        value = 0.5
    elif isinstance(kind, Whole):
        value = max(kind.least, 1)
    elif isinstance(kind, Range):
        value = (0, 1 << 60)
    elif isinstance(kind, Pair):
        value = "x=y"
    elif isinstance(kind, Substitution):
        value = "s/x/y/"
    elif isinstance(kind, Split):
        value = "thread"
    elif option.name == "snapshot":
        value = "last"
    elif option.name == "label_path":
        value = "{host}"
    elif option.name == "labels_from":
        value = os.devnull
    value = (value,) if option.several else value
    assert option.check(value) == value != option.default
    return value


def asking(option: Option[Any]) -> dict[str, Any]:
    """This option, without symbol lookup unless the option is about names."""
    given = {option.name: other_than_default(option)}
    return given if option in NAMING else HERE.given | given


@cache
def some_files() -> list[str]:
    """A few files of a format with many, evenly spread."""
    found: list[str] = []
    for _, group in groupby(files("good"), format_of):
        mine = [*group]
        found += mine[:: -(-len(mine) // MOST)]
    return found


def opened(file: str) -> Input:
    with (CORPUS / file).open("rb") as stream:
        return open_input(stream.read(), HERE, None, format_of(file)).reader


def taken(reader: Input, to: str, option: Option[Any]) -> bool | str | None:
    """Whether it is accepted, or refused before anything is read.  KEPT: nothing reads it, and its effect holds anyway.
    None: no conversion exists."""
    asked = Options(**asking(option))
    try:
        made = plan.make([[reader]], plan.writing(formats.get(to)), asked)
    except UsageError:
        return None
    given = Options(**{option.name: asked[option]})
    try:
        plan.refuse_idle(given, made)
    except UsageError as error:
        assert f": {spelled(option.flag)} has no effect from {reader.format} to {to}: it applies to " in str(error)
        return False
    return KEPT if plan.idle(given, made) else True


def takes(file: str, to: str) -> dict[Option[Any], bool | str]:
    """The outcome of each option; empty if no conversion exists."""
    reader = opened(file)
    found = {option: taken(reader, to, option) for option in KNOWN}
    return {} if None in found.values() else found  # type: ignore[return-value]


def seen_by(file: str, to: str, options: Iterable[Option[Any]]) -> set[Option[Any]]:
    """The options that a conversion reads, given these."""
    given = {key: value for option in options for key, value in asking(option).items()}
    if any(option in NAMING for option in options):
        given = {key: value for key, value in given.items() if key not in HERE.given}
    spy = Spy(**(given or HERE.given))
    with suppress(FastprofError):  # e.g. member x does not exist: the option was read
        convert(file, to, spy)
    return spy.seen


@pytest.mark.parametrize("to", cases(OF_ANY))
def test_what_is_looked_at_is_taken_and_what_is_taken_is_looked_at(to: str) -> None:
    """Refused options are given together, because none may have an effect; others one by one, if nothing reads them
    anyway."""
    given: set[tuple[str, str]] = set()
    looked_at: set[tuple[str, str]] = set()
    for file in some_files():
        name = format_of(file)
        found = takes(file, to)
        if not found:
            continue
        refused = {option for option, what in found.items() if what is False}
        names = refused & {*NAMING}
        for group in refused - names, names:
            seen = seen_by(file, to, group)
            assert not seen & refused, f"{file} to {to}: refused, and would do something"
            looked_at.update((name, option.flag) for option in seen)
        for option, what in found.items():
            # read by verbs/outputs.py and inputs/__init__.py: tests/unit/test_outputs.py, test_cores.py
            if what is True and option not in (BUDGET, SPLIT, CORES):
                given.add((name, option.flag))
                if (name, option.flag) not in looked_at:
                    # names are demangled only if another option finds some
                    for one in NAMING if option in NAMING else [option]:
                        if found[one] is True:
                            looked_at.update((name, o.flag) for o in seen_by(file, to, [one]))
    assert given - looked_at == set(), f"to {to}: taken, and nothing looks at it"
    assert given


@pytest.mark.parametrize("to", cases(WRITERS))
def test_what_holds_anyway_changes_nothing(to: str, tmp_path: Path) -> None:
    """All at once, with those that do not concern names: a script may give them for every file."""
    n = 0
    for file in files("good")[WRITERS.index(to) % 5 :: 5]:
        kept = [option for option, what in takes(file, to).items() if what == KEPT]
        if UNION in kept and INTERSECT in kept:  # these exclude each other
            kept.remove(INTERSECT)
        if not kept:
            continue
        outputs = []
        for given in ({}, {option.name: other_than_default(option) for option in kept}):
            out = tmp_path / f"{len(given)}"
            try:
                fastprof.convert(CORPUS / file, out, to=to, **HERE.given | given)
            except FastprofError as error:  # a sum that does not fit
                assert "has no effect" not in str(error)
                break
            outputs.append(out.read_bytes())
        assert len({*outputs}) <= 1, f"{file} to {to}: {kept}"
        n += len(outputs) == 2
    assert n


def test_a_default_is_taken_everywhere(tmp_path: Path) -> None:
    """Its effect is the same, given or not."""
    for file in ("callgrind/good/everything.callgrind", "gperftools/good/plain.prof", "xray/good/fdr5-busy.xray"):
        for option in KNOWN:
            if option.default is not None and option.name != "demangle":  # its default is the target's
                fastprof.convert(CORPUS / file, tmp_path / "x.pb", **{option.name: option.default})


@pytest.mark.parametrize("to", WRITERS)
def test_what_is_not_given_is_looked_at_where_it_would_be_taken(to: str) -> None:
    """Readers and operators use only the options that the plan knows."""
    for file in some_files():
        if taken(opened(file), to, LENIENT) is None:
            continue
        spy = Spy(**HERE.given)
        try:
            done = convert(file, to, spy)
        except FastprofError:  # a sum that does not fit
            continue
        assert spy.seen - done.used == set(), file


def test_every_option_is_taken_somewhere() -> None:
    missing = {*KNOWN} - {*COMMON_VALUES.options}  # those are for several inputs
    for file in some_files():
        for to in WRITERS if missing else ():
            reader = opened(file)
            missing -= {option for option in missing if taken(reader, to, option)}
    assert missing == set()


IDLE = {
    ("callgrind/good/everything.callgrind", "callgrind"): (
        "sysroot debug_dirs demangle time_unit per_thread labels symbols prune"
    ),
    ("callgrind/good/everything.callgrind", "cachegrind"): "level name_addresses",
    ("pprof/good/everything.pb", "pprof"): "aggregate time_unit",
    ("gperftools/good/plain.prof", "gperftools"): "labels per_thread symbols level",
    ("xray/good/fdr5-busy.xray", "xray"): "labels time_unit aggregate sysroot value",
}


@pytest.mark.parametrize(
    ("file", "to", "name"), [(file, to, name) for (file, to), names in IDLE.items() for name in names.split()]
)
def test_an_idle_option_is_a_usage_error(
    file: str, to: str, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    option = next(o for o in KNOWN if o.name == name)
    value = other_than_default(option)
    flag = [option.flag]
    if not isinstance(option.kind, Switch):
        text = value[0] if option.several else value
        flag.append(",".join(text) if isinstance(option.kind, WordList) else str(text))
    code = main(["convert", str(CORPUS / file), *flag, "--to", to, "-o", str(tmp_path / "out")])
    assert code == 2
    assert f"{option.flag} has no effect from {format_of(file)} to {to}: it applies to " in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_what_a_plan_does_by_itself_may_be_asked_for(tmp_path: Path) -> None:
    """Merging adds up equal places, and a graph has no labels."""
    names = "callgrind/good/cfi.callgrind", "gperftools/good/plain.prof"
    graph, samples = (str(CORPUS / name) for name in names)
    for words in ([graph, graph, "--aggregate"], [samples, "--no-symbols", "--labels", "none"]):
        outputs = []
        for given in (words, [word for word in words if word not in ("--aggregate", "--labels", "none")]):
            assert main(["convert", *given, "--to", "callgrind", "-o", str(tmp_path / "out")]) == 0
            outputs.append((tmp_path / "out").read_bytes())
        assert outputs[0] == outputs[1]


@pytest.mark.parametrize(
    "words", ["top IN", "annotate IN", "diff IN IN", "report IN -o OUT", "info IN", "merge IN -o OUT"]
)
def test_every_verb_takes_what_holds_anyway(words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for file in ("callgrind/good/cfi.callgrind", "folded/good/plain.folded", "xray/good/fdr5-busy.xray"):
        out = str(tmp_path / "out.callgrind")
        command = [{"IN": str(CORPUS / file), "OUT": out}.get(word, word) for word in words.split()]
        given = [] if words.startswith("info") else ["--no-symbols", "--max-memory", "64M", "--union"]
        assert main([*command, *given, "--keep-signal-frames"]) == 0, capsys.readouterr().err
