"""`fastprof explain`: the same page for every format, whose figures are those of `top`."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

import fastprof
from fastprof.cli import main
from fastprof.core.errors import FastprofError, UsageError
from fastprof.verbs.explain import Comparison, Explanation, Finding
from fastprof.verbs.explain.categories import is_unnamed, kinds_of
from tests.support.paths import CORPUS

GOOD = [
    path for folder in CORPUS.glob("*/good") for path in sorted(folder.iterdir())[::3] if path.stat().st_size < 200_000
]
# the sum of another value type is beyond 64 bits: `info` fails, too
BEYOND = {"everything.callgrind", "two_fractions.folded"}


def one(path: Any, **given: Any) -> Explanation:
    found = fastprof.explain(path, **given)
    return found


def page(capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    capsys.readouterr()
    assert main(["explain", *words]) == 0
    return capsys.readouterr().out.splitlines()


def test_lines_of_unknown_files_have_their_numbers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "stacks.pb"
    fastprof.from_stacks([([("main", "", 4), ("f", "", 7)], 3), ([("main", "", 5)], 1)]).convert(path)
    text = "\n".join(page(capsys, str(path)))
    assert "  f  [???:7]" in text.split("lines by self cost")[1] and "main  [???:4]" in text
    assert "???" not in text.split("functions by self cost")[1].split("\n\n")[0]


def test_every_format(capsys: pytest.CaptureFixture[str]) -> None:
    """The functions are those of `top`, and no page is longer than 60 lines."""
    formats = set()
    for path in GOOD:
        if path.name in BEYOND:
            continue
        try:
            top = fastprof.top(path, n=10)
        except FastprofError as error:
            with pytest.raises(type(error)):
                one(path)
            continue
        found = one(path)
        rows = [(row.name or "[unknown]", *row[1:5], row.inclusive, row.calls) for row in top.rows]
        assert [(*f[:5], f.inclusive, f.calls) for f in found.functions] == rows, path
        assert (found.total, found.value, found.n_functions) == (top.total, top.value, top.n_rows), path
        lines = page(capsys, str(path))
        assert 1 <= len(lines) <= 60 and max(map(len, lines)) < 200, path
        for step in found.path:
            assert abs(step.inclusive) <= abs(found.total) or not found.estimated, (path, step)
        formats.add(found.recorded.format)
    assert len(formats) >= 20


STACKS = """\
main;work 50
main;work;malloc;_int_malloc 10
main;pthread_mutex_lock;__lll_lock_wait;futex_wait_[k] 30
main;runtime.gcDrain 9
main;[unknown] 1
"""


def test_what_stands_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "in.folded").write_text(STACKS)
    found = one(tmp_path / "in.folded")
    path = [("main", 100, 0), ("work", 60, 50), ("malloc", 10, 0), ("_int_malloc", 10, 10)]
    assert [(step.name, step.inclusive, step.self) for step in found.path] == path
    shares = {finding.code: finding.share for finding in found.findings}
    assert shares == {
        "one-function": 0.5,
        "waiting": 0.3,
        "locks": 0.3,
        "kernel": 0.3,
        "allocator": 0.1,
        "collector": 0.09,
    }
    assert [finding.share for finding in found.findings] == sorted(shares.values(), reverse=True)
    doubts = {finding.code: finding.share for finding in found.doubts}
    assert doubts == {"small-sample": None, "no-names": 0.01}
    lines = page(capsys, str(tmp_path / "in.folded"))
    assert "  30.0 % is in locks: pthread_mutex_lock called by main" in lines and "what is doubtful" in lines
    (lock,) = (finding for finding in found.findings if finding.code == "locks")
    assert (lock.function, lock.caller) == ("pthread_mutex_lock", "main")
    (tmp_path / "in.folded").write_text(f"{STACKS}other;malloc 15\nother;loop;malloc 1\n")
    (heap,) = (finding for finding in one(tmp_path / "in.folded").findings if finding.code == "allocator")
    assert heap.text == "22.4 % is in the allocator, 12.9 % in malloc called by other"


def test_long_paths_are_short(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Calls of the same cost are one line, and the middle of a path is left out."""
    stacks = [";".join(f"f{i}" for i in range(n)) + " 1" for n in range(50, 80)] * 20
    (tmp_path / "in.folded").write_text("\n".join([*stacks, ";".join(f"f{i}" for i in range(200)) + " 1000"]))
    found = one(tmp_path / "in.folded")
    assert [(step.name, step.skipped) for step in found.path][:2] == [("f0", 0), ("f49", 48)]
    assert found.path[-1].name == "f199" and found.path[-1].skipped == 119
    text = "\n".join(page(capsys, str(tmp_path / "in.folded")))
    assert "... 48 calls of the same cost ..." in text and "calls more" in text and "f199" in text


