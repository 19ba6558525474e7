"""A Profile is a value: an input of every function, and the base of others; what arguments may be."""

from __future__ import annotations

import inspect
import io
import re
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import fastprof
from fastprof.cli import main
from tests.support.paths import CORPUS

LABELLED = CORPUS / "pprof/good/go-cpulabels.pb.gz"
GRAPH = CORPUS / "callgrind/good/cfi.callgrind"
TRACE, PROGRAM = CORPUS / "xray/good/fdr5-pool-clang19.xray", CORPUS / "xray/pool-clang19"
SMALL = CORPUS / "gperftools/good/small.prof"


def folded(*inputs: Any, **options: Any) -> bytes:
    out = io.BytesIO()
    fastprof.convert(inputs, out, to="folded", **options)
    return out.getvalue()


def rows(found: fastprof.Top) -> list[tuple[str, int, int | None]]:
    return [(row.name, row.self, row.inclusive) for row in found.rows]


USES: dict[str, Callable[[Any, Path], Any]] = {
    "top": lambda one, _: rows(fastprof.top(one)),
    "diff": lambda one, _: fastprof.diff(one, LABELLED, n=3).rows,
    "info": lambda one, _: fastprof.info(one).facts,
    "convert": lambda one, _: folded(one),
    "annotate": lambda one, _: fastprof.annotate(one).totals,
    "sql": lambda one, _: [*fastprof.sql(one, "select function, count(*) from samples group by 1 order by 1").rows()],
    "report": lambda one, _: dict(fastprof.report(one).rows),
    "archive": lambda one, to: fastprof.archive_add(to / "a.fpa", one, name="x").facts["added"],
}


@pytest.mark.parametrize("use", USES)
def test_a_profile_is_an_input(use: str, tmp_path: Path) -> None:
    (tmp_path / "second").mkdir()
    with fastprof.open(LABELLED) as profile:
        assert USES[use](profile, tmp_path) == USES[use](str(LABELLED), tmp_path / "second")


@pytest.mark.parametrize("use", [use for use in USES if use != "archive"])
def test_its_filters_are_those_of_the_function(use: str, tmp_path: Path) -> None:
    """The same result as of a file with only these rows."""
    only = tmp_path / "go-cpulabels.pb.gz"
    fastprof.convert(LABELLED, only, label=["kind=text"])
    chosen = fastprof.open(LABELLED).where(labels={"kind": "text"})
    got, expected = USES[use](chosen, tmp_path), USES[use](str(only), tmp_path)
    if use == "info":
        got, expected = got["totals"], expected["totals"]
    assert got == expected


def test_two_parts_of_one_profile_are_compared() -> None:
    profile = fastprof.open(LABELLED)
    old, new = profile.where(labels={"kind": "text"}), profile.where(labels={"kind": "tree"})
    found = fastprof.diff(old, new)
    assert [(value.old, value.new) for value in found.values] == [(15, 69), (150_000_000, 690_000_000)]
    assert fastprof.diff(profile.where(function="job"), LABELLED).values[0].old == 165
    assert fastprof.top([old, new]).total == 840_000_000


def test_several_with_filters_of_their_own_are_merged(tmp_path: Path) -> None:
    parts = [fastprof.open(LABELLED).where(labels={"kind": kind}) for kind in ("text", "tree", "sort")]
    rest = fastprof.open(LABELLED).where(labels={"kind": ["text", "tree", "sort"]})
    fastprof.merge(parts, tmp_path / "a.pb.gz")
    rest.convert(tmp_path / "b.pb.gz")
    assert rows(fastprof.top(tmp_path / "a.pb.gz")) == rows(fastprof.top(tmp_path / "b.pb.gz")) != []


def test_conditions_of_a_chain_are_joined_by_and() -> None:
    profile = fastprof.open(LABELLED)
    assert folded(profile.where(labels={"kind": "text"}).where(labels={"tenant": "t0"})) == folded(
        LABELLED, label=["kind=text", "tenant=t0"]
    )
    one_by_one = profile.where(labels={"kind": ["text", "tree"]}).where(labels={"kind": ["tree", "sort"]})
    assert folded(one_by_one) == folded(LABELLED, label=["kind=tree"])
    inner = profile.where(function="sort").where(function=r"^main\.job$")  # the last one would keep all of job
    assert folded(inner) == folded(LABELLED, function="sort") != folded(LABELLED, function="job")
    with pytest.raises(fastprof.NothingLeft):
        folded(profile.where(labels={"kind": "text"}).where(labels={"kind": "tree"}))


