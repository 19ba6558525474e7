"""The tree of pages in which an archive finds its profiles, against a dict."""

from __future__ import annotations

import math
import random
from pathlib import Path

import pytest

from fastprof.core.source import Source
from fastprof.formats.archive import tree as archive_tree
from fastprof.formats.archive.index import Archive
from fastprof.formats.archive.sections import Codec, Member
from fastprof.formats.archive.tree import EMPTY, LEAST, NBYTES, Page, Tree
from fastprof.store import adding, compact, listing
from tests.support.archives import graph, write_archive


class File:
    """Pages by offset, and how many were read."""

    def __init__(self) -> None:
        self.pages: dict[int, Page] = {}
        self.n_read = 0

    def read(self, offset: int) -> Page:
        self.n_read += 1
        return self.pages[offset]

    def write(self, page: Page) -> int:
        assert page.names and list(page.names) == sorted(page.names)
        assert len(page.names) == 1 or len(page.names) <= LEAST or archive_tree._nbytes(page) < 2 * NBYTES
        offset = 16 + len(self.pages)
        self.pages[offset] = Page.of(page.plain(), offset, 1000)
        return offset


def all_of(root: Page, file: File) -> dict[str, tuple[int, bytes]]:
    return {name: (number, entry) for number, name, entry, _ in Tree(root, file.read).below()}


@pytest.mark.parametrize("longest", [10, 5000])
def test_it_holds_what_a_dict_holds(longest: int) -> None:
    rnd, file, root = random.Random(longest), File(), EMPTY
    want: dict[str, tuple[int, bytes]] = {}
    for step in range(120):
        changes: dict[str, tuple[int, bytes] | None] = {}
        for _ in range(rnd.choice([1, 1, 3, 40, 400 if step % 10 == 0 else 2])):
            name = f"{rnd.randrange(3000):04}" + "ä\udc80x"[rnd.randrange(3)] * (rnd.randrange(longest) // 4)
            changes[name] = (rnd.randrange(1 << 31), rnd.randbytes(rnd.randrange(300)))
        if step % 3 == 2 and want:
            changes |= dict.fromkeys(rnd.sample(sorted(want), len(want) * rnd.randrange(4) // 4))
        root = Tree(root, file.read).changed(changes, file.write)
        for name, one in changes.items():
            if one is None:
                want.pop(name, None)
            else:
                want[name] = one
        tree = Tree(root, file.read)
        for name in rnd.sample(sorted(want), min(5, len(want))):
            assert (found := tree.find(name)) and found[:2] == want[name] and tree.find(name + "!") is None
            assert next(tree.below(name))[1] == name
        assert tree.find("") is None and tree.find("\uffff") is None
    assert list(all_of(root, file)) == sorted(want) and all_of(root, file) == want
    first = sorted(want)[len(want) // 2][:-1]
    assert [name for _, name, *_ in tree.below(first)] == [name for name in sorted(want) if name >= first]
    root = Tree(root, file.read).changed(dict.fromkeys(want), file.write)
    assert root == EMPTY and root.height == 0


def test_a_change_of_one_profile_costs_the_same_among_many() -> None:
    costs = {}
    for n in (100, 10_000, 100_000):
        file = File()
        root = Tree(EMPTY, file.read).changed({f"{i:07}": (i, b"e" * 100) for i in range(n)}, file.write)
        before = len(file.pages)
        file.n_read = 0
        tree = Tree(root, file.read)
        assert (found := tree.find(f"{n // 2:07}")) and found[:2] == (n // 2, b"e" * 100)
        root = tree.changed({f"{n // 2:07}": None, f"{n // 3:07}x": (n, b"")}, file.write)
        costs[n] = file.n_read + len(file.pages) - before
        assert root.height <= math.log(n, 50)
    assert costs[100_000] <= 16


def test_pages_stay_full_after_removals() -> None:
    file = File()
    root = Tree(EMPTY, file.read).changed({f"{i:07}": (i, b"e" * 100) for i in range(20_000)}, file.write)
    for last in "1234567890"[:9]:
        root = Tree(root, file.read).changed({f"{i:07}": None for i in range(int(last), 20_000, 10)}, file.write)
    file.n_read = 0
    assert len(all_of(root, file)) == 2000
    assert file.n_read < 4 * 2000 * 115 / NBYTES


@pytest.mark.parametrize("wrong", ["twice", "swapped", "height", "circle"])
def test_pages_that_are_not_below_the_page_above_them(wrong: str) -> None:
    """Hostile pages: each would be read for each parent."""
    file = File()
    low, high = (file.write(Page(0, [a, a + "z"], [1, 2], [b"", b""])) for a in "ab")
    names, offsets = ["a", "b"], {"twice": [low, low], "swapped": [high, low]}.get(wrong, [low, high])
    root = Page(1 if wrong in ("twice", "swapped") else 2, names, offsets, ())
    if wrong == "circle":
        file.pages[99] = Page(1, names, [99, 99], ())
        root = Page(2, names, [99, 99], ())
    with pytest.raises(ValueError, match="a page is not the one that the page above it describes"):
        all_of(root, file)
    file.pages[7] = Page(0, ["a", "c"], [1, 2], [b"", b""])
    with pytest.raises(ValueError, match="names of pages do not ascend"):
        all_of(Page(1, ["a", "b"], [7, high], ()), file)


def test_few_pages_are_read_for_one_of_many_profiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a file, with patterns; 3,000 profiles are copies of one."""
    path = str(tmp_path / "s.fpa")
    data, _ = write_archive(graph, rows=3)
    with adding.adding(path) as session:
        session.add(data, "0000/0")
        one = session._changes["0000/0"]
        assert one is not None
        for i in range(1, 3000):
            copy = copy_of(one, i, f"{i // 10:04}/{i}")
            session._changes[copy.name] = copy
        session._next = 3000
    read: list[int] = []
    page = Archive._page

    def counted(self: Archive, source: Source, codec: Codec, offset: int) -> Page:
        read.append(offset)
        return page(self, source, codec, offset)

    monkeypatch.setattr(Archive, "_page", counted)
    assert listing.names(path, ["0123/*"]) == [f"0123/{i}" for i in range(1230, 1240)]
    assert len(read) <= 3
    with pytest.raises(Exception, match=r"no profile '0123', only 0123/1230, .*0123/1237 and 2,992 more"):
        listing.names(path, ["0123"])
    read.clear()
    assert compact.remove(path, ["0123/1234"]) == ["0123/1234"]
    assert len(read) <= 6
    assert len(listing.names(path)) == 2999


def copy_of(one: Member, number: int, name: str) -> Member:
    copy = Member(number, name, one.view)
    copy.sections, copy.chunks, copy.about, copy.summary = one.sections, one.chunks, one.about, one.summary
    return copy
