"""How much of a profile's cost named programs explain: for `info --symbols`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from fastprof.core._c import ffi, lib
from fastprof.core._typing import TYPE_CHECKING, Any
from fastprof.core.c_memory import owned, rows_of
from fastprof.core.errors import check_sums
from fastprof.core.options import Options
from fastprof.core.unknown_names import UNKNOWN_BYTES
from fastprof.symbols.binaries import Binaries, mapping_of
from fastprof.symbols.builds import builds
from fastprof.symbols.objects import ElfObject

if TYPE_CHECKING:
    from fastprof.core.model import Batch, Model

_AT_ONCE = 4096


class Coverage:
    """Costs by address of the instruction (of stacks: the leaf), and what programs say about it; rows of a graph
    without addresses have the names of the profile itself.  The cost is that of the first value type.

    Memory: linear in distinct addresses or lines.
    """

    def __init__(self, model: Model, options: Options) -> None:
        self._model, self._binaries = model, Binaries(model, options)
        self._counts = owned(lib.fp_counts_new(model.c), "costs by address")
        self._is_graph = False
        self._total = 0
        self._named = [0, 0]  # costs with a function, with a line
        self._objects: Counter[int] = Counter()

    def seen(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        """Yield `batches`, adding up their costs.  Errors: FastprofError for a sum beyond 63 bits."""
        err = ffi.new("struct fp_err *")
        for batch in batches:
            self._is_graph = batch.view == "graph"
            check_sums(lib.fp_counts_put(self._counts, batch.c, err), err, self._model, "costs by address")
            yield batch

    def facts(self) -> dict[str, Any]:
        """Shares of the cost, and programs that are other builds.  {}: nothing has a cost."""
        self._total += self._counts.cost_without
        self._add_lines()
        for elf, costs in self._by_program().items():
            self._look_up(elf, costs)
        if not self._total:
            return {}
        shares = [round(one / self._total, 4) for one in self._named]
        facts: dict[str, Any] = {"coverage": dict(zip(("functions", "lines"), shares, strict=True))}
        found = builds(self._model, self._binaries, self._objects)
        return facts | {k: v for k, v in (("stale_programs", found.stale), ("mixed_builds", found.mixed)) if v}

    def _add_lines(self) -> None:
        counts = self._counts
        for row, (function, _, line) in rows_of(counts.lines):
            cost = counts.line_counts[row]
            name = self._model.string(self._model.row("functions", function)[2])
            self._add(cost, name not in UNKNOWN_BYTES, bool(line))
            self._objects[self._model.row("functions", function)[0]] += cost

    def _add(self, cost: int, has_function: bool, has_line: bool) -> None:
        self._total += cost
        self._named[0] += cost * has_function
        self._named[1] += cost * has_line

    def _by_program(self) -> dict[ElfObject, list[tuple[int, int]]]:
        """Link-time addresses with their costs; costs of objects that are not found have no names."""
        counts = self._counts
        found: dict[ElfObject, list[tuple[int, int]]] = {}
        for row, (space, low, high) in rows_of(counts.places):
            object_, mapping = (space, None) if self._is_graph else mapping_of(self._model, space)
            cost, address = counts.counts[row], low | high << 32
            self._objects[object_] += cost
            elf, _ = self._binaries.find(object_)
            link = self._binaries.link_address(object_, elf, address, mapping) if elf else 0
            if elf and link:
                found.setdefault(elf, []).append((link, cost))
            else:
                self._total += cost
        return found

    def _look_up(self, elf: ElfObject, costs: list[tuple[int, int]]) -> None:
        for at in range(0, len(costs), _AT_ONCE):
            part = costs[at : at + _AT_ONCE]
            for (_, cost), chain in zip(part, elf.lookup_many([link for link, _ in part]), strict=True):
                self._add(cost, bool(chain), bool(chain and chain[0].line))
