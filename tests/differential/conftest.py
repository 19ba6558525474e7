from __future__ import annotations

import pytest

from tests.differential.record_xray import Recorder
from tests.support.once import made_once


@pytest.fixture(scope="session")
def clang19(tmp_path_factory: pytest.TempPathFactory) -> Recorder:
    return Recorder(made_once(tmp_path_factory, "clang19"), 19)


@pytest.fixture(scope="session")
def clang14(tmp_path_factory: pytest.TempPathFactory) -> Recorder:
    return Recorder(made_once(tmp_path_factory, "clang14"), 14)
