"""Two profiles in a comparison, for `diff` and the page: finds the functions that are the same."""

from collections.abc import Iterable, Iterator
from itertools import chain

from fastprof.bridges import MAX_MEMORY, PER_THREAD
from fastprof.bridges.rows.pair import RULES, Pairs
from fastprof.bridges.sums.aggregate import Table
from fastprof.bridges.sums.sum import added_up
from fastprof.core.engine import Capabilities
from fastprof.core.log import Log
from fastprof.core.messages import counted
from fastprof.core.model import Batch, Model
from fastprof.core.options import Options, Words
from fastprof.verbs.groups import RowOption
from fastprof.verbs.reported import REPORTED

PAIR = RowOption(
    "pair",
    Words("name", "exact", metavar="HOW"),
    "name",
    help="pair functions across builds: name (default) or exact",
    details="By name: objects pair by build id, path, or base name without version and hash; functions by name and "
    "the file's base name within them.  Addresses without names pair only within one build.",
)


def log_pairs(log: Log, pairs: Pairs, what: str = "function") -> None:
    """Report what was paired by a weaker rule.  `what`: function, file or object."""
    found = [f"{counted(pairs.counts[rule], what)} by {rule}" for rule in RULES[1:] if pairs.counts[rule]]
    if found:
        log.warn(REPORTED["paired"], what=", ".join(found))


def read_all(
    sides: Iterable[tuple[int, str, Iterable[Batch]]],
    model: Model,
    options: Options,
    log: Log,
    *,
    pair: bool = True,
    renews_stacks: bool,
) -> list[tuple[int, str, Iterator[Batch]]]:
    """(side, view, rows) of stacks and graphs.  With `pair`, functions of side 0 get the ids of their counterparts.

    All rows are read and added up first, within --max-memory; labels stay, threads do not.  `renews_stacks`: sources of
    stacks add them again after the model has dropped them.
    """
    pairs = Pairs(model)
    summed = []
    own = options.with_given(**{PER_THREAD.name: False})
    for side, view, batches in sides:
        noted = pairs.noted(batches, side) if pair else batches
        if view == "stacks":
            rows = added_up(noted, model, own, log, Capabilities(renews_stacks=renews_stacks))
        else:
            rows = _by_part(noted, model, options)
        summed.append((side, view, rows))
    if pair:
        pairs.find()
        log_pairs(log, pairs)
    return [(side, view, pairs.replaced(rows) if pairs else rows) for side, view, rows in summed]


def _by_part(batches: Iterable[Batch], model: Model, options: Options) -> Iterator[Batch]:
    """The parts of a graph, each added up.  All of them are read when it returns."""
    tables: dict[int, Table] = {}
    for batch in batches:
        if batch.part not in tables:
            tables[batch.part] = Table(model, options[MAX_MEMORY])
        tables[batch.part].put(batch)
    return chain.from_iterable(table.batches(part) for part, table in tables.items())
