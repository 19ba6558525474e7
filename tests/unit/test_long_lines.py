"""Text is read in time linear in its length, whatever it repeats.

In a line of 200 KB where a pattern can begin anywhere, a quadratic pattern takes 10^10 steps and more: half a minute at
least, hours for a regular expression.  So all of them together have a limit of processor time that is far from both.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import fastprof
from tests.support.paths import REPO

CODE = r"""
import sys
import resource

resource.setrlimit(resource.RLIMIT_CPU, (15, 15))
import fastprof
from fastprof.core.errors import FastprofError
from fastprof.core.formulas import Formulas
from fastprof.formats.gperftools.read import split_inlined
from fastprof.symbols.listed import java_frame
from fastprof.symbols.maps import MapsText

N = int(sys.argv[1])
PIECES = [bytes([c]) for c in b" \t0aZ_:;(){}[]<>-+*/=,.#'\"\\$@&|~^%\x7f\xff\0"]
PIECES += [b" (", b"(:1", b" a", b"1 ", b":1] ", b"a:1]", b"$build", b"--", b"operator--", b"deadbeef ", b" 1", b"+ "]
HEAD = b"version: 1\ncreator: callgrind-3\n"
BODY = b"fn=f\n1 1\n"
CALLGRIND = [
    HEAD + b"%s\nevents: Ir\n" + BODY,
    HEAD + b"desc: %s\nevents: Ir\n" + BODY,
    HEAD + b"cmd: %s\nevents: Ir\n" + BODY,
    HEAD + b"pid: %s\nevents: Ir\n" + BODY,
    HEAD + b"event: Sum = Ir %s !\nevents: Ir\n" + BODY,
    HEAD + b"event: Sum = Ir + %s Ir : long %s\nevents: Ir\n" + BODY,
    HEAD + b"events: Ir %s\n" + BODY,
    HEAD + b"events: Ir\nsummary: %s\n" + BODY,
    HEAD + b"events: Ir\ntotals %s\n" + BODY,
    HEAD + b"events: Ir\nfn=%s\n1 1\n",
    HEAD + b"events: Ir\nfn=f\n%s\n",
    HEAD + b"events: Ir\nfn=f\n1 %s\n",
    HEAD + b"events: Ir\nfn=f\n1 1\n%s\n",
    HEAD + b"events: Ir\nfn=f\n1 1\ncalls=1 %s\n1 1\n",
]
REST = b"events: Ir\nfl=a\nfn=f\n1 1\nsummary: 1\n"
CACHEGRIND = [b"desc: %s\ncmd: x\n" + REST, b"cmd: x\n%s\n" + REST]
FOLDED = [b"a;b 1\n%s 1\n", b"a;b 1\na;b %s\n", b"%s\n"]
words = lambda *n: b"".join(k.to_bytes(8, "little") for k in n)
PROFILE = words(0, 3, 0, 10000, 0) + words(1, 1, 0x1234) + words(0, 1, 0)
GPERFTOOLS = [
    PROFILE + line
    for line in (b"%s\n", b"1000-2000 %s\n", b"1000-2000: r-xp %s\n", b"1000-2000 r-xp 0 %s 1 /x\n",
                 b"1000-2000 r-xp 0 08:01 1 /x%s\n", b"build=%s\n1000-2000: $build\n", b"%s1000-2000: /x\n",
                 b"build=/x\n1000-2000: %s\n", b"build=/xyz\n%s\n1000-2000: /x %s x\n")
]
GPERFTOOLS += [
    b"--- symbol\nbinary=/x\n%s\n---\n--- profile\n" + PROFILE,
    b"--- symbol\nbinary=%s\n0x1234 f\n---\n--- profile\n" + PROFILE,
    b"--- symbol\nbinary=/x\n0x1234 %s\n---\n--- profile\n" + PROFILE,
]
TEXTS = {"callgrind": CALLGRIND, "cachegrind": CACHEGRIND, "folded": FOLDED, "gperftools": GPERFTOOLS}
n = 0
for format_, texts in TEXTS.items():
    if sys.argv[2] != format_:
        continue
    for text in texts:
        for piece in PIECES:
            size = N // 50 if b"events: Ir %s" in text else N  # each event is a column, for which a batch has room
            data = text.replace(b"%s", piece * (size // len(piece)))
            for lenient in (False, True):
                options = {"compute_events": True} if b"event: Sum" in text else {}
                try:
                    with fastprof.open(data, from_=format_, lenient=lenient) as profile:
                        for batch in profile:
                            n += len(batch)
                        for part in profile._model.parts:
                            inherited = part.extra.get("inherited", [])
                            Formulas([t.name for t in part.value_types], {t.name: t.formula for t in inherited})
                except FastprofError:
                    pass
if sys.argv[2] == "pieces":
    for piece in PIECES:
        text = piece * (N // len(piece))
        for ends in (b"", b")", b":1)", b" (a:1)"):
            java_frame(b"f" + text + ends)
            split_inlined(text + ends)
            maps = MapsText()
            maps.line(b"build=" + text[:50_000])
            maps.line(text + ends)
            maps.line(b"1000-2000 " + text + ends)
print(n)
"""


@pytest.mark.parametrize("what", ["callgrind", "cachegrind", "folded", "gperftools", "pieces"])
def test_lines_of_200_kilobytes(what: str) -> None:
    done = subprocess.run([sys.executable, "-c", CODE, "200000", what], cwd=REPO, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.parametrize("to", ["callgrind", "pprof", "folded"])
def test_a_summary_of_half_a_million_counts_is_written(to: str, tmp_path: Path) -> None:
    """They were matched with value types one by one, each against all before it."""
    data = b"events: Ir\nfn=f\n1 1\nsummary: " + b"1 " * 500_000 + b"\n"
    fastprof.convert(data, tmp_path / "out", from_="callgrind", to=to, lenient=True)
    with fastprof.open(tmp_path / "out") as profile:
        assert sum(len(batch) for batch in profile) == 1
