"""Source files, or the instructions of functions, with the costs of each line."""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from functools import cache, partial
from itertools import chain, pairwise

from fastprof import bridges, formats, plan
from fastprof.bridges.project.project import RETURN_ADDRESSES
from fastprof.core._c import lib
from fastprof.core._typing import TYPE_CHECKING, Any, Unpack
from fastprof.core.engine import Capabilities
from fastprof.core.errors import FastprofError, inputs_of, usage_error
from fastprof.core.log import Log
from fastprof.core.messages import counted
from fastprof.core.model import Batch, Model
from fastprof.core.options import FolderPath, Option, Options, Share, Whole, checked
from fastprof.core.parts import descriptions_of
from fastprof.core.source import Source
from fastprof.core.unknown_names import UNKNOWN, known
from fastprof.symbols import FINDING
from fastprof.symbols.binaries import Binaries
from fastprof.symbols.demangle import left_mangled
from fastprof.symbols.objects import ElfObject
from fastprof.verbs.annotate.by_place import Places
from fastprof.verbs.annotate.disassembly import disassemble, find_tool
from fastprof.verbs.annotate.sources import Sources, ends_alike, finding, lines_of
from fastprof.verbs.annotation import Annotation, Call, Costs, Instruction, Line, Listing, Missing, around
from fastprof.verbs.reported import REPORTED
from fastprof.verbs.run import path_of, run

if TYPE_CHECKING:
    from fastprof.verbs.keywords import AnnotateOptions, Input, Progress, ReadFormat

CONTEXT = Option("context", Whole(0), 8, group="annotate", help="show N lines around those with costs (default: 8)")
THRESHOLD = Option(
    "threshold",
    Share(),
    0.001,
    group="annotate",
    help="show files of functions above SHARE (default: 0.1%)",
    details="SHARE is of the total, and compared with self costs: 0.01 or 1%.",
)
SOURCE: Option[tuple[str, ...]] = Option(
    "source",
    FolderPath("DIR"),
    (),
    several=True,
    short="-I",
    group="annotate",
    help="search DIR for source files; repeatable",
    details="/build/src/a.c is looked up as DIR/build/src/a.c, DIR/src/a.c and DIR/a.c.",
)
ASM = Option.switch(
    "asm",
    group="annotate",
    help="show instructions instead of source lines",
    details="Needs instruction addresses in the profile, and the program.",
)


CALLS = Option(
    "calls",
    Whole(0),
    20,
    group="annotate",
    help="show N callees below each line (default: 20; 0: all)",
    details="The last row has the sum of the others.",
)


N = Option(
    "n",
    Whole(0, 1 << 31),
    30,
    flag="-n",
    group="annotate",
    help="show N files (--asm: functions; default: 30; 0: all)",
    details="The most expensive ones; the last table sums up the others.  Named files are all shown.",
)


OPTIONS = (CONTEXT, N, THRESHOLD, SOURCE, ASM, CALLS)

END = plan.End(
    "annotate",
    "graph",
    Capabilities(labels=False, times=False, unmerged=True, allocator=False),
    OPTIONS,
    performs=(bridges.SUM_PLACES,),
    fixes={bridges.PER_THREAD: False, bridges.INLINES: True, bridges.AGGREGATE: True},
    code="verbs.annotate:annotated",
)
# Instructions are those of compiled functions, which contain inlined code.
INSTRUCTIONS = END._replace(options=(*OPTIONS, *FINDING), fixes={**END.fixes, bridges.INLINES: False})


@cache
def options() -> list[Option[Any]]:
    """The options of `annotate`."""
    return plan.options_of(END)


def annotate(
    path: Input,
    files: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] = (),
    *,
    from_: ReadFormat | None = None,
    keep_going: bool = False,
    progress: Progress | None = None,
    **given: Unpack[AnnotateOptions],
) -> Annotation:
    """Source files with the costs of each line; with `asm` functions with the costs of each instruction.

    Without `files` it shows each file that is found and has a function of at least `threshold` of the total.
    Name a file as in the profile, or by the end of its path: zip/inflate.c.
    `progress` is called with each input that is opened (docs/python.md).
    With `keep_going` inputs that cannot be read are skipped and counted as losses.
    Errors: FastprofError and its kinds, also if the profile has none of `files`.

    >>> import fastprof
    >>> open("b.c", "w").write("int\\ng(void)\\n{ return 9; }\\n")
    26
    >>> (listing,) = fastprof.annotate("tests/corpus/callgrind/good/cfi.callgrind", "b.c").listings
    >>> [(line.number, line.text, line.values) for block in listing.blocks() for line in block if line.values]
    [(3, '{ return 9; }', [9, 0])]
    """
    chosen = checked(given, options())
    wanted = [os.fspath(file) for file in ([files] if isinstance(files, (str, os.PathLike)) else files)]
    if wanted and THRESHOLD in chosen:
        raise usage_error("{--threshold} has no effect: it chooses files, and they are named")
    if chosen[ASM] and SOURCE in chosen:
        raise usage_error("{--source} has no effect: {--asm} shows no source files")

    end = INSTRUCTIONS if chosen[ASM] else END
    sides, names = [[path_of(path)]], {"wanted": wanted}
    annotation: Annotation = run(end, sides, chosen, from_, progress, names, keep_going=keep_going)
    return annotation


