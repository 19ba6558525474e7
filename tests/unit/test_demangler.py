"""Names that would kill the process if LLVM's demangler got them inside it."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from fastprof.symbols import llvm_demangler as demangler
from fastprof.symbols.demangle import demangle, demangle_ahead
from tests.support.xraylog import FdrLog

DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def substitution(index: int) -> str:
    """`S_`, `S0_` ... `SZ_`, `S10_` ...: the substitution with number `index`."""
    number = "" if index == 0 else DIGITS[(index - 1) // 36] * (index > 36) + DIGITS[(index - 1) % 36]
    return f"S{number}_"


# A<int>, A<nine copies of that>, A<nine copies of that> ...
NESTED_SUBSTITUTIONS = "_Z1f1AIiE" + "".join("1AI" + substitution(2 * k + 1) * 9 + "E" for k in range(23))
DEEP_POINTERS = "_Z1f" + "P" * 100_000 + "i"
HARMFUL = {
    "pointers": DEEP_POINTERS,
    "only pointers": DEEP_POINTERS[:-1],
    "templates": "_Z1f" + "1AI" * 5000 + "i" + "E" * 5000,
    "local names": "_Z" + "Z" * 16_000,
    "substitutions": NESTED_SUBSTITUTIONS,
    "two of each": "_Z1f1AIiE" + "".join("1AI" + substitution(2 * k + 1) * 2 + "E" for k in range(60)),
    "parameters": "_Z1fIi1AIT_T_E" + "".join(f"1AIT{digit}_T{digit}_E" for digit in DIGITS) + "Evv",
    "microsoft": "?f@@YAXP6AXHH@Z" + "".join("P6AX" + str(k) * 9 + "@Z" for k in range(9)) + "@Z",
}
GOOD = {
    "_Z3fooi": "foo(int)",
    "_Z1f" + "P" * 400 + "i": "f(int" + "*" * 400 + ")",
    # names for the helper process: long, full of references, a pack, a conversion
    "_Z1f" + "P" * 4000 + "i": "f(int" + "*" * 4000 + ")",
    "_Z1f1AIiE" + "S0_" * 300: "f(" + ", ".join(["A<int>"] * 301) + ")",
    "_Z1f1AIiES0_S0_": "f(A<int>, A<int>, A<int>)",
    "_Z1fIJicEEvDpT_": "void f<int, char>(int, char)",
    "_ZN1AcvT_IiEEv": "A::operator int<int>()",
}


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> demangler._Helper:
    """The state of a process that has not demangled anything."""
    from fastprof.symbols import demangle as names

    names._demangle.cache_clear()
    helper = demangler._Helper()
    monkeypatch.setattr(demangler, "_helper", helper)
    return helper


@pytest.mark.parametrize("name", HARMFUL.values(), ids=HARMFUL)
def test_harmful_names_stay_as_they_are(name: str, fresh: demangler._Helper) -> None:
    refused: set[str] = set()
    assert demangle(name, refused=refused) == name
    assert demangle("_Z3fooi", refused=refused) == "foo(int)"
    assert not demangler._is_harmless(name)
    fresh.close()


def test_good_names_wherever_they_are_asked(fresh: demangler._Helper) -> None:
    refused: set[str] = set()
    assert {name: demangle(name, refused=refused) for name in GOOD} == GOOD
    assert {name: fresh.ask(name) for name in GOOD} == GOOD
    assert refused == set()
    assert [demangler._is_harmless(name) for name in GOOD] == [True, True, False, False, True, False, False]
    assert fresh.ask("_Z") is None and fresh.ask("_Z1f\0") is None
    fresh.close()


def test_names_are_sent_together(fresh: demangler._Helper, monkeypatch: pytest.MonkeyPatch) -> None:
    """More than the pipe holds, with one that ends the process and one that is no text among them."""
    names = {"_Z1f" + "P" * n + "i": "f(int" + "*" * n + ")" for n in range(1000, 1200)}
    deadly, no_text = HARMFUL["substitutions"], "_Z3fo\udc80i" + "P" * 600
    refused: set[str] = set()
    demangle_ahead([*list(names)[:150], deadly, no_text, *list(names)[150:], "main", "_Z3fooi"], "full")
    ended, fresh._process = fresh._process, None
    monkeypatch.setattr(fresh, "_start", pytest.fail)  # all answers are here
    assert {name: demangle(name, refused=refused) for name in names} == names
    assert demangle(deadly, refused=refused) == deadly and refused == {deadly}
    demangle_ahead(names, "full")
    assert demangle(no_text) == no_text and fresh._process is None and not fresh._answers
    fresh._process = ended
    fresh.close()


def test_names_sent_together_are_not_refused_for_ever(
    fresh: demangler._Helper, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demangler, "MAX_REFUSED", 3)
    monkeypatch.setattr(demangler, "_MAX_GROWTH", 1)
    names = ["_Z1f" + "P" * 600 + "i" * n for n in range(1, 50)]
    demangle_ahead(names, "full")
    assert len(fresh._answers) == 3 and fresh._process is None
    assert [demangle(name) for name in names] == names


def test_answers_that_wait_are_few(fresh: demangler._Helper, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each may be a hundred times as long as its name."""
    monkeypatch.setattr(demangler, "_MAX_AHEAD", 1000)
    names = {"_Z1f" + "P" * n + "i": "f(int" + "*" * n + ")" for n in range(1000, 1200)}
    demangle_ahead(names, "full")
    assert 0 < len(fresh._answers) < 100
    assert {name: demangle(name) for name in names} == names
    fresh.close()


def test_names_that_are_not_mangled() -> None:
    for name in ("main", "_" * 100_000, "_start", "_D" + "1" * 100_000, "_Z3fo\udc80i", "__x" * 10_000):
        refused: set[str] = set()
        assert (demangle(name, refused=refused), refused) == (name, set())


