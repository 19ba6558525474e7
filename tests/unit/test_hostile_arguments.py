"""Meaningless arguments raise a UsageError or the usual built-in exception, never an internal one.

Nor is memory read out of bounds, which a build with FASTPROF_SANITIZE=1 would report.
"""

from __future__ import annotations

import io
import resource
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import product
from pathlib import Path
from threading import Event
from typing import Any

import pytest

import fastprof
from fastprof import plan
from fastprof.core._c import lib
from fastprof.core.errors import FastprofError
from fastprof.core.model import Batch, Model
from fastprof.inputs.expand import expand
from tests.support.paths import CORPUS

EVENTS = CORPUS / "xray/good/fdr5-events-clang19.xray"
SAMPLES = CORPUS / "pprof/good/everything.pb"
GRAPH = CORPUS / "callgrind/good/everything.callgrind"
NUMBERS = [-1, 0, 1, 1 << 31, (1 << 32) - 1, 1 << 32, 1 << 63, 1 << 64, -(1 << 63), 1.5, float("nan"), None, True]
VALUES: list[Any] = [*NUMBERS, "", "x", "\ud800", "a\0b", b"\0", [], (), {}, object()]
USUAL = (FastprofError, IndexError, KeyError, ValueError, TypeError, OverflowError, MemoryError, OSError)


def attempt(call: Callable[..., object], *arguments: Any, **keywords: Any) -> None:
    """It succeeds, or is refused as usual."""
    with suppress(*USUAL):
        call(*arguments, **keywords)


@pytest.mark.parametrize("file", [EVENTS, SAMPLES, GRAPH], ids=lambda p: p.name)
def test_a_profile_and_its_batches(file: Path) -> None:
    with fastprof.open(file) as profile:
        model = profile._model
        for batch in profile:
            for value in VALUES:
                for call in (batch.payload, batch.values, batch.__getitem__, profile.function_name, model.string):
                    attempt(call, value)
                attempt(model.count, value)
                for table in ("functions", "strings", "frames", "labels", "n_inputs", "last", value):
                    attempt(model.row, table, value)
            last = batch
    attempt(last.payload, 0)
    attempt(list, profile)


def test_ids_from_the_end_are_no_ids() -> None:
    """-1 is not the last id, as it would be in a list: memory before the table was read."""
    with fastprof.open(EVENTS) as profile:
        for batch in profile:
            events = 0
            for row, op in enumerate(batch["op"]):
                if op in (lib.FP_OP_CUSTOM, lib.FP_OP_TYPED):
                    events += len(batch.payload(row)) > 0
                else:
                    with pytest.raises(ValueError, match="not an event"):
                        batch.payload(row)
            assert events
            for row in (-1, len(batch)):
                with pytest.raises(IndexError):
                    batch.payload(row)
        for call in (profile.function_name, profile._model.string, profile._model.get_function):
            with pytest.raises(IndexError, match=r"-1 (is not one )?of"):
                call(-1)
    with pytest.raises(KeyError, match="unknown table 'n_inputs'"):
        profile._model.count("n_inputs")
    with pytest.raises(ValueError, match="a batch of 0 rows"):
        Batch("stacks", 0, 1)
    with pytest.raises(IndexError, match="labels 7 of 1"):
        Model().label("key", after=7)


def test_a_model() -> None:
    model = Model()
    for a, b in product(VALUES, VALUES):
        attempt(model.intern, a)
        attempt(model.object, a, b)
        attempt(model.mapping, a, b, 1)
        attempt(model.mapping, 0, a, b)
        attempt(model.function, "f", a, b)
        attempt(model.function, "f", "", 0, a, b)
        attempt(model.line, a, b)
        attempt(model.line, 0, 0, a, b)
        attempt(model.frame, a, b)
        attempt(model.frame, 0, 0, a, b)
        attempt(model.stack, a, b)
        attempt(model.label, "key", a, b)
        attempt(model.label, "key", after=a)
        attempt(model.thread, a, b)
    for size in (-1, 0, 1, 1.5, None, "x"):
        attempt(Batch, "stacks", size, 3)
        attempt(Batch, "graph", 3, size)


