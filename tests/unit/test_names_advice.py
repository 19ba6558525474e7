"""Output with unnamed functions advises --symbols."""

from __future__ import annotations

import pytest

from tests.support.paths import CORPUS
from tests.unit.test_cli import run

XRAY = str(CORPUS / "xray/good/fdr5-pool-clang19.xray")
PROGRAM = str(CORPUS / "xray/pool-clang19")
ADDRESSES = str(CORPUS / "gperftools/good/small.prof")  # of a program that is not on this machine
COMMANDS = {
    "convert": "convert IN -o OUT/x.callgrind",
    "merge": "merge IN IN -o OUT/x.callgrind",
    "diff": "diff IN IN",
    "diff to a file": "diff IN IN -o OUT/x.pb.gz",
    "top": "top IN",
    "annotate": "annotate IN",
    "report": "report IN -o OUT/x.html",
    "view": "view IN --no-browser",
    "sql": "sql IN QUERY",
    "some rows": "sql IN QUERY limit 1",
    "archive": "archive add OUT/x.fpa IN",
    "batch": "batch merge IN -o OUT/x.callgrind",
}


def said(name: str, path: str, folder: object, *more: str) -> str:
    query = f"select function from {'spans' if path == XRAY else 'frames'}"
    words = [
        word.replace("IN", path).replace("OUT", str(folder)) for word in COMMANDS[name].partition("QUERY")[0].split()
    ]
    if name in ("sql", "some rows"):
        words.append(query + COMMANDS[name].partition("QUERY")[2])
    return run(*words, *more, TMPDIR=str(folder)).stderr.decode()


@pytest.mark.parametrize("name", COMMANDS)
def test_numbers_of_xray(name: str, tmp_path: object) -> None:
    assert said(name, XRAY, tmp_path).count("name the program that wrote the log with --symbols") == 1
    assert "--symbols" not in said(name, XRAY, tmp_path, "-s", PROGRAM, *["--replace"] * (name == "archive"))


@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "archive"])  # archives keep addresses
def test_addresses(name: str, tmp_path: object) -> None:
    assert said(name, ADDRESSES, tmp_path).count("name their programs and shared objects with --symbols") == 1
    assert "--symbols" not in said(name, ADDRESSES, tmp_path, "--no-symbols")
