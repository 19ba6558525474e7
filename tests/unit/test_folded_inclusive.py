"""Folded stacks whose values include callees: llvm-xray's."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastprof
from tests.contract.dump import CORPUS
from tests.differential.peers import need

ANSWER = CORPUS / "answers" / "llvm_xray19_stack_flame_time.folded"
TIMES = b"main; 100\nmain;f; 60\nmain;f;g; 45\nmain;h; 12\nthread_7;idle; 30\n"


def selves(data: bytes | Path) -> dict[str, int]:
    return {row.name: row.self for row in fastprof.top(data).rows if row.self}


def repaired(data: bytes | Path) -> int:
    log = fastprof.info(data)
    return sum(entry["count"] for entry in log.repairs.entries() if entry["code"] == "inclusive-values")


def test_self_costs() -> None:
    assert selves(TIMES) == {"main": 28, "f": 15, "g": 45, "h": 12, "idle": 30}
    assert repaired(TIMES) == 5
    assert fastprof.info(TIMES).facts["totals"] == {"ticks": 130}
    assert selves(ANSWER) == {"f2()": 3695, "busy()": 158_964_549, "main": 9516}
    with subprocess.Popen(["cat", ANSWER], stdout=subprocess.PIPE) as cat:
        assert selves(cat.stdout) == selves(ANSWER)  # type: ignore[arg-type]


def test_a_caller_that_has_not_returned() -> None:
    assert selves(b"main; 0\nmain;f; 60\nmain;f;g; 45\n") == {"f": 15, "g": 45}


OTHERS = {
    "counts": b"main; 1\nmain;f; 60\nmain;f;g; 45\n",
    "counts that fall": b"run; 100\nrun;f; 60\nrun;f;g; 5\n",
    "no nesting": b"main; 100\nidle; 30\n",
    "self costs with an empty leaf": b"main;f; 100\nmain;g; 30\n",
    "not depth-first": b"main; 100\nmain;f; 60\nidle; 30\nmain;g; 20\n",
    "one line without its semicolon": b"main; 100\nmain;f 60\n",
    "fractions": b"main; 100.75\nmain;f; 60.25\n",
    "comments": b"# time\nmain; 100\nmain;f; 60\n",
    "late": b"main; 9000000\n" + b"".join(b"main;f%d; 60\n" % i for i in range(500)) + b"x;main;f; 3\n",
}


@pytest.mark.parametrize("data", OTHERS.values(), ids=OTHERS)
def test_other_files_keep_their_values(data: bytes) -> None:
    want = sum(round(float(line.split()[-1])) for line in data.splitlines() if not line.startswith(b"#"))
    assert fastprof.info(data).facts["totals"] == {"samples": want} and not repaired(data)


def test_a_time_of_callees_above_the_callers_is_a_warning() -> None:
    log = fastprof.info(b"main; 1000\nmain;f; 600\nmain;f;g; 700\n")
    assert "may include those of callees" in "".join(map(str, log.warnings))


STACK = st.lists(st.sampled_from(["main", "f", "g h", "operator="]), min_size=1, max_size=5).map(";".join)


@given(st.dictionaries(STACK, st.integers(0, 10**6), max_size=20))
def test_ordinary_stacks_are_never_taken_for_it(stacks: dict[str, int]) -> None:
    data = "".join(f"{stack} {value}\n" for stack, value in sorted(stacks.items())).encode()
    with fastprof.open(data, from_="folded", counts=1) as profile:
        assert sum(sum(batch.values(0).tolist()) for batch in profile) == sum(stacks.values())


@pytest.mark.parametrize("threads", [[], ["-aggregate-threads"]])
@pytest.mark.parametrize("kind", ["time", "count"])
@pytest.mark.parametrize("log", ["fdr5-events-clang19", "basic3-interp-args-clang19", "fdr5-interp-args-clang14"])
def test_of_the_real_tool(log: str, kind: str, threads: list[str], tmp_path: Path) -> None:
    command = [need("llvm-xray-19"), "stack", "-keep-going", "-all-stacks", "-stack-format=flame", *threads]
    command += [f"-aggregation-type={kind}", str(CORPUS / "xray" / "good" / f"{log}.xray")]
    data = subprocess.run(command, capture_output=True, check=True).stdout
    path = tmp_path / "x.folded"
    path.write_bytes(data)
    values = {line.rpartition(b" ")[0]: int(line.split()[-1]) for line in data.splitlines()}
    selves = dict(values)
    for stack, value in values.items():
        caller = stack[: stack.rfind(b";", 0, -1) + 1]
        if kind == "time" and values.get(caller):
            selves[caller] -= value
    fastprof.convert(path, tmp_path / "out.folded", value="ticks" if kind == "time" else "samples")
    lines = (tmp_path / "out.folded").read_bytes().splitlines()
    got = {line.rpartition(b" ")[0].removeprefix(b"_") + b";": int(line.split()[-1]) for line in lines}
    assert got == {stack: value for stack, value in selves.items() if value}
    assert repaired(path) == (len(values) if kind == "time" else 0)
