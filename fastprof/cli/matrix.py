"""What `fastprof top --matrix` prints."""

from __future__ import annotations

from fastprof.cli.messages import inputs_text
from fastprof.cli.text import Screen, first_line, percent, print_csv, print_rest, print_table, short_names
from fastprof.core._typing import TYPE_CHECKING, Any
from fastprof.core.engine import Format
from fastprof.core.figures import Scale
from fastprof.core.messages import counted
from fastprof.verbs.top import Top
from fastprof.verbs.top.matrix import Matrix, Row

if TYPE_CHECKING:
    import argparse


_MOST_COLUMNS = 8  # printed as text; files have all


def show(top: Top, found: Matrix, args: argparse.Namespace, *, is_page: bool) -> None:
    """Print a matrix as CSV, as text or Markdown, or as a page."""
    if args.csv:
        _print_csv(found)
        return
    if not hasattr(args, "demangle"):
        short = short_names([row.name for row in found.rows])
        found = found._replace(rows=[r._replace(name=name) for r, name in zip(found.rows, short, strict=True)])
    if is_page and not args.markdown:
        from fastprof.verbs.top.heat_map import page

        print(page(top, found), end="")
        return
    print_text(top, found, Screen.from_options(args.width, args.color, markdown=args.markdown))


def write_table(top: Top, found: Matrix, output: str, target: Format) -> None:
    """Write a matrix as an Arrow stream or as Parquet."""
    from fastprof.verbs.cells import write
    from fastprof.verbs.top.matrix_table import table

    write([table(found, top.value)], output, target)


def as_json(found: Matrix) -> dict[str, Any]:
    return found._asdict() | {"rows": [row._asdict() | {"shares": found.shares(row)} for row in found.rows]}


def _print_csv(found: Matrix) -> None:
    head = [*Row._fields[:-1], *(column.name for column in found.columns)]
    print_csv([head, *([*row[:-1], *row.costs] for row in found.rows)])


def print_text(top: Top, found: Matrix, screen: Screen) -> None:
    what = f"{counted(found.n_rows, 'function')} by {counted(len(found.columns), 'value')} of {found.key}"
    screen.print(first_line(f"{inputs_text(top.inputs)}: {what}", top.other_values, screen))
    columns = found.columns[:_MOST_COLUMNS]
    if columns:
        screen.print()
        scale = Scale.of(max(abs(column.total) for column in columns), top.value.unit)
        titles = (found.key, scale.title(top.value.name or "self"), "difference %")
        cells = [(column.name, scale(column.total), percent(column.difference)) for column in columns]
        print_table([titles, *cells], right=(1, 2), narrow=(0,), screen=screen)
        print_rest(len(found.columns) - len(columns), screen)
    if found.rows:
        screen.print()
        has_objects = any(row.object for row in found.rows)
        last = ["object"] * has_objects + ["function"]
        head = ["median %", "difference", "of", *(f"{column.name} %" for column in columns), *last]
        lines = [
            (
                percent(row.median),
                f"{100 * row.difference:+.1f}",
                row.outlier,
                *map(percent, found.shares(row)[: len(columns)]),
                *[row.object] * has_objects,
                row.name,
            )
            for row in found.rows
        ]
        first = 3 + len(columns)
        print_table(
            [head, *lines],
            right=(0, 1, *range(3, first)),
            narrow=(2, *range(first, len(head))),
            optional=range(len(head) - 2, 2, -1),
            screen=screen,
        )
        print_rest(found.n_rows - len(found.rows), screen)
