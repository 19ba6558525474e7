"""Java heaps in Perfetto traces: objects and bytes by the classes on the path from a root."""

from __future__ import annotations

from collections import Counter

import pytest

import fastprof
from fastprof.core.options import Options
from tests.support import perfettotrace as t
from tests.support.product import batches, open_input

JAVA_FRAME, THREAD_BLOCK = 3, 6
WEAK = 9  # kind of a class
REFERENT = 2  # number of a field
UNREACHABLE = "[unreachable]"


def packed(*numbers: int) -> bytes:
    return b"".join(map(t.varint, numbers))


def object_(
    id_: int, class_: int, size: int | None, *refs: int, fields: tuple[int, ...] = (), base: int | None = None
) -> tuple[int, bytes]:
    lists = ((4, packed(*fields) or None), (5, packed(*refs) or None))
    return 2, t.message((1, id_), (2, class_), (3, size), (6, base), *lists)


def class_(
    id_: int,
    name: str,
    size: int | None = None,
    kind: int | None = None,
    *,
    above: int | None = None,
    fields: tuple[int, ...] = (),
) -> tuple[int, bytes]:
    return 9, t.message((1, id_), (3, name), (4, size), (5, above), (6, packed(*fields) or None), (7, kind))


def root(kind: int, *ids: int) -> tuple[int, bytes]:
    return 7, t.message((1, packed(*ids)), (2, kind))


def part(time: int, index: int, *fields: tuple[int, t.Value | None], continues: bool = False, seq: int = 1) -> bytes:
    return t.packet((56, t.message((1, 10), *fields, (5, continues or None), (6, index))), time=time, seq=seq)


CLASSES = [class_(1, "Activity"), class_(2, "View", 24), class_(3, "byte[]"), class_(4, "WeakReference", None, WEAK)]
FIELDS = [
    (4, t.message((1, 1), (2, "View.bits"))),
    (4, t.message((1, REFERENT), (2, "java.lang.Object java.lang.ref.Reference.referent"))),
]
OBJECTS = [
    object_(1, 1, 16, 2, 3),
    object_(2, 2, None, 4, 0, 1),
    object_(3, 2, 30, 4),
    object_(4, 3, 100),
    object_(5, 4, 8, 6, 7, fields=(1, REFERENT)),
    object_(6, 3, 7),
    object_(7, 3, 1000),
    (2, t.message((7, 3), (2, 2), (3, 5), (5, packed(4)))),  # object 10, as a difference
    object_(11, 2, 1, 4, 2, base=2),  # refers to 6 and 4
]
TREE = t.tree((10, 10, "app"))
TRACE = (
    TREE
    + part(100, 0, *OBJECTS[:4], continues=True)
    + part(100, 1, *OBJECTS[4:], *CLASSES, *FIELDS, root(JAVA_FRAME, 1), root(THREAD_BLOCK, 5), root(THREAD_BLOCK, 11))
)
PATHS = {
    ("ROOT_JAVA_FRAME", "Activity"): (1, 16),
    ("ROOT_JAVA_FRAME", "Activity", "View"): (2, 54),
    ("ROOT_THREAD_BLOCK", "WeakReference"): (1, 8),
    ("ROOT_THREAD_BLOCK", "WeakReference", "byte[]"): (1, 7),
    ("ROOT_THREAD_BLOCK", "View"): (1, 1),
    ("ROOT_THREAD_BLOCK", "View", "byte[]"): (1, 100),
    (UNREACHABLE, "byte[]"): (1, 1000),
    (UNREACHABLE, "View"): (1, 5),
}


def paths(data: bytes, **options: bool) -> dict[tuple[str, ...], tuple[int, int]]:
    """Objects and bytes of each path, the root first."""
    opened = open_input(data, Options(**{"perfetto.data": "objects"}, **options), from_="perfetto")
    model, found = opened.model, dict[tuple[str, ...], tuple[int, int]]()
    for batch in batches(opened):
        for i, stack in enumerate(batch["stack"]):
            names = []
            while stack:
                stack, frame = model.row("stacks", stack)
                function = model.row("lines", model.row("frames", frame)[-1])[0]
                names.append(model.string(model.row("functions", function)[2]).decode())
            assert tuple(names[::-1]) not in found
            found[tuple(names[::-1])] = batch.values(0)[i], batch.values(1)[i]
    return found


def test_objects_by_the_shortest_path() -> None:
    assert paths(TRACE) == PATHS
    log = fastprof.info(TRACE, from_="perfetto")  # a trace of nothing else
    assert log.facts["view"] == "stacks" and not log.not_representable and not log.warnings


def test_the_last_dump_of_a_process_counts() -> None:
    later = part(200, 0, object_(1, 1, 5), *CLASSES, root(JAVA_FRAME, 1), seq=2)
    assert paths(TRACE + later) == {("ROOT_JAVA_FRAME", "Activity"): (1, 5)}


