"""Multiplies the values of inputs that are merged: `merge --weight` and `--normalize` (csrc/bridges/sums/scale.h).

    canary.prof   main > f  5     --weight canary=3    main > f  15

Kept: all rows.  Factors are fractions only with --normalize.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction

from fastprof.core._c import ffi, lib
from fastprof.core._typing import TYPE_CHECKING, Pointer, fp_scale
from fastprof.core.c_memory import owned
from fastprof.core.errors import FastprofError, check_sums
from fastprof.core.labels import values_of
from fastprof.core.log import Log
from fastprof.core.model import Batch, Model, Part
from fastprof.core.operator_copy import Changed
from fastprof.core.options import INT64, Options
from fastprof.core.parts import labels_of

if TYPE_CHECKING:
    from fastprof.core.engine import Capabilities, Input

Labels = Mapping[tuple[str, str], int]


class Scale:
    """The factors of one input: of all its values, and in addition of samples with these labels.

    `found` gets the labels that samples, or parts of a graph, have.
    """

    def __init__(self, factor: Fraction, labels: Labels, found: set[tuple[str, str]]) -> None:
        self.factor, self.labels, self._found = factor, labels, found

    @property
    def is_fraction(self) -> bool:
        return self.factor.denominator > 1

    def of(self, own: Mapping[str, str]) -> int:
        """The factor for samples with these labels."""
        factor = 1
        for label in own.items():
            if label in self.labels:
                self._found.add(label)
                factor *= self.labels[label]
        return factor


class Scaled:
    """The rows of several inputs, one after the other, with their values multiplied in place."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._scale: Scale | None = None
        self._input = ""  # its name
        self._of: dict[Fraction, fp_scale] = {}  # by factor; what was rounded is carried from part to part
        self._by_label: list[int] = []
        self._err = ffi.new("struct fp_err *")

    def begin(self, input_: Input, rows: Iterator[Batch], options: Options, holds: Capabilities) -> Iterator[Batch]:
        """The rows of an input as they are before other operators, which give them one by one.

        Equal samples become one row before fractions of them are rounded, unless their times are kept.
        """
        scale: Scale | None = input_.scale
        if scale and scale.is_fraction and input_.view == "stacks" and not holds.unmerged:
            from fastprof.bridges.sums.sum import repeated

            rows = repeated(rows, self._model, options, Log(), holds._replace(keeps_stacks=True, labels=True))
        self._scale, self._of, self._by_label, self._input = scale, {}, [], input_.name
        yield from rows

    def rows(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        changed = Changed(self._model)
        for batch in batches:
            if (scale := self._scale) is None:
                yield batch
                continue
            part = self._model.parts[batch.part]
            factor = scale.factor
            if batch.view == "graph" and scale.labels:
                own = {
                    key.decode("utf-8", "replace"): value.decode("utf-8", "replace") for key, value in labels_of(part)
                }
                factor *= scale.of(own)
            by_label = self._shown(scale) if batch.view == "stacks" and scale.labels else ffi.NULL
            if factor != 1 or by_label != ffi.NULL:
                c = self._state(factor)
                c.by_label, c.n_by_label = by_label, len(self._by_label)
                types = part.value_types
                check_sums(lib.fp_scale_batch(c, batch.c, self._err), self._err, self._model, "weights", types)
            yield from changed.lend(batch, lambda part, factor=factor: _scaled(part, factor))  # type: ignore[misc]
        changed.end()

    def _state(self, factor: Fraction) -> fp_scale:
        if factor not in self._of:
            self._check(max(factor.numerator, factor.denominator))
            self._of[factor] = owned(lib.fp_scale_new(factor.numerator, factor.denominator), "the weight of an input")
        return self._of[factor]

    def _shown(self, scale: Scale) -> Pointer[int]:
        """The factor of each label chain of the model."""
        model, known = self._model, self._by_label
        known += (scale.of(values_of(model, label)) for label in range(len(known), model.count("labels")))
        self._check(max(known, default=1))
        self._array = ffi.new("int64_t[]", known)
        return self._array

    def _check(self, factor: int) -> None:
        """Errors: FastprofError for a product of weights that C cannot hold."""
        if factor > INT64:
            raise FastprofError(f"{self._input}: its weight exceeds 2^63 - 1")


def _scaled(part: Part, factor: Fraction) -> Part:
    """The part, with the totals that its source states."""
    other = copy.copy(part)
    for name in ("summary", "totals"):
        if values := getattr(part, name):
            setattr(other, name, [int(value * factor) for value in values])
    return other
