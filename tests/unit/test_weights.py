"""merge --weight and --normalize: factors of inputs and of samples with labels."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastprof
from fastprof.core.errors import FastprofError, UsageError
from tests.support.paths import CORPUS

TARGETS = ["folded", "callgrind", "cachegrind", "pprof", "otlp", "archive", "speedscope"]
SOURCES = {
    "stacks": CORPUS / "pprof/good/go-cpulabels.pb",
    "graph": CORPUS / "callgrind/good/cfi.callgrind",
    "timeline": CORPUS / "xray/good/fdr5-busy.xray",
}


def folded(path: Path, **options: Any) -> Counter[str]:
    fastprof.convert(path, path.with_suffix(".txt"), to="folded", **options)
    found: Counter[str] = Counter()
    for line in path.with_suffix(".txt").read_text().splitlines():
        stack, _, value = line.rpartition(" ")
        found[stack] += int(value)
    return found


def write(path: Path, stacks: dict[str, int]) -> str:
    path.write_text("".join(f"{stack} {n}\n" for stack, n in stacks.items()))
    return str(path)


names = st.sampled_from(["a", "a;b", "a;b;c", "a;d", "e"])
profiles = st.lists(st.tuples(names, st.integers(1, 10**6)), min_size=1, max_size=20)


@settings(max_examples=15, deadline=None)
@given(st.lists(profiles, min_size=2, max_size=4), st.lists(st.integers(1, 10**9), min_size=4, max_size=4))
def test_weights_are_factors(tmp_path_factory: pytest.TempPathFactory, given: Any, weights: list[int]) -> None:
    folder = tmp_path_factory.mktemp("weights")
    expected: Counter[str] = Counter()
    for k, (rows, weight) in enumerate(zip(given, weights, strict=False)):
        (folder / f"host{k}.folded").write_text("".join(f"{stack} {n}\n" for stack, n in rows))
        for stack, n in rows:
            expected[stack] += n * weight
    weight = {f"host{k}": n for k, n in enumerate(weights[: len(given)])}
    fastprof.merge([*map(str, sorted(folder.glob("*.folded")))], folder / "out.pb.gz", weight=weight)
    assert folded(folder / "out.pb.gz") == expected


@settings(max_examples=15, deadline=None)
@given(st.lists(profiles, min_size=2, max_size=4), st.integers(1, 5))
def test_normalized_totals_are_exact(tmp_path_factory: pytest.TempPathFactory, given: Any, weight: int) -> None:
    """Each stack of each input is off by less than 1."""
    folder = tmp_path_factory.mktemp("equal")
    totals = [sum(n for _, n in rows) for rows in given]
    expected: dict[str, Fraction] = {}
    for k, rows in enumerate(given):
        (folder / f"host{k}.folded").write_text("".join(f"{stack} {n}\n" for stack, n in rows))
        for stack, n in rows:
            factor = Fraction(max(totals), totals[k]) * (weight if k == 0 else 1)
            expected[stack] = expected.get(stack, Fraction(0)) + n * factor
    inputs = [*map(str, sorted(folder.glob("*.folded")))]
    fastprof.merge(inputs, folder / "out.folded", normalize=True, weight={"host0": weight})
    found = folded(folder / "out.folded")
    assert sum(found.values()) == max(totals) * (len(given) - 1 + weight)
    assert all(abs(found[stack] - value) < len(given) for stack, value in expected.items())


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("view", SOURCES)
def test_a_weight_is_a_number_of_copies(tmp_path: Path, view: str, target: str) -> None:
    """Of any view, for any target."""
    source = str(SOURCES[view])
    options: dict[str, Any] = {"from_": {"stacks": "pprof", "graph": "callgrind", "timeline": "xray"}[view]}
    if view == "graph" and target in ("folded", "pprof", "otlp", "speedscope"):
        options["stacks"] = "arcs"  # estimates of sums are not sums of estimates
    out = [tmp_path / "three", tmp_path / "weighted"]
    fastprof.merge([source] * 3, out[0], to=target, **options)
    weighted = {"weight": {Path(source).name: 3}, **options}
    if view == "timeline" and target in ("archive", "speedscope"):
        with pytest.raises(UsageError, match="a timeline has no values to weight"):
            fastprof.merge([source], out[1], to=target, **weighted)
        return
    fastprof.merge([source], out[1], to=target, **weighted)
    infos = [fastprof.info(path) for path in out]
    assert infos[0].facts["totals"] == infos[1].facts["totals"]
    if target != "cachegrind":
        assert folded(out[0]) == folded(out[1])


def test_calls_and_stated_totals_are_multiplied(tmp_path: Path) -> None:
    path = tmp_path / "a.callgrind"
    calls, jumps = "cfn=f\ncalls=7 1\n2 4\n", "jump=3 2\n1 0\njcnd=2/5 3\n1 0\n"
    path.write_text(f"events: Ir\nsummary: 5\nfn=main\n1 1\n{calls}{jumps}fn=f\n1 4\n")
    fastprof.merge([path], tmp_path / "b.callgrind", weight={"a": 3})
    text = (tmp_path / "b.callgrind").read_text()
    assert "calls=21 " in text and "jcnd=6/15 " in text and "jump=9 " in text and "summary: 15\n" in text


def test_names_and_labels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for zone in ("eu", "us"):
        (tmp_path / zone).mkdir()
        for host in ("web1", "web2"):
            write(tmp_path / zone / f"{host}.prof.folded", {f"main;{zone}{host[3]}": 1})

    def merged(weight: Any, **options: Any) -> dict[str, int]:
        fastprof.merge(["eu", "us"], "out.pb", weight=weight, **options)
        return {stack.rpartition(";")[2]: n for stack, n in folded(tmp_path / "out.pb").items()}

    plain = {"eu1": 1, "eu2": 1, "us1": 1, "us2": 1}
    assert merged({"web1": 3}) == plain | {"eu1": 3, "us1": 3}
    assert merged({"eu/*": 2, "*2.prof*": 5}) == plain | {"eu1": 2, "eu2": 10, "us2": 5}
    by_path = {"label_path": "{zone}/{host}.prof.folded"}
    assert merged({"eu": 4}, **by_path) == plain | {"eu1": 4, "eu2": 4}
    assert merged({"zone=us": 4, "host=web1": 3}, **by_path) == {"eu1": 3, "eu2": 1, "us1": 12, "us2": 4}
    graph = {"to": "callgrind", **by_path}
    fastprof.merge(["eu", "us"], "out.callgrind", weight={"zone=us": 4}, **graph)
    assert fastprof.info("out.callgrind").facts["totals"]["samples"] == 10
    fastprof.merge(["out.callgrind", "eu/web1.prof.folded"], "again.callgrind", weight={"zone=us": 2}, union=True)
    assert fastprof.info("again.callgrind").facts["totals"]["samples"] == 19  # labels of parts


def test_labels_of_samples(tmp_path: Path) -> None:
    source = CORPUS / "pprof/good/go-cpulabels.pb"
    plain = {row.name: row.self for row in fastprof.top(source, by="label:kind", n=0).rows}
    (label, own), *others = sorted(plain.items(), key=lambda item: item[0] == "(none)")
    fastprof.merge([source], tmp_path / "out.pb", weight={f"kind={label}": 3})
    found = {row.name: row.self for row in fastprof.top(tmp_path / "out.pb", by="label:kind", n=0).rows}
    assert found == {label: 3 * own, **dict(others)}
    assert own > 0


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ("a", "'a' is not NAME=N"),
        ("a=0", "expected NAME=N or KEY=VALUE=N, with N from 1 to 1,000,000,000"),
        ("a=1.5", "expected NAME=N"),
        ("=3", "NAME=N"),
        ("a=1000000001", "expected NAME=N"),
        (["a=2", "a=3"], "a has a weight already"),
        ("other=3", "no input has this name or label"),
        ("k=v=3", "no sample has this label"),
    ],
)
def test_wrong_weights(tmp_path: Path, weight: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        fastprof.merge([write(tmp_path / "a.folded", {"f": 1})], tmp_path / "out.folded", weight=weight)
    assert not (tmp_path / "out.folded").exists()


def test_overflow_is_an_error(tmp_path: Path) -> None:
    inputs = [write(tmp_path / "a.folded", {"f": 10**18}), write(tmp_path / "b.folded", {"f": 1})]
    with pytest.raises(FastprofError, match=r"a weighted value in value type samples exceeds 2\^63 - 1"):
        fastprof.merge(inputs, tmp_path / "out.folded", weight="a=10")
    (tmp_path / "c.callgrind").write_text("events: Ir\nfn=f\n1 1\ncfn=g\ncalls=9223372036854775807 1\n1 1\nfn=g\n1 1\n")
    with pytest.raises(FastprofError, match="a weighted number of calls or jumps exceeds"):
        fastprof.merge([tmp_path / "c.callgrind"], tmp_path / "out.callgrind", weight="c=2")


@pytest.mark.parametrize("view", ["stacks", "graph"])
def test_a_product_of_weights_by_label_that_is_too_large(tmp_path: Path, view: str) -> None:
    labels, inner = ["a=1", "b=2", "c=3"], tmp_path / ("in.pb.gz" if view == "stacks" else "in.fpa")
    if view == "stacks":
        fastprof.convert(write(tmp_path / "a.folded", {"f": 3}), inner, set_label=labels)
    else:
        fastprof.merge([CORPUS / "callgrind/good/redef.callgrind"], inner, set_label=labels)
    given = {"weight": [f"{label}=1000000000" for label in labels]}
    with pytest.raises(FastprofError, match=r"in\.[a-z.]+: its weight exceeds 2\^63 - 1"):
        fastprof.merge([inner], tmp_path / ("out.pb.gz" if view == "stacks" else "out.callgrind"), **given)


def test_normalized_inputs_of_several_views(tmp_path: Path) -> None:
    """A graph, whose calls are rounded alone, and stacks; an input without cost stays."""
    (tmp_path / "a.callgrind").write_text("events: Ir\nfn=f\n1 1\n2 1\n3 1\ncfn=g\ncalls=3 1\n1 7\nfn=g\n1 4\n2 3\n")
    (tmp_path / "b.folded").write_text("f;g 99\nh 1\n")
    (tmp_path / "c.callgrind").write_text("events: Ir\nfn=f\n1 0\n")
    given = {"rename_value": "Ir=samples/count", "normalize": True}
    log = fastprof.merge([*tmp_path.glob("[abc].*")], tmp_path / "out.callgrind", **given)
    assert fastprof.info(tmp_path / "out.callgrind").facts["totals"] == {"samples": 200}
    assert "calls=30 " in (tmp_path / "out.callgrind").read_text()
    assert any("its total is not above 0" in str(text) for text in log.warnings)
    one = fastprof.merge([tmp_path / "b.folded"], tmp_path / "one.folded", normalize=True)
    assert not one.warnings and folded(tmp_path / "one.folded")["f;g"] == 99


def test_filters_come_before_totals(tmp_path: Path) -> None:
    inputs = [write(tmp_path / "a.folded", {"f;g": 5, "f": 5}), write(tmp_path / "b.folded", {"f;g": 2, "f": 98})]
    fastprof.merge(inputs, tmp_path / "out.folded", normalize=True, function="g")
    assert folded(tmp_path / "out.folded") == {"f;g": 10}


def test_pipes_cannot_be_normalized(tmp_path: Path) -> None:
    import io

    inputs = [io.BytesIO(b"f 1\n"), write(tmp_path / "a.folded", {"f": 1})]
    with pytest.raises(UsageError, match="reads inputs twice, so this must be a file"):
        fastprof.merge(inputs, tmp_path / "out.folded", normalize=True)
