"""Figures and tables for people: grouped digits, scaled units, colour by share, as wide as the terminal.

    screen = Screen.of(sys.stdout)
    cost = Scale.of(largest=5_184_323_000, unit="nanoseconds")
    rows = [("self %", cost.title("self"), "function"), (percent(41, 100), cost(2_125_572_000), "work")]
    print_table(rows, right=(0, 1), narrow=(2,), shares=(None, 0.41), screen=screen)

    self %  self s  function
      41.0    2.13  work

Rows are printed in the given order.  A pipe gets the same text without colours; rankings are 120 columns wide there.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from io import StringIO
from itertools import count, islice

from fastprof.core import lazy_re as re
from fastprof.core._typing import IO, Any, NamedTuple
from fastprof.core.elided import elided, shortened
from fastprof.core.errors import printable

_COLOURS = ((0.10, "1;31"), (0.01, "33"))  # from this share of the total up: bold red, yellow
# Minimum widths of `narrow` columns on a small terminal: all but the last; the last; the last if nothing else helps.
_NARROW, _NARROW_LAST, _NARROWEST = 12, 24, 16
IN_A_PIPE = 120  # columns of a ranking that is not printed to a terminal
# Compiled on first use, to keep the start fast.
_SPECIAL = r"[\\`*_\[\]<>|&~#]"  # in Markdown
_BLOCK = 500  # rows of a long table that are printed together
_WIDEST = 1000  # A longer cell overflows its column: a name of a megabyte must not widen every row.


def wants_json(words: Sequence[str]) -> bool:
    """Whether a command line asks for errors as JSON."""
    return "--json" in words[: words.index("--")] if "--" in words else "--json" in words


def print_raw(text: str) -> None:
    """Print text on standard error unchanged.  A message that cannot be written must not fail the command."""
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except OSError:
        sys.stderr = open(os.devnull, "w")  # at exit Python would try to write the rest of the buffer, and fail


def terminal_width(fd: int = 1) -> int | None:
    """The width from COLUMNS, or of the terminal on standard output or another file; None if there is none."""
    try:
        columns = int(os.environ.get("COLUMNS") or 0) or os.get_terminal_size(fd).columns
    except (OSError, ValueError):
        return None
    return columns if columns > 0 else None


class Screen(NamedTuple):
    """The destination of text.  The default is a pipe or a file: no width limit, no colour."""

    width: int | None = None
    colour: bool = False
    markdown: bool = False  # Markdown tables
    file: Any = None  # instead of standard output

    @staticmethod
    def of(stream: IO[str]) -> Screen:
        """The screen of a stream.  A terminal has a width, and colours unless NO_COLOR is set (https://no-color.org) or
        it is `dumb`."""
        if not stream.isatty():
            return Screen()
        return Screen(terminal_width() or 80, not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb")

    @staticmethod
    def from_options(width: int | None, colour: str, *, markdown: bool = False) -> Screen:
        """The screen for --width (0: no limit; None: the terminal's, else COLUMNS, else IN_A_PIPE) and --color, or for
        --markdown."""
        if markdown:
            return Screen(markdown=True)
        here = Screen.of(sys.stdout)
        if width is None:
            width = here.width or terminal_width(fd=-1) or IN_A_PIPE
        return Screen(width or None, here.colour if colour == "auto" else colour == "always")

    def print(self, text: str = "", end: str = "\n") -> None:
        print(text, end=end, file=self.file)

    def paint(self, text: str, share: float | None) -> str:
        """Colour `text` by its share of the total, which may be negative."""
        if self.colour and share is not None:
            for least, code in _COLOURS:
                if abs(share) >= least:
                    return f"\x1b[{code}m{text}\x1b[0m"
        return text


PIPE = Screen()


def utc(ns: int) -> str:
    """ "2026-11-22 05:54:00.003 UTC"; nanoseconds since 1970 beyond the year 9999 stay a number."""
    import time

    try:
        moment = time.gmtime(ns // 10**9)
    except (OverflowError, ValueError, OSError):
        return f"{ns:,} ns"
    if moment.tm_year > 9999:
        return f"{ns:,} ns"
    return f"{time.strftime('%Y-%m-%d %H:%M:%S', moment)}.{ns // 10**6 % 1000:03d} UTC"


def percent(value: float, total: float = 1) -> str:
    """ "12.3"; "-" for no share."""
    return f"{100 * value / total:.1f}" if total else "-"


def cut(text: str, width: int) -> str:
    """`text` cut to `width`: it loses its arguments, then template arguments, then its middle.

    "f(...)"    "std::vector<...>::push_back"    "inflate_s...tables"
    """
    text = shortened(text, width, _wide)
    if _wide(text) <= width:
        return text
    head = text[: _fitting(text, (width - 2) // 2)]
    tail = text[len(text) - _fitting(reversed(text), (width - 3) // 2) :]
    return f"{head}...{tail}"


def short_names(names: Sequence[str]) -> list[str]:
    """C++ names with arguments and template arguments elided, unless two names would become equal.

    short_names(["void std::sort<int*>(int*, int*)", "f(int)", "f(long)"])
    ["void std::sort<...>(...)", "f(int)", "f(long)"]
    """
    bare = {name: elided(elided(name, "(", -1), "<", -1) for name in names}
    taken = Counter(bare.values())
    return [elided(elided(name, "("), "<") if taken[bare[name]] == 1 else name for name in names]


def shortened_by(names: Iterable[str]) -> dict[str, str]:
    """The short form of each of these names, see short_names."""
    distinct = [*dict.fromkeys(names)]
    return dict(zip(distinct, short_names(distinct), strict=True))


def text_of(print_to: Callable[[Screen], None]) -> str:
    """What is printed to a screen as wide as a pipe's."""
    file = StringIO()
    print_to(Screen(IN_A_PIPE, file=file))
    return file.getvalue().rstrip("\n")


def first_line(line: str, others: Sequence[str], screen: Screen) -> str:
    """The line with `others`, other value types that --value shows, as many as the screen has room for."""
    whole = printable(line)
    for n in range(len(others), 0, -1):
        *first, last = others[:n] if n == len(others) else [*others[:n], f"{len(others) - n:,} more"]
        whole = printable(f"{line}; --value shows {' or '.join(filter(None, (', '.join(first), last)))}")
        if screen.width is None or len(whole) <= screen.width:
            break
    return whole


def print_rest(n: int, screen: Screen, note: str = "") -> None:
    """The line below a table that lacks `n` rows."""
    if n:
        screen.print(end="\n" * screen.markdown)
        screen.print(f"... {n:,} more{note}")


def _fitting(text: Iterable[str], width: int) -> int:
    """The number of leading characters that fit `width`."""
    n = 0
    for n, character in enumerate(text):
        width -= _wide(character)
        if width < 0:
            return n
    return n + 1


def print_table(
    rows: Iterable[Sequence[object]],
    right: Sequence[int] = (),
    *,
    narrow: Sequence[int] = (),
    optional: Sequence[int] = (),
    shares: Sequence[float | None] = (),
    screen: Screen = PIPE,
) -> None:
    """Print a table.  Columns are as wide as their longest cells, those in `right` right-aligned; numbers have commas.

    If the table is wider than the screen, `optional` columns that are the same in all rows are dropped first.  Then
    cells of `narrow` columns are shortened in the middle, the widest column first; the last of them keeps most.  Then
    the other `optional` columns are dropped one by one until the rest fits.
    A row is coloured by its share in `shares`, which may be shorter than `rows`.
    """
    cells = [[_shown(cell) for cell in row] for row in rows]
    if screen.markdown:
        _print_markdown(cells, right)
        return
    widths = [min(max(map(_wide, column)), _WIDEST) for column in zip(*cells, strict=True)]
    shown = dict(enumerate(widths))
    if screen.width is not None:
        same = [i for i in optional if len(cells) > 2 and len({row[i] for row in cells[1:]} - {""}) < 2]
        while same and _missing(shown, screen.width) > 0:
            del shown[same.pop(0)]
        shown = _fit(shown, narrow, [i for i in optional if i in shown], screen.width)
    lines = []
    for number, row in enumerate(cells):
        texts = ((row[i] if screen.width is None else cut(row[i], width), width, i) for i, width in shown.items())
        share = shares[number] if number < len(shares) else None
        lines.append(screen.paint(_aligned(texts, right), share) + "\n")
    screen.print("".join(lines), end="")


def print_long_table(rows: Iterable[Sequence[object]], right: Sequence[int] = ()) -> None:
    """Print a table of any length in constant memory, a block at a time: columns only get wider."""
    rows, widths = iter(rows), list[int]()
    while block := [[_shown(cell) for cell in row] for row in islice(rows, _BLOCK)]:
        found = [min(max(map(_wide, column)), _WIDEST) for column in zip(*block, strict=True)]
        widths = [*map(max, found, widths or found)]
        sys.stdout.write("".join(_aligned(zip(row, widths, count(), strict=False), right) + "\n" for row in block))
        sys.stdout.flush()


def _aligned(cells: Iterable[tuple[str, int, int]], right: Sequence[int]) -> str:
    """Cells side by side, each with its width and the number of its column."""
    padded = ((text, " " * (width - _wide(text)), i in right) for text, width, i in cells)
    return "  ".join(blanks + text if is_right else text + blanks for text, blanks, is_right in padded).rstrip()


def _print_markdown(cells: list[list[str]], right: Sequence[int]) -> None:
    """Print a GitHub Markdown table; the first row is its head."""
    rules = ["---:" if i in right else "---" for i in range(len(cells[0]))]
    for row in (cells[0], rules, *cells[1:]):
        texts = row if row is rules else map(markdown_text, row)
        sys.stdout.write(f"| {' | '.join(texts)} |\n")


def markdown_text(text: str) -> str:
    """Text that Markdown shows as it is."""
    return re.sub(_SPECIAL, r"\\\g<0>", text)


def print_csv(rows: Iterable[Sequence[object]]) -> None:
    """Print CSV; None is an empty cell.  Control characters are escaped on a terminal, unchanged elsewhere."""
    import csv

    table = csv.writer(sys.stdout, lineterminator="\n")
    if sys.stdout.isatty():
        rows = (["" if cell is None else printable(str(cell)) for cell in row] for row in rows)
    table.writerows(rows)


def _fit(left: dict[int, int], narrow: Sequence[int], optional: Sequence[int], screen: int) -> dict[int, int]:
    """The shown columns and their widths: columns in `narrow` shrink until the table fits."""
    left = dict(left)
    least = dict.fromkeys(narrow, _NARROW) | dict.fromkeys(narrow[-1:], _NARROW_LAST)
    for column in optional:
        if _missing(_shrunk(left, least, screen), screen) <= 0:
            break
        del left[column]
    fitted = _shrunk(left, least, screen)
    if _missing(fitted, screen) <= 0:
        return fitted
    return _shrunk(left, least | dict.fromkeys(narrow[-1:], _NARROWEST), screen)


def _shrunk(widths: dict[int, int], least: dict[int, int], screen: int) -> dict[int, int]:
    """Shrink the widest columns, down to `least`, until the table fits."""
    widths = dict(widths)
    for _ in range(_missing(widths, screen)):
        wide = [column for column, width in widths.items() if width > least.get(column, width)]
        if not wide:
            break
        widths[max(wide, key=widths.__getitem__)] -= 1
    return widths


def _missing(widths: dict[int, int], screen: int) -> int:
    """The number of columns by which a table exceeds the screen."""
    return sum(widths.values()) + 2 * (len(widths) - 1) - screen


def _wide(text: str) -> int:
    """The width of `text` on a terminal: an ideograph takes two columns, a combining mark none."""
    if text.isascii():
        return len(text)
    import unicodedata

    return sum(0 if unicodedata.combining(c) else 1 + (unicodedata.east_asian_width(c) in "WF") for c in text)


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.6f}"
    return printable(str(value))
