"""The names of perf's addresses, against those that perf script prints."""

from __future__ import annotations

import gzip
import os
import re
import subprocess
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

import fastprof
from fastprof.symbols import kernel
from tests.differential.peers import need
from tests.differential.test_perf import read
from tests.support.paths import CORPUS, needs_shared, shared_folder

RECORDED = shared_folder("perf-data/recorded")
FRAME = re.compile(r"^(.*: +)?\s*([0-9a-f]{1,16}) (\S.*) \(([\[/][^()]*)\)$", re.MULTILINE)

# for stacks that it unwinds, perf prints the preceding addresses
FILES = sorted(path for path in RECORDED.glob("*.data") if path.stem != "cxx-dwarf")

OLD = re.compile(r"[^@]@GLIBC_[\d.]+$")

Names = dict[tuple[str, int], set[str]]  # by object, and address as printed by perf


def printed(text: str) -> Names:
    """Without the starts of functions: nothing returns to one, and a chain that has it there is what the stack held
    where the program kept no frame pointer.  We name the byte before, perf the address."""
    names: Names = defaultdict(set)
    for _, address, name, path in FRAME.findall(text):
        if not name.endswith("+0x0"):
            names[path, int(address, 16)].add(re.sub(r"\+0x[0-9a-f]+$", "", name))
    return names


def names_of(path: Path, **options: Any) -> Names:
    """Outermost names: inlined functions are left out.  Callers are looked up a byte earlier, leaves are not."""
    names: Names = defaultdict(set)
    with fastprof.open(path, **{"demangle": "templates", **options}) as profile:
        for _ in profile:
            pass
        model = profile._model
        for i in range(1, model.count("frames")):
            mapping, low, high, _, line = model.row("frames", i)
            object_id, start_low, start_high, _, _, offset_low, offset_high, _ = model.row("mappings", mapping)
            name, address = (model.string(model.row("objects", object_id)[0]).decode(), low | high << 32)
            in_file = address - (start_low | start_high << 32) + (offset_low | offset_high << 32)
            while line and model.row("lines", line)[3]:
                line = model.row("lines", line)[3]
            function = model.string(model.row("functions", model.row("lines", line)[0])[2]).decode() if line else ""
            if function:
                names[name, address].add(function)  # perf prints it for samples without a chain, and for the kernel
                names[name, in_file % (1 << 64)].add(function)
    return names


def plain(name: str) -> str:
    """Without parts that demanglers write differently: parts split off by the compiler, and lambdas."""
    name = re.sub(r" \(\.[\w.]+\)$", "", name)
    return re.sub(r"\{lambda.*?#\d+\}|'lambda\d*'(?:\([^)]*\))?", "(lambda)", name)


def compare(expected: Names, path: Path, less: int = 0, **options: Any) -> int:
    """The number of addresses for which both have the name.  `less`: what perf may take off an address."""
    same = 0
    found = names_of(path, **options)
    for place, names in expected.items():
        mine = {plain(name) for name in found[place] | found[place[0], place[1] + less]}
        # perf 6.1 has no names of stubs; of old versions it shows some, because their names are longer; and of labels
        wanted = {plain(name) for name in names if not OLD.search(name)} - {"[unknown]", "_init", "_dl_start_user"}
        assert wanted <= mine, place
        same += bool(wanted)
    return same


@needs_shared
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_names_of_recordings(path: Path) -> None:
    """The programs are below the sysroot; kernel symbols and maps of compiled code are given."""
    script = RECORDED / f"expected/{path.stem}.script"
    text = script.read_text() if script.exists() else gzip.open(f"{script}.gz", "rt").read()
    given = [RECORDED / "kallsyms", *RECORDED.glob("perf-*.map")]
    same = compare(printed(text), path, symbols=given, sysroot=str(RECORDED / "symfs"))
    assert same


