"""Chrome traces of many writers against tables by an independent reader (../shared/data)."""

from __future__ import annotations

import gzip
import re
from collections import Counter, defaultdict
from pathlib import Path
from typing import NamedTuple

import pytest

from fastprof.core.errors import FastprofError
from fastprof.core.log import Log
from fastprof.core.options import Options
from tests.support.paths import needs_shared, shared_folder
from tests.support.product import OPS, batches, open_input

FOLDER = shared_folder("chrome-trace/read")
FILES = [path for path in sorted(FOLDER.glob("*.json*")) if path.is_file()]
# Names whose rows differ, and why ours are right.
BETTER = {
    "edge-BE-not-in-time-order.json": {"a"},  # the table pairs begins and ends in file order
    "edge-two-documents.json": {"b"},  # the table has only the first document
    "edge-ids.json": {"e", "i", "j"},  # a missing id is not an empty one, and 0 is "0"
    "edge-no-dur.json": {"nulldur"},  # dur null means no dur
    "foreign-firefox-test.chrome-unchunked.json": {"RendererVisibility", "RendererAudioState"},  # phases S and F
    "edge-kineto-backslash.json": {"C:\\Users\\me\train.py(3): f"},
    "edge-kineto-nan.json": {"k"},
}
UNNAMED = {"-", "[unknown]", '{"a":1}'}  # the tables show these as names
# The tables lose parents given as children of nodes further up, and the end of the first.
CHILDREN = {"foreign-firefox-chrome-trace-issue-5429.json.gz", "foreign-firefox-test.chrome-unchunked.json"}


class Calls(NamedTuple):
    count: int
    total: int  # nanoseconds
    own: int
    open: int  # calls without an end, not in the times
    async_: bool = False  # asynchronous calls: the tables do not subtract inner ones


class Table(NamedTuple):
    calls: dict[str, Calls]  # by name
    names: set[str]  # of threads
    stacks: Counter[tuple[str, str]]  # by type and stack
    error: str


def expected(path: Path) -> Table:
    table = path.parent / "expected" / f"{path.name}.tsv"
    text = table.read_text() if table.exists() else gzip.open(f"{table}.gz", "rt").read()
    lines = [line.split("\t") for line in text.splitlines()]
    sums: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0, 0, 0])
    found = Table({}, set(), Counter(), next((line[1] for line in lines if line[0] == "error"), ""))
    for line in lines:
        if line[0] == "slice":
            row = sums[line[4].replace("\\\\", "\\")]
            for k in range(4):
                row[k] += int(line[5 + k])
            row[4] |= line[3] == "async"
        elif line[0] == "thread" and line[3] != "-":
            found.names.add(line[3])
        elif line[0] == "stack":
            found.stacks[line[3], line[5]] += int(line[4])
    found.calls.update({name: Calls(*row[:4], bool(row[4])) for name, row in sums.items()})
    return found


def ours(path: Path) -> tuple[dict[str, Calls], set[str], Log]:
    """Read the rows: calls by name, names of threads, what the reader counts."""
    sums: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    opened = open_input(path)
    threads: dict[int, list[list[int]]] = defaultdict(list)  # open calls: function, begin, time in callees
    model = opened.model
    for batch in batches(opened) if opened.reader.view == "timeline" else ():
        for op, thread, function, time in zip(
            batch["op"], batch["thread"], batch["function"], batch["time"], strict=True
        ):
            stack = threads[int(thread)]
            if OPS[op] in ("enter", "enter-args"):
                stack.append([int(function), int(time), 0])
                continue
            if OPS[op] != "exit":
                continue
            called, begin, inner = stack.pop()
            assert called == function
            row = sums[model.get_function(called).name.decode("utf-8", "replace")]
            row[0] += 1
            row[1] += int(time) - begin
            row[2] += int(time) - begin - inner
            if stack:
                stack[-1][2] += int(time) - begin
    for stack in threads.values():
        for called, _, _ in stack:
            row = sums[model.get_function(called).name.decode("utf-8", "replace")]
            row[0] += 1
            row[3] += 1
    names = {name.decode() for part in model.parts for _, _, name in part.extra.get("thread_names", [])}
    return {name: Calls(*row) for name, row in sums.items()}, names, opened.log


def samples(path: Path) -> Counter[tuple[str, str]]:
    opened, found = open_input(path, Options(samples=True)), Counter[tuple[str, str]]()
    model = opened.model
    for batch in batches(opened):
        for i in range(len(batch)):
            stack, frames = int(batch["stack"][i]), []
            while stack:
                stack, frame = model.row("stacks", stack)
                function = model.row("lines", model.row("frames", frame)[4])[0]
                frames.append(model.get_function(function).name.decode())
            for k, type_ in enumerate(model.parts[batch.part].value_types):
                found[type_.name, ";".join(reversed(frames)) or "-"] += int(batch.values(k)[i])
    return found


def innermost(stacks: Counter[tuple[str, str]]) -> Counter[str]:
    found = Counter[str]()
    for (type_, stack), value in stacks.items():
        name = stack.split(";")[-1]
        found[name] += value if type_ == "samples" and name != "-" else 0
    return +found


def wrong(
    calls: dict[str, Calls], wanted: dict[str, Calls], divided: int = 0
) -> list[tuple[str, Calls | None, Calls | None]]:
    """Each call may differ by the nanosecond to which its times are rounded.

    The tables put PyTorch's annotations beside the functions that they overlap.  We divide these functions instead:
    they have as many calls more, and an annotation's own time is what its callees leave."""
    found = []
    for name in {*calls, *wanted}:
        one, other = calls.get(name), wanted.get(name)
        if (
            not one
            or not other
            or one.open != other.open
            or not 0 <= one.count - other.count <= divided
            or abs(one.total - other.total) > one.count
            or (abs(one.own - other.own) > one.count and not other.async_ and not divided)
        ):
            found.append((name, one, other))
    return found


@needs_shared
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_calls_and_samples(path: Path) -> None:
    wanted = expected(path)
    if not wanted.calls and not wanted.stacks and "array" not in path.name and not path.name.startswith("edge-kineto"):
        with pytest.raises(FastprofError):
            ours(path)
        return
    calls, names, log = ours(path)
    better = BETTER.get(path.name, set()) | UNNAMED
    divided = log.repairs["divided-calls"]
    differ = [row for row in wrong(calls, wanted.calls, divided) if row[0] not in better]
    # a profiler's spans for itself are no calls
    spans = [name for name, one, _ in differ if one is None and re.match(r"PyTorch Profiler|__cupti_profiler__", name)]
    assert [row for row in differ if row[0] not in spans] == []
    assert len(spans) <= log.not_representable["profiler-spans"]
    assert {name for name in wanted.names if not any(known.startswith(name) for known in names)} <= {"7"}
    if wanted.stacks:
        found = samples(path)
        if path.name not in CHILDREN:
            assert +found == +wanted.stacks
        else:
            assert innermost(found) == innermost(wanted.stacks)
