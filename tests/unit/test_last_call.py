"""--trim: Go's compiler sees the same calls in a profile without callers."""

from __future__ import annotations

import gzip
import io
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastprof
from fastprof.core.errors import UsageError
from tests.reference import profile_proto
from tests.support.paths import CORPUS

COMPILER = CORPUS / "pprof/compiler.pb.gz"
Place = tuple[str, int, int, int]  # function, line, first line, address


def places(data: Any, value: str) -> list[tuple[list[list[Place]], int]]:
    """The samples of a profile: of each frame, innermost first, its functions, innermost first; and the value."""
    found = []
    with fastprof.open(data, from_="pprof", symbolize=False) as profile:
        model = profile._model
        for batch in profile.batches():
            column = [t.name for t in model.parts[batch.part].value_types].index(value)
            for stack, n in zip(batch["stack"], batch.values(column), strict=True):
                frames = []
                while stack:
                    stack, frame = model.row("stacks", stack)
                    _, low, high, _, line = model.row("frames", frame)
                    chain = []
                    while line:
                        function, number, _, line = model.row("lines", line)
                        f = model.get_function(function)
                        chain.append((f.name.decode(), number, f.line, low | high << 32))
                    frames.append(chain)
                found.append((frames, n))
    return found


def preprofile(samples: list[tuple[list[list[Place]], int]]) -> str:
    """What `go tool preprofile` prints: NewGraph of internal/profile and createNamedEdgeMap of cmd/internal/pgo."""
    edges: Counter[tuple[str, str, int]] = Counter()
    for frames, n in samples:
        parent: Place | None = None
        seen: set[tuple[Place, Place]] = set()
        for chain in reversed(frames[:2]):
            for place in reversed(chain):
                if parent is not None and parent != place and (place, parent) not in seen:
                    seen.add((place, parent))
                    edges[parent[0], place[0], parent[1] - parent[2]] += n
                parent = place
    order = sorted(edges, key=lambda edge: (-edges[edge], *edge))
    return "GO PREPROFILE V1\n" + "".join(f"{a}\n{b}\n{line} {edges[a, b, line]}\n" for a, b, line in order)


def trimmed(data: Any, folder: Path, **options: Any) -> bytes:
    fastprof.convert(data, folder / "default.pgo", trim=True, symbolize=False, **options)
    return gzip.decompress((folder / "default.pgo").read_bytes())


def weights(text: str) -> int:
    return sum(int(line.split()[1]) for line in text.split("\n")[3::3])


def test_a_profile_of_go(tmp_path: Path) -> None:
    """Before and after, what Go's tool printed of it.  Lines count from the first one of the function."""
    expected = COMPILER.with_name("compiler.preprofile").read_text()
    assert preprofile(places(COMPILER, "samples")) == expected
    samples = places(io.BytesIO(trimmed(COMPILER, tmp_path)), "samples")
    assert preprofile(samples) == expected and expected.count("\n") == 1 + 3 * len(samples)
    assert {(len(frames), len(chain)) for frames, _ in samples for chain in frames} == {(2, 1)}
    assert {(place[2], place[3]) for frames, _ in samples for (place,) in frames} == {(1, 0)}
    small = profile_proto.parse(gzip.decompress((tmp_path / "default.pgo").read_bytes()))
    assert len(small.location) < len(samples) * 1.3  # callees share their places
    assert not any(function.system_name for function in small.function)
    assert fastprof.info(tmp_path / "default.pgo").facts["totals"]["samples"] == weights(expected)
    assert (tmp_path / "default.pgo").stat().st_size < COMPILER.stat().st_size / 3.2


FUNCTIONS = {"f": 1, "g": 1, "h": 2}  # and first lines


def encode(samples: Sequence[Any]) -> bytes:
    """A profile; a place is an address and its functions, innermost first."""
    profile = profile_proto.parse(b"")
    strings = ["", "samples", "count", *FUNCTIONS]
    profile.string_table.extend(strings)
    profile.sample_type.add(type=1, unit=2)
    for k, (name, first) in enumerate(FUNCTIONS.items()):
        profile.function.add(id=k + 1, name=strings.index(name), start_line=first)
    locations: dict[str, int] = {}
    for frames, n in samples:
        sample = profile.sample.add(value=[n])
        for address, chain in frames:
            if str((address, chain)) not in locations:
                locations[str((address, chain))] = len(locations) + 1
                location = profile.location.add(id=len(locations), address=address)
                for name, line in chain:
                    location.line.add(function_id=[*FUNCTIONS].index(name) + 1, line=line)
            sample.location_id.append(locations[str((address, chain))])
    return bytes(profile.SerializeToString())


names = st.sampled_from(["f", "g", "h"])
chains = st.lists(st.tuples(names, st.integers(1, 3)), min_size=1, max_size=2)
stacks = st.lists(st.tuples(st.lists(st.tuples(st.integers(1, 3), chains), min_size=1, max_size=4), st.integers(1, 9)))


@settings(max_examples=25, deadline=None)
@given(stacks.filter(bool))
def test_the_calls_stay(tmp_path_factory: pytest.TempPathFactory, samples: Sequence[Any]) -> None:
    """Recursion, inlined functions, equal lines at several addresses."""
    folder = tmp_path_factory.mktemp("calls")
    data = encode(samples)
    expected = preprofile(places(io.BytesIO(data), "samples"))
    if expected.count("\n") == 1:
        with pytest.raises(UsageError, match=r"no row can be written as pprof: \d+ samples? of which at most"):
            trimmed(data, folder)
    else:
        assert preprofile(places(io.BytesIO(trimmed(data, folder)), "samples")) == expected


def test_other_formats_have_no_trim(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="trim=True has no effect"):
        fastprof.convert(COMPILER, tmp_path / "a.folded", trim=True)
    log = fastprof.merge([COMPILER, COMPILER], tmp_path / "two.pgo", trim=True)
    assert log.not_representable["cut-callers"] > 400


def test_labels_do_not_keep_samples_apart(tmp_path: Path) -> None:
    profile = profile_proto.parse(
        encode([([(5, [("g", 3)]), (4, [("f", 2)])], 7), ([(5, [("g", 4)]), (4, [("f", 2)])], 9)])
    )
    for k, sample in enumerate(profile.sample):
        sample.label.add(key=1, num=k + 1)
    small = profile_proto.parse(trimmed(bytes(profile.SerializeToString()), tmp_path))
    assert [(list(sample.value), len(sample.label)) for sample in small.sample] == [([16], 0)]
