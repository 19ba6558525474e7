"""The tools that fastprof is compared with.

A missing one fails the test; only FASTPROF_ALLOW_MISSING_PEERS=1 turns that into a skip.
"""

from __future__ import annotations

import os
import shutil

import pytest


def need(*names: str) -> str:
    """The path of the first of these programs that is installed."""
    for name in names:
        if path := shutil.which(name):
            return path
    message = f"{names[0]} is missing (FASTPROF_ALLOW_MISSING_PEERS=1 skips the tests that need it)"
    if os.environ.get("FASTPROF_ALLOW_MISSING_PEERS") == "1":
        pytest.skip(message)
    pytest.fail(message)
