"""Groups of samples by labels, for --by label:KEY,..."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator

from fastprof.core._c import ffi, lib
from fastprof.core._typing import Any, Pointer, T
from fastprof.core.c_memory import owned
from fastprof.core.errors import check_sums
from fastprof.core.labels import GROUP_END, NONE, values_of, warn_of_missing
from fastprof.core.log import Log
from fastprof.core.messages import did_you_mean, spelled
from fastprof.core.model import Batch, Model
from fastprof.core.options import Kind, Option, quoted
from fastprof.core.thread_names import ThreadNames
from fastprof.verbs.reported import REPORTED


class RowOption(Option[T]):
    group = "rows"


class _Word(str):
    """A built-in key, which takes precedence over a label of the same name."""


_FUNCTION, THREAD = "function", _Word("thread")
_BY_THREAD = "thread,function"
_END = GROUP_END.decode()


class Grouping(Kind):
    """One of a few words, or label:KEY with several keys separated by commas; in Python also a tuple of them."""

    metavar = "WHAT"
    completes = "word"

    def __init__(self, *words: str) -> None:
        self.words = (*words, "label:")
        self._whole, self.values = words, "|".join((*words, "label:KEY,..."))
        keys = [word for word in words if "," not in word]
        # type checkers refuse any other text: keys of labels are in a tuple
        self.typed = f"Literal[{', '.join(map(quoted, keys))}] | tuple[str, ...] | list[str]"

    def check(self, value: Any) -> Any:
        if isinstance(value, (tuple, list)):
            words = [*map(super().check, value)]
            if any(word.startswith("label:") for word in words):
                words = ["label:" + ",".join(word.removeprefix("label:") for word in words)]
            value = _BY_THREAD if sorted(words) == sorted(_BY_THREAD.split(",")) else ",".join(words)
        value = super().check(value)
        if value in self._whole:
            return value
        prefix, _, keys = value.partition(":")
        if prefix != "label" or not all(keys.split(",")) or len({*keys.split(",")}) < len(keys.split(",")):
            raise ValueError(
                f"{value!r:.80} is not one of {', '.join(self._whole)} or label:KEY,... with distinct keys"
                f"{did_you_mean(value, self._whole)}"
            )
        return value


def keys_of(by: str) -> list[str]:
    """The keys of label:KEY,... or thread,function, [] for another word."""
    if by == _BY_THREAD:
        return [THREAD, _FUNCTION]
    return by[6:].split(",") if by.startswith("label:") else []


class Groups:
    """The groups of the samples of one model by `keys`, one of which may be the function, another one THREAD.

    `within`: for `within`, which keeps stacks and their functions.
    """

    def __init__(self, model: Model, keys: list[str], *, within: bool = False) -> None:
        self._model = model
        self._keys = [key for key in keys if key != _FUNCTION and key is not THREAD]
        self.has_threads = any(key is THREAD for key in keys)
        self._threads = ThreadNames(model)
        self.has_functions = _FUNCTION in keys
        ids = [model.intern(key) for key in self._keys]
        new = lib.fp_groups_new(model.c, ids or [0], len(ids), self.has_functions and not within, self.has_threads)
        self._c = owned(new, "groups of samples")
        self._err = ffi.new("struct fp_err *")
        self._stacks = array("I", [0])  # by group, for as_functions
        self._roots, self._prefixes = array("I", [0]), array("I", [0])  # by group, for within
        self.functions = array("I", [0])  # by group: the function of its root

    def ids(self, batch: Batch) -> Pointer[int]:
        """The group of each row of a batch, valid until the next call."""
        of_rows = lib.fp_groups_ids(self._c, batch.c, self._err)
        if of_rows == ffi.NULL:
            check_sums(self._err.code, self._err, self._model, "groups of samples")
        return of_rows

    def group(self, i: int) -> tuple[str, int]:
        """The values of a group's labels, or its thread, and its function."""
        label, function, thread = self._c.groups.words[3 * i : 3 * i + 3]
        if self.has_threads:
            return self._threads.text(thread), function
        values = values_of(self._model, label)
        if len(self._keys) == 1:
            return values.get(self._keys[0], NONE), function
        return ", ".join(f"{key}={values.get(key, NONE)}" for key in self._keys), function

    @property
    def n(self) -> int:
        """The number of groups, including the reserved 0."""
        return int(self._c.groups.n)

    def thread(self, i: int) -> int:
        """The thread of a group, 0 if it is unknown or threads are not distinguished."""
        return int(self._c.groups.words[3 * i + 2])

    def warn(self, option: str, log: Log) -> None:
        """Warn of keys that no sample has.  Call it after the last row."""
        if self._c.groups.n > 1:  # there are rows
            warn_of_missing(self._model, self._keys, spelled(option, "name"), log, REPORTED["no-such-label"])

    def as_functions(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        """Batches changed in place: the stack of each row becomes one function, with a name for the group."""
        for batch in batches:
            self.ids(batch)
            while len(self._stacks) < self._c.groups.n:
                self._stacks.append(self._stack(len(self._stacks)))
            lib.fp_groups_replace(self._c, batch.c, ffi.from_buffer("uint32_t[]", self._stacks))
            yield batch

    def within(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        """Batches changed in place: each row gets the stack within its group, by `keys`.

        Without the function among them, a function with the name of the group calls the others.  Otherwise functions
        of different groups differ.  `split` divides names.
        """
        model = self._model
        for batch in batches:
            self.ids(batch)
            for i in range(len(self._prefixes), self._c.groups.n):
                prefix = self.group(i)[0].replace(_END, " ") + _END
                self._prefixes.append(model.intern(prefix))
                if not self.has_functions:
                    self.functions.append(model.function(prefix, "???"))  # as in a graph, which has files
                    self._roots.append(model.frame(0, 0, 0, model.line(self.functions[-1])))
            status = lib.fp_groups_within(
                self._c,
                batch.c,
                ffi.NULL if self.has_functions else ffi.from_buffer("uint32_t[]", self._roots),
                ffi.from_buffer("uint32_t[]", self._prefixes),
                self._err,
            )
            check_sums(status, self._err, model, "groups of samples")
            yield batch

    def _stack(self, i: int) -> int:
        model = self._model
        label, function = self.group(i)
        if self.has_functions:
            f = model.get_function(function)
            name = label.replace(_END, " ").encode() + GROUP_END + f.name
            named = model.function(name, f.file, model.row("functions", function)[0], b"", f.line)
        else:
            named = model.function(label)
        return model.stack(0, model.frame(0, 0, 0, model.line(named)))

    def names_of(self, functions: frozenset[str]) -> set[int]:
        """The names (strings in the model) of groups that belong to these functions; without functions, of labels."""
        names = {name.encode("utf-8", "surrogateescape") for name in functions}
        found = set()
        for stack in self._stacks[1:]:
            frame = self._model.row("stacks", stack)[1]
            line = self._model.row("frames", frame)[-1]
            name = self._model.row("functions", self._model.row("lines", line)[0])[2]
            text = self._model.string(name)
            if (text.partition(GROUP_END)[2] if self.has_functions else text) in names:
                found.add(name)
        return found

    def split(self, name: str) -> tuple[str, str]:
        """The label and the function in a name of as_functions; also of `within`, if functions are among the keys."""
        label, _, function = name.partition(_END)
        return label if self.has_functions else "", function if self.has_functions else name
