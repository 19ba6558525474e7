from __future__ import annotations

import gc
from pathlib import Path
from types import SimpleNamespace

import pytest

import fastprof
from fastprof.core._c import ffi
from fastprof.core.c_memory import owned
from fastprof.core.model import Model
from tests.support.paths import CORPUS


@pytest.mark.parametrize("end", ["free", "clear"])
def test_what_is_owned_is_freed_with_its_last_reference(end: str, monkeypatch: pytest.MonkeyPatch) -> None:
    freed: list[object] = []
    monkeypatch.setattr("fastprof.core.c_memory.lib", SimpleNamespace(**{f"fp_buf_{end}": freed.append}))
    made = ffi.new("struct fp_buf *")
    mine = owned(made, "a buffer")
    assert (mine.n, freed) == (0, [])
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
