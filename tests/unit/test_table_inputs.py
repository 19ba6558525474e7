"""Tables that come back: from_tables, Arrow streams of other programs, and .arrows and .parquet as inputs."""

from __future__ import annotations

import ctypes
import random
import re
import struct
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import duckdb
import polars
import pyarrow
import pyarrow.parquet
import pytest

import fastprof
from fastprof.core.c_memory import address_of
from fastprof.core.model import Model
from fastprof.formats.arrow import read as streams
from fastprof.formats.arrow._columns import Array as Own
from fastprof.formats.arrow._columns import read
from tests.support.paths import CORPUS

POOL = CORPUS / "xray" / "good" / "fdr5-pool-clang19.xray"
KINETO = CORPUS / "trace-event" / "good" / "kineto-cpu-stack.json.gz"
XDEBUG = CORPUS / "callgrind" / "good" / "xdebug.callgrind"
GO = CORPUS / "pprof" / "good" / "go-cpulabels.pb.gz"
# Value types that some parts lack are NULL in a table, and 0 when they come back.
NULLS = {"archive/good/graph.fpa", "callgrind/good/everything.callgrind", "trace-event/good/sampled_mixed.json"}
NULLS |= {"otlp/good/no-zero-entry.otlp"}  # an address of 0 is none


def samples(profile: fastprof.Profile) -> Counter[Any]:
    """Samples with the frames of their stacks instead of numbers."""
    frames = defaultdict(list)
    for row in profile.rows("frames"):
        frames[row.pop("stack_id")].append(tuple(row.items()))
    found: Counter[Any] = Counter()
    for row in profile.rows("samples"):
        stack = row.pop("stack_id")
        found[(*row.items(), *frames[stack])] += 1
    return found


def spans(profile: fastprof.Profile) -> Counter[Any]:
    return Counter(tuple((k, v) for k, v in row.items() if k not in ("id", "parent")) for row in profile.rows("spans"))


def rows(profile: fastprof.Profile) -> object:
    if profile.view == "graph":
        return list(profile.rows("graph"))
    return samples(profile) if profile.view == "stacks" else spans(profile)


def again(profile: fastprof.Profile, table: Any = lambda found: found) -> fastprof.Profile:
    """The profile of its tables."""
    if profile.view == "stacks":
        return fastprof.from_tables(samples=table(profile.table("samples")), frames=table(profile.table("frames")))
    name = profile.tables[0]
    return fastprof.from_tables(**{name: table(profile.table(name))})


def profiles() -> list[Path]:
    """One in four, which are other ones of each format."""
    found = [path for path in sorted(CORPUS.glob("*/good/*")) if path.is_file() and path.stat().st_size < 300_000]
    return found[::4]


def test_tables_of_the_corpus_come_back_with_equal_rows() -> None:
    n, differ = 0, set()
    for path in profiles():
        try:
            profile = fastprof.open(path)
        except fastprof.FastprofError:  # not a profile by itself
            continue
        n += 1
        with profile:
            if rows(again(profile)) != rows(profile):
                differ.add(str(path.relative_to(CORPUS)))
    assert n > 60 and differ <= NULLS


@pytest.mark.parametrize("path", [POOL, KINETO, XDEBUG, GO])
@pytest.mark.parametrize(
    "by",
    [
        polars.DataFrame,
        pyarrow.table,
        lambda table: pyarrow.table(table).slice(0),
        lambda table: pyarrow.concat_tables([pyarrow.table(table).slice(0, 5), pyarrow.table(table).slice(5)]),
        lambda found: duckdb.connect().sql("from found").to_arrow_table(),
        lambda table: polars.DataFrame(table).to_dict(as_series=True),
    ],
)
def test_tables_by_other_programs(path: Path, by: Any) -> None:
    with fastprof.open(path) as profile:
        assert rows(again(profile, by)) == rows(profile)


