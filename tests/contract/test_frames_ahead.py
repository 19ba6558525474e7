"""Outputs are the same whether the model replaces frames before it adds stacks, or bridges replace the stacks."""

from __future__ import annotations

from typing import Any

import pytest

from fastprof import formats, plan
from fastprof.core._c import ffi, lib
from fastprof.core.errors import FastprofError
from fastprof.core.options import Options
from tests.contract.dump import files
from tests.support.chosen import cases
from tests.support.conversions import HERE, convert_bytes, format_of
from tests.support.paths import CORPUS, needs_shared, shared_data

READERS = ["archive", "dhat", "folded", "gperftools", "heap", "jfr", "luajit", "mojo", "otlp", "perf", "perf-script"]
READERS += ["pprof", "rprof", "tracer-stacks", "ghc-prof", "instruments", "pprof-raw"]
READERS += ["bolt", "llvm-profile", "tachyon", "simpleperf", "speedscope", "firefox"]
TARGETS = ["folded", "pprof", "callgrind"]
IN_PART = ["perfetto"]  # for some of its data


def made(data: bytes, from_: str, to: str, options: Options, capacity: int | None = None) -> bytes | str:
    try:
        return convert_bytes(data, from_, to, options, capacity).data
    except FastprofError as error:
        return str(error)


def behind(data: bytes, from_: str, to: str, options: Options) -> bytes | str:
    """Made by bridges that replace stacks."""
    held = plan.Pipeline._held
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan.Pipeline, "_held", lambda self: [one._replace(replaces_frames=False) for one in held(self)])
        return made(data, from_, to, options)


def same(data: bytes, from_: str, options: Options) -> list[bool]:
    """Whether each target got something.  With small batches rows often wait in readers while names come."""
    written = []
    for to in TARGETS:
        expected = behind(data, from_, to, options)
        assert [made(data, from_, to, options, capacity) for capacity in (None, 1)] == [expected] * 2, to
        written.append(isinstance(expected, bytes))
    return written


def test_these_readers_renew_their_stacks() -> None:
    found = {f.name for f in formats.formats() if f.reader and getattr(f.reader_class(), "renews_stacks", False)}
    assert found == {*READERS}


@pytest.mark.parametrize("file", cases(file for file in files("good") if format_of(file) in READERS + IN_PART))
def test_the_corpus(file: str) -> None:
    same((CORPUS / file).read_bytes(), format_of(file), HERE)


def named() -> list[tuple[str, str, dict[str, str]]]:
    """Profiles with addresses, and where their names are."""
    programs = "flat", "host", "recurse", "threads"
    return [
        *((f"gperftools/{name}/{name}.prof", "gperftools", {"symbols": f"gperftools/bin/{name}"}) for name in programs),
        *(
            (f"perf-data/recorded/{name}.data", "perf", {"sysroot": "perf-data/recorded/symfs"})
            for name in ("cxx", "go")
        ),
    ]


@needs_shared
@pytest.mark.parametrize("inlines", [False, True])
@pytest.mark.parametrize(("file", "from_", "where"), named(), ids=lambda value: str(value)[-20:])
def test_addresses(file: str, from_: str, where: dict[str, str], inlines: bool) -> None:
    given: dict[str, Any] = {name: str(shared_data(*path.split("/"))) for name, path in where.items()}
    if "symbols" in given:
        given["symbols"] = (given["symbols"],)
    options = Options(symbolize=True, inlines=inlines, **given)
    assert all(same(shared_data(*file.split("/")).read_bytes(), from_, options))


@pytest.mark.parametrize("first", ["model", "bridge"])
def test_model_and_bridge_are_freed_in_any_order(first: str) -> None:
    """Python frees them so when it collects an abandoned conversion; a sanitizer or valgrind sees the rest."""
    model = lib.fp_model_new()
    bridges = [lib.fp_restack_new(model) for _ in range(2)]
    for bridge in bridges:  # the second replaces the first
        assert lib.fp_restack_ahead(bridge, lib.FP_FRAMES_NAMED) == 0
    if first == "model":
        lib.fp_model_free(model)
    for bridge in bridges:
        lib.fp_restack_free(bridge)
    if first == "bridge":
        assert ffi.cast("uint32_t", lib.fp_model_stack(model, 0, 0)) != lib.FP_NO_ID
        lib.fp_model_free(model)
