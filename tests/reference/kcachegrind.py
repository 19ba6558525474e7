"""KCachegrind's reading of Callgrind files: an obvious model of its loader and of the figures it shows.

Its rules differ from the format document and from Callgrind's writer (docs/formats/callgrind.md); this model reproduces
them with their faults, so that a test can predict the figures that a KCachegrind user sees.  Cycles of functions are
not collapsed: they follow from the graph, as `cgview -n` shows it.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import NamedTuple

NUMBER = rb"0x[0-9a-fA-F]+|\d+"


class Function(NamedTuple):
    """The identity of a function: name, and base names of file and object."""

    name: bytes
    file: bytes
    object: bytes


@dataclass
class Arc:
    count: int
    cost: list[int]


@dataclass
class Part:
    own: dict[Function, list[int]]
    arcs: dict[tuple[Function, Function], Arc]
    lines: Counter[tuple[Function, bytes, int, int]]  # cost lines, by file, address and line


@dataclass
class Shown:
    """One function with every event's figures."""

    inclusive: list[int]
    own: list[int]
    called: int = 0
    callers: dict[Function, Arc] = field(default_factory=dict)
    callees: dict[Function, Arc] = field(default_factory=dict)


def base_name(text: bytes) -> bytes:
    return b"" if text == b"???" else text.rpartition(b"/")[2]


def number(text: bytes) -> int:
    return int(text, 16) if text.startswith(b"0x") else int(text)