def annotated(
    pipelines: Sequence[plan.Pipeline],
    model: Model,
    chosen: Options,
    log: Log,
    *,
    wanted: list[str],
    sources: Sources | None = None,
    value: str | None = None,
) -> Annotation:
    """`sources`: looks up source files; by default as `source` specifies.  `value`: the name of the value type to sort
    by; by default the default value type."""
    if chosen[ASM]:
        shown: _Shown = _Functions(model, chosen, log, wanted)
    else:
        shown = _Files(model, chosen, log, wanted, sources or finding(chosen[SOURCE], wanted))
    (pipeline,) = pipelines
    for batch in shown.places.settled(pipeline.rows(model, log)):
        shown.put(batch)
    return shown.annotation(value)


def _hint(wanted: str) -> str:
    """Advice if the file that the profile lacks is a profile, or a directory."""
    is_profile = os.path.isdir(wanted)
    if os.path.isfile(wanted):
        with suppress(FastprofError), closing(Source(wanted)) as source:
            is_profile = bool(formats.detect(source))
    what = "; to annotate several profiles, name their directory, or add them up first with `fastprof merge`"
    return what if is_profile else ""


class _Shown:
    """Base of source files and functions, both groups of places (verbs/annotate/by_place.py)."""

    def __init__(self, model: Model, options: Options, log: Log, wanted: list[str]) -> None:
        self._model, self._options, self._log, self._wanted = model, options, log, wanted
        self.places = Places(model, by_address=options[ASM])
        self._matched: set[str] = set()  # requested files that were found
        self._requested: set[int] = set()
        self._value = 0

    def put(self, batch: Batch) -> None:
        self.places.put(batch, self._keep)  # `places` must not keep a reference: programs are closed with the last one

    def _keep(self, group: int) -> bool:
        name, file = self._names(group)
        matching = [wanted for wanted in self._wanted if ends_alike(wanted, file)]
        self._matched.update(matching)
        if matching:
            self._requested.add(group)
        return name not in UNKNOWN and bool(matching or not self._wanted) and self._may_be_found(group)

    def annotation(self, name: str | None) -> Annotation:
        """The result, after the last row.  `name`: the value type to sort by, if the profile has it."""
        for wanted in self._wanted:
            if wanted not in self._matched:
                raise FastprofError(f"{inputs_of(self._model)}no costs in a file named {wanted}{_hint(wanted)}")
        named = (k for k, value_type in enumerate(self.places.value_types) if value_type.name == name)
        self._value = value = next(named, self.places.default)
        groups = self.places.end(value)
        found = Annotation(self.places.value_types, value, self._log)
        no_costs = [0] * len(found.totals)
        groups |= dict.fromkeys(self._requested - groups.keys(), (0, no_costs))  # with calls only
        if found.totals:
            least = self._options[THRESHOLD] * abs(sum(values[value] for _, values in groups.values()))
            for group, (largest, values) in sorted(groups.items(), key=self._rank):
                found.add(self._show(group, values, bool(largest) and largest >= least, found), values)
        self._warn(found)
        if name is None:
            self.places.note(self._log, is_zero=not any(found.totals[value:][:1]))
        return found

    def _show(self, group: int, values: list[int], is_large: bool, found: Annotation) -> str:
        """Add a group to the result if it is shown.  Returns the share of the totals in which it counts."""
        name, file = self._names(group)
        if name in UNKNOWN:
            return "unknown"
        if self._wanted and group not in self._requested:
            return "not requested"
        if not self._wanted and not is_large:
            return "below the threshold"
        most = self._options[N] if N in self._options or not self._wanted else 0
        if most and len(found.listings) >= most:
            return "beyond the first files"
        blocks = self._blocks(group)
        if isinstance(blocks, str):
            found.missing.append(Missing(name, blocks, values))
            return "not found"
        path, make = blocks
        found.listings.append(Listing(name, file, path, values, make))
        return "shown"

    def _rank(self, item: tuple[int, tuple[int, list[int]]]) -> tuple[int, tuple[str, str], int]:
        """Sort key: most expensive first, then by name."""
        group, (_, values) = item
        return -abs(values[self._value]), self._names(group), group

    def _names(self, group: int) -> tuple[str, str]:
        """The name of a group, and its file."""
        raise NotImplementedError

    def _may_be_found(self, group: int) -> bool:
        raise NotImplementedError

    def _blocks(self, group: int) -> str | tuple[str, Callable[[], Iterator[Any]]]:
        """The path of a group's file and a function that returns its lines, or the reason why it is not shown."""
        raise NotImplementedError

    def _warn(self, found: Annotation) -> None:
        raise NotImplementedError

    def _calls(self, cost: Costs) -> list[Call]:
        return cost.calls(self._value, self._options[CALLS])

    def _file(self, string: int) -> str:
        return known(self._model.string(string), "surrogateescape")

    def _costs(self, group: int, place: Callable[[int, int, bool], int]) -> Iterator[tuple[int, Costs]]:
        """The costs of a group, yielded whenever `place(line, address, is it a call)` changes; a place may repeat."""
        at, cost = None, Costs()
        known: dict[int, tuple[bytes, bytes, bytes]] = {}
        for batch in self.places.rows(group):
            columns = [batch.values(k) for k in range(len(self.places.value_types))]
            names = ("kind", "line", "address", "file", "callee", "count")
            rows = zip(*map(batch.__getitem__, names), strict=True)
            for i, (kind, line, address, file, callee, times) in enumerate(rows):
                before, at = at, place(line, address, kind == lib.FP_CALL)
                if before not in (None, at):
                    yield before, cost
                    cost = Costs()
                cost.file, cost.line = file, line
                values = [column[i] for column in columns]
                if kind == lib.FP_CALL:
                    if callee not in known:
                        function = self._model.get_function(callee)
                        known[callee] = function.name, function.file, function.object
                    cost.call(known[callee], times, values)
                else:
                    cost.spend(values)
        if at is not None:
            yield at, cost


