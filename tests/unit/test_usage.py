"""Help and usage errors of the command line (cli/parser.py)."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable

import pytest

from fastprof import formats, plan
from fastprof.cli import VERBS, main
from fastprof.core.options import Option, Text
from tests.unit.test_cli import COMMAND, environment, run


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
def test_help_fits_the_terminal(
    columns: str, widest: int, help_of: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    lines = [line for verb in ("", *VERBS, *ACTIONS) for line in help_of(verb).splitlines()]
    assert widest - 10 < max(map(len, lines)) <= widest


def test_help_of_all() -> None:
    text = run("--help").stdout.decode()
    assert all(verb in text for verb in VERBS) and "exit codes:" in text and "examples:" in text
    assert "\nverbs:\n  VERB\n" in text
    assert run(code=2).stderr.decode() == text


@pytest.fixture
def help_of(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    monkeypatch.setenv("COLUMNS", "80")

    def shown(verb: str, flag: str = "--help") -> str:
        with pytest.raises(SystemExit) as ended:
            main([*verb.split(), flag])
        assert not ended.value.code
        return capsys.readouterr().out

    return shown


@pytest.mark.parametrize("verb", [*VERBS, *ACTIONS])
def test_help_is_two_screens_with_a_line_an_option(verb: str, help_of: Callable[..., str]) -> None:
    """--help-all shows the rest: details, rare options, options of formats."""
    few, all_ = help_of(verb), help_of(verb, "--help-all")
    assert len(few.splitlines()) <= 80
    assert [line for line in few.splitlines() if line.startswith(" " * 27)] == [], "help of more than a line"
    flags = re.compile(r"^  (-[^ ]+(?:, --[^ ]+)?)", re.MULTILINE)
    assert {*flags.findall(few)} <= {*flags.findall(all_)}
    if verb == "convert":
        rare = {option.flag for option in plan.known_options() if option.rare}
        assert rare.isdisjoint(flags.findall(few)) and rare <= {*flags.findall(all_)}
    if "\n  --lenient" in few:
        assert "Losses are counted" not in few and "Losses are counted" in " ".join(all_.split())
        assert "--keep-signal-frames" not in few and "for gperftools alone:" in all_


def test_a_format_with_many_options_makes_no_help_longer(
    monkeypatch: pytest.MonkeyPatch, help_of: Callable[..., str]
) -> None:
    verbs = ["convert", "top", "archive extract", "batch convert"]
    before = [help_of(verb) for verb in verbs]
    more = tuple(Option(f"x{n}", Text(), "", format="x", flag=f"--x-{n}", help="help") for n in range(40))
    new = formats.get("folded")._replace(name="x", reads=more[:20], writes=more[20:])
    monkeypatch.setitem(formats._by_name(), "x", new)
    monkeypatch.setattr(plan, "known_options", plan.known_options.__wrapped__)  # without its cache
    assert [help_of(verb) for verb in verbs] == before
    assert "--x-39" in help_of("convert", "--help-all")


def test_help_all_has_every_option_of_every_action(help_of: Callable[..., str]) -> None:
    for verb in VERBS:
        all_ = help_of(verb, "--help-all")
        for action in (a for a in ACTIONS if a.startswith(f"{verb} ")):
            assert help_of(action, "--help-all") in all_
    assert "Losses are counted" in " ".join(help_of("batch", "--help-all").split())


def test_no_pipe_no_advice_about_it() -> None:
    done = subprocess.run([*COMMAND, "info"], stdin=subprocess.DEVNULL, capture_output=True, env=environment())
    assert done.stderr.startswith(b"fastprof: INPUT is missing\nusage")


SEE = "usage: fastprof convert [OPTION ...] INPUT ... [-o OUTPUT]\n       `fastprof convert --help` shows the options\n"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (
            "x.xray -f",
            "-f/--from: FORMAT is missing: input format (default: detected from the content); "
            "an existing output is replaced without asking",
        ),
        ("x.xray --to", "-t/--to: FORMAT is missing: output format (default: by the suffix of OUTPUT)"),
        (
            "x.xray --force -o y",
            "unknown option --force; not needed, an existing output is replaced without asking",
        ),
        ("x.xray --symbol=./program", "unknown option --symbol; did you mean --symbols?"),
        ("x.xray --len", "unknown option --len; did you mean --lenient?"),
        ("x.xray --frobnicate \x1b", "unknown option --frobnicate"),
        ("x.xray --bogus", "unknown option --bogus"),  # not close to --counts
        ("x.xray --no-symbol", "unknown option --no-symbol; did you mean --no-symbols?"),
        ("-o y.callgrind", "INPUT is missing; use - to read standard input"),  # `run` passes a pipe here
        ("x.xray --time-unit days", "--time-unit: 'days' is not one of ns, ticks"),
    ],
)
def test_a_usage_error_says_what_is_wrong_first(words: str, says: str) -> None:
    assert run("convert", *words.split(" "), code=2).stderr.decode() == f"fastprof: {says}\n{SEE}"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("conv x.xray", "unknown verb 'conv'; did you mean 'convert'?\nusage: fastprof [OPTION ...] VERB ...\n"),
        ("--lenient x.xray", "unknown option --lenient\nusage: fastprof [OPTION ...] VERB ...\n"),
        ("merge -o y.pb", "INPUT is missing; use - to read standard input\nusage: fastprof merge "),
        ("report -o y.html", "INPUT is missing; use - to read standard input\nusage: fastprof report "),
        ("info", "INPUT is missing; use - to read standard input\nusage: fastprof info "),
        ("sql", "FILE and QUERY are missing; use - to read standard input\nusage: fastprof sql "),
        ("diff", "OLD and NEW are missing; use - to read standard input\nusage: fastprof diff "),
        ("archive list", "STORE is missing\nusage: fastprof archive list "),
        ("archive ls a", "ACTION: 'ls' is not one of add, list, extract"),
        ("archive list a --srt size", "unknown option --srt; did you mean --sort?\nusage: fastprof archive list "),
        (
            "batch convert a -t pprof",
            "-o/--output is missing\nusage: fastprof batch convert [OPTION ...] [INPUT ...] -o",
        ),
    ],
)
def test_usage_errors_of_verbs(words: str, says: str) -> None:
    assert run(*words.split(), code=2).stderr.decode().startswith(f"fastprof: {says}")
