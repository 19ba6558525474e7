"""Reads Callgrind profiles: header lines here, all others in _lexer.pyx."""

from fastprof.core import lazy_re as re
from fastprof.core._c import ffi, lib
from fastprof.core._typing import fp_batch, fp_err, fp_window
from fastprof.core.c_memory import address_of
from fastprof.core.engine import Reader
from fastprof.core.model import MAX_VALUE_TYPES, Part, ValueType
from fastprof.core.options import LENIENT
from fastprof.core.reported import coded
from fastprof.core.source import WINDOW, Source
from fastprof.core.version import __version__
from fastprof.formats.callgrind._lexer import KINDS, Lexer, nearest
from fastprof.formats.callgrind.reported import REPORTED
from fastprof.formats.callgrind.types import take_described

CREATOR = b"fastprof-" + __version__.encode()
POSITIONS = ("instr", "bb", "line")
COMMENTS_NBYTES = 1 << 20  # limit of the comments kept from one input

# Header keys that begin a new part once the current one has events and data.
_BEGIN_A_PART = {b"version", b"creator", b"cmd", b"part", b"pid", b"thread", b"positions", b"events"}
# Those after which KCachegrind continues in the same function.
_KEEP_NAMES = {b"version", b"creator", b"cmd"}
_XDEBUG_WITHOUT_CFL = b"0.9.6"  # the `version:` of Xdebug 2.0 and 2.1; later ones write 1, and cfl=
_OF_KEYS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789 _-"
_COST = {b"%c" % byte for byte in b"0123456789+*-"}  # how a cost line begins
_SUMS = (b"summary ", b"summary\t", b"totals ", b"totals\t")  # some writers forget the colon
_EXTRAS_THAT_HOLD = ("pid_text", "self_costs")  # inherited by later parts


def _is_integer(word: bytes) -> bool:
    digits = word.removeprefix(b"-")
    if digits[:2] in (b"0x", b"0X"):
        return len(digits) > 2 and not digits[2:].strip(b"0123456789abcdefABCDEF")
    return digits.isdigit()


def _key_of(line: bytes) -> bytes:
    """`desc` of a line `desc: ...` or `desc=...`; b"": it begins otherwise."""
    key = line.partition(b":")[0].partition(b"=")[0]
    return key if key[:1].isalpha() and key != line and not key.translate(None, _OF_KEYS) else b""


def _decode(text: bytes) -> str:
    return text.decode("utf-8", "surrogateescape")


