"""The plan from inputs to an end: the operators for their rows, and the options used.

The plan is data.  The rows of each input pass through the operators of its branch; then the rows of all branches pass
through the operators in `joined`:

    trace.xray   timeline ── fold ──┐
    day1.prof    stacks ── symbolize┴── sum ── one value ──▶ writer

Operators declare when they are needed (bridges/__init__.py).  Inputs that become one profile must have the same
value types (bridges/sums/agree.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import chain, product

from fastprof import bridges, formats
from fastprof.bridges import Facts, Operator
from fastprof.bridges.selected import selected
from fastprof.core._typing import TYPE_CHECKING, Any, NamedTuple
from fastprof.core.engine import EVERYTHING, Capabilities, Format, Input, OtherView
from fastprof.core.errors import UsageError, usage_error
from fastprof.core.loaded import loaded
from fastprof.core.log import Log
from fastprof.core.model import Batch, Model
from fastprof.core.options import CORES, LENIENT, SPLIT, Option, Options, ambiguous, cores_of

if TYPE_CHECKING:
    from fastprof.bridges.rows.loss_watch import LossWatch
    from fastprof.bridges.sums.scale import Scaled


class End(NamedTuple):
    """The end of a plan: a writer, or the table of a verb.  verbs/run.py runs it.

    `code` is "module:function" of fastprof, imported when first used: run(pipelines, model, options, log, ...) ->
    result, which pulls the rows of each pipeline.  `...` are arguments of the verb, such as the path of an output.  The
    result of a writer is a context manager of its outputs, so that the runner checks them before they become visible.
    """

    name: str
    # The view of its rows: one for all inputs, which may depend on their views; "": each input keeps its own.
    view: str | Callable[[Iterable[str]], str] = ""
    holds: Capabilities = EVERYTHING
    options: tuple[Option[Any], ...] = ()  # that its code uses
    performs: tuple[Operator, ...] = ()  # operators that it performs itself, so the plan leaves them out
    fixes: Mapping[Option[Any], Any] = {}  # options with fixed values, which users cannot set
    writes: bool = False  # a profile, in the format of its name
    second_view: str = ""  # writes: a second view, whose rows it takes, too, of inputs that have both
    single: bool = False  # takes one input, which may be a directory if its format is one
    code: str = ""

    def load(self) -> Callable[..., Any]:
        found: Callable[..., Any] = loaded(f"fastprof.{self.code}")
        return found


def writing(target: Format, code: str = "") -> End:
    also = target.second_view if target.holds_both else ""
    return End(target.name, target.view_for, target.holds, target.writes, writes=True, second_view=also, code=code)


class Branch(NamedTuple):
    """Inputs whose rows pass through the same operators."""

    inputs: list[Input]
    operators: list[Operator]  # within the view of the inputs
    bridge: list[Operator]  # to the view of the target, if different

    @property
    def renews_stacks(self) -> bool:
        """Whether the source of its stacks adds them again after the model has dropped them."""
        added_up = any(one.scale and one.scale.is_fraction for one in self.inputs)
        return all(one.renews_stacks for one in self.inputs) and {*self.operators} <= bridges.RENEWABLE and not added_up


class Pipeline(NamedTuple):
    """The rows of some inputs as one view."""

    side: int
    view: str
    branches: list[Branch]
    joined: list[Operator]  # for the rows of all branches
    several: bool  # profiles, whose value types are compared
    holds: Capabilities
    options: Options  # of operators
    remaining: LossWatch
    optimistic: bool  # see Plan
    is_only: bool  # no other pipeline uses the model

    @property
    def inputs(self) -> Iterator[Input]:
        return chain.from_iterable(branch.inputs for branch in self.branches)

    def rows(self, model: Model, log: Log, capacity: int | None = None, *, encoded: bool = False) -> Iterator[Batch]:
        """The batches for the end.  `capacity`: maximum rows of a reader's batch.  `encoded`: the caller also accepts
        Encoded batches.  Inputs are read one after the other.

        Errors: NothingLeft if filters leave nothing of all inputs.
        """
        options, encoded, (holds, holds_joined) = self.options, self._takes_encoded(encoded), self._held()

        def through(rows: Iterator[Batch], operators: list[Operator], holds: Capabilities) -> Iterator[Batch]:
            for operator in operators:
                rows = operator.load()(rows, model, options, log, holds)
            return rows

        def rows_of(branch: Branch) -> Iterator[Batch]:
            stacks = branch.inputs[0].view == "stacks"
            scaled = self._scaled(branch, model)
            rows: Iterator[Batch] = chain.from_iterable(read(one, scaled) for one in branch.inputs)
            # stacks have value types when they are read; those of a timeline are made by a bridge
            if stacks:
                rows = self._valued(rows, model, agreement)
            rows = self.remaining.seen(through(rows, branch.operators, holds))
            rows = scaled.rows(rows) if scaled and branch.inputs[0].view != "timeline" else rows
            renewed = holds._replace(keeps_stacks=not branch.renews_stacks) if stacks else holds
            rows = through(rows, branch.bridge, renewed)
            if labels and branch.inputs[0].view not in (self.view, "graph"):
                rows = labelled(rows, model, labels.of(branch.inputs[0].name, log), self.view)
            rows = scaled.rows(rows) if scaled and branch.inputs[0].view == "timeline" else rows
            return rows if stacks else self._valued(rows, model, agreement)

        labels = None  # parts of a graph get them at once: filters see them and the estimate passes them on
        if bridges.keeps_input_labels(self.view, self.holds) and bridges.LABEL_INPUTS.is_requested(options):
            from fastprof.bridges.rows.label import InputLabels, labelled

            labels = InputLabels(options)

        def read(input_: Input, scaled: Scaled | None) -> Iterator[Batch]:
            given = labels.of(input_.name, log) if labels and input_.view in (self.view, "graph") else {}
            rows = selected(input_, model, options, log, capacity, encoded, given)
            if scaled:
                rows = scaled.begin(input_, rows, options, holds)
            rows = watch.given(rows) if watch else rows
            return agreement.named(rows, input_.name) if agreement else rows

        watch, agreement = self._watch(model, log), None
        if self.several:
            from fastprof.bridges.sums.agree import Agreement

            agreement = Agreement(model, options, log)
        joined: Any = self._bounded(chain.from_iterable(map(rows_of, self.branches)), model, copied=True)
        if self.joined and self.joined[0].streams:
            joined = [rows_of(branch._replace(inputs=[one])) for branch in self.branches for one in branch.inputs]
        try:
            rows = self._bounded(through(joined, self.joined, holds_joined), model, copied=False)
            yield from watch.taken(rows) if watch else rows
            if watch:
                self.remaining.log_losses(watch)
            tagged = any(bridges.TAG in (*one.operators, *one.bridge, *self.joined) for one in self.branches)
            self.remaining.end(model, options, log, tagged=tagged)
        finally:  # a query may read only some of the rows
            self._advise(log)

    def _scaled(self, branch: Branch, model: Model) -> Scaled | None:
        """What multiplies the values of a branch with weights."""
        if all(one.scale is None for one in branch.inputs):
            return None
        from fastprof.bridges.sums.scale import Scaled

        return Scaled(model)

    def _held(self) -> tuple[Capabilities, Capabilities]:
        """What operators know: those of branches, and those of the rows of all branches."""
        renewed = self.is_only and self.renews_stacks and all(one.renews_frames for one in self.inputs)
        named = all({*one.operators} <= {bridges.NAME_ADDRESSES} and not one.bridge for one in self.branches)
        # adding up the stacks of several branches needs all of them
        keeps, of_one = self.holds.keeps_stacks or len(self.branches) > 1, len([*self.inputs]) == 1
        return (
            self.holds._replace(keeps_stacks=keeps, replaces_frames=renewed, of_one=of_one),
            self.holds._replace(renews_stacks=self._may_empty_stacks, replaces_frames=renewed and named),
        )

    @property
    def renews_stacks(self) -> bool:
        return all(branch.renews_stacks for branch in self.branches)

    @property
    def _may_empty_stacks(self) -> bool:
        """Whether operators for the rows of all branches may empty the model's stacks."""
        may = self.view == "stacks" and (self.is_only or not self.holds.keeps_stacks)
        return may and self.renews_stacks and not any(branch.bridge for branch in self.branches)

    def _bounded(self, rows: Iterator[Batch], model: Model, *, copied: bool) -> Iterator[Batch]:
        """The rows, without the stacks of earlier batches if nothing refers to them; a table has `copied` its rows."""
        keeps = self.holds.keeps_stacks or {*self.joined} & bridges.KEEP_STACKS
        if keeps or copied != self.holds.table or not self._may_empty_stacks:
            return rows
        from fastprof.bridges.room import most_passed, within

        return within(self.holds.stacks_at_a_time or most_passed(self.options[bridges.MAX_MEMORY]), rows, model)

    def _watch(self, model: Model, log: Log) -> Any:
        """What counts losses on the way to the end; None if the rows reach it unchanged and it holds everything."""
        changed = self.joined or any(branch.operators or branch.bridge for branch in self.branches)
        if not changed and not self.holds.lacks and self.holds.header is None:
            return None
        return self.remaining.watch(model, self.holds, log)

    def _valued(self, rows: Iterator[Batch], model: Model, agreement: Any) -> Iterator[Batch]:
        """The rows with renamed value types, which must agree between inputs."""
        names = self.remaining.names(self.options) if self.view != "timeline" else None
        if names:
            from fastprof.bridges.rows.value_names import renamed

            rows = renamed(rows, model, names)
        return agreement.compared(rows) if agreement else rows

    def _advise(self, log: Log) -> None:
        """If the target shows names, warn of inputs whose functions lack names but could have them."""
        if self.holds.names:
            for input_ in self.inputs:
                if input_.advice:
                    log.warn(input_.advice, file=input_.name)

    def _takes_encoded(self, end_decodes: bool) -> bool:
        """Whether a single input is directly followed by an operator or end that decodes rows."""
        first, *others = self.branches
        if others or len(first.inputs) > 1 or self.several or cores_of(self.options) == 1:
            return False
        if first.inputs[0].view != "timeline" and bridges.RENAME_VALUES.is_requested(self.options):
            return False
        operators = [*first.operators, *first.bridge, *self.joined]
        return operators[0].encoded if operators else end_decodes


