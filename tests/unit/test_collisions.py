"""Keys constructed to collide in one slot cost no more than others, and outputs do not reveal the secret.

Without secrets each file of `FILES` takes 10^10 steps and more, and the names take two minutes; with them they take a
second.  So the limit of processor time is far from both.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fastprof.core._c import ffi, lib
from fastprof.core.errors import FastprofError
from fastprof.core.model import Model
from tests.contract.dump import files
from tests.support.collisions import HALF, LOW, near, near_arcs, near_numbers, near_stacks, near_strings, row_hashes
from tests.support.conversions import WRITERS, convert, format_of
from tests.support.paths import REPO
from tests.support.preload import library
from tests.support.xraylog import FdrLog
from tests.unit.test_pprof import message, number, varint

CODE = """
import resource, sys
resource.setrlimit(resource.RLIMIT_CPU, (10, 10))
import fastprof
path, from_, *formats = sys.argv[1:]
for to in formats:
    fastprof.convert(path, f"{path}.{to}", from_=from_, to=to)
    path, from_ = f"{path}.{to}", to
"""

HEAD = b"version: 1\ncreator: callgrind-3\nevents: Ir\n"


def names(n: int) -> bytes:
    return HEAD + b"".join(b"fn=%s\n1 1\n" % name for name in near_strings(n))


def far_numbers(n: int) -> bytes:
    return HEAD + b"".join(b"fn=(%d) f%d\n1 1\n" % (number, i) for i, number in enumerate(near_numbers(n)))


def pprof(strings: list[bytes], functions: list[int], locations: list[int], begin: list[int] | None = None) -> bytes:
    """Each function is in one line of a location, each location in one of the samples, 100 per stack."""
    table = [b"", b"samples", b"count", *strings]
    sampled = [locations[i : i + 100] for i in range(0, len(locations), 100)]
    return b"".join(
        [
            message(1, number(1, 1) + number(2, 2)),
            *(message(2, message(1, b"".join(map(varint, stack))) + message(2, varint(1))) for stack in sampled),
            *(
                message(4, number(1, id_) + message(4, number(1, function)))
                for id_, function in zip(locations, functions, strict=True)
            ),
            *(
                message(5, number(1, id_) + number(2, 3 + i % len(strings)) + number(5, begin[i] if begin else 0))
                for i, id_ in enumerate(functions)
            ),
            *(message(6, text) for text in table),
        ]
    )


def ids(n: int) -> list[int]:
    return near(n, lambda lows: row_hashes(lows, 0))


def xray(n: int) -> bytes:
    log = FdrLog(5)
    buffer = log.buffer(tid=1, pid=1).cpu(0, 1000)
    for id_ in near(n, row_hashes, 1 << 20):
        buffer.enter(id_, 1).exit(id_, 1)
    return log.bytes()


def calls(n: int) -> bytes:
    """Function i is the ith to be called from outside, so it is also the ith context."""
    paths = [(i,) for i in range(1, n + 1)] + near_arcs(n)
    events = [
        {"ph": "X", "pid": 1, "tid": 1, "ts": 10 * k + i, "dur": 9 - 2 * i, "name": f"f{function}"}
        for k, path in enumerate(paths)
        for i, function in enumerate(path)
    ]
    return json.dumps({"traceEvents": events}).encode()


def stacks(n: int) -> bytes:
    paths = [(i,) for i in range(1, n + 1)] + near_stacks(n)
    return b"".join(b"%s 1\n" % b";".join(b"f%d" % i for i in path) for path in paths)


def labels(n: int) -> bytes:
    """Each sample has a number as a label."""
    numbers = near(n, lambda lows: row_hashes(0, 3, 0, lows, 0, 0))
    return b"".join(
        [
            message(1, number(1, 1) + number(2, 2)),
            *(
                message(2, message(1, varint(1)) + message(2, varint(1)) + message(3, number(1, 3) + number(3, value)))
                for value in numbers
            ),
            message(4, number(1, 1) + message(4, number(1, 1))),
            message(5, number(1, 1) + number(2, 4)),
            *(message(6, text) for text in (b"", b"samples", b"count", b"a", b"f")),
        ]
    )


def frames(n: int) -> bytes:
    """Each location is an address, 100 of them per stack."""
    addresses = near(n, lambda lows: row_hashes(1, lows, 0, 0, 0))
    stacks = [range(i, min(i + 100, n + 1)) for i in range(1, n + 1, 100)]
    return b"".join(
        [
            message(1, number(1, 1) + number(2, 2)),
            *(message(2, message(1, b"".join(map(varint, stack))) + message(2, varint(1))) for stack in stacks),
            *(message(4, number(1, i) + number(2, 1) + number(3, a)) for i, a in enumerate(addresses, 1)),
            message(3, number(1, 1) + number(2, 0) + number(3, 1 << 63) + number(5, 3)),
            *(message(6, text) for text in (b"", b"samples", b"count", b"[x]")),
        ]
    )


def functions(n: int) -> bytes:
    """Functions of one name that begin at different lines."""
    lines = near(n, lambda lines: row_hashes(0, 0, 3, 0, lines))
    return pprof([b"f"], [*range(1, n + 1)], [*range(1, n + 1)], lines)


def gperftools(n: int) -> bytes:
    """Samples of one address each."""
    addresses = near(n, lambda lows: row_hashes(lows, 0, 1))
    words = [0, 3, 0, 10_000, 0, *(word for address in addresses for word in (1, 1, address)), 0, 1, 0]
    return np.asarray(words, "<u8").tobytes()


def processes(n: int) -> bytes:
    """Calls of threads with chosen numbers."""
    tids = near(n, lambda lows: row_hashes(5, 1, 0, lows, 0, 1))
    events = [{"ph": "X", "pid": 1, "tid": tid, "ts": 1, "dur": 1, "name": "f"} for tid in tids]
    return json.dumps({"traceEvents": events}).encode()


# By table: the file with n keys, or pairs of n; n for the time limit and for tests of seeds; its format, others.
FILES: dict[str, tuple[Callable[[int], bytes], int, int, list[str]]] = {
    "names": (names, 150_000, 5000, ["callgrind", "archive", "folded"]),
    "numbers": (far_numbers, 150_000, 5000, ["callgrind", "folded"]),
    "strings of pprof": (
        lambda n: pprof(near_strings(n), list(range(1, n + 1)), list(range(1, n + 1))),
        150_000,
        5000,
        ["pprof", "archive", "pprof"],
    ),
    "ids of functions": (lambda n: pprof([b"f"], ids(n), list(range(1, n + 1))), 150_000, 5000, ["pprof", "callgrind"]),
    "ids of locations": (
        lambda n: pprof([b"f%d" % i for i in range(n)], list(range(1, n + 1)), ids(n)),
        150_000,
        5000,
        ["pprof", "callgrind"],
    ),
    "labels": (labels, 150_000, 5000, ["pprof", "archive", "pprof"]),
    "frames": (frames, 150_000, 5000, ["pprof", "archive", "callgrind"]),
    "functions": (functions, 150_000, 5000, ["pprof", "archive", "callgrind"]),
    "addresses": (gperftools, 150_000, 5000, ["gperftools", "pprof"]),
    "threads": (processes, 100_000, 5000, ["trace-event", "archive"]),
    "ids of XRay": (xray, 150_000, 5000, ["xray", "callgrind"]),
    "call arcs": (calls, 3500, 700, ["trace-event", "callgrind"]),
    "call paths": (calls, 3500, 700, ["trace-event", "folded"]),
    "stacks": (stacks, 4000, 800, ["folded", "pprof"]),
}


def converted(data: bytes, formats: list[str], path: Path, **environment: str) -> bytes:
    path.write_bytes(data)
    command = [sys.executable, "-c", CODE, str(path), *formats]
    done = subprocess.run(command, cwd=REPO, env=os.environ | environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    return Path(".".join([str(path), *formats[1:]])).read_bytes()


@pytest.mark.parametrize("name", FILES)
def test_files_are_converted_in_linear_time(name: str, tmp_path: Path) -> None:
    make, n, _, formats = FILES[name]
    assert converted(make(n), formats, tmp_path / "in")


@pytest.fixture(scope="module")
def seed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return library("seed", tmp_path_factory.mktemp("seed"))


@pytest.mark.parametrize("name", FILES)
def test_bytes_are_the_same_for_any_secret(name: str, seed: Path, tmp_path: Path) -> None:
    make, _, n, formats = FILES[name]
    data, asked = make(n), tmp_path / "asked"
    preload = f"{seed} {os.environ.get('LD_PRELOAD', '')}"
    written = {
        converted(data, formats, tmp_path / "in", LD_PRELOAD=preload, SEED=value, SEED_ASKED=str(asked))
        for value in ("0", "1", "255")
    }
    assert len(written) == 1
    assert asked.stat().st_size >= 3  # otherwise no table took a secret


TABLES = ["objects", "mappings", "functions", "lines", "frames", "stacks", "labels", "threads"]
FILES_OF_ALL = sorted({format_of(file): file for file in files("good")}.values())


@pytest.mark.parametrize("file", FILES_OF_ALL)
def test_models_with_secrets_from_the_beginning_are_written_the_same(
    file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, seed = Model.__init__, 0
    wanted = {to: convert(file, to).data for to in WRITERS if can(file, to)}
    assert wanted

    def init(self: Model, *arguments: Any, **options: Any) -> None:
        made(self, *arguments, **options)
        for table in ("strings", *TABLES):
            getattr(self.c, table).secret.key = [seed, ~seed & (1 << 64) - 1]

    monkeypatch.setattr(Model, "__init__", init)
    for seed in (1, 1 << 63, 0xFEDCBA9876543211):  # noqa: B007  `init` takes it
        assert {to: convert(file, to).data for to in wanted} == wanted


def can(file: str, to: str) -> bool:
    try:
        convert(file, to)
    except FastprofError:
        return False
    return True


@pytest.mark.parametrize("width", range(1, 9))
def test_rows_of_each_width(width: int) -> None:
    n = 20_000
    crafted = near(n, lambda last: row_hashes(*[7] * (width - 1), last))
    ordinary = random.Random(width).sample(range(1, 1 << 32), n)
    for numbers, takes in (crafted, True), (ordinary, False):
        table = ffi.new("struct fp_table *")
        assert not lib.fp_table_init(table, width)
        rows = [ffi.new("uint32_t[]", [7] * (width - 1) + [last]) for last in numbers]
        assert [lib.fp_table_intern(table, row) for row in rows] == list(range(1, n + 1))
        assert bool(table.secret.key[0]) == takes
        assert [lib.fp_table_intern(table, row) for row in rows] == list(range(1, n + 1))
        assert [lib.fp_table_find(table, row) for row in rows] == list(range(1, n + 1))
        assert not lib.fp_table_find(table, ffi.new("uint32_t[]", [8] * width))
        lib.fp_table_clear(table)


def test_a_search_for_what_is_not_there_ends() -> None:
    """Rows that begin in adjacent slots all stay in their first slot, and fill a third of the table without a gap."""
    n, slots = 40_000, 1 << 17
    ids = np.random.default_rng(1).integers(1, 1 << 63, 1 << 21, dtype=np.uint64)
    begins = row_hashes(ids & LOW, ids >> HALF) & np.uint64(slots - 1)
    in_slot = dict(zip(begins.tolist(), ids.tolist(), strict=True))
    row, table = ffi.new("uint64_t[1]"), ffi.new("struct fp_table *")
    words = ffi.cast("uint32_t *", row)
    assert not lib.fp_table_init(table, 2)
    filled = [slot for slot in range(n) if slot in in_slot]
    assert len(filled) == n
    for slot in filled:
        row[0] = in_slot[slot]
        assert lib.fp_table_intern(table, words) == slot + 1
    assert not table.secret.key[0]
    known = set(in_slot.values())
    absent = [id_ for id_ in ids[begins < 1000].tolist() if id_ not in known]
    assert len(absent) > 1000
    for id_ in absent:
        row[0] = id_
        assert not lib.fp_table_find(table, words)
    row[0] = absent[0]
    assert lib.fp_table_intern(table, words) == n + 1
    assert table.secret.key[0]
    lib.fp_table_clear(table)


def test_hash_is_that_of_python() -> None:
    """SipHash-1-3, with a key of zeros in a process without a random seed."""
    texts = [bytes(range(n)) for n in range(1, 40)]
    code = f"import sys; print([hash(text) & (1 << 64) - 1 for text in {texts!r}], sys.hash_info.algorithm)"
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | {"PYTHONHASHSEED": "0"}, capture_output=True, text=True
    )
    said, algorithm = done.stdout.rsplit(None, 1)
    if algorithm != "siphash13":
        pytest.skip("needs a Python that hashes with SipHash-1-3")
    secret = ffi.new("struct fp_hash_key *")
    assert [lib.fp_hash_key_hash(secret, text, len(text)) for text in texts] == json.loads(said)


def test_secrets_differ() -> None:
    """Except where fuzzers look for errors, and in other builds with FP_DEBUG, which do not ask the system."""
    secrets = ffi.new("struct fp_hash_key[2]")
    for secret in secrets:
        lib.fp_hash_key_take(ffi.addressof(secret))
        assert secret.key[0]
    assert list(secrets[0].key) != list(secrets[1].key)
