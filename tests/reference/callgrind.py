"""A slow, obvious reader of Callgrind and Cachegrind files: the oracle of the compiled one.

One regular expression per kind of line, one dictionary per kind of name, no windows.  It reads well-formed files in
every dialect, and does not repair damaged ones.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import takewhile
from typing import NamedTuple


class Function(NamedTuple):
    object: bytes
    file: bytes
    name: bytes


class Row(NamedTuple):
    kind: str  # cost, call, jump, jcnd, block
    function: Function
    file: bytes
    position: tuple[int, int, int]  # instr, bb, line; 0 where the part has no such column
    values: tuple[int, ...]
    callee: Function | None = None
    target_file: bytes = b""
    target: tuple[int, int, int] = (0, 0, 0)
    count: int = 0
    count2: int = 0


@dataclass
class Part:
    events: list[str] = field(default_factory=list)
    positions: list[str] = field(default_factory=lambda: ["line"])
    header: dict[str, str] = field(default_factory=dict)
    summary: list[int] | None = None
    totals: list[int] | None = None
    rows: list[Row] = field(default_factory=list)

    @property
    def sums(self) -> list[int]:
        costs = [row.values for row in self.rows if row.kind == "cost"]
        return [sum(column) for column in zip(*costs, strict=True)] if costs else [0] * len(self.events)


KEYS = {"version", "creator", "cmd", "part", "pid", "thread", "positions", "events"}
COLUMNS = ("instr", "bb", "line")
NUMBER = rb"(?:0[xX][0-9a-fA-F]+|\d+)"


def number(text: bytes) -> int:
    return int(text, 16) if text[:2].lower() == b"0x" else int(text)


def count(text: bytes) -> int:
    """A number of calls or of an event, rounded to the nearest integer if it has a fraction or exponent."""
    return number(text) if re.fullmatch(NUMBER, text) else round(Fraction(text.decode()))


def cost(text: bytes) -> int:
    """A negative cost has a sign, or is written plus 2^64."""
    value = -count(text[1:]) if text[:1] == b"-" else count(text)
    return value - (1 << 64) if value >= 1 << 63 else value


class Reader:
    def __init__(self, numbered: bool) -> None:
        self.numbered = numbered
        self.names: dict[tuple[str, int], bytes] = {}
        self.later: dict[tuple[str, int], bytes] = {}  # the first definition of each, for use before it
        self.bound: dict[int, tuple[Function, bool]] = {}
        self.binds = False  # a number means one function in any file (xtree)
        self.by_cost_file = False  # Callgrind's own rule
        self.latest: dict[bytes, Function] | None = None  # Xdebug without cfl=: by name, the last function with a block
        self.parts: list[Part] = []
        self.begin(Part())

    def begin(self, part: Part) -> None:
        self.part = part
        self.given: set[str] = set()
        self.body = False
        self.ended = False
        self.base = (0, 0, 0)
        self.object = self.file = self.cost_file = b""
        self.call: tuple[bytes, tuple[int, int, int]] | None = None  # the stated file of calls, and their place
        self._home: bytes | None = None  # the last fl=
        self.named: tuple[bytes, bytes, bytes, int | None, bool] | None = None
        self.function: Function | None = None
        self.cob: bytes | None = None
        self.cfi: bytes | None = None
        self.cfn: tuple[bytes, int | None] | None = None
        self.callee: Function | None = None
        self.called: Function | None = None
        self.jfi: bytes | None = None
        self.jfn: Function | None = None
        self.pending: tuple[str, int, int, tuple[int, int, int]] | None = None

    @property
    def home(self) -> bytes:
        """The file of a function named now; some writers have only fi=."""
        return self.file if self._home is None else self._home

    @property
    def target_home(self) -> bytes:
        """The file of a callee or of a jump's target, if none is stated."""
        return self.cost_file if self.by_cost_file else self.file

    def file_of_call(self, position: tuple[int, int, int]) -> bytes:
        """In Callgrind's files fi= is valid for the calls and jumps of one place; then the last cost line's file is."""
        if not self.by_cost_file:
            return self.file
        if self.file != self.cost_file:
            self.call = self.file, (position[0], 0, position[2])
            self.file = self.cost_file
        if self.call and self.call[1] == (position[0], 0, position[2]):
            return self.call[0]
        self.call = None
        return self.file

    # names

    def name(self, kind: str, text: bytes) -> tuple[bytes, int | None, bool]:
        """The name, its number, and whether the number is defined here."""
        match = re.match(rb"\((\d+)\)[ \t]*(.*)$", text, re.DOTALL) if self.numbered else None
        if not match:
            return text, None, False
        n = int(match[1])
        if match[2]:
            self.names[kind, n] = match[2]
            if kind == "fn":
                self.bound.pop(n, None)
        elif (kind, n) not in self.names:
            self.names[kind, n] = self.later[kind, n]
        return self.names[kind, n], n, bool(match[2])

    def look_up(
        self, name: bytes, n: int | None, file: bytes, has_file: bool, object: bytes, has_object: bool
    ) -> Function:
        if n is not None and n in self.bound:
            bound, assumed = self.bound[n]
            same_file = not has_file or bound.file == file or self.binds
            same_object = not has_object or bound.object == object or assumed
            if bound.name == name and same_file and same_object:
                return bound
        function = Function(object, file, name)
        if n is not None:
            self.bound[n] = function, not has_object
        return function

    def current(self) -> Function:
        if self.function is None:
            outside = b"" if self.numbered else b"<unspecified>"
            name, home, object, n, _ = self.named or (outside, self.home, self.object, None, False)
            self.function = self.look_up(name, n, home, True, object, True)
            if self.latest is not None:
                self.latest[name] = self.function
        return self.function

    def end_block(self) -> None:
        if self.named and self.function is None and not self.named[4]:
            zero = (0,) * len(self.part.events)
            self.part.rows.append(Row("block", self.current(), self.named[1], (0, 0, 0), zero))

    # lines

    def positions(self, words: list[bytes]) -> tuple[int, int, int]:
        found = [0, 0, 0]
        for column in self.part.positions:
            if not words:
                break
            k = COLUMNS.index(column)
            word = words.pop(0)
            if word == b"*":
                found[k] = self.base[k]
            elif word == b"?":  # old versions of pprof: unknown
                found[k] = 0
            elif word[:1] in b"+-":
                found[k] = self.base[k] + (number(word[1:]) if word[:1] == b"+" else -number(word[1:]))
            else:
                match = re.match(NUMBER, word)  # a range means its first position
                assert match, word
                found[k] = number(match[0])
            if column == "line":
                found[k] = max(found[k], 0)  # some writers use -1 for no line
            assert 0 <= found[k] < (1 << 32 if column == "line" else 1 << 64)
        return found[0], found[1], found[2]

    def position_line(self, text: bytes) -> None:
        self.body = True
        words = text.split()
        position = self.positions(words)
        function = self.current()
        kind, calls, count2, target = self.pending or ("cost", 0, 0, (0, 0, 0))
        self.pending = None
        said = takewhile(lambda word: not word.startswith(b"#"), words)
        counts = [0 if w == b"." else cost(w) for w in said]
        assert len(counts) <= len(self.part.events)
        values = tuple(counts + [0] * (len(self.part.events) - len(counts)))
        jfi = self.target_home if self.jfi is None else self.jfi
        file = self.file if kind == "cost" else self.file_of_call(position)
        if kind == "cost":
            self.base = position
            self.cost_file, self.call = self.file, None
            self.part.rows.append(Row("cost", function, file, position, values))
        elif kind == "call":
            self.part.rows.append(Row("call", function, file, position, values, self.called, b"", target, calls))
        else:
            zero = (0,) * len(self.part.events)  # a jump costs nothing, whatever the line states
            self.part.rows.append(
                Row(kind, function, file, position, zero, self.jfn or function, jfi, target, calls, count2)
            )
            self.jfi = self.jfn = None

    def count_line(self, kind: str, text: bytes) -> None:
        self.body = True
        if kind == "jcnd":
            text = text.replace(b"/", b" ", 1)
        words = text.split()
        calls = count(words.pop(0))
        count2 = count(words.pop(0)) if kind == "jcnd" else 0
        target = self.positions(words)
        if self.callee is None and self.cfn and self.cfn[1] is None and self.cob is None and self.cfi is None:
            self.callee = (self.latest or {}).get(self.cfn[0])
        if kind == "call" and (self.callee is None or self.cob is not None or self.cfi is not None):
            name, n = self.cfn or (b"", None)
            self.callee = self.look_up(
                name,
                n,
                self.target_home if self.cfi is None else self.cfi,
                self.cfi is not None,
                self.object if self.cob is None else self.cob,
                self.cob is not None,
            )
            self.cob = self.cfi = None
        self.called = self.callee
        self.pending = kind, calls, count2, target

    def name_line(self, key: str, text: bytes) -> None:
        self.body = True
        if key == "fn":
            self.end_block()
            name, n, defined = self.name("fn", text)
            self.file = self.cost_file = self.home
            self.call = None
            self.named = name, self.home, self.object, n, defined
            self.function = self.cfn = self.callee = None
        elif key == "cfn":
            self.cfn = self.name("fn", text)[:2]
            self.callee = None
        elif key == "jfn":
            name, n, _ = self.name("fn", text)
            jfi = self.target_home if self.jfi is None else self.jfi
            self.jfn = self.bound[n][0] if n in self.bound else Function(self.object, jfi, name)
            return
        elif key in ("frfn", "rec"):  # --mangle-names=no: blocks split by caller and recursion are one function
            if key == "frfn":
                self.name("fn", text)
            if self.by_cost_file and self.named:
                self.file = self.cost_file = self.named[1]
                self.call = None
            return
        elif key == "ob":
            self.object = self.name("ob", text)[0]
        elif key == "cob":
            self.cob = self.name("ob", text)[0]
        elif key in ("cfi", "cfl"):
            self.cfi = self.name("fl", text)[0]
        elif key == "jfi":
            self.jfi = self.name("fl", text)[0]
            return
        else:
            if key == "fl" and not self.numbered:  # Cachegrind's ends the function
                self.end_block()
                self.named = self.function = None
            self.file = self.name("fl", text)[0]
            if key == "fl":
                self._home = self.file

    def header_line(self, key: str, value: str) -> None:
        part = self.part
        if part in self.parts and key in KEYS and (self.body or self.ended or key in self.given):
            self.end_block()
            self.begin(Part(part.events, part.positions))
            part = self.part
        self.given.add(key)
        if key == "events":
            part.events = value.split()
            self.parts.append(part)
        elif key == "positions":
            # the columns are written in one order, whatever the order of their names
            part.positions = sorted(("instr" if w == "addr" else w for w in value.split()), key=COLUMNS.index)
        elif key == "summary":
            part.summary = [cost(w.encode()) for w in value.split()]
            self.ended |= not self.numbered
        elif key == "totals":
            part.totals = [cost(w.encode()) for w in value.split()]
            self.ended = True
        else:
            part.header[key] = value
            if key == "version":
                self.latest = {} if value == "0.9.6" else None
            if key == "creator":
                self.binds = value.startswith("xtree-")
                self.by_cost_file = value.startswith("callgrind-")

    def line(self, text: bytes) -> None:
        if not self.numbered and not self.parts and "cmd" in self.given and not text.startswith(b"events:"):
            return  # the rest of a command that contains a newline
        text = text.rstrip(b"\r").lstrip(b" \t")
        if not text or text.startswith(b"#"):
            return
        if text[:1] in b"0123456789+-*?":
            self.position_line(text)
        elif match := re.match(rb"(fn|fl|fi|fe|ob|cfn|cfi|cfl|cob|jfi|jfn|frfn|rec)=(.*)$", text, re.DOTALL):
            self.name_line(match[1].decode(), match[2])
        elif match := re.match(rb"(r?calls|jump|jcnd)=(.*)$", text):
            self.count_line("call" if match[1].endswith(b"calls") else match[1].decode(), match[2])
        elif match := re.match(rb"(\w+)[:=](.*)$", text) or re.match(rb"(summary|totals)[ \t](.*)$", text):
            self.header_line(match[1].decode(), match[2].decode("utf-8", "surrogateescape").strip())
        else:
            assert text.startswith(b"==== NEW PROFILING FILE"), text
            self.end_block()
            self.begin(Part(self.part.events, self.part.positions))


def parse(data: bytes, numbered: bool = True) -> list[Part]:
    """The parts of a file.  `numbered`: Callgrind's `(12) name`; Cachegrind has plain names."""
    reader = Reader(numbered)
    for key, n, name in re.findall(rb"^(\w+)=\((\d+)\)[ \t]*([^\r\n]+)", data, re.MULTILINE):
        kind = "fn" if key.endswith(b"fn") else "ob" if key.endswith(b"ob") else "fl"
        reader.later.setdefault((kind, int(n)), name)
    for text in data.split(b"\n"):
        reader.line(text)
    assert reader.pending is None
    reader.end_block()
    return reader.parts