@pytest.mark.parametrize("k", range(len(VALUES)))
def test_inputs_and_options(k: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    value = VALUES[k]
    if not isinstance(value, int):  # a number may be a file descriptor of this process
        attempt(fastprof.open, value)
        attempt(fastprof.info, value)
        attempt(fastprof.convert, value, "out.callgrind")
        attempt(fastprof.convert, [value], "out.callgrind")
    attempt(fastprof.open, EVENTS, from_=value)
    attempt(fastprof.convert, EVENTS, "out", to=value)
    for option in plan.known_options():
        attempt(fastprof.convert, SAMPLES, "out.pb", **{option.name: value})
        attempt(fastprof.convert, SAMPLES, "out.pb", **{option.name: [value]})


class Changing:
    """A different number at each conversion."""

    def __init__(self, *numbers: int) -> None:
        self.numbers = [*numbers]

    def __index__(self) -> int:
        return self.numbers.pop(0) if len(self.numbers) > 1 else self.numbers[0]


def test_an_id_is_asked_once_which_it_is() -> None:
    """Regression: it was converted for the check, and again for the lookup."""
    model, far = Model(), 1 << 27
    assert model.row("functions", Changing(0, far)) == model.row("functions", 0)  # type: ignore[arg-type]
    assert model.row("lines", model.line(Changing(0, far), 7))[0] == 0  # type: ignore[arg-type]
    assert model.row("stacks", model.stack(Changing(0, far), Changing(0, far)))[:2] == (0, 0)  # type: ignore[arg-type]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("type_", ["int8", "uint8", "int16", "uint64"])
def test_small_numbers_of_numpy_are_numbers(type_: str) -> None:
    """The offset of a column, its number times the rows of a batch, did not fit them."""
    numpy = pytest.importorskip("numpy")
    batch = Batch("stacks", 30_000, 100)
    batch.c.n = 1
    for k in range(100):
        batch.values(k)[0] = k
    assert [batch.values(k)[0] for k in numpy.arange(100, dtype=type_)] == [*range(100)]


def test_names_are_looked_up_between_batches() -> None:
    """Tables move when they grow, so a thread that looks up a name waits while another one reads."""
    reading, go, found = Event(), Event(), Event()

    class Slow(io.BytesIO):
        def read(self, n: int | None = -1) -> bytes:
            if slow:
                reading.set()
                assert go.wait(60)
            return super().read(n)

        def readinto(self, into: Any) -> int:
            data = self.read(len(into))
            into[: len(data)] = data
            return len(data)

    slow = False
    with fastprof.open(Slow(b"".join(b"main;f%d 1\n" % k for k in range(200_000))), from_="folded") as profile:
        slow = True
        with ThreadPoolExecutor(2) as pool:
            rows = pool.submit(lambda: sum(len(batch) for batch in profile))
            assert reading.wait(60)
            name = pool.submit(profile.function_name, 0)
            name.add_done_callback(lambda _: found.set())
            assert not found.wait(0.3)
            go.set()
            assert (name.result(60), rows.result(60)) == ("", 200_000)


@pytest.mark.parametrize("given", [-5, 5 << 20, 1.5, "x"])
def test_a_file_object_that_says_it_read_what_it_did_not(given: Any) -> None:
    """Regression: memory beyond the window was read."""

    class Wrong(io.BytesIO):
        def readinto(self, into: Any) -> Any:
            return given if self.tell() else super().readinto(into)

    with pytest.raises((FastprofError, TypeError), match=r"expected 0 to|interpreted as an integer"):
        fastprof.convert(Wrong(b"events: Ir\nfn=f\n" + b"1 1\n" * 200_000), io.BytesIO(), from_="callgrind", to="pprof")


@pytest.mark.parametrize("output", [-1, b"out", [], object()])
def test_a_page_is_written_to_files_alone(output: Any) -> None:
    with pytest.raises(fastprof.UsageError, match="is not an open binary file to write"):
        fastprof.report(CORPUS / "callgrind/good/cfi.callgrind", output)


def test_many_file_objects_are_told_apart_in_linear_time() -> None:
    """Each was compared with all before it."""
    objects = [io.BytesIO() for _ in range(300_000)]
    before = resource.getrlimit(resource.RLIMIT_CPU)
    used = resource.getrusage(resource.RUSAGE_SELF)
    resource.setrlimit(resource.RLIMIT_CPU, (int(used.ru_utime + used.ru_stime) + 60, before[1]))
    try:
        assert expand(objects, print) == objects
    finally:
        resource.setrlimit(resource.RLIMIT_CPU, before)
    with pytest.raises(fastprof.UsageError, match="a file object can be read only once"):
        expand([*objects[:10], objects[3]], print)
