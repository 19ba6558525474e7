"""Frames of a heap profile's allocator: which they are, and where verbs leave them out."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import fastprof
from fastprof.core.allocators import GO_KEPT, GO_NAMES, NAMES, drops_allocator, is_function, is_object
from tests.reference.profile_proto import Profile
from tests.support.paths import CORPUS

OURS = [b"malloc", b"operator new[](unsigned long)", b"tcmalloc::allocate_full_malloc_oom", b"_int_malloc.constprop.0"]
OURS += [b"std::allocator<int>::allocate(unsigned long, void const*)", b"allocate", b"__default_morecore", b"je_malloc"]
OURS += [b"sysmalloc_mmap_fallback.constprop.0", b"runtime.mallocgc", b"reallocarray", b"operator delete"]
OTHERS = [b"main", b"mallocator", b"my_malloc", b"app::allocate", b"operator()(int)", b"(anonymous namespace)::malloc2"]
OTHERS += [b"runtime.panic", b"runtime.call32", b"", b"allocate::now", b"newest", b"mmap_cache"]


@pytest.mark.parametrize("name", OURS)
def test_an_allocators_function(name: bytes) -> None:
    assert is_function(name)


@pytest.mark.parametrize("name", OTHERS)
def test_another_function(name: bytes) -> None:
    assert not is_function(name)


def test_viewers_drop_the_same_functions() -> None:
    """pprof matches whole names, without arguments, with the regular expression."""
    drops, keeps = re.compile(GO_NAMES), re.compile(GO_KEPT)
    for name in OURS + OTHERS:
        bare = name.partition(b"(")[0] if not name.startswith((b"operator()", b"(")) else name
        dropped = bool(drops.fullmatch(bare)) and not keeps.fullmatch(bare)
        assert dropped == is_function(name), name


def test_long_names_take_linear_time() -> None:
    """A quadratic search would take hours."""
    for name in (b"allocat::" * (1 << 16), b"tcmalloc" * (1 << 17), b"(" * (1 << 20), b"operator" * (1 << 17)):
        assert not is_function(name)
        assert not is_object(name)
    assert not drops_allocator(b"(a+)+$") and drops_allocator(NAMES) and not drops_allocator(None)


def test_objects() -> None:
    assert all(map(is_object, (b"/usr/lib/libjemalloc.so.2", b"libtcmalloc_minimal.so.4", b"/x/vgpreload_dhat-amd64")))
    assert not any(map(is_object, (b"/usr/lib/libc.so.6", b"/opt/libjemalloc.so/app", b"")))


HEAP = """heap profile:   3:   96 [   3:   96] @ heapprofile
     2:   64 [     2:   64] @ 0x1001 0x2001 0x3001
     1:   32 [     1:   32] @ 0x1001 0x1101

"""
FRAMES = {0x1000: "malloc", 0x1100: "tcmalloc::init", 0x2000: "f", 0x3000: "main"}


def _named(path: Path) -> Path:
    """A profile with names, as a symbolized pprof file, which keeps `drop_frames`."""
    text = "--- symbol\nbinary=/srv/app\n" + "".join(f"0x{at:016x} {name}\n" for at, name in FRAMES.items())
    source = path / "x.heap"
    source.write_text(text + "---\n--- heap\n" + HEAP)
    return source


def test_verbs_that_rank_leave_the_allocator_out_and_conversions_keep_it(tmp_path: Path) -> None:
    """A stack of nothing but the allocator stays."""
    source, pprof, archive = _named(tmp_path), tmp_path / "x.pb", tmp_path / "x.fpa"
    fastprof.convert(source, pprof)
    fastprof.convert(source, archive)
    profile = Profile()
    profile.ParseFromString(pprof.read_bytes())
    assert profile.string_table[profile.drop_frames].encode() == NAMES
    for path in (source, pprof, archive):
        found = fastprof.top(path)
        assert {row.name: row.self for row in found.rows} == {"f": 64, "malloc": 32, "tcmalloc::init": 0, "main": 0}
        assert found.log.left_out == {"allocator-frames": 1}
        assert fastprof.top([path, path]).log.left_out == {"allocator-frames": 2}  # inputs that are opened twice
        kept = fastprof.top(path, keep_allocator=True)
        assert {row.name: row.self for row in kept.rows if row.self} == {"malloc": 96}
        assert not kept.log.left_out
        out = tmp_path / "x.folded"
        fastprof.convert(path, out)
        assert out.read_text().splitlines() == ["main;f;malloc 64", "tcmalloc::init;malloc 32"]
        changes = fastprof.diff(path, path, n=0)
        assert changes.log.left_out == {"allocator-frames": 2}
        assert fastprof.report(path, tmp_path / "x.html").left_out == {"allocator-frames": 1}


def test_a_cpu_profile_keeps_its_malloc(tmp_path: Path) -> None:
    """Time in malloc is a cost of malloc, although gperftools' profiles have `drop_frames`, too."""
    path = tmp_path / "x.folded"
    path.write_text("main;f;malloc 5\n")
    assert [row.name for row in fastprof.top(path).rows if row.self] == ["malloc"]
    source = CORPUS / "gperftools/good/small.prof"
    assert fastprof.top(source).rows == fastprof.top(source, keep_allocator=True).rows
