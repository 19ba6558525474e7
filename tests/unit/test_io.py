"""Source and Sink: compression both ways, damage, atomic output, pipes, spooling."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import lz4.frame
import pytest
import zstandard

import fastprof
from fastprof import formats
from fastprof.core import newfile
from fastprof.core.errors import FastprofError, FormatError, UnrecognizedError, UsageError
from fastprof.core.log import Log
from fastprof.core.sink import Sink
from fastprof.core.source import Source
from fastprof.core.streams import compression_of_name
from fastprof.inputs.expand import expand
from tests.support.paths import CORPUS, REPO

if TYPE_CHECKING:
    from typing_extensions import Buffer

TEXT = b"".join(b"%d of many lines\n" % i for i in range(60_000))
NOISE = os.urandom(300_000)


def zst(data: bytes) -> bytes:
    return zstandard.ZstdCompressor(write_checksum=True).compress(data)


POOL = str(CORPUS / "xray/good/fdr5-pool-clang19.xray")
PACK: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": zst,
    ".lz4": lambda data: lz4.frame.compress(data, block_size=4, block_checksum=True),
}
UNPACK: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.decompress,
    ".bz2": bz2.decompress,
    ".xz": lzma.decompress,
    ".zst": lambda data: zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True).read(),
    ".lz4": lz4.frame.decompress,
}


def read_all(source: Source) -> bytes:
    out = b""
    with source:
        while not source.in_.eof:
            source.in_.pos = source.in_.n
            source.refill()
            assert source.in_.base + source.in_.n == len(out) + source.in_.n
            out += bytes(source._view[: source.in_.n])
    return out


class Trickle(io.RawIOBase):
    """A pipe: it cannot seek, and returns a few bytes at a time."""

    def __init__(self, data: bytes, step: int = 777) -> None:
        self._data, self._step = io.BytesIO(data), step

    def readable(self) -> bool:
        return True

    def readinto(self, into: memoryview) -> int:  # type: ignore[override]
        return self._data.readinto(memoryview(into)[: self._step])


# ---- reading --------------------------------------------------------------


@pytest.mark.parametrize("data", [b"", b"x", TEXT, NOISE], ids=["empty", "one", "text", "noise"])
@pytest.mark.parametrize("kind", ["", *PACK])
def test_reads_any_compression(kind: str, data: bytes, tmp_path: Path) -> None:
    packed = PACK[kind](data) if kind else data
    path = tmp_path / "meaningless"
    path.write_bytes(packed)
    assert read_all(Source(str(path))) == data
    assert read_all(Source(packed)) == data
    assert read_all(Source(Trickle(packed))) == data  # type: ignore[arg-type]
    assert Source(packed).compression == kind


@pytest.mark.parametrize("kind", PACK)
def test_reads_members_one_after_the_other(kind: str) -> None:
    pack = PACK[kind]
    assert read_all(Source(pack(TEXT) + pack(b"") + pack(NOISE))) == TEXT + NOISE


def test_reads_zstd_frames_of_every_shape() -> None:
    skippable = b"\x5f\x2a\x4d\x18" + (5).to_bytes(4, "little") + b"12345"
    unsized = zstandard.ZstdCompressor().compressobj()
    frames = [
        zst(b"tiny"),
        skippable,
        zstandard.ZstdCompressor(write_content_size=False).compress(NOISE),
        unsized.compress(TEXT) + unsized.flush(),
        zst(b"\0" * 1_000_000),  # runs
        zst(b""),
    ]
    assert read_all(Source(b"".join(frames))) == b"tiny" + NOISE + TEXT + b"\0" * 1_000_000


def test_peels_several_layers() -> None:
    assert read_all(Source(gzip.compress(zst(bz2.compress(TEXT))))) == TEXT


@pytest.mark.parametrize("data", [TEXT, NOISE], ids=["text", "noise"])
@pytest.mark.parametrize("kind", PACK)
def test_a_cut_stream_is_an_error_and_lenient_keeps_what_was_before(kind: str, data: bytes) -> None:
    packed = PACK[kind](data)
    for cut in (len(packed) - 1, len(packed) // 2, 40, 20):
        said = f"<bytes>: {kind[1:]}: the compressed data ends at byte {cut}, inside a stream; lenient=True reads"
        with pytest.raises(FastprofError, match=said):
            read_all(Source(packed[:cut]))
        log = Log()
        kept = read_all(Source(packed[:cut], lost=log.count))
        assert data.startswith(kept)
        assert log.losses == {"damaged-streams": 1}
    # complete except for the check at the end
    assert read_all(Source(PACK[kind](data)[:-1], lost=log.count)) == data


@pytest.mark.parametrize("kind", PACK)
def test_a_damaged_stream_is_an_error_and_lenient_goes_on_to_the_damage(kind: str) -> None:
    for data in (NOISE, TEXT):
        packed = bytearray(PACK[kind](data))
        for part in (2, 4, 6):
            packed[len(packed) * part // 8] ^= 0x55
            with pytest.raises(FastprofError, match=r"damage at or before byte \d+ of the compressed data: \w"):
                read_all(Source(bytes(packed)))
            log = Log()
            read_all(Source(bytes(packed), lost=log.count))
            assert log.losses.total() == 1


def test_damage_is_found_before_its_bytes_are_called_unknown() -> None:
    packed = bytearray(gzip.compress(NOISE[:3000]))
    packed[1500] ^= 0x55
    with pytest.raises(FormatError, match="Incorrect checksum") as caught:
        fastprof.open(bytes(packed))
    assert caught.value.offset is not None
    with pytest.raises(UnrecognizedError, match="unknown format"):
        fastprof.open(gzip.compress(NOISE[:3000]))


class Unseekable(io.BytesIO):
    def seekable(self) -> bool:
        return False


@pytest.mark.parametrize("piped", [False, True])
@pytest.mark.parametrize("data", [b"little", NOISE], ids=["little", "noise"])
@pytest.mark.parametrize("kind", PACK)
def test_bytes_behind_the_last_stream_are_an_error_with_their_place(kind: str, data: bytes, piped: bool) -> None:
    packed = PACK[kind](data)
    for whole in (packed, packed + packed):
        raw = whole + b"\x01garbage"

        def source(raw: bytes = raw, lost: Callable[..., None] | None = None) -> Source:
            return Source(Unseekable(raw) if piped else raw, "x", lost=lost)

        said = f"x: {kind[1:]}: at byte {len(whole)} of the compressed data: the next stream begins with 01 67"
        with pytest.raises(FastprofError, match=said):
            read_all(source())
        log = Log()
        assert read_all(source(lost=log.count)) == data * (len(whole) // len(packed))
        assert log.losses == {"damaged-streams": 1}
    # a partial head of another stream counts as a truncated stream
    for n in (1, 3):
        with pytest.raises(FastprofError, match=f"ends at byte {len(packed) + n}, inside a stream"):
            read_all(Source(packed + packed[:n]))


@pytest.mark.parametrize("kind", [kind for kind in PACK if kind != ".zst"])
def test_zeros_between_and_behind_streams_fill_up_blocks(kind: str) -> None:
    packed = PACK[kind](TEXT)
    for zeros in (b"\0", bytes(512), bytes(200_000)):
        assert read_all(Source(packed + zeros + packed + zeros)) == TEXT + TEXT


def test_a_whole_stream_is_no_loss() -> None:
    log = Log()
    for pack in PACK.values():
        assert read_all(Source(pack(NOISE), lost=log.count)) == NOISE
    assert not log.losses


def test_a_window_grows_for_a_long_record() -> None:
    source = Source(NOISE)
    while not source.in_.eof:
        source.refill()
    assert bytes(source._view[: source.in_.n]) == NOISE


def test_selects_ranges(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(TEXT)
    with Source(str(path)) as source:
        for offset, length in ((500_000, 100), (10, 300_000), (len(TEXT) - 5, 5), (len(TEXT), 0)):
            source.select(offset, length)
            out = b""
            while not source.in_.eof:
                source.in_.pos = source.in_.n
                source.refill()
                out += bytes(source._view[: source.in_.n])
            assert out == TEXT[offset : offset + length]


def test_a_pipe_goes_forward_only_until_spooled() -> None:
    source = Source(Trickle(TEXT))  # type: ignore[arg-type]
    source.select(1000, 50)
    source.refill()
    assert bytes(source._view[: source.in_.n]) == TEXT[1000:1050]
    with pytest.raises(FastprofError, match="cannot go back"):
        source.select(0)
    other = Source(Trickle(gzip.compress(TEXT)))  # type: ignore[arg-type]
    other.spool()
    assert (other.seekable, other.size) == (True, len(TEXT))
    assert other.read_at(70_000, 10) == TEXT[70_000:70_010]


def test_what_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(FastprofError, match=r"^/proc/self/mem: Invalid argument$"):  # which claims that it can seek
        Source("/proc/self/mem")
    with pytest.raises(FastprofError, match="No such file"):
        Source(str(tmp_path / "absent"))
    with pytest.raises(UnrecognizedError, match="directory"), Source(str(tmp_path)) as source:
        formats.detect(source)


def test_a_directory_shows_its_files_one_after_the_other(tmp_path: Path) -> None:
    for name, data in {"b": b"second", "a/x": b"first", "c": b"", "d": b"last"}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(data)
    (tmp_path / "loop").symlink_to(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with Source(str(tmp_path)) as source:
        assert source.folder is not None
        files = source.folder.files
        assert [(file.name, file.start, file.size) for file in files] == [
            ("a/x", 0, 5),
            ("b", 5, 6),
            ("c", 11, 0),
            ("d", 11, 4),
        ]
        assert source.read_at(3, 100) == b"stsecondlast"
        (tmp_path / "b").write_bytes(b"second and more")
        source.select(5, 6)
        source.refill()
        assert bytes(source._view[:6]) == b"second" and source.in_.n == 6
        (tmp_path / "d").unlink()
        with pytest.raises(FastprofError, match="d: No such file"):
            source.read_at(11, 4)


def test_expand(tmp_path: Path) -> None:
    """Files of a folder, then those of its subfolders; links do not lead out of it."""
    for name in ("b.10", "b.9", "a", ".hidden", "sub.10/c", "sub.9/e", "sub.9/.f", "sub.9/deep/d", ".git/x"):
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).write_bytes(b"x")
    log = Log()
    files = [str(tmp_path / name) for name in ("a", "b.9", "b.10", "sub.9/e", "sub.9/deep/d", "sub.10/c")]
    assert expand(["x", "-", str(tmp_path)], log.warn) == ["x", "-", *files]
    assert not log.warnings
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to(tmp_path)
    (tmp_path / "broken").symlink_to("nowhere")
    assert expand([str(tmp_path)], log.warn) == files
    assert log.warnings == [f"{tmp_path}: skipped, not regular files: broken, link"]
    with pytest.raises(FastprofError, match="empty: the directory has no files"):
        expand([str(tmp_path / "empty")], log.warn)
    errors: list[FastprofError] = []
    assert expand([str(tmp_path / "empty"), "x"], log.warn, errors.append) == ["x"] and len(errors) == 1


@pytest.mark.parametrize("thread", ["out-01", "out.3-02"])
def test_expand_passes_over_the_empty_file_that_callgrind_leaves_beside_threads(thread: str, tmp_path: Path) -> None:
    (tmp_path / "out").write_bytes(b"")
    (tmp_path / thread).write_bytes(b"x")
    for inputs in ([tmp_path], [tmp_path / "out", tmp_path / thread]):
        assert expand(map(str, inputs), print) == [str(tmp_path / thread)]
    (tmp_path / "out").write_bytes(b"x")
    assert expand([str(tmp_path)], print) == [str(tmp_path / "out"), str(tmp_path / thread)]


@pytest.mark.parametrize("other", ["out.1", "outer-01", "out-", "out-x"])
def test_expand_reports_any_other_empty_file(other: str, tmp_path: Path) -> None:
    """It may be left by a failed copy.  One that is named itself is read and refused."""
    (tmp_path / "out").write_bytes(b"")
    (tmp_path / other).write_bytes(b"x")
    log = Log()
    assert expand([str(tmp_path)], log.warn) == [str(tmp_path / other)]
    assert log.warnings == [f"{tmp_path}: skipped 1 empty file"]
    named = [str(tmp_path / "out"), str(tmp_path / other)]
    assert expand(named, log.warn) == named and len(log.warnings) == 1


@pytest.mark.parametrize("lenient", [False, True])
def test_a_file_that_became_shorter_is_an_error(lenient: bool, tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(TEXT)
    log = Log()
    source = Source(str(path), lost=log.count if lenient else None)
    os.truncate(path, 300_000)
    if lenient:
        assert len(read_all(source)) == 300_000
        assert log.losses == {"shortened-files": 1}
    else:
        with pytest.raises(FastprofError, match=f"shrank while it was read: 300000 of {len(TEXT)} bytes"):
            read_all(source)


def test_nothing_for_now_is_not_the_end() -> None:
    ours, theirs = os.pipe()
    os.set_blocking(ours, False)
    os.write(theirs, b"the beginning")
    with (
        open(theirs, "wb"),
        open(ours, "rb", buffering=0) as stream,
        pytest.raises(FastprofError, match="has no data now"),
    ):
        Source(stream)


@pytest.mark.parametrize("kind", ["", ".gz"])
def test_no_room_for_now_is_not_written(kind: str) -> None:
    ours, theirs = os.pipe()
    os.set_blocking(theirs, False)
    with open(ours, "rb"), open(theirs, "wb", buffering=0) as stream:
        sink = Sink(stream)
        if kind:
            sink.gzip()
        with pytest.raises(FastprofError, match="cannot take data now"):
            for _ in range(100):
                sink.write(NOISE)


# ---- writing --------------------------------------------------------------


def write(path: Path, data: bytes, *, commit: bool = True) -> None:
    with Sink(path) as sink:
        for at in range(0, len(data), 100_000):
            sink.write(data[at : at + 100_000])
        if commit:
            sink.commit()


@pytest.mark.parametrize("kind", ["", *PACK])
def test_writes_any_compression(kind: str, tmp_path: Path) -> None:
    assert compression_of_name(f"a.b{kind}") == kind
    path = tmp_path / f"out{kind}"
    write(path, TEXT)
    assert (UNPACK[kind](path.read_bytes()) if kind else path.read_bytes()) == TEXT
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("kind", ["", *PACK])
def test_nothing_is_left_without_commit(
    kind: str, named: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if named:  # as on file systems where files need a name
        monkeypatch.setattr(newfile, "_open_nameless", lambda *_: None)
    path = tmp_path / f"out{kind}"
    write(path, TEXT, commit=False)
    assert list(tmp_path.iterdir()) == []
    path.write_bytes(b"old")
    with pytest.raises(RuntimeError), Sink(path) as sink:
        sink.write(TEXT)
        raise RuntimeError
    assert path.read_bytes() == b"old"
    assert len(list(tmp_path.iterdir())) == 1
    write(path, TEXT)
    assert path.read_bytes() != b"old"
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("named", [False, True])
def test_a_name_may_be_as_long_as_the_system_allows(
    named: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The temporary name of a replaced file contained its name, and more."""
    if named:
        monkeypatch.setattr(newfile, "_open_nameless", lambda *_: None)
    path = tmp_path / ("n" * os.pathconf(tmp_path, "PC_NAME_MAX"))
    for _ in range(2):
        write(path, TEXT)
        assert path.read_bytes() == TEXT
        assert [p.name for p in tmp_path.iterdir()] == [path.name]


