"""The labels of a page's contexts: which label sets its samples have, and what each context costs in them.

    set      a label set: how many values it has; then the values of all sets, one set after the other
    value    a value of a label: key (index of head.labels.keys), text (NONE: all values without one of their own)
    context  set: that of what the entries leave of the context's cost; 0: no labels
    label    entries: context (from that of the entry before), set, self cost by column

A page has a limited number of values; those that cost least are added up for each key.  While contexts are added up,
memory is limited too: then the key with the most values is left out.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence

from fastprof.core._c import ffi, lib
from fastprof.core._typing import TYPE_CHECKING, Any, NamedTuple
from fastprof.core.model import Model
from fastprof.verbs.page import NONE, Columns
from fastprof.verbs.top_costs import label_value

if TYPE_CHECKING:
    from fastprof.core._c import fp_context_labels, fp_err

_MOST_ENTRIES = 60_000  # of contexts in a page: a third of its size
_MOST_VALUES = 1_000  # of a key
_MOST_TEXT = 150_000  # bytes of all values
_OTHERS = None  # the text of the values that are added up


class Value(NamedTuple):
    key: str
    text: str | None


Set = tuple[Value, ...]


class Labels:
    """Those of a struct fp_contexts.  After `end`, label sets are indices of `sets`."""

    def __init__(self, model: Model, c: fp_context_labels, fits: Callable[[int], None], err: fp_err) -> None:
        """`fits` raises an error if a status of the C core is one; its details are in `err`."""
        self._model, self.c, self._fits, self._err = model, c, fits, err
        self._values: dict[tuple[int, ...], Value] = {}
        self._most = _MOST_VALUES
        self.sets: list[Set] = [()]
        self.merged: Counter[str] = Counter()  # by key: values that have no entry of their own
        self.left_out: dict[str, int] = {}  # keys, and how many values they had
        self._without = [0]  # by label set of the model: the same without those keys

    # ---- while contexts are added up

    def shrink(self, most: int) -> None:
        """Leave out keys until at most `most` sums are left."""
        if self.left_out:
            self._leave_out()
        while self.c.keys.n > most:
            values: dict[str, set[Value]] = defaultdict(set)
            for label in range(1, self._model.count("labels")):
                value = self._value(label)
                values[value.key].add(value)
            keys = values.keys() - self.left_out.keys()
            if not keys:
                break
            key = max(keys, key=lambda key: (len(values[key]), key))
            self.left_out[key] = len(values[key])
            self._without = [0]
            self._leave_out()

    def _leave_out(self) -> None:
        model = self._model
        for label in range(len(self._without), model.count("labels")):
            after, key, string, low, high, unit = model.row("labels", label)
            after = self._without[after] if after < label else 0
            name, text = model.string(key), model.string(string)
            if _decoded(name) not in self.left_out:
                number = low | high << 32
                after = model.label(name, text, number - (number >> 63 << 64), model.string(unit), after)
            self._without.append(after)
        self._map(self._without)

    def _map(self, to: Sequence[int]) -> None:
        self._fits(lib.fp_context_labels_map(self.c, ffi.new("uint32_t[]", to), len(to), self._err))

    # ---- results

    def end(self) -> None:
        """After the last sample."""
        if self.c.keys.n > 1:
            self._merge(self._model.count("labels"), self._set)

    def _value(self, label: int) -> Value:
        _, key, *value = words = self._model.row("labels", label)
        if words[1:] not in self._values:
            self._values[words[1:]] = Value(_decoded(self._model.string(key)), label_value(self._model, *value))
        return self._values[words[1:]]

    def _set(self, label: int) -> Iterator[Value]:
        while label:
            yield self._value(label)
            after = self._model.row("labels", label)[lib.FP_LABEL_NEXT]
            label = after if after < label else 0

    def _merge(self, n: int, change: Callable[[int], Iterable[Value]]) -> None:
        """Replaces each label set i < n by the set of the values `change(i)`."""
        found: dict[Set, int] = {(): 0}
        to = [0] * n
        for i in self._costs(n):
            # a key may have several values
            values = tuple(sorted(set(change(i)), key=lambda value: (value.key, value.text or "")))
            to[i] = found.setdefault(values, len(found))
        self._map(to)
        self.sets = [*found]

    def _costs(self, n: int) -> dict[int, float]:
        """By label set: its share of the costs of all, on average over the value types."""
        k = self.c.n_values
        sums = ffi.new("double[]", n * k + 1)
        lib.fp_context_labels_sum(self.c, n, sums)
        totals = [sum(sums[i * k + j] for i in range(n)) or 1.0 for j in range(k)]
        shares = ((i, sum(sums[i * k + j] / totals[j] for j in range(k))) for i in range(n))
        return {i: share for i, share in shares if share}

    def fit(self) -> bool:
        """Adds up values, the smallest of each key, if a page has no room for them.  Returns whether it did."""
        if len(self.sets) == 1:
            return False
        costs: dict[Value, float] = defaultdict(float)
        for i, share in self._costs(len(self.sets)).items():
            for value in self.sets[i]:
                costs[value] += share
        if self.c.n_entries > _MOST_ENTRIES:
            largest = max(Counter(value.key for value in costs).values())
            self._most = min(self._most, largest) // 2
        kept, n_text = set[Value](), 0
        of_key: Counter[str] = Counter()
        for value in sorted(costs, key=lambda value: (-costs[value], value.key, value.text or "")):
            if value.text is not _OTHERS and of_key[value.key] < self._most:
                n_text += len(value.text.encode("utf-8", "replace"))
                if n_text > _MOST_TEXT:
                    break
                of_key[value.key] += 1
                kept.add(value)
        merged = [value for value in costs if value.text is not _OTHERS and value not in kept]
        if not merged:
            return False
        self.merged.update(value.key for value in merged)
        sets = self.sets
        self._merge(
            len(sets), lambda i: (value if value in kept else value._replace(text=_OTHERS) for value in sets[i])
        )
        return True

    def add_to(self, columns: Columns, head: dict[str, Any], text: Callable[[str], int], kept: list[int]) -> None:
        """The columns of a page, after its contexts were cut."""
        if len(self.sets) == 1 and not self.left_out:
            return
        keys: dict[str, int] = {}
        values: dict[Value, int] = {}
        numbers = [[values.setdefault(value, len(values)) for value in one] for one in self.sets]
        columns.add("set size", "I", [len(one) for one in numbers])
        columns.add("set value", "I", [value for one in numbers for value in one])
        columns.add("value key", "I", [keys.setdefault(value.key, len(keys)) for value in values])
        texts = (value.text for value in values)
        columns.add("value text", "I", [NONE if one is _OTHERS else text(one) for one in texts])
        head["labels"] = {
            "keys": [{"name": name, "merged": self.merged[name]} for name in keys],
            "left_out": [{"name": name, "values": n} for name, n in self.left_out.items()],
        }
        c, n = self.c, self.c.n_entries
        if not c.set:
            return
        contexts = c.entry_context[0:n]
        columns.add("context set", "I", list(c.set[0 : len(columns["context up"])]))
        columns.add("label context", "I", [at - (contexts[i - 1] if i else 0) for i, at in enumerate(contexts)])
        columns.add("label set", "I", list(c.entry_set[0:n]))
        for k, column in enumerate(kept):
            costs = list(c.entry_self[column * n : (column + 1) * n]) if column < c.n_values else [0] * n
            columns.add(f"label self {k}", "d", costs)


def _decoded(name: bytes) -> str:
    return name.decode("utf-8", "backslashreplace")
