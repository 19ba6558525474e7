"""A matrix as an Arrow table: a row per function, the columns of its CSV, then one of exact costs per label value.

name  file  object  median  outlier  share  difference  web1  web2  web3
f     a.c           0.09    web2     0.40         0.31    90   600    80
"""

from fastprof.bridges.rows.as_table import Rows, unused, utf8
from fastprof.core.model import ValueType
from fastprof.verbs.cells import Columns
from fastprof.verbs.top.matrix import Matrix, Row


def table(found: Matrix, value: ValueType) -> Rows:
    """The rows.  A label value with the name of another column gets a number: `name_2`.

    Errors: FastprofError for a cost that has more than 64 bits.
    """
    columns = Columns()
    for name in Row._fields[:-1]:
        cells = [getattr(row, name) for row in found.rows]
        if name in ("median", "share", "difference"):
            columns.add_reals(name, cells)
        else:
            columns.add_texts(name, cells)
    taken = {*Row._fields[:-1]}
    for i, column in enumerate(found.columns):
        name = unused(utf8(column.name), taken)
        taken.add(name.casefold())
        columns.add_costs(name, [row.costs[i] for row in found.rows], value.unit)
    metadata = {"table": "matrix", "key": found.key, "value": value.name}
    return columns.rows(len(found.rows), metadata)
