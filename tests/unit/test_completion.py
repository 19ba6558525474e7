"""fastprof completion: the completions offered in shells."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from fastprof.cli import VERBS, main
from fastprof.cli.completion import script
from tests.differential.peers import need

# Typed words, and the offered completions.
TYPED = [
    ("co", "convert completion"),
    ("top --by fu", "function"),
    ("top --by ", "function line file object category thread thread,function label input branch label:"),
    ("convert --labels own,th", "own,thread"),
    ("archive ", "add list extract rm compact verify"),
    ("archive add --skip-e", "--skip-existing"),
    ("convert x -t pp", "pprof"),
    ("convert --to=pp", "pprof"),
    ("convert -O time_", "time_ns="),
    ("convert --symbols ", ""),  # the shell completes files
    ("help an", "annotate"),
    ("formats pp", "pprof pprof-raw"),
    ("formats --js", "--json"),
    ("completion f", "fish"),
]


def bash(typed: str, folder: Path) -> str:
    """The contents of COMPREPLY after _fastprof.  bash also splits words at `=`."""
    words = ["fastprof", *typed.replace("=", " = ").split()] + [""] * typed.endswith(" ")
    (folder / "words").write_text("".join(word + "\n" for word in words))
    (folder / "script").write_text(script("bash"))
    command = (
        "set -eu; . ./script; mapfile -t COMP_WORDS <words; COMP_CWORD=$((${#COMP_WORDS[@]}-1)); _fastprof || true"
    )
    done = subprocess.run(
        [need("bash"), "-c", command + '; echo "${COMPREPLY[*]}"'], cwd=folder, capture_output=True, text=True
    )
    assert done.stderr == ""
    return done.stdout.strip()


@pytest.mark.parametrize(("typed", "offered"), TYPED)
def test_bash(typed: str, offered: str, tmp_path: Path) -> None:
    assert bash(typed, tmp_path) == offered


@pytest.mark.parametrize(("typed", "offered"), [one for one in TYPED if one[1]])
def test_fish(typed: str, offered: str, tmp_path: Path) -> None:
    (tmp_path / "script").write_text(script("fish"))
    command = [need("fish"), "--no-config", "-c", f"source script; complete -C 'fastprof {typed}'"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env={"HOME": str(tmp_path)})
    found = [line.split("\t")[0].removeprefix("--to=") for line in done.stdout.splitlines()]
    assert done.stderr == ""
    assert {*offered.split()} <= {*found}
    assert len(found) < 40


def test_zsh_takes_the_script(tmp_path: Path) -> None:
    (tmp_path / "script").write_text(script("zsh"))
    command = [need("zsh"), "-fc", "autoload -U compinit; compinit -u -D; . ./script; echo ${_comps[fastprof]}"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env={"HOME": str(tmp_path)})
    assert (done.stderr, done.stdout.strip()) == ("", "_bash_complete -o default -F _fastprof")


def test_all_flags_of_all_verbs_are_there(capsys: pytest.CaptureFixture[str]) -> None:
    text = script("bash")
    for verb in VERBS:
        with pytest.raises(SystemExit):
            main([verb, "--help"])
        for line in capsys.readouterr().out.splitlines():
            for word in line.strip().split():
                flag = word.strip(",").partition("=")[0]
                assert not line.startswith("  -") or not flag.startswith("--") or flag in text, flag


def test_an_unknown_shell(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["completion", "tcsh"])
    assert "'tcsh' is not one of" in capsys.readouterr().err


def test_help_of_a_verb(capsys: pytest.CaptureFixture[str]) -> None:
    for command in (["help", "top"], ["top", "--help"]):
        with pytest.raises(SystemExit) as end:
            main(command)
        assert end.value.code == 0
        assert capsys.readouterr().out.startswith("usage: fastprof top ")
