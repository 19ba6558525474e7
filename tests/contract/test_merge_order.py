"""The order of the inputs never changes the merged bytes, headers included."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import pytest

import fastprof
from tests.support.paths import CORPUS

# Inputs whose headers differ, that share functions or stacks, and whose rows are in different orders.
SETS = {
    "callgrind": ("callgrind/good/cfi.callgrind", "callgrind/good/contexts.callgrind", "callgrind/good/tab.callgrind"),
    "cachegrind": ("cachegrind/good/head.cachegrind", "cachegrind/good/newer.cachegrind"),
    "gperftools": ("gperftools/good/plain.prof", "gperftools/good/duplicates.prof", "gperftools/good/64be.prof"),
    "pprof": ("pprof/good/go-heap.pb.gz", "pprof/good/go-block.pb.gz", "pprof/good/go-goroutine.pb.gz"),
    "folded": ("folded/good/plain.folded", "folded/good/recursion.folded", "folded/good/py-spy.folded"),
    "xray": ("xray/good/fdr5-busy.xray", "xray/good/fdr5-rotated.xray", "xray/good/basic3-busy.xray"),
    "graphs": ("callgrind/good/cfi.callgrind", "cachegrind/good/newer.cachegrind", "gperftools/good/plain.prof"),
    "views": ("xray/good/fdr5-busy.xray", "folded/good/plain.folded", "callgrind/good/tab.callgrind"),
}
TARGETS = ("callgrind", "cachegrind", "pprof", "gperftools", "folded", "archive")


@pytest.mark.parametrize("to", TARGETS)
@pytest.mark.parametrize("name", SETS)
def test_any_order_gives_the_same_bytes(name: str, to: str, tmp_path: Path) -> None:
    made: dict[bytes, list[str]] = {}
    for order in permutations(SETS[name]):
        out = tmp_path / "out"
        try:
            fastprof.merge([CORPUS / file for file in order], out, to=to, union=True, **_without_symbols(name))
        except fastprof.FastprofError as error:
            out.write_bytes(str(type(error)).encode())
        made.setdefault(out.read_bytes(), []).append(" ".join(order))
    assert len(made) == 1, [orders[0] for orders in made.values()]


def _without_symbols(name: str) -> dict[str, bool]:
    return {"symbolize": False} if name in ("gperftools", "pprof", "graphs") else {}
