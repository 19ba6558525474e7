"""OProfile sample files and sessions, made from their description."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

MAGIC = b"DAE\n"
MTIME = 1700000000


class Layout(NamedTuple):
    """A header as `struct` writes it: version, then the fields' format; `x` is padding or reserved."""

    version: int
    fields: str
    has_anon: bool = True


# event ... are the four words after the version; then cpu_speed, mtime, cg_to_is_kernel, and where they exist
# anon_start and cg_to_anon_start.
LAYOUTS = {
    "1.0": Layout(0x13, "IIIII4xdQI4xQQ"),
    "1.0-i386": Layout(0x13, "IIIIIdQIQQ"),
    "0.9.8": Layout(0x12, "IIIII4xdQI12xQQ8x"),
    "0.9.8-i386": Layout(0x12, "IIIIIdQI12xQQ4x"),
    "0.9.3": Layout(0x11, "IIIII4xdQI12xQQ8x"),
    "0.9.3-i386": Layout(0x11, "IIIIIdII12xQQ4x"),
    "0.9": Layout(0x10, "IIIII4xdQI4xQQ8x"),
    "0.9-i386": Layout(0x10, "IIIIIdIIQQ4x"),
    "0.7.1": Layout(0x10, "IIIII4xdQI20x", has_anon=False),
}


def sample_file(
    nodes: Iterable[tuple[int, int]],
    *,
    layout: str = "1.0",
    order: str = "<",
    event: int = 0x3C,
    unit_mask: int = 0,
    period: int = 100_000,
    is_kernel: int = 0,
    callee_is_kernel: int = 0,
    anon_start: int = 0,
    callee_anon_start: int = 0,
    mtime: int = MTIME,
    slots: int = 0,
    used: int | None = None,
    stale: bytes = b"\0",
) -> bytes:
    """The bytes of a sample file with these (key, count).

    `slots` and `used` are those of the descr; the default fits the nodes.  `stale` fills the free nodes.
    """
    nodes = list(nodes)
    n = 128
    while n < max(slots, len(nodes) + 1):
        n *= 2
    version, fields, has_anon = LAYOUTS[layout]
    values = [32, event, unit_mask, period, is_kernel, 2400.0, mtime, callee_is_kernel]
    values += [anon_start, callee_anon_start] if has_anon else []
    head = MAGIC + struct.pack(f"{order}I{fields}", version, *values)
    descr = struct.pack(f"{order}II24x", slots or n, len(nodes) + 1 if used is None else used)
    table = bytes(16) + b"".join(struct.pack(f"{order}QII", key, count, 0) for key, count in nodes)
    free = 16 * n - len(table)
    return head + descr + table + (stale * free)[:free] + bytes(4 * n)


def path_of(
    image: str,
    *,
    program: str = "",
    callee: str = "",
    event: str = "CPU_CLK_UNHALTED.100000.0",
    tgid: object = "all",
    tid: object = "all",
    cpu: object = "all",
    session: str = "current",
) -> str:
    """The path of a sample file in a session's directory; images in its notation: {root}/bin/x."""
    arcs = f"/{{cg}}/{callee}" if callee else ""
    return f"samples/{session}/{program or image}/{{dep}}/{image}{arcs}/{event}.{tgid}.{tid}.{cpu}"


def write_session(path: Path, files: Mapping[str, bytes]) -> Path:
    for name, data in files.items():
        file = path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    return path


def tar_of(files: Mapping[str, bytes], kind: int | None = None) -> bytes:
    """A tar of these files; `kind` is one of tarfile's formats."""
    import io
    import tarfile

    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT if kind is None else kind) as tar:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size, member.mtime = len(data), MTIME
            tar.addfile(member, io.BytesIO(data))
        end = tar.offset
    return out.getvalue()[:end] + bytes(1024)  # without the padding to a tape record
