"""Fields of tracepoints in perf.data, against values packed here; and damaged descriptions of them."""

from __future__ import annotations

import io
import struct
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

import fastprof
from fastprof.formats.perf.features import Features
from fastprof.formats.perf.tracing import tracepoints
from tests.support.perfdata import CALLCHAIN, IP, PERIOD, RAW, TID, TIME, PerfData

NUMBERS = "bBhHiIqQ"  # codes of struct: lower case is signed
TEXTS = st.binary(max_size=20).map(lambda text: text.replace(b"\0", b"x"))
FIELDS = st.one_of(
    st.tuples(
        st.sampled_from(NUMBERS),
        st.booleans(),
        st.lists(st.binary(min_size=8, max_size=8), min_size=1, max_size=5),
    ),
    st.tuples(
        st.tuples(st.sampled_from(["__data_loc", "__rel_loc", "SIZE"]), st.sampled_from(NUMBERS)),
        st.booleans(),
        st.lists(st.binary(min_size=8, max_size=8), max_size=5),
    ),
    st.tuples(st.sampled_from(["char", "__data_loc", "__rel_loc"]), st.booleans(), TEXTS.map(lambda text: [text])),
)
C_TYPES = dict(zip(NUMBERS, ["s8", "u8", "short", "__u16", "int", "unsigned int", "long", "const u64"], strict=True))
MODEL = [("i", False, [b"\xf9\xff\xff\xff" + bytes(4)]), ("__rel_loc", True, [b"a/b"]), ("Q", True, [b"\3" * 8] * 2)]


def made(fields: list[Any], order: str) -> tuple[bytes, bytes, list[tuple[bytes, str]]]:
    """The description of a tracepoint, a sample's raw data, and the expected labels."""
    text, raw, behind, expected = b"name: sched_switch\nID: 372\nformat:\n", bytes(8), b"", []
    nbytes = 8 + sum(size(kind, is_array, values) for kind, is_array, values in fields)
    for k, (kind, is_array, values) in enumerate(fields):
        at, n, key = len(raw), size(kind, is_array, values), f"f{k}"
        if isinstance(kind, tuple):  # an array at another place, or whose length is a constant
            place, code = kind
            signed, declared = int(code.islower()), f"{place} {C_TYPES[code]}[] {key}"
            numbers = [struct.unpack_from(order + code, value)[0] for value in values]
            there = struct.pack(f"{order}{len(numbers)}{code}", *numbers)
            if place == "SIZE":
                if not there:
                    continue
                declared, n = f"{C_TYPES[code]} {key}[SIZE]", len(there)
                raw += there
            else:
                base = at + 4 if place == "__rel_loc" else 0
                raw += struct.pack(order + "I", len(there) << 16 | nbytes + len(behind) - base)
                behind += there
            text += f"\tfield:{declared};\toffset:{at};\tsize:{n};\tsigned:{signed};\n".encode()
            expected.append((key.encode(), ",".join(map(str, numbers))))
            continue
        declared, signed, value = f"char {key}[{n}]", 0, values[0].decode("latin-1")
        if kind in NUMBERS:
            count = len(values) if is_array else 1
            numbers = [struct.unpack_from(order + kind, value)[0] for value in values[:count]]
            declared, signed = f"type_t {key}" + f"[{count}]" * is_array, int(kind.islower())
            value = ",".join(map(str, numbers))
            raw += struct.pack(f"{order}{count}{kind}", *numbers)
        elif kind == "char":
            raw += values[0] + b"\0"
        else:
            base = at + 4 if kind == "__rel_loc" else 0
            raw += struct.pack(order + "I", (len(values[0]) + 1) << 16 | nbytes + len(behind) - base)
            behind += values[0] + b"\0"
            declared = f"{kind} char[] {key}"
        text += f"\tfield:{declared};\toffset:{at};\tsize:{n};\tsigned:{signed};\n".encode()
        expected.append((key.encode(), value))
    return text, raw + behind, expected


def size(kind: Any, is_array: bool, values: list[bytes]) -> int:
    if isinstance(kind, tuple):
        return len(values) * struct.calcsize("=" + kind[1]) if kind[0] == "SIZE" else 4
    if kind in NUMBERS:
        return struct.calcsize("=" + kind) * (len(values) if is_array else 1)
    return len(values[0]) + 1 if kind == "char" else 4


def labels(data: bytes) -> list[tuple[bytes, str]]:
    """The keys and values of the labels of the only sample.  Numbers are signed here, whatever the field's type."""
    found = []
    with fastprof.open(io.BytesIO(data), symbolize=False) as profile:
        (label,) = (label for batch in profile.batches() for label in batch["label"])
        model = profile._model
        while label:
            label, key, text, low, high, _ = model.row("labels", label)
            number = struct.unpack("<q", struct.pack("<II", low, high))[0]
            value = model.string(text).decode("latin-1") if text or not number else str(number)
            found.append((model.string(key), value))
    return found[::-1]


def same(found: str, expected: str) -> bool:
    """A u64 of 2^63 or more is a negative label; `labels` does not distinguish 0 from an empty text."""
    if expected.isdigit() and int(expected) >= 1 << 63:
        return found in (expected, str(int(expected) - (1 << 64)))
    return found == expected or (found, expected) == ("", "0")


@given(st.lists(FIELDS, min_size=1, max_size=8), st.sampled_from("<>"))
def test_fields_have_the_values_that_were_recorded(fields: list[Any], order: str) -> None:
    text, raw, expected = made(fields, order)
    file = PerfData(IP | TID | TIME | CALLCHAIN | PERIOD | RAW, order, event=(2, 372)).tracing(b"sched", [text])
    found = labels(file.sample(7, [1], 100, raw=raw + bytes(-(len(raw) + 4) % 8)).bytes())
    assert [key for key, _ in found] == [key for key, _ in expected]
    for (_, value), (_, wanted) in zip(found, expected, strict=True):
        assert same(value, wanted)


@given(st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 255)), max_size=6), st.integers(0, 2000))
def test_damaged_descriptions_raise_no_other_error(changes: list[tuple[int, int]], left: int) -> None:
    text, _, _ = made(MODEL, "<")
    whole = PerfData().tracing(b"sched", [text, b"", text]).bytes()
    data = bytearray(whole[whole.index(b"\x17\x08\x44tracing") :])
    for at, value in changes:
        data[at % len(data)] = value
    features = Features("<")
    is_whole = features.read(Features.TRACING, bytes(data[: len(data) - left % len(data)]))
    for found in features.tracepoints.values():
        for field in found.fields:
            assert 1 <= field.each <= 8 and (field.each <= field.nbytes or (field.nbytes == 4 and field.is_array))
    if is_whole and not changes and not left:
        assert next(tracepoints(bytes(data))).name == "sched:sched_switch"
