from __future__ import annotations

import pytest

from tests.differential.record_xray import Recorder


@pytest.fixture(scope="session")
def clang19(tmp_path_factory: pytest.TempPathFactory) -> Recorder:
    return Recorder(tmp_path_factory.mktemp("clang19"), 19)


@pytest.fixture(scope="session")
def clang14(tmp_path_factory: pytest.TempPathFactory) -> Recorder:
    return Recorder(tmp_path_factory.mktemp("clang14"), 14)
