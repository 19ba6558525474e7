"""Merges parts: matches their value types and merges their headers.

Every operator and writer that merges parts uses these rules.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from fastprof.core import lazy_re as re
from fastprof.core import text_counts
from fastprof.core._c import ffi
from fastprof.core._typing import TYPE_CHECKING, Any, Pointer
from fastprof.core.errors import FastprofError, inputs_of
from fastprof.core.model import MAX_VALUE_TYPES, Model, Part, ValueType

if TYPE_CHECKING:
    from fastprof.core.log import Log
    from fastprof.core.reported import Entry


def match_values(part: Part, n_values: int, events: list[ValueType]) -> list[int]:
    """The index in `events` of each value of a part; new value types are appended to `events`.

    Two value types are the same if they have the same name, and the same unit if both have one.  Two values of the
    same part are never the same.
    """
    columns: list[int] = []
    free: dict[str, list[int]] = {}  # by name, for speed: there may be thousands
    for i, event in enumerate(events):
        free.setdefault(event.name, []).append(i)
    for k in range(n_values):
        mine = part.value_types[k] if k < len(part.value_types) else ValueType(f"value{k + 1}")
        alike = free.get(mine.name, [])
        at = next((i for i in alike if _same(events[i], mine)), len(events))
        if at == len(events):
            events.append(mine)
        else:
            alike.remove(at)
            if events[at] != mine:
                both = zip(events[at], mine, strict=True)
                events[at] = ValueType(*(min(filter(None, texts), default="") for texts in both))
        columns.append(at)
    return columns


def columns_for(part: Part, types: Sequence[ValueType], log: Log, lost: Entry) -> list[int]:
    """For each value type of an output the column of a part, or -1.  Others are counted as `lost`, by name."""
    columns = [-1] * len(types)
    for k, at in enumerate(match_values(part, len(part.value_types), [*types])):
        if at < len(columns):
            columns[at] = k
        else:
            log.count(lost, name=part.value_types[k].name)
    return columns


def _same(one: ValueType, other: ValueType) -> bool:
    """Whether two value types with the same name are the same."""
    return one.unit == other.unit or not one.unit or not other.unit


def match_part(model: Model, part: int | Part, n_values: int, events: list[ValueType]) -> list[int]:
    """`match_values` for a part, or the number of a part of the model, whose rows are added up in a column for each of
    `events`.

    Errors: FastprofError for more than MAX_VALUE_TYPES.
    """
    columns = match_values(model.parts[part] if isinstance(part, int) else part, n_values, events)
    if len(events) > MAX_VALUE_TYPES:
        also = f"{events[MAX_VALUE_TYPES].name!r:.80} and others"
        raise FastprofError(f"{inputs_of(model)}there are more than {MAX_VALUE_TYPES:,} value types: {also}")
    return columns


def match_columns(model: Model, part: int | Part, n_values: int, events: list[ValueType]) -> Pointer[int]:
    """`match_part` for C: a uint32_t[]."""
    return ffi.new("uint32_t[]", match_part(model, part, n_values, events) or [0])


def in_any_order(parts: Iterable[Part], events: list[ValueType]) -> list[int]:
    """The indices of `events` in an order that does not depend on the order of the parts or on earlier merges.

    The part whose names sort first comes first, followed by the additional value types of the next part, and so on.
    """
    ordered: list[ValueType] = []
    for order in _orders(parts):
        _match(order, ordered)
    found = [at for at in _match(ordered, [*events]) if at < len(events)]
    others = {*range(len(events))} - {*found}
    return [*found, *sorted(others, key=lambda at: events[at])]


_MOST_ORDERS = 8


def _orders(parts: Iterable[Part]) -> list[list[tuple[str, str]]]:
    """The distinct orders of the parts' value types (names and units), sorted; only the first of many."""
    found = set()
    for part in parts:
        own = [(t.name, t.unit) for t in part.value_types]
        found |= {tuple(order) for order in part.extra.get("merged", {}).get("orders", [own])}
    return [[*order] for order in sorted(found)[:_MOST_ORDERS]]


