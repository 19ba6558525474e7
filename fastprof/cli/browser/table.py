"""Functions with their costs, and the callers and callees of one."""

from collections.abc import Callable, Sequence

from fastprof.cli.browser.figures import Figures
from fastprof.cli.browser.lines import DIM, Lines, Part, padded, shown
from fastprof.core.function_names import Place
from fastprof.core.messages import counted
from fastprof.verbs.browse import PRUNED, Call, Row, change_of

ORDERS = ("self", "inclusive", "calls", "name")
_CALLS = 9  # columns
_NAME = 16  # of a name, before the number of its calls is shown


def _basename(path: str) -> str:
    return path[path.rfind("/") + 1 :]


class FunctionTable(Lines):
    def __init__(self, *, id: str) -> None:
        super().__init__(self._parts, id=id)
        self.all: list[Row] = []
        self.rows: list[Row] = []
        self.order = ORDERS[0]
        self.is_match: Callable[[Place], bool] | None = None

    def begin(self, rows: list[Row], figures: Figures) -> None:
        self.all, self.figures = rows, figures
        none: list[int] = []
        own = [cost for row in rows for cost in row.self]
        figures.fit([own, [cost for row in rows for cost in row.inclusive or none]])
        self.list_rows()

    def list_rows(self) -> None:
        """Sort and filter again; the cursor stays at its function."""
        chosen = self.rows[self.cursor].place if self.rows else None
        self.rows = [row for row in self.all if not self.is_match or self.is_match(row.place)]
        keys: dict[str, Callable[[Row], tuple[int, Place]]] = {
            "self": lambda row: (-abs(change_of(row.self)), row.place),
            "inclusive": lambda row: (-abs(change_of(row.inclusive or row.self)), row.place),
            "calls": lambda row: (-(row.calls or 0), row.place),
            "name": lambda row: (0, row.place),
        }
        self.rows.sort(key=keys[self.order])
        self.show(len(self.rows), self.index(chosen) if chosen else 0)

    def index(self, place: Place) -> int:
        """The line of a function; 0 if it has none."""
        return next((i for i, row in enumerate(self.rows) if row.place == place), 0)

    def head(self) -> str:
        return f"{self.figures.head()} {padded('calls', _CALLS)} function"

    def _parts(self, at: int, width: int) -> Sequence[Part]:
        row = self.rows[at]
        calls = f"{row.calls:,}" if row.calls else ""
        room = width - self.figures.width - _CALLS - 1
        name = shown(row.place.name, room)
        where = " · ".join(filter(None, (_basename(row.place.file), _basename(row.place.object))))
        left = room - len(name) - 2
        empty = (0,) * len(row.self)
        return [
            *self.figures.parts(row.self, row.inclusive or empty),
            (padded(calls, _CALLS) + " ", DIM),
            (name, ""),
            ("  " + shown(where, left) if where and left > 8 else "", DIM),
        ]


class CallList(Lines):
    """The callers or the callees of a function."""

    def __init__(self, *, id: str) -> None:
        super().__init__(self._parts, id=id)
        self.calls: list[Call] = []

    def begin(self, calls: list[Call], figures: Figures) -> None:
        self.calls, self.figures = calls, figures
        figures.fit([[cost for call in calls for cost in call.costs]])
        self.show(len(calls), 0)

    def _parts(self, at: int, width: int) -> Sequence[Part]:
        call = self.calls[at]
        name = call.place.name if call.place else PRUNED
        counts = f"  {counted(call.calls, 'call')}" if call.calls else ""
        room = width - self.figures.width
        if room - len(counts) < min(_NAME, len(name)):
            counts = ""
        return [*self.figures.parts(call.costs), (shown(name, room - len(counts)), ""), (counts, DIM)]
