"""`convert`, `merge` and `open` with file objects instead of paths."""

from __future__ import annotations

import gc
import gzip
import io
import os
import tempfile
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any

import pytest

import fastprof
from fastprof.core.errors import FastprofError, FormatError, UsageError
from tests.support.conversions import OF_ANY
from tests.support.paths import REPO
from tests.unit.test_io import Unseekable

CORPUS = REPO / "tests" / "corpus"
POOL = CORPUS / "xray" / "good" / "fdr5-pool-clang19.xray"
XDEBUG = CORPUS / "callgrind" / "good" / "xdebug.callgrind"

# inputs for targets that a graph cannot become
ONLY = dict.fromkeys(("xray", "trace-event", "perfetto"), POOL)
ONLY["gperftools"] = CORPUS / "gperftools" / "good" / "plain.prof"


class Named(io.BytesIO):
    name: Any = "there"


def _by_paths(tmp_path: Path, inputs: Any, to: str, **options: Any) -> bytes:
    out = tmp_path / "out"
    fastprof.convert(inputs, out, to=to, **options)
    return out.read_bytes()


@pytest.mark.parametrize("to", ["callgrind", "pprof", "archive", "folded", "speedscope", "firefox"])
@pytest.mark.parametrize("path", [POOL, XDEBUG], ids=["xray", "callgrind"])
def test_in_and_out(path: Path, to: str, tmp_path: Path) -> None:
    want = _by_paths(tmp_path, path, to)
    data = path.read_bytes()
    for made in (Named(data), Unseekable(data), Unseekable(gzip.compress(data)), path.open("rb")):
        if isinstance(made, io.BytesIO):
            made.name = str(path)  # some formats show the name
        with made as file, (tmp_path / "copy").open("w+b") as output:
            log = fastprof.convert(file, output, to=to)
            assert not file.closed and not output.closed
            output.seek(0)
            assert output.read() == want
            assert log.facts["output_bytes"] == len(want)


def test_ranked_compared_and_shown(tmp_path: Path) -> None:
    data = XDEBUG.read_bytes()
    want = fastprof.top(XDEBUG)
    for given in (data, io.BytesIO(data), Unseekable(data)):
        assert fastprof.top(given).rows == want.rows
    assert not fastprof.diff(XDEBUG, io.BytesIO(data)).changed()
    found = fastprof.diff([io.BytesIO(data)], Named(data))
    assert (found.old, found.new) == ("<file>", "there")
    pages = [tmp_path / "by-path.html", tmp_path / "by-object.html"]
    rows = [fastprof.report(given, page).rows for given, page in zip((XDEBUG, io.BytesIO(data)), pages, strict=True)]
    assert rows[0] == rows[1]
    with pytest.raises(UsageError, match="a file object can be read only once"):
        fastprof.report(io.BytesIO(data), pages[0], source=[str(tmp_path)])


def test_pipes(tmp_path: Path) -> None:
    """Neither end can seek, and each transfers only part of the data at a time."""
    ends = os.pipe(), os.pipe()
    with (
        open(ends[0][0], "rb") as file,
        open(ends[1][1], "wb", buffering=0) as output,
        open(ends[1][0], "rb") as got,
    ):

        def feed() -> None:
            with open(ends[0][1], "wb") as writer:
                writer.write(POOL.read_bytes())

        feeder = threading.Thread(target=feed)
        feeder.start()
        found: list[bytes] = []
        taker = threading.Thread(target=lambda: found.append(got.read()))
        taker.start()
        fastprof.convert(file, output, to="callgrind")
        output.close()
        feeder.join()
        taker.join()
    assert found == [_by_paths(tmp_path, POOL, "callgrind")]


def test_written_from_where_it_is() -> None:
    output = io.BytesIO(b"head, tail")
    output.seek(5)
    fastprof.convert(io.BytesIO(b"events: Ir\nfn=f\n1 2\n"), output, to="folded")
    assert output.getvalue() == b"head,f 2\nl"


def test_several_and_merge(tmp_path: Path) -> None:
    dumps = [b"events: Ir\nfn=f\n1 %d\n" % n for n in (1, 2)]
    paths = [tmp_path / f"callgrind.out.{n}" for n in (1, 2)]
    for path, data in zip(paths, dumps, strict=True):
        path.write_bytes(data)
    for verb in (fastprof.convert, fastprof.merge):
        output = io.BytesIO()
        verb([io.BytesIO(dumps[0]), paths[1]], output, to="folded")
        assert output.getvalue() == b"f 3\n"
        with paths[0].open("rb") as first, paths[1].open("rb") as second:
            named = io.BytesIO()
            verb([second, first], named, to="callgrind")
    assert named.getvalue() == _merged(paths, tmp_path)
    output = io.BytesIO()
    log = fastprof.merge([io.BytesIO(b"junk"), Unseekable(dumps[0])], output, to="folded", keep_going=True)
    assert output.getvalue() == b"f 1\n"
    assert log.losses == {"skipped-inputs": 1}


def _merged(paths: list[Path], tmp_path: Path) -> bytes:
    fastprof.merge(paths, tmp_path / "sum.callgrind")
    return (tmp_path / "sum.callgrind").read_bytes()


def test_names_in_messages(tmp_path: Path) -> None:
    damaged = b"events: Ir\nfn=f\n1 2\nx\n"
    path = tmp_path / "callgrind.out.7"
    path.write_bytes(damaged)
    with path.open("rb") as by_path, open(os.open(path, os.O_RDONLY), "rb") as by_number:
        for file, name in (
            (io.BytesIO(damaged), "<file>"),
            (Named(damaged), "there"),
            (by_path, str(path)),
            (by_number, "<file>"),
        ):
            with pytest.raises(FormatError) as error:
                fastprof.convert(file, io.BytesIO(), to="folded")
            assert str(error.value).startswith(f"{name}: callgrind: line 4, byte 20: ")


