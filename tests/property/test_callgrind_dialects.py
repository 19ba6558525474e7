"""Hypothesis: profiles from a model, written in every dialect, read back as the model; and summed up."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fastprof.core.errors import FormatError
from fastprof.core.options import Options
from tests.reference.callgrind import Function, Part, Row, parse
from tests.support.graphs import read_parts, rewrite

NAME = st.one_of(
    st.sampled_from([b"main", b"f", b"g'2", b"a.c", b"", b"(below main)", b"???", b"x (y) z"]),
    st.binary(min_size=1, max_size=12).filter(lambda b: not set(b) & {0, 10, 13} and b[:1] not in (b" ", b"\t", b"(")),
)
SMALL = st.integers(0, 300)
LINE = st.one_of(SMALL, st.integers(0, 2**32 - 1))
ADDRESS = st.one_of(st.integers(0x401000, 0x401100), st.integers(0, 2**64 - 1))
COUNT = st.one_of(SMALL, st.integers(0, 2**62))
BEHIND = b"# behind the counts"  # longer than any name
ROUNDED = [b".4999999999999", b"e+00000000000000", b"4999999999999E-13"]  # suffixes that keep a number's value
NO_NUMBER = b"the process 7"  # not a number
VALUE = st.one_of(st.just(0), SMALL, st.integers(-(2**50), 2**50))


@st.composite
def profiles(draw: st.DrawFn) -> list[Part]:
    functions = draw(st.lists(st.builds(Function, NAME, NAME, NAME), min_size=1, max_size=5, unique=True))
    files = [f.file for f in functions] + draw(st.lists(NAME, max_size=2))
    parts = []
    for _ in range(draw(st.integers(1, 3))):
        columns = draw(st.sampled_from([["line"], ["instr"], ["instr", "line"], ["instr", "bb", "line"], ["bb"]]))
        part = Part([f"E{k}" for k in range(draw(st.integers(1, 12)))], columns)

        def place(columns: list[str] = columns) -> tuple[int, int, int]:
            limits = zip(("instr", "bb", "line"), (ADDRESS, ADDRESS, LINE), strict=True)
            instr, bb, line = (draw(strategy) if name in columns else 0 for name, strategy in limits)
            return instr, bb, line

        for function in draw(st.lists(st.sampled_from(functions), max_size=6)):
            for _ in range(draw(st.integers(1, 4))):
                kind = draw(st.sampled_from(["cost", "cost", "call", "jump", "jcnd"]))
                values = tuple(draw(VALUE) if kind in ("cost", "call") else 0 for _ in part.events)
                row = Row(kind, function, draw(st.sampled_from(files)), place(), values)
                if kind != "cost":
                    callee = draw(st.sampled_from(functions))
                    row = row._replace(callee=callee, target=place(), count=draw(COUNT))
                if kind in ("jump", "jcnd"):
                    # jfn= has no object, and a file only by jfi=
                    row = row._replace(callee=function, target_file=draw(st.sampled_from(files)))
                if kind == "jcnd":
                    row = row._replace(count2=draw(COUNT))
                part.rows.append(row)
        parts.append(part)
    return parts


class Dialect:
    """One way to write a profile."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.numbered, self.relative, self.hexadecimal = draw(st.booleans()), draw(st.booleans()), draw(st.booleans())
        self.every_line = draw(st.booleans())  # write all names before every row
        self.callee_file_last, self.cfl = draw(st.booleans()), draw(st.booleans())
        self.blank, self.end = draw(st.sampled_from([b" ", b"\t", b"  "])), draw(st.sampled_from([b"\n", b"\r\n"]))
        self.trailing = draw(st.booleans())
        self.order = draw(st.sampled_from([list, reversed]))  # of columns in their header line, not in rows
        self.sums = draw(st.sampled_from([b"", b"%b: ", b"%b "]))
        self.rounded = draw(st.sampled_from([b"", b"", *ROUNDED]))
        self.process = draw(st.sampled_from([[], [b"pid: 7"], [b"pid: " + NO_NUMBER]]))
        self.first = draw(st.sampled_from([0, 1, 7000, 2**40]))
        self.numbers: dict[tuple[str, object], int] = {}

    def name(self, kind: str, key: object, text: bytes) -> bytes:
        if not self.numbered or not text:
            return text
        new = (kind, key) not in self.numbers
        n = self.numbers.setdefault((kind, key), self.first + 3 * len(self.numbers))
        return b"(%d)" % n + (b" " + text if new else b"")

    def position(self, at: tuple[int, int, int], base: tuple[int, int, int], part: Part) -> bytes:
        words = []
        for k, column in enumerate(("instr", "bb", "line")):
            if column in part.positions:
                difference = at[k] - base[k]
                if self.relative and difference == 0:
                    words.append(b"*")
                elif self.relative and abs(difference) < 2**31:
                    words.append(b"%+d" % difference)
                else:
                    words.append(b"0x%x" % at[k] if self.hexadecimal or column != "line" else b"%d" % at[k])
        return self.blank.join(words)

    def counts(self, values: tuple[int, ...]) -> bytes:
        shown = list(values)
        while self.trailing and shown and shown[-1] == 0:
            shown.pop()
        how = b"0x%x" if self.hexadecimal and not self.rounded else b"%d" + self.rounded
        return b"".join(self.blank + (how if v >= 0 else b"%d" + self.rounded) % v for v in shown)

    def row(self, row: Row, file: bytes, base: tuple[int, int, int], part: Part) -> list[bytes]:
        """The lines of a row in the function and file that precede them."""
        lines, rounded = [], self.rounded
        if row.kind == "call":
            assert row.callee
            target = [b"cfn=" + self.name("fn", row.callee, row.callee.name)]
            key = b"cfl=" if self.cfl else b"cfi="
            target.insert(self.callee_file_last, key + self.name("fl", row.callee.file, row.callee.file))
            lines += [b"cob=" + self.name("ob", row.callee.object, row.callee.object), *target]
            where = self.position(row.target, base, part)
            lines.append(b"calls=%d%b%b%b" % (row.count, rounded, self.blank, where))
        elif row.kind != "cost":
            if row.target_file != file:
                lines.append(b"jfi=" + self.name("fl", row.target_file, row.target_file))
            jcnd = b"jcnd=%d%b/%d%b" % (row.count, rounded, row.count2, rounded)
            count = b"jump=%d%b" % (row.count, rounded) if row.kind == "jump" else jcnd
            lines.append(count + self.blank + self.position(row.target, base, part))
        has_values = row.kind in ("cost", "call")
        values = self.counts(row.values) if has_values else b""
        behind = self.blank + BEHIND if has_values and self.draw(st.integers(0, 9)) == 0 else b""
        return [*lines, self.position(row.position, base, part) + (values or self.blank) + behind]

    def part(self, part: Part) -> list[bytes]:
        lines = [*self.process, b"positions: " + " ".join(self.order(part.positions)).encode()]
        lines += [b"events: " + " ".join(part.events).encode(), b""]
        sums = b" ".join(b"%d" % v + self.rounded for v in part.sums)
        if self.sums:
            lines.append(self.sums % b"summary" + sums)
        base = (0, 0, 0)
        said: Function | None = None
        file = b""
        for row in part.rows:
            if row.function != said or self.every_line:
                said, file = row.function, row.function.file
                lines += [b"ob=" + self.name("ob", said.object, said.object), b"fl=" + self.name("fl", file, file)]
                lines.append(b"fn=" + self.name("fn", said, said.name))
            if row.file != file:
                file = row.file
                lines.append(self.draw(st.sampled_from([b"fi=", b"fe="])) + self.name("fl", file, file))
            lines += self.row(row, file, base, part)
            if row.kind == "cost":
                base = row.position
        return [*lines, self.sums % b"totals" + sums] if self.sums else lines


