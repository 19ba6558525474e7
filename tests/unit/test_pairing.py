"""Functions of two builds of a program are paired: fastprof diff and the page of a comparison."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import fastprof
from fastprof.bridges.rows.pair import stem
from fastprof.core.errors import UsageError
from tests.reference.profile_proto import Profile
from tests.support.pages import Page

OLD = """\
version: 1
events: Ir

ob=/opt/demo-1.4/bin/app-1.4.2
fl=/build1/src/a.c
fn=main
1 10
cfi=/build1/src/b.c
cfn=f
calls=1 1
2 40
fl=/build1/src/b.c
fn=f
1 40
fl=/build1/x/util.c
fn=init
1 3
fl=/build1/y/util.c
fn=init
1 5
fn=0x401136
0 9
ob=/lib/libc.so.6
fl=malloc.c
fn=malloc
1 7
"""
NEW = """\
version: 1
events: Ir

ob=/opt/demo-1.5/bin/app-1.5.0-rc1
fl=/build2/y/util.c
fn=init
1 6
fl=/build2/x/util.c
fn=init
1 4
fn=0x401136
0 9
fl=/build2/src/a.c
fn=main
1 11
cfi=/build2/src/b.c
cfn=f
calls=2 1
2 50
fl=/build2/src/b.c
fn=f
1 50
fn=g
1 2
ob=/lib/libc.so.6
fl=malloc.c
fn=malloc
1 7
"""
BIN = "/opt/demo-1.5/bin/app-1.5.0-rc1"


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "old.callgrind").write_text(OLD)
    (tmp_path / "new.callgrind").write_text(NEW)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def rows(old: str = "old.callgrind", new: str = "new.callgrind", **options: Any) -> dict[tuple[str, ...], Any]:
    found = fastprof.diff(old, new, n=0, **options)
    return {(row.name, row.file, row.callee): (row.old[0], row.new[0]) for row in found.rows}


def warnings(**options: Any) -> list[str]:
    return fastprof.diff("old.callgrind", "new.callgrind", **options).log.warnings


def test_functions(files: Path) -> None:
    assert rows() == {
        ("main", "/build2/src/a.c", ""): (10, 11),
        ("f", "/build2/src/b.c", ""): (40, 50),
        ("g", "/build2/src/b.c", ""): (0, 2),
        ("init", "/build2/x/util.c", ""): (3, 4),
        ("init", "/build2/y/util.c", ""): (5, 6),
        ("0x401136", "/build1/y/util.c", ""): (9, 0),  # another build: different code
        ("0x401136", "/build2/x/util.c", ""): (0, 9),
        ("malloc", "malloc.c", ""): (7, 7),
    }
    found = fastprof.diff("old.callgrind", "new.callgrind")
    assert {row.name: row.inclusive for row in found.rows if row.name in ("main", "f")} == {
        "main": (50, 61),
        "f": (40, 50),
    }
    assert {row.object for row in found.rows if row.name in ("main", "f", "g", "init")} == {BIN}
    (said,) = found.log.warnings
    assert said == "paired across builds: 4 functions by base name of the file; pair=exact keeps different names apart"


def test_exact_names(files: Path) -> None:
    found = rows(pair="exact")
    assert found["main", "/build1/src/a.c", ""] == (10, 0) and found["main", "/build2/src/a.c", ""] == (0, 11)
    assert found["malloc", "malloc.c", ""] == (7, 7)
    assert warnings(pair="exact") == []


def test_coarser_and_finer(files: Path) -> None:
    assert rows(by="object") == {(BIN, "", ""): (67, 82), ("/lib/libc.so.6", "", ""): (7, 7)}
    assert rows(by="file") == {
        ("/build2/src/a.c", "/build2/src/a.c", ""): (10, 11),
        ("/build2/src/b.c", "/build2/src/b.c", ""): (40, 52),
        ("/build2/x/util.c", "/build2/x/util.c", ""): (3, 13),
        ("/build2/y/util.c", "/build2/y/util.c", ""): (14, 6),
        ("malloc.c", "malloc.c", ""): (7, 7),
    }
    assert rows(by="arc") == {("main", "/build2/src/a.c", "f"): (40, 50)}
    found = fastprof.diff("old.callgrind", "new.callgrind", by="line", n=0)
    lines = {(row.name, row.file, row.line): (row.old[0], row.new[0]) for row in found.rows}
    assert lines["f", "/build2/src/b.c", 1] == (40, 50) and lines["init", "/build2/x/util.c", 1] == (3, 4)
    assert "1 object by base name of the object" in warnings(by="object")[0]
    assert "4 files by base name of the file" in warnings(by="file")[0]


def test_the_written_difference(files: Path) -> None:
    fastprof.diff("old.callgrind", "new.callgrind", "d.callgrind")
    found = {(row.name, row.self) for row in fastprof.top("d.callgrind", n=0).rows}
    assert {("main", 1), ("f", 10), ("g", 2)} <= found and ("main", -10) not in found


def test_renamed_objects(files: Path) -> None:
    """`--mod-object` pairs objects that the rules do not."""
    for name in ("old", "new"):
        text = (files / f"{name}.callgrind").read_text()
        (files / f"{name}.callgrind").write_text(
            text.replace("bin/app-", f"bin/{name}app-").replace("/build2", "/build1")
        )
    assert rows()["main", "/build1/src/a.c", ""] in ((10, 0), (0, 11))
    found = fastprof.diff("old.callgrind", "new.callgrind", mod_object=[r"s/.*\/(old|new)app.*/app/"])
    assert {row.name: (row.old, row.new) for row in found.rows if row.object == "app"}["main"] == ((10,), (11,))
    assert not found.log.warnings


def profile(path: Path, binary: str, build_id: str, source: str, shift: int, values: dict[str, int]) -> None:
    """Samples of main > NAME."""
    p = Profile()
    p.string_table.extend(["", "samples", "count", binary, build_id, source])

    def text(one: str) -> int:
        p.string_table.append(one)
        return len(p.string_table) - 1

    p.sample_type.add(type=1, unit=2)
    p.mapping.add(id=1, memory_start=0x1000, memory_limit=0x9000, filename=3, build_id=4, has_functions=True)
    for i, name in enumerate(["main", *values], 1):
        p.function.add(id=i, name=text(name), filename=5, start_line=10 * i + shift)
        p.location.add(id=i, mapping_id=1, address=0x1000 + 16 * i + shift).line.add(function_id=i, line=10 * i + shift)
    p.location.add(id=99, mapping_id=1, address=0x1800)
    for i, value in enumerate(values.values(), 2):
        p.sample.add(location_id=[i, 1], value=[value])
    p.sample.add(location_id=[99, 1], value=[1])
    path.write_bytes(p.SerializeToString())


@pytest.mark.parametrize(
    ("binary", "build_id", "rule", "unnamed"),
    [
        ("/srv/v2/app", "b2", "base name of the object", 2),
        ("/srv/v1/app", "b2", "path of the object", 2),
        ("/elsewhere/other", "b1", None, 1),
    ],
)
def test_stacks(binary: str, build_id: str, rule: str | None, unnamed: int, tmp_path: Path) -> None:
    """Including functions whose first lines moved; addresses without names pair within one build."""
    old, new = tmp_path / "old.pb", tmp_path / "new.pb"
    profile(old, "/srv/v1/app", "b1", "a.go", 0, {"f": 5, "g": 2})
    profile(new, binary, build_id, "a.go", 3, {"g": 3, "f": 8})
    found = fastprof.diff(old, new, n=0)
    by_name = {row.name: (row.old[0], row.new[0]) for row in found.rows if row.name in "fg"}
    assert by_name == {"f": (5, 8), "g": (2, 3)}
    assert sum("+0x" in row.name for row in found.rows) == unnamed
    said = "".join(text for text in found.log.warnings if text.startswith("paired"))
    assert (rule is None and not said) or f"by {rule}" in said

    fastprof.diff(old, new, tmp_path / "d.pb")
    written = fastprof.top(tmp_path / "d.pb", n=0)
    assert {row.name: row.self for row in written.rows if row.name in "fg"} == {"f": 3, "g": 1}

    fastprof.report([old, new], tmp_path / "page.html")
    page = Page(tmp_path / "page.html")
    place = ("f", "a.go", binary)
    assert page.rows(0)[place][0] == 5 and page.rows(1)[place][0] == 8
    assert len([one for one in page.rows(0) if one[0] == "f"]) == 1


@pytest.mark.parametrize("to", ["pb", "fpa", "callgrind"])
def test_objects_are_renamed_in_every_view(to: str, tmp_path: Path) -> None:
    profile(tmp_path / "a.pb", "/srv/v1/app-1.4", "b1", "a.go", 0, {"f": 5, "g": 2})
    change = [r"s/-[0-9.]+$//", r"s/^\/srv\/v\d/$&x/"]
    fastprof.convert(tmp_path / "a.pb", tmp_path / f"b.{to}", mod_object=change)
    found = fastprof.top(tmp_path / f"b.{to}", n=0)
    assert {row.object for row in found.rows} == {"/srv/v1x/app"}
    assert {row.name: row.self for row in found.rows} == {"main": 0, "f": 5, "g": 2, "[app+0x800]": 1}
    by_object = fastprof.top(tmp_path / "a.pb", by="object", mod_object=change)
    assert [(row.object, row.self) for row in by_object.rows] == [("/srv/v1x/app", 8)]


def test_a_page_of_graphs_and_timelines(files: Path) -> None:
    fastprof.report(["old.callgrind", "new.callgrind"], "page.html")
    page = Page(files / "page.html")
    assert page.rows(0)["f", "/build2/src/b.c", BIN] == (40, 40)
    assert page.rows(1)["f", "/build2/src/b.c", BIN] == (50, 50)
    fastprof.report(["old.callgrind", "new.callgrind"], "page.html", pair="exact")
    assert ("f", "/build1/src/b.c", "/opt/demo-1.4/bin/app-1.4.2") in Page(files / "page.html").rows(0)
    with pytest.raises(UsageError, match="pair= applies to two inputs"):
        fastprof.report("old.callgrind", "page.html", pair="exact")


def test_what_one_side_lacks(tmp_path: Path) -> None:
    """Files without debug information, and profiles without objects."""
    (tmp_path / "a.callgrind").write_text(
        "events: Ir\nob=/a/app\nfl=/src/x.c\nfn=f\n1 5\nfn=g\n1 1\nfl=/src/z.c\nfn=g\n1 1\n"
    )
    (tmp_path / "b.callgrind").write_text("events: Ir\nob=/a/app\nfl=???\nfn=f\n1 6\nfn=g\n1 3\n")
    (tmp_path / "c.callgrind").write_text("events: Ir\nfl=/other/x.c\nfn=f\n1 7\n")

    def of_f(old: str, new: str) -> set[tuple[int, int]]:
        found = fastprof.diff(tmp_path / old, tmp_path / new, n=0)
        return {(row.old[0], row.new[0]) for row in found.rows if row.name == "f"}

    assert of_f("a.callgrind", "b.callgrind") == {(5, 6)}
    found = fastprof.diff(tmp_path / "a.callgrind", tmp_path / "b.callgrind", n=0)
    assert sorted((row.old[0], row.new[0]) for row in found.rows if row.name == "g") == [(0, 3), (1, 0), (1, 0)]
    assert (
        of_f("a.callgrind", "c.callgrind")
        == {(5, 7)}
        == {(one, other) for other, one in of_f("c.callgrind", "a.callgrind")}
    )


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/opt/app-1.4.2/bin/app-1.4.2", "app"),
        ("libx.so.6", "libx.so"),
        ("libx-2.31.so", "libx.so"),
        ("target/deps/demo-0f3a2b1c4d5e6f70", "demo"),
        ("app_v2", "app"),
        ("app-2.0.0-rc1 (deleted)", "app"),
        ("app-1.2-3-g3f2a9bc", "app"),
        ("python3.11", "python3"),
        ("x86-deadbeef", "x86-deadbeef"),  # a word: hashes have digits
        ("1.2", "1"),
        ("-1.2", "-1.2"),
        ("a.out", "a.out"),
    ],
)
def test_names_without_versions(path: str, expected: str) -> None:
    assert stem(path.encode()) == expected.encode()