def test_steps_apply_in_their_order() -> None:
    renamed = fastprof.open(LABELLED).rename(r"^main\.", "app/")
    assert folded(renamed.where(function="^app/job$")) == folded(
        fastprof.open(LABELLED).where(function=r"^main\.job$").rename(re.compile(r"^MAIN\.", re.I), "app/")
    )
    with pytest.raises(fastprof.NothingLeft):
        folded(renamed.where(function=r"^main\.job$"))
    twice = renamed.rename("^app/", "x$")
    assert b"x$job" in folded(twice) and b"app/" not in folded(twice)
    assert b"/usr" not in folded(LABELLED, mod_filename=[]) and fastprof.open(LABELLED).rename("a/b", of="file")
    with pytest.raises(fastprof.UsageError, match="of: 'line' is not one of function, file, object"):
        renamed.rename("a", of="line")  # type: ignore[arg-type]


def test_times_and_threads_of_a_timeline() -> None:
    trace = fastprof.open(TRACE, symbols=PROGRAM)
    part = trace.where(time="10%:20%")
    assert folded(part) == folded(TRACE, symbols=[PROGRAM], time_range="10%:20%") != folded(trace)
    (thread, *_) = {row["thread"] for row in part.rows("spans")}
    assert folded(part.where(threads=thread)) == folded(
        TRACE, symbols=[PROGRAM], time_range="10%:20%", threads=[thread]
    )
    assert fastprof.diff(part, trace).values[0].old < fastprof.diff(part, trace).values[0].new


def test_labels_reach_samples() -> None:
    inputs = [fastprof.open(LABELLED).labelled({"host.name": n}, zone="z") for n in range(2)]
    found = fastprof.top(inputs, by=("label:host.name",))
    assert {row.name for row in found.rows} == {"0", "1"}
    again = inputs[0].labelled(more="yes").where(labels={"zone": "z"})
    assert [row.name for row in fastprof.top(again, by=("label:host.name", "more")).rows] == ["host.name=0, more=yes"]


def test_options_that_a_function_cannot_use_are_no_error_but_filters_are() -> None:
    assert fastprof.info(fastprof.open(TRACE, symbols=[PROGRAM])).facts["format"] == "xray"
    with pytest.raises(fastprof.UsageError, match="has no effect"):
        fastprof.open(GRAPH).where(time=(0, 1))
    with pytest.raises(fastprof.UsageError, match="lenent"):
        fastprof.top(fastprof.open(GRAPH), lenent=True)  # type: ignore[call-arg]
    with pytest.raises(fastprof.UsageError, match="was opened as callgrind, not as folded"):
        fastprof.top(fastprof.open(GRAPH, from_="callgrind"), from_="folded")


@pytest.mark.parametrize(
    ("use", "what"),
    [
        (lambda p: p.where(time="2s:1s"), "^time: '2s:1s' is not a range"),
        (lambda p: p.where(labels={"kind": "text"}), r": labels= has no effect with xray"),
        (lambda p: p.where(time="5s:").top(), "no row matches time=5s:"),
        (lambda p: [*p.where(time="5s:")], "no row matches time=5s:"),
        (lambda p: fastprof.diff(p, p.where(time="5s:").rename("a", "b")), "no row matches time=5s:"),
        (lambda p: fastprof.top(p, time_range="5s:"), "no row matches time_range=5s:"),
        (lambda p: fastprof.open(TRACE, time_range="5s:").where(threads=[1]).top(), "no row matches time_range=5s:"),
        (lambda p: p.hide(object="("), r"^object: '\(' is not a regular expression"),
        (lambda p: p.below(path=5), "^path: 5 is not a string"),
        (lambda p: p.rename("("), r"^pattern: '\(' is not a regular expression"),
    ],
)
def test_errors_name_the_arguments_of_steps(use: Callable[[fastprof.Profile], Any], what: str) -> None:
    with pytest.raises(fastprof.UsageError, match=what):
        use(fastprof.open(TRACE))