class _Files(_Shown):
    def __init__(self, model: Model, options: Options, log: Log, wanted: list[str], sources: Sources) -> None:
        super().__init__(model, options, log, wanted)
        self._sources = sources

    def _names(self, group: int) -> tuple[str, str]:
        name = self._file(group)
        return name, name

    def _may_be_found(self, group: int) -> bool:
        return bool(self._sources.find(self._file(group)))

    def _blocks(self, group: int) -> str | tuple[str, Callable[[], Iterator[Any]]]:
        path = self._sources.find(self._file(group))
        return (path, partial(self._lines, group, path)) if path else "no such file"

    def _lines(self, group: int, path: str) -> Iterator[list[Line]]:
        by_line = self._costs(group, lambda line, address, is_call: line)
        costs = {n: Line(n, None, cost.values, self._calls(cost)) for n, cost in by_line}
        if 0 in costs:
            yield [costs.pop(0)]
        last = max(costs, default=0) + self._options[CONTEXT]
        n = 0

        def lines() -> Iterator[Line]:
            nonlocal n
            for n, text in enumerate(lines_of(path), 1):
                if n > last:
                    return
                cost = costs.pop(n, None)
                yield cost._replace(text=text) if cost else Line(n, text)

        yield from around(lines(), self._options[CONTEXT])
        if costs:
            self._log.warn(REPORTED["short-source"], path=path, lines=counted(n, "line"), line=max(costs))
            yield [*costs.values()]

    def _warn(self, found: Annotation) -> None:
        _warn_of_changes(self._log, self._model, [listing.path for listing in found.listings])
        if found.missing:
            self._log.warn(REPORTED["missing-sources"], n=len(found.missing), first=found.missing[0].name)


# Limit of bytes to disassemble, as a multiple of a program's size: each function may claim to span all of it.
_AGAIN = 8
_NEAR = 256  # maximum gap between addresses disassembled together if no symbol gives the function's size