def test_a_dump_that_ends_before_its_last_part() -> None:
    """A later dump counts, of another sequence or of the same one, and has no objects of the earlier one."""
    cut = part(100, 0, object_(1, 1, 500), *CLASSES, root(JAVA_FRAME, 1), continues=True)
    for seq in (1, 2):
        later = part(200, 0, object_(2, 1, 5), *CLASSES, root(JAVA_FRAME, 2), seq=seq)
        assert paths(TREE + cut + later) == {("ROOT_JAVA_FRAME", "Activity"): (1, 5)}


def test_fields_of_classes() -> None:
    """As Android writes them: references of an object in the order of the fields of its class and its superclasses."""
    classes = [
        class_(1, "Object"),
        class_(2, "Reference", fields=(1, REFERENT), above=1),
        class_(3, "WeakReference", None, WEAK, above=2),
        class_(4, "Entry", None, WEAK, above=3, fields=(1,)),
    ]
    objects = [object_(1, 4, 10, 2, 0, 3), object_(2, 1, 1), object_(3, 1, 100)]
    assert paths(TREE + part(1, 0, *objects, *classes, *FIELDS, root(JAVA_FRAME, 1))) == {
        ("ROOT_JAVA_FRAME", "Entry"): (1, 10),
        ("ROOT_JAVA_FRAME", "Entry", "Object"): (1, 1),
        (UNREACHABLE, "Object"): (1, 100),
    }


def test_objects_with_several_roots_and_those_of_the_runtime() -> None:
    zygote, app = (9, 2), (9, 1)
    objects = [
        object_(1, 1, 10),
        (2, t.message((1, 2), (2, 1), (3, 20), zygote)),
        object_(3, 1, 30),
        (2, t.message((1, 4), (2, 1), (3, 40), app)),
    ]
    data = part(1, 0, *objects, *CLASSES, root(JAVA_FRAME, 1), root(5, 1))
    assert paths(TREE + data) == {
        ("ROOT_STICKY_CLASS", "Activity"): (1, 10),
        ("ROOT_VM_INTERNAL", "Activity"): (2, 50),
        (UNREACHABLE, "Activity"): (1, 40),
    }


def test_a_cut_list_of_references_or_roots_is_an_error() -> None:
    cut = packed(2) + b"\x80"
    for fields in ([(2, t.message((1, 1), (2, 1), (5, cut)))], [object_(1, 1, 5), (7, t.message((1, cut), (2, 3)))]):
        with pytest.raises(fastprof.FastprofError, match="a packet is malformed"):
            paths(TREE + part(1, 0, *fields, *CLASSES))


def test_many_dumps_at_once() -> None:
    """Each takes memory until it is complete."""
    begun = b"".join(part(1, 0, continues=True, seq=seq) for seq in range(2, 1026))
    with pytest.raises(fastprof.FastprofError, match="a packet is malformed"):
        paths(TREE + begun + TRACE)
    assert paths(TREE + begun[: -len(begun) // 1024] + TRACE) == PATHS


def test_sizes_beyond_63_bits() -> None:
    big = TREE + part(1, 0, object_(1, 1, 1 << 62), object_(2, 1, 1 << 62), *CLASSES, root(JAVA_FRAME, 1, 2))
    with pytest.raises(fastprof.FastprofError, match="a packet is malformed"):
        paths(big)
    assert not paths(big, lenient=True)


def test_old_names_and_missing_ones() -> None:
    """Names of classes without classes, kinds of roots as texts; and a class that the trace does not describe."""
    old = part(
        1,
        0,
        object_(1, 1, 5, 2),
        object_(2, 9, 6),
        (3, t.message((1, 1), (2, "Old"))),
        (7, t.message((1, 1), (2, "RootX"))),
    )
    assert paths(TREE + old) == {("RootX", "Old"): (1, 5), ("RootX", "Old", "[unknown]"): (1, 6)}


def test_long_paths_are_shortened() -> None:
    chain = [object_(i, 1, 1, i + 1) for i in range(1, 1001)]
    data = TREE + part(1, 0, *chain, *CLASSES, root(JAVA_FRAME, 1))
    found = paths(data)
    assert max(map(len, found)) == 512 and Counter(map(sum, zip(*found.values(), strict=True))) == {1000: 2}
    assert fastprof.info(data, from_="perfetto").not_representable == {"long-paths": 489}


def test_a_dump_without_its_end_is_reported() -> None:
    data = TREE + part(100, 0, *OBJECTS, *CLASSES, *FIELDS, root(JAVA_FRAME, 1), continues=True)
    assert sum(n for n, _ in paths(data).values()) == len(OBJECTS)
    assert any("incomplete heap dumps: 1" in str(warning) for warning in fastprof.info(data, from_="perfetto").warnings)
