from __future__ import annotations

import gc
from pathlib import Path

import pytest

import fastprof
from fastprof.core._c import ffi
from fastprof.core.c_memory import owned
from fastprof.core.model import Model
from tests.support.paths import CORPUS


def test_what_is_owned_is_freed_with_its_last_reference() -> None:
    freed = []
    made = ffi.new("int *", 7)
    mine = owned(made, "a number")
    assert (mine[0], freed) == (7, [])
    del mine
    gc.collect()
    assert freed == [made]


def test_no_memory_says_for_what() -> None:
    with pytest.raises(MemoryError, match=r"^no memory for a number$"):
        owned(ffi.NULL, "a number")


def test_a_conversion_frees_its_model_without_garbage_collection(tmp_path: Path) -> None:
    """Regression: readers of gperftools and of heaps had references to their own methods, so a batch kept the models of
    many files."""
    files = [min(path for path in folder.iterdir() if path.is_file()) for folder in CORPUS.glob("*/good")]
    gc.collect()
    before = {id(one) for one in gc.get_objects() if isinstance(one, Model)}
    gc.disable()
    try:
        for path in files:
            fastprof.convert(path, tmp_path / "out.fpa")
        left = [one.inputs for one in gc.get_objects() if isinstance(one, Model) and id(one) not in before]
    finally:
        gc.enable()
    assert len(files) > 15
    assert left == []