class Plan(NamedTuple):
    end: End
    inputs: list[Input]
    # by side, then by view; an end with one view has one per side, and one if `also` has rows
    pipelines: list[Pipeline]
    used: set[Option[Any]]  # by readers, operators and the end, or because they would add an operator
    kept: dict[Option[Any], Any]  # options that nothing uses, with values that this plan satisfies anyway
    optimistic: bool  # rows may raise OutOfOrder; then start over with a plan that is not

    def rows(self, model: Model, log: Log, capacity: int | None = None) -> Iterator[Batch]:
        """The rows of all pipelines, one after the other."""
        for pipeline in self.pipelines:
            yield from pipeline.rows(model, log, capacity)


def make(
    sides: Sequence[Sequence[Input]], end: End, options: Options, *, merge: bool = False, optimistic: bool = False
) -> Plan:
    """The plan from the inputs to an end, which has one side or compares two.

    `merge`: the parts of a single input are merged, as those of several inputs are.
    `optimistic`: see Plan.

    Errors: UsageError for a view that cannot be reached.
    """
    inputs = [*chain.from_iterable(sides)]
    fixed = {option.name: value for option, value in end.fixes.items() if options[option] != value}
    options = options.with_given(**fixed) if fixed else options
    choose_views(end, inputs)
    view = end.view if isinstance(end.view, str) else end.view(input_.view for input_ in inputs)
    plan = Plan(end, inputs, [], _used_by_readers(inputs), {}, optimistic)
    found: list[tuple[int, str, list[Input]]] = []
    for number, side in enumerate(sides):
        for target in [view] if view else dict.fromkeys(input_.view for input_ in side):
            found.append((number, target, [input_ for input_ in side if view or input_.view == target]))
        if others := _others(end, view, side, options):
            found.append((number, end.second_view, others))
    from fastprof.bridges.rows.loss_watch import LossWatch

    remaining = LossWatch(len(found), both=any(target == end.second_view for _, target, _ in found if view != target))
    for number, target, mine in found:
        is_only = len(found) == 1
        plan.pipelines.append(_pipeline(plan, number, mine, target, options, remaining, merge=merge, is_only=is_only))
    performed = (one for one in end.performs if one.source in {"any", *(input_.view for input_ in inputs)})
    plan.used.update(end.options, *(one.options for one in performed))
    plan.used.difference_update(end.fixes)
    return plan


