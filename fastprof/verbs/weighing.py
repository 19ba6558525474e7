"""The weights of profiles that are merged, and their scaling to equal totals.

merge dumps/ --weight canary=3                       dumps/canary.prof counts three times
merge dumps/ --weight zone=eu=2                      samples with the label zone=eu count twice
merge dumps/ --normalize                             the totals of all inputs become the largest one
"""

from collections.abc import Sequence
from fnmatch import fnmatchcase
from fractions import Fraction

from fastprof import plan
from fastprof.bridges import INPUT_LABELS, VALUE
from fastprof.bridges.rows.label import InputLabels
from fastprof.bridges.sums.scale import Scale
from fastprof.core._typing import Any
from fastprof.core.engine import Input, Summary
from fastprof.core.errors import FastprofError, usage_error
from fastprof.core.log import Log
from fastprof.core.model import Model
from fastprof.core.options import INT64, Options
from fastprof.core.parts import default_value
from fastprof.inputs import Inputs, is_file
from fastprof.inputs.stored import file_of, shown_input
from fastprof.verbs.reported import REPORTED
from fastprof.verbs.weight_options import NORMALIZE, OPTIONS, WEIGHT

_MOST = 10**9


class Weights:
    """The factors of inputs: `set` gives them to inputs, `check` refuses weights that nothing had.

    Errors: UsageError.
    """

    def __init__(self, options: Options, end: plan.End, from_: str | None) -> None:
        self._options, self._end, self._from = options, end, from_
        self._names: dict[str, int] = {}
        self._labels: dict[tuple[str, str], int] = {}
        self._found_names, self._found = set[str](), set[tuple[str, str]]()
        for text in options[WEIGHT]:
            name, _, number = text.rpartition("=")
            key, equals, value = name.partition("=")
            n = int(number) if number.isascii() and number.isdigit() and len(number) <= len(str(_MOST)) else 0
            if not name or not 1 <= n <= _MOST or (equals and not key):
                what = "{--weight:=}{text}: expected NAME=N or KEY=VALUE=N, with N from 1 to {most:,}"
                raise usage_error(what, text=text, most=_MOST)
            if name in self._names or (key, value) in self._labels:
                raise usage_error("{--weight:=}{text}: {name} has a weight already", text=text, name=name)
            if equals:
                self._labels[key, value] = n
            else:
                self._names[name] = n
        self._of = InputLabels(options)
        self._totals: dict[str, int] = {}  # by input

    @property
    def end(self) -> plan.End:
        """The end, with the options that weights use."""
        labels = INPUT_LABELS if self._options[WEIGHT] else ()
        return self._end._replace(options=(*self._end.options, *OPTIONS, *labels))

    def set(self, inputs: Sequence[Input], log: Log) -> None:
        factors = self._equal(inputs, log) if self._options[NORMALIZE] else [Fraction(1)] * len(inputs)
        for input_, factor in zip(inputs, factors, strict=True):
            own = self._of.of(input_.name, Log())
            weight = self._weight(input_, own)
            labels = {label: n for label, n in self._labels.items() if label[0] not in own}
            if max(factor.numerator * weight, factor.denominator) > INT64:
                raise FastprofError(f"{input_.name}: its weight exceeds 2^63 - 1")
            if factor * weight != 1 or labels:
                input_.scale = Scale(factor * weight, labels, self._found)
        self._refuse([name for name in self._names if name not in self._found_names], "no input has this name or label")

    def _weight(self, input_: Input, labels: dict[str, str]) -> int:
        path = input_.name.replace("\\", "/").rstrip("/")
        base = path.rpartition("/")[2].rpartition(":")[2]
        names = {input_.name, base, base.partition(".")[0], *labels.values()}
        weight = 1
        for pattern, n in self._names.items():
            if any(fnmatchcase(name, pattern) for name in names):
                self._found_names.add(pattern)
                weight *= n
        for (key, value), n in self._labels.items():
            if labels.get(key) == value:
                self._found.add((key, value))
                weight *= n
        return weight

    def check(self) -> None:
        """Refuse labels that no sample had; call it after the last row."""
        missing = [f"{key}={value}" for key, value in self._labels if (key, value) not in self._found]
        self._refuse(missing, "no sample has this label")

    def _refuse(self, missing: list[str], why: str) -> None:
        for text in self._options[WEIGHT]:
            if text.rpartition("=")[0] in missing:
                raise usage_error("{--weight:=}{text}: {why}", text=text, why=why)

    def _equal(self, inputs: Sequence[Input], log: Log) -> list[Fraction]:
        """The factors by which all inputs have the largest total."""
        if len(inputs) == 1:
            return [Fraction(1)]
        for input_ in inputs:
            if input_.name not in self._totals:
                self._totals[input_.name] = self._total(input_)
        totals = [self._totals[input_.name] for input_ in inputs]
        for input_, total in zip(inputs, totals, strict=True):
            if total <= 0:
                log.warn(REPORTED["no-total"], file=input_.name)
        largest = max(totals)
        return [Fraction(largest, total) if total > 0 else Fraction(1) for total in totals]

    def _total(self, input_: Input) -> int:
        """The total of the default value type, as it reaches the end."""
        path: Any = getattr(input_, "path", None)
        if path is None or not (is_file(path) or isinstance(file_of(path), bytes)):
            what = "{file}: {--normalize:name} reads inputs twice, so this must be a file"
            raise usage_error(what, file=shown_input(input_.name))
        own = {option.name for option in OPTIONS}
        given = {name: value for name, value in self._options.given.items() if name not in own}
        options, model = Options(**given), Model()
        with Inputs([path], self._from, model, options, Log()) as opened:
            made = plan.make([opened.all], self._end, options)
            pipeline = made.pipelines[0]
            summary = Summary()
            for _ in summary.seen(pipeline.rows(model, Log()), model):
                pass
        if summary.overflowed:
            raise FastprofError(f"{input_.name}: the sum of its costs is beyond 64 bits")
        name, total = options[VALUE], 0
        for part, sums in summary.totals().items():
            of_part = model.parts[max(part, 0)]
            names = [one.name for one in of_part.value_types]
            name = name or (names[default_value(of_part, pipeline.view)] if names else None)
            total += sum(n for one, n in zip(names, sums, strict=False) if one == name)
        return total
