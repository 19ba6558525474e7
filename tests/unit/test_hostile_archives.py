"""Archives built to take time or memory that their size does not justify.

Unbounded work took minutes or gigabytes, so limits of processor time and memory are far from both.
"""

from __future__ import annotations

import io
import random
import struct
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import pytest
import zstandard

from fastprof.cli.text import Screen, cut, print_table
from fastprof.core._c import ffi, lib
from fastprof.core.errors import FastprofError
from fastprof.core.log import Log
from fastprof.core.model import Batch, Model, Part, ValueType
from fastprof.core.options import Options
from fastprof.core.sink import Sink
from fastprof.formats.archive import _cbor as cbor
from fastprof.formats.archive.dictionary import DICTIONARY
from fastprof.formats.archive.sections import (
    BASED,
    BUNDLE,
    DIFFERENCE,
    END,
    HEADER,
    INDEX,
    MEMBER,
    METADATA,
    PARTS,
    ROWS,
    SYNC,
    TABLES,
    WITHOUT_MAGIC,
    ZSTD,
    Section,
    file_header,
    trailer,
    with_header,
)
from fastprof.formats.archive.write import ArchiveWriter
from fastprof.store import listing
from fastprof.verbs.convert import convert
from fastprof.verbs.info import info
from tests.reference.archive_bytes import varint
from tests.support.paths import REPO
from tests.unit.test_archive import read_dump