def checked(
    end: End,
    sides: Sequence[Sequence[Input]],
    options: Options,
    *,
    merge: bool = False,
    optimistic: bool = False,
    idle: Callable[[Option[Any]], None] | None = None,
) -> Plan:
    """The plan of a verb for open inputs.

    `idle` is called with options without effect, which are otherwise refused.
    Errors: UsageError for a view that cannot be reached, and for options without effect.
    """
    made = make(sides, end, options, merge=merge, optimistic=optimistic)
    refuse_idle(options, made, idle)
    return made


def choose_views(end: End, inputs: Sequence[Input]) -> None:
    """Choose the other view of inputs that have one, if the end shows only timelines, or shows timelines too and no
    input has rows in its first view.

    Ends that keep every view, such as archives, keep the first one: what they hold may be merged later, and an idle
    recording must not differ from others in its value types.
    """
    if isinstance(end.view, str):
        is_only, is_shown = False, not end.view
    else:
        is_only = end.view(["stacks"]) == "timeline"
        is_shown = end.view(["timeline"]) == "timeline" and end.view(["graph"]) != "graph"
    if is_only or (is_shown and all(input_.other_view and input_.prefers_other_view() for input_ in inputs)):
        for input_ in inputs:
            input_.view = input_.other_view or input_.view


