"""Rows -> the rows that the options select (csrc/core/select.h, csrc/bridges/rows/filter.h).

`select` filters by the columns of a row: time, thread, part and labels.  `functions` filters by the functions that
match --function and --object:

    stacks    main > f > g  5,  main > h  3          --function g     main > f > g  5
    graph     main -> f,  f self 2,  f -> g          --function f     f self 2,  f -> g
    timeline  enter main, enter f, exit f, exit main --function f     enter f, exit f

Dropped rows are counted.  If `functions` drops rows of a graph, the totals stated by its source, which are of all rows,
are dropped as well.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping

from fastprof.bridges import FUNCTION, LABEL, LONGEST_NAME, OBJECT
from fastprof.bridges.rows.reported import REPORTED
from fastprof.bridges.transforms import ROOTS
from fastprof.core import lazy_re as re
from fastprof.core._c import ffi, lib
from fastprof.core._typing import Any, fp_mask
from fastprof.core.c_memory import owned
from fastprof.core.engine import EVERYTHING, Capabilities, Summary
from fastprof.core.errors import check_sums
from fastprof.core.labels import keys_in, which
from fastprof.core.loaded import copied
from fastprof.core.log import Log
from fastprof.core.messages import Message, joined, some, spelled
from fastprof.core.model import Batch, Model, Part
from fastprof.core.operator_copy import Changed
from fastprof.core.options import PART, THREADS, TIME_RANGE, UINT64, Option, Options
from fastprof.core.parts import labels_of
from fastprof.core.thread_names import ThreadNames, is_chosen
from fastprof.core.times import Span


def select(
    batches: Iterable[Batch], model: Model, options: Options, log: Log, holds: Capabilities = EVERYTHING
) -> Iterator[Batch]:
    """The rows of one input that `options` choose by PART, TIME_RANGE, THREADS and LABEL.

    Batches are changed in place; one that becomes empty is left out.
    """
    left_out = 0
    part, threads, labels = options[PART], frozenset(options[THREADS]), _Labels(model, options[LABEL])
    chosen = ffi.new("struct fp_select *")
    time_range = options[TIME_RANGE]
    assert not isinstance(time_range, str)  # fastprof/inputs/times.py
    chosen.first_time, chosen.last_time = time_range or (0, UINT64)
    seen, clock = Summary(), 10**9
    masks = [
        (chosen.threads, mask_of_threads(model, threads)) if threads else None,
        (chosen.labels, Mask(model, "labels", labels.matches)) if labels.requested else None,
    ]
    numbers: dict[int, int] = {}  # by part of the model: its number in this input
    for batch in batches:
        had = len(batch)
        if time_range and batch.view != "graph":
            seen.add(batch)
            if batch.view == "timeline":
                clock = model.parts[batch.part].extra.get("ticks_per_second", 0)
        number = numbers.setdefault(batch.part, len(numbers) + 1)
        of_part = batch.view != "graph" or _has_part(model.parts[batch.part], threads, labels)
        if (part is not None and number != part) or not of_part:
            left_out += had
            continue
        if batch.view != "graph":
            for c, mask in filter(None, masks):
                mask.show(c)
            left_out += lib.fp_select_rows(chosen, batch.c, 0)
        if len(batch) or not had:
            yield batch
    if seen.c.first_time <= seen.c.last_time:
        model.times.append(Span(int(seen.c.first_time), int(seen.c.last_time), clock))
    log.leave_out(left_out, (PART, TIME_RANGE, THREADS, LABEL), options)


def _has_part(part: Part, threads: frozenset[Any], labels: _Labels) -> bool:
    """Whether a part of a graph is of these threads and has these labels."""
    return (not threads or is_chosen(part.pid or 0, part.thread, threads)) and labels.match(labels_of(part))


class Mask:
    """For each id of a table of the model, whether its rows stay, or bits; `decide` is called for each new id."""

    def __init__(self, model: Model, table: str, decide: Callable[[int], int]) -> None:
        self._model, self._table, self._decide = model, table, decide
        self._mask = bytearray(1)  # id 0 is none

    def show(self, c: fp_mask) -> None:
        """Store the mask in a struct fp_mask; it is valid until the next call."""
        n = self._model.count(self._table)
        if n > len(self._mask):
            self._shown = None  # a bytearray with a view cannot grow
            self._mask.extend(self._decide(i) for i in range(len(self._mask), n))
        self._shown = ffi.from_buffer("uint8_t[]", self._mask)
        c.keep, c.n = self._shown, n


def mask_of_threads(model: Model, threads: frozenset[Any]) -> Mask:
    def decide(i: int) -> bool:
        _, pid, tid = model.row("threads", i)
        return is_chosen(pid, tid, threads)

    return Mask(model, "threads", decide)


class _Labels:
    """Which label sets have the requested labels: for each key, one of its values."""

    def __init__(self, model: Model, requested: Iterable[str]) -> None:
        self._model = model
        self.requested: dict[bytes, set[bytes]] = {}
        for text in requested:
            key, _, value = text.encode("utf-8", "surrogateescape").partition(b"=")
            self.requested.setdefault(key, set()).add(value)
        self._bits = {key: 1 << k for k, key in enumerate(self.requested)}
        self._found = [0]  # by label set: the bits of its labels

    def matches(self, label_set: int) -> bool:
        """Whether a label set matches.  Call it for every label set, in order of their ids."""
        after, *label = self._model.row("labels", label_set)
        # a label set follows the set that it extends
        self._found.append((self._found[after] if after < label_set else 0) | self._bit(*label))
        return self._found[-1] == (1 << len(self._bits)) - 1

    def match(self, labels: Iterable[tuple[bytes, bytes]]) -> bool:
        """Whether the labels of a part match."""
        own = dict(labels)
        return all(own.get(key) in values for key, values in self.requested.items())

    def _bit(self, key: int, string: int, low: int, high: int, unit: int) -> int:
        wanted = self.requested.get(name := self._model.string(key), ())
        number = low | high << 32
        value = self._model.string(string) if string else b"%d" % (number - (number >> 63 << 64))
        return self._bits[name] if value in wanted else 0


def functions(
    batches: Iterable[Batch], model: Model, options: Options, log: Log, holds: Capabilities = EVERYTHING
) -> Iterator[Batch]:
    """The rows of functions that match.  Batches are changed in place; one that becomes empty is left out."""
    given = ((lib.FP_FILTER_NAME, options[FUNCTION]), (lib.FP_FILTER_OBJECT, options[OBJECT]))
    patterns = {by: re.compile(text) for by, text in given if text is not None}
    n = yield from matching(batches, model, patterns, log)
    log.leave_out(n, (FUNCTION, OBJECT), options)


def matching(
    batches: Iterable[Batch],
    model: Model,
    patterns: Mapping[int, re.Pattern[str]],
    log: Log,
    path: Iterable[bytes] = (),
) -> Generator[Batch, None, int]:
    """The rows of functions that match, by enum fp_filter_by; of a timeline those below a path.  Returns how many are
    left out."""
    c = owned(lib.fp_filter_new(model.c, sum(patterns)), "the functions that match")
    err = ffi.new("struct fp_err *")
    changed = Changed(model)
    for one in path:
        check_sums(lib.fp_filter_path(c, one, len(one)), err, model, "the functions that match")
    for batch in batches:
        had = len(batch)
        while check_sums(lib.fp_filter_learn(c, err), err, model, "the functions that match") == lib.FP_NEEDS:
            name = bytes(ffi.buffer(c.text, min(c.text_n, LONGEST_NAME))).decode("utf-8", "surrogateescape")
            lib.fp_filter_answer(c, patterns[c.request].search(name) is not None)
        check_sums(lib.fp_filter_batch(c, batch.c, err), err, model, "the functions that match")
        if len(batch) or not had:
            yield from changed.lend(batch, _unsummed)
    changed.end()
    log.count(REPORTED["unwound-frames"], c.unwound)
    return int(c.left_out)


def _unsummed(part: Part) -> Part:
    """The part without the totals stated by its source."""
    rest = copied(part)
    rest.summary = rest.totals = None
    return rest


def nothing_left(model: Model, options: Options) -> Message:
    """The message if filters drop every row: it lists values that would match."""
    given = [option for option in (PART, TIME_RANGE, THREADS, LABEL, FUNCTION, OBJECT, *ROOTS) if option in options]
    hints = []
    if TIME_RANGE in given:
        covered = [span.text() for span in model.times]
        hints.append(f"the trace covers {some(covered)}" if covered else "no row has a time")
    if THREADS in given:
        names = ThreadNames(model)
        rows = [model.row("threads", i) for i in range(1, model.count("threads"))]
        texts = {(row[2], names.thread_text(*row) if names.thread(*row) else names.id(row[0], row[2])) for row in rows}
        texts |= {(part.thread, str(part.thread)) for part in model.parts if part.thread is not None}
        known = [text for _, text in sorted(texts) if text]
        hints.append(f"the threads are {some(known)}" if known else "no threads are known")
    if LABEL in given:
        hints.append(which(keys_in(model)))
    filters = [spelled(option.flag, "=") + value for option in given for value in _shown(option, options[option])]
    hint = "".join(f"; {hint}" for hint in hints)
    return Message("no row matches {filters}{hint}", filters=joined(" ", filters), hint=hint)


def _shown(option: Option[Any], value: Any) -> list[str]:
    if option is TIME_RANGE:
        return [value] if isinstance(value, str) else [":".join("" if n in (0, UINT64) else str(n) for n in value)]
    return [f"{one!r:.80}" for one in (value if option.several else [value])]