NO_TABLES = b"\x01\x00" * 9  # each begins after id 0 and has no entries
LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_CPU, (20, 20))
resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
from fastprof.cli import main
sys.exit(main(sys.argv[1:]))
"""


def section(type_: int, member: int, raw: bytes, flags: int = 0, stored: bytes | None = None) -> bytes:
    stored = raw if stored is None else stored
    return with_header(Section(0, type_, flags, member, len(stored), len(raw), 0), member, stored)


def zstd(raw: bytes, dictionary: bytes = b"") -> bytes:
    how = zstandard.ZstdCompressionDict(dictionary, dict_type=zstandard.DICT_TYPE_RAWCONTENT) if dictionary else None
    packed: bytes = zstandard.ZstdCompressor(dict_data=how, write_content_size=False).compress(raw)
    return packed


def compressed(type_: int, member: int, raw: bytes) -> bytes:
    if type_ in (TABLES, ROWS):
        return section(type_, member, raw, ZSTD, zstd(raw))
    return section(type_, member, raw, ZSTD | METADATA, zstd(raw, DICTIONARY))


class Store:
    """An archive, written section by section."""

    def __init__(self) -> None:
        self.data = bytearray(file_header())
        self.entries: list[tuple[str, int, bytes]] = []

    def add(self, *between: bytes, chunks: list[Any] | None = None, name: str = "") -> None:
        """A member of stacks with these sections after its head."""
        n = len(self.entries)
        head = section(MEMBER, n, cbor.dumps({"name": name or f"n{n}", "view": "stacks"}))
        end = section(END, n, cbor.dumps({"kinds": [], "counts": [0] * 9}))
        sections = [head, *between, end]
        types, sizes = bytes(one[2] for one in sections), [len(one) for one in sections]
        entry = ["stacks", len(self.data), types, sizes, chunks or [], {"long": True}]
        self.entries.append((name or f"n{n}", n, cbor.dumps(entry)))
        self.data += b"".join(sections)

    def add_bundles(self, *bundles: bytes) -> None:
        """A member that consists of these."""
        chunks = [[1, [0], [], []]] * len(bundles)
        entry = ["stacks", len(self.data), bytes([BUNDLE] * len(bundles)), [*map(len, bundles)], chunks, {"long": True}]
        self.entries.append((f"n{len(self.entries)}", len(self.entries), cbor.dumps(entry)))
        self.data += b"".join(bundles)

    def written(self, path: Path) -> Path:
        names, numbers, entries = (list(column) for column in zip(*sorted(self.entries), strict=True))
        return self.with_index(path, [len(names), 0, [0, names, numbers, entries]])

    def with_index(self, path: Path, plain: Any) -> Path:
        index = section(INDEX, len(self.entries), cbor.dumps(plain))
        path.write_bytes(bytes(self.data) + index + trailer(len(self.data)))
        return path


def limited(*arguments: object) -> str:
    """Run the command line.  Returns its standard error."""
    command = [sys.executable, "-c", LIMITED, *map(str, arguments)]
    done = subprocess.run(command, cwd=REPO, capture_output=True, text=True)
    assert done.returncode in (0, 1), (done.returncode, done.stderr[-2000:])
    return done.stderr


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """2,500 profiles: one step per pair takes minutes."""
    store = Store()
    for n in range(2500):
        store.add(section(PARTS, n, cbor.dumps([[0, {}]])), section(TABLES, n, NO_TABLES))
    return store.written(tmp_path_factory.mktemp("many") / "many.fpa")


def test_profiles_are_found_by_their_names(many: Path, tmp_path: Path) -> None:
    """Each name was matched as a pattern against all names: 20,000 profiles took hours."""
    assert "no errors" in limited("archive", "verify", many)
    limited("archive", "extract", many, "*", "-o", f"{tmp_path}/", "--to", "folded")
    assert len([*tmp_path.iterdir()]) == 2500


def test_sections_are_of_one_profile(tmp_path: Path) -> None:
    """A section that many profiles claimed was read for each."""
    store = Store()
    store.add(section(PARTS, 0, cbor.dumps([[0, {"comments": [b"x"] * 100_000}]])))
    entry = store.entries[0][2]
    store.entries += [(f"n{n}", n, entry) for n in range(1, 5000)]
    path = store.written(tmp_path / "a.fpa")
    with pytest.raises(FastprofError, match=r"section of profile number 0, expected 4998"):
        info(f"{path}:n4998")
    with pytest.raises(FastprofError, match=r"section of profile number 0, expected 1"):
        listing.members(str(path))
    store.entries = [(f"n{n}", 0, entry) for n in range(2)]
    with pytest.raises(FastprofError, match=r"index: 'n1' has the number 0 of another"):
        info(str(store.written(path)))


def test_keys_of_maps_that_meet(tmp_path: Path) -> None:
    """Tuples of numbers whose hashes in Python are equal."""
    first, second, begin, mask = 11400714785074694791, 14029467366897019727, 2870177450012600261, (1 << 64) - 1
    keys: list[tuple[int, int]] = []
    for a in range(200_000):
        sum_ = begin + a * second & mask
        b = (12345 - (sum_ << 31 | sum_ >> 33) * first) * pow(second, -1, 1 << 64) & mask
        if b < 1 << 60:
            keys.append((a, b))
    assert len({hash(key) for key in keys}) == 1
    store = Store()
    entry = b"".join(b"\xd9\xec\x54" + cbor.dumps([*key]) + b"\0" for key in keys)
    store.add(section(PARTS, 0, b"\xba" + struct.pack(">I", len(keys)) + entry))
    assert "a key is (" in limited("convert", store.written(tmp_path / "a.fpa"), "-o", tmp_path / "a.folded")
    with pytest.raises(cbor.CborError, match=r"a key is \(1, 2\), expected a text, a byte string or a whole number"):
        cbor.dumps({(1, 2): 3})


def test_empty_lists_do_not_take_gigabytes(tmp_path: Path) -> None:
    """60 MB of them are 240 kB of zstandard, and took 4.3 GB of memory."""
    n = 60_000_000
    noise = random.Random(1).randbytes(n // 250)  # keeps the expansion below the limit that would refuse it
    store = Store()
    store.add(compressed(PARTS, 0, b"\x9a" + struct.pack(">I", n + 1) + b"\x80" * n + cbor.dumps(noise)))
    path = store.written(tmp_path / "a.fpa")
    assert "more memory than the size of the section" in limited("convert", path, "-o", tmp_path / "a.folded")
    with pytest.raises(cbor.CborError, match="more memory than the size of the section justifies"):
        cbor.loads(cbor.dumps([[]] * 1000), 64 * 1000)
    assert cbor.loads(cbor.dumps([[]] * 1000), 80 * 1000) == [[]] * 1000


def test_a_base_is_decompressed_once_for_a_profile(tmp_path: Path) -> None:
    """100 sections of 40 bytes, each stored against one of 200 MiB, took 20 s."""
    base = compressed(TABLES, 9, bytes(100 << 20))
    based = struct.pack("<Q", len(file_header())) + zstd(NO_TABLES)
    store = Store()
    store.data += base
    store.add(section(PARTS, 0, cbor.dumps([[0, {}]])), *[section(TABLES, 0, NO_TABLES, ZSTD | BASED, based)] * 2000)
    path = store.written(tmp_path / "a.fpa")
    assert "refers to the same base as another" in limited("convert", path, "-o", tmp_path / "a.folded")


def bundle(member: int, rows_base: int, *inner: tuple[int, int, bytes]) -> bytes:
    """A bundle of these sections: type, flags, payload."""
    body = struct.pack("<QQ", 0, rows_base)
    body += b"".join(bytes((type_, flags)) + varint(len(raw)) + raw for type_, flags, raw in inner)
    return section(BUNDLE, member, body, ZSTD | METADATA | WITHOUT_MAGIC, zstd(body, DICTIONARY)[4:])


def test_small_bundles_do_not_take_gigabytes(tmp_path: Path) -> None:
    """5 million sections in 70 kB took minutes, lists of 240 kB more than 2 GiB."""
    noise = random.Random(1).randbytes(1 << 18)
    lists = 1_000_000
    end = (END, 0, cbor.dumps({"kinds": [], "counts": [0] * 9}))
    made = {
        "bytes, more than it can expand to": [(MEMBER, 0, noise), *[(MEMBER, 0, b"")] * 5_000_000],
        "a bundle has more than 64 sections": [(MEMBER, 0, b"")] * 65,
        "more memory than the size of the section": [(PARTS, 0, b"\x9a" + struct.pack(">I", lists) + b"\x80" * lists)],
    }
    for what, inner in made.items():
        store = Store()
        store.add_bundles(bundle(0, 0, *inner, end))
        path = store.written(tmp_path / "a.fpa")
        assert path.stat().st_size < 300_000
        assert what in limited("info", path), what


def test_a_profile_has_one_bundle(tmp_path: Path) -> None:
    """Each of 200 bundles referred to the same base, which took a second each if that had 200 MiB."""
    store = Store()
    base = len(store.data)
    store.data += compressed(ROWS, 9, bytes(1 << 20))
    head = (MEMBER, 0, cbor.dumps({"name": "x", "view": "stacks"}))
    store.add_bundles(*[bundle(0, base, head, (TABLES, 0, NO_TABLES), (ROWS, DIFFERENCE, b"\2\0\0"))] * 200)
    path = store.written(tmp_path / "a.fpa")
    assert "other sections in addition to a bundle" in limited("info", path)
    _, log = read_dump(path.read_bytes(), member="x", lenient=True)  # without the index
    assert sum("refers to the same base as another" in str(warning) for warning in log.warnings) == 199
    assert log.losses["archive-chunks"] == 200


def test_rows_of_graphs_are_paired_in_few_streams() -> None:
    """Each stream without numbers took time for all rows: 131,000 of them, a few bytes in the file, half an hour."""
    n = 1000

    def chunk(*streams: bytes) -> bytes:
        return b"\3\0" + b"".join(map(varint, [len(streams), *map(len, streams)])) + b"".join(streams)

    for more, status in (113, 0), (114, lib.FP_E_MALFORMED):
        base = chunk(b"\4" * n, *[b""] * (14 + more))
        difference = chunk(b"\2" + varint(n) + bytes(n // 8 + n), *[b"\0"] * 14, *[b"\2\1"] * more)
        out = ffi.new("struct fp_buf *")
        known = ffi.new("uint32_t[]", [0, 0])
        assert lib.fp_archive_undiff(base, len(base), difference, len(difference), known, 2, out) == status
        assert status or ffi.buffer(out.p, out.n)[:] == base
        lib.fp_buf_free(out)


def runs(parts: list[int]) -> bytes:
    """A chunk of stacks with parts that have no rows."""
    return bytes([2, len(parts)]) + b"".join(bytes([part, 0, 0, 0]) for part in parts) + bytes([4, 0, 0, 0, 0])


def test_a_chunk_has_a_part_without_rows_once(tmp_path: Path) -> None:
    """2 kB contained 16 million of them."""
    for parts, fits in ([0, 1], True), ([0, 1, 0], False):
        store = Store()
        two = section(PARTS, 0, cbor.dumps([[n, {"value_types": [ValueType("Ir")]}] for n in range(2)]))
        store.add(two, section(TABLES, 0, NO_TABLES), section(ROWS, 0, runs(parts)), chunks=[[0, [0, 1], [], []]])
        path = store.written(tmp_path / "a.fpa")
        if fits:
            convert([str(path)], str(tmp_path / "a.folded"))
        else:
            with pytest.raises(FastprofError, match="run of rows at byte 10 of the payload"):
                convert([str(path)], str(tmp_path / "a.folded"))


def test_empty_batches_of_parts_by_turns_are_written_once(tmp_path: Path) -> None:
    model, out = Model(), io.BytesIO()
    for _ in range(2):
        model.add_part(Part([ValueType("Ir")]))
    writer = ArchiveWriter(model, Sink(out), Options(), Log())
    batch = Batch("stacks", 8)
    for n in range(100):
        batch.c.part = n % 2
        writer.put(batch)
    writer.end()
    writer.drain()
    path = tmp_path / "a.fpa"
    path.write_bytes(out.getvalue())
    convert([str(path)], str(tmp_path / "a.folded"))


def test_headers_of_sections_that_the_file_has_no_room_for(tmp_path: Path) -> None:
    """After each, a megabyte was read to find the next one."""
    head = HEADER.pack(SYNC, ROWS, 0, 1, (1 << 31) - 1, 0, 0)
    header = head + struct.pack("<I", zlib.crc32(head))
    path = tmp_path / "a.fpa"
    path.write_bytes(file_header() + header * 300_000)
    assert "the file ends inside a chunk of rows" in limited("info", path)
    assert "no profile in this archive" in limited("info", "--lenient", path)


def test_a_long_name_does_not_make_all_rows_long(capsys: pytest.CaptureFixture[str]) -> None:
    name = "x" * 1_000_000
    print_table([(name, 1), *[("short", 2)] * 5000])
    assert len(capsys.readouterr().out) < 10_000_000
    print_table([(name, 1), ("short", 2)], narrow=(0,), screen=Screen(80))
    assert max(map(len, capsys.readouterr().out.splitlines())) == 80


def test_names_are_cut_in_linear_time() -> None:
    assert cut("a" * 1_000_000 + "b" * 1_000_000, 9) == "aaa...bbb"
    assert cut("\u4e00" * 1_000_000, 10) == "\u4e00\u4e00...\u4e00"
    assert cut("e\u0301" * 1_000_000, 9) == "e\u0301" * 3 + "..." + "\u0301" + "e\u0301" * 3
