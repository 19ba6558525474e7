"""The plan of a conversion: which operators stand between the inputs and the writer, and which options they look at.

The plan is data.  Each input's rows go through the operators of its branch; then the rows of all branches go together
through the operators in `joined`:

    trace.xray   timeline ── fold ──┐
    day1.prof    stacks ── symbolize┴── sum ── one value ──▶ writer

Where inputs become one profile, they have to have the same value types (bridges/sums/agree.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain

from fastprof import bridges, formats
from fastprof.bridges import Operator
from fastprof.core._typing import Any, NamedTuple
from fastprof.core.engine import EVERYTHING, Format, Holds, Input, Writer
from fastprof.core.errors import UsageError, inputs_of
from fastprof.core.model import Batch, Model
from fastprof.core.options import CORES, LENIENT, Option, Options, ambiguous, cores_of
from fastprof.core.report import Report
from fastprof.symbols import SYMBOLIZE, SYMBOLS


class Branch(NamedTuple):
    """Inputs whose rows go the same way."""

    inputs: list[Input]
    operators: list[Operator]  # within the view of the inputs
    bridge: list[Operator]  # to the view of the target, if that is another

    @property
    def renews_stacks(self) -> bool:
        """Whether what makes its stacks does without those of earlier batches."""
        return all(one.renews_stacks for one in self.inputs) and {*self.operators} <= {bridges.NAME_ADDRESSES}


class Plan(NamedTuple):
    branches: list[Branch]
    joined: list[Operator]  # for the rows of all branches
    looked_at: set[Option[Any]]  # options of the operators in the plan, and options that would add an operator
    holds: Holds
    several: bool  # profiles become one, whose value types are compared
    kept: dict[Option[Any], Any]  # options that nothing looks at, with values that this plan keeps anyway

    def rows(
        self,
        model: Model,
        options: Options,
        report: Report,
        capacity: int | None = None,
        left: Left | None = None,
        *,
        undecoded: bool = False,
    ) -> Iterator[Batch]:
        """The batches for the writer.  `capacity`: the most rows that readers put into a batch.  `undecoded`: who asks
        takes Undecoded batches as well.

        Inputs are read one after the other, each when those before it have been read.
        Errors: UsageError if filters leave out everything, but with `left` the caller checks that.
        """
        remaining = left or Left()

        # what adds up the stacks of several branches needs all of them
        apart = self.holds._replace(keeps_stacks=self.holds.keeps_stacks or len(self.branches) > 1)

        def through(rows: Iterator[Batch], operators: list[Operator], holds: Holds) -> Iterator[Batch]:
            for operator in operators:
                rows = operator.load()(rows, model, options, report, holds)
            return rows

        def rows_of(branch: Branch) -> Iterator[Batch]:
            rows: Iterator[Batch] = chain.from_iterable(map(read, branch.inputs))
            # stacks have their value types when they are read, a timeline's are made by a bridge
            if agreement and branch.inputs[0].view == "stacks":
                rows = agreement.compared(rows)
            rows = remaining.seen(through(rows, branch.operators, apart))
            renewed = apart._replace(keeps_stacks=not branch.renews_stacks)
            rows = through(rows, branch.bridge, renewed if branch.inputs[0].view == "stacks" else apart)
            return agreement.compared(rows) if agreement and branch.inputs[0].view != "stacks" else rows

        def read(input_: Input) -> Iterator[Batch]:
            rows = watch.given(selected(input_, model, options, report, capacity, undecoded=undecoded))
            return agreement.named(rows, input_.name) if agreement else rows

        undecoded = self._takes_undecoded(options, undecoded)
        from fastprof.bridges.rows.unheld import Unheld

        watch = Unheld(model, self.holds, report)
        agreement = None
        if self.several:
            from fastprof.bridges.sums.agree import Agreement

            agreement = Agreement(model, options, report)
        joined: Any = chain.from_iterable(map(rows_of, self.branches))
        if self.joined and self.joined[0].streams:
            joined = [rows_of(branch._replace(inputs=[one])) for branch in self.branches for one in branch.inputs]
        try:
            yield from watch.taken(through(joined, self.joined, self.holds))
            watch.tell()
            if left is None:
                remaining.check(model, options, report)
        finally:  # a query may take only some of the rows
            self._advise(report)

    def _advise(self, report: Report) -> None:
        """Warn of inputs whose functions have no names but could have them, where names are shown."""
        if self.holds.names:
            for input_ in chain.from_iterable(branch.inputs for branch in self.branches):
                if input_.advice:
                    report.warn(input_.advice)

    def _takes_undecoded(self, options: Options, asked: bool) -> bool:
        """Does the rows' only input stand right before an operator that decodes them, or before who does?"""
        first, *others = self.branches
        if others or len(first.inputs) > 1 or self.several or cores_of(options) == 1:
            return False
        operators = [*first.operators, *first.bridge, *self.joined]
        return operators[0].undecoded if operators else asked