def _match(order: Iterable[tuple[str, ...]], events: list[ValueType]) -> list[int]:
    types = [ValueType(*one[:2]) for one in order]
    return match_values(Part(types), len(types), events)


def default_value(part: Part, view: str) -> int:
    """Index of the default value type according to the part's header: the one named by the source, otherwise the first
    of a graph or the last of stacks.

    Every verb shows or keeps it unless --value chooses another, or it is 0 in all rows: see core/chosen_value.py.
    """
    names = [t.name for t in part.value_types]
    named = part.extra.get("default_sample_type")
    if named in names:
        return names.index(named)
    return 0 if view == "graph" or not names else len(names) - 1


# The last word of the names of numbers of samples, as in `cycles_samples` or `inuse_objects`.
_COUNTS = re.compile(r"(?:.*[^a-zA-Z])?(?:samples?|objects|blocks|allocations|contentions|n?calls|count)")


def same_kind(one: ValueType, other: ValueType) -> bool:
    """Whether both are costs, or both only count samples."""
    return one == other or bool(_COUNTS.fullmatch(one.name)) == bool(_COUNTS.fullmatch(other.name))


def parts_since(model: Model, n: int) -> range:
    """Parts added after the first `n`, or all if there are none.  An operator without rows uses them as its input's:
    the model may also have parts of other inputs."""
    return range(n if n < len(model.parts) else 0, len(model.parts))


def program_of(part: Part, names: list[bytes]) -> bytes | None:
    """Which of these object names is the program that the part ran; None if unknown.

    The command begins with its path, or with a path that links to it, as `python3` to `python3.11`.  Without a command
    it is the program chosen by the operator that made the part.
    """
    command = part.command or b""
    found = [name for name in names if name and (command == name or command.startswith(name + b" "))]
    word = command.split(b" ")[0]
    if word:
        last = word.rpartition(b"/")[2]
        found += [name for name in names if name.rpartition(b"/")[2] == last]
        found += [name for name in names if last and name.startswith(word)]
    found += [name for name in names if name == part.extra.get("program")]
    return found[0] if found else None


# Fields with one value, and lists of texts.  If parts differ in one, `extra["merged"]` counts their values
# (core/text_counts.py), and writers print those: `descriptions_of` and the functions below it.
_ONE = {"creator": b"Original creators", "pid": b"Processes", "thread": b"Threads", "trigger": b"Triggers"}
_LISTS = ("comments", "remarks")


def descriptions_of(part: Part, *, labels: bool = True) -> list[tuple[bytes, bytes]]:
    """The part's descriptions, and the differing ones of the parts merged into it; with its `labels` of the input."""
    merged = part.extra.get("merged", {})
    found = [(title, text_counts.listed(merged[name])) for name, title in _ONE.items() if name in merged]
    total, by_key = merged.get("descriptions", (0, []))
    lines = sorted((at, key, i, text) for key, it in by_key for i, (at, text) in enumerate(text_counts.lines(it)))
    others = total - sum(it[0] for _, it in by_key)
    found += [(key, text) for _, key, _, text in lines]
    found += [(b"", b"and %d more" % others)] if others else []
    return [*found, *part.descriptions, *(labels_of(part) if labels else ()), *_of_timelines(part)]


def labels_of(part: Part) -> tuple[tuple[bytes, bytes], ...]:
    """The labels of the input that a part of a graph is from."""
    found: tuple[tuple[bytes, bytes], ...] = part.extra.get("input_labels", ())
    return found


def _of_timelines(part: Part) -> list[tuple[bytes, bytes]]:
    extra, found = part.extra, []
    if "threads" in extra:
        found.append((b"Threads", b"%d" % extra["threads"]))
    if "ticks" in extra:
        found.append((b"Timerange", b"ticks %d - %d" % extra["ticks"]))
    if "mended" in extra:
        repairs = [f"{n} {code.replace('-', ' ')}" for code, n in extra["mended"].items()]
        found.append((b"Repairs", ", ".join(repairs).encode() or b"none"))
    return found


