"""Labels of samples as text: the same in tables, pages and frames."""

from collections.abc import Iterable

from fastprof.core._c import ffi, lib
from fastprof.core.log import Log
from fastprof.core.messages import Message, some
from fastprof.core.model import Model
from fastprof.core.parts import labels_of
from fastprof.core.reported import Entry
from fastprof.core.unknown_names import text_of

NONE = "(none)"  # of samples without a label
GROUP_END = b"\x1f"  # between the labels of a group and the name of its function


def values_of(model: Model, label: int) -> dict[str, str]:
    """The values of a label set by key; a repeated key has its last value."""
    values: dict[str, str] = {}
    while label:
        label, key, *value = model.row("labels", label)
        values[text_of(model.string(key))] = label_value(model, *value)
    return values


def keys_in(model: Model) -> list[str]:
    """The keys of all labels, sorted: of samples, and of the inputs that parts of graphs are from."""
    table = model.c.labels
    words = memoryview(ffi.buffer(table.words, 4 * table.n * table.width)).cast("I")
    keys = {model.string(key) for key in {*words[table.width + lib.FP_LABEL_KEY :: table.width]}}
    keys |= {key for part in model.parts for key, _ in labels_of(part)}
    return sorted(key.decode("utf-8", "surrogateescape") for key in keys)


def which(keys: list[str]) -> str:
    """For messages."""
    return f"the labels are {some(keys)}" if keys else "there are no labels"


def warn_of_missing(model: Model, keys: Iterable[str], option: Message, log: Log, entry: Entry) -> None:
    """Warn of each of these keys that no label has; `entry` is "no-such-label"."""
    present = keys_in(model)
    for key in filter(None, keys):
        if key not in present:
            log.warn(entry, option=option, key=key, which=which(present))


def label_text(model: Model, label: int) -> str:
    """ "host=a, size=8 bytes"; the labels of a sample in the order of their keys."""
    found = []
    while label:
        label, key, *value = model.row("labels", label)
        found.append(f"{model.string(key).decode('utf-8', 'backslashreplace')}={label_value(model, *value)}")
    return ", ".join(sorted(found)) or NONE


def label_value(model: Model, string: int, low: int, high: int, unit: int) -> str:
    """The text of a label's value, given the words after its key."""
    if string:
        return text_of(model.string(string))
    number = low | high << 32
    return f"{number - (number >> 63 << 64)} {model.string(unit).decode('utf-8', 'replace')}".rstrip()
