"""fastprof diff of profiles with other value types."""

from __future__ import annotations

from pathlib import Path

import pytest

import fastprof
from fastprof.core.errors import UsageError
from tests.reference.callgrind import parse
from tests.unit.test_diff import NEW, samples
from tests.unit.test_diff import files as files  # a fixture


def test_value_types_that_both_have_are_compared(files: Path) -> None:
    (files / "other.callgrind").write_bytes(NEW.replace(b"Ir Dr", b"Ir Bc"))
    missing = ["other.callgrind: has no Dr, which are not compared", "old.callgrind: has no Bc, which are not compared"]
    for options in ({}, {"by": "label:host"}, {"by": "arc"}):
        found = fastprof.diff("old.callgrind", "other.callgrind", **options)  # type: ignore[arg-type]
        assert ("Ir", "", 60, 45) in found.values and not {"Dr", "Bc"} & {value.name for value in found.values}
        assert [text for text in missing if text not in str(found.log.warnings)] == []
    for target in ("d.callgrind", "d.pb"):  # a graph and stacks
        found = fastprof.diff("old.callgrind", "other.callgrind", target)
        assert [value.name for value in found.values] == ["Ir"]
    assert parse((files / "d.callgrind").read_bytes())[0].events == ["Ir"]
    assert {name for _, _, name in samples(files / "d.pb")} == {"Ir"}


def test_without_a_common_value_type_nothing_is_compared(files: Path) -> None:
    (files / "other.callgrind").write_bytes(NEW.replace(b"Ir Dr", b"Bc Bi"))
    message = r"other.callgrind: has Bc, Bi, but old.callgrind has Ir, Dr: no value type is common to both"
    for output in ((), ("d.callgrind",), ("d.pb",)):
        with pytest.raises(UsageError, match=message):
            fastprof.diff("old.callgrind", "other.callgrind", *output)
    with pytest.raises(UsageError, match=r"value: unknown value type 'Ir', expected Bc, Bi"):
        fastprof.diff("old.callgrind", "other.callgrind", value="Ir")


def test_union_and_intersect_choose_the_value_types(files: Path) -> None:
    (files / "other.callgrind").write_bytes(NEW.replace(b"Ir Dr", b"Ir Bc"))
    found = fastprof.diff("old.callgrind", "other.callgrind", union=True)
    assert [tuple(value) for value in found.values] == [("Ir", "", 60, 45), ("Dr", "", 11, 0), ("Bc", "", 0, 6)]
    assert found.rows[0][5:8] == ((40, 9, 0), (20, 0, 4), (40, 20))
    found = fastprof.diff("old.callgrind", "other.callgrind", intersect=True)
    assert [tuple(value) for value in found.values] == [("Ir", "", 60, 45)] and found.rows[0][5:7] == ((40,), (20,))
    fastprof.diff("old.callgrind", "other.callgrind", "d.callgrind", intersect=True)
    assert parse((files / "d.callgrind").read_bytes())[0].events == ["Ir"]
    with pytest.raises(UsageError, match="choose one"):
        fastprof.diff("old.callgrind", "other.callgrind", intersect=True, union=True)