def _others(end: End, view: str, inputs: Iterable[Input], options: Options) -> list[Input]:
    """The rows that an end takes besides those of its view.

    There are none if only one of both views can be filtered, or split among files, as the options ask.
    """
    if not end.second_view or view == end.second_view or options[SPLIT]:
        return []
    own, other = bridges.SELECT[view].options, bridges.SELECT[end.second_view].options
    if any(one.name in options.given for one in {*own} ^ {*other}):
        return []
    return [OtherView(one) for one in inputs if one.view == view and one.other_view == end.second_view]


def _used_by_readers(inputs: list[Input]) -> set[Option[Any]]:
    """Filters must apply to every input, other options to at least one."""
    sources = [formats.get(input_.format) for input_ in inputs if input_.format]
    used: set[Option[Any]] = {LENIENT, CORES}
    used.update(*(source.reads for source in sources))
    used |= set.intersection(*({*bridges.SELECT[input_.view].options} for input_ in inputs))
    return used.union(set.intersection(*({*source.selects} for source in sources)) if sources else ())


def _pipeline(
    plan: Plan,
    side: int,
    inputs: list[Input],
    view: str,
    options: Options,
    remaining: LossWatch,
    *,
    merge: bool,
    is_only: bool,
) -> Pipeline:
    end, holds, used = plan.end, plan.end.holds, set[Option[Any]]()
    done = {one.code for one in end.performs}

    def placed(operators: Iterable[Operator], facts: Facts) -> list[Operator]:
        found = [one for one in operators if one.code not in done and one.applies(facts)]
        requested = [one for one in found if one.is_requested(options)]
        used.update(*(one.switches for one in found), *(one.options for one in requested))
        return requested

    labelled = bridges.keeps_input_labels(view, holds) and bridges.LABEL_INPUTS.is_requested(options)
    used.update(*(one.options for one in _of_each_input([view], holds)))
    branches: list[Branch] = []
    together: dict[tuple[str, ...], Branch] = {}
    shared = _shared_facts(inputs, view, holds, options)
    for input_ in inputs:
        facts = shared._replace(source=input_.view, formulas=input_.formulas)
        operators = placed(bridges.BEFORE, facts)
        bridge = placed([_bridge(input_, view, holds), bridges.FOCUS_ESTIMATE], facts) if input_.view != view else []
        # similar inputs share a branch, and so their arcs, contexts and symbols
        key = input_.view, *(operator.code for operator in operators + bridge)
        is_labelled = labelled and input_.view not in (view, "graph")
        is_separate = any((is_labelled, input_.scale and input_.view == "timeline"))
        if is_separate or any(operator.each for operator in operators + bridge) or key not in together:
            branches.append(Branch([], operators, bridge))
            together[key] = branches[-1]
        together[key].inputs.append(input_)
    several = (merge or len(inputs) > 1) and view != "timeline"
    facts = Facts(view, view, holds, options, several and not holds.unmerged, several)
    facts = facts._replace(**_profiles(branches, holds, merge), in_order=_in_order(plan))
    joined = placed(bridges.AFTER, facts._replace(distinct=_is_distinct(branches)))
    if bridges.THREAD_ROOTS in joined:
        holds = holds._replace(threads=True, lacks=holds.lacks - {"thread-names"})
    kept = max(holds.keeps_stacks, holds.stacks_at_a_time) > 0
    _tell(branches, joined, options, holds, keeps_stacks=end.writes and kept and not joined)
    _check(inputs, view, holds, options)
    used.update(bridges.COMMON_VALUES.options if several else ())
    plan.used.update(_used(used, inputs, view, holds))
    if {*joined} & bridges.ADD_UP_PLACES:
        plan.kept[bridges.AGGREGATE] = True
    if view != "stacks" or not holds.labels:
        plan.kept[bridges.LABELS] = ()
    if view == "timeline":
        plan.kept[bridges.PER_THREAD] = True
    return Pipeline(side, view, branches, joined, several, holds, options, remaining, plan.optimistic, is_only)