def test_an_interrupt_while_a_named_file_is_opened_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*given: Any) -> int:
        os.close(opened(*given))
        raise KeyboardInterrupt

    opened = os.open
    monkeypatch.setattr(newfile, "_open_nameless", lambda *_: None)
    monkeypatch.setattr(os, "open", interrupted)
    with pytest.raises(KeyboardInterrupt):
        Sink(tmp_path / "out")
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize("kind", ["", ".gz", ".zst", ".xz", ".bz2", ".lz4"])
@pytest.mark.parametrize("limit", [0, 100])
def test_a_full_disk_is_named_and_leaves_nothing(kind: str, limit: int, tmp_path: Path) -> None:
    """A limit of file sizes acts like a full disk; some compressors write as soon as they are created."""
    out = tmp_path / f"out.callgrind{kind}"
    code = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit})); "
    code += f"from fastprof.cli import main; raise SystemExit(main({['convert', POOL, '-o', str(out)]!r}))"
    done = subprocess.run([sys.executable, "-c", code], cwd=REPO, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (1, f"fastprof: {out}: File too large\n")
    assert [*tmp_path.iterdir()] == []


def test_even_a_killed_process_leaves_nothing(tmp_path: Path) -> None:
    """If a file needs no name."""
    try:
        os.close(os.open(tmp_path, os.O_WRONLY | os.O_TMPFILE))
    except (AttributeError, OSError):
        pytest.skip("no files without a name here: needs Linux and a file system such as ext4, xfs, btrfs or tmpfs")
    code = f"from fastprof.core.sink import Sink; s = Sink({str(tmp_path / 'out')!r}); s.write(b'x'); input('written ')"
    process = subprocess.Popen(
        [sys.executable, "-c", code], cwd=REPO, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert process.stdin and process.stdout
    with process.stdin, process.stdout:
        assert process.stdout.read(7) == b"written"
        process.kill()
        process.wait(60)
    assert [*tmp_path.iterdir()] == []


def test_a_new_file_has_no_other_name_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kill at the wrong moment would leave it behind.  A replacement needs one."""
    names: list[str] = []
    link = newfile._link
    monkeypatch.setattr(newfile, "_link", lambda fd, name: (names.append(os.path.basename(name)), link(fd, name)))
    for data in (b"new", b"replaced"):
        with Sink(tmp_path / "out") as sink:
            sink.write(data)
            sink.commit()
        assert (tmp_path / "out").read_bytes() == data
    if names:  # Linux, and a file system that supports unnamed files
        assert names[:2] == ["out", "out"] and names[2].startswith(".fastprof-")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("kind", ["", ".gz", ".zst", ".xz", ".bz2", ".lz4"])
def test_output_bytes_are_those_of_the_file(kind: str, tmp_path: Path) -> None:
    path = tmp_path / f"out{kind}"
    with Sink(path) as sink:
        for _ in range(100):
            sink.write(b"the same again " * 1000)
        sink.commit()
    assert sink.output_bytes == path.stat().st_size
    assert sink.written == 1_500_000


@pytest.mark.parametrize("kind", [".gz", ".zst", ".xz", ".bz2", ".lz4"])
def test_a_file_that_takes_a_little_at_a_time_loses_nothing(kind: str) -> None:
    class Narrow(io.BytesIO):
        def write(self, data: Buffer) -> int:
            return super().write(memoryview(data)[:100])

    data, narrow = os.urandom(100_000), Narrow()
    sink = Sink(narrow)
    sink._compress(kind)
    sink.write(data)
    sink.commit()
    with Source(narrow.getvalue()) as source:
        source.spool()
        assert source.read_at(0, len(data) + 1) == data
    assert sink.output_bytes == len(narrow.getvalue())


def test_permissions(tmp_path: Path) -> None:
    path = tmp_path / "out"
    before = os.umask(0o027)
    try:
        write(path, b"x")
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
    finally:
        os.umask(before)
    path.chmod(0o604)
    write(path, b"y")
    assert stat.S_IMODE(path.stat().st_mode) == 0o604


def test_a_symbolic_link_to_itself_is_an_error(tmp_path: Path) -> None:
    """Regression: the output replaced it."""
    link = tmp_path / "link"
    link.symlink_to("link")
    with pytest.raises(FastprofError, match=f"^{link}: Too many levels of symbolic links$"):
        write(link, TEXT)
    assert link.is_symlink()


def test_the_folder_above_a_linked_one_is_that_of_its_target(tmp_path: Path) -> None:
    (tmp_path / "there/inner").mkdir(parents=True)
    (tmp_path / "link").symlink_to("there/inner")
    write(Path(f"{tmp_path}/link/../out"), b"new")
    assert (tmp_path / "there/out").read_bytes() == b"new" and not (tmp_path / "out").exists()


def test_a_symbolic_link_stays_one(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    target, link = tmp_path / "there" / "target", tmp_path / "link"
    target.write_bytes(b"old")
    link.symlink_to(target)
    write(link, b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"
    assert [p.name for p in (tmp_path / "there").iterdir()] == ["target"]


def test_a_named_pipe_is_written_to(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append(path.read_bytes()))
    reader.start()
    write(path, TEXT)
    # the writing end is closed when the sink is deleted
    reader.join(10)
    assert got == [TEXT]
    assert stat.S_ISFIFO(path.stat().st_mode)


def test_devices_and_impossible_outputs(tmp_path: Path) -> None:
    write(Path("/dev/null"), TEXT)
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)
    with pytest.raises(FastprofError, match="is a directory"):
        Sink(tmp_path)
    for folder in (tmp_path, tmp_path / "absent"):
        with pytest.raises(UsageError, match="/: names a folder, not a file"):
            Sink(f"{folder}/")
    assert not (tmp_path / "absent").exists()
    with pytest.raises(FastprofError, match="No such file"):
        Sink(tmp_path / "absent" / "out")
    with pytest.raises(FastprofError, match="No space left"):
        write(Path("/dev/full"), TEXT)