def test_names_of_this_kernel(tmp_path: Path) -> None:
    data, command = tmp_path / "perf.data", ["dd", "if=/dev/zero", "of=/dev/null", "bs=1", "count=2000000"]
    recorded = subprocess.run(
        [need("perf"), "record", "-q", "-e", "cpu-clock", "-F", "5000", "-g", "-o", data, *command],
        capture_output=True,
        text=True,
    )
    if recorded.returncode or not kernel.own_build_id() or os.geteuid():
        pytest.skip("perf cannot record the kernel here")
    fields = ["-F", "comm,ip,sym,symoff,dso", "--ns"]
    text = subprocess.run([need("perf"), "script", "-i", data, *fields], capture_output=True, text=True).stdout
    expected = {place: names for place, names in printed(text).items() if place[0] == "[kernel.kallsyms]"}
    if not any(names - {"[unknown]"} for names in expected.values()):
        pytest.skip("the kernel hides its symbols")
    assert compare(expected, data, symbols=[tmp_path]) > 5


KEPT = CORPUS / "recordings"
HEAD = re.compile(r"^(\S.*?) +(\d+) +(\d+)\.(\d{9}): +(\S+): *$", re.MULTILINE)


@pytest.mark.parametrize("path", sorted(KEPT.glob("*.data")), ids=lambda path: path.stem)
def test_recordings_of_several_languages(path: Path) -> None:
    """Samples, threads and names are those of perf, for compiled code, compilers at run time and trampolines."""
    text = gzip.open(path.with_suffix(".script.gz"), "rt").read()
    given = {"symbols": [KEPT / "symbols"], "sysroot": "/nowhere"}
    theirs = [(comm, int(tid), int(s + ns), event) for comm, tid, s, ns, event in HEAD.findall(text)]
    ours = [(comm, tid, time, event) for comm, _, tid, time, _, event, _ in read(path, **given)]
    assert ours == theirs and ours
    assert compare(printed(text), path, less=path.stem == "python", **given) > 10


NODE = (
    "let s=0; for(let k=0;k<60;k++) s+=JSON.stringify(Array.from({length:5000},(_,i)=>'a'+i*k)).length; console.log(s)"
)
JAVA = """
public class Work {
    static long leaf(int n) { long s = 0; for (int i = 0; i < n; i++) s += (long) i * i % 7; return s; }
    public static void main(String[] a) {
        long s = 0; for (int k = 0; k < 300; k++) s += leaf(300000); System.out.println(s);
    }
}
"""


@pytest.mark.parametrize("language", ["node", "java"])
def test_names_of_virtual_machines_here(language: str, tmp_path: Path) -> None:
    """With /tmp/perf-PID.map.  V8's built-in functions are mapped twice."""
    tool, perf = need(language), need("perf")
    command = [tool, "--perf-basic-prof", "-e", NODE]
    if language == "java":
        (tmp_path / "Work.java").write_text(JAVA)
        subprocess.run([need("javac"), "Work.java"], cwd=tmp_path, check=True)
        options = ["-XX:+UnlockDiagnosticVMOptions", "-XX:+DumpPerfMapAtExit", "-XX:+PreserveFramePointer"]
        command = [tool, *options, "-cp", str(tmp_path), "Work"]
    data = tmp_path / "perf.data"
    record = [perf, "record", "-q", "-e", "cpu-clock:u", "-F", "499", "-g", "-o", str(data)]
    if subprocess.run([*record, *command], capture_output=True, cwd=tmp_path).returncode:
        pytest.skip("perf cannot record here")
    fields = ["-F", "comm,ip,sym,symoff,dso", "--ns"]
    command = [perf, "script", "--no-demangle", "-i", data, *fields]
    expected = printed(subprocess.run(command, capture_output=True, text=True).stdout)
    maps = {Path(path) for path, _ in expected if path.startswith("/tmp/perf-")}
    try:
        assert maps, "no code was compiled"
        assert compare(expected, data, demangle="none", symbols=[tmp_path]) > 20
    finally:
        for path in maps:
            path.unlink(missing_ok=True)
