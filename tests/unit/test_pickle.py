"""Objects that pass between processes of a pool: exceptions, reports and options."""

from __future__ import annotations

import pickle
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

import fastprof
from fastprof.core.errors import FormatError, SymbolError, UnrecognizedError, UsageError
from fastprof.core.log import Log
from fastprof.core.options import Options
from fastprof.core.reported import REPORTED, SHARED
from tests.support.paths import CORPUS


def same(value: object) -> object:
    return pickle.loads(pickle.dumps(value))


def test_exceptions() -> None:
    error = same(FormatError("a.xray", "xray", "kind is 10", offset=1039, line=3, code=-2))
    assert isinstance(error, FormatError)
    assert str(error) == "a.xray: xray: line 3, byte 1039: kind is 10"
    assert (error.file, error.offset, error.line, error.code) == ("a.xray", 1039, 3, -2)
    for kind in (UsageError, UnrecognizedError, SymbolError):
        assert repr(same(kind("why"))) == repr(kind("why"))


def test_reports_and_options() -> None:
    log = Log()
    log.count(SHARED["unwound-frames"], 3)
    log.rows["calls"] += 7
    log.warn(REPORTED["only-zeros"], name="cpu", others="wall")
    again = same(log)
    assert isinstance(again, Log) and again.as_dict() == log.as_dict()
    assert same(Options(prune=0.5)).given == {"prune": 0.5}  # type: ignore[attr-defined]


def test_a_pool_of_processes() -> None:
    good = str(CORPUS / "xray/good/fdr5-pool-clang19.xray")
    bad = sorted(str(path) for path in (CORPUS / "xray/bad").glob("*.xray"))[0]
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        assert pool.submit(fastprof.info, good).result().repairs == {"unwound-frames": 3}
        with pytest.raises(fastprof.FastprofError):
            pool.submit(fastprof.info, bad).result()
        assert pool.submit(fastprof.info, good).result().facts["threads"] == 4