class CallgrindReader(Reader):
    """Callgrind -> graph batches.  A batch never spans two parts.

    Repairs and losses are counted; unknown keys are warned of once, with
     the line.
    """

    format = "callgrind"
    view = "graph"
    formulas = True
    remarks = frozenset({"unknown-keys", "trailing-comments", "excess-comments"})
    numbered = True  # names may be `(12) name`
    last_line = "totals"  # of a part
    has_last_line = False  # the writer always ends a part with it

    def start(self) -> None:
        self._lexer = Lexer(address_of(self.model.c), self.options[LENIENT], self.numbered)
        self._part = Part()
        self._index = -1  # of the part, once it has events
        self._parts = 0
        self._given: set[bytes] = set()  # header keys seen in this part
        self._described: dict[str, ValueType] = {}  # by event: lines
        self._given_events: set[str] = set()  # by those of this part
        self._unknown: set[bytes] = set()
        self._textual: set[str] = set()  # keys with text where Callgrind has a number
        self._ended = False  # the part's totals were checked
        self._later: dict[tuple[int, int], bytes] | None = None  # names that are defined further on
        self._rounded = self._first_rounded = 0  # counts of summary: and totals:, and the line of the first
        self._wrapped: list[tuple[int, int, int, int]] = []  # of this part's sums: line, offset, number, column
        self._offset = 0  # of the header line that is read
        self._lent = False  # a batch of this part was handed out
        self._comments_nbytes = 0
        self._batch: fp_batch | None = None  # the batch that `feed` fills, with known addresses
        self._addresses = (0, 0, 0)

    # ---- the loop ----------------------------------------------------------

    def feed(self, in_: fp_window, batch: fp_batch, err: fp_err) -> int:
        lexer = self._lexer
        if batch is not self._batch:
            # the three rarely change between batches, and getting them takes as long as reading ten lines
            self._batch = batch
            self._addresses = address_of(in_), address_of(batch), address_of(err)
        in_address, batch_address, err_address = self._addresses
        while True:
            if self._index >= 0:
                batch.part = self._index
                n_values = len(self._part.value_types)
                if not batch.n and batch.n_values != n_values and lib.fp_batch_set_values(batch, n_values):
                    return int(lib.FP_E_NOMEM)
            status: int = lexer.feed(in_address, batch_address, err_address)
            if status == lib.FP_DONE:
                if self._is_due(batch):
                    return int(lib.FP_FULL)
                open_end = in_.n > 0 and in_.p[in_.n - 1] != ord("\n")
                self._check_totals(in_.base + in_.pos, open_end=open_end)
                if self._index < 0 and (self._given or not self._parts):
                    self._lose(
                        "the input ends before `events:`", in_.base + in_.pos, lexer.line, code=lib.FP_E_TRUNCATED
                    )
            if status != lib.FP_NEEDS:
                self._lent |= status == lib.FP_FULL
                return status
            if lexer.undefined:
                self._find_definition(in_)
                continue
            line = bytes(ffi.buffer(in_.p + in_.pos, lexer.line_length))
            if self._index < 0 and self._part.value_types and line.lstrip(b" \t")[:1] in _COST:
                self._take_events()
                continue
            if self._begins_part(line):
                status = lexer.end_part(batch_address, err_address)
                if status < 0:
                    return status
                if status == lib.FP_FULL or self._is_due(batch):
                    return int(lib.FP_FULL)
                self._next_part(line, in_.base + in_.pos)
            self._header_line(line.rstrip(b"\r\n"), in_.base + in_.pos)
            lexer.drop_line(in_address)

    # ---- parts and header lines --------------------------------------------

    def _is_due(self, batch: fp_batch) -> bool:
        """Is there a batch to hand out before this part ends?  One without rows, if it has none."""
        pending = bool(batch.n) or (self._index >= 0 and not self._lent)
        self._lent = True
        return pending

    def _begins_part(self, line: bytes) -> bool:
        """Is this line the first of another part?"""
        if not self._lexer.has_events:
            return False
        if line.startswith(b"==== NEW PROFILING FILE"):
            return True
        key = _key_of(line.lstrip(b" \t")).strip()
        return key in _BEGIN_A_PART and (self._lexer.begun or self._ended or key in self._given)

    def _next_part(self, line: bytes, offset: int) -> None:
        self._check_totals(offset)
        old = self._part
        # Fields that a later part of the same file omits keep their values.
        self._part = Part(
            value_types=old.value_types,
            positions=old.positions,
            creator=old.creator,
            pid=old.pid,
            command=old.command,
            extra={name: text for name, text in old.extra.items() if name in _EXTRAS_THAT_HOLD},
        )
        self._index = -1
        self._given = set()
        self._ended = self._lent = False
        self._wrapped = []
        key = line.lstrip(b" \t").partition(b":")[0]
        self._start_lexer(has_events=False, keeps_names=key in _KEEP_NAMES)

    def _take_events(self) -> None:
        """A part without `events:` has those of the part before."""
        self.log.count(REPORTED["parts-without-events"])
        self._index = self.model.add_part(self._part)
        self._parts += 1
        self._lexer.take_events(*self._has_positions())

    def _header_line(self, line: bytes, offset: int) -> None:
        line = line.lstrip(b" \t")
        if line.startswith(b"#"):
            self._comment(line[1:].strip())
            return
        key = _key_of(line)
        value = line[len(key) + 1 :].strip()
        if not key and line.startswith(_SUMS):
            key, _, value = line.replace(b"\t", b" ").partition(b" ")
            self.log.count(REPORTED["sums-without-colon"])
        if not key:
            if not line.startswith(b"==== NEW PROFILING FILE"):
                self._skip(line, offset)
            return
        key, value = key.strip(), value.strip()
        read = _LINES.get(key)
        if read is None:
            self._unknown_key(key)
            return
        self._offset = offset
        try:
            read(self, value)
        except ValueError as error:
            self._skip(line, offset, f"{_decode(key)}: {error}")
            return
        self._given.add(key)

    def _comment(self, text: bytes) -> None:
        if not text or text == b"callgrind format":
            return
        part = self._part
        # once there are rows, a writer may have written its header
        (part.extra.setdefault("remarks", []) if self._lexer.begun else part.comments).append(text)
        self._comments_nbytes += len(text)
        if self._comments_nbytes >= COMMENTS_NBYTES:
            self._lexer.count_comments()

    def _skip(self, line: bytes, offset: int, detail: str | None = None) -> None:
        """An unreadable line."""
        text = line[:80].decode("utf-8", "backslashreplace")
        detail = detail or f"line is {text!r}, expected a line of a {self.format.capitalize()} profile"
        self._lose(detail, offset, self._lexer.line + 1)

    def _lose(self, detail: str, offset: int, line: int, code: int = lib.FP_E_MALFORMED) -> None:
        """An error; with --lenient a loss."""
        if not self.options[LENIENT]:
            raise self.damaged(detail, offset, code, line or 1)
        self.log.count(REPORTED["unreadable-lines"])

    def _unknown_key(self, key: bytes) -> None:
        self.log.count(REPORTED["unknown-keys"])
        if key not in self._unknown:
            self._unknown.add(key)
            self.log.warn(REPORTED["unknown-key"], file=self.source.name, line=self._lexer.line + 1, key=_decode(key))

    def _version(self, value: bytes) -> None:
        if value != b"1":
            self.log.warn(REPORTED["unknown-version"], file=self.source.name, version=_decode(value))
        self._lexer.find_callees_by_name(value == _XDEBUG_WITHOUT_CFL)

    def _creator(self, value: bytes) -> None:
        self._part.creator = value
        self.has_last_line = self._lexer.whole_lines = value.startswith((b"callgrind-", b"fastprof-"))
        self._lexer.read_names(
            # fastprof writes expanded names; a name of that form is literal
            expands=not value.startswith(b"fastprof"),
            # in Valgrind's xtree files fl= is the file of the following lines, which may be inlined code
            binds=value.startswith(b"xtree-"),
            by_cost_file=value.startswith(b"callgrind-"),
        )

    def _pid(self, value: bytes) -> None:
        self._part.pid = self._number_or_text("pid", value)

    def _part_line(self, value: bytes) -> None:
        self._part.number = _number(value)

    def _thread(self, value: bytes) -> None:
        self._part.thread = self._number_or_text("thread", value)

    def _number_or_text(self, key: str, value: bytes) -> int | None:
        """Text, which Callgrind never writes, is kept next to the numbers: it distinguishes parts, too."""
        extra = self._part.extra
        extra.pop(f"{key}_text", None)
        try:
            return _number(value)
        except ValueError as error:
            extra[f"{key}_text"] = value
            if key not in self._textual:
                self._textual.add(key)
                line = self._lexer.line + 1
                self.log.warn(REPORTED["kept-as-text"], file=self.source.name, line=line, key=key, problem=str(error))
            return None

    def _cmd(self, value: bytes) -> None:
        # Only Callgrind escapes; others write literal backslashes.
        escaped = self._part.creator.startswith((b"callgrind-", b"fastprof-"))
        self._part.command = _unescape(value) if escaped else value

    def _desc(self, value: bytes) -> None:
        key, colon, text = value.partition(b":")
        if not colon:
            key, text = b"", value
        if key == b"Trigger":
            self._part.trigger = text.strip()
        elif key == b"Original creator":
            self._part.creator = text.strip()
        else:
            # Cachegrind aligns with blanks, and its tools compare lines literally
            self._part.descriptions.append((key.strip(), text.removeprefix(b" ").rstrip()))

    def _positions(self, value: bytes) -> None:
        words = [_decode(w) for w in value.split()]
        known = ["instr" if w in ("addr", "instr") else w for w in words]
        if not known or any(w not in POSITIONS for w in known):
            raise ValueError(f"positions are {_decode(value)!r}, expected some of instr, bb, line")
        ordered = tuple(p for p in POSITIONS if p in known)
        if len(ordered) != len(known):
            raise ValueError(f"positions are {_decode(value)!r}, expected each of them once")
        if tuple(known) != ordered:
            # Orbuculum lists them in another order, but writes the columns in the usual one
            self.log.count(REPORTED["positions-order"])
        self._part.positions = ordered
        self._start_body()

    def _event(self, value: bytes) -> None:
        event = parse_event(_decode(value))
        self._described[event.name] = event
        if self._index < 0 or self._lexer.begun or self._ended:
            self._given_events.add(event.name)  # of the next part
            return
        part = self._part  # Sniper writes events: first
        names = [t.name for t in part.value_types]
        if event.name in names:
            part.value_types[names.index(event.name)] = event
        else:
            part.extra.setdefault("inherited", []).append(event)

    def _events(self, value: bytes) -> None:
        names = _decode(value).split()
        if not names:
            raise ValueError("there are no event names")
        if len(names) > MAX_VALUE_TYPES:
            raise ValueError(f"{len(names):,} events are named, expected up to {MAX_VALUE_TYPES:,}")
        self._part.value_types = [self._described.get(name, ValueType(name)) for name in names]
        take_described(self._part, names)
        others = [e for e in self._described.values() if e.name not in names]
        # formulas of an earlier part still hold
        inherited = [e for e in others if e.formula or e.name in self._given_events]
        if inherited:
            self._part.extra["inherited"] = inherited
        self._given_events = set()
        self._index = self.model.add_part(self._part)
        self._parts += 1
        self._start_body()

    def _start_body(self) -> None:
        if self._index >= 0:
            self._start_lexer(has_events=True)

    def _start_lexer(self, *, has_events: bool, keeps_names: bool = False) -> None:
        self._lexer.start_part(len(self._part.value_types), *self._has_positions(), has_events, keeps_names)

    def _has_positions(self) -> tuple[bool, bool, bool]:
        instr, bb, line = (name in self._part.positions for name in POSITIONS)
        return instr, bb, line

    def _summary(self, value: bytes) -> None:
        before = len(self._wrapped)
        self._part.summary = counts = self._counts(value)
        if len(self._wrapped) > before and self._part.creator.startswith(b"callgrind-"):
            # Callgrind writes the difference of two event counters unsigned; it is negative after client requests that
            # zero them.  `totals:` is right, and callgrind_annotate shows it if there is no `summary:`.
            del self._wrapped[before:]
            self._part.summary = None
            self.log.count(REPORTED["wrapped-summary"])
        if self._lexer.begun:
            self._part.extra["late_summary"] = True
        if self.last_line == "summary":
            self._part.totals = counts.copy()
            self._ended = True

    def _totals(self, value: bytes) -> None:
        if value.strip() == b"(null)":  # Valgrind's xtree of a program that allocated nothing
            self.log.count(REPORTED["null-totals"])
            value = b""
        self._part.totals = self._counts(value)
        self._ended = True

    def _counts(self, text: bytes) -> list[int]:
        counts, wrapped = [], []
        for k, word in enumerate(text.split()):
            rounded = None if _is_integer(word) else nearest(word)
            if rounded is not None:
                self._rounded += 1
                self._first_rounded = self._first_rounded or self._lexer.line + 1
            value = _number(word, 1 << 64) if rounded is None else _fit(word, rounded)
            if value >> 63 > 0:
                wrapped.append((self._lexer.line + 1, self._offset, value, k))
                value = _fit(word, value - (1 << 64))
            counts.append(value)
        self._wrapped += wrapped
        return counts

    def _check_wrapped(self) -> None:
        """Counts of more than 2^63, which were read as 2^64 less, are below 0 if the part's costs then add up to what
        it states as its sums: old Xdebug writes freed memory like that."""
        lexer, part, wrapped = self._lexer, self._part, self._wrapped
        of_lines = lexer.wrapped
        n, columns = of_lines["n"] + len(wrapped), {k for *_, k in wrapped}
        if not n:
            return
        if of_lines["n"]:
            columns |= lexer.wrapped_columns
            wrapped = [(of_lines["line"], of_lines["offset"], of_lines["first"], 0), *wrapped]
        sums: list[int] = lexer.totals
        stated = [numbers for numbers in (part.summary, part.totals) if numbers is not None]
        if (
            stated
            and not lexer.overflowed
            and all(k < min(len(numbers), len(sums)) and numbers[k] == sums[k] for numbers in stated for k in columns)
        ):
            self.log.count(REPORTED["unsigned-negatives"], n)
        elif self.options[LENIENT]:
            self.log.count(REPORTED["wrapped-counts"], n)
        else:
            line, offset, number, _ = min(wrapped)
            detail = f"count is '{number}', expected at most 2^63 - 1: no sum of its part shows that it is negative"
            self._lose(detail, offset, line, code=lib.FP_E_OVERFLOW)

    def _check_totals(self, offset: int, *, open_end: bool = False) -> None:
        """Compare `totals:` with the sum of the rows, once a part, which ends at `offset`.

        `open_end`: the input ends there, without a newline.
        """
        self._check_wrapped()
        stated, part = self._part.totals, self._part
        if self._index < 0:
            return
        sums: list[int] = self._lexer.totals
        if self._is_cut_off(open_end):
            key, expected = ("summary", part.summary) if stated is None else (self.last_line, stated)
            detail = (
                f"part {part.number or self._index + 1} is incomplete: "
                f"its costs add up to {sums}, expected {expected} as in `{key}:`"
            )
            if not self.options[LENIENT]:
                self._lose(detail, offset, self._lexer.line, code=lib.FP_E_TRUNCATED)
            self.log.count(REPORTED["cut-off-parts"])
            self.log.warn(REPORTED["incomplete-part"], file=self.source.name, detail=detail)
        elif stated is None:
            # a file cut between two lines shows no other damage; fastprof itself omits totals that do not fit
            if self.has_last_line and not self._lexer.overflowed:
                code = "lost-totals" if self.options[LENIENT] else "missing-totals"
                self.log.count(REPORTED[code], key=self.last_line)
                self.log.warn(
                    REPORTED["maybe-cut-off"],
                    file=self.source.name,
                    part=part.number or self._index + 1,
                    key=self.last_line,
                )
        elif self._lexer.overflowed:
            self.log.warn(REPORTED["overflowed-costs"], file=self.source.name)
        elif _padded(stated, sums) != sums:
            self.log.count(REPORTED["wrong-totals"], key=self.last_line)
            self.log.warn(
                REPORTED["different-totals"],
                file=self.source.name,
                key=self.last_line,
                part=part.number or self._index + 1,
                stated=str(stated),
                sums=str(sums),
            )

    def _is_cut_off(self, open_end: bool) -> bool:
        """Whether the part of a writer that ends its parts with `totals:` was cut: it falls short of its `summary:`
        without that line, or that line itself is not whole."""
        lexer, part = self._lexer, self._part
        if not self.has_last_line or lexer.overflowed:
            return False
        if part.totals is not None:
            return open_end and _padded(part.totals, lexer.totals) != lexer.totals
        return any(stated > found for stated, found in zip(part.summary or (), lexer.totals, strict=False))

    # ---- numbers used before their definition --------------------------------

    def _find_definition(self, in_: fp_window) -> None:
        """Name a number that has none yet: by its definition further on.  A pipe is spooled for that."""
        lexer, source = self._lexer, self.source
        kind, number = lexer.undefined_kind, lexer.undefined - 1
        if self._later is None:
            start = in_.base + in_.pos
            source.spool()
            self._later = _definitions(source, start)
            source.select(start)
            source.refill()
        name = self._later.get((kind, number))
        if name is None:
            name = b"(%d)" % number
            self.log.count(REPORTED["unnamed-numbers"])
        else:
            self.log.count(REPORTED["late-definitions"])
        lexer.define(kind, number, self.model.intern(name))

    # ---- the end -----------------------------------------------------------

    def finish(self) -> None:
        counts, log = self._lexer.counts, self.log
        rounded = counts["rounded_counts"] + self._rounded
        log.count_all(REPORTED, coded(REPORTED, counts) | {"rounded-counts": rounded})
        if rounded:
            line = min(filter(None, (counts["first_rounded"], self._first_rounded)))
            log.warn(REPORTED["fractions"], file=self.source.name, line=line)