class Full(Named):
    def write(self, data: Any) -> int:
        if len(data):
            raise OSError(28, "No space left on device")
        return 0


def test_what_cannot_be_written_is_an_error() -> None:
    with pytest.raises(FastprofError, match=r"^there: No space left on device$"):
        fastprof.convert(XDEBUG, Full(), to="callgrind")


class Keeps(Named):
    """Keeps its arguments, like a response or a queue; accepts `most` bytes at a time."""

    def __init__(self, most: int | None = None) -> None:
        super().__init__()
        self.kept: list[Any] = []
        self._most = most

    def write(self, data: Any) -> int:
        self.kept.append(data[: self._most])
        return len(self.kept[-1])


def _long(n: int) -> bytes:
    return b"events: Ir\n" + b"".join(b"fn=function%d\n%d %d\n" % (i, i + 1, i) for i in range(n))


@pytest.mark.parametrize("cores", [1, 2])
@pytest.mark.parametrize("most", [None, 1000])
@pytest.mark.parametrize("to", OF_ANY)
def test_what_keeps_its_argument_keeps_the_output(to: str, most: int | None, cores: int, tmp_path: Path) -> None:
    """Regression: it kept a view of freed memory."""
    path, keeps, plain = tmp_path / "long.callgrind", Keeps(most), io.BytesIO()
    path.write_bytes(ONLY[to].read_bytes() if to in ONLY else _long(12_000))
    fastprof.convert(path, keeps, to=to, cores=cores)
    fastprof.convert(path, plain, to=to)
    gc.collect()
    assert {type(data) for data in keeps.kept} == {bytes}
    assert b"".join(keeps.kept) == plain.getvalue() != b""


def test_few_bytes_at_a_time_are_not_copied_again_and_again() -> None:
    given: list[int] = []

    class Slow(Named):
        def write(self, data: Any) -> int:
            given.append(len(data))
            return min(len(data), 7)

    fastprof.convert(_long(10_000), Slow(), to="callgrind")
    large = [n for n in given if n > 14]
    assert 0 < len(large) < 10, large


@pytest.mark.parametrize("returned", [-1, 0, 1 << 40, "all"])
def test_a_write_that_returns_no_number_of_bytes(returned: Any) -> None:
    """Regression: -1 and 0 wrote the same bytes for ever."""

    class Says(Named):
        def write(self, data: Any) -> Any:
            return returned if len(data) else 0

    with pytest.raises(FastprofError, match=f"^there: write returned {returned!r}, expected 1 to "):
        fastprof.convert(XDEBUG, Says(), to="callgrind")


def test_a_file_object_needs_nothing_but_write() -> None:
    kept: list[bytes] = []
    file: Any = SimpleNamespace(write=lambda data: (kept.append(data), len(data))[1])
    fastprof.convert(b"events: Ir\nfn=f\n1 2\n", file, to="folded")
    assert b"".join(kept) == b"f 2\n"


def test_columns_outlive_more_columns() -> None:
    """A reused batch moves its values when a part has more columns than the parts before."""
    parts = [b"events: " + b" ".join(b"e%d" % i for i in range(n)) + b"\nfn=f\n1 %d\n" % n for n in (1, 300, 1000)]
    parts = [b"part: %d\n" % number + part for number, part in enumerate(parts, 1)]
    with fastprof.open(b"version: 1\n" + b"\n".join(parts)) as profile:
        columns = [batch.values(0) for batch in profile.batches(reuse=True)]
    noise = [b"\xff" * n for n in range(10_000, 20_000, 10)]  # in freed memory
    assert [column.tolist() for column in columns] == [[1], [300], [1000]]
    assert noise


def test_what_is_no_binary_file(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(XDEBUG.read_bytes())
    closed = io.BytesIO(b"")
    closed.close()
    files: list[IO[Any]] = [io.StringIO("events: Ir\n"), path.open(), tempfile.NamedTemporaryFile("r+"), closed]
    for file in files:
        with pytest.raises(UsageError, match="is not an open binary file to read"):
            fastprof.convert(file, io.BytesIO(), to="folded")
        with pytest.raises(UsageError, match="is not an open binary file to read"):
            fastprof.open(file)
        with pytest.raises(UsageError, match="is not an open binary file to write"):
            fastprof.convert(XDEBUG, file, to="folded")
    with (
        path.open("ab") as writing,
        pytest.raises(UsageError, match=r"x: is not an open binary file to read \(mode ab\)"),
    ):
        fastprof.convert(writing, io.BytesIO(), to="folded")
    with (
        path.open("rb") as reading,
        pytest.raises(UsageError, match=r"x: is not an open binary file to write \(mode rb\)"),
    ):
        fastprof.convert(XDEBUG, reading, to="folded")
    assert path.read_bytes() == XDEBUG.read_bytes()
    for file in files:
        file.close()


def test_refusals() -> None:
    file = io.BytesIO(XDEBUG.read_bytes())
    with pytest.raises(UsageError, match="<file>: a file object needs `to`"):
        fastprof.convert(XDEBUG, io.BytesIO())
    with pytest.raises(UsageError, match="<file>: split= writes several files"):
        fastprof.convert(POOL, io.BytesIO(), to="speedscope", split="thread")
    with pytest.raises(UsageError, match="<file>: a file object can be read only once"):
        fastprof.merge([file, file], io.BytesIO(), to="folded")
    with pytest.raises(UsageError, match="<file>: a file object cannot be both input and output"):
        fastprof.convert(file, file, to="folded")
    assert file.getvalue() == XDEBUG.read_bytes()
