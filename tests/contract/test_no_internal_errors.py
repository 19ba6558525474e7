"""Any input into any format, damaged or not, lenient or not, gives a result or an error with a reason.

Any exception other than a FastprofError is an internal error to the user.
"""

from __future__ import annotations

import contextlib
import gc
import io
import random
from collections.abc import Iterator
from functools import cache
from itertools import cycle, product
from pathlib import Path

import pyarrow
import pytest

import fastprof
from fastprof.cli import main
from fastprof.core.errors import FastprofError
from fastprof.formats.archive import sections as archive_sections
from fastprof.formats.archive.sections import END, HEADER_NBYTES, NUMBERS, PARTS, ROWS, TABLES
from tests.contract.dump import files
from tests.support.chosen import CHOSEN
from tests.support.conversions import WRITERS
from tests.support.paths import CORPUS

SECTIONS = {"parts": PARTS, "tables": TABLES, "rows": ROWS, "numbers": NUMBERS, "end": END}


def convert(source: Path, to: str, lenient: bool, out: Path) -> bool:
    """Whether there is a result."""
    try:
        fastprof.convert(source, out, to=to, lenient=lenient)
    except FastprofError as error:
        assert str(error)
        return False
    return True


@pytest.mark.exhaustive
@pytest.mark.parametrize("to", WRITERS)
def test_every_bad_file_into_every_format(to: str, tmp_path: Path) -> None:
    """Those that read everything else; without --lenient it is the reader that fails, the same for each format.
    test_writers.py writes the good files in every format."""
    inputs = [CORPUS / file for file in files("bad")]
    read = [convert(path, to, True, tmp_path / "out") for path in inputs]
    assert any(read)
    for path in inputs[WRITERS.index(to) :: len(WRITERS)]:
        convert(path, to, False, tmp_path / "out")


def destroyed(data: bytes, kind: int) -> bytes:
    """The archive with one kind of its sections replaced by damage."""
    found = archive_sections.scan(lambda at, n: data[at : at + n], archive_sections.FILE_HEADER_NBYTES, len(data))
    damaged = bytearray(data)
    for section in found:
        if isinstance(section, archive_sections.Section) and section.type == kind:
            damaged[section.offset + HEADER_NBYTES] ^= 0x55
            damaged[section.offset + section.nbytes - 1] ^= 0x55
    return bytes(damaged)


@pytest.mark.parametrize("what", SECTIONS)
@pytest.mark.parametrize(
    "file",
    [
        "callgrind/good/contexts.callgrind",
        "callgrind/good/quirks_inherit.callgrind",
        "callgrind/good/xtree.callgrind",
        "cachegrind/good/newer.cachegrind",
        "pprof/good/go-heap.pb.gz",
        "gperftools/good/plain.prof",
        "xray/good/fdr5-busy.xray",
    ],
)
def test_archives_that_have_lost_a_kind_of_sections(file: str, what: str, tmp_path: Path) -> None:
    """Without their parts, rows of six values had no value types, and memory was read out of bounds."""
    fastprof.convert(CORPUS / file, tmp_path / "good.fpa")
    data = (tmp_path / "good.fpa").read_bytes()
    damaged = tmp_path / "damaged.fpa"
    damaged.write_bytes(destroyed(data, SECTIONS[what]))
    for to in WRITERS:
        for lenient in (False, True):
            convert(damaged, to, lenient, tmp_path / "out")
    log = fastprof.info(damaged, lenient=True)
    assert log.losses or damaged.read_bytes() == data


# ---- verbs: each with files of each format, their value types, sort and group keys, and filters