def _used(used: set[Option[Any]], inputs: list[Input], view: str, holds: Capabilities) -> set[Option[Any]]:
    """Options of operators without those that do nothing for stacks without labels, and the limit of stacks."""
    if view != "stacks":
        return used
    within = not (holds.keeps_stacks or holds.stacks_at_a_time) and all(one.renews_stacks for one in inputs)
    idle = {bridges.LABELS} if holds.threads or holds.names else {bridges.LABELS, bridges.PER_THREAD}
    return used.union([bridges.MAX_MEMORY] if within else ()) - (set() if holds.labels else idle)


def _shared_facts(inputs: list[Input], view: str, holds: Capabilities, options: Options) -> Facts:
    """If some input has stacks with addresses or of an allocator, all stacks use the same operators."""
    stacks = [input_ for input_ in inputs if input_.view == "stacks"]
    addresses, allocator = any(one.addresses for one in stacks), any(one.allocator for one in stacks)
    return Facts("stacks", view, holds, options, addresses=addresses, allocator=allocator)


def _profiles(branches: list[Branch], holds: Capabilities, merge: bool) -> dict[str, Any]:
    """The `to_merge` and `added_up` of Facts."""
    added_up = len(branches) == 1 and branches[0].inputs[0].view == "timeline"
    # bridges have already merged several inputs into one profile
    n = 1 if holds.unmerged else sum(1 if branch.bridge else len(branch.inputs) + merge for branch in branches)
    return {"to_merge": n > 1, "added_up": added_up}


def _is_distinct(branches: list[Branch]) -> bool:
    """The `distinct` of Facts."""
    inputs = [input_ for branch in branches for input_ in branch.inputs]
    kept = all({one.code for one in branch.operators} <= bridges.KEEP_DISTINCT for branch in branches)
    return len(inputs) == 1 and inputs[0].distinct and kept and not branches[0].bridge


