"""Text is parsed in blocks of 64 bytes, and cost lines are written several counts at a time: tests where blocks,
numbers and rows begin and end, with AVX-512, with AVX2 and without."""

from __future__ import annotations

import random
import re

import pytest

from fastprof.core.errors import FormatError
from fastprof.core.options import Options
from tests.reference.callgrind import parse
from tests.support.chosen import cases
from tests.support.graphs import read_parts, rewrite

COLUMNS = ["instr line", "line", "instr", "instr bb line", "bb"]
WAYS = pytest.mark.parametrize("wide", [2, 1, 0], ids=["avx512", "avx2", "plain"])
PADDING = b"fn=g\n" + b"1 1 1\n" * 40  # appended, so that the text before it does not end the input


def head(positions: str = "line", events: int = 1) -> bytes:
    names = " ".join(f"E{k}" for k in range(events))
    return f"version: 1\ncreator: test\npositions: {positions}\nevents: {names}\n\n".encode()


def check(text: bytes, *, wide: int, window: int | None = None, capacity: int | None = None) -> None:
    """The reader agrees with the reference, and reads the writer's output back."""
    expected = [p.rows for p in parse(text)]
    ours, log = read_parts(text, window=window, capacity=capacity, wide=wide)
    assert [p.rows for p in ours] == expected
    assert not log.losses
    assert [p.rows for p in parse(rewrite(text, wide=wide))] == expected