def comments_of(part: Part) -> list[bytes]:
    """The part's comments, and the differing ones of the parts merged into it."""
    return [*part.comments, *_lines(part, "comments")]


def remarks_of(part: Part) -> list[bytes]:
    """The part's comments after the rows, and the differing ones of the parts merged into it."""
    return [*part.extra.get("remarks", []), *_lines(part, "remarks")]


def _lines(part: Part, name: str) -> list[bytes]:
    merged = part.extra.get("merged", {})
    return [text for _, text in text_counts.lines(merged[name])] if name in merged else []


# How the `extra` values of several parts are merged.  Other keys are kept if all parts that have them agree.
_COMBINED: dict[str, Callable[[list[Any]], Any]] = {
    "duration_ns": sum,
    "threads": sum,
    "ticks": lambda ranges: (min(first for first, _ in ranges), max(last for _, last in ranges)),
    "mended": lambda counts: dict(sorted(sum(map(Counter, counts), Counter()).items())),
    "time_ns": lambda times: min(filter(None, times), default=0),
    "inherited": lambda lists: [*{event.name: event for event in reversed(_all_of(lists))}.values()][::-1],
    "process_names": lambda lists: _all_of(lists),
    "thread_names": lambda lists: _all_of(lists),
    "own_ids": lambda lists: _all_of(lists),
    "labels": lambda lists: tuple(_all_of(lists)),
    "default_sample_type": min,
    "drop_frames": min,
    "keep_frames": min,
    "doc_url": min,
    "self_costs": any,
    "period": max,
}
# Keys that the merged part keeps only if all parts have them.
_OF_ALL = {"cpu", "input_labels"}
# Keys merged by other code.
_MERGED_SEPARATELY = {"merged", "remarks", "pid_text", "thread_text"}


def _all_of(lists: list[Any]) -> list[Any]:
    """The list that all share, otherwise their union, sorted."""
    return (
        [*lists[0]] if all([*one] == [*lists[0]] for one in lists) else sorted({item for one in lists for item in one})
    )


def merge_parts(parts: Iterable[Part], value_types: list[ValueType], creator: bytes | None = None) -> Part:
    """One part for several: equal fields, all descriptions and comments, the sum of the summaries.

    The result does not depend on their order, nor on earlier merges.  A part's own fields are those on which all parts
    merged into it agree; `extra["merged"]` has the differing ones, and how many parts there are.
    `creator`: the program that made the merged part; the default is the parts' own.
    Lost: totals, part numbers that differ, periods of different types.
    """
    parts = [*parts]
    if not parts:
        return Part(value_types=value_types)
    one = Part(value_types=value_types)
    one.positions = tuple(p for p in ("instr", "bb", "line") if any(p in part.positions for part in parts))
    one.number = only(part.number for part in parts)
    one.summary = _sum_of_summaries(parts, value_types)
    merged = _combine_texts(parts, one)
    unlike = _combine_extras([part.extra for part in parts], one.extra)
    if creator is not None:
        one.creator = creator
        merged.pop("creator", None)
    if unlike:
        merged["unlike"] = sorted(unlike)
    orders = _orders(parts)
    if len(orders) > 1:
        merged["orders"] = orders
    n = sum(map(_n_parts, parts))
    if n > 1:
        one.extra["merged"] = {"parts": n, **merged}
    return one


def _combine_texts(parts: list[Part], one: Part) -> dict[str, Any]:
    """Give `one` the fields, lists and descriptions on which the parts agree.  Returns the others, as `merged`."""
    merged: dict[str, Any] = {}
    for name in (*_ONE, "command", *_LISTS):
        values = [_texts(part, name) if name in _LISTS else part.named(name) for part in parts]
        if not _alike(parts, name, values):
            merged[name] = text_counts.add_up(it for part in parts for it in _counts_of(part, name))
        elif name == "comments":
            one.comments = [*values[0]]
        elif name not in _LISTS:
            setattr(one, name, getattr(parts[0], name))
            if f"{name}_text" in parts[0].extra:
                one.extra[f"{name}_text"] = parts[0].extra[f"{name}_text"]
        elif values[0]:
            one.extra[name] = [*values[0]]
    if "command" in merged:
        one.command = text_counts.listed(merged["command"])
    descriptions = _own_descriptions(parts)
    if _alike(parts, "descriptions", descriptions):
        one.descriptions = descriptions[0]
    else:
        merged["descriptions"] = _descriptions(parts, descriptions)
    return merged