_SMALL = 30_000  # bytes
_NONE: tuple[str, ...] = ()
_COMMON = (_NONE, _NONE, ("--lenient",), ("--function", "main"), ("--object", "x"), ("--time-range", ":1000"))
_OUT = "-o", "{out}", "-t"
# By verb: the arguments after its inputs.  Each tuple lists alternatives; OTHER is another file, VALUE a value type's
# name.
_VERBS: dict[str, list[tuple[tuple[str, ...], ...]]] = {
    "info": [((), ("--json",), ("--lenient",), ("--json", "--lenient"))],
    "top": [
        (_NONE, *((f"--by={what}",) for what in ("function", "line", "file", "object", "thread", "label"))),
        (_NONE, ("--sort=self",), ("--sort=inclusive",), ("--sort=calls",), ("--sort", "VALUE"), ("--sort", "no-such")),
        (("--value", "VALUE"),),
        (_NONE, _NONE, ("--json",), ("--csv",), ("--tree=both",), ("--tree=caller", "--json"), ("--no-cycles",)),
        (_NONE, ("-n0",), ("-n1",), ("--threshold=10%",), ("--cumulative",), ("--focus=a",), ("OTHER",)),
        _COMMON,
    ],
    "explain": [(_NONE, _NONE, ("OTHER",)), (_NONE, ("--json",)), (_NONE, ("--value", "VALUE")), _COMMON],
    "annotate": [
        (("--value", "VALUE"),),
        (_NONE, ("--asm",), ("--threshold=0",), ("--json",), ("x.c",), ("--threshold=0", "--context=0")),
        _COMMON,
    ],
    "diff": [
        (("OTHER",), ("SAME",)),
        (_NONE, *((f"--by={what}",) for what in ("function", "line", "file", "object", "arc"))),
        (("--value", "VALUE"), ("--union",), ("--intersect",)),
        (_NONE, ("--json",), ("--csv",), ("-n0",), *((*_OUT, to) for to in WRITERS)),
        _COMMON,
    ],
    "report": [
        (_NONE, _NONE, ("OTHER",)),
        (("--value", "VALUE"),),
        (("-o", "{out}"), ("-o", "{out}", "--prune=10%"), ("-o", "{out}", "--prune=0")),
        _COMMON,
    ],
    "convert": [
        (_NONE, _NONE, ("OTHER",), ("OTHER", "--union"), ("OTHER", "--intersect")),
        (("--value", "VALUE"), _NONE),
        tuple((*_OUT, to) for to in WRITERS),
        (
            _NONE,
            _NONE,
            ("--frames=address",),
            ("--frames=function",),
            ("--aggregate",),
            ("--per-thread",),
            ("--stacks=self",),
        ),
        _COMMON,
    ],
    "merge": [
        (_NONE, ("OTHER",), ("OTHER", "--union"), ("OTHER", "--intersect"), ("SAME", "--keep-going")),
        (("--value", "VALUE"), _NONE),
        tuple((*_OUT, to) for to in WRITERS),
        _COMMON,
    ],
}


# By default the good files that represent a format, and one bad file in five
_BY_DEFAULT = pytest.mark.parametrize("whole", [False, pytest.param(True, marks=pytest.mark.exhaustive)])


@cache
def _small(kind: str, whole: bool = True) -> tuple[Path, ...]:
    """Files below _SMALL: half of them and the chosen ones, or few: the chosen ones; of damaged ones a fifth."""
    few = [file for i, file in enumerate(files(kind)) if (file in CHOSEN if kind == "good" else i % 5 == 0)]
    some = {*few, *files(kind)[::2]} if whole else few
    return tuple(p for p in map(CORPUS.joinpath, sorted(some)) if p.is_dir() or p.stat().st_size <= _SMALL)


@cache
def _values(path: Path) -> tuple[str, ...]:
    """Names of the first and the last value type, one that no profile has, and one that begins like an existing one."""
    names: dict[str, None] = {}
    with contextlib.suppress(FastprofError), fastprof.open(path, lenient=True) as profile:
        for _ in profile.batches(reuse=True):
            pass
        for part in profile._model.parts:
            names |= dict.fromkeys(t.name for t in part.value_types)
        if profile.view == "timeline":
            names |= {"time": None, "calls": None}
    return (*dict.fromkeys([*[*names][:1], *[*names][-1:]]), "no-such", *(name[:1] for name in [*names][:1]))


def _calls(verb: str, seed: str) -> Iterator[tuple[str, ...]]:
    """The arguments after the inputs of `verb`: all combinations, shuffled, endlessly."""
    drawn = random.Random(f"{verb} {seed}")
    choices = [*product(*_VERBS[verb])]
    drawn.shuffle(choices)
    for chosen in cycle(choices):
        yield tuple(word for words in chosen for word in words)