@pytest.mark.parametrize("path", [POOL, KINETO, XDEBUG])
@pytest.mark.parametrize("suffix", ["arrows", "parquet", "arrows.gz"])
def test_files_of_tables_are_inputs(path: Path, suffix: str, tmp_path: Path) -> None:
    fastprof.convert(path, tmp_path / f"a.{suffix}")
    with fastprof.open(path) as profile, fastprof.open(tmp_path / f"a.{suffix}") as found:
        assert (found.format, found.view) == (suffix.partition(".")[0].replace("arrows", "arrow"), profile.view)
        assert rows(found) == rows(profile)
        first, second = fastprof.info(path), fastprof.info(tmp_path / f"a.{suffix}")
        assert first.facts.get("totals") == second.facts.get("totals")
    data = (tmp_path / f"a.{suffix}").read_bytes()
    assert fastprof.open(data).view == profile.view
    fastprof.merge([tmp_path / f"a.{suffix}"] * 2, tmp_path / "twice.folded")
    part = fastprof.open(data).where(function=top_of(path))
    assert len(part.top().rows) > 0 and fastprof.diff(part, fastprof.open(data)).rows


def top_of(path: Path) -> str:
    return re.escape(fastprof.top(path, n=9).rows[-1].name)


@pytest.mark.parametrize("compression", [None, "zstd"])
def test_streams_and_files_of_polars(compression: Any, tmp_path: Path) -> None:
    with fastprof.open(POOL) as profile:
        frame = polars.DataFrame(profile.table("spans"))
        frame.write_ipc_stream(tmp_path / "a.arrows", compression=compression or "uncompressed")
        frame.write_parquet(tmp_path / "b[1].parquet")
        for name in ("a.arrows", "b[1].parquet"):
            assert rows(fastprof.open(tmp_path / name)) == rows(profile)


def test_files_that_are_not_tables_of_profiles(tmp_path: Path) -> None:
    polars.DataFrame({"a": [1]}).write_ipc_stream(tmp_path / "a.arrows")
    polars.DataFrame({"a": [1]}).write_parquet(tmp_path / "a.parquet")
    for name in ("a.arrows", "a.parquet"):
        with pytest.raises(fastprof.FormatError, match=r"is no table of a profile .*: its columns are a"):
            fastprof.open(tmp_path / name)
    polars.DataFrame({"ts": [[1]], "dur": [1], "function": ["f"]}).write_ipc_stream(tmp_path / "b.arrows")
    with pytest.raises(fastprof.FormatError, match="'ts': its type is neither numbers nor texts"):
        fastprof.open(tmp_path / "b.arrows")
    frame = polars.DataFrame({"ts": [1], "dur": [-1], "function": ["f"]})
    frame.write_parquet(tmp_path / "b.parquet")
    with pytest.raises(fastprof.FormatError, match="row 0: its duration is -1"):
        fastprof.open(tmp_path / "b.parquet")
    frame.write_ipc_stream(tmp_path / "c.arrows", compression="lz4")
    with pytest.raises(fastprof.FormatError, match="compressed by LZ4"):
        fastprof.open(tmp_path / "c.arrows")
    with fastprof.open(GO) as profile:
        polars.DataFrame(profile.table("frames")).write_parquet(tmp_path / "f.parquet")
        polars.DataFrame(profile.table("samples")).write_parquet(tmp_path / "s.parquet")
    with pytest.raises(fastprof.FormatError, match="frames of stacks without their samples"):
        fastprof.open(tmp_path / "f.parquet")
    assert len(list(fastprof.open(tmp_path / "s.parquet").rows("samples"))) == 171


def test_a_stream_cut_or_damaged_anywhere_is_an_error_or_a_profile(tmp_path: Path) -> None:
    polars.DataFrame({"ts": [1, 5], "dur": [9, 2], "function": ["f", None], "thread": ["a", "b"]}).write_ipc_stream(
        tmp_path / "a.arrows"
    )
    data = (tmp_path / "a.arrows").read_bytes()
    for end in range(8, len(data)):
        with pytest.raises(fastprof.FastprofError, match=r"at byte|unknown format"):
            fastprof.open(data[:end])
    chance, read = random.Random(1), 0
    for _ in range(800):
        changed = bytearray(data)
        for _ in range(chance.randrange(1, 4)):
            changed[chance.randrange(8, len(data))] = chance.choice([0, 1, 127, 128, 255, chance.randrange(256)])
        try:
            read += len(list(fastprof.open(bytes(changed), from_="arrow").rows("spans"))) >= 0
        except fastprof.FastprofError as error:
            assert "arrow" in str(error)
    assert read > 30


