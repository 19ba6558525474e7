"""Ten times as many samples of the same stacks need no more memory."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import fastprof
from bench.grown import Pprof
from fastprof import plan
from fastprof.bridges import room
from fastprof.bridges.project import project
from fastprof.bridges.sums import sorted_runs
from fastprof.cli import main
from fastprof.core._c import lib
from fastprof.core.engine import Scan
from fastprof.core.model import Batch, Model, Part, ValueType, empty
from fastprof.core.source import Source
from fastprof.formats.archive.index import codec_of, load
from fastprof.formats.archive.sections import FORGET
from fastprof.verbs import info
from fastprof.verbs.function_costs import FunctionCosts
from fastprof.verbs.page.contexts import Shown
from fastprof.verbs.profile import table_end
from tests.reference import archive, gperftools
from tests.support.archives import write_archive
from tests.support.distinct import INPUTS
from tests.support.paths import REPO
from tests.unit.test_pprof import message, profile, top_level_fields

# peak resident bytes of a conversion; only of this program, unlike ru_maxrss, which includes its parent's
SCRIPT = """
import sys
import fastprof
fastprof.convert([sys.argv[1]], sys.argv[2])
print(next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")) * 1024)
"""
SLACK = 6 << 20  # windows and output buffers grow to their limits; keeping the samples would take ten times as much


def peak(path: Path | str, to: Path) -> int:
    command = [sys.executable, "-c", SCRIPT, str(path), str(to)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=REPO)
    return int(done.stdout)


def gperf(n: int) -> bytes:
    chains = [(1, tuple(range(i + 1, i + 30))) for i in range(500)]
    return gperftools.write(chains * n)


def pprof(n: int) -> bytes:
    fields = top_level_fields(profile().SerializeToString())
    samples = b"".join(f for f in fields if f[0] == 0x12)
    return b"".join(f for f in fields if f[0] != 0x12) + samples * (n * 700) + message(99, bytes(n * 1000))


@pytest.mark.parametrize(("make", "suffix"), [(gperf, ".prof"), (pprof, ".pb")])
def test_memory_is_that_of_the_distinct_stacks(make: object, suffix: str, tmp_path: Path) -> None:
    peaks = []
    for n in (10, 100):
        path = tmp_path / f"{n}{suffix}"
        path.write_bytes(make(n))  # type: ignore[operator]
        peaks.append(peak(path, tmp_path / "out.pb.gz"))
    assert peaks[1] - peaks[0] < SLACK, peaks
    assert peaks[1] < 64 << 20


def test_arcs_of_samples_count_as_much_as_the_samples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """60,000 samples of 12 frames: half of 4 MiB has room for them, but not for their 370,000 arcs."""
    arcs: list[int] = []
    add_up = project._Graph._add_up

    def watched(graph: project._Graph) -> None:
        add_up(graph)
        arcs.append(graph._c.rows.n)

    monkeypatch.setattr(project._Graph, "_add_up", watched)
    INPUTS["stacks"](tmp_path / "in", 60_000)
    fastprof.convert(tmp_path / "in", tmp_path / "out.callgrind", max_memory=4 << 20)
    assert max(arcs) < 100_000 < sum(arcs)


def cpuprofile(folded: str, path: Path) -> None:
    """Write stacks in the format of V8, whose reader keeps them: each is a sample after as many microseconds."""
    ids, nodes, samples = {(): 1}, [{"id": 1, "callFrame": {"functionName": "(root)"}, "children": []}], []
    for line in folded.splitlines():
        stack, n = line.rsplit(" ", 1)
        names = tuple(stack.split(";"))
        for depth in range(1, len(names) + 1):
            if names[:depth] not in ids:
                ids[names[:depth]] = len(nodes) + 1
                nodes[ids[names[: depth - 1]] - 1]["children"].append(len(nodes) + 1)
                frame = {"functionName": names[depth - 1], "scriptId": "1", "url": "", "lineNumber": 0}
                nodes.append({"id": len(nodes) + 1, "callFrame": frame, "children": []})
        samples.append((ids[names], int(n)))
    made = {"nodes": nodes, "startTime": 0, "endTime": sum(n for _, n in samples)}
    made |= {"samples": [node for node, _ in samples], "timeDeltas": [n for _, n in samples]}
    path.write_text(json.dumps(made))


def test_stacks_that_the_model_keeps_are_walked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the limit of memory: each further walk would climb to the root again, from stacks all over the tree."""
    INPUTS["stacks"](tmp_path / "in.pb", 1_500)  # 9,000 stacks with their callers
    fastprof.convert(tmp_path / "in.pb", tmp_path / "in.folded")
    cpuprofile((tmp_path / "in.folded").read_text(), path := tmp_path / "in.cpuprofile")
    walks: list[str] = []

    def counted(of: type, name: str) -> None:
        walk = getattr(of, name)
        monkeypatch.setattr(of, name, lambda *args: walks.append(of.__name__) or walk(*args))

    for of, name in ((FunctionCosts, "_add_up"), (project._Graph, "_add_up"), (Shown, "_take_functions")):
        counted(of, name)
    found = []
    for limit in (1, 1 << 30):
        options = {"max_memory": limit}
        fastprof.convert(path, tmp_path / "out.callgrind", **options)
        fastprof.diff(path, path, tmp_path / "diff.callgrind", **options)
        top = fastprof.top(path, tree="both", **options)
        graphs = [(tmp_path / f"{name}.callgrind").read_bytes() for name in ("out", "diff")]
        found.append((graphs, top.total, top.rows))
    fastprof.report(path, tmp_path / "out.html", max_memory=1)
    assert found[0] == found[1]
    assert sorted(walks) == ["FunctionCosts"] * 2 + ["Shown"] + ["_Graph"] * 6


@pytest.mark.parametrize("suffix", [".pb", ".folded"])
def test_stacks_that_are_made_anew_cost_the_same(suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each stack occurs twice: a cache of stacks from earlier batches would mix them up."""
    path = tmp_path / f"in{suffix}"
    INPUTS["stacks"](tmp_path / "stacks.pb", 20_000)
    fastprof.convert([tmp_path / "stacks.pb"] * 2, path)
    found, emptied = [], []
    empty = Model.empty_stacks
    monkeypatch.setattr(Model, "empty_stacks", lambda model, **of: emptied.append(1) or empty(model, **of))
    for most in (1 << 30, 1):
        monkeypatch.setattr(room, "_MOST_NODES", most)
        fastprof.convert([path, path], tmp_path / "out.callgrind")
        top = fastprof.top([path, path], n=0, tree="both")
        found.append(((tmp_path / "out.callgrind").read_bytes(), top.total, top.rows))
        assert bool(emptied) == (most == 1)
    assert found[0] == found[1]


@pytest.mark.parametrize(("distinct", "expected"), [(1_000, False), (100_000, True)])
def test_stacks_that_repeat_are_not_made_anew(
    distinct: int, expected: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """40,000 samples, of one stack in forty or all different: dropping stacks only pays if they do not recur."""
    path = tmp_path / "in.folded"
    at = [i * 7919 % distinct for i in range(40_000)]
    path.write_text("".join(f"main;f{i % 7};g{i % 1000};h{i} 1\n" for i in at))
    emptied = []
    empty = Model.empty_stacks
    monkeypatch.setattr(Model, "empty_stacks", lambda model, **of: emptied.append(1) or empty(model, **of))
    monkeypatch.setattr(room, "_MOST_NODES", 2048)
    assert fastprof.top(path).total == 40_000
    assert bool(emptied) == expected


def test_stacks_repeat_whatever_their_labels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """20,000 samples of 1,500 stacks, each with a label of its own: their sums outgrow the memory, not the stacks."""
    made = Pprof()
    for k in range(1, 1_501):
        made.function(k, f"f{k}")
        made.location(k, [k])
    for i in range(20_000):
        made.sample([i % 1_500 + 1, i % 50 + 1, 1], [("request", f"r{i}")])
    made.write(tmp_path / "in.pb")
    emptied: list[int] = []
    added: list[int] = []
    empty, add = Model.empty_stacks, sorted_runs.Runs.add
    monkeypatch.setattr(sorted_runs.Runs, "add", lambda runs, pull: added.append(len(emptied)) or add(runs, pull))
    monkeypatch.setattr(Model, "empty_stacks", lambda model, **of: emptied.append(1) or empty(model, **of))
    monkeypatch.setattr(room, "_MOST_NODES", 1024)
    monkeypatch.setattr(room, "LEAST_NODES", 256)
    found: list[bytes] = []
    for limit in (340_000, 1 << 30):
        fastprof.convert(tmp_path / "in.pb", tmp_path / "out.pb", max_memory=limit)
        found.append((tmp_path / "out.pb").read_bytes())
    assert found[0] == found[1]
    assert len(added) >= 3 and not added[-2]  # all runs but the last were spilled while the stacks stayed


@pytest.mark.parametrize(
    ("suffix", "n_inputs", "options"),
    [
        *((suffix, n, {}) for suffix in (".pb", ".folded", ".prof", ".otlp") for n in (1, 2)),
        (".pb", 1, {"function": "function_1"}),
        (".folded", 1, {"mod_funcname": ("s/_1/_2/",)}),
        (".folded", 2, {"set_label": ("k=v",), "tagroot": "k"}),
    ],
)
def test_added_up_stacks_are_the_same_for_every_limit(
    suffix: str, n_inputs: int, options: dict[str, Any], tmp_path: Path
) -> None:
    """With the least limit, stacks are removed, sums sorted and merged many times, and runs joined."""
    INPUTS["stacks"](tmp_path / "in.pb", 20_000)
    emptied, found = [], []
    for limit in (1, 1 << 30):
        out = tmp_path / f"{limit}{suffix}"
        with pytest.MonkeyPatch.context() as patch:
            empty = Model.empty_stacks
            patch.setattr(
                Model,
                "empty_stacks",
                lambda model, empty=empty, limit=limit, **of: emptied.append(limit) or empty(model, **of),
            )
            patch.setattr(room, "_MOST_NODES", limit)
            patch.setattr(sorted_runs, "MOST_RUNS", 3 + limit)
            fastprof.merge([tmp_path / "in.pb"] * n_inputs, out, max_memory=limit, **options)
        found.append(out.read_bytes())
    assert found[0] == found[1]
    assert emptied.count(1) > 9 and emptied.count(1 << 30) < 9


@contextmanager
def emptied_often(limit: int) -> Iterator[list[int]]:
    """With limit 1, stacks are removed after each batch.  Yields what grows by one whenever they are."""
    emptied: list[int] = []
    empty = Model.empty_stacks
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Model, "empty_stacks", lambda model, **of: emptied.append(1) or empty(model, **of))
        patch.setattr(room, "_MOST_NODES", limit)
        patch.setattr(sorted_runs, "MOST_RUNS", 3 + limit)
        yield emptied


@pytest.mark.parametrize("suffix", [".pb", ".folded", ".otlp", ".callgrind", ".speedscope.json", ".profile.json.gz"])
@pytest.mark.parametrize("pair", ["name", "exact"])
def test_differences_are_the_same_for_every_limit(suffix: str, pair: str, tmp_path: Path) -> None:
    """Sums of a side that are not written yet end their references before the other side removes stacks."""
    INPUTS["stacks"](tmp_path / "old.pb", 6_000)
    INPUTS["stacks"](tmp_path / "new.pb", 9_000)
    fastprof.convert(tmp_path / "new.pb", tmp_path / "new.fpa")
    fastprof.convert(tmp_path / "old.pb", tmp_path / "old.folded", mod_funcname=("s/_1/_2/",))
    for old, new in (("old.pb", "new.fpa"), ("old.folded", "new.pb")):
        found = []
        for limit in (1, 1 << 30):
            with emptied_often(limit) as emptied:
                fastprof.diff(tmp_path / old, tmp_path / new, tmp_path / f"out{suffix}", max_memory=limit, pair=pair)
            assert (len(emptied) > 1) == (limit == 1)
            if suffix == ".otlp":  # its dictionary repeats stacks that were removed
                fastprof.convert(tmp_path / "out.otlp", tmp_path / "again", to="folded")
                (tmp_path / "again").rename(tmp_path / "out.otlp")
            found.append((tmp_path / f"out{suffix}").read_bytes())
        assert found[0] == found[1]


def test_pages_are_the_same_for_every_limit(tmp_path: Path) -> None:
    """Fewer contexts than are kept in any case."""
    INPUTS["stacks"](tmp_path / "a.pb", 5_000)
    INPUTS["stacks"](tmp_path / "b.pb", 4_000)
    for inputs in (["a.pb"], ["a.pb", "b.pb"]):
        found = []
        for limit in (1, 1 << 30):
            with emptied_often(limit) as emptied:
                fastprof.report([tmp_path / name for name in inputs], tmp_path / "x.html", max_memory=limit)
            assert (len(emptied) > 1) == (limit == 1)
            found.append((tmp_path / "x.html").read_bytes())
        assert found[0] == found[1]


def test_profiles_of_a_store_are_merged_within_the_limit(tmp_path: Path) -> None:
    """The second store has ten times the profiles, each with 1,000 distinct stacks; all of them would take 60 MiB."""
    stack = ";".join(f"f{k}" for k in range(8))
    peaks = []
    for n in (20, 200):
        folder = tmp_path / f"{n}"
        folder.mkdir()
        for i in range(n):
            rows = (f"{stack};g{i}_{j % 100};h{j} 1\n" for j in range(1000))
            (folder / f"{i:03}.folded").write_text("".join(rows))
        fastprof.archive_add(tmp_path / f"{n}.fpa", sorted(folder.iterdir()))
        peaks.append(peak(f"{tmp_path / f'{n}.fpa'}:*", tmp_path / f"{n}.pb"))
        assert fastprof.top(tmp_path / f"{n}.pb").total == n * 1000
    assert peaks[1] - peaks[0] < SLACK + (32 << 20), peaks


@pytest.mark.parametrize("suffix", [".folded", ".pb", ".speedscope.json", ".profile.json"])
def test_parts_with_stacks_of_their_own_are_the_same_for_every_limit(suffix: str, tmp_path: Path) -> None:
    """The first batch of a part waits while the rows of the part before are written."""
    noise = random.Random(3)

    def parts(model: Model, rows: int, size: int, changed: bool) -> Iterator[Batch]:
        lines = [lib.fp_model_line(model.c, model.function(f"f{i}"), 0, 0, 0) for i in range(300)]
        frames = [lib.fp_model_frame(model.c, 0, 0, 0, line) for line in lines]
        for number in range(1, 4):
            batch = Batch("stacks", 1000, 1)
            batch.c.part = model.add_part(Part([ValueType("samples", "count")], number=number))
            for _ in range(4):
                empty(batch)
                batch.c.n = 1000
                for i in range(1000):
                    stack = 0
                    for _ in range(6):
                        stack = lib.fp_model_stack(model.c, stack, frames[noise.randrange(300)])
                    batch["stack"][i], batch["time"][i], batch["thread"][i], batch["label"][i] = stack, 0, 0, 0
                    batch.values(0)[i] = number
                yield batch

    path = tmp_path / "in.fpa"
    path.write_bytes(write_archive(parts, rows=1, batch=1)[0])
    found = []
    for limit in (1, 1 << 30):
        with emptied_often(limit) as emptied:
            fastprof.convert(path, tmp_path / f"out{suffix}", max_memory=limit)
        assert bool(emptied) == (limit == 1)
        fastprof.convert(tmp_path / f"out{suffix}", tmp_path / "again", to="folded")
        lines = sorted((tmp_path / "again").read_text().splitlines())
        assert sum(int(line.rpartition(" ")[2]) for line in lines) == 4000 * (1 + 2 + 3)
        found.append(lines)
    assert found[0] == found[1]


def test_names_are_looked_up_where_they_change_ids_or_rows() -> None:
    """Inlined functions are frames of their own, so symbols change the rows of `frames` and the ids of stacks."""
    named = [("frames", {"address"}), ("samples", {"stack_id"}), ("samples", {"function"})]
    assert all(table_end(name, Scan(frozenset(columns))).holds.names for name, columns in named)
    assert not table_end("samples", Scan(frozenset({"cpu", "labels"}))).holds.names


def few_at_a_time(monkeypatch: pytest.MonkeyPatch, n: int) -> None:
    """Archives, tables and `info` remove stacks beyond n."""
    writing = plan.writing

    def few(target: Any, code: str = "") -> plan.End:
        end = writing(target, code)
        return end._replace(holds=end.holds._replace(stacks_at_a_time=n)) if end.holds.stacks_at_a_time else end

    monkeypatch.setattr(plan, "writing", few)
    monkeypatch.setattr(info, "END", info.END._replace(holds=info.END.holds._replace(stacks_at_a_time=n)))


def rounds_of(path: Path) -> int:
    source = Source(path)
    found = load(source, codec_of(source), lenient=False)
    (member,) = map(found.member, found.chosen(source))
    return 1 + sum(type_ == FORGET for _, type_, _ in member.sections)


def of_archive(path: Path, folder: Path) -> bytes:
    fastprof.convert(path, folder / "out.pb")
    return (folder / "out.pb").read_bytes()


@pytest.mark.parametrize("source", ["in.pb", "in.folded", "in.prof"])
def test_archives_with_stacks_in_rounds_are_the_same_profile(
    source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also copied, merged, added to a store and with a part of their rows; contexts are counted once."""
    INPUTS["stacks"](tmp_path / "in.pb", 7_000)
    if source != "in.pb":
        fastprof.convert([tmp_path / "in.pb"] * 2, tmp_path / source)
    fastprof.convert(tmp_path / source, tmp_path / "whole.fpa")
    expected = of_archive(tmp_path / "whole.fpa", tmp_path)
    contexts = fastprof.info(tmp_path / "whole.fpa").facts["contexts"]
    fastprof.merge([tmp_path / source] * 2, tmp_path / "two.pb")
    few_at_a_time(monkeypatch, 5_000)
    fastprof.convert(tmp_path / source, tmp_path / "rounds.fpa")
    assert rounds_of(tmp_path / "rounds.fpa") > 2
    fastprof.convert(tmp_path / "rounds.fpa", tmp_path / "copy.fpa")
    assert (tmp_path / "copy.fpa").read_bytes() == (tmp_path / "rounds.fpa").read_bytes()
    assert main(["archive", "add", "-q", *(f"{tmp_path / name}" for name in ("store.fpa", source, "rounds.fpa"))]) == 0
    for path in ("rounds.fpa", "store.fpa:*in*", "store.fpa:*rounds*"):
        assert of_archive(f"{tmp_path / path}", tmp_path) == expected, path  # type: ignore[arg-type]
    assert fastprof.info(tmp_path / "rounds.fpa").facts["contexts"] == contexts
    assert fastprof.info(tmp_path / source).facts["contexts"] == contexts
    fastprof.merge([tmp_path / "rounds.fpa", tmp_path / source], tmp_path / "merged.fpa")
    fastprof.convert(tmp_path / "two.pb", tmp_path / "two.folded")
    fastprof.convert(tmp_path / "merged.fpa", tmp_path / "merged.folded")
    assert sorted((tmp_path / "merged.folded").open()) == sorted((tmp_path / "two.folded").open())


def test_the_reference_reader_reads_stacks_in_rounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    INPUTS["stacks"](tmp_path / "in.pb", 500)

    def rows() -> list[Any]:
        fastprof.convert(tmp_path / "in.pb", tmp_path / "out.fpa")
        (profile,) = archive.read((tmp_path / "out.fpa").read_bytes())
        stacks = profile.tables["stacks"]

        def frames(stack: int) -> tuple[int, ...]:
            return (*frames(stacks[stack][0]), stacks[stack][1]) if stack else ()

        return [(frames(columns["stack"]), values) for _, columns, values in profile.rows]

    expected = rows()
    few_at_a_time(monkeypatch, 1_000)
    assert rows() == expected and rounds_of(tmp_path / "out.fpa") > 1


def test_rounds_do_not_depend_on_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    INPUTS["stacks"](tmp_path / "in.pb", 2_000)
    few_at_a_time(monkeypatch, 3_000)
    for to in ("archive", "parquet", "arrow"):
        found = []
        for limit in (1, 1 << 30):
            fastprof.convert(tmp_path / "in.pb", tmp_path / "out", to=to, max_memory=limit)
            found.append((tmp_path / "out").read_bytes())
        assert found[0] == found[1]


@pytest.mark.parametrize("to", ["parquet", "arrow"])
def test_tables_of_stacks_in_rounds_can_be_joined(to: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    INPUTS["stacks"](tmp_path / "in.pb", 2_000)

    def tables(folder: str) -> list[tuple[str, ...]]:
        """The functions of the stack of each sample."""
        found = []
        for table in ("samples", "frames"):
            fastprof.convert(tmp_path / "in.pb", tmp_path / f"{folder}-{table}", to=to, table=table)
            found.append(read(tmp_path / f"{folder}-{table}").to_pylist())
        stacks: dict[int, list[str]] = {}
        for row in found[1]:
            assert row["depth"] == len(stacks.setdefault(row["stack_id"], []))
            stacks[row["stack_id"]].append(row["function"])
        return [tuple(stacks[row["stack_id"]]) for row in found[0]]

    def read(path: Path) -> Any:
        if to == "parquet":
            from pyarrow import parquet

            return parquet.read_table(path)
        with pyarrow.ipc.open_stream(path.read_bytes()) as stream:
            return stream.read_all()

    expected = tables("whole")
    few_at_a_time(monkeypatch, 3_000)
    assert tables("rounds") == expected and len({*expected}) > 1_900


@pytest.mark.parametrize("suffix", [".speedscope.json", ".profile.json"])
def test_stacks_of_viewers_are_made_when_rows_need_them(suffix: str, tmp_path: Path) -> None:
    """Each stack occurs twice, in samples that precede their weights or their table of stacks."""
    INPUTS["stacks"](tmp_path / "in.pb", 6_000)
    fastprof.convert([tmp_path / "in.pb"] * 2, tmp_path / f"in{suffix}")
    fastprof.convert(tmp_path / "in.pb", tmp_path / "expected.folded")
    found = []
    for limit in (1, 1 << 30):
        with emptied_often(limit) as emptied:
            fastprof.convert(tmp_path / f"in{suffix}", tmp_path / "out.folded", max_memory=limit)
        assert (len(emptied) > 1) == (limit == 1)
        found.append((tmp_path / "out.folded").read_bytes())
    assert found[0] == found[1]
    once = dict(line.rsplit(" ", 1) for line in (tmp_path / "expected.folded").read_text().splitlines())
    twice = dict(line.rsplit(" ", 1) for line in found[0].decode().splitlines())
    assert twice == {stack: str(2 * int(n)) for stack, n in once.items()}
