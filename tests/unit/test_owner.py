from __future__ import annotations

import gc

import pytest

from fastprof.core._c import ffi
from fastprof.core.owner import owned


def test_what_is_owned_is_freed_with_its_last_reference() -> None:
    freed = []
    made = ffi.new("int *", 7)
    mine = owned(made, freed.append, "a number")
    assert (mine[0], freed) == (7, [])
    del mine
    gc.collect()
    assert freed == [made]


def test_no_memory_says_for_what() -> None:
    with pytest.raises(MemoryError, match=r"^no memory for a number$"):
        owned(ffi.NULL, print, "a number")
