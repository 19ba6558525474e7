"""What the pipelines of a plan share while their rows pass through."""

from collections.abc import Iterable, Iterator

from fastprof.bridges import RENAME_VALUES, TAGLEAF, TAGROOT
from fastprof.bridges.rows.reported import REPORTED
from fastprof.core._typing import Any
from fastprof.core.engine import Capabilities
from fastprof.core.errors import NothingLeft, inputs_of
from fastprof.core.log import Log
from fastprof.core.messages import joined, spelled
from fastprof.core.model import Batch, Model
from fastprof.core.options import Options


class LossWatch:
    """Records whether filters leave any row of all inputs, and whether any input has the value types to rename and the
    labels that become frames.

    `both`: the pipelines are two views of the same inputs; they share what counts losses.
    """

    def __init__(self, n_pipelines: int, *, both: bool) -> None:
        self._any = False
        self._n_pipelines = n_pipelines  # still to be read
        self._both = both
        self._watch: Any = None
        self._names: Any = None
        self._tagged = False

    def names(self, options: Options) -> Any:
        """The new names of value types, or None."""
        if self._names is None and RENAME_VALUES.is_requested(options):
            from fastprof.bridges.rows.value_names import Names

            self._names = Names(options)
        return self._names

    def watch(self, model: Model, holds: Capabilities, log: Log) -> Any:
        """What counts losses on the way to the end."""
        from fastprof.bridges.rows.unrepresentable import Unrepresentable

        if self._watch is None or not self._both:
            self._watch = Unrepresentable(model, holds, log)
        return self._watch

    def log_losses(self, watch: Any) -> None:
        if self._n_pipelines == 1 or not self._both:
            watch.log_counts()

    def seen(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        """Pass batches on and record that there are rows; an empty part of a source also counts."""
        for batch in batches:
            self._any = self._any or not len(batch) or batch.has_rows
            yield batch

    def end(self, model: Model, options: Options, log: Log, *, tagged: bool) -> None:
        """End a pipeline; `tagged`: its labels became frames.

        Errors: NothingLeft if it is the last one and filters left nothing.
        """
        self._n_pipelines -= 1
        self._tagged |= tagged
        if self._names and not self._n_pipelines:
            self._names.log_to(log)
        if not self._n_pipelines and self._any and self._tagged:
            from fastprof.core.labels import warn_of_missing

            for option in (TAGROOT, TAGLEAF):
                keys = (options[option] or "").split(",")
                warn_of_missing(model, keys, spelled(option.flag, "name"), log, REPORTED["no-such-label"])
        if not self._n_pipelines and log.left_out and not self._any:
            from fastprof.bridges.rows.filter import nothing_left

            raise NothingLeft(joined("", [inputs_of(model), nothing_left(model, options)]))