class Loader:
    """Load one file after another, like KCachegrind given the prefix of their names."""

    def __init__(self) -> None:
        self.events: list[bytes] = []  # of all files
        self.parts: list[Part] = []
        self.errors: list[int] = []  # lines that caused a message
        self.refused = 0  # files

    def load(self, data: bytes) -> None:
        head = data[:2047]
        if not head.startswith(b"# callgrind format") and not re.search(rb"^(events|creator):", head, re.MULTILINE):
            self.refused += 1
            return
        self.instr, self.line_column = False, True
        self.columns: list[int] = []
        self.begin_part()
        for at, text in enumerate(data.split(b"\n"), 1):
            self.at = at
            if text := text.removesuffix(b"\r"):
                self.line(text)

    def begin_part(self) -> None:
        self.has_events = False
        self.files: dict[int, bytes] = {}
        self.objects: dict[int, bytes] = {}
        self.functions: dict[int, Function] = {}
        self.address = self.number = 0
        self.object = self.fl = self.file = b""
        self.function: Function | None = None
        self.cob: bytes | None = None
        self.cfi: bytes | None = None
        self.called: Function | None = None
        self.calls: int | None = None
        self.jump = False

    def error(self) -> None:
        self.errors.append(self.at)

    def line(self, text: bytes) -> None:
        if text[:1] == b"#":
            return
        if text[0] <= ord("9"):
            self.position_line(text)
            return
        match = re.match(rb"(fn|fl|fi|fe|ob|cfn|cfi|cfl|cob|jfi|jfn|calls|rcalls|jump|jcnd)=(.*)$", text, re.DOTALL)
        if match:
            self.body_line(match[1], match[2])
            return
        match = re.match(rb"(\w+):(.*)$", text, re.DOTALL)
        if match:
            self.header_line(match[1], match[2].strip(b" "))
        else:
            self.error()

    def header_line(self, key: bytes, value: bytes) -> None:
        if key in (b"part", b"pid", b"thread", b"positions", b"events") and self.has_events:
            self.begin_part()
        if key == b"positions":
            self.instr, self.line_column = b"instr" in value, b"line" in value
        elif key == b"events":
            self.has_events = True
            names = value.split()
            self.events += [name for name in dict.fromkeys(names) if name not in self.events]
            self.columns = [self.events.index(name) for name in names]
            self.parts.append(Part({}, {}, Counter()))

    # names

    def compressed(self, text: bytes, table: dict[int, bytes]) -> bytes:
        match = re.match(rb"\((\d+)\)", text)
        if not match:
            return text
        n, name = int(match[1]), text[match.end() :].lstrip(b" ")
        if name:
            if table.get(n, name) != name:
                self.error()
            table[n] = name
        elif n not in table:
            self.error()
        return table.get(n, b"")

    def compressed_function(self, text: bytes, file: bytes, object: bytes) -> Function:
        """A number keeps the first function that it meant, wherever it is used."""
        match = re.match(rb"\((\d+)\)", text)
        if not match:
            return Function(text, base_name(file), base_name(object))
        n, name = int(match[1]), text[match.end() :].lstrip(b" ")
        known = self.functions.get(n)
        if not name and known is None:
            self.error()
        if name and (known is None or known.name != name):
            if known is not None:
                self.error()
            known = self.functions[n] = Function(name, base_name(file), base_name(object))
        return known or Function(b"", b"", b"")

    def body_line(self, key: bytes, text: bytes) -> None:
        if key == b"fn":
            self.file = self.fl
            self.function = self.compressed_function(text, self.file, self.object)
            self.part_of(self.function)
        elif key == b"ob":
            self.object = self.compressed(text, self.objects)
            self.function = None
        elif key in (b"fl", b"fi", b"fe"):
            self.file = self.compressed(text, self.files)
            if key == b"fl":
                self.fl = self.file
        elif key == b"cob":
            self.cob = self.compressed(text, self.objects)
        elif key in (b"cfi", b"cfl"):
            self.cfi = self.compressed(text, self.files)
        elif key == b"cfn":
            file = self.file if self.cfi is None else self.cfi
            self.called = self.compressed_function(text, file, self.object if self.cob is None else self.cob)
        elif key in (b"calls", b"rcalls"):
            match = re.match(rb" *(" + NUMBER + rb")", text)
            self.calls = number(match[1]) if match else 0
        elif key in (b"jump", b"jcnd"):
            self.jump = True
        elif key == b"jfi":
            self.compressed(text, self.files)

    def part_of(self, function: Function) -> list[int]:
        return self.parts[-1].own.setdefault(function, [])

    # lines with costs

    def place(self, text: bytes, base: int) -> tuple[int, bytes] | None:
        """A position relative to `base`, and the rest of the line."""
        match = re.match(rb"(\*|[+-]?(?:" + NUMBER + rb"))(?:[+:-](?:" + NUMBER + rb"))? *", text)
        if not match:
            return None
        word = match[1]
        if word == b"*":
            return base, text[match.end() :]
        if word[:1] in b"+-":
            difference = number(word[1:]) & 0xFFFFFFFF
            return base + (difference if word[:1] == b"+" else -difference), text[match.end() :]
        return number(word), text[match.end() :]

    def position_line(self, text: bytes) -> None:
        rest = text
        for column in ("address",) * self.instr + ("number",) * self.line_column:
            found = self.place(rest, getattr(self, column))
            if found is None:
                self.error()
                return
            value, rest = found
            setattr(self, column, value)  # also on lines of calls and jumps
        counts: list[int] = []
        while rest and len(counts) < len(self.columns):
            match = re.match(rb"(-?)(" + NUMBER + rb") *", rest)
            if not match:
                break
            counts.append(0 if match[1] else number(match[2]))
            rest = rest[match.end() :]
        if rest.strip(b" "):
            self.error()
        if self.function is None:
            self.error()
            self.function = Function(b"", b"", b"")
        if self.jump:
            self.jump = False
        elif self.calls is not None:
            assert self.called is not None
            arc = self.parts[-1].arcs.setdefault((self.function, self.called), Arc(0, []))
            arc.count += self.calls
            self.add(arc.cost, counts)
            self.calls = self.cob = self.cfi = None
        else:
            self.add(self.part_of(self.function), counts)
            self.parts[-1].lines[self.function, base_name(self.file), self.address, self.number] += 1

    def add(self, to: list[int], counts: list[int]) -> None:
        to += [0] * (len(self.events) - len(to))
        for column, count in zip(self.columns, counts, strict=False):
            to[column] += count

    # shown figures

    def cost(self, values: list[int]) -> list[int]:
        return values + [0] * (len(self.events) - len(values))

    def totals(self) -> dict[bytes, int]:
        columns = [self.cost(own) for part in self.parts for own in part.own.values()]
        return {name: sum(values[k] for values in columns) for k, name in enumerate(self.events)}

    def shown(self) -> dict[Function, Shown]:
        """Part by part: a called function costs what the calls into it cost, without its calls to itself; any other
        function costs its self cost and its callees."""
        zero = [0] * len(self.events)
        found: dict[Function, Shown] = defaultdict(lambda: Shown(zero, zero))
        for part in self.parts:
            into: dict[Function, list[int]] = defaultdict(lambda: zero)
            out: dict[Function, list[int]] = defaultdict(lambda: zero)
            called: Counter[Function] = Counter()
            for (caller, callee), arc in part.arcs.items():
                called[callee] += arc.count
                if caller != callee:
                    into[callee] = plus(into[callee], self.cost(arc.cost))
                    out[caller] = plus(out[caller], self.cost(arc.cost))
                for function, other, arcs in (
                    (callee, caller, found[callee].callers),
                    (caller, callee, found[caller].callees),
                ):
                    before = arcs.get(other, Arc(0, zero))
                    arcs[other] = Arc(before.count + arc.count, plus(before.cost, self.cost(arc.cost)))
                    assert function in found
            for function in {f for arc in part.arcs for f in arc} | set(part.own):
                own = self.cost(part.own.get(function, []))
                inclusive = into[function] if called[function] else plus(own, out[function])
                shown = found[function]
                shown.inclusive = plus(shown.inclusive, inclusive)
                shown.own = plus(shown.own, own)
                shown.called += called[function]
        return dict(found)


