"""What functions of the module are given: made and chosen profiles, and what is no input at all."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import pytest

import fastprof

STACKS = [(["main", "x"], 5), (["main", "y"], 3)]


@pytest.fixture
def folded(tmp_path: Path) -> str:
    path = tmp_path / "a.folded"
    path.write_text("main;x 9\nmain;y 3\n")
    return str(path)


def test_explain_takes_made_profiles_in_either_position(folded: str) -> None:
    made = fastprof.from_stacks(STACKS)
    for old, new, totals in ((made, folded, (8, 12)), (folded, made, (12, 8)), (made, made, (8, 8))):
        found = fastprof.explain(old, new)  # type: ignore[arg-type]
        assert isinstance(found, fastprof.Comparison)
        assert (found.values[0].old, found.values[0].new) == totals


def test_explain_takes_a_choice_of_rows_as_diff_does(folded: str) -> None:
    chosen = fastprof.open(folded).where(function="x")
    for old, new, totals in ((chosen, folded, (9, 12)), (folded, chosen, (12, 9)), (chosen, chosen, (9, 9))):
        found = fastprof.explain(old, new)  # type: ignore[arg-type]
        assert isinstance(found, fastprof.Comparison)
        compared = fastprof.diff(old, new)
        assert (found.values[0].old, found.values[0].new) == totals == (compared.values[0].old, compared.values[0].new)
    alone = fastprof.explain(chosen)  # type: ignore[arg-type]
    assert isinstance(alone, fastprof.Explanation) and alone.total == 9


def test_info_of_a_choice_of_rows(folded: str) -> None:
    profile = fastprof.open(folded)
    assert fastprof.info(profile.where(function="x")).facts["totals"] == {"samples": 9}
    assert fastprof.info(profile.rename("x", "z")).facts["totals"] == {"samples": 12}


@pytest.mark.parametrize(
    "empty",
    [fastprof.from_stacks([]), fastprof.from_spans([]), fastprof.from_calls([])],
    ids=["stacks", "spans", "calls"],
)
def test_an_empty_arrow_file_is_read_back(empty: fastprof.Profile, tmp_path: Path) -> None:
    path = str(tmp_path / "e.arrows")
    empty.convert(path)
    read = fastprof.open(path)
    assert (read.view, [*read.rows()]) == (empty.view, [])
    assert fastprof.top(path).rows == []


@pytest.mark.parametrize("wrong", [5, None, [5], [None], "a\0b"], ids=repr)
def test_what_is_no_input_is_a_usage_error(wrong: Any, tmp_path: Path) -> None:
    made, out = fastprof.from_stacks(STACKS), str(tmp_path / "x.folded")
    calls = [
        lambda: fastprof.top(wrong),
        lambda: fastprof.trend(wrong),
        lambda: fastprof.diff(made, wrong),
        lambda: fastprof.merge(wrong, out),
        lambda: fastprof.report(wrong),
        lambda: fastprof.convert(wrong, out),
        lambda: fastprof.open(wrong),
        lambda: fastprof.info(wrong),
        lambda: fastprof.explain(wrong),
        lambda: fastprof.explain(made, wrong or 5),  # type: ignore[arg-type]
        lambda: made.convert(wrong, to="folded"),
    ]
    for call in calls:
        with pytest.raises(fastprof.UsageError, match=r"^a path is "):
            call()


def test_a_path_object_with_a_nul_byte_is_a_usage_error() -> None:
    with pytest.raises(fastprof.UsageError, match=r"^a path is "):
        fastprof.open(Path("a\0b"))


MADE = fastprof.from_stacks(STACKS)
MESSAGES = {
    "pattern: 5 is not a string or a pattern of strings": lambda wrong: MADE.rename(wrong, "b"),
    "new: 5 is not a string": lambda wrong: MADE.rename("a", wrong),
    "the query is 5, expected a text": MADE.sql,
    "labels: 5 is not a dict": MADE.labelled,
    "from_stacks: rows is 5, expected an iterable of rows": fastprof.from_stacks,
    "from_calls: rows is 5, expected an iterable of rows": fastprof.from_calls,
    "from_stacks: values is 5, which is no list of names": lambda wrong: fastprof.from_stacks([], values=wrong),
    "from_stacks: values is [5], which is no list of names": lambda wrong: fastprof.from_stacks([], values=[wrong]),
    "from_stacks: values is 'cpu', which is no list of names": lambda wrong: fastprof.from_stacks([], values="cpu"),
    "from_stacks: labels is no list": lambda wrong: fastprof.from_stacks([], labels=wrong),
    "progress: 5 is not callable": lambda wrong: MADE.top() and fastprof.top(MADE, progress=wrong),
    "an id is 'x', expected an integer": lambda wrong: MADE.stack("x"),  # type: ignore[arg-type]
    "the id 5000 is not one of the ": lambda wrong: MADE.stack(5000),
    "the id -1 is not one of the ": lambda wrong: MADE.function_name(-1),
    "row 0: a stack is set, which has no order": lambda wrong: fastprof.from_stacks([({"a", "b"}, 5)]),
    "different lengths: name 1, start 2, end 1": lambda wrong: fastprof.from_spans(
        {"name": ["a"], "start": [0, 3], "end": [3]}
    ),
}


@pytest.mark.parametrize("says", MESSAGES)
def test_wrong_types_are_usage_errors(says: str) -> None:
    call: Any = MESSAGES[says]
    with pytest.raises(fastprof.UsageError) as found:
        call(5)
    assert says in str(found.value)


def test_an_id_before_rows_are_read_is_also_an_index_error() -> None:
    with pytest.raises(IndexError, match="the id 1 is not one of the 1 stacks of rows read so far"):
        fastprof.from_stacks(STACKS).stack(1)


def test_value_types_of_a_profile_are_values() -> None:
    assert fastprof.from_stacks([], values=MADE.value_types).value_types == MADE.value_types


def test_progress_that_cannot_be_called(folded: str) -> None:
    for call in (fastprof.open, fastprof.top, fastprof.info, fastprof.explain):
        with pytest.raises(fastprof.UsageError, match="progress: 5 is not callable"):
            call(folded, progress=5)  # type: ignore[operator]


def test_a_folder_as_output_is_a_file_error(tmp_path: Path) -> None:
    with pytest.raises(fastprof.FileError, match="is a directory") as found:
        MADE.convert(str(tmp_path), to="folded")
    assert found.value.errno == errno.EISDIR


def test_labels_are_of_samples_of_stacks() -> None:
    graph, timeline = fastprof.from_calls([("main", 3)]), fastprof.from_spans([("a", 0, 5)])
    for profile, view in ((graph, "graph"), (timeline, "timeline")):
        says = f"it applies to samples of stacks, and this is a {view}"
        with pytest.raises(fastprof.UsageError, match=says):
            profile.labelled(host="a")
        with pytest.raises(fastprof.UsageError, match=says):
            profile.top(set_label={"host": "a"})


def test_explain_names_a_function_without_a_name() -> None:
    found = fastprof.explain(fastprof.from_calls([("", 30), ("a", 5)]))  # type: ignore[arg-type]
    assert isinstance(found, fastprof.Explanation)
    assert found.findings[0].text.startswith("[unknown] itself has ")
    assert all(one.name for one in (*found.functions, *found.path, *found.lines))