@st.composite
def dialects(draw: st.DrawFn) -> tuple[list[Part], bytes]:
    """A profile and its text."""
    parts, dialect = draw(profiles()), Dialect(draw)
    lines = [b"version: 1", b"creator: test"]
    for index, part in enumerate(parts):
        lines += [b"", b"part: %d" % (index + 1), *dialect.part(part)]
    for _ in range(draw(st.integers(0, 3))):
        lines.insert(draw(st.integers(0, len(lines))), draw(st.sampled_from([b"# remark", b"#", b"", b" \t"])))
    return parts, dialect.end.join(lines) + draw(st.sampled_from([b"", dialect.end]))


SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]
LAX = settings(suppress_health_check=SLOW)


@LAX
@given(dialects(), st.sampled_from([1, 5, 64, 1 << 16]), st.sampled_from([1, 3, 100]), st.integers(0, 2))
def test_every_dialect_reads_back_as_the_model(
    case: tuple[list[Part], bytes], window: int, capacity: int, wide: int
) -> None:
    parts, data = case
    assert [p.rows for p in parse(data)] == [p.rows for p in parts]  # checks the oracle itself
    ours, log = read_parts(data, window=window, capacity=capacity, from_="callgrind", wide=wide)
    assert [(p.events, p.positions, p.rows) for p in ours] == [(p.events, p.positions, p.rows) for p in parts]
    lines = data.split(b"\n")
    repairs = {
        "positions-order": sum(line.startswith(b"positions: line ") for line in lines),
        "sums-without-colon": sum(line.startswith((b"summary ", b"totals ")) for line in lines),
        "rounded-counts": sum(map(data.count, ROUNDED)),
    }
    assert log.repairs == {name: n for name, n in repairs.items() if n}
    assert log.not_representable.total() == data.count(BEHIND)
    said_once = (NO_NUMBER in data) + any(form in data for form in ROUNDED)
    assert not log.losses and len(log.warnings) == said_once


