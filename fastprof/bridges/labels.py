"""Which labels samples keep, and which keep rows separate: `--labels` and `--per-thread`."""

from fastprof.bridges import INPUT_LABELS, LABELS, PER_THREAD
from fastprof.bridges.reported import REPORTED
from fastprof.bridges.transforms import ROOTS
from fastprof.core._typing import Any
from fastprof.core.engine import Capabilities
from fastprof.core.log import Log
from fastprof.core.options import Option, Options

_THREAD = frozenset({"thread", "process"})


def separating_labels(options: Options, holds: Capabilities) -> frozenset[str]:
    """The labels, of thread, process, part and cpu, that keep rows separate that would otherwise be added up."""
    if not holds.labels:
        return _THREAD if holds.threads and options[PER_THREAD] else frozenset()
    separating = frozenset(options[LABELS] or ()) - {"own"}
    return separating | {"thread", "process", "part"} if options[PER_THREAD] else separating


def labels_wanted(options: Options, holds: Capabilities) -> frozenset[str]:
    """The labels that samples keep, of LABEL_WORDS."""
    if not holds.labels:
        return _THREAD if holds.threads else frozenset()
    own = ("own", "thread", "process") if options[LABELS] is None else options[LABELS]
    return separating_labels(options, holds) | frozenset(own or ())


def log_missing_labels(options: Options, holds: Capabilities, log: Log, found: set[str]) -> None:
    """Warn of requested labels that no row has.  `found`: the LABEL_WORDS that some row has."""
    requested = options[LABELS] if holds.labels else ()
    for name in sorted({*(requested or ())} - {"own"} - found):
        log.warn(REPORTED["missing-labels"], name=name)


def only_to(option: Option[Any], view: str) -> str:
    """What an option applies to, for the error about a view without an effect of it; "": the view is not why."""
    if option in ROOTS and view == "graph":
        return (
            "stacks and timelines, as a call graph does not record which caller's call led to a cost; "
            "`fastprof top --tree both --function REGEX` shows callers and callees, "
            "`fastprof convert -o x.folded` with this option an estimate"
        )
    return f"samples of stacks, and this is a {view}" if option in INPUT_LABELS and view != "stacks" else ""
