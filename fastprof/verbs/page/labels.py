"""The labels of a page's contexts: the label sets of its samples, and the cost of each context in each set.

    set      a label set: its number of values; then the values of all sets, one set after the other
    value    a value of a label: key (index of head.labels.keys), text (NONE: all values that were merged)
    context  set: the label set of the cost that no entry covers; 0: no labels
    label    entries: context (from that of the entry before), set, self cost by column

A page has a limited number of values; the cheapest values of each key are merged.  Memory is limited while contexts are
added up: beyond the limit, the key with the most values is dropped.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence

from fastprof.core._c import ffi, lib
from fastprof.core._typing import Any, NamedTuple, T, fp_context_labels, fp_err
from fastprof.core.c_memory import enough
from fastprof.core.labels import label_value
from fastprof.core.model import Model
from fastprof.core.unknown_names import text_of
from fastprof.verbs.page import NONE, Columns

_MOST_ENTRIES = 60_000  # of contexts in a page: a third of its size
_MOST_VALUES = 1_000  # of a key
_MOST_KEYS = 100
_MOST_TEXT = 150_000  # bytes of all values, and of all keys
_MOST_NAMED = 20  # dropped keys named in the warning
_OTHERS = None  # the text of merged values


class Value(NamedTuple):
    key: str
    text: str | None


Set = tuple[Value, ...]


class Labels:
    """The labels of a struct fp_contexts.  After `choose`, columns have indices of `sets`."""

    def __init__(self, model: Model, c: fp_context_labels, fits: Callable[[int], int], err: fp_err) -> None:
        """`fits` raises the error of a negative status of the C core; `err` has its details."""
        self._model, self.c, self._fits, self._err = model, c, fits, err
        self._most = _MOST_VALUES
        self.sets: list[Set] = [()]
        self.merged: Counter[str] = Counter()  # by key: the number of merged values
        self.left_out: dict[str, int] = {}  # by key: the number of its values
        self._all: list[Set] = [()]  # set by `choose`
        self._chosen: Counter[str] = Counter()  # its `merged`
        self._costs_of: dict[Value, float] = {}
        self._without = [0]  # by label set of the model: the set without dropped keys

    # ---- while contexts are added up

    def shrink(self, most: int) -> None:
        """Leave out keys until at most `most` sums remain."""
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
            if text_of(name) not in self.left_out:
                number = low | high << 32
                after = model.label(name, text, number - (number >> 63 << 64), model.string(unit), after)
            self._without.append(after)
        self._map(self._without)

    def _map(self, to: Sequence[int]) -> None:
        self._fits(lib.fp_context_labels_map(self.c, ffi.new("uint32_t[]", to), len(to), self._err))

    # ---- results

    def choose(self, *, limited: bool) -> None:
        """After the last sample, number the label sets.  `limited`: with at most as many values as a page may have.

        Sets are chains of labels; each sample may have a different one.  Chains whose values are merged become equal,
        so Python handles few sets.
        """
        if self.c.keys.n == 1:
            return
        model = self._model
        n, width = model.count("labels"), 4 * lib.FP_LABEL_WIDTH
        raw = bytes(ffi.buffer(model.c.labels.words, n * width))
        after = memoryview(raw).cast("I")[lib.FP_LABEL_NEXT :: lib.FP_LABEL_WIDTH].tolist()
        known: dict[bytes, int] = {}  # a label without its chain
        label_of = [known.setdefault(raw[i * width + 4 : (i + 1) * width], i) for i in range(n)]
        used = self._costs(n)
        costs: dict[int, float] = defaultdict(float)
        for i, share in used.items():
            while i:
                costs[label_of[i]] += share
                i = after[i] if after[i] < i else 0
        keys = memoryview(raw).cast("I")[lib.FP_LABEL_KEY :: lib.FP_LABEL_WIDTH]
        names = {key: text_of(model.string(key)) for key in {keys[label] for label in costs}}
        key_of = {label: names[keys[label]] for label in costs}
        if limited:
            self._leave_out_small(costs, key_of)
        kept = self._largest(costs, key_of, self._value, limited=limited)
        texts = {label: kept.get(label) or Value(key, _OTHERS) for label, key in key_of.items() if label in costs}
        chains: dict[tuple[Value, int], int] = {}
        of_chain: list[tuple[Value, int]] = [(Value("", None), 0)]
        to = [0] * n  # its chain first
        for i in range(1, n):
            to[i] = to[after[i]] if after[i] < i else 0
            if label_of[i] in texts:
                chain = texts[label_of[i]], to[i]
                to[i] = chains.setdefault(chain, len(of_chain))
                if to[i] == len(of_chain):
                    of_chain.append(chain)
        found: dict[Set, int] = {(): 0}
        numbers = {0: 0}  # by chain
        for i in range(n):
            if i not in used:
                to[i] = 0
                continue
            if to[i] not in numbers:
                values, chain_ = set(), to[i]
                while chain_:
                    value, chain_ = of_chain[chain_]
                    values.add(value)
                numbers[to[i]] = found.setdefault(_sorted(values), len(found))
            to[i] = numbers[to[i]]
        self._map(to)
        self._all, self._chosen = [*found], self.merged

    def _value(self, label: int) -> Value:
        _, key, *value = self._model.row("labels", label)
        return Value(text_of(self._model.string(key)), label_value(self._model, *value))

    def _leave_out_small(self, costs: dict[int, float], key_of: dict[int, str]) -> None:
        """Remove the labels of the cheapest keys, for which a page has no room."""
        sums: Counter[str] = Counter()
        for label, share in costs.items():
            sums[key_of[label]] += share  # type: ignore[assignment]  # Counter is declared for whole numbers
        room, kept = _MOST_TEXT, set()
        for key, _ in sums.most_common(_MOST_KEYS):
            nbytes = len(key.encode("utf-8", "replace"))
            if nbytes <= room:
                room -= nbytes
                kept.add(key)
        for label in [label for label in costs if key_of[label] not in kept]:
            self.left_out[key_of[label]] = self.left_out.get(key_of[label], 0) + 1
            del costs[label]

    def _largest(
        self, costs: dict[T, float], key_of: dict[T, str], value_of: Callable[[T], Value], *, limited: bool = True
    ) -> dict[T, Value]:
        """The most expensive values of each key for which a page has room.  The others are counted."""
        kept: dict[T, Value] = {}
        of_key: Counter[str] = Counter()
        room = _MOST_TEXT
        for one in sorted(costs, key=costs.__getitem__, reverse=True):  # among equal ones the first
            key = key_of[one]
            if not limited or (of_key[key] < self._most and room > 0):
                value = value_of(one)
                nbytes = len((value.text or "").encode("utf-8", "replace"))
                if not limited or nbytes <= room:
                    of_key[key] += 1
                    room -= nbytes
                    kept[one] = value
                    continue
            self.merged[key] += 1
        return kept

    def _costs(self, n: int) -> dict[int, float]:
        """By label set: its share of the total cost, averaged over the value types."""
        k = self.c.n_values
        sums = ffi.new("double[]", n * k + 1)
        lib.fp_context_labels_sum(self.c, n, sums)
        totals = [sum(sums[i * k + j] for i in range(n)) or 1.0 for j in range(k)]
        shares = ((i, sum(sums[i * k + j] / totals[j] for j in range(k))) for i in range(n))
        return {i: share for i, share in shares if share}

    def begin(self) -> None:
        """Show all values, before contexts are cut."""
        self.merged, self._most = Counter(self._chosen), _MOST_VALUES
        self._show(self._all)

    def fit(self) -> bool:
        """Merge more values, the smallest of each key, if a page has no room for them.  Returns whether it did."""
        n = self.c.n_entries
        if n <= _MOST_ENTRIES:
            return False
        if not self._costs_of:
            for i, share in self._costs(len(self._all)).items():
                for value in self._all[i]:
                    if value.text is not _OTHERS:
                        self._costs_of[value] = self._costs_of.get(value, 0) + share
        costs, before = self._costs_of, {value for values in self.sets for value in values}
        largest = max(Counter(value.key for value in before).values())
        self.merged, self._most = Counter(self._chosen), int(min(self._most, largest) * 0.9 * _MOST_ENTRIES / n)
        kept = self._largest(costs, {value: value.key for value in costs}, lambda value: value)
        self._show([_sorted({v if v in kept else v._replace(text=_OTHERS) for v in of}) for of in self._all])
        return {value for values in self.sets for value in values} != before

    def _show(self, sets: Sequence[Set]) -> None:
        """`sets`: the shown label set of each chosen one."""
        found: dict[Set, int] = {(): 0}
        to = [found.setdefault(values, len(found)) for values in sets]
        enough(lib.fp_context_labels_show(self.c, ffi.new("uint32_t[]", to), len(to)))
        self.sets = [*found]

    def add_to(self, columns: Columns, head: dict[str, Any], text: Callable[[str], int], kept: list[int]) -> None:
        """Add the columns of a page, after its contexts were cut."""
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
            "left_out": [{"name": name, "values": n} for name, n in [*self.left_out.items()][:_MOST_NAMED]],
            "n_left_out": len(self.left_out),
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


def _sorted(values: Iterable[Value]) -> Set:
    return tuple(sorted(values, key=lambda value: (value.key, value.text or "")))