def _combine_extras(extras: list[dict[str, Any]], one: dict[str, Any]) -> set[str]:
    """Merge the `extra` of parts into `one`.  Returns the keys in which they differ, which are left out."""
    unlike = {key for extra in extras for key in extra.get("merged", {}).get("unlike", ())}
    for key in sorted({key for extra in extras for key in extra} - _MERGED_SEPARATELY):
        values = [extra[key] for extra in extras if key in extra]
        value = None if key in _OF_ALL and len(values) < len(extras) else _COMBINED.get(key, only)(values)
        if value is not None:
            one[key] = value
        elif key not in _OF_ALL:
            unlike.add(key)
    for key in unlike | ({"period"} & one.keys() if "period_type" in unlike else set()):
        one.pop(key, None)  # periods of different types cannot be merged
    return unlike


def _n_parts(part: Part) -> int:
    n: int = part.extra.get("merged", {}).get("parts", 1)
    return n


def _alike(parts: list[Part], name: str, values: list[Any]) -> bool:
    """Whether all parts agree, including those merged into them."""
    return all(name not in part.extra.get("merged", {}) for part in parts) and all(v == values[0] for v in values)


def _texts(part: Part, name: str) -> list[bytes]:
    texts: list[bytes] = part.comments if name == "comments" else part.extra.get(name, [])
    return texts


def _counts_of(part: Part, name: str) -> list[text_counts.TextCounts]:
    merged = part.extra.get("merged", {})
    found = [merged[name]] if name in merged else []
    if name in _LISTS:
        return [*found, text_counts.counted(_texts(part, name), _n_parts(part))]
    if name == "command" and found:
        return found  # the command is its text
    own = part.named(name)
    text = b"%d" % own if isinstance(own, int) else own
    return [*found, text_counts.counted([text] if text else [], _n_parts(part))]


def _own_descriptions(parts: list[Part]) -> list[list[tuple[bytes, bytes]]]:
    """The descriptions of each part, with its labels if these differ: then the merged part has no labels."""
    differ = len({*map(labels_of, parts)}) > 1
    return [[*part.descriptions, *(labels_of(part) if differ else ())] for part in parts]


def _descriptions(
    parts: list[Part], descriptions: list[list[tuple[bytes, bytes]]]
) -> tuple[int, list[tuple[bytes, text_counts.TextCounts]]]:
    """The number of descriptions, and counts of texts by key; only the first keys in order if there are too many."""
    total = 0
    found: dict[bytes, list[text_counts.TextCounts]] = {}
    for part, texts in zip(parts, descriptions, strict=True):
        n = _n_parts(part)
        n_merged, by_key = part.extra.get("merged", {}).get("descriptions", (0, []))
        for key, it in by_key:
            found.setdefault(key, []).append(it)
        own = dict.fromkeys(texts)
        for at, (key, text) in enumerate(own):
            found.setdefault(key, []).append((n, [(text, n, at)]))
        total += n_merged + n * len(own)
    return total, [(key, text_counts.add_up(found[key])) for key in sorted(found)[: text_counts.MOST]]


def _sum_of_summaries(parts: list[Part], value_types: list[ValueType]) -> list[int] | None:
    if any(part.summary is None for part in parts):
        return None
    sums = [0] * len(value_types)
    events = [*value_types]
    for part in parts:
        summary = (part.summary or [])[: len(part.value_types)]  # a damaged one may be longer
        for column, value in zip(match_values(part, len(summary), events), summary, strict=True):
            if column < len(sums):
                sums[column] += value
    return sums


def only(values: Iterable[Any]) -> Any:
    """The one value if all are equal, else None."""
    distinct = [*dict.fromkeys(values)]
    return distinct[0] if len(distinct) == 1 else None
