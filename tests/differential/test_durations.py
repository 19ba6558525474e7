"""`top --stats` and `llvm-xray account`.

account picks the call with index floor(n * q) of n sorted calls, from 0 on.  So its 90th percentile of 10 calls is the
longest, and its median of two calls, too; ours are the same.  It does not order the buffers of a thread by time, so it
misses calls in logs of several threads, or of threads with several buffers.
"""

from __future__ import annotations

import pytest

from fastprof import top
from tests.differential import account
from tests.support.paths import needs_shared, shared_data

LOGS = ["basic3-interp-args-clang19", "fdr5-interp-args-clang14", "fdr5-lua-clang19"]


@needs_shared
@pytest.mark.parametrize("name", LOGS)
def test_the_durations_are_those_of_account(name: str) -> None:
    theirs = account.parse(shared_data("xray", name, "expected.trace.account-k-d.csv").read_text())
    rows = top(shared_data("xray", name, "trace.xray"), stats=True, n=0).rows
    ours = {int(row.name.removeprefix("#")): row.durations for row in rows if row.durations}
    assert ours.keys() == theirs.keys()
    for function, durations in ours.items():
        expected = theirs[function]
        assert durations.ended == expected.calls
        for figure, (mine, seconds) in enumerate(zip(durations[1:], expected[1:6], strict=True)):
            error = 0.5e-9 + seconds * (1e-6 if figure in (0, 4) else 0.01)  # theirs has 7 digits
            assert mine / 1e9 == pytest.approx(seconds, rel=0, abs=error)
