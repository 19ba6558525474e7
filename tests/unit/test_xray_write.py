"""The function ids of a written XRay log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

import fastprof
from fastprof.core._c import lib
from fastprof.core.engine import write
from fastprof.core.errors import FastprofError
from fastprof.core.log import Log
from fastprof.core.model import Batch, Model, Part, empty
from fastprof.core.options import Options
from fastprof.core.sink import Sink
from fastprof.formats.xray import read as xray_read
from fastprof.formats.xray import write as xray_write
from tests.support import product
from tests.support.xraylog import BasicLog, FdrLog

SHARED = "shared-function-ids"
TOP = (1 << 28) - 1


def ids(path: Path) -> list[int]:
    """The function ids of the only thread's records."""
    (records,) = product.timeline(path)[0].values()
    return [record.function for record in records]


def written(path: Path, batches: Iterable[list[str | tuple[str, int]]]) -> Log:
    """A log in which each batch enters functions that are new to the model; a pair has an explicit number."""
    model, log = Model(), Log()
    model.add_part(Part())
    thread = lib.fp_model_thread(model.c, 0, 1, 1)

    def made() -> Iterable[Batch]:
        batch = Batch("timeline", 8)
        c: Any = batch.c
        for names in batches:
            empty(batch)
            for named in names:
                name, number = named if isinstance(named, tuple) else (named, None)
                i, function = c.n, model.function(name)
                if number is not None:
                    model.numbers[function] = number
                c.op[i], c.time[i], c.function[i], c.thread[i] = lib.FP_OP_ENTER, 5, function, thread
                c.n += 1
            yield batch

    with Sink(str(path)) as sink:
        write(made(), xray_write.XRayWriter(model, sink, Options(), log))
        sink.commit()
    return log


def test_all_ids_of_28_bits_are_kept(tmp_path: Path) -> None:
    """Those of shared objects from the eighth on begin at 2^27."""
    wanted = [1, (1 << 27) - 1, 1 << 27, (1 << 27) + 1, (9 << 24) + 3, TOP, 0]
    log, again = tmp_path / "a.xray", tmp_path / "b.xray"
    buffer = (made := FdrLog(5)).buffer(tid=1, pid=1).cpu(0, 1000)
    for function in wanted:
        buffer.enter(function, 1)
    log.write_bytes(made.bytes())
    report = fastprof.convert([str(log)], str(again))
    assert ids(again) == wanted
    assert not report.not_representable
    report = written(again, [[(f"f{n}", n) for n in wanted]])
    assert ids(again) == wanted
    assert not report.not_representable


def test_a_made_up_id_is_no_one_elses(tmp_path: Path) -> None:
    path = tmp_path / "x.xray"
    log = written(path, [["main", f"#{TOP}", ("f", TOP - 1), "#007"], ["g", f"#{TOP - 4}", "h"], ["main", "#1"]])
    assert ids(path) == [TOP - 2, TOP, TOP - 1, TOP - 3, TOP - 5, TOP - 4, TOP - 6, TOP - 2, 1]
    assert log.not_representable == {"function-names": 4}
    # a function whose id is already invented for another gets a new id; two functions with one id get different ids
    log = written(path, [["main", "#7"], [f"#{TOP}", ("f", 7)]])
    assert ids(path) == [TOP, 7, TOP - 1, TOP - 2]
    assert log.not_representable == {"function-names": 1, SHARED: 2}


def test_ids_beyond_28_bits_are_said_as_that(tmp_path: Path) -> None:
    log, path = tmp_path / "basic.xray", tmp_path / "x.xray"
    log.write_bytes(BasicLog(3).enter(5, 1).enter(1 << 28, 2).enter((1 << 32) - 1, 3).bytes())
    report = fastprof.convert([str(log)], str(path))
    assert ids(path) == [5, TOP, TOP - 1]
    assert report.not_representable == {"wide-function-ids": 2}


def test_more_functions_than_ids(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xray_write, "_ID_LIMIT", 4)
    written(tmp_path / "x.xray", [["a", "#2", "c"]])
    with pytest.raises(FastprofError, match="an XRay log has ids for 3 functions, and there are more"):
        written(tmp_path / "y.xray", [["a", "#2", "c", "d"]])
    assert [path.name for path in tmp_path.iterdir()] == ["x.xray"]


def test_each_id_is_asked_for_once_whether_it_is_in_the_array_or_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The array of small ids has 64 KiB at first and more room for each defined id: so 20,000 is in the table until
    22,000, for which there is room by then, enlarges the array; at the end the array has its 2^20 ids."""
    few = (20_000, 1_399_999, *range(1, 200), 22_000, 700_000)
    many = (*range(200, 17_000), (1 << 20) - 1, 1 << 20, 1_048_000, 1_200_000)
    log, asked = FdrLog(version=5, frequency=10**9), []
    buffer = log.buffer(tid=7, pid=1).cpu(0, 1000)
    for number in (*few, *few, *many, *few, *many):
        buffer.enter(number, 3).exit(number, 2)
    path, back = tmp_path / "a.xray", tmp_path / "b.xray"
    path.write_bytes(log.bytes())
    define = xray_read.XRayReader.define
    monkeypatch.setattr(xray_read.XRayReader, "define", lambda self, x: asked.append(x.requested) or define(self, x))
    fastprof.convert(path, back)
    assert asked == list(dict.fromkeys((*few, *many)))
    assert ids(back)[::2] == [*few, *few, *many, *few, *many]


def test_equal_threads_of_two_inputs_stay_apart(tmp_path: Path) -> None:
    """llvm-xray distinguishes threads only by their own number.  Within an input all numbers are kept."""
    for i, pid in enumerate((7, 7, 8)):
        log = FdrLog(5)
        for k, who in enumerate(((11, pid), (12, pid), (12, 5))):
            log.buffer(*who, seconds=10 * i + k).cpu(0, 1000).enter(1).exit(1, 5)
        (tmp_path / "abc"[i]).write_bytes(log.bytes())
    inputs = [tmp_path / name for name in "abc"]
    report = fastprof.merge(inputs, tmp_path / "m.xray")
    assert report.not_representable == {"thread-numbers": 6}
    threads = product.timeline(tmp_path / "m.xray")[0]
    new = 1 << 30
    assert {(7, 11), (7, 12), (5, 12)} < set(threads) and len(threads) == 9
    assert Counter(tid for _, tid in threads) == {11: 1, 12: 2, new: 1, new + 1: 2, new + 2: 1, new + 3: 2}
    assert all([r.tsc for r in records] == [1000, 1005] for records in threads.values())
    fastprof.merge(inputs[::-1], tmp_path / "n.xray")
    assert (tmp_path / "n.xray").read_bytes() == (tmp_path / "m.xray").read_bytes()
    report = fastprof.convert(tmp_path / "m.xray", tmp_path / "again.xray")
    assert not report.not_representable
    assert (tmp_path / "again.xray").read_bytes() == (tmp_path / "m.xray").read_bytes()