def _tell(branches: Any, joined: list[Operator], options: Options, holds: Capabilities, *, keeps_stacks: bool) -> None:
    """Let readers of stacks begin to add up rows, if an operator does so before anything looks at single ones, and add
    stacks only once, if these rows reach a writer that keeps them.  `holds`: whether it takes branches."""
    for branch, input_ in ((one, input_) for one in branches for input_ in one.inputs):
        input_.branches = holds.branches
        input_.keeps_stacks = keeps_stacks and not branch.operators and not branch.bridge
    preventing = {option.name for option in (*bridges.SELECT["stacks"].options, *bridges.RENAME_VALUES.options)}
    if not preventing.isdisjoint(options.given):  # without counting as a use of them
        return
    for branch in branches:
        added_up = {*branch.bridge, *joined} & bridges.ADD_UP_STACKS
        for input_ in branch.inputs if added_up and not branch.operators else ():
            input_.summed = input_.view == "stacks"


def _in_order(plan: Plan) -> bool:
    most, inputs = 16, plan.inputs  # read at the same time: each has an open file and windows
    return plan.optimistic and len(inputs) <= most and all(formats.get(one.format).in_order for one in inputs)


def _check(inputs: list[Input], view: str, holds: Capabilities, options: Options) -> None:
    """Check the options.  Errors: UsageError if they contradict each other or the view."""
    table = options[bridges.TABLE] if holds.table else None
    if table and table not in bridges.TABLES[view]:
        tables = ", ".join(bridges.TABLES[view])
        raise UsageError(f"{inputs[0].name}: a {view} profile has no table {table}, only {tables}")
    if view == "timeline" and any(one.scale for one in inputs):
        raise UsageError(
            f"{inputs[0].name}: a timeline has no values to weight; write a profile, as pprof or callgrind"
        )
    if {bridges.UNION.name, bridges.INTERSECT.name} <= options.given.keys():
        raise usage_error("{--union} keeps all value types and {--intersect} those of all inputs: choose one")


def _bridge(input_: Input, view: str, holds: Capabilities) -> Operator:
    for operator in bridges.BRIDGES:
        if (operator.source, operator.target) == (input_.view, view):
            return operator
    they = "a graph has" if input_.view == "graph" else "stacks have"
    advice = f"; {holds.alternative}" if holds.alternative else ""
    raise UsageError(f"{input_.name}: {they} no begin and end of calls, which a timeline needs{advice}")


# ---- options ------------------------------------------------------------


@cache
def known_options() -> tuple[Option[Any], ...]:
    """All options, each once, in the order of their owners."""
    found: dict[Option[Any], None] = {LENIENT: None, CORES: None}
    for operator in bridges.OPERATORS:
        found |= dict.fromkeys(operator.options)
    for f in formats.formats():
        found |= dict.fromkeys((*f.reads, *f.selects, *f.writes))
    return (*found,)


def reading_options() -> list[Option[Any]]:
    """The options that readers use."""
    found: dict[Option[Any], None] = {LENIENT: None, CORES: None}
    for operator in bridges.SELECT.values():
        found |= dict.fromkeys(operator.options)
    for f in formats.formats():
        found |= dict.fromkeys((*f.reads, *f.selects))
    return [*found]


def options_of(end: End) -> list[Option[Any]]:
    """The options that any plan for this end may use: those of the end, then those of readers and operators."""
    found = {*reading_options()}
    found.update(*(one.options for one in (*end.performs, *_reachable(end))))
    found -= end.fixes.keys()
    own = {option.key for option in end.options}
    return [*end.options, *(option for option in known_options() if option in found and option.key not in own)]


def options_after(end: End, views: Iterable[str]) -> list[Option[Any]]:
    """The options that apply to rows of one of these views, which need no bridge, on their way to an end."""
    found = {option for one in _after(end, views) for option in one.options} - end.fixes.keys()
    return [*end.options, *(option for option in known_options() if option in found and option not in end.options)]


def _reachable(end: End) -> Iterator[Operator]:
    """The operators that any plan for this end may have."""
    views = [*bridges.SELECT]
    targets = [end.view] if end.view in views else views
    pairs = [*product(views, targets)] if end.view else [*zip(views, views, strict=True)]
    yield from (one for one in bridges.BRIDGES if (one.source, one.target) in pairs)
    yield from _of_each_input(targets, end.holds)
    yield from _placed(end, bridges.BEFORE, pairs)
    yield from _after(end, targets)


