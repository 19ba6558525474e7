"""Every form of `top`, `diff` and `annotate`: their exact output is in printed_costs.txt.

To renew it after an intended change: python -m tests.unit.test_printed_costs
"""

from __future__ import annotations

import io
import os
import re
import shlex
import shutil
from collections.abc import Iterator
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

import fastprof
from fastprof.cli import main
from tests.support.paths import CORPUS

GOLDEN = Path(__file__).with_name("printed_costs.txt")
_GRAPH = "callgrind/good/xdebug.callgrind"
_OBJECTS = "callgrind/good/unloaded.callgrind"
_STACKS = "pprof/good/everything.pb"
_LABELS = "pprof/good/go-cpulabels.pb"
_TRACE = "xray/good/fdr5-pool-clang19.xray"
_NAMED = f"{_TRACE} -s xray/pool-clang19.yaml"
_CFI = "callgrind/good/cfi.callgrind"
_RUNS = "folded/good/plain.folded folded/good/recursion.folded -- folded/good/dups.folded folded/good/chain.folded"

_TOP = [
    *(f"{_GRAPH} --by {by}" for by in ("function", "line", "file", "object", "thread")),
    f"{_GRAPH} --tree both",
    f"{_GRAPH} --tree callers --sort inclusive -n 2",
    f"{_GRAPH} --sort calls --no-cycles",
    f"{_OBJECTS} --by object",
    f"{_OBJECTS} --sort inclusive",
    f"{_STACKS} --tree callees",
    f"{_STACKS} --by line --demangle full",
    f"{_LABELS} --by label",
    f"{_LABELS} --by label:kind,tenant,function -n 3",
    f"{_LABELS} --by label:kind --tree both -n 3",
    f"{_LABELS} --by label:kind",
    f"{_LABELS} --by label:kind,function --tree both -n 3",
    f"{_LABELS} --matrix kind -n 4",
    f"{_LABELS} --sort samples -n 3",
    "folded/good/plain.folded folded/good/recursion.folded --matrix input",
    f"{_NAMED} --stats",
    f"{_NAMED} --tree both -n 3",
    f"{_TRACE} -n 2 --by object",
    f"{_CFI} --sort Dr",
    "folded/good/two_values.folded --threshold 1% --cumulative",
    "folded/good/odd_names.folded --focus . --ignore a",
    "folded/good/zero.folded",
    "heap/good/go-heap.heap -n 4",
]
_DIFF = [
    *(f"{_CFI} {_OBJECTS} --union --by {by}" for by in ("function", "line", "file", "object", "arc")),
    "folded/good/plain.folded folded/good/recursion.folded --fail-over 5",
    "folded/good/plain.folded folded/good/plain.folded",
    f"{_LABELS} {_LABELS} --by label:kind,function --base-of 2 -n 5",
    f"{_LABELS} {_LABELS} --by label:kind --base-of 2 --sort percent",
    f"{_CFI} callgrind/good/fnaftfi.callgrind --union --sort inclusive",
    f"{_NAMED} {_TRACE} --base-of 2 -n 6",
    f"--significance 1 {_RUNS}",
    _RUNS,
]
_ANNOTATE = [
    "two.pstats -I .",
    "two.pstats -I . two.py --calls 2 --value time",
    "cfi.callgrind -I .",
    "everything.pb --threshold 0 --calls 1 --context 1",
    "cprofile.pstats --threshold 0",
]
_ANNOTATED = ("answers/two.pstats", "answers/two.py", "answers/cprofile.pstats", _CFI, _STACKS)
_TEXT = ["--width 40", "--width 72", "--width none --color always", "--width 100 --color always"]
_FORMS = {
    "top": (_TOP, [*_TEXT, "--markdown", "--csv -n 6", "--json -n 3"]),
    "diff": (_DIFF, [*_TEXT, "--markdown", "--csv -n 6", "--json -n 3"]),
    "annotate": (_ANNOTATE, [*_TEXT, "--json"]),
}


def commands() -> Iterator[str]:
    for verb, (given, forms) in _FORMS.items():
        for k, arguments in enumerate(given):
            front, sides, new = arguments.partition(" -- ")
            # each form, but not of everything: the file stays small
            for form in forms if k % 3 == 0 else forms[k % 3 :: 2]:
                yield f"{verb} {form} {front}{sides}{new}"


def printed(command: str) -> str:
    with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
        try:
            code: object = main(shlex.split(command))
        except SystemExit as stop:  # wrong usage
            code = stop.code
    return f"{out.getvalue()}{err.getvalue()}exit code {code}\n"


def notebook(which: str) -> str:
    """What a notebook shows, one tag a line."""
    verb, *inputs = which.split()
    if verb == "matrix":
        found = fastprof.top(inputs[0], matrix="kind", n=4)
    elif verb == "diff":
        found = fastprof.diff(*inputs, union=True)
    else:
        found = fastprof.top(inputs)
    return re.sub(r"(</tr>|</h1>|</p>)", r"\1\n", found._repr_html_()) + "\n"


_NOTEBOOK = [
    f"top {_GRAPH}",
    f"top {_STACKS}",
    "top folded/good/zero.folded",
    f"diff {_CFI} {_OBJECTS}",
    "diff folded/good/plain.folded folded/good/recursion.folded",
    f"matrix {_LABELS}",
]


def annotated(folder: Path) -> None:
    """Profiles, and source files that are not newer."""
    for name in _ANNOTATED:
        shutil.copyfile(CORPUS / name, folder / Path(name).name)
        os.utime(folder / Path(name).name, (10**9, 10**9))


def everything(folder: Path, *verbs: str) -> Iterator[tuple[str, str]]:
    """The commands of these verbs and what they print; >>>: notebooks.  `folder` is for those of annotate."""
    annotated(folder)
    for command in commands():
        verb = command.split()[0]
        if verb in verbs:
            with chdir(folder if verb == "annotate" else CORPUS):
                yield f"$ fastprof {command}", printed(command)
    for which in _NOTEBOOK if ">>>" in verbs else ():
        yield f">>> {which}", notebook(which)


def expected() -> dict[str, str]:
    parts = re.split(r"^(\$ fastprof .*|>>> .*)\n", GOLDEN.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


@pytest.mark.parametrize("what", ["top", "diff", "annotate", ">>>"])
def test_the_output_is_what_it_was(what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(CORPUS)
    of = {name: text for name, text in expected().items() if name.split()[what != ">>>" and 2] == what}
    assert dict(everything(tmp_path, what)) == of


if __name__ == "__main__":
    os.chdir(CORPUS)
    with TemporaryDirectory() as there:
        every = [f"{name}\n{text}" for name, text in everything(Path(there), *_FORMS, ">>>")]
    GOLDEN.write_text("".join(every), encoding="utf-8")
