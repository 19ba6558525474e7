"""cli/quick.py parses what argparse parses, equally, or leaves it to argparse."""

from __future__ import annotations

import random
from typing import Any

import pytest

from fastprof import cli
from fastprof.cli import arguments
from fastprof.cli.parser import Parser
from fastprof.cli.quick import Quick
from fastprof.core.loaded import loaded

WORDS = (
    *("a.prof", "-", "b", "", "-q", "--quiet", "-v", "--json", "-f", "pprof", "--from", "--from=pprof", "--keep-going"),
    *("--csv", "--markdown", "--width", "--width=80", "80", "none", "--color", "never", "--color=blue", "--lenient"),
    *("-n", "5", "-n5", "--by", "line", "--sort=calls", "--threshold", "1%", "2", "--stats", "--cores", "--cores=0"),
    *("-o", "out.md", "-qv", "--", "--unknown", "-h", "--focus=(", "--focus", "main", "--part=1", "--json=1", "-1"),
    *("--from=--", "--focus=--", "--width=--", "-f--", "--sort=--"),
)


def full(verb: str, words: list[str]) -> dict[str, Any] | None:
    """The arguments as argparse has them, without what `main` adds; None: an error, or what `main` refuses."""
    parser = Parser(prog=verb)
    parser.offer_all_help()
    loaded(f"fastprof.cli.{verb}:add_arguments")(parser)
    try:
        parsed, unknown = parser.parse_known_args(words)
    except SystemExit:
        return None
    return None if unknown else {key: value for key, value in vars(parsed).items() if key != "help_all"}


@pytest.mark.parametrize("verb", cli._QUICK)
def test_the_same_arguments(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    chance, n_parsed = random.Random(verb), 0
    for _ in range(150):
        words = [chance.choice(WORDS) for _ in range(chance.randrange(5))]
        words.insert(chance.randrange(len(words) + 1), "in.pb.gz")
        quick = Quick()
        loaded(f"fastprof.cli.{verb}:add_arguments")(quick)
        found = quick.parsed(words)
        if found is None:
            continue
        n_parsed += 1
        known = {option.key for option in loaded(f"fastprof.verbs.{verb}:END").options}
        given = arguments.given(found, ())  # type: ignore[arg-type]
        assert {key: value for key, value in vars(found).items() if key != "options"} == full(verb, words), words
        assert given.keys() <= known | {"lenient", "cores"}
    assert n_parsed > 20


def test_plain_command_lines_are_parsed_at_once() -> None:
    for verb, words in (("info", ["in.xray"]), ("info", ["--json", "a", "b"]), ("top", ["-n", "5", "a"])):
        quick = Quick()
        loaded(f"fastprof.cli.{verb}:add_arguments")(quick)
        assert quick.parsed(words), words


@pytest.mark.parametrize("words", [["--focus=--"], ["--focus=--", "--by=line"], ["--from=--"], ["--sort=--"], ["-n--"]])
def test_two_dashes_are_a_value(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Not an empty list, as argparse of Python 3.11 has it."""
    quick = Quick()
    loaded("fastprof.cli.top:add_arguments")(quick)
    found, other = quick.parsed([*words, "a"]), full("top", [*words, "a"])
    if found is not None:
        assert {key: value for key, value in vars(found).items() if key != "options"} == other
    if words[0] == "--focus=--":
        assert other and other["focus"] in ("--", ["--"])
    assert not other or [] not in other.values()
