"""Lets an operator change parts for the code after it, while the reader keeps working with its own."""

from collections.abc import Callable, Iterator

from fastprof.core.model import Batch, Model, Part


class Changed:
    """Passes batches on, each with a changed copy of its part in the model.

    A reader may add to its part until the part ends: a summary, for example, follows
    the rows.  `change` is therefore called again at the end.  After `end` the model has the changed parts.
    """

    def __init__(self, model: Model) -> None:
        self._model = model
        self._parts: dict[int, tuple[Part, Part, Callable[[Part], Part]]] = {}
        self._last = -1

    def lend(self, batch: Batch, change: Callable[[Part], Part]) -> Iterator[Batch]:
        """Yield `batch`.  Until the next one is requested, the model has the changed part instead of the batch's."""
        parts, index = self._model.parts, batch.part
        if index not in self._parts:
            self._parts[index] = parts[index], change(parts[index]), change
        if self._last not in (-1, index):
            self._update(self._last)
        self._last = index
        own, shown, _ = self._parts[index]
        parts[index] = shown
        yield batch
        parts[index] = own

    def _update(self, index: int) -> None:
        own, shown, change = self._parts[index]
        vars(shown).update(vars(change(own)))

    def end(self) -> None:
        for index, (_, shown, _) in self._parts.items():
            self._update(index)
            self._model.parts[index] = shown