def selected(
    input_: Input,
    model: Model,
    options: Options,
    report: Report,
    capacity: int | None = None,
    *,
    undecoded: bool = False,
) -> Iterator[Batch]:
    """The rows of an input that the options of its view's `bridges.SELECT` choose; see Input.rows."""
    operator = bridges.SELECT[input_.view]
    asked = [option for option in operator.options if option in options and option not in input_.selects]
    rows = input_.rows(capacity, undecoded=undecoded and not asked)
    if not asked:
        return rows
    filters = Options(**{option.name: options[option] for option in asked})
    return operator.load()(rows, model, filters, report, EVERYTHING)


class Left:
    """Whether filters leave anything."""

    def __init__(self) -> None:
        self._any = False

    def seen(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        """The same batches.  A part that is empty in its source is something, too."""
        for batch in batches:
            self._any = self._any or not len(batch) or batch.says_something
            yield batch

    def check(self, model: Model, options: Options, report: Report) -> None:
        """Errors: UsageError if filters left out everything."""
        if report.left_out and not self._any:
            from fastprof.bridges.rows.filter import nothing_left

            raise UsageError(f"{inputs_of(model)}{nothing_left(model, options)}")


_MOST_STREAMS = 16  # inputs that are read at the same time: each has its file open, and windows


def make(
    inputs: Sequence[Input],
    view: str,
    holds: Holds,
    options: Options,
    *,
    merge: bool = False,
    hasty: bool = False,
) -> Plan:
    """The plan from `inputs` to a target with this view, which has room for what `holds` says.

    `merge`: an only input is treated as one of several, its parts become one.
    `hasty`: rows may raise OutOfOrder; then everything is done again with a plan that is not hasty.

    Errors: UsageError for a view that cannot be reached.
    """
    # a filter has to apply to each input
    looked_at = set.intersection(*({*bridges.SELECT[input_.view].options} for input_ in inputs))
    branches: list[Branch] = []
    together: dict[tuple[str, ...], Branch] = {}
    addresses = any(input_.addresses for input_ in inputs if input_.view == "stacks")
    for input_ in inputs:
        operators = _before_bridge(input_, view, holds, options, looked_at, addresses)
        bridge = [_bridge(input_, view, holds)] if input_.view != view else []
        looked_at.update(*(operator.options for operator in operators + bridge))
        # what is alike shares a branch, so that arcs, contexts and symbols are those of all inputs from the beginning
        key = input_.view, *(operator.place for operator in operators + bridge)
        if any(operator.each for operator in operators + bridge) or key not in together:
            branches.append(Branch([], operators, bridge))
            together[key] = branches[-1]
        together[key].inputs.append(input_)
    table = options[bridges.TABLE] if holds.table else None
    if table and table not in bridges.TABLES[view]:
        raise UsageError(
            f"{inputs[0].name}: there is no table {table} of a {view} profile, only {', '.join(bridges.TABLES[view])}"
        )
    several = (merge or len(inputs) > 1) and view != "timeline"
    # what bridges have made of several inputs is one profile already
    n = sum(1 if branch.bridge else len(branch.inputs) + merge for branch in branches)
    in_order = hasty and len(inputs) <= _MOST_STREAMS and all(formats.get(one.format).in_order for one in inputs)
    if len(branches) == 1 and inputs[0].view == "timeline":
        n = 0  # the stack machine gives each stack once, and as the target holds it
    elif holds.apart:
        n = 1
    joined = _joined(view, n, several and not holds.apart, in_order, holds, options, looked_at)
    if {bridges.UNION.name, bridges.INTERSECT.name} <= options.given.keys():
        raise UsageError("--union keeps all value types and --intersect those of all inputs: choose one")
    if several:
        if options[bridges.INTERSECT]:
            behind = (bridges.ONE_VALUE, *bridges.TO_TABLE.values())
            at = next((i for i, operator in enumerate(joined) if operator in behind), len(joined))
            joined.insert(at, bridges.COMMON_VALUES)
        looked_at.update(bridges.COMMON_VALUES.options)
    looked_at.update(*(operator.options for operator in joined))
    if view == "stacks" and not holds.labels:
        looked_at -= {bridges.LABELS, *([] if holds.threads else [bridges.PER_THREAD])}
    kept: dict[Option[Any], Any] = {bridges.AGGREGATE: True} if {*joined} & bridges.ADD_UP_PLACES else {}
    if view != "stacks" or not holds.labels:
        kept[bridges.LABELS] = ()
    return Plan(branches, joined, looked_at, holds, several, kept)


# Options that need names.
_BY_NAME = (bridges.FUNCTION, *bridges.RENAME.options)


def _before_bridge(
    input_: Input, view: str, holds: Holds, options: Options, looked_at: set[Option[Any]], addresses: bool
) -> list[Operator]:
    """`addresses`: whether some input has stacks with addresses; then all stacks go the same way."""
    operators = []
    # an archive keeps addresses of stacks, which can be symbolized later; a graph does not keep them
    may_be_named = input_.view == "stacks" and addresses and holds.names
    by_name = any(option in options for option in _BY_NAME)
    if may_be_named and (not holds.verbatim or view == "graph" or SYMBOLS in options or by_name):
        if options[SYMBOLIZE]:
            operators.append(bridges.NAME_ADDRESSES)
        looked_at.add(SYMBOLIZE)
    if bridges.FUNCTION in options or bridges.OBJECT in options:
        operators.append(bridges.FUNCTIONS)
    if any(options[option] for option in bridges.RENAME.options):
        operators.append(bridges.RENAME)
    looked_at.update(*(operator.options for operator in (bridges.FUNCTIONS, bridges.RENAME)))
    if input_.formulas:
        if options[bridges.COMPUTE_EVENTS]:
            operators.append(bridges.COMPUTE)
        looked_at.add(bridges.COMPUTE_EVENTS)
    return operators


def _bridge(input_: Input, view: str, holds: Holds) -> Operator:
    for operator in bridges.BRIDGES:
        if (operator.source, operator.target) == (input_.view, view):
            return operator
    they = "a graph does" if input_.view == "graph" else "stacks do"
    instead = f"; {holds.instead}" if holds.instead else ""
    raise UsageError(f"{input_.name}: {they} not say when things happened, which a timeline is made of{instead}")


def _joined(
    view: str, n: int, several: bool, in_order: bool, holds: Holds, options: Options, looked_at: set[Option[Any]]
) -> list[Operator]:
    """The operators for the rows of all branches together, which are of `n` profiles that bridges have not made one; of
    stacks 0 means that there is nothing to add up."""
    operators: list[Operator] = []
    if view == "timeline":
        if holds.nested:
            operators.append(bridges.NEST)
        if holds.table:
            operators.append(bridges.TO_TABLE[view])
        return operators
    if view == "stacks":
        if holds.repeats_frames:
            operators.append(bridges.SHALLOW)
        if n and not holds.places:
            operators.append(bridges.ONLY_NAMES)
        if n > 1:
            operators.append(bridges.SUM_STACKS)
        elif n and not holds.times:
            operators.append(bridges.EQUAL_STACKS)
    elif not holds.calls:
        by_stream = bridges.MERGE_LINES_IN_ORDER if several else bridges.LINES_IN_ORDER
        operators.append(by_stream if in_order else bridges.SUM_LINES)
    elif several:
        operators.append(bridges.MERGE_GRAPHS)
    else:
        if options[bridges.AGGREGATE]:
            operators.append(bridges.SUM_PLACES)
        looked_at.add(bridges.AGGREGATE)
    if options[bridges.VALUE] is not None or not holds.values:
        operators.append(bridges.ONE_VALUE)
    looked_at.add(bridges.VALUE)
    if holds.table:
        operators.append(bridges.TO_TABLE[view])
    return operators


def refuse_total_loss(inputs: Iterable[Input], writer: Writer, report: Report) -> None:
    """Errors: UsageError if rows were read, and none of what they say was written."""
    from fastprof.bridges.rows.unheld import CODES

    no_rows = {"zero-values", *CODES}
    not_written = report.not_representable.counted()
    lost = sorted(entry.counted(n, values, flags=True) for entry, values, n in not_written if entry.code not in no_rows)
    if not writer.written and lost and any(input_.n_read for input_ in inputs):
        advice = "".join(f"; {text}" for text in (writer.advice, report.zeros) if text)
        raise UsageError(
            f"{inputs_of(writer.model)}nothing of it can be written as {writer.format}: {', '.join(lost)}{advice}"
        )


# ---- options ------------------------------------------------------------


def known_options() -> list[Option[Any]]:
    """All options, each once, in the order of their owners."""
    found: dict[Option[Any], None] = {LENIENT: None, CORES: None}
    for operator in bridges.OPERATORS:
        found |= dict.fromkeys(operator.options)
    for f in formats.formats():
        found |= dict.fromkeys((*f.reads, *f.selects, *f.writes))
    return [*found]


def reading_options() -> list[Option[Any]]:
    """The options that readers look at."""
    found: dict[Option[Any], None] = {LENIENT: None, CORES: None}
    for operator in bridges.SELECT.values():
        found |= dict.fromkeys(operator.options)
    for f in formats.formats():
        found |= dict.fromkeys((*f.reads, *f.selects))
    return [*found]


def viewing_options(idle: Iterable[Option[Any]]) -> list[Option[Any]]:
    """The options that readers and operators look at, without those in `idle`, which would do nothing in a view, and
    the one that names a table to be written."""
    found = {*reading_options(), *(option for operator in bridges.OPERATORS for option in operator.options)}
    return [option for option in known_options() if option in found.difference(idle, (bridges.TABLE,))]


def idle(
    options: Options, inputs: Sequence[Input], target: Format | None = None, plan: Plan | None = None
) -> list[Option[Any]]:
    """The options that nothing looks at on the way from `inputs` to `target`."""
    if not options.given:
        return []
    sources = [formats.get(input_.format) for input_ in inputs]
    used: set[Option[Any]] = {LENIENT, CORES, *(target.writes if target else ())}
    used |= plan.looked_at if plan else {*bridges.SELECT[inputs[0].view].options}
    used.update(*(source.reads for source in sources))
    used.update(set.intersection(*(set(source.selects) for source in sources)))
    met: dict[str, list[Option[Any]]] = {}  # by names that were given without their format
    for option in used:
        if option.format and option.name in options.given:
            met.setdefault(option.name, []).append(option)
    for name, several in met.items():
        if len(several) > 1:
            raise ambiguous(name, sorted(several, key=lambda option: option.key))
    return [o for o in known_options() if o in options and o not in used and o.name not in met]


def refuse_idle(
    options: Options,
    inputs: Sequence[Input],
    target: Format | None = None,
    plan: Plan | None = None,
    passed_over: Callable[[Option[Any]], None] | None = None,
) -> None:
    """Refuse options that nothing looks at, unless they ask for what happens anyway.  Errors: UsageError.

    `passed_over` is told of those that are not refused: all but filters, without which there would be other rows.
    """
    for option in idle(options, inputs, target, plan):
        value = options[option]
        kept = plan.kept.get(option, ...) if plan else ...
        if value in (options.default_of(option), kept) or value in option.kept_unused:
            continue
        if passed_over is not None and option.group != "filters":
            passed_over(option)
            continue
        # the error names the first input that does not select by this option
        first = next(
            input_
            for input_ in inputs
            if option not in (*formats.get(input_.format).selects, *bridges.SELECT[input_.view].options)
        )
        way = f"from {first.format} to {target.name}" if target else f"with {first.format}"
        raise UsageError(
            f"{first.name}: {option.flag} would do nothing {way}: it is for {owners(option)}" + _first(option, first)
        )


def owners(option: Option[Any]) -> str:
    """The formats and operators that look at an option, for a sentence."""
    if option in (LENIENT, CORES):
        return "reading any format"
    found = [f"reading {f.name}" for f in formats.formats() if option in (*f.reads, *f.selects)]
    found += [f"writing {f.name}" for f in formats.formats() if option in f.writes]
    found += dict.fromkeys(operator.title for operator in bridges.OPERATORS if option in operator.options)
    return " and ".join(filter(None, (", ".join(found[:-1]), *found[-1:])))


def _first(option: Option[Any], input_: Input) -> str:
    """The end of the error: a format to convert to first, so that the option does something; "" if there is none."""
    kept = formats.get(input_.format).view == "any"
    for f in formats.formats():
        if f.writer and (option in f.selects or (kept and option in f.reads and f.view == input_.view)):
            return f"; convert it to {f.name} first"
    return ""