def test_a_parquet_file_that_is_cut(tmp_path: Path) -> None:
    fastprof.convert(XDEBUG, tmp_path / "a.parquet")
    data = (tmp_path / "a.parquet").read_bytes()
    for end in range(4, len(data), len(data) // 20):
        with pytest.raises(fastprof.FormatError, match="parquet"):
            fastprof.open(data[:end])


# ---- streams


class Stream:
    def __init__(self, capsule: Any) -> None:
        self.capsule = capsule

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        return self.capsule


def columns(**changed: Any) -> Any:
    found = {"ts": [1, 5], "dur": [9, 2], "function": ["f", "g"]} | changed
    return pyarrow.table({name: column for name, column in found.items() if column is not None})


def test_types_of_columns() -> None:
    texts = ["f", None]
    for text in (pyarrow.string(), pyarrow.large_string(), pyarrow.string_view(), pyarrow.binary(),
                 pyarrow.dictionary(pyarrow.int8(), pyarrow.string()),
                 pyarrow.dictionary(pyarrow.uint64(), pyarrow.large_string())):  # fmt: skip
        for number in (pyarrow.int16(), pyarrow.uint64(), pyarrow.float32(), pyarrow.decimal128(38, 0)):
            table = columns(function=pyarrow.array(texts, text), ts=pyarrow.array([1, 5], number)).slice(0)
            found = list(fastprof.from_tables(spans=table).rows("spans"))
            assert [(row["function"], row["ts"]) for row in found] == [(None, 5), ("f", 1)]
            found = list(fastprof.from_tables(spans=table.slice(1)).rows("spans"))
            assert [(row["function"], row["ts"]) for row in found] == [(None, 5)]
    times = pyarrow.array([1, 5], pyarrow.timestamp("us"))
    found = list(fastprof.from_tables(spans=columns(ts=times, dur=[9000, 2000])).rows("spans"))
    assert [row["ts"] for row in found] == [5000, 1000]
    long = "x" * 1000
    views = pyarrow.array([long, "short"], pyarrow.string_view())
    assert {row["function"] for row in fastprof.from_tables(spans=columns(function=views)).rows("spans")} == {
        long,
        "short",
    }


def test_both_tables_may_be_queries_of_one_connection() -> None:
    db = duckdb.connect()
    found = db.sql("select 7 as stack_id, sum(x) as n from range(5) t(x)")
    made = fastprof.from_tables(samples=found, frames=db.sql("select 7 as stack_id, 0 as depth, 'f' as function"))
    assert [(row["function"], row["n"]) for row in made.rows()] == [("f", 10)]


def test_addresses_that_are_floats() -> None:
    """As in pandas, if some are missing."""
    frames = {"stack_id": [1, 1], "depth": [0, 1], "function": ["f", "g"], "address": [float(1 << 40 | 5), None]}
    made = fastprof.from_tables(samples={"stack_id": [1], "n": [1]}, frames=frames)
    assert [row["address"] for row in made.rows("frames")] == [1 << 40 | 5, None]
    with pytest.raises(fastprof.UsageError, match="expected an integer"):
        fastprof.from_tables(samples={"stack_id": [1], "n": [1]}, frames={**frames, "address": [0.5, None]})


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ({"function": [[1], [2]]}, "Arrow's type '.l'"),
        ({"function": [b"\xff", b"f"], "ts": None}, "has no column ts"),
        ({"function": [1, 2]}, "column 'function': has numbers, expected texts"),
        ({"ts": ["a", "b"]}, "column 'ts': has texts, expected numbers"),
        ({"ts": [None, 2]}, "row 0: has no start"),
        ({"ts": [0.5, 2]}, "column 'ts': row 0: is 0.5, expected an integer"),
        ({"dur": pyarrow.array([1, 1 << 63], pyarrow.uint64())}, "column 'dur': row 1: is 9223372036854775808"),
        ({"ts": pyarrow.array([1, 1 << 60], pyarrow.timestamp("s"))}, "row 1: is 2.63 nanoseconds or more"),
        ({"dur": pyarrow.array([1, 1 << 64], pyarrow.decimal128(38, 0))}, "row 1: is a number beyond 64 bits"),
        ({"dur": pyarrow.array([1, 2], pyarrow.decimal128(38, 2))}, "Arrow's type 'd:38,2'"),
        ({"function": pyarrow.array([1, 2]).dictionary_encode()}, "a dictionary of numbers"),
        ({"x": [1, 2]}, "the column 'x' is unknown"),
        ({"name": ["f", "g"]}, "are the same"),
        ({"depth": [0, 1 << 32]}, "row 1: depth is 4294967296, expected 0 to 2.31 - 1"),
    ],
)
def test_columns_that_are_wrong(changed: Any, what: str) -> None:
    with pytest.raises(fastprof.UsageError, match=f"from_tables: .*({what})"):
        fastprof.from_tables(spans=columns(**changed))


