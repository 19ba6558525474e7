"""`desc:` lines for data without lines of their own: units, names that are no words, default, period and labels.

    desc: Value types: samples/count cpu/nanoseconds      names and units of the events, in their order
    desc: Default value type: cpu                         where the source names one; else it is the first
    desc: Period: 10000000 cpu/nanoseconds                between two samples; the type may be unknown
    desc: Labels: date=0314 host=web1                     of the input, sorted by key

Bytes other than letters, digits and `_.-~` are written `%2F`.  Only fastprof writes these lines; in a file in which
they do not fit the events, they are descriptions like any other.
"""

from fastprof.core import lazy_re as re
from fastprof.core.model import Part, ValueType
from fastprof.core.parts import default_value, labels_of

TYPES, DEFAULT, PERIOD, LABELS = b"Value types", b"Default value type", b"Period", b"Labels"


def described_types(part: Part, names: list[str]) -> list[tuple[bytes, bytes]]:
    """The lines of a part whose events are written as `names`."""
    types, extra = part.value_types, part.extra
    found: list[tuple[bytes, bytes]] = []
    if any(t.unit or t.name != name for t, name in zip(types, names, strict=True)):
        found.append((TYPES, b" ".join(_pair(t.name, t.unit) for t in types)))
    named = extra.get("default_sample_type")
    if len(types) > 1 and named in [t.name for t in types]:
        found.append((DEFAULT, _quoted(names[default_value(part, "graph")])))
    if "period" in extra or "period_type" in extra:
        type_ = b" " + _pair(*extra["period_type"]) if "period_type" in extra else b""
        found.append((PERIOD, b"%d%s" % (extra.get("period", 0), type_)))
    if labels := labels_of(part):
        found.append((LABELS, b" ".join(b"=".join(map(_quoted_bytes, pair)) for pair in labels)))
    return found


def take_described(part: Part, names: list[str]) -> None:
    """Moves the data of these lines from a part's descriptions to its fields.  `names`: those of its `events:` line."""
    kept = []
    renamed = dict(zip(names, names, strict=True))
    for key, text in part.descriptions:
        if key == TYPES and (types := _types(text, part.value_types)):
            part.value_types = types
            renamed = {name: t.name for name, t in zip(names, types, strict=True)}
        elif key == DEFAULT and (name := _unquoted(text)) in renamed:
            part.extra["default_sample_type"] = renamed[name]
        elif key == PERIOD and (match := re.fullmatch(rb"(\d{1,19})(?: ([^ /]*)/([^ /]*))?", text)):
            if int(match[1]):
                part.extra["period"] = int(match[1])
            if match[2] is not None:
                part.extra["period_type"] = (_unquoted(match[2]), _unquoted(match[3]))
        elif key == LABELS and (labels := _labels(text)):
            part.extra["input_labels"] = labels
        else:
            kept.append((key, text))
    part.descriptions = kept


def _types(text: bytes, events: list[ValueType]) -> list[ValueType]:
    """The events with their own names and units; none if the line is not of these events."""
    pairs = [pair.split(b"/") for pair in text.split(b" ")]
    if len(pairs) != len(events) or any(len(pair) != 2 for pair in pairs):
        return []
    found = []
    for (name, unit), event in zip(((_unquoted(a), _unquoted(b)) for a, b in pairs), events, strict=True):
        long_name = "" if event.long_name == long_name_of(name, unit) else event.long_name
        found.append(ValueType(name, unit, long_name, event.formula))
    return found


def _labels(text: bytes) -> tuple[tuple[bytes, bytes], ...]:
    """Labels with distinct keys, sorted; none if the line is not such a list."""
    pairs = [pair.split(b"=") for pair in text.split(b" ")]
    if any(len(pair) != 2 or not pair[0] for pair in pairs):
        return ()
    found = {_unquoted_bytes(key): _unquoted_bytes(value) for key, value in pairs}
    return tuple(sorted(found.items())) if len(found) == len(pairs) else ()


def long_name_of(name: str, unit: str) -> str:
    """The long name of an event that has none, so that viewers show its unit."""
    return f"{name} ({unit})"


def _pair(name: str, unit: str) -> bytes:
    return _quoted(name) + b"/" + _quoted(unit)


def _quoted(text: str) -> bytes:
    return _quoted_bytes(text.encode("utf-8", "surrogateescape"))


def _quoted_bytes(text: bytes) -> bytes:
    from urllib.parse import quote  # 3 ms

    return quote(text, safe="").encode()


def _unquoted(text: bytes) -> str:
    return _unquoted_bytes(text).decode("utf-8", "surrogateescape")


def _unquoted_bytes(text: bytes) -> bytes:
    from urllib.parse import unquote_to_bytes

    return unquote_to_bytes(text)
