"""What the command line says of itself: help, and usage errors (cli/parser.py)."""

from __future__ import annotations

import re

import pytest

from fastprof.cli import VERBS
from tests.unit.test_cli import run


@pytest.mark.parametrize("verb", VERBS)
def test_help_has_examples(verb: str) -> None:
    text = run(verb, "--help").stdout.decode()
    assert f"fastprof {verb}" in text.partition("examples:")[2]


ACTIONS = [
    *(f"archive {action}" for action in ("add", "list", "extract", "rm", "compact", "verify")),
    *(f"batch {action}" for action in ("convert", "merge", "archive", "plan", "status")),
]


def test_actions_are_all() -> None:
    for verb in ("archive", "batch"):
        listed = run(verb, "--help").stdout.decode().partition("  ACTION\n")[2].partition("\n\n")[0]
        assert re.findall(r"^    (\w+)", listed, re.MULTILINE) == [a.split()[1] for a in ACTIONS if a.startswith(verb)]


@pytest.mark.parametrize("columns, widest", [("60", 60), ("200", 80), ("0", 80), ("x", 80)])
def test_help_fits_the_terminal(columns: str, widest: int) -> None:
    lines = [
        line
        for verb in ([], *([verb] for verb in VERBS), *(action.split() for action in ACTIONS))
        for line in run(*verb, "--help", COLUMNS=columns).stdout.decode().splitlines()
    ]
    assert widest - 10 < max(map(len, lines)) <= widest


def test_help_of_all() -> None:
    text = run("--help").stdout.decode()
    assert all(verb in text for verb in VERBS) and "exit codes:" in text and "examples:" in text
    assert run(code=2).stderr.decode() == text


@pytest.mark.parametrize("verb", ["convert", "merge", "diff", "top", "annotate", "archive extract"])
def test_help_is_two_screens_at_most(verb: str) -> None:
    """Of 50 lines.  --help-all has the rest: defaults, several sentences."""
    few, all_ = (run(*verb.split(), help).stdout.decode() for help in ("--help", "--help-all"))
    assert len(few.splitlines()) <= 100
    flags = re.compile(r"^  (-[^ ]+(?:, --[^ ]+)?)", re.MULTILINE)
    assert flags.findall(few) == flags.findall(all_)
    assert "losses are counted" not in few and "losses are counted" in all_
    assert "gperftools: time between two samples\n" in few  # which format it is for


SEE = "usage: fastprof convert [OPTION ...] INPUT ... [-o OUTPUT]\n       `fastprof convert --help` says more\n"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (
            "x.xray -f",
            "-f/--from: FORMAT is missing: format of the input, if it is not recognized; "
            "an output that exists is replaced without asking",
        ),
        ("x.xray --to", "-t/--to: FORMAT is missing: format to write"),
        (
            "x.xray --force -o y",
            "there is no option --force; none is needed: an output that exists is replaced without asking",
        ),
        ("x.xray --symbol=./program", "there is no option --symbol; the nearest is --symbols"),
        ("x.xray --len", "there is no option --len; the nearest is --lenient"),
        ("x.xray --frobnicate \x1b", "there is no option --frobnicate"),
        ("-o y.callgrind", "INPUT is missing"),
        ("x.xray --time-unit days", "--time-unit: 'days' is none of 'ns', 'ticks'"),
    ],
)
def test_a_usage_error_says_what_is_wrong_first(words: str, says: str) -> None:
    assert run("convert", *words.split(" "), code=2).stderr.decode() == f"fastprof: {says}\n{SEE}"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("conv x.xray", "'conv' is no verb; the nearest is convert\nusage: fastprof [OPTION ...] VERB ...\n"),
        ("--lenient x.xray", "there is no option --lenient\nusage: fastprof [OPTION ...] VERB ...\n"),
        ("info a b", "unexpected: b\nusage: fastprof info [OPTION ...] INPUT\n"),
        ("archive ls a", "ACTION: 'ls' is none of 'add', 'list', 'extract'"),
        ("archive list a --srt size", "there is no option --srt; the nearest is --sort\nusage: fastprof archive list "),
        (
            "batch convert a -t pprof",
            "-o/--output is missing\nusage: fastprof batch convert [OPTION ...] [INPUT ...] -o",
        ),
    ],
)
def test_usage_errors_of_verbs(words: str, says: str) -> None:
    assert run(*words.split(), code=2).stderr.decode().startswith(f"fastprof: {says}")