def test_streams_that_are_none() -> None:
    reader = pyarrow.RecordBatchReader.from_stream(columns())
    given = Stream(reader.__arrow_c_stream__())
    fastprof.from_tables(spans=given)
    for stream, what in [
        (given, "was read before"),
        (Stream(7), "gave int, expected an arrow_array_stream"),
        (Stream(pyarrow.schema([]).__arrow_c_schema__()), "gave PyCapsule, expected an arrow_array_stream"),
        (pyarrow.table({}), "has no column ts|has no column function"),
    ]:
        with pytest.raises(fastprof.UsageError, match=what):
            fastprof.from_tables(spans=stream)

    def fails() -> Any:
        yield columns().to_batches()[0]
        raise RuntimeError("of the producer")

    with pytest.raises(fastprof.UsageError, match=r"the Arrow stream failed: .*of the producer"):
        fastprof.from_tables(spans=pyarrow.RecordBatchReader.from_batches(columns().schema, fails()))


def test_arrays_that_lie() -> None:
    """Buffers whose sizes are known, as those of files."""
    of = Model()
    model = address_of(of.c)
    data = ctypes.create_string_buffer(64)
    place = ctypes.addressof(data)
    for format_, n, buffers, words, what in [
        (b"l", 9, [(0, 0), (place, 64)], None, "buffer 1 has 64 bytes, its rows take 72"),
        (b"l", 3, [(0, 0)], None, "has 1 buffers"),
        (b"l", 3, [(0, 0), (0, 0)], None, "buffer 1 is missing"),
        (b"l", 65, [(place, 8), (place, 1024)], None, "buffer 0 has 8 bytes"),
        (b"u", 16, [(0, 0), (place, 64), (place, 1)], None, "buffer 1 has 64 bytes, its rows take 68"),
        (b"vu", 5, [(0, 0), (place, 64)], None, "buffer 1 has 64 bytes"),
        (b"vu", 1, [], None, "has 0 buffers, expected those of views"),
        (b"i", 1 << 40, [(0, 0), (place, 64)], None, "rows"),
        (b"+s", 1, [(0, 0)], None, "Arrow's type"),
        (b"i", 2, [(0, 0), (place, 8)], Own.of(b"u", 0, [(0, 0), (0, 0), (0, 0)], None, None), "its index is 0"),
    ]:
        with pytest.raises(ValueError, match=what):
            read(Own.of(format_, n, buffers, words, data), model, 1)
    for offsets, what in [((5, 3), "at bytes 5 to 3"), ((0, 99), "at bytes 0 to 99"), ((-1, 3), "to 3$")]:
        texts = (ctypes.c_int32 * 2)(*offsets)
        own = Own.of(b"u", 1, [(0, 0), (ctypes.addressof(texts), 8), (place, 64)], None, data)
        with pytest.raises(ValueError, match=what):
            read(own, model, 1)
    for view, what in [
        ((99, 0, 0, 0), "ends at 99 of 64"),
        ((-1, 0, 0, 0), "has -1 bytes"),
        ((50, 0, 7, 0), "buffer 7 of 1"),
    ]:
        words_ = (ctypes.c_int32 * 4)(*view)
        own = Own.of(b"vu", 1, [(0, 0), (ctypes.addressof(words_), 16), (place, 64)], None, data)
        with pytest.raises(ValueError, match=what):
            read(own, model, 1)