def test_a_batch_takes_paths(tmp_path: Path) -> None:
    """Its workers are other processes."""
    assert fastprof.batch_plan(fastprof.open(SMALL), tmp_path / "a.plan").files == 1
    for one in (fastprof.from_stacks([(["f"], 1)]), fastprof.open(SMALL).where(function="f"), SMALL.read_bytes()):
        for function in (fastprof.batch_plan, fastprof.batch_merge, fastprof.batch_archive):
            with pytest.raises(fastprof.UsageError, match="a batch takes paths, which other processes read"):
                function([one], tmp_path / "a.folded")  # type: ignore[operator]
    assert [one.name for one in tmp_path.iterdir()] == ["a.plan"]


def test_every_function_that_takes_a_path_takes_progress(tmp_path: Path) -> None:
    store, seen, moved = tmp_path / "a.fpa", list[str](), list[int]()

    def progress(source: Any) -> None:
        seen.append(source.name)
        source.on_progress(moved.append, lambda: None)

    takers = {name for name in fastprof.__all__ if inspect.isfunction(getattr(fastprof, name))}
    makers = {name for name in takers if name.startswith("from_")}
    lacking = {name for name in takers if "progress" not in inspect.signature(getattr(fastprof, name)).parameters}
    assert lacking == makers
    assert all("progress" in (getattr(fastprof, name).__doc__ or "") for name in takers - makers)
    fastprof.archive_add(store, [SMALL, GRAPH], progress=progress)
    fastprof.archive_rm(store, SMALL.name, progress=progress)
    assert seen == [str(SMALL), str(GRAPH)]
    assert len(fastprof.archive_list(store, progress=progress)) == 1 and len(seen) == 2
    assert fastprof.archive_verify(store, progress=progress) == [] and seen[2:] == [str(store)] * 2
    moved.clear()
    fastprof.archive_compact(store, progress=progress)
    assert seen[4:] == [str(store)] and len(moved) == 1 and moved[0] > 0
    with pytest.raises(fastprof.UsageError, match="progress: 5 is not callable"):
        fastprof.batch_status(tmp_path, progress=5)  # type: ignore[arg-type]
    steps = fastprof.open(GRAPH, progress=progress).hide("g")
    assert [*steps.sql("select count(*) from graph").rows()] == [(2,)] and seen[5:] and {*seen[5:]} == {str(GRAPH)}
    sums: list[tuple[int, int]] = []
    fastprof.batch_merge([SMALL, SMALL], tmp_path / "a.folded", progress=lambda *of: sums.append(of))
    assert sums == [(0, 1), (1, 1)]


def test_an_output_that_is_the_input_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.pb.gz"
    path.write_bytes(LABELLED.read_bytes())
    with pytest.raises(fastprof.UsageError, match="is an input"):
        fastprof.open(path).where(labels={"kind": "text"}).convert(path)
    assert path.read_bytes() == LABELLED.read_bytes()


def test_a_closed_profile_and_a_pipe_are_no_inputs() -> None:
    profile = fastprof.open(GRAPH)
    profile.close()
    with pytest.raises(fastprof.UsageError, match="is closed"):
        fastprof.top(profile)
    with pytest.raises(fastprof.UsageError, match="a pipe can be read only once; give it to the function itself"):
        fastprof.open(Reading(GRAPH.read_bytes())).top()
    with pytest.raises(fastprof.UsageError, match="a pipe has value types once a batch was read"):
        _ = fastprof.open(Reading(GRAPH.read_bytes())).value_types
    seekable = io.BytesIO(GRAPH.read_bytes())
    with pytest.raises(fastprof.UsageError, match="a file object can be read only once"):
        fastprof.top([fastprof.open(seekable), fastprof.open(seekable)])
    assert fastprof.open(seekable).top().total == 14


def test_frames_of_a_stack_are_those_of_the_table() -> None:
    for path in (LABELLED, SMALL):
        profile = fastprof.open(path)
        found: dict[int, list[Any]] = {}
        for row in profile.rows("frames"):
            found.setdefault(row["stack_id"], []).append(
                (row["function"] or "", row["file"] or "", row["line"] or 0, row["object"] or "", row["address"] or 0)
            )
        assert found == {stack: [*map(tuple, profile.stack(stack))] for stack in found}
        with pytest.raises(IndexError):
            profile.stack(1 << 30)