_LINES = {
    b"version": CallgrindReader._version,
    b"creator": CallgrindReader._creator,
    b"pid": CallgrindReader._pid,
    b"thread": CallgrindReader._thread,
    b"part": CallgrindReader._part_line,
    b"cmd": CallgrindReader._cmd,
    b"desc": CallgrindReader._desc,
    b"positions": CallgrindReader._positions,
    b"event": CallgrindReader._event,
    b"events": CallgrindReader._events,
    b"summary": CallgrindReader._summary,
    b"totals": CallgrindReader._totals,
}


_DEFINITION = rb"(?m)^(?:c?(fn|ob)|fr(fn)|(fl|fi|fe|cfi|cfl|jfi)|j(fn))=\((\d+)\)[ \t]*([^\r\n]+)"


def _definitions(source: Source, offset: int) -> dict[tuple[int, int], bytes]:
    """The first definition of each number from `offset` on."""
    found: dict[tuple[int, int], bytes] = {}
    rest = b""
    while True:
        more = source.read_at(offset, WINDOW)
        lines = rest + more
        cut = lines.rfind(b"\n") + 1 if more else len(lines)
        for match in re.finditer(_DEFINITION, lines[:cut]):
            kind = KINDS[_decode(match[1] or match[2] or match[4] or b"fl")]
            found.setdefault((kind, int(match[5])), match[6])
        if not more:
            return found
        rest, offset = lines[cut:], offset + len(more)