def test_units_and_tables_that_do_not_fit() -> None:
    with fastprof.open(GO) as profile:
        frame, frames = polars.DataFrame(profile.table("samples")), polars.DataFrame(profile.table("frames"))
    made = fastprof.from_tables(samples=frame, frames=frames, units={"cpu": "nanoseconds"})
    assert [value.unit for value in made.value_types if value.name == "cpu"] == ["nanoseconds"]
    for keywords, what in [
        ({}, "expected samples and frames, spans, or graph"),
        ({"samples": frame, "graph": frame}, "expected samples and frames"),
        ({"frames": frames}, "expected samples and frames"),
        ({"samples": frame, "frames": frames.head(5)}, "stack .* has no frames"),
        (
            {"samples": frame, "frames": polars.concat([frames, frames])},
            "frames: row .*: stack .* has another frame at depth",
        ),
        ({"samples": frame, "units": {"x": "y"}}, "units has 'x'"),
        ({"samples": frame.with_columns(labels=polars.lit("7"))}, "labels are b'7', expected an object of JSON"),
        ({"samples": frame.with_columns(labels=polars.lit('{"a": 0.5}'))}, "the label 'a' is 0.5"),
        ({"graph": {"kind": ["x"], "function": ["f"]}}, "its kind is none of those"),
        ({"graph": {"kind": ["cost"], "function": ["f"], "line": [-1]}}, "row 0: line is -1"),
    ]:
        with pytest.raises(fastprof.UsageError, match=what):
            fastprof.from_tables(**keywords)  # type: ignore[arg-type]


def test_a_column_of_values_that_are_all_missing_shifts_no_other() -> None:
    given = {"a": pyarrow.array([None, None], pyarrow.string()), "b": [7, 8]}
    made = fastprof.from_tables(samples=pyarrow.table({"stack_id": [0, 0], "function": ["f", "g"], **given}))
    assert sorted((row["function"], row["a"], row["b"]) for row in made.rows("samples")) == [("f", 0, 7), ("g", 0, 8)]
    made = fastprof.from_tables(graph=pyarrow.table({"kind": ["cost"] * 2, "function": ["f", "g"], **given}))
    assert sorted((row["function"], row["a"], row["b"]) for row in made.rows("graph")) == [("f", 0, 7), ("g", 0, 8)]


def test_texts_that_overlap_are_no_way_to_fill_the_memory() -> None:
    model, chance = Model(), random.Random(1)
    data = chance.randbytes(1 << 16)
    views = b"".join(struct.pack("<i4sii", 60_000, data[i : i + 4], 0, i) for i in range(100))
    offsets = struct.pack("<4i", 0, 99, 0, 99)
    held = [ctypes.create_string_buffer(text, len(text)) for text in (views, data, offsets, b"\5")]
    v, d, o, bits = [(ctypes.addressof(one), len(one)) for one in held]
    with pytest.raises(ValueError, match=r"row 4: .* views that overlap"):
        read(Own.of(b"vu", 100, [(0, 0), v, d], None, held), address_of(model.c), 1)
    with pytest.raises(ValueError, match="row 1: its text is at bytes 99 to 0"):
        read(Own.of(b"u", 3, [bits, o, d], None, held), address_of(model.c), 1)