@LAX
@given(dialects(), st.booleans(), st.booleans(), st.integers(0, 2))
def test_what_is_written_reads_back(case: tuple[list[Part], bytes], names: bool, positions: bool, wide: int) -> None:
    parts, data = case
    options = Options(compress_names=names, compress_positions=positions)
    once = rewrite(data, options=options, wide=wide)
    assert once.split(b"\n").count(b"# remark") == data.count(b"# remark")
    assert once.count(b"\npid: " + NO_NUMBER) == data.count(b"pid: " + NO_NUMBER)
    assert [p.rows for p in parse(once)] == [p.rows for p in parts]
    for part in parse(once):
        assert part.totals is not None
        assert part.totals + [0] * (len(part.events) - len(part.totals)) == part.sums
    assert rewrite(once, options=options) == once


NUMERAL = st.from_regex(r"([0-9]{1,30}(\.[0-9]{0,30})?|\.[0-9]{1,30})([eE][+-]?[0-9]{1,2})?", fullmatch=True)


@LAX
@given(NUMERAL)
def test_a_count_with_a_fraction_or_exponent_is_rounded_exactly(text: str) -> None:
    data = f"events: A B\nfl=a\nfn=f\n1 {text} -{text}\n".encode()
    v = round(Fraction(text))
    if v >= 2**63:
        with pytest.raises(FormatError, match=r"expected at most 2\^63 - 1"):
            read_parts(data)
    else:
        parts, log = read_parts(data)
        assert parts[0].sums == [v, -v]
        assert log.repairs.total() == (0 if text.isdigit() else 2)


def summed(parts: list[Part]) -> dict[tuple[int, Row], tuple[Counter[int], int, int]]:
    sums: dict[tuple[int, Row], tuple[Counter[int], int, int]] = {}
    for index, part in enumerate(parts):
        for row in part.rows:
            key = index, row._replace(values=(), count=0, count2=0)
            values, count, count2 = sums.get(key, (Counter(), 0, 0))
            values = Counter({k: values[k] + v for k, v in enumerate(row.values)})
            sums[key] = values, count + row.count, count2 + row.count2
    return sums


@LAX
@given(dialects())
def test_aggregate_keeps_every_sum_and_no_place_twice(case: tuple[list[Part], bytes]) -> None:
    import io

    from fastprof.bridges.sums.aggregate import aggregate
    from fastprof.core.engine import read, write
    from fastprof.core.sink import Sink
    from fastprof.formats import get
    from tests.support.product import open_input

    parts, data = case
    opened = open_input(data, from_="callgrind")
    out = io.BytesIO()
    make = get("callgrind").writer_class()
    rows = aggregate(read(opened.reader), opened.model, Options(), opened.log)
    write(rows, make(opened.model, Sink(out), Options(), opened.log))
    after = parse(out.getvalue())
    assert summed(after) == summed(parts)
    for part in after:
        places = [row._replace(values=(), count=0, count2=0) for row in part.rows]
        assert len(set(places)) == len(places)
        order = [row.function for row in part.rows]
        assert len(set(order)) == sum(a != b for a, b in zip([None, *order], order, strict=False))