def test_the_longest_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever a profile contains, its page has 60 lines."""
    kinds = ("malloc", "pthread_mutex_lock", "runtime.gcDrain", "sleep", "x_[k]")
    deep = [";".join(f"f{n}_{i}" for n in range(40, 40 - k, -1) for i in range(3)) for k in range(1, 30)]
    rows = [f"{stack} 1" for stack in deep] + [f"{deep[-1]};{';'.join(kinds)} 20"]
    rows += [f"{';'.join(kinds)};g{i};g{i + 1} 1" for i in range(20)]
    (tmp_path / "old.folded").write_text("\n".join(rows))
    (tmp_path / "new.folded").write_text("\n".join(row.replace(" 1", " 2").replace("g1", "h1") for row in rows))
    old, new = str(tmp_path / "old.folded"), str(tmp_path / "new.folded")
    found = one(old)
    many = [Finding("x", f"{i} " + "word " * 60, None) for i in range(20)]
    for page_ in (found, fastprof.explain(old, new)):
        shown = page_._replace(doubts=many)
        if isinstance(shown, Explanation):
            shown = shown._replace(findings=many, lines=shown.functions[:3])
        lines = str(shown).splitlines()
        assert 50 < len(lines) <= 60 and "... 13 more; --json has all" in lines[-1]
    lines = page(capsys, old)
    assert len(lines) <= 60 and "calls of the same cost" in "".join(lines)


def test_kinds_of_work() -> None:
    assert kinds_of("__lll_lock_wait", "") == {"locks"}
    assert kinds_of("futex_wait_queue", "[kernel.kallsyms]") == {"waiting", "kernel"}
    assert kinds_of("operator new(unsigned long)", "libstdc++.so.6") == {"allocator"}
    assert kinds_of("runtime.mallocgc", "") == {"allocator"} and kinds_of("runtime.gcBgMarkWorker", "") == {"collector"}
    assert kinds_of("sync.(*Mutex).Lock", "") == {"locks"} and kinds_of("main.(*tree).put", "") == frozenset()
    assert kinds_of("runtime.main", "") == kinds_of("sleeper", "") == kinds_of("free_list_test", "") == frozenset()
    assert kinds_of("linux:schedule", "") == {"waiting"} and kinds_of("(sweeping)", "") == {"collector"}
    assert kinds_of("mmap64", "") == frozenset()  # also of files
    assert kinds_of("x" * 1_000_000, "") == frozenset()
    assert all(map(is_unnamed, ("", "[unknown]", "0x1234", "[libc.so.6+0x12ab]", "???", "#9")))
    assert not any(map(is_unnamed, ("main", "deadbeef_", "f", "add", "[no stack]")))


def test_lost_and_short_runs() -> None:
    found = one(CORPUS / "xray" / "good" / "fdr5-pool-clang19.xray")
    assert {"short-run", "no-names"} <= {doubt.code for doubt in found.doubts}
    assert found.findings[0].code == "one-thread" and found.recorded.threads == 4


def test_two_profiles(capsys: pytest.CaptureFixture[str]) -> None:
    """The changes are those of `diff`."""
    old, new = (str(CORPUS / "pair" / f"{side}.callgrind") for side in ("old", "new"))
    found = fastprof.explain(old, new)
    assert isinstance(found, Comparison)
    changed = fastprof.diff(old, new, n=8)
    assert found.changes == changed.changed()[:8] and found.values == changed.values
    assert found.path == one(new).path
    lines = page(capsys, old, new)
    assert "Ir: 494,653 -> 564,427 (+14.1 %)" in lines and len(lines) <= 60
    capsys.readouterr()
    assert main(["explain", old, new, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["schema"] == "fastprof/explain-changes/1"
    with pytest.raises(UsageError, match="no value type is common"):
        fastprof.explain(old, CORPUS / "folded" / "good" / "plain.folded")


def test_print_shows_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    old, new = (CORPUS / "pair" / f"{side}.callgrind" for side in ("old", "new"))
    assert str(fastprof.explain(old)).splitlines() == page(capsys, str(old))
    assert str(fastprof.explain(old, new)).splitlines() == page(capsys, str(old), str(new))


def test_inputs_that_can_be_read_only_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    data = (CORPUS / "pprof" / "good" / "go-cpulabels.pb").read_bytes()
    want = one(data)
    assert one(io.BytesIO(data)).functions == want.functions
    (tmp_path / "in").write_bytes(data)
    with open(tmp_path / "in") as file:
        monkeypatch.setattr("sys.stdin", file)
        assert page(capsys, "-")[0] == "<stdin>: pprof, stacks"
    with pytest.raises(UsageError, match="only once"):
        fastprof.explain("-", "-")
    assert main(["explain", "a", "b", "c"]) == 2


def test_options_apply(capsys: pytest.CaptureFixture[str]) -> None:
    """Also those that one of its readings has no use for."""
    go = CORPUS / "pprof" / "good" / "go-cpulabels.pb"
    assert one(go, value="samples").total == 174
    assert one(go, label=["kind=tree"]).total == fastprof.top(go, label=["kind=tree"]).total
    assert page(capsys, str(go), "--value", "samples", "--demangle", "full")
