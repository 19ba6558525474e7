"""Small inputs that claim large sizes: memory and time depend on the data read and written."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path
from typing import Any

import pytest

import fastprof
from fastprof.chrome.threads import ThreadNames
from fastprof.core import source
from fastprof.core.errors import FastprofError, FormatError
from fastprof.core.model import Model, Part
from tests.support.peak import peak

DEEP = 15_000
EVENTED = (
    '{{"$schema":"https://www.speedscope.app/file-format-schema.json","shared":{{"frames":[{{"name":"{name}"}}]}},'
    '"profiles":[{{"type":"evented","name":"p","unit":"none","startValue":0,"endValue":1,"events":[{events}]}}]}}'
)


@pytest.mark.parametrize("suffix", [".pb", ".folded"])
def test_rows_are_written_one_by_one_if_they_are_large(suffix: str, tmp_path: Path) -> None:
    """Each of 15,000 stacks has one frame more: a batch took 60 MB of pprof."""
    path = tmp_path / "deep.speedscope.json"
    events = ",".join(f'{{"type":"O","frame":0,"at":{i}}}' for i in range(DEEP))
    path.write_text(EVENTED.format(name="a", events=events))
    out = tmp_path / f"out{suffix}"
    assert peak("convert", "-q", "--max-depth", str(DEEP), str(path), "-o", str(out)) < 48 << 20
    assert out.stat().st_size > 100_000_000


def test_long_names_that_each_row_repeats(tmp_path: Path) -> None:
    path, out = tmp_path / "long.speedscope.json", tmp_path / "out.trace.json"
    events = ",".join(f'{{"type":"{"OC"[i % 2]}","frame":0,"at":{i}}}' for i in range(400))
    path.write_text(EVENTED.format(name="a" * 500_000, events=events))
    assert peak("convert", "-q", str(path), "-o", str(out)) < 48 << 20
    assert out.stat().st_size > 100_000_000


@pytest.mark.parametrize("to", ["pprof", "folded"])
def test_stacks_drained_in_the_middle_of_a_batch_are_whole(to: str, tmp_path: Path) -> None:
    lines = [f"{'main;' * 60}f{i} {i + 1}" for i in range(9_000)]
    (tmp_path / "in").write_text("\n".join(lines) + "\n")
    fastprof.convert(tmp_path / "in", tmp_path / "out", to=to, from_="folded")
    fastprof.convert(tmp_path / "out", tmp_path / "again", to="folded", from_=to)
    assert sorted((tmp_path / "again").read_text().splitlines()) == sorted(lines)


@pytest.mark.parametrize("to", ["trace-event", "perfetto"])
def test_calls_drained_in_the_middle_of_a_batch_are_whole(to: str, tmp_path: Path) -> None:
    events = ",".join(f'{{"type":"{t}","frame":0,"at":{i}}}' for i in range(9_000) for t in "OC")
    (tmp_path / "in").write_text(EVENTED.format(name="long" * 30, events=events))
    log = fastprof.convert(tmp_path / "in", tmp_path / "out", to=to, from_="speedscope")
    data = (tmp_path / "out").read_bytes()
    if to == "perfetto":
        assert log.rows["calls_written"] == 9_000 and data.count(b"long" * 30) == 1
    else:
        assert data.count(b'"ph":"B"') == data.count(b'"ph":"E"') == 9_000
        assert len(json.loads(data)["traceEvents"]) > 18_000


def test_a_line_is_not_read_to_any_length(tmp_path: Path) -> None:
    """0.2 MB of gzip are a line of 200 MB: the window grew with it until the system killed the process."""
    path = tmp_path / "blanks.callgrind.gz"
    head = b"version: 1\nevents: Ir\nfn=f\n1 1\n#"
    path.write_bytes(gzip.compress(head + b" " * (8 << 20) + b"\n"))
    assert fastprof.info(path).facts["records"] == 1
    path.write_bytes(gzip.compress(head + b" " * (65 << 20) + b"\n"))
    with pytest.raises(FastprofError, match=r"gz: at byte \d+: a line or record is longer than the limit of 64 MiB"):
        fastprof.convert(path, tmp_path / "out.pb")
    assert [*tmp_path.iterdir()] == [path]


LONG = "n" * (1 << 20)
NAMED = {  # a profile that contains a name
    "folded": "main 1\nmain;@ 1\n",
    "callgrind": "events: Ir\nfn=main\n1 1\nfn=@\n1 1\n",
    "trace-event": '{"traceEvents":[{"ph":"X","name":"@","pid":1,"tid":1,"ts":1,"dur":1}]}',
    "speedscope": (
        '{"$schema":"https://www.speedscope.app/file-format-schema.json","shared":{"frames":[{"name":"@"}]},'
        '"profiles":[{"type":"sampled","name":"p","unit":"none","startValue":0,"endValue":1,"samples":[[0]],'
        '"weights":[1]}]}'
    ),
}


@pytest.mark.parametrize("format_", NAMED)
def test_names_have_a_bound(format_: str, tmp_path: Path) -> None:
    """0.4 MB of gzip are a name of 400 MB, which took 2 GB."""
    text = NAMED[format_]
    out = tmp_path / "out.folded"
    longest, longer = (text.replace("@", name).encode() for name in (LONG, LONG + "m"))
    fastprof.convert(longest, out, from_=format_, nanoseconds=True)
    assert LONG.encode() in out.read_bytes()
    with pytest.raises(FormatError, match=f"at byte {text.index('@')}: a name is longer than the limit of 1 MiB"):
        fastprof.convert(longer, out, from_=format_)
    log = fastprof.convert(longer, out, from_=format_, lenient=True, nanoseconds=True)
    assert log.losses.entries() == [{"code": "cut-names", "text": "names truncated to 1 MiB", "count": 1}]
    assert LONG.encode() in out.read_bytes() and b"m" not in out.read_bytes().replace(b"main", b"")


def test_a_line_may_be_longer_than_a_name(tmp_path: Path) -> None:
    deep = ";".join(f"function_{k}" for k in range(200_000))
    fastprof.convert(f"{deep} 1\n".encode(), tmp_path / "out.folded", from_="folded", max_depth=200_000)
    assert (tmp_path / "out.folded").stat().st_size == len(deep) + 3 > 2 << 20


def test_names_of_many_threads_are_not_listed_again_for_each(monkeypatch: pytest.MonkeyPatch) -> None:
    listed: list[int] = []

    class Watched(dict[Any, Any]):
        def __setitem__(self, key: Any, value: Any) -> None:
            listed.append(len(value))
            super().__setitem__(key, value)

    names, part = ThreadNames(Model()), Part()
    part.extra = Watched()
    for k in range(2_000):
        names._of(0).processes[k] = b"p"
        names._n_new += 1
        names.add_names([[part]])
    names.add_names([[part]], at_end=True)
    assert len(part.extra["process_names"]) == 2_000
    assert sum(listed) < 20 * 2_000


class Pieces(io.RawIOBase):
    """A file object that returns 1,000 bytes at a time, like some pipes and decompressors."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def readable(self) -> bool:
        return True

    def readinto(self, into: Any) -> int:
        piece = self._data[self._at : self._at + min(1_000, len(into))]
        into[: len(piece)] = piece
        self._at += len(piece)
        return len(piece)


def test_a_long_line_is_not_looked_at_again_for_each_piece_of_it() -> None:
    """A line of 200 MB took 24 s, because decoders scanned all of it for each further 256 KiB."""
    with source.Source(Pieces(bytes(8 << 20))) as long:
        looked_at = 0
        while not long.in_.eof:
            long.refill()
            if long.in_.n > source.WINDOW:
                looked_at += long.in_.n
    assert looked_at < 4 * (8 << 20)
