"""`fastprof report --source`: lines in the page are those of `annotate`, and come only from the given folders."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from fastprof import UsageError, annotate, report
from fastprof.cli import main
from fastprof.verbs.annotate.sources import Confined
from tests.support.pages import Page
from tests.support.paths import CORPUS
from tests.unit.test_report_labels import labelled

PROFILE = """\
events: Ir Dr
fl=zip/deflate.c
fn=deflate
3 5 1
5 700 20
cfi=zip/tree.c
cfn=tree
calls=3 4
5 90 9
fn=flush
9 60 2
fl=zip/tree.c
fn=tree
2 115 10
0 3 1
99 1
"""
Lines = dict[str, dict[int, tuple[str | None, list[float], list[float]]]]


@pytest.fixture
def src(tmp_path: Path) -> Path:
    (tmp_path / "src/zip").mkdir(parents=True)
    (tmp_path / "src/zip/deflate.c").write_text("".join(f"deflate {i}\n" for i in range(1, 40)))
    (tmp_path / "src/zip/tree.c").write_bytes(b"int\r\ntree(\xff)\n")
    (tmp_path / "a.callgrind").write_text(PROFILE)
    return tmp_path / "src"


def lines(path: Path) -> Lines:
    """By file and number: text, self costs and costs of calls by value column."""
    page = Page(path)
    c, found = page.columns, page.head["sources"]["found"]
    texts = [iter(text.split("\n")) for _, text in page.head["sources"]["found"]]
    shown: Lines = {name: {} for name, _ in found}
    columns = range(len(page.head["values"]))
    before = -1
    for i, file in enumerate(c["line file"]):
        number = c["line number"][i] + (number if file == before else 0)  # noqa: F821
        before, text = file, next(texts[file])
        costs = [[c[f"line {what} {k}"][i] for k in columns] for what in ("self", "calls")]
        shown[found[file][0]][number] = text if c["line known"][i] else None, costs[0], costs[1]
    return shown


def test_lines_are_those_of_annotate(src: Path, tmp_path: Path) -> None:
    report(tmp_path / "a.callgrind", tmp_path / "page.html", source=[src])
    expected: Lines = {}
    for listing in annotate(tmp_path / "a.callgrind", source=[src]).listings:
        for line in (line for block in listing.blocks() for line in block if line.number):
            calls = [sum(call.values[k] for call in line.calls) for k in (0, 1)]
            expected.setdefault(listing.name, {})[line.number] = line.text, list(line.values or [0, 0]), calls
    found = lines(tmp_path / "page.html")
    assert found == expected
    assert found["zip/deflate.c"][5] == ("deflate 5", [700, 20], [90, 9])
    assert [*found["zip/deflate.c"]] == [*range(1, 18)]
    assert found["zip/tree.c"][99] == (None, [1, 0], [0, 0])


def test_a_sampled_profile_has_them_too(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    name = "cpu.go"
    (tmp_path / "src" / name).write_text("".join(f"line {i}\n" for i in range(1, 200)))
    cpu = CORPUS / "pprof/good/go-cpulabels.pb.gz"
    report(cpu, tmp_path / "page.html", source=[tmp_path / "src"])
    ((path, found),) = lines(tmp_path / "page.html").items()
    # annotate also opens files by their absolute names, which may exist here
    (listing,) = (one for one in annotate(cpu, source=[tmp_path / "src"]).listings if one.name == path)
    assert path.endswith(name)
    own = {line.number: line.values for block in listing.blocks() for line in block if line.values}
    assert {n: costs for n, (_, costs, _) in found.items() if any(costs)} == {n: v for n, v in own.items() if any(v)}


def test_both_profiles_of_a_comparison(src: Path, tmp_path: Path) -> None:
    (tmp_path / "b.callgrind").write_text(PROFILE.replace("5 700 20", "5 7 2"))
    report([tmp_path / "a.callgrind", tmp_path / "b.callgrind"], tmp_path / "page.html", source=[src])
    page = Page(tmp_path / "page.html")
    sides = [(value["event"], value["side"]) for value in page.head["values"]]
    own = dict(zip(sides, lines(tmp_path / "page.html")["zip/deflate.c"][5][1], strict=True))
    assert own == {(0, 0): 700, (1, 0): 20, (0, 1): 7, (1, 1): 2}


def test_lines_of_a_sum(src: Path, tmp_path: Path) -> None:
    (tmp_path / "b.callgrind").write_text(PROFILE.replace("5 700 20", "5 7 2"))
    report([tmp_path / "a.callgrind", tmp_path / "b.callgrind"], tmp_path / "page.html", source=[src], sum=True)
    assert lines(tmp_path / "page.html")["zip/deflate.c"][5][1] == [707, 22]


def hostile(tmp_path: Path, name: str) -> Page:
    """The page of a profile that names this file, with sources from tmp_path/src."""
    (tmp_path / "hostile.callgrind").write_text(f"events: Ir\nfl={name}\nfn=f\n1 50\nfl=ok.c\nfn=g\n1 50\n")
    (tmp_path / "src/ok.c").write_text("fine\n")
    report(tmp_path / "hostile.callgrind", tmp_path / "page.html", source=[tmp_path / "src"])
    return Page(tmp_path / "page.html")


@pytest.mark.parametrize(
    "name",
    [
        "{outside}/secret.c",
        "/{outside}/secret.c",
        "../outside/secret.c",
        "a/../../outside/secret.c",
        "sub/../../outside/secret.c",
        "link.c",
        "sub/folder/secret.c",
        "chain.c",
        "../outside/../outside/secret.c",
        "pipe.c",
        "sub",
        ".",
        "x" * 5000,
        "d/" * 2000 + "secret.c",
        "loop.c",
        "huge.c",
    ],
)
def test_no_file_outside_of_the_folders_is_read(
    name: str, src: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.c").write_text("SECRET\n")
    (src / "sub").mkdir()
    (src / "link.c").symlink_to(outside / "secret.c")
    (src / "chain.c").symlink_to("link.c")
    (src / "loop.c").symlink_to("loop.c")
    (src / "sub/folder").symlink_to(outside)
    os.mkfifo(src / "pipe.c")
    with (src / "huge.c").open("wb") as huge:
        huge.truncate((1 << 24) + 1)
    opened: list[str] = []
    real = open
    monkeypatch.setattr("builtins.open", lambda path, *a, **k: opened.append(str(path)) or real(path, *a, **k))
    monkeypatch.chdir(outside)  # nor names relative to the working directory
    page = hostile(tmp_path, name.replace("{outside}", str(outside)))
    assert [file for file, _ in page.head["sources"]["found"]] == ["ok.c"]
    assert len(page.head["sources"]["missing"]) == 1
    assert str(outside / "secret.c") not in map(os.path.realpath, opened)
    assert str(src / "ok.c") in opened


def test_a_name_that_leads_back_into_the_folder_is_found(src: Path, tmp_path: Path) -> None:
    """Through a link within it, and through a folder that is itself given as a link."""
    (src / "inner.c").symlink_to("zip/tree.c")
    assert len(hostile(tmp_path, "/build/inner.c").head["sources"]["found"]) == 2
    (tmp_path / "alias").symlink_to(src)
    report(tmp_path / "a.callgrind", tmp_path / "page.html", source=[tmp_path / "alias"])
    assert [*lines(tmp_path / "page.html")] == ["zip/deflate.c", "zip/tree.c"]


def test_deep_names_that_are_not_there_cost_no_look_at_the_disk(
    src: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[str] = []
    monkeypatch.setattr("fastprof.verbs.annotate.sources._is_file", lambda path: looked.append(path))
    sources = Confined([str(src)])
    assert not any(sources.find("d/" * 200 + f"{i}.c") for i in range(100))
    assert looked == []
    assert not sources.find("/build/zip/tree.c") and looked == [str(src / "zip/tree.c")]


def test_a_folder_whose_name_begins_alike_is_another_one(src: Path, tmp_path: Path) -> None:
    (tmp_path / "src2").mkdir()
    (tmp_path / "src2/secret.c").write_text("SECRET\n")
    (src / "up.c").symlink_to("../src2/secret.c")
    assert [name for name, _ in hostile(tmp_path, "up.c").head["sources"]["found"]] == ["ok.c"]


def test_what_is_missing_or_does_not_fit_is_said(
    src: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("fastprof.verbs.page.source._MOST_TEXT", 300)
    (src / "zip/tree.c").unlink()
    arguments = ["report", str(tmp_path / "a.callgrind"), "-o", str(tmp_path / "page.html"), "--source", str(src)]
    assert main(arguments) == 0
    said = capsys.readouterr().err
    assert "source files not found: 1, first zip/tree.c; --source=DIR adds a folder" in said
    assert "source files with lines that do not fit the page are not part of the output" in said
    page = Page(tmp_path / "page.html")
    assert page.head["sources"]["cut"] == ["zip/deflate.c"] and page.head["sources"]["missing"] == ["zip/tree.c"]
    assert 0 < len(lines(tmp_path / "page.html")["zip/deflate.c"]) < 17


def test_a_page_with_much_source_stays_small(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    rng = random.Random(1)
    text = "".join(f"{rng.randbytes(150).hex()}\n" for _ in range(400))
    profile = ["events: Ir"]
    for i in range(30):
        (tmp_path / f"src/f{i}.c").write_text(text)
        profile += [f"fl=f{i}.c", f"fn=f{i}", *(f"{line} 7" for line in range(1, 400))]
    (tmp_path / "a.callgrind").write_text("\n".join(profile) + "\n")
    report(tmp_path / "a.callgrind", tmp_path / "page.html", source=[tmp_path / "src"])
    assert (tmp_path / "page.html").stat().st_size < 2_000_000
    assert len(Page(tmp_path / "page.html").head["sources"]["cut"]) > 5


@pytest.mark.parametrize(
    ("inputs", "output", "folder", "said"),
    [
        (["-"], "page.html", ".", "standard input"),
        (["a.callgrind"], "flame.svg", ".", "a picture has no source lines"),
        (["a.callgrind"], "page.html", "nowhere", "is not a directory"),
        (["a.callgrind"], "page.html", "a.callgrind", "is not a directory"),
    ],
)
def test_refused(
    inputs: list[str], output: str, folder: str, said: str, src: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=said):
        report(inputs, output, source=[folder])
    assert not Path(output).exists()


def test_labels_choose_the_samples_of_lines(tmp_path: Path) -> None:
    """Filters apply to lines, too."""
    source = labelled(tmp_path / "a.pb", [("main;f", {"tenant": "a"}, 10)])
    (tmp_path / "src").mkdir()
    report(source, tmp_path / "page.html", source=[tmp_path / "src"], label=["tenant=a"])
    assert Page(tmp_path / "page.html").head["sources"] == {"found": [], "cut": [], "missing": []}


@pytest.mark.parametrize(
    ("rows", "line"),
    [
        ("40 1\n41 5\n12 9\n42 1\n", 40),  # line 12 is of an inlined function of the file
        ("0x500 41 5\n0x510 12 9\n0x4f0 40 1\n", 40),
        ("fi=inline.h\n3 1\nfe=a.c\n40 2\n12 1\n", 40),
    ],
    ids=["in order", "addresses", "another file"],
)
def test_where_a_function_begins(tmp_path: Path, rows: str, line: int) -> None:
    """Its first line or the one of its lowest address, not the smallest, which may be inlined code."""
    positions = "instr line" if rows.startswith("0x") else "line"
    text = f"positions: {positions}\nevents: Ir\nfl=a.c\nfn=main\n{rows}"
    (tmp_path / "a.callgrind").write_text(text)
    report(tmp_path / "a.callgrind", tmp_path / "page.html")
    assert [*Page(tmp_path / "page.html").columns["function line"]] == [line]
