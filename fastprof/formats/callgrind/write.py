"""Writes Callgrind profiles (csrc/callgrind/write.h)."""

from fastprof.core.c_memory import address_of
from fastprof.core.engine import Writer
from fastprof.core.log import Log
from fastprof.core.model import Batch, Part, ValueType
from fastprof.core.parts import comments_of, descriptions_of, remarks_of
from fastprof.formats.callgrind import COMPRESS_NAMES, COMPRESS_POSITIONS
from fastprof.formats.callgrind._write import Body
from fastprof.formats.callgrind.read import CREATOR
from fastprof.formats.callgrind.reported import REPORTED
from fastprof.formats.callgrind.types import described_types, long_name_of


class CallgrindWriter(Writer):
    """Graph batches -> Callgrind, a part for each part of the model, while they come.

    Batches of one part must follow each other.  Header lines come from the
    model's Part as it is when its first batch arrives; a `summary` that followed
    the rows (`part.extra["late_summary"]`) is written there again.
    `part.extra["inherited"]` holds ValueTypes that are not columns: events
    computed from others, or only described; `part.extra["remarks"]` comments
    that stood between rows, which are written after them.
    Loses: system names, first lines of functions, thread names.
    """

    format = "callgrind"
    view = "graph"

    def start(self) -> None:
        self._body = Body(
            address_of(self.model.c),
            address_of(self.out),
            self.options[COMPRESS_NAMES],
            self.options[COMPRESS_POSITIONS],
        )
        self._part: Part | None = None
        self._index = -1
        self._command: bytes | None = None
        self._parts = 0
        self._all_counts = False

    def put(self, batch: Batch) -> None:
        if batch.part != self._index:
            self._start(batch.part)
        self._body.put(address_of(batch.c))
        self.written += len(batch)
        self.log.rows["rows_written"] += len(batch)

    def end(self) -> None:
        if self._part is None:
            # a profile without rows still has a header
            self._start(len(self.model.parts) - 1 if self.model.parts else self.model.add_part(Part()))
        self._finish()
        self.log.count(REPORTED["escaped-names"], self._body.escaped)

    # ---- a part's header and end -----------------------------------------

    def _start(self, index: int) -> None:
        self._finish()
        self._index = index
        self._part = part = self.model.parts[index]
        self._parts += 1
        # Callgrind leaves out trailing zeros.  Others write them, and callgrind_annotate shows omitted ones as `.`.
        self._all_counts = bool(part.creator) and not part.creator.startswith((b"callgrind-", b"fastprof-"))
        self.text(self._header(part))
        self._body.start_part(
            len(part.value_types),
            "instr" in part.positions,
            "bb" in part.positions,
            "line" in part.positions,
            self._all_counts,
        )

    def _header(self, part: Part) -> bytes:
        number = part.number if part.number is not None else self._parts
        pid = _number_line("pid", part)
        descriptions = descriptions_of(part, labels=False)
        lines: list[bytes] = []
        if self._parts == 1:
            lines += [b"# callgrind format", b"version: 1", b"creator: " + CREATOR, *pid]
            if part.command is not None:
                lines.append(b"cmd: " + _escape(part.command))
                self._command = part.command
            lines.append(b"part: %d" % number)
        else:
            # KCachegrind begins a part at `part:`, so it must come first.
            lines += [b"", b"part: %d" % number, *pid]
            if part.command is not None and part.command != self._command:
                # ... and refuses a second command.
                descriptions.append((b"Command", part.command))
        lines += [*_number_line("thread", part), b""]
        comments = comments_of(part)
        lines += [b"# " + one_line(text) for text in comments]
        self.log.count(REPORTED["escaped-comments"], sum(one_line(text) != text for text in comments))
        if part.creator and not part.creator.startswith(b"fastprof"):
            descriptions.insert(0, (b"Original creator", part.creator))
        if part.trigger is not None:
            descriptions.append((b"Trigger", part.trigger))
        names = event_names(part.value_types, self.log)
        lines += [desc_line(key, value) for key, value in (*descriptions, *described_types(part, names))]
        lines += [b"", b"positions: " + " ".join(part.positions).encode()]
        inherited: list[ValueType] = part.extra.get("inherited", [])
        for name, event in [*zip(names, part.value_types, strict=True), *((e.name, e) for e in inherited)]:
            line = _event_line(name, event)
            if line:
                lines.append(line)
        # readers require an event, which a profile without samples may lack
        lines.append(b"events: " + b" ".join(map(_text, names or ["none"])))
        if part.summary is not None and "late_summary" not in part.extra:
            lines.append(b"summary: " + _counts(part.summary, self._all_counts))
        return b"\n".join([*lines, b"", b"", b""])

    def _finish(self) -> None:
        part = self._part
        if part is None:
            return
        sums = self._body.end_part()
        lines = [b"", *(b"# " + one_line(text) for text in remarks_of(part))]
        if part.summary is not None and "late_summary" in part.extra:
            lines.append(b"summary: " + _counts(part.summary, self._all_counts))
        if self._body.overflowed:
            self.log.warn(REPORTED["overflowed-totals"])
        else:
            lines.append(b"totals: " + _counts(sums, self._all_counts))
        self.text(b"\n".join([*lines, b""]))


def event_names(value_types: list[ValueType], log: Log) -> list[str]:
    """Names as one word each, all different: readers add up columns of the same name."""
    names: list[str] = []
    for k, event in enumerate(value_types):
        word = "_".join(event.name.split()) or f"event{k + 1}"
        name, copy = word, 1
        while name in names:
            copy += 1
            name = f"{word}_{copy}"
        if name != event.name:
            log.count(REPORTED["renamed-events"])
        names.append(name)
    return names


def desc_line(key: bytes, value: bytes) -> bytes:
    if not key and b":" in value:
        key = b"Comment"
    return b"desc: " + one_line(key + b": " + value if key else value)


def _text(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def one_line(text: bytes) -> bytes:
    """Text for a header line."""
    return b" ".join(text.replace(b"\0", b"\\0").split(b"\n")).replace(b"\r", b"")


def _escape(command: bytes) -> bytes:
    """As Callgrind writes it: backslash doubled, newline as \\n."""
    return command.replace(b"\\", b"\\\\").replace(b"\n", b"\\n").replace(b"\0", b" ").replace(b"\r", b"")


def _number_line(key: str, part: Part) -> list[bytes]:
    """The line `pid:` or `thread:`, if there is one: a number, or the text that the source has instead."""
    value: int | bytes | None = part.named(key)
    if value is None:
        return []
    return [key.encode() + b": " + (one_line(value) if isinstance(value, bytes) else b"%d" % value)]


def _counts(values: list[int], all_counts: bool) -> bytes:
    """Counts, without trailing zeros unless `all_counts`; at least one."""
    n = len(values)
    while n > 1 and values[n - 1] == 0 and not all_counts:
        n -= 1
    return " ".join(map(str, values[:n] or [0])).encode()


def _event_line(name: str, event: ValueType) -> bytes:
    """`event: NAME = FORMULA : LONG NAME`, or an empty text without them."""
    long_name = event.long_name
    if not long_name and event.unit not in ("", "count"):
        long_name = long_name_of(event.name, event.unit)
    if not long_name and not event.formula:
        return b""
    formula = f" = {event.formula}" if event.formula else ""
    return one_line(_text(f"event: {name}{formula}" + (f" : {long_name}" if long_name else "")))
