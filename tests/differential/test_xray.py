"""The product on real XRay logs: against llvm-xray, the references, and the readers of its output."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from fastprof.core.options import Options
from tests.differential import account, llvm_yaml
from tests.differential.peers import need
from tests.differential.record_xray import RECIPES, Recorder, llvm_xray
from tests.differential.test_reference_xray import REFUSED_BY_LLVM
from tests.reference import fold as reference_fold
from tests.reference import xray as reference
from tests.support import product
from tests.support.paths import CORPUS, needs_shared, shared_data

LOGS = sorted(set(RECIPES) - {"profiling"})
CASES = (
    ["fdr1to4-rewritten/" + name for name in ("pool-v1", "pool-v2", "events-v3", "events-v4")]
    + [f"{name}/trace" for name in ("basic3-interp-args-clang19", "fdr5-events-clang19", "fdr5-interp-args-clang14")]
    + ["fdr5-lua-clang19/trace", "fdr5-pool-clang19/trace"]
)


def check_timeline(path: Path) -> reference.Log:
    """Our records equal the reference's; and llvm's, where neither repairs anything."""
    data = path.read_bytes()
    repaired = reference.read(data)
    threads, _ = product.timeline(path)
    ours = {key: reference.clamped(records) for key, records in threads.items()}
    assert ours == {key: records for key, records in repaired.threads.items() if records}
    done = llvm_xray("convert", "-f", "yaml", path)
    if done.returncode == 0 and not repaired.repairs:
        log = reference.read(data, repair=False)
        log.threads = threads
        assert llvm_yaml.differences(log, llvm_yaml.parse(done.stdout)) == []
    return repaired


@pytest.mark.parametrize("name", LOGS)
def test_recorded_by_clang19(clang19: Recorder, name: str) -> None:
    log = check_timeline(clang19.record(name, frequency=True).log)
    assert log.threads or name == "nothing"


@pytest.mark.parametrize("name", LOGS)
def test_recorded_by_clang14(clang14: Recorder, name: str) -> None:
    check_timeline(clang14.record(name, frequency=False).log)


def test_most_recordings_are_compared_with_llvm() -> None:
    # so that REFUSED_BY_LLVM cannot grow until the comparison above is empty
    assert len(REFUSED_BY_LLVM) <= 3


@needs_shared
@pytest.mark.parametrize("case", CASES)
def test_shared_logs(case: str) -> None:
    check_timeline(shared_data("xray", case + ".xray"))


@pytest.mark.parametrize("name", ["basic-arguments", "arguments"])
def test_counts_and_inclusive_times_equal_account(clang19: Recorder, name: str) -> None:
    recording = clang19.record(name)
    log = reference.read(recording.read())
    done = llvm_xray("account", "-f", "csv", "-k", "-d", f"-instr_map={recording.binary}", recording.log)
    theirs = account.parse(done.stdout)
    ours = product.graph(recording.log, Options(time_unit="ticks"))
    calls = {int(f.removeprefix(b"#")): values[1] for f, values in ours.self_.items()}
    assert calls == {function: row[0] for function, row in theirs.items()}
    inclusive = dict.fromkeys(calls, 0)
    for (_, callee), (_, ticks, _) in ours.arcs.items():
        inclusive[int(callee.removeprefix(b"#"))] += ticks
    folded = reference_fold.fold(log)
    recursive = {f for path in folded.context_calls for f in path if path.count(f) > 1}
    roots = {path[0] for path in folded.context_calls}
    compared = 0
    for function, row in theirs.items():
        if function in recursive or function in roots or row[6] == 0:
            continue
        assert inclusive[function] / log.header.frequency == pytest.approx(row[6], rel=1e-6)
        compared += 1
    assert compared > 3


@needs_shared
@pytest.mark.parametrize(
    ("folder", "binary"),
    [("fdr5-pool-clang19", "pool.19"), ("fdr5-lua-clang19", "lua.19"), ("fdr5-interp-args-clang14", "interp.14")],
)
def test_names_are_those_of_the_map(folder: str, binary: str) -> None:
    from fastprof.formats.xray.map import InstrumentationMap

    path = shared_data("xray", folder, "trace.xray")
    program = str(shared_data("xray", folder, binary))
    plain = product.graph(path, Options(time_unit="ticks"))
    named = product.graph(path, Options(time_unit="ticks", symbols=(program,)))
    names = InstrumentationMap.load(program)
    expected: dict[bytes, list[int]] = {}
    for function, values in plain.self_.items():
        found = names.lookup(int(function.removeprefix(b"#")))
        assert found is not None
        sums = expected.setdefault(found.name.encode(), [0, 0])
        for k, value in enumerate(values):
            sums[k] += value
    assert named.self_ == {name: tuple(sums) for name, sums in expected.items()}


def convert(*args: str | Path) -> None:
    command = [sys.executable, "-m", "fastprof", "convert", *map(str, args)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module", params=["pool", "unwind", "basic-fork", "overflow"])
def recording(request: pytest.FixtureRequest, clang19: Recorder) -> Path:
    return clang19.record(request.param).log


@pytest.mark.parametrize(
    "options", [(), ("--per-thread",), ("--no-compress-names", "--no-compress-positions"), ("--time-unit", "ticks")]
)
def test_callgrind_annotate_reads_our_files_without_a_warning(
    recording: Path, options: tuple[str, ...], tmp_path: Path
) -> None:
    output = tmp_path / "out.callgrind"
    convert(recording, "-o", output, *options)
    if "--per-thread" in options:
        # callgrind_annotate reads files of one part: each thread as a separate file
        text = output.read_text()
        parts = re.split(r"(?m)^(?=part: )", text)
        head, parts = parts[0], parts[1:]
        assert len(parts) >= 1
        texts = [head + part for part in parts]
    else:
        texts = [output.read_text()]
    for i, text in enumerate(texts):
        file = tmp_path / f"part{i}.callgrind"
        file.write_text(text)
        done = subprocess.run(
            [need("callgrind_annotate"), "--threshold=100", "--auto=no", str(file)], capture_output=True, text=True
        )
        assert done.returncode == 0 and done.stderr == ""
        summary = re.search(r"(?m)^summary: (.*)$", text)
        totals = re.search(r"(?m)^totals: (.*)$", text)
        assert summary and totals and summary[1] == totals[1]
        shown = re.search(r"(?m)^(.*)PROGRAM TOTALS", done.stdout)
        assert shown
        figures = [n.replace(",", "") for n in re.findall(r"(?<![\d.(])([\d,]+)(?= \()", shown[1])]
        assert figures == [n for n in summary[1].split() if n != "0"][: len(figures)]


def test_kcachegrind_opens_our_files_without_a_message(recording: Path, tmp_path: Path) -> None:
    """Started on a virtual screen, KCachegrind reports on stderr everything that it cannot read."""
    output = tmp_path / "out.callgrind"
    convert(recording, "-o", output, "--per-thread")
    assert loader_messages(output, tmp_path) == []


def test_kcachegrind_does_report_errors(tmp_path: Path) -> None:
    broken = tmp_path / "broken.callgrind"
    broken.write_text((CORPUS / "callgrind" / "good" / "cfi.callgrind").read_text().replace("\ncfn=", "\ncnf="))
    assert loader_messages(broken, tmp_path) != []


def loader_messages(path: Path, home: Path) -> list[str]:
    """It waits for the user once it has loaded the file, so it is killed after some seconds."""
    home.chmod(0o700)
    env = {"HOME": str(home), "PATH": "/usr/bin:/bin", "QT_LOGGING_TO_CONSOLE": "1", "XDG_RUNTIME_DIR": str(home)}
    viewer = [need("timeout"), "8", need("kcachegrind"), str(path)]
    command = [need("dbus-run-session"), "--", need("xvfb-run"), "-a", *viewer]
    done = subprocess.run(command, capture_output=True, text=True, env=env)
    return [line for line in (done.stderr + done.stdout).splitlines() if path.name in line]