def test_value_types_before_a_row_is_read() -> None:
    assert [value.name for value in fastprof.open(GRAPH).value_types] == ["Ir", "Dr"]
    assert [*fastprof.open(TRACE).value_types] == []
    profile = fastprof.open(LABELLED)
    assert [(one.name, one.unit) for one in profile.value_types] == [("samples", "count"), ("cpu", "nanoseconds")]
    assert sum(len(batch) for batch in profile) == 171


def test_a_page_is_a_value_or_goes_to_a_file_object(tmp_path: Path) -> None:
    fastprof.report(GRAPH, tmp_path / "a.html")
    with (tmp_path / "b").open("w+b") as out:
        logged = fastprof.report(GRAPH, out)
    page = fastprof.open(GRAPH).page()
    assert page.html == (tmp_path / "a.html").read_text() == (tmp_path / "b").read_text()
    assert "srcdoc" in page._repr_html_() and "srcdoc" not in logged._repr_html_()
    with pytest.raises(ValueError, match="file object"):
        _ = logged.html
    with (tmp_path / "a.svg").open("wb") as file:
        fastprof.report(GRAPH, file)
    assert (tmp_path / "a.svg").read_bytes().startswith(b"<svg")


class Reading:
    """A file object that has `read` alone; it returns a few bytes at a time."""

    def __init__(self, data: bytes, more: bytes = b"") -> None:
        self._file, self._more = io.BytesIO(data), more

    def read(self, n: int) -> bytes:
        return self._file.read(min(n, 1000)) + self._more


def test_what_an_input_may_be() -> None:
    data = LABELLED.read_bytes()
    expected = folded(LABELLED)
    for one in (data, bytearray(data), memoryview(data), array("B", data), Reading(data)):
        assert folded(one) == expected
        assert isinstance(one, Reading) or fastprof.top(one).rows == fastprof.top([one]).rows
    for wrong in (array("i", [1]), 5, [5]):
        with pytest.raises(fastprof.UsageError, match="a path is"):
            fastprof.top(wrong)  # type: ignore[arg-type]
    with pytest.raises(fastprof.FastprofError, match="reading returned 1201000 bytes, expected"):
        folded(Reading(b"a;b 1\n" * 100_000, b"a;b 1\n" * 200_000))


def test_what_an_argument_may_be(capsys: pytest.CaptureFixture[str]) -> None:
    numpy = pytest.importorskip("numpy")
    assert folded(LABELLED, label={"kind": "text"}) == folded(LABELLED, label="kind=text")
    assert folded(LABELLED, function=re.compile("JOB", re.IGNORECASE)) == folded(LABELLED, function="job")
    assert folded(TRACE, symbols=PROGRAM) == folded(TRACE, symbols=[PROGRAM])
    assert len(fastprof.top(LABELLED, n=numpy.int16(3)).rows) == 3
    kinds = numpy.array(["text", "tree"])
    assert folded(LABELLED, label={"kind": kinds}) == folded(LABELLED, label=["kind=text", "kind=tree"])
    tid, *_ = (row["thread"] for row in fastprof.open(TRACE).rows())
    threads: list[Any] = [[tid], (tid,), {tid}, range(tid, tid + 1), numpy.array([tid]), numpy.uint32(tid), tid]
    assert len({fastprof.open(TRACE).where(threads=one).top().total for one in threads}) == 1
    times = (0, numpy.uint64(2**63)), numpy.array([0, 2**63], dtype="u8"), "0:9223372036854775808"
    assert len({fastprof.open(TRACE).where(time=one).top().total for one in times}) == 1
    none: list[Any] = [iter([tid]), {tid: 1}, numpy.array(tid), numpy.zeros((1, 2), int), 2.5]
    for wrong in none:
        with pytest.raises(fastprof.UsageError, match="threads: "):
            fastprof.open(TRACE).where(threads=wrong)
    with pytest.raises(fastprof.UsageError, match="is not a whole number"):
        fastprof.top(LABELLED, n=numpy.bool_(True))
    with pytest.raises(fastprof.UsageError, match="is not a string"):
        fastprof.top(LABELLED, function=re.compile(b"x"))  # type: ignore[arg-type]
    assert main(["top", str(LABELLED), "--function", "job", "-n", "1"]) == 0
    capsys.readouterr()
