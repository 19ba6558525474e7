"""OProfile sessions built to take time or memory that their size does not justify."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import fastprof
from fastprof.core.errors import FastprofError
from tests.support.oprofile import path_of, sample_file, tar_of, write_session
from tests.support.paths import REPO

LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_CPU, (20, 20))
resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
import fastprof
fastprof.convert(sys.argv[1], sys.argv[1] + ".callgrind", from_="oprofile")
"""
ONE = sample_file([(16, 1)])


def limited(path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", LIMITED, str(path)], cwd=REPO, capture_output=True, text=True)
    assert done.returncode == 0, (done.returncode, done.stderr[-2000:])


def images(n: int) -> dict[str, bytes]:
    """Images, and as many files that may be one of them: each image was searched for in all files."""
    files = {path_of(f"{{root}}/bin/x{i}"): ONE for i in range(n)}
    return files | {f"other{i}/x": b"" for i in range(n)}


def modules(n: int) -> dict[str, bytes]:
    """The same for the kernel's modules, whose files all have the same name."""
    files = {path_of(f"{{kern}}/{i}/x"): ONE for i in range(n)}
    return files | {f"other{i}/x.ko": b"" for i in range(n)}


@pytest.mark.parametrize("make", [images, modules])
def test_images_are_found_by_their_names(make: Callable[[int], dict[str, bytes]], tmp_path: Path) -> None:
    path = tmp_path / "session.tar"
    path.write_bytes(tar_of(make(15_000)))
    limited(path)


def test_files_of_a_tar_that_end_like_the_image(tmp_path: Path) -> None:
    """The first by name is chosen, and only that one is extracted."""
    files = {path_of("{root}/lib/x"): ONE, "a/lib/y": b"", "b/lib/x": b"no ELF", "a/lib/x": b"none", "lib/xx": b""}
    path = tmp_path / "session.tar"
    path.write_bytes(tar_of(files))
    log = fastprof.convert(path, tmp_path / "out.callgrind")
    assert "not an ELF file" in log.warnings[0]


def test_each_event_is_a_column(tmp_path: Path) -> None:
    """4,000 were 4,000 columns in each batch, and became a Callgrind profile that no tool reads."""
    files = {path_of("{root}/bin/x", event=f"CPU.{1000 + i}.0"): ONE for i in range(1025)}
    session = write_session(tmp_path / "session", files)
    with pytest.raises(FastprofError, match=r"make 1,025 value types, expected up to 1,024"):
        fastprof.convert(session, tmp_path / "out.callgrind")
    os.remove(session / next(iter(files)))
    fastprof.convert(session, tmp_path / "out.callgrind")


def test_a_sparse_file(tmp_path: Path) -> None:
    """None of 130 million nodes of zeros is kept."""
    slots = 1 << 27
    head = ONE[:72] + struct.pack("<II24x", slots, slots)
    path = tmp_path / "sparse"
    path.write_bytes(head)
    os.truncate(path, len(head) + 20 * slots)
    limited(path)