def _run(words: list[str]) -> str | None:
    """The fault in the command's behavior, if any."""
    errors = io.StringIO()
    with contextlib.redirect_stderr(errors), contextlib.redirect_stdout(io.StringIO()):
        try:
            code: object = main(words)
        except SystemExit as end:
            code = end.code
    said = errors.getvalue()
    if code in (0, 1, 2, 3) and "internal error" not in said and (code in (0, 3) or said):
        return None
    return f"fastprof {' '.join(words)}: exit code {code}: {said}"


def _words(verb: str, path: Path, other: Path, value: str, call: tuple[str, ...], out: Path) -> list[str]:
    meant = {"OTHER": str(other), "SAME": str(path), "VALUE": value, "{out}": str(out)}
    return [verb, str(path), *(meant.get(word, word) for word in call)]


def _damaged(path: Path, drawn: random.Random, to: Path) -> Path:
    """A file with a few bytes changed, lost, doubled or swapped, or truncated."""
    data = bytearray(path.read_bytes())
    for _ in range(drawn.choice((1, 1, 2, 4)) if data else 0):
        at, other = drawn.randrange(len(data)), drawn.randrange(len(data))
        kind = drawn.randrange(6)
        if kind == 0:
            data[at] ^= 1 << drawn.randrange(8)
        elif kind == 1:
            data[at] = drawn.choice(b"\0\xff0-9 \n\x80:")
        elif kind == 2:
            del data[at : at + drawn.randrange(1, 40)]
        elif kind == 3:
            data[at:at] = data[at : at + drawn.randrange(1, 60)]
        elif kind == 4:
            data[at : at + 8], data[other : other + 8] = data[other : other + 8], data[at : at + 8]
        else:
            del data[at:]
        if not data:
            break
    damaged = to / path.name
    damaged.write_bytes(data)
    return damaged


@pytest.fixture
def out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(gc, "freeze", lambda: None)  # a command does this once, because its process ends
    (tmp_path / "out").mkdir()
    return tmp_path / "out" / "out"


@_BY_DEFAULT
@pytest.mark.parametrize("verb", _VERBS)
def test_every_verb_with_every_value(verb: str, whole: bool, out: Path) -> None:
    """`annotate --value`, where another value type is the default, looked up one that was gone."""
    paths, wrong = _small("good", whole), []
    others, calls = cycle((*paths[7:], *paths[:7])), _calls(verb, "")
    for i, path in enumerate(paths):
        every = path.relative_to(CORPUS).as_posix() in CHOSEN  # of other files the first and the third, or the others
        for value in _values(path)[0 if every else i % 2 :: 1 if every else 2] if verb != "info" else "-":
            wrong.append(_run(_words(verb, path, next(others), value, next(calls), out)))
    assert not [*filter(None, wrong)]


@_BY_DEFAULT
@pytest.mark.parametrize("verb", _VERBS)
def test_every_verb_with_damaged_files(verb: str, whole: bool, out: Path) -> None:
    """`diff --lenient` looked up the default among the value types of profiles that had lost theirs."""
    drawn, wrong = random.Random(verb), []
    for paths in (_small("good", whole), _small("bad", whole)):
        calls = _calls(verb, "damaged")
        for path in paths:
            damaged = [] if path.is_dir() else [_damaged(path, drawn, out.parent)]
            for one in damaged or [path]:
                call = next(calls)
                lenient = () if "--lenient" in call or drawn.random() < 0.2 else ("--lenient",)
                other = drawn.choice((path, drawn.choice(paths)))
                value = drawn.choice(_values(path))
                wrong.append(_run(_words(verb, one, other, value, (*call, *lenient), out)))
    assert not [*filter(None, wrong)]


@_BY_DEFAULT
def test_every_table(whole: bool) -> None:
    for path in (*_small("good", whole), *_small("bad", whole)):
        for lenient in (False, True):
            with contextlib.suppress(FastprofError), fastprof.open(path, lenient=lenient) as profile:
                for name in profile.tables:
                    table = profile.table(name)
                    try:
                        pyarrow.table(table)
                    except OSError:  # the only error that Arrow reports
                        assert isinstance(table.error, FastprofError), path
