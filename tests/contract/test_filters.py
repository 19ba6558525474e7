"""Filters keep the same rows as the reference, for every good corpus file and its archive."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import fastprof
from fastprof import plan
from fastprof.core.errors import UsageError
from fastprof.core.options import Options
from tests.contract.dump import files
from tests.reference import filters as reference
from tests.reference.filters import Row
from tests.support.chosen import CHOSEN, cases
from tests.support.conversions import format_of
from tests.support.paths import CORPUS
from tests.support.product import open_input
from tests.support.rows import Reading, text

Filter = tuple[dict[str, Any], Callable[[list[Row]], list[Row]]]  # options, and the rows they keep


@cache
def whole(file: str) -> Reading:
    return Reading((CORPUS / file).read_bytes(), format_of(file), {})


@cache
def archived(file: str) -> bytes:
    path = Path(cache_folder.name, file.replace("/", "-") + ".fpa")
    plain = {"symbolize": False} if format_of(file) in ("oprofile", "perf") else {}  # as for its rows here
    fastprof.convert(CORPUS / file, path, **plain)
    return path.read_bytes()


class cache_folder:  # the fixture below sets it
    name = ""


@pytest.fixture(autouse=True, scope="module")
def _folder(tmp_path_factory: pytest.TempPathFactory) -> None:
    cache_folder.name = str(tmp_path_factory.mktemp("archives"))


def filters_for(file: str) -> Iterator[Filter]:
    """Filters for a file: one for each feature that it has, and one for a feature that it lacks."""
    all_ = whole(file)
    rows, view = all_.rows, all_.view
    for part in (1, 2, len(all_.parts) + 1):
        yield {"part": part}, lambda rows, p=part: reference.by_part(rows, p)  # type: ignore[misc]
    threads = sorted({row.thread for row in rows if row.thread is not None})
    for some in (threads[:1], threads[:2], threads[-1:], [4_000_000_000]):
        if some:
            yield {"threads": (*some,)}, lambda rows, s=some: reference.by_thread(rows, *s)  # type: ignore[misc]
    times = sorted({row.time for row in rows})
    if view != "graph" and times:
        middle, late = times[len(times) // 3], times[len(times) * 2 // 3]
        for first, last in ((middle, late), (0, middle), (late, (1 << 64) - 1), (times[-1] + 1, times[-1] + 2)):
            asked = {"time_range": (first, last)}
            yield asked, lambda rows, a=first, b=last: reference.by_time(rows, view, a, b)  # type: ignore[misc]
    if view == "stacks":
        labels = sorted({label for row in rows for label in row.labels})
        for choice in (labels[:1], labels[:2], labels[::3], labels[-1:], [("no such", "label")]):
            if choice:
                asked = {"label": tuple(f"{k}={v}" for k, v in choice)}
                yield asked, lambda rows, c=choice: reference.by_label(rows, *c)  # type: ignore[misc]
    functions = sorted({row.function for row in rows} | {f for row in rows for fr in row.stack for f in fr})
    names = sorted({name for name, _ in functions if name})
    objects = sorted({object_ for _, object_ in functions})
    patterns = [(re.escape(name), None) for name in (*names[:1], *names[-1:], *names[len(names) // 2 :][:1])]
    patterns += [(None, "^" + re.escape(object_) + "$") for object_ in (*objects[:1], *objects[-1:])]
    patterns += [("[a-m]", "."), ("(?i)^MAIN$", None), ("no such function", None)]
    for name, object_ in patterns:
        asked = {k: v for k, v in (("function", name), ("object", object_)) if v is not None}
        yield (
            asked,
            lambda rows, n=name, o=object_: reference.by_function(rows, view, n or "", o or ""),  # type: ignore[misc]
        )


def kept(data: bytes, from_: str, given: dict[str, Any], capacity: int | None = None) -> tuple[list[Row], int]:
    """The rows, and the number reported as left out; none if the filter is refused."""
    try:
        reading = Reading(data, from_, given, capacity)
    except UsageError as error:
        assert "no row matches" in str(error)
        return [], -1
    (n,) = reading.log.left_out.values() or (0,)
    return reading.rows, n


@pytest.mark.parametrize("file", cases(files("good"), every=2))
def test_the_rows_are_those_of_the_reference_and_of_the_archive(file: str) -> None:
    rows = whole(file).rows
    for i, (given, keep) in enumerate(filters_for(file)):
        expected = [row._replace(part=0) for row in keep(rows)]
        if all(row.op == reference.BUFFER for row in expected):
            expected = []  # the starts of buffers alone do not count as rows
        ways: list[tuple[bytes, str, int | None]] = [
            ((CORPUS / file).read_bytes(), format_of(file), None),
            ((CORPUS / file).read_bytes(), format_of(file), 3),
            (archived(file), "archive", None),
        ]
        for data, from_, capacity in ways if file in CHOSEN else [ways[i % len(ways)]]:
            found, left_out = kept(data, from_, given, capacity)
            assert [row._replace(part=0) for row in found] == expected, (given, from_)
            if rows:
                assert left_out == (len(rows) - len(expected) if expected else -1), (given, from_)


GRAPHS = [file for file in files("good") if format_of(file) in ("callgrind", "cachegrind")]
OVERFLOWS = "callgrind/good/everything.callgrind"  # its sums do not fit


@pytest.mark.parametrize("file", GRAPHS)
def test_what_a_filtered_graph_says_of_itself_is_true(file: str, tmp_path: Path) -> None:
    """No `summary:` of all rows is left; `totals:` is the sum of the rows, which the reader checks."""
    # self costs, not calls (kind 1): Cachegrind has no rows for a function that only calls
    name = next((row.function[0] for row in whole(file).rows if row.function[0] and row.says[0] != 1), None)
    if name is None or file == OVERFLOWS:
        return
    out = tmp_path / "out.callgrind"
    fastprof.convert(CORPUS / file, out, function=f"^{re.escape(name)}$")
    assert "summary:" not in out.read_text(errors="replace")
    # what the filter leaves may have no cost in the default value type
    assert [text for text in fastprof.info(out).warnings if "is 0 everywhere" not in text] == []
    facts = fastprof.convert(CORPUS / file, tmp_path / "out.cachegrind", function=f"^{re.escape(name)}$")
    assert facts.left_out or len({row.function[0] for row in whole(file).rows}) == 1


@pytest.mark.parametrize(
    ("file", "given"),
    [
        ("callgrind/good/everything.callgrind", {"time_range": (0, 1)}),
        ("archive/good/graph.fpa", {"time_range": (0, 1)}),
        ("archive/good/timeline.fpa", {"label": ("a=b",)}),
        ("xray/good/fdr5-busy.xray", {"label": ("a=b",)}),
    ],
)
def test_what_cannot_apply_in_a_view_is_refused(file: str, given: dict[str, Any], tmp_path: Path) -> None:
    for refused in (
        lambda: fastprof.convert(CORPUS / file, tmp_path / "out.callgrind", **given),
        lambda: fastprof.info(CORPUS / file, **given),
        lambda: fastprof.open(CORPUS / file, **given),
    ):
        with pytest.raises(UsageError, match=f"{next(iter(given))}= has no effect .*: it applies to "):
            refused()
    assert [*tmp_path.iterdir()] == []


def test_a_filter_has_to_apply_to_each_input(tmp_path: Path) -> None:
    log, graph = CORPUS / "xray/good/fdr5-busy.xray", CORPUS / "callgrind/good/everything.callgrind"
    with pytest.raises(UsageError, match=r"everything\.callgrind: time_range= has no effect"):
        fastprof.convert([log, graph], tmp_path / "out.callgrind", time_range=(0, 1))


def test_of_several_inputs_one_may_have_nothing(tmp_path: Path) -> None:
    """A thread of one input is kept, whatever the other formats; it is an error only if no input has it."""
    log = CORPUS / "xray/good/fdr5-busy.xray"
    other = CORPUS / "xray/good/fdr5-events-clang19.xray"
    fastprof.convert(other, tmp_path / "other.fpa")
    tid = min({row.thread for row in whole("xray/good/fdr5-busy.xray").rows} - {None}, key=str)
    for second in (other, tmp_path / "other.fpa"):
        both = fastprof.convert([log, second], tmp_path / "both.callgrind", threads=[tid])
        assert both.left_out
    with pytest.raises(UsageError, match=r"no row matches threads=4000000000; the threads are [0-9]"):
        fastprof.convert([log, tmp_path / "other.fpa"], tmp_path / "none.callgrind", threads=[4_000_000_000])
    assert not (tmp_path / "none.callgrind").exists()


def test_what_there_is_nothing_of_is_said() -> None:
    for given, said in (({"threads": [7]}, "no threads are known"), ({"label": ["a=b"]}, "there are no labels")):
        with pytest.raises(UsageError, match=rf"no row matches \S+; {said}$"):
            fastprof.info(CORPUS / "folded/good/plain.folded", **given)


def test_open_and_info_filter_too() -> None:
    file = "xray/good/fdr5-busy.xray"
    rows = whole(file).rows
    tid = next(row.thread for row in rows if row.thread is not None)
    n = len(reference.by_thread(rows, tid))
    with fastprof.open(CORPUS / file, threads=[tid]) as profile:
        assert sum(map(len, profile)) == n
    info = fastprof.info(CORPUS / file, threads=[tid])
    assert sum(info.left_out.values()) == len(rows) - n
    labelled = "pprof/good/everything.pb"
    key, value = next(label for row in whole(labelled).rows for label in row.labels)
    assert fastprof.info(CORPUS / labelled, label=[f"{key}={value}"]).left_out


@pytest.mark.parametrize("pattern", ["(", "a{99999999999}", "(" * 5000 + ")" * 5000])
def test_a_bad_pattern_is_a_usage_error(pattern: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"function: .* is not a regular expression: "):
        fastprof.convert(CORPUS / "folded/good/plain.folded", tmp_path / "out.folded", function=pattern)


def test_a_long_name_is_matched_by_its_beginning() -> None:
    """The time for a pattern may grow with the square of a name's length."""
    name = b"x" * 1_000_000
    data = b"main;%s 1\nmain;y 2\n" % name
    rows, left_out = kept(data, "folded", {"function": "x.*z"})
    assert (rows, left_out) == ([], -1)
    rows, left_out = kept(data, "folded", {"function": "^x+$"})
    assert (len(rows), left_out) == (1, 1)


