"""The model when Python adds rows: the docs of fastprof/core/model.py."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from fastprof.core._c import lib
from fastprof.core.errors import FastprofError
from fastprof.core.model import Model, Part


def test_rows_are_entered_once_and_read_back() -> None:
    model = Model()
    mapping = model.mapping(model.object("/lib/libx.so", "ab12"), 0x7F0000000000, 0x7F0000001000, 0x2000)
    assert model.row("mappings", mapping)[1:7] == (0, 0x7F00, 0x1000, 0x7F00, 0x2000, 0)
    caller = model.line(model.function("caller"), 12)
    inlined = model.line(model.function("inlined"), 3, 4, outer=caller)
    assert model.row("lines", inlined) == (model.function("inlined"), 3, 4, caller)
    frame = model.frame(mapping, 0x7F0000000123, lib.FP_FRAME_RETURN_ADDRESS, inlined)
    assert model.row("frames", frame) == (mapping, 0x123, 0x7F00, lib.FP_FRAME_RETURN_ADDRESS, inlined)
    stack = model.stack(model.stack(0, frame), frame)
    assert model.row("stacks", stack) == (model.stack(0, frame), frame)
    labels = model.label("size", number=-8, unit="bytes", after=model.label("who", "me"))
    after, key, string, low, high, unit = model.row("labels", labels)
    assert (model.string(key), string, low, high, model.string(unit)) == (b"size", 0, 2**32 - 8, 2**32 - 1, b"bytes")
    assert after == model.label("who", "me")


def test_parts_that_continue_each_other_are_found_in_linear_time() -> None:
    class Counted(dict[int, int]):
        n = 0

        def get(self, *args: int) -> int:  # type: ignore[override]
            self.n += 1
            return super().get(*args)

    model = Model()
    for _ in range(1000):
        model.add_part(Part())
    model.continued = Counted({i: i - 1 for i in range(1, 1000) if i != 500})
    assert model.whole_parts(range(1000)) == [model.parts[499], model.parts[999]]
    assert model.continued.n <= 2000


def test_threads_of_different_inputs_are_different() -> None:
    model = Model()
    inputs = [model.input(), model.input()]
    assert inputs == [0, 1]
    threads = [model.thread(7, 8, input_) for input_ in inputs]
    assert threads[0] != threads[1]
    assert threads[0] == model.thread(7, 8)
    assert model.row("threads", threads[1]) == (1, 7, 8)


@pytest.mark.parametrize(
    "enter",
    [
        lambda m: m.mapping(1, 0, 1),
        lambda m: m.function("f", object_id=1),
        lambda m: m.line(1),
        lambda m: m.line(0, outer=1),
        lambda m: m.frame(1, 0x1000),
        lambda m: m.frame(0, 0x1000, 0, 1),
        lambda m: m.stack(1, 0),
        lambda m: m.stack(0, 1),
        lambda m: m.label("key", "text", after=1),
    ],
)
def test_an_id_that_is_not_there_is_refused(enter: Callable[[Model], int]) -> None:
    with pytest.raises(IndexError, match=r" 1 of 1$"):
        enter(Model())


@pytest.mark.parametrize(
    ("enter", "said"),
    [
        (lambda m: m.thread(1 << 32, 5), r"^a\.out: thread 0, 4294967296, 5: "),
        (lambda m: m.thread(1, -5), r"^a\.out: thread 0, 1, -5: "),
        (lambda m: m.label("part", number=1 << 63), r"^a\.out: label 0, \d+, 0, 9223372036854775808, 0: "),
        (lambda m: m.mapping(0, 0, 1 << 64), r"^a\.out: mapping 0, 0, 18446744073709551616, 0, 0: "),
    ],
)
def test_a_number_beyond_its_column_is_an_error_of_the_input(enter: Callable[[Model], int], said: str) -> None:
    model = Model()
    model.inputs.append("a.out")
    with pytest.raises(FastprofError, match=said):
        enter(model)


def test_no_more_ids_is_a_lack_of_memory() -> None:
    model = Model()
    model.c.n_inputs = lib.FP_NO_ID
    with pytest.raises(MemoryError, match="no memory for the model's tables"):
        model.input()