class _Functions(_Shown):
    def __init__(self, model: Model, options: Options, log: Log, wanted: list[str]) -> None:
        super().__init__(model, options, log, wanted)
        self._binaries = Binaries(model, options)
        self._tool = find_tool()
        self._left: dict[str, int] = {}  # by path of a program: bytes left for disassembling whole functions

    def _names(self, group: int) -> tuple[str, str]:
        _, file, name, *_ = self._model.row("functions", group)
        return self._model.string(name).decode("utf-8", "surrogateescape"), self._file(file)

    def _object(self, group: int) -> int:
        return self._model.row("functions", group)[0]

    def _may_be_found(self, group: int) -> bool:
        return self._binaries.may_be_found(self._object(group))

    def _blocks(self, group: int) -> str | tuple[str, Callable[[], Iterator[Any]]]:
        elf, reason = self._binaries.find(self._object(group))
        if elf is None:
            return reason
        return elf.path, partial(self._instructions, group, elf)

    def _instructions(self, group: int, elf: ElfObject) -> Iterator[list[Instruction]]:
        link = partial(self._binaries.link_address, self._object(group), elf)
        returns = any(text == RETURN_ADDRESSES for part in self._model.parts for _, text in descriptions_of(part))
        costs: dict[int, Costs] = {}
        by_address = self._costs(
            group, lambda line, at, is_call: at and (link(at - 1) if is_call and returns else link(at))
        )
        for place, cost in by_address:
            if place in costs:
                costs[place].take(cost)
            else:
                costs[place] = cost
        if 0 in costs:
            yield [self._instruction(0, None, costs.pop(0))]
        places = sorted(costs)
        while places:
            start, stop, n = self._extent(elf, places)
            yield from around(self._with_costs(elf, start, stop, places[:n], costs), self._options[CONTEXT])
            del places[:n]

    def _extent(self, elf: ElfObject, places: list[int]) -> tuple[int, int, int]:
        """The range to disassemble for the first of `places`, and how many of them it contains: (start, stop, n)."""
        known = elf.extent(places[0])
        if known:
            start, stop = known
            left = self._left.setdefault(elf.path, _AGAIN * elf.nbytes)
            if stop - start <= left:
                self._left[elf.path] -= stop - start
                return start, stop, bisect_left(places, stop)
        n = 1
        while n < len(places) and places[n] - places[n - 1] < _NEAR:
            n += 1
        return places[0], places[n - 1] + 1, n

    def _with_costs(
        self, elf: ElfObject, start: int, stop: int, places: list[int], costs: dict[int, Costs]
    ) -> Iterator[Instruction]:
        """The instructions from `start` to `stop`, each with the costs of its bytes."""
        done = 0
        refused = set[str]()
        code = chain(disassemble(self._tool, elf.path, start, stop, refused), [(stop, "")])
        try:
            for (address, text), (next_address, _) in pairwise(code):
                cost = Costs()
                while done < len(places) and places[done] < next_address:
                    cost.take(costs[places[done]])
                    if places[done] != address and costs[places[done]].values:
                        self._log.warn(REPORTED["other-build"], path=elf.path)
                    done += 1
                yield self._instruction(address, text, cost)
        except FastprofError as error:
            self._log.warn(REPORTED["no-disassembly"], error=error.message())
        if refused:
            self._log.warn(REPORTED["mangled-names"], path=elf.path, names=left_mangled(refused))
        for place in places[done:]:
            yield self._instruction(place, None, costs[place])

    def _instruction(self, address: int, text: str | None, cost: Costs) -> Instruction:
        return Instruction(address, text, cost.values, self._calls(cost), self._file(cost.file), cost.line)

    def _warn(self, found: Annotation) -> None:
        if not any("instr" in part.positions for part in self._model.parts):
            raise FastprofError(
                f"{inputs_of(self._model)}no instruction addresses (Callgrind writes them with --dump-instr=yes)"
            )
        _warn_of_changes(self._log, self._model, [listing.path for listing in found.listings])
        for reason in dict.fromkeys(missing.reason for missing in found.missing):
            self._log.warn(REPORTED["no-instructions"], reason=reason)


def _warn_of_changes(log: Log, model: Model, paths: Iterable[str]) -> None:
    """Warn of files newer than the profile, if its time is known."""
    recorded = [part.extra["time_ns"] / 1e9 for part in model.parts if part.extra.get("time_ns")]
    recorded = recorded or [os.stat(path).st_mtime for path in model.inputs if os.path.isfile(path)]
    for path in dict.fromkeys(paths):
        if recorded and os.stat(path).st_mtime > min(recorded):
            log.warn(REPORTED["changed-source"], path=path)
