"""The man pages: up to date, complete, and without errors from groff and mandoc."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from docs.make_man import FOLDER, escaped, pages
from fastprof import cli, plan
from tests.differential.peers import need

PAGES = sorted(FOLDER.glob("*.1"))


def test_the_pages_are_those_of_the_code() -> None:
    made = pages()
    assert {path.name: path.read_text() for path in PAGES} == made, "make docs"
    assert made.keys() == {"fastprof.1", *(f"fastprof-{verb}.1" for verb in cli.VERBS)}


def test_a_page_has_every_option_of_its_verb() -> None:
    text = pages()["fastprof-convert.1"]
    for option in plan.known_options():
        assert f"\\fB{escaped(option.flag)}\\fR" in text, option.flag


def test_text_is_no_request() -> None:
    assert escaped(".so /etc/passwd\n'x -\\n `y` \xe9") == "\\&.so /etc/passwd\n\\(aqx \\-\\en \\(gay\\(ga \\[u00E9]"


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_groff_has_no_warning(path: Path) -> None:
    need("groff")
    done = subprocess.run(["groff", "-man", "-Tascii", "-ww", "-P-cbou", str(path)], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"SYNOPSIS {path.stem.replace('-', ' ')} " in " ".join(done.stdout.split())


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_mandoc_has_no_warning(path: Path) -> None:
    need("mandoc")
    done = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", str(path)], capture_output=True, text=True)
    complaints = [
        line for line in done.stdout.splitlines() if "missing date" not in line
    ]  # pages must not change daily
    assert complaints == []