def plus(a: list[int], b: list[int]) -> list[int]:
    return [x + y for x, y in zip(a, b, strict=True)]


def load(*files: bytes) -> Loader:
    loader = Loader()
    for data in files:
        loader.load(data)
    return loader


# ---- cycles


def cycles(loader: Loader, with_faults: bool = True) -> list[set[Function]]:
    """The sets of functions that KCachegrind merges into one cycle.

    Its search begins with one function after another, in the order of their names.  It does not see that a call leads
    back to the function where it began, because that one has no entry below it on the search's stack: such a function
    is in no cycle.  `with_faults=False`: it is.
    """
    callees: dict[Function, list[Function]] = defaultdict(list)
    for part in loader.parts:
        for caller, callee in part.arcs:
            if callee not in callees[caller]:
                callees[caller].append(callee)
    low: dict[Function, int] = {}
    stack: list[Function] = []
    open_: set[Function] = set()  # on the stack, as far as the search sees it
    found: list[set[Function]] = []

    def visit(function: Function) -> None:
        number = low[function] = len(low) + 1
        if stack or not with_faults:
            open_.add(function)
        stack.append(function)
        for callee in callees[function]:
            if callee not in low:
                visit(callee)
                low[function] = min(low[function], low[callee])
            elif callee in open_:
                low[function] = min(low[function], low[callee])
        if low[function] == number:
            members = stack[stack.index(function) :]
            del stack[stack.index(function) :]
            open_.difference_update(members)
            if len(members) > 1:
                found.append(set(members))

    for function in sorted({f for part in loader.parts for f in (*part.own, *(f for arc in part.arcs for f in arc))}):
        if function not in low:
            visit(function)
    return found


def collapse(shown: dict[Function, Shown], found: list[set[Function]]) -> dict[Function, Shown]:
    """The figures of functions and of one function per cycle, named `<cycle N>`; N begins at 1."""
    result = dict(shown)
    of = {member: Function(b"<cycle %d>" % n, b"", b"") for n, members in enumerate(found, 1) for member in members}
    for n, members in enumerate(found, 1):
        cycle = Function(b"<cycle %d>" % n, b"", b"")
        zero = [0] * len(next(iter(shown.values())).own)
        total = Shown(zero, zero)
        for member in members:
            function = shown[member]
            inclusive = function.own
            for callee, arc in function.callees.items():
                if of.get(callee) != cycle:
                    inclusive = plus(inclusive, arc.cost)
            outside = {c: arc for c, arc in function.callers.items() if of.get(c) != cycle}
            inside = {c: arc for c, arc in function.callers.items() if of.get(c) == cycle}
            called = function.called
            result[member] = Shown(inclusive, function.own, called, inside | {cycle: Arc(0, inclusive)}, {})
            total.inclusive, total.own = plus(total.inclusive, inclusive), plus(total.own, function.own)
            total.callees[member] = Arc(0, inclusive)
            for caller, arc in outside.items():
                before = total.callers.get(caller, Arc(0, zero))
                total.callers[caller] = Arc(before.count + arc.count, plus(before.cost, arc.cost))
        total.called = sum(arc.count for arc in total.callers.values())
        result[cycle] = total
    for function, figures in shown.items():
        callees: dict[Function, Arc] = {}
        for callee, arc in figures.callees.items():
            target = of.get(callee, callee)
            target = callee if target == of.get(function) else target
            before = callees.get(target, Arc(0, [0] * len(arc.cost)))
            callees[target] = Arc(before.count + arc.count, plus(before.cost, arc.cost))
        now = result[function]
        result[function] = Shown(now.inclusive, now.own, now.called, now.callers, callees)
    return result
