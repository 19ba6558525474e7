"""Data without a place in `events:`: units, names that are not single words, the default value type, the period."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import fastprof
from fastprof.core.model import Part, ValueType
from fastprof.core.options import Options
from fastprof.core.parts import default_value
from fastprof.formats.callgrind.types import described_types, take_described
from tests.contract.dump import files
from tests.support.conversions import convert_bytes
from tests.support.paths import CORPUS


def header(path: Path) -> tuple[list[tuple[str, str]], str, Any, Any]:
    with fastprof.open(path) as profile:
        for _ in profile:
            pass
        part = profile._model.parts[0]
        default = part.value_types[default_value(part, profile.view)].name
        types = [(t.name, t.unit) for t in part.value_types]
        return types, default, part.extra.get("period"), part.extra.get("period_type")


@pytest.mark.parametrize("file", [f for f in files("good") if f.startswith(("pprof/", "gperftools/good/plain"))])
@pytest.mark.parametrize("graph", ["callgrind", "cachegrind"])
def test_pprof_and_back(file: str, graph: str, tmp_path: Path) -> None:
    between, back, again = tmp_path / f"x.{graph}", tmp_path / "x.pb.gz", tmp_path / f"y.{graph}"
    fastprof.convert(CORPUS / file, between, symbolize=False)
    assert header(between)[0] == header(CORPUS / file)[0]
    fastprof.convert(between, back)
    assert header(back) == header(between) == header(CORPUS / file)
    fastprof.convert(between, again)
    assert again.read_bytes() == between.read_bytes()


def test_a_period_that_is_missing_stays_missing(tmp_path: Path) -> None:
    (tmp_path / "x.folded").write_text("a;b 3\n")
    source = tmp_path / "x.folded"
    for i in range(3):
        out = tmp_path / f"{i}.pb.gz"
        fastprof.convert(source, out)
        assert header(out)[2:] == (None, None)
        source = out


NAMES = ["cpu time", "a/b", "é", "%", "x"]
UNITS = ["nano seconds", "", "100%/s", "\udcff", "count"]


def test_names_and_units_of_any_bytes() -> None:
    types = [ValueType(name, unit) for name, unit in zip(NAMES, UNITS, strict=True)]
    words = [f"e{i}" for i in range(len(types))]
    part = Part(types, extra={"default_sample_type": "é", "period": 7, "period_type": ("a b", "c/d")})
    part.extra["input_labels"] = ((b"a= b", b"\n"), (b"\xff", b""))
    lines = described_types(part, words)
    assert all(b"\n" not in text for _, text in lines)
    read = Part([ValueType(word) for word in words], descriptions=[(b"Other", b"1"), *lines])
    take_described(read, words)
    assert (read.value_types, read.extra, read.descriptions) == (types, part.extra, [(b"Other", b"1")])


@pytest.mark.parametrize(
    "line",
    [
        (b"Value types", b"a/b"),  # the names of one event
        (b"Value types", b"a b c"),
        (b"Default value type", b"Dw"),
        (b"Period", b"10 ms"),
        (b"Period", b"1" * 20),
        (b"Labels", b"host"),
        (b"Labels", b"=a"),
        (b"Labels", b"a=1 a=2"),
        (b"Labels", b""),
    ],
)
def test_lines_that_do_not_fit_are_descriptions(line: tuple[bytes, bytes]) -> None:
    part = Part([ValueType("Ir"), ValueType("Dr")], descriptions=[line])
    take_described(part, ["Ir", "Dr"])
    assert (part.descriptions, part.extra) == ([line], {}) and part.value_types == [ValueType("Ir"), ValueType("Dr")]


@pytest.mark.parametrize("graph", ["callgrind", "cachegrind"])
def test_a_profile_without_value_types_is_readable(graph: str) -> None:
    empty = bytes([0x32, 0, 0x48, 5])  # pprof: only an empty string and a time
    written = convert_bytes(empty, "pprof", graph, Options(symbolize=False)).data
    top = fastprof.top(written, from_=graph)
    assert (top.value.name, top.total, top.rows) == ("none", 0, [])