def parse_event(text: str) -> ValueType:
    """`NAME [= FORMULA] [: LONG NAME]`, the text after `event:`."""
    head, _, long_name = text.partition(":")
    name, _, formula = head.partition("=")
    name = name.strip()
    if not name or " " in name:
        raise ValueError(f"event is {text!r}, expected NAME = FORMULA : LONG NAME")
    return ValueType(name, long_name=long_name.strip(), formula=formula.strip())


def _padded(counts: list[int], sums: list[int]) -> list[int]:
    """Counts of a line with the omitted trailing zeros."""
    return counts + [0] * (len(sums) - len(counts))


def _number(word: bytes, limit: int = 1 << 63) -> int:
    if not _is_integer(word):
        raise ValueError(f"found {_decode(word[:80])!r}, expected a whole number")
    return _fit(word, int(word, 16 if b"x" in word.lower() else 10) if len(word) < 80 else limit, limit)


def _fit(word: bytes, value: int, limit: int = 1 << 63) -> int:
    if not -1 << 63 < value < limit:
        raise ValueError(f"found {_decode(word[:80])}, expected at most 2^63 - 1")
    return value


def _unescape(command: bytes) -> bytes:
    if b"\\" not in command:
        return command
    return re.sub(rb"\\([\\n])", lambda m: b"\n" if m[1] == b"n" else b"\\", command)
