"""Results of `annotate`: source files or functions, with the costs of each line or instruction."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence

from fastprof.core._typing import Any, NamedTuple
from fastprof.core.log import Log
from fastprof.core.model import ValueType
from fastprof.core.unknown_names import known, text_of


class Call(NamedTuple):
    """The calls of a function from one place."""

    times: int | None  # None: not counted
    function: str
    file: str  # "": unknown
    object: str
    values: list[int]  # the inclusive costs, one for each value type


class Line(NamedTuple):
    """A line of a source file.  `values` are its self costs, None if it has none."""

    number: int  # 0: costs in the file at an unknown line
    text: str | None  # None: the file has no such line
    values: list[int] | None = None
    calls: Sequence[Call] = ()


class Instruction(NamedTuple):
    """An instruction.  `values` are its self costs, None if it has none."""

    address: int  # link-time; 0: costs in the function at an unknown address
    text: str | None  # None: not disassembled
    values: list[int] | None = None
    calls: Sequence[Call] = ()
    file: str = ""  # its source file, if it has costs or calls
    line: int = 0


class Listing:
    """A source file, or with `asm` a function.

    `name` and `file` are those in the profile, `path` is the source file or the program that was found, `values` are
    the self costs.  `blocks()` are the lines (`Line` or `Instruction`), in runs without a gap.
    """

    def __init__(
        self,
        name: str,
        file: str,
        path: str,
        values: list[int],
        blocks: Callable[[], Iterator[list[Line] | list[Instruction]]],
    ) -> None:
        self.name, self.file, self.path, self.values, self.blocks = name, file, path, values, blocks

    def __repr__(self) -> str:
        return f"Listing({self.name!r}, path={self.path!r}, values={self.values!r})"


class Missing(NamedTuple):
    """A source file or function whose file was not found."""

    name: str
    reason: str
    values: list[int]  # the self costs


class Annotation:
    """`listings`: the files shown, sorted by value type number `value`, largest first.  `totals`: the self costs of the
    whole profile.  `shares`: these costs split into those shown and those not, by reason."""

    def __init__(self, value_types: list[ValueType], value: int, log: Log) -> None:
        self.value_types, self.value, self.log = value_types, value, log
        self.totals = [0] * len(value_types)
        self.listings: list[Listing] = []
        self.missing: list[Missing] = []
        self.shares: dict[str, list[int]] = {}

    def columns(self) -> dict[str, list[Any]]:
        """The lines and instructions shown as columns, for data frames; of a line without costs, values are None."""
        lines = [(one, line) for one in self.listings for block in one.blocks() for line in block]
        found: dict[str, list[Any]] = {
            "name": [one.name for one, _ in lines],
            "path": [one.path for one, _ in lines],
            "line": [line.number if isinstance(line, Line) else line.line for _, line in lines],
            "address": [None if isinstance(line, Line) else line.address for _, line in lines],
            "text": [line.text for _, line in lines],
        }
        for k, value in enumerate(self.value_types):
            found[value.name] = [line.values[k] if line.values else None for _, line in lines]
        return found

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """`columns()` for readers of Arrow streams, with units."""
        from fastprof.core.arrow_column import stream_of

        return stream_of(self.columns(), {value.name: value.unit for value in self.value_types})

    def __str__(self) -> str:
        """The tables of `fastprof annotate`."""
        from fastprof.core.printed import printed

        return printed("cli.annotate:text", self)

    def _repr_html_(self) -> str:
        from fastprof.core.html import notes, table

        found = {name: cells for name, cells in self.columns().items() if any(cell is not None for cell in cells)}
        units = {value.name: f"{value.name} {value.unit}".strip() for value in self.value_types}
        totals = ", ".join(f"{n:,} {units[one.name]}" for n, one in zip(self.totals, self.value_types, strict=True))
        rows = zip(*found.values(), strict=True)
        return table([units.get(name, name) for name in found], rows, totals) + notes(self.log)

    def add(self, share: str, values: list[int]) -> None:
        add(self.totals, values)
        add(self.shares.setdefault(share, [0] * len(values)), values)


class Costs:
    """The costs of one place, and its calls."""

    def __init__(self) -> None:
        self.values: list[int] | None = None
        self.file = self.line = 0  # its position; file: a string id
        self._calls: dict[tuple[bytes, bytes, bytes], tuple[int, list[int]]] = {}

    def spend(self, values: list[int]) -> None:
        if self.values is None:
            self.values = [0] * len(values)
        add(self.values, values)

    def call(self, function: tuple[bytes, bytes, bytes], times: int, values: list[int]) -> None:
        """`function`: name, file, object."""
        before, sums = self._calls.get(function, (0, [0] * len(values)))
        add(sums, values)
        self._calls[function] = before + times, sums

    def take(self, other: Costs) -> None:
        if other.values is not None:
            self.spend(other.values)
        for function, (times, values) in other._calls.items():
            self.call(function, times, values)
        self.file, self.line = other.file, other.line

    def calls(self, value: int, most: int) -> list[Call]:
        """The calls, sorted by value type number `value`, most expensive first, then by name.  `most` > 0: at most this
        many, followed by the sum of the others."""
        found = []
        for names, (times, values) in self._calls.items():
            function, file, object_ = names
            found.append(Call(times or None, text_of(function), known(file), known(object_), values))
        found.sort(key=lambda call: (-abs(call.values[value]) if call.values else 0, call[1:4]))
        if not 0 < most < len(found):
            return found
        rest = found[most - 1 :]
        sums = [sum(column) for column in zip(*(call.values for call in rest), strict=True)]
        times = sum(call.times or 0 for call in rest)
        return [*found[: most - 1], Call(times or None, f"[{len(rest):,} other functions]", "", "", sums)]


def add(sums: list[int], values: list[int]) -> None:
    sums[:] = map(int.__add__, sums, values)


def around(lines: Iterable[Any], context: int) -> Iterator[list[Any]]:
    """The lines (or instructions) with costs or calls and `context` before and after each, in runs without a gap."""
    run: list[Any] = []
    before: deque[Any] = deque(maxlen=context)
    after, gap = 0, False  # lines still to show; was a line skipped since the run's last one?
    for line in lines:
        if line.values is not None or line.calls:
            if run and gap:
                yield run
                run = []
            run += [*before, line]
            before.clear()
            after, gap = context, False
        elif after:
            run.append(line)
            after -= 1
        else:
            gap = gap or len(before) == context
            before.append(line)
    if run:
        yield run
