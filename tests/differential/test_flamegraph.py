"""The drawing that flamegraph.pl makes of folded stacks: the samples of all boxes of each name.

Boxes are not compared one by one: it sorts lines as text, so that `f2;g` comes between `f` and `f;g`, and it then draws
two boxes of f.
"""

from __future__ import annotations

import html
import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest

import fastprof
from tests.contract.dump import CORPUS, files
from tests.differential.peers import need
from tests.reference import folded as reference
from tests.support.paths import SHARED, shared_data

BOX = re.compile(r"<title>(.*) \(([0-9,]+) samples, [0-9.]+%(?:; [-+]?[0-9.]+%)?\)</title>")
Boxes = Counter[str]  # the samples of a name's boxes

# Files of which flamegraph.pl draws too little, or other numbers, and why.
OTHERS = {
    "crlf": "it ignores every line that ends in a carriage return",
    "simple-crlf": "the same",
    "utf8_bytes": "the same",
    "trailing_blank": "it ignores every line with a blank behind the count",
    "float": "it adds up fractions, and rounds what it shows",
    "two_fractions": "the same",
    "fractional": "the same",
    "before_fractionals": "the same",
    "with-space": "the same",
    "huge": "it counts in doubles",
    "over_u64": "the same: for us it is an error",
    "bad-lines": "it ignores lines that it cannot read: for us they are errors",
    "simple-with-invalids": "the same",
    "simple-utf16-le": "it is not UTF-8",
}


@pytest.fixture(scope="module")
def flamegraph() -> str:
    return need("flamegraph.pl", "/usr/share/perl5/Devel/NYTProf/flamegraph.pl")


def draw(program: str, path: Path) -> tuple[Boxes, str]:
    """The drawing, and the messages."""
    done = subprocess.run([program, "--minwidth=0", str(path)], capture_output=True)
    boxes: Boxes = Counter()
    for name, n in BOX.findall(done.stdout.decode("utf-8", "surrogateescape")):
        boxes[html.unescape(name)] += int(n.replace(",", ""))
    return boxes, done.stderr.decode()


def boxes_of(text: bytes) -> Boxes:
    """A box for each frame of a stack, and one for the total; angle brackets are drawn as round ones."""
    boxes: Boxes = Counter()
    for frames, count in reference.read(text).totals().items():
        for name in (b"all", *frames):
            boxes[name.decode().translate(str.maketrans("<>", "()"))] += count
    return boxes


# in every format and view, all files that can be written as stacks
CONVERTED = [file for file in files("good") if file.split("/")[0] != "cachegrind"]


@pytest.mark.parametrize("file", CONVERTED)
def test_what_we_write_is_drawn_as_we_mean_it(file: str, flamegraph: str, tmp_path: Path) -> None:
    source, output = CORPUS / file, tmp_path / "out.folded"
    try:
        log = fastprof.convert(source, output, from_=file.split("/")[0], nanoseconds=True)
    except fastprof.UsageError as error:  # folded lines cannot hold negative values or zeros
        assert "no row can be written as folded: " in str(error)
        assert "with a negative value" in str(error) or "is 0 everywhere" in str(error)
        return
    except fastprof.FastprofError as error:
        assert "no row has a cost" in str(error)
        return
    text = output.read_bytes()
    boxes, said = draw(flamegraph, output)
    if not text:
        assert "No stack counts found" in said
        return
    assert said == ""
    ours = sum(reference.read(text).totals().values())
    if ours >= 1 << 53:  # doubles
        assert boxes["all"] == pytest.approx(ours, rel=1e-15)
        return
    assert boxes == boxes_of(text)
    if not log.not_representable.keys() - {"comments"}:
        kept = fastprof.convert(output, tmp_path / "again.folded", from_="folded")
        assert (tmp_path / "again.folded").read_bytes() == text and not kept.repairs


def inputs() -> list[Path]:
    found = sorted((CORPUS / "folded" / "good").iterdir())
    return found + (sorted(shared_data("folded").glob("*.folded")) if SHARED else [])


@pytest.mark.parametrize("path", inputs(), ids=lambda path: path.stem)
def test_totals_of_files_by_others(path: Path, flamegraph: str, tmp_path: Path) -> None:
    if any(path.stem.removeprefix("edge-")[3:] == name or path.stem.endswith(name) for name in OTHERS):
        return
    with fastprof.open(path, lenient=True, from_="folded") as profile:
        ours = sum(sum(batch.values(batch.c.n_values - 1)) for batch in profile)
    boxes, _ = draw(flamegraph, path)
    assert boxes["all"] == ours
