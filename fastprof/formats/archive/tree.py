"""The index of an archive: a tree of pages, ordered by the names of profiles.

    INDEX            height 1: "a" "m"              names of the first profiles below
                       /          \\
    PAGE   height 0: "a" "c" "k"   "m" "p"          entries of profiles

A change writes the pages from the root to the changed entries anew, after the old ones, so a reader of the old root
sees the old contents.  docs/formats/archive.md describes the bytes.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice, pairwise, repeat
from operator import ge

from fastprof.core._typing import Any, NamedTuple
from fastprof.core.schema import fits
from fastprof.formats.archive.sections import MAX_NUMBER

NBYTES = 8192  # about the bytes of a page before it is compressed; a page has an entry or more
LEAST = 4  # children of each part of a divided page above others: a level has at most a quarter of the pages below
MAX_HEIGHT = 32
_SHAPE = [int, [str], [int], [bytes]]


class Page(NamedTuple):
    """Height 0: names, numbers and entries of profiles.  Above: first names and offsets of pages, and no entries."""

    height: int
    names: Sequence[str]
    numbers: Sequence[int]
    entries: Sequence[bytes]
    stored: int = 1 << 40  # bytes in the file, which bound the memory of decoded entries; a new page is not in the file

    def part(self, begin: int, end: int | None = None) -> Page:
        names, numbers, entries = self.names[begin:end], self.numbers[begin:end], self.entries[begin:end]
        return Page(self.height, names, numbers, entries, self.stored)

    def plain(self) -> list[Any]:
        return [self.height, [*self.names], [*self.numbers], [*self.entries]]

    @staticmethod
    def of(plain: Any, offset: int, stored: int) -> Page:
        """The page at `offset`, after the pages below it.  Errors: ValueError."""
        if not fits(plain, _SHAPE):
            raise ValueError("a page is not a height, names, numbers and entries")
        page = Page(*plain)._replace(stored=stored)
        if not 0 <= page.height <= MAX_HEIGHT:
            raise ValueError(f"a page has height {page.height}")
        n = len(page.names)
        if len(page.numbers) != n or len(page.entries) != (0 if page.height else n):
            raise ValueError("names, numbers and entries of a page differ in length")
        if page.height and not n:
            raise ValueError("a page above others is empty")
        if any(map(ge, page.names, islice(page.names, 1, None))):
            raise ValueError("names of a page do not ascend")
        limit = offset if page.height else MAX_NUMBER
        if n and (min(page.numbers) < 0 or max(page.numbers) >= limit):
            wrong = next(number for number in page.numbers if not 0 <= number < limit)
            what = f"a page refers to byte {wrong}" if page.height else f"profile number is {wrong}"
            raise ValueError(f"{what}, expected 0 to {limit - 1}")
        return page


EMPTY = Page(0, (), (), ())
Read = Callable[[int], Page]  # the page at an offset


class Tree:
    """The profiles below a page.  Errors of all methods: ValueError, and those of `read`."""

    def __init__(self, root: Page, read: Read) -> None:
        self.root, self._read = root, read

    def find(self, name: str) -> tuple[int, bytes, int] | None:
        """Number and entry of a profile, and the stored bytes of their page."""
        page: Page | None = self.root
        while page and page.height:
            i = bisect_right(page.names, name) - 1
            page = self._child(page, i) if i >= 0 else None
        if page is None:
            return None
        i = bisect_left(page.names, name)
        return (page.numbers[i], page.entries[i], page.stored) if [*page.names[i : i + 1]] == [name] else None

    def below(self, first: str = "") -> Iterator[tuple[int, str, bytes, int]]:
        """Number, name and entry of each profile from a name on, by name, and the stored bytes of their page."""
        last: str | None = None
        for page in self._leaves(self.root, first):
            begin = bisect_left(page.names, first)
            if last is not None and page.names[0] <= last:
                raise ValueError("names of pages do not ascend")
            columns = page.numbers, page.names, page.entries
            n = len(page.names) - begin
            yield from zip(*(islice(one, begin, None) for one in columns), repeat(page.stored, n), strict=True)
            last = page.names[-1] if page.names else last

    def _leaves(self, page: Page, first: str) -> Iterator[Page]:
        if not page.height:
            yield page
            return
        for i in range(max(0, bisect_right(page.names, first) - 1), len(page.names)):
            yield from self._leaves(self._child(page, i), first)

    def _child(self, page: Page, i: int) -> Page:
        return self._checked(page.height - 1, page.names[i], page.numbers[i])

    def _checked(self, height: int, name: str, offset: int) -> Page:
        child = self._read(offset)
        # Pages of several parents, which would be read for each, fail by their names.
        if child.height != height or [*child.names[:1]] != [name]:
            raise ValueError("a page is not the one that the page above it describes")
        return child

    def changed(self, changes: dict[str, tuple[int, bytes] | None], write: Callable[[Page], int]) -> Page:
        """The root after changes: number and entry of each new profile, None to remove it.

        `write` takes the other pages, below before above, and returns their offsets.
        """
        ordered = sorted(changes.items())
        pages = self._put(self.root, ordered, write) if ordered else [self.root]
        while len(pages) > 1:
            pages = _divided(_above(pages[0].height + 1, pages, write))
        root = pages[0] if pages else EMPTY
        while root.height and len(root.names) == 1:
            root = self._child(root, 0)
        return root

    def _put(
        self, page: Page, changes: list[tuple[str, tuple[int, bytes] | None]], write: Callable[[Page], int]
    ) -> list[Page]:
        """The pages, none or more, that replace a page."""
        if not page.height:
            entries: dict[str, tuple[int, bytes] | None] = dict(
                zip(page.names, zip(page.numbers, page.entries, strict=True), strict=True)
            )
            entries.update(changes)
            left = sorted((name, *entry) for name, entry in entries.items() if entry is not None)
            if not left:
                return []
            leaf_names, numbers, leaf_entries = zip(*left, strict=True)
            return _divided(Page(0, leaf_names, numbers, leaf_entries))
        names = [name for name, _ in changes]
        bounds = [0, *(bisect_left(names, name) for name in page.names[1:]), len(names)]
        below: list[Page | tuple[str, int]] = []
        for i, (begin, end) in enumerate(pairwise(bounds)):
            if begin == end:
                below.append((page.names[i], page.numbers[i]))
            else:
                below += self._put(self._child(page, i), changes[begin:end], write)
        return _divided(_above(page.height, self._joined(page.height - 1, below), write)) if below else []

    def _joined(self, height: int, pages: list[Page | tuple[str, int]]) -> Iterator[Page | tuple[str, int]]:
        """Pages, with small new ones made one with the next: otherwise most are nearly empty after many removals."""
        before: Page | tuple[str, int] | None = None
        for page in pages:
            if before is None:
                before = page
                continue
            if any(isinstance(one, Page) and _nbytes(one) < NBYTES // 4 for one in (before, page)):
                both = (one if isinstance(one, Page) else self._checked(height, *one) for one in (before, page))
                first, second = both
                names, numbers = [*first.names, *second.names], [*first.numbers, *second.numbers]
                *done, before = _divided(Page(first.height, names, numbers, [*first.entries, *second.entries]))
                yield from done
            else:
                yield before
                before = page
        if before is not None:
            yield before


def _above(height: int, pages: Iterable[Page | tuple[str, int]], write: Callable[[Page], int]) -> Page:
    """The page above these."""
    below = [(page.names[0], write(page)) if isinstance(page, Page) else page for page in pages]
    return Page(height, [name for name, _ in below], [offset for _, offset in below], ())


def _costs(page: Page) -> list[int]:
    entries = page.entries or [b""] * len(page.names)
    return [len(name) + len(entry) + 8 for name, entry in zip(page.names, entries, strict=True)]


def _nbytes(page: Page) -> int:
    return sum(_costs(page))


def _divided(page: Page) -> list[Page]:
    """A page as pages of similar size."""
    costs = _costs(page)
    wanted = sum(costs) / (sum(costs) // NBYTES + 1)
    made, begin, size, least = [], 0, 0, LEAST if page.height else 1
    for i, cost in enumerate(costs):
        if begin + least <= i and size + cost / 2 > wanted and len(costs) - i >= least:
            made.append(page.part(begin, i))
            begin, size = i, 0
        size += cost
    return [*made, page.part(begin)]