def _after(end: End, views: Iterable[str]) -> Iterator[Operator]:
    return _placed(end, bridges.AFTER, [(view, view) for view in views])


def _placed(end: End, operators: Iterable[Operator], pairs: Iterable[tuple[str, Any]]) -> Iterator[Operator]:
    """The operators that some plan for this end has for rows of one view on their way to another."""
    unmerged, done = end.holds.unmerged, {one.code for one in end.performs}
    several, merges, flags = (False, True), (False,) if unmerged else (False, True), product((False, True), repeat=4)
    cases = [
        Facts(source, target, end.holds, Options(), one and not unmerged, one, n, *rest)
        for (source, target), one, n, rest in product(pairs, several, merges, flags)
    ]
    yield from (one for one in operators if one.code not in done and any(map(one.applies, cases)))


def _of_each_input(targets: Iterable[str], holds: Capabilities) -> Iterator[Operator]:
    """The operators that a pipeline to one of these views applies where an input gets its stacks or values."""
    if any(bridges.keeps_input_labels(view, holds) for view in targets):
        yield bridges.LABEL_INPUTS
    if {*targets} - {"timeline"}:
        yield bridges.RENAME_VALUES


def idle(options: Options, plan: Plan) -> list[Option[Any]]:
    """The options that nothing uses on the way from the inputs to the end."""
    used = {option.key for option in plan.used}
    met: dict[str, list[Option[Any]]] = {}  # by names given without a format
    for option in plan.used:
        if option.format and option.name in options.given:
            met.setdefault(option.name, []).append(option)
    for name, several in met.items():
        if len(several) > 1:
            raise ambiguous(name, sorted(several, key=lambda option: option.key))
    given = options.given
    if given.keys() <= used:  # without opening the doors of all formats
        return []
    found = [one for one in known_options() if one.key in given or one.name in given]
    return [one for one in found if one.key not in used and one.name not in met]


def refuse_idle(options: Options, plan: Plan, passed_over: Callable[[Option[Any]], None] | None = None) -> None:
    """Refuse options that nothing uses, unless the plan satisfies them anyway.  Errors: UsageError.

    `passed_over` is called with such options instead, except filters: ignoring these would change the rows.
    """
    for option in idle(options, plan) if options.given else ():
        value = options[option]
        if value in (options.default_of(option), plan.kept.get(option, ...)) or value in option.kept_unused:
            continue
        if passed_over is not None and option.group != "filters":
            passed_over(option)
            continue
        first = next(
            input_
            for input_ in plan.inputs  # the first one that does not apply this option
            if option not in (*formats.get(input_.format).selects, *bridges.SELECT[input_.view].options)
        )
        writes = any(f.name == plan.end.name for f in formats.formats())
        direction = f"from {first.format} to {plan.end.name}" if writes else f"with {first.format}"
        from fastprof.bridges.labels import only_to

        to = only_to(option, first.view) or owners(option) + _first(option, first)
        nothing = f"has no effect {direction}: it applies to {to}"
        raise usage_error(f"{{file}}: {{{option.flag}}} {{nothing}}", file=first.name, nothing=nothing)


def owners(option: Option[Any]) -> str:
    """The formats and operators that use an option, for a sentence."""
    if option in (LENIENT, CORES):
        return "reading any format"
    found = [f"reading {f.name}" for f in formats.formats() if option in (*f.reads, *f.selects)]
    found += [f"writing {f.name}" for f in formats.formats() if option in f.writes]
    found += dict.fromkeys(operator.title for operator in bridges.OPERATORS if option in operator.options)
    return " and ".join(filter(None, (", ".join(found[:-1]), *found[-1:])))


def _first(option: Option[Any], input_: Input) -> str:
    """The end of the error: a format to convert to first, so that the option has an effect; "" if none."""
    kept = formats.get(input_.format).view == "any"
    for f in formats.formats():
        if f.writer and (option in f.selects or (kept and option in f.reads and f.view == input_.view)):
            return f"; convert it to {f.name} first"
    return ""