def test_a_dictionary_is_read_once_for_a_model() -> None:
    models = Model(), Model()
    data, index = ctypes.create_string_buffer(b"ab"), ctypes.create_string_buffer(b"\0\0\0\0")
    offsets = (ctypes.c_int32 * 2)(0, 2)
    words = Own.of(b"u", 1, [(0, 0), (ctypes.addressof(offsets), 8), (ctypes.addressof(data), 2)], None, data)
    column = Own.of(b"i", 1, [(0, 0), (ctypes.addressof(index), 4)], words, index)
    found = []
    for model, text in zip((*models[:1] * 2, models[1]), (b"ab", b"cd", b"cd"), strict=True):
        data.value = text  # to see what is read
        id_ = read(column, address_of(model.c), 1)[0]
        found.append(model.string(id_ or 0))
    assert found == [b"ab", b"ab", b"cd"]
    given = pyarrow.array(["f", "g"]).dictionary_encode()
    others = [given, pyarrow.array(["g", "h"]).dictionary_encode(), given.slice(1)]
    table = pyarrow.concat_tables(pyarrow.table({"stack_id": [0] * len(one), "function": one}) for one in others)
    made = fastprof.from_tables(samples=table)
    assert [row["function"] for row in made.rows("samples")] == ["f", "g", "g", "h", "g"]


def test_batches_that_lie(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.arrows"
    frame = polars.DataFrame({"ts": [0] * 100_000, "dur": 5, "function": "a name of more than 12 bytes"})
    frame.write_ipc_stream(path, compression="zstd")
    assert fastprof.open(path).view == "timeline"
    monkeypatch.setattr(streams, "_UNPACKED_LEAST", 1000)
    with pytest.raises(fastprof.FormatError, match="the stream unpacks to far more than its size"):
        fastprof.open(path)
    frame[:2].write_ipc_stream(path, compression="uncompressed", compat_level=polars.CompatLevel.newest())
    data = path.read_bytes()
    assert fastprof.open(data).view == "timeline"
    for old, new, what in [
        (struct.pack("<Iq", 1, 1), struct.pack("<Iq", 1, -1), "malformed"),
        (struct.pack("<qq", 0, 16), struct.pack("<qq", 0, 4000), "buffers of a batch overlap"),
    ]:
        assert data.count(old) == 1
        with pytest.raises(fastprof.FormatError, match=what):
            fastprof.open(data.replace(old, new))


class ArrowArray(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_int64) for name in ("length", "null_count", "offset", "n_buffers", "n_children")),
        *((name, ctypes.c_void_p) for name in ("buffers", "children", "dictionary", "release", "private_data")),
    )


@pytest.mark.parametrize(
    ("changed", "of_column", "what"),
    [
        ({"offset": (1 << 63) - 1}, False, "gave 2 rows from 9223372036854775807 on"),
        ({"length": 1 << 62}, False, "gave 4611686018427387904 rows"),
        ({"offset": 1}, False, "has 2 values for 3 rows"),
        ({"children": None}, False, "gave 3 columns, its schema has 3"),
        ({"offset": (1 << 63) - 1}, True, "its Arrow array is not valid"),
        ({"buffers": None}, True, "its Arrow array is not valid"),
    ],
)
def test_streams_that_lie(changed: dict[str, Any], of_column: bool, what: str) -> None:
    capsule = pyarrow.RecordBatchReader.from_stream(columns()).__arrow_c_stream__()
    pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    callbacks = (ctypes.c_void_p * 5).from_address(pointer_of(capsule, b"arrow_array_stream"))
    next_type = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ArrowArray))
    release_type = ctypes.CFUNCTYPE(None, ctypes.POINTER(ArrowArray))
    original = next_type(callbacks[1] or 0)

    @release_type
    def release(array: Any) -> None:
        array.contents.release = None

    @next_type
    def changes(stream: Any, to: Any) -> int:
        status = original(stream, to)
        to.contents.release = ctypes.cast(release, ctypes.c_void_p).value
        child = ctypes.c_void_p.from_address(to.contents.children).value
        for name, value in changed.items():
            setattr(ArrowArray.from_address(child or 0) if of_column else to.contents, name, value)
        return status

    callbacks[1] = ctypes.cast(changes, ctypes.c_void_p).value
    with pytest.raises(fastprof.UsageError, match=what):
        fastprof.from_tables(spans=Stream(capsule))
