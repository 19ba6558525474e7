"""The rows of an input that options select, with its labels."""

from collections.abc import Iterator

from fastprof.bridges import SELECT
from fastprof.core.engine import EVERYTHING, Input
from fastprof.core.log import Log
from fastprof.core.model import Batch, Model
from fastprof.core.options import Options


def selected(
    input_: Input, model: Model, options: Options, log: Log, capacity: int | None, encoded: bool, labels: dict[str, str]
) -> Iterator[Batch]:
    """The rows of an input that the options of its view's `SELECT` choose; see Input.rows.

    `labels`: labels added to its samples, or to the parts of a graph, before.
    """
    operator = SELECT[input_.view]
    filters_here = [option for option in operator.options if option in options and option not in input_.selects]
    rows = input_.rows(capacity, encoded=encoded and not filters_here)
    if labels:
        from fastprof.bridges.rows.label import labelled

        rows = labelled(rows, model, labels, input_.view)
        input_.labels = model.names.labels[input_.name] = {**input_.labels, **labels}
    if not filters_here:
        return rows
    filters = Options(**{option.name: options[option] for option in filters_here})
    filters = filters.with_given(**input_.resolved)
    return operator.load()(rows, model, filters, log, EVERYTHING)