def test_qualifiers_are_cut_in_one_pass() -> None:
    assert demangle("_Z1f" + "K" * 8000 + "i", "templates") == "f"
    assert demangle("_ZNKO1A1fEi", "templates") == "A::f"
    assert demangle("_Z1fi.cold.1", "short") == "f (.cold.1)"
    assert demangle("_Z1fi [clone .a] [clone .b]", "short") == "_Z1fi [clone .a] [clone .b]"


def test_clones_are_cut_in_one_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demangler, "demangle", lambda name: name[2:])
    for n in (100_000, 0):
        clones = " (x) [y]" * n
        assert demangle("_Zint f(int) const" + clones, "templates") == "f" + clones
        assert demangle("_Zf" + clones, "templates") == "f" + clones


def test_after_a_death_another_process_is_asked_but_not_for_ever(
    fresh: demangler._Helper, monkeypatch: pytest.MonkeyPatch
) -> None:
    long_one = "_Z1f" + "P" * 4000 + "i"
    for _ in range(2):
        with pytest.raises(demangler.TooMuchError):
            demangler.demangle(NESTED_SUBSTITUTIONS)
        assert demangler.demangle(long_one) == "f(int" + "*" * 4000 + ")"
    monkeypatch.setattr(demangler, "MAX_REFUSED", 2)
    with pytest.raises(demangler.TooMuchError):
        demangler.demangle(long_one)
    assert demangler.demangle("_Z3fooi") == "foo(int)"
    fresh.close()


def test_names_that_become_too_long_are_not_asked_for_ever(
    fresh: demangler._Helper, monkeypatch: pytest.MonkeyPatch
) -> None:
    """200 bytes can keep the helper busy for a third of a second without killing it."""
    monkeypatch.setattr(demangler, "MAX_REFUSED", 3)
    names = [
        "_Z1f1AI1" + k + "E" + "".join("1AI" + substitution(2 * i + 2) * 2 + "E" for i in range(12)) for k in "abcd"
    ]
    refused: set[str] = set()
    for name in names[:3]:
        assert demangle(name, refused=refused) == name
    assert fresh._process is not None and fresh._process.poll() is None and len(refused) == 3
    monkeypatch.setattr(fresh, "_start", pytest.fail)
    fresh.close()
    assert demangle(names[3], refused=refused) == names[3]


def test_no_process_can_be_started(fresh: demangler._Helper, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    refused: set[str] = set()
    name = "_Z1f" + "P" * 4000 + "i"
    assert demangle(name, refused=refused) == name
    assert refused == {name}


def test_threads_and_children_get_their_own_answers(fresh: demangler._Helper) -> None:
    names = {"_Z1f" + "P" * n + "i": "f(int" + "*" * n + ")" for n in range(1000, 1100)}
    with ThreadPoolExecutor(4) as pool:
        assert dict(zip(names, pool.map(demangler.demangle, names), strict=True)) == names
    if not (child := os.fork()):
        good = False
        try:
            good = {name: demangler.demangle(name) for name in names} == names
        finally:
            os._exit(0 if good else 1)
    assert {name: demangler.demangle(name) for name in names} == names
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    fresh.close()


NAMES = (DEEP_POINTERS, NESTED_SUBSTITUTIONS, "_Z4goodv")
SAID = "2 names are too complex to demangle, kept as they are"


def check(arguments: list[str], output: Path) -> None:
    """In a separate process, which must survive."""
    command = [sys.executable, "-m", "fastprof", "convert", *arguments, "-o", str(output)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert run.returncode == 0, run.stderr
    assert SAID in run.stderr
    text = output.read_text()
    assert all(name in text for name in (*NAMES[:2], "good()"))
    assert not [path for path in output.parent.iterdir() if path.name.startswith(f".{output.name}")]


def test_in_an_xray_map(tmp_path: Path) -> None:
    entries = (f"- {{ id: {i}, function: {16 * i}, function-name: {name} }}\n" for i, name in enumerate(NAMES, 1))
    (tmp_path / "map.yaml").write_text("".join(entries))
    log = FdrLog(5)
    buffer = log.buffer(tid=7).cpu(1, 1000)
    for i in range(1, len(NAMES) + 1):
        buffer.enter(i, 10).exit(i, 10)
    (tmp_path / "x.xray").write_bytes(log.bytes())
    check([str(tmp_path / "x.xray"), "-s", str(tmp_path / "map.yaml")], tmp_path / "out.callgrind")


def test_in_a_symbol_table(tmp_path: Path) -> None:
    source, program = tmp_path / "x.s", tmp_path / "program"
    functions = (f'.type "{name}", @function\n"{name}":\n.skip 16\n.size "{name}", 16\n' for name in NAMES)
    source.write_text(f".text\n.globl first\nfirst:\n{''.join(functions)}")
    subprocess.run(["gcc", "-nostdlib", "-shared", "-o", program, source], check=True)
    nm = subprocess.run(["nm", program], capture_output=True, text=True, check=True).stdout
    first = next(int(line.split()[0], 16) for line in nm.splitlines() if line.endswith(" first"))
    start = 0x7F0000000000
    samples = [word for i in range(len(NAMES)) for word in (1, 1, start + first + 16 * i + 4)]
    words = [0, 3, 0, 10000, 0, *samples, 0, 1, 0]
    maps = f"{start:x}-{start + 0x10000:x} r-xp 00000000 08:01 4711 {program}\n"
    (tmp_path / "x.prof").write_bytes(struct.pack(f"<{len(words)}Q", *words) + maps.encode())
    check([str(tmp_path / "x.prof"), "-s", str(program)], tmp_path / "out.callgrind")