def test_views_agree_on_what_a_function_cost() -> None:
    """A filtered and folded trace has the costs of its stacks within the function, and no callers outside of it."""
    file = "xray/good/fdr5-busy.xray"
    log = (CORPUS / file).read_bytes()
    folded = _stacks(log, {})
    names = {name for path in folded for name in path}
    for name in sorted(names):
        pattern = f"^{re.escape(name)}$"
        within: dict[tuple[str, ...], list[int]] = {}
        for path, values in folded.items():
            if name in path:
                inner = path[path.index(name) :]
                within[inner] = [a + b for a, b in zip(within.get(inner, [0, 0]), values, strict=True)]
        assert _stacks(log, {"function": pattern}) == {path: tuple(values) for path, values in within.items()}


def _stacks(log: bytes, given: dict[str, Any]) -> dict[tuple[str, ...], tuple[int, ...]]:
    """Stacks of a timeline: root first, time in ticks and calls."""
    options = Options(time_unit="ticks", **given)
    opened = open_input(log, options)
    made = plan.make([[opened.reader]], plan.End("test", "stacks"), options)
    found: dict[tuple[str, ...], tuple[int, ...]] = {}
    for batch in made.rows(opened.model, opened.log):
        for i, node in enumerate(batch["stack"]):
            path = []
            while node:
                node, frame = opened.model.row("stacks", node)
                line = opened.model.row("frames", frame)[4]
                path.append(text(opened.model.get_function(opened.model.row("lines", line)[0]).name))
            found[tuple(path[::-1])] = tuple(batch.values(k)[i] for k in range(2))
    return found