@WAYS
@pytest.mark.parametrize("digits", range(1, 21))
def test_numbers_of_every_length(digits: int, wide: int) -> None:
    count = int("9" * digits) if digits < 19 else 2**63 - 1
    lines = [b"0x%x 4294967295 %d" % (min(count, 2**64 - 1), count // 2), b"%d 1 1" % min(count, 2**64 - 1)]
    if digits < 10:
        lines += [b"+%d +%d 3" % (count, count), b"-%d -%d 4" % (count, count), b"+0 -0 %d" % count]
    lines += [b"* * 00000000000000000005", b"* * %0*d" % (digits, 7)]
    for line in lines:
        text = head("instr line") + b"fn=f\n0x77777777777 2000000000 1\n" + line + b"\n* * 1\n" + PADDING
        check(text, wide=wide)


@WAYS
def test_a_count_beyond_63_bits_is_an_error_at_its_line(wide: int) -> None:
    for count in (2**63, 2**64, 10**19, 10**40):
        with pytest.raises(FormatError) as error:
            read_parts(head("line", 2) + b"fn=f\n1 1\n2 %d\n" % count + PADDING, wide=wide)
        assert error.value.line == 8


@WAYS
@pytest.mark.parametrize("positions", COLUMNS)
@pytest.mark.parametrize("events", cases([1, 2, 7, 13, 14, 15, 16, 17, 40], default=[2, 16]))
def test_lines_at_every_place_of_a_block(positions: str, events: int, wide: int) -> None:
    rng = random.Random(events)
    columns = len(positions.split())
    lines = [b"%b%d" % (b"9" * shift, shift) for shift in range(8)]
    lines = [b" ".join([b"100"] * columns + [line]) for line in lines]
    for n in [*range(events + 1), *range(events, -1, -1)]:
        counts = [b"%d" % rng.randrange(10 ** rng.randrange(1, 9)) for _ in range(n)]
        place = [rng.choice([b"+3", b"-2", b"*", b"+12", b"77", b"1234567"]) for _ in range(columns)]
        lines.append(b" ".join(place + counts) + b" " * (not counts))
    body = b"\n".join(lines) + b"\n"
    for shift in range(0, 64, 5):
        padding = b" ".join([b"1"] * (columns + 1)) + b"\n"
        text = head(positions, events) + b"fn=" + b"f" * shift + b"\n" + body + padding * 30
        check(text, wide=wide)


@WAYS
@pytest.mark.parametrize("window", [*range(1, 30), *range(60, 140), 1000])
def test_windows_of_every_size(window: int, wide: int) -> None:
    lines = [b"+%d %d %d" % (k % 50, k + 1, k * 37 % 10 ** (k % 9 + 1)) for k in range(60)]
    lines[20:20] = [b"cfn=g", b"calls=3 0x40 7 ", b"* * 123456789", b"jcnd=1/2 +3 +4 ", b"* * ", b"fi=x", b"0x4f * 3"]
    text = head("instr line") + b"fn=f\n0x1000 1 5\n" + b"\n".join(lines) + b"\n"
    check(text, wide=wide, window=window)


@WAYS
@pytest.mark.parametrize("capacity", [*range(1, 20), 63, 64, 65])
def test_batches_of_every_size(capacity: int, wide: int) -> None:
    lines = [b"+1 " + b" ".join([b"%d" % (k * 7919 % 10**6)] * (k % 4)) for k in range(70)]
    lines[10:10] = [b"cfn=g", b"calls=3 7 ", b"* 5 6 7"]
    check(head("line", 3) + b"fn=f\n" + b"\n".join(lines) + b"\n", wide=wide, capacity=capacity)


# Unusual cost lines, right or wrong.
ODD = b"""+3  * 1|+3 *  1 |+3\t* 1| +3 * 1|+3 * 1\r|+3 * 1 |+3 * -1|+3 * +1|+3 *1 1|+3 * 0x1f|+3 * .|* * *|** * 1|+ * 1
- * 1|+-3 * 1|+3* 1|+3 * 1 2|,3 * 1|0x * 1|0xg * 1|0x1 0x2 0x3|1:2 3 4|+3 5-9 1|-4000 * 1|* -9 1|* +4294967295 1|3|* *|+
*|* |0x12345678901234567 * 1|+18446744073709551615 * 1|+3 * 1a|+3 * \xff|+3 * 1/2"""


@WAYS
@pytest.mark.parametrize("line", re.split(rb"[|\n]", ODD), ids=repr)
def test_what_is_beside_the_usual_form_means_the_same_in_a_block(line: bytes, wide: int) -> None:
    """A line that fills a block is always parsed by the slow path; a short one before other lines is not."""

    def read(text: bytes) -> object:
        try:
            return read_parts(text, wide=wide)[0][0].rows[: 6 + 1]
        except FormatError as error:
            return error.line, error.offset, str(error).partition(" is ")[0]

    text, end = (line[:-1], b"\r\n") if line.endswith(b"\r") else (line, b"\n")
    for before in range(6):
        start = head("instr line") + b"fn=f\n100 7 1\n" + b"+1 * 5\n" * before
        careful, among = read(start + text + b" " * 64 + end), read(start + text + end + b"900 1 1\n" * 40)
        alone = read(start + text + end)
        assert alone == careful
        if isinstance(alone, list):
            assert isinstance(among, list)
            assert among[: len(alone)] == alone[: len(among)]
        else:
            assert among == alone


# Interactions in one block between the digits of a name, of a name's number and of a cost line.
BESIDE = [
    b"\n" * 100,
    b"fn=(1)\n\n\n1 1\n\n\n" * 20,
    b"fn=(12345678) g\nfn=(123456789) h\n" + b"fn=(12345678)\n1 1\nfn=(123456789)\n1 1\n" * 9,
    b"".join(b"fn=(%d) %d\n" % (k, k) for k in range(10, 99)),
    b"".join(b"fn=(%d) f%d 7 * +3 -\n1 %d\ncfn=(%d)\ncalls=%d 3\n* 4\n" % (k, k, k, k, k) for k in range(10, 99)),
    b"fi=(2) a1*2+3\nfe=(2)\nfi=(3)b4\nfe=(2) \nfi=(3)\t\nfi=(2)x\n1 1\n",
    b"fn=(12x)\n1 1\nfn=(x12)\n1 1\nfn=(1 2)\n1 1\nfn=(1)2)\n1 1\nfn=()\n1 1\nfn=(\n1 1\nfn=\n1 1\n",
    b"fn=(4) " + b"1 2 " * 20 + b"\n1 1\nfn=(5) " + b"x" * 8200 + b"\n1 1\nfn=(6) " + b"y" * 20000 + b"\n1 1\n",
    b"1 " + b"0" * 4200 + b"1\n1 " + b"0" * 80 + b"1\n",
]


@WAYS
@pytest.mark.parametrize("text", BESIDE, ids=range(len(BESIDE)))
@pytest.mark.parametrize("window", cases([None, 100, 4096], default=[100]))
def test_names_numbers_and_blank_lines(text: bytes, window: int | None, wide: int) -> None:
    for shift in range(0, 64, 7):
        start = head("line", 2) + b"fn=(1) " + b"f" * shift + b"\nfl=(2) a\nfl=(3) b\n1 1\n"
        check(start + text + b"2 5\n* 6\n" + PADDING, wide=wide, window=window)


@WAYS
@pytest.mark.parametrize("base", [1, 2**63 - 3, 2**63, 2**64 - 100, 2**64 - 1])
@pytest.mark.parametrize("step", [-101, -99, -3, 0, 3, 99, 101])
def test_addresses_at_the_ends_of_64_bits(base: int, step: int, wide: int) -> None:
    to = (base + step) % 2**64
    text = head("instr line") + b"fn=f\n0x%x 1 1\n0x%x 1 1\n" % (base, to) + b"* * 1\n" * 40
    check(text, wide=wide)
    if not 0 <= base + step < 2**64:
        with pytest.raises(FormatError, match="position is"):
            read_parts(head("instr line") + b"fn=f\n0x%x 1 1\n%+d 1 1\n" % (base, step) + b"* * 1\n" * 40, wide=wide)


@WAYS
@pytest.mark.parametrize("events", [1, 2, 8, 9, 15, 16, 17])
def test_counts_of_every_size_are_written(events: int, wide: int) -> None:
    values = [0, 1, 9, 10, 99, 100, 999, 9999, 10**4, 10**6 - 1, 10**7 - 1, 10**7, 10**8 - 1, 10**8, 10**16]
    values += [2**63 - 1, -1, -(2**63) + 1, -(10**7)]
    rng = random.Random(1)
    lines = []
    for k in range(100):
        row = [rng.choice(values) // (events * 100 if k % 2 else 1) if rng.random() < 0.7 else 0 for _ in range(events)]
        row = [v if abs(v) < 2**55 or k == 99 else 5 for v in row]
        if k in (30, 31, 77):
            lines += [b"cfn=g", b"calls=1 1"]
        lines.append(b"%d " % (k + 1) + b" ".join(b"%d" % v for v in row))
    check(head("line", events) + b"fn=f\n" + b"\n".join(lines) + b"\n", wide=wide)


def test_totals_are_the_same_every_way() -> None:
    lines = b"".join(b"+1 %d %d %d\n" % (k, k * k, 10 ** (k % 12)) for k in range(500))
    expected = [sum(range(500)), sum(k * k for k in range(500)), sum(10 ** (k % 12) for k in range(500))]
    text = head("line", 3) + b"fn=f\n" + lines + b"totals: %d %d %d\n" % tuple(expected)
    for wide in (2, 1, 0):
        _, log = read_parts(text, wide=wide)
        assert not log.warnings, log.warnings


@WAYS
@pytest.mark.parametrize("window", [1, 50, 10000])
@pytest.mark.parametrize(
    ("costs", "is_said"),
    [
        ([2**63 - 1, 5, -5], False),
        ([5, 2**63 - 1, -6], False),
        ([2**63 - 1, 1, 1, 2**63 - 1, -(2**63) + 1, -3], False),
        ([-(2**63) + 1, -2, 99999999], False),
        ([2**63 - 1, -5, 5, 1], True),
        ([-(2**63) + 1, -2], True),
        ([2**63 - 1, 2**63 - 1, 2], True),
    ],
)
@pytest.mark.parametrize("events", [1, 2, 9])
def test_a_total_is_beyond_63_bits_whatever_the_order(
    costs: list[int], is_said: bool, events: int, window: int, wide: int
) -> None:
    """Counts of all sizes are summed up in three places."""
    lines = b"".join(b"+1 " + b" ".join([b"%d" % cost] * events) + b"\n" for cost in costs)
    total = b" ".join([b"%d" % sum(costs)] * events)
    _, log = read_parts(head("line", events) + b"fn=f\n" + lines + b"totals: 1\n", wide=wide, window=window)
    assert any("exceeds 2^63 - 1" in warning for warning in log.warnings) == is_said
    if not is_said:
        text = head("line", events) + b"fn=f\n" + lines + b"totals: " + total + b"\n"
        assert not read_parts(text, wide=wide, window=window)[1].warnings


@pytest.mark.parametrize("size", [1, 7, 8, 15, 16, 17, 63, 64, 200, 5000])
def test_names_of_every_length_between_cost_lines(size: int) -> None:
    """Names that are read ahead, again in another window, and once more at their position."""
    names = [b"%d" % k + b"fn=(" * (size // 4) + b"x" * (size % 4) for k in range(12)]
    block = b"fn=(%d) %b\n1 1\ncfn=(%d)\ncalls=1 1\n* 2\n"
    blocks = [block % (k + 1, name, k // 2 + 1) for k, name in enumerate(names)]
    text = head() + b"".join(blocks) + b"fn=(3)\n7 7\nfn=(77) %b\n8 8\n" % names[4]
    expected = [p.rows for p in parse(text)]
    for window in (None, 1, 50, 1000, 3000):
        assert [p.rows for p in read_parts(text, window=window)[0]] == expected


@WAYS
def test_positions_are_relative_up_to_99(wide: int) -> None:
    at = 2**33
    lines, expected = [], []
    for step in range(-101, 102):
        lines += [b"0x%x 500 1" % at, b"0x%x %d 2" % (at + step, 500 - step)]
        near = [b"* *" if not step else b"%+d %+d" % (step, -step)] if abs(step) < 100 else []
        expected += near or [b"0x%x %d" % (at + step, 500 - step)]
    written = rewrite(head("instr line") + b"fn=f\n" + b"\n".join(lines) + b"\n", wide=wide)
    assert re.findall(rb"^(.*) 2$", written, re.MULTILINE) == expected


@WAYS
@pytest.mark.parametrize("digit", [b"1", b"9", b"a", b"f"])
def test_addresses_of_every_length_are_written(digit: bytes, wide: int) -> None:
    addresses = [b"0x" + (digit + b"0f9a8b7c6d5e4321")[:n] for n in range(1, 17)]
    text = head("instr") + b"fn=f\n" + b"".join(address + b" 1\n" for address in addresses)
    options = Options(compress_positions=False)
    assert re.findall(rb"^(0x\w+) 1$", rewrite(text, wide=wide, options=options), re.MULTILINE) == addresses
