"""fastprof, every peer and the bare loops on the same files: the table and the chart that README.md shows.

    python -m bench.race                     inputs of 100 MB and more, three rounds: about ten minutes
    python -m bench.race --mb 8 --rounds 1   a quick look; writes nothing without --write
    python -m bench.race --write             also into bench/RESULTS.md and docs/pictures/race.svg

Below 100 MB the start of the process is most of fastprof's time. Inputs are made in build/race and kept there. The
contestants of one race run in turn, A B C A B C, so that a machine that slows down slows all of them. A contestant
that takes more than SLOW seconds of CPU runs in the first round only. A peer that is not installed is reported and left
out.
"""

from __future__ import annotations

import argparse
import compileall
import html
import math
import multiprocessing
import shutil
import statistics
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from bench import inputs
from bench.peers import Run, fastprof
from tests.support.paths import REPO

WORK = REPO / "build" / "race"
RESULTS = REPO / "bench" / "RESULTS.md"
CHART = REPO / "docs" / "pictures" / "race.svg"
SLOW = 15  # CPU seconds
BEGIN, END = "<!-- made by python -m bench.race: begin -->", "<!-- end -->"


@dataclass
class Contestant:
    name: str
    command: list[str]
    seconds: list[float] = field(default_factory=list)
    peak: int = 0


@dataclass
class Race:
    title: str
    input: Path
    contestants: list[Contestant]  # the first is fastprof


# ---- inputs and commands ----


def made(name: str, make: Callable[[Path], object]) -> Path:
    path = WORK / name
    if not path.exists():
        part = path.with_name(path.name + ".part")
        # elsewhere: a contestant's peak would be no less than the memory of the process that started it
        maker = multiprocessing.get_context("fork").Process(target=make, args=(part,))
        maker.start()
        maker.join()
        assert maker.exitcode == 0, path
        part.rename(path)
    return path


def bare(name: str) -> str:
    """A bare loop, compiled."""
    source = REPO / "bench" / f"{name}.c"
    program = made(name, lambda part: subprocess.run(["cc", "-O3", str(source), "-o", str(part)], check=True))
    return str(program)


def out(name: str) -> str:
    return str(WORK / name)


def ours(*arguments: str | Path) -> Contestant:
    return Contestant("fastprof", fastprof(*arguments))


def make_pprof(path: Path, nbytes: int) -> None:
    """Stacks of a gperftools profile, which is more than ten times as large."""
    samples = path.with_suffix(".samples")
    inputs.walked(samples, nbytes * 12)
    Run(fastprof("convert", "-q", "--no-symbols", samples, "-t", "pprof", "-o", path))
    samples.unlink()


def xray_races(mb: int) -> Iterator[Race]:
    folder = WORK / f"xray{mb}"
    if not folder.exists():
        folder.mkdir()
        inputs.recorded_xray(folder, mb)
    (xray,), (program,) = folder.glob("log-*/log.*"), folder.glob("interp*")
    llvm, names = "llvm-xray-19", f"-instr_map={program}"
    yield Race(
        "XRay trace to call graph",
        xray,
        [
            ours("convert", "-q", xray, "-s", program, "-o", out("o.callgrind")),
            Contestant("llvm-xray graph", [llvm, "graph", "-k", "-d", names, str(xray), "-o", out("g.dot")]),
            Contestant("llvm-xray stack", [llvm, "stack", "-k", names, str(xray)]),
            Contestant("bare loop", [bare("bare_xray"), str(xray)]),
        ],
    )
    convert = [llvm, "convert", "-f", "trace_event", "-symbolize", names, str(xray), "-o", out("x.json")]
    yield Race(
        "XRay trace to Chrome's",
        xray,
        [
            ours("convert", "-q", xray, "-s", program, "--budget", "8G", "-o", out("o.trace.json")),
            Contestant("llvm-xray convert", convert),
        ],
    )


def races(mb: int) -> list[Race]:
    found = [*xray_races(mb)] if shutil.which("clang++-19") else []
    found += [*pprof_races(mb), *cachegrind_races(mb)]
    if shutil.which("valgrind"):
        found += callgrind_races()
    return found


def pprof_races(mb: int) -> list[Race]:
    n = mb * 1_010_000
    gperf = made(f"{mb}.prof", lambda part: inputs.gperftools(part, n))
    pprof = made(f"{mb}w.pb", lambda part: make_pprof(part, n))
    return [
        Race(
            "gperftools to pprof",
            gperf,
            [
                ours("convert", "-q", "--no-symbols", gperf, "-o", out("o.pb.gz")),
                Contestant(
                    "go tool pprof",
                    ["go", "tool", "pprof", "-symbolize=none", "-proto", f"-output={out('go.pb.gz')}", str(gperf)],
                ),
            ],
        ),
        Race(
            "gperftools to Callgrind",
            gperf,
            [
                ours("convert", "-q", "--no-symbols", gperf, "-o", out("o2.callgrind")),
                Contestant("google-pprof", ["google-pprof", "--callgrind", "/bin/true", str(gperf)]),
            ],
        ),
        Race(
            "pprof, 20 costliest functions",
            pprof,
            [
                ours("top", "--no-symbols", pprof),
                Contestant(
                    "go tool pprof", ["go", "tool", "pprof", "-symbolize=none", "-top", "-nodecount=20", str(pprof)]
                ),
            ],
        ),
    ]


def cachegrind_races(mb: int) -> list[Race]:
    n = mb * 1_010_000
    a = made(f"{mb}a.cachegrind", lambda part: inputs.cachegrind(part, n, 1))
    b = made(f"{mb}b.cachegrind", lambda part: inputs.cachegrind(part, n, 2))
    return [
        Race(
            "Cachegrind, two files merged",
            a,
            [
                ours("merge", "-q", a, b, "-o", out("m.cachegrind")),
                Contestant("cg_merge", ["cg_merge", "-o", out("cg.cachegrind"), str(a), str(b)]),
            ],
        ),
        Race(
            "Cachegrind, two files compared",
            a,
            [ours("diff", a, b), Contestant("cg_diff", ["cg_diff", str(a), str(b)])],
        ),
    ]


def callgrind_races() -> list[Race]:
    callgrind = made("real110.callgrind", inputs.callgrind)
    return [
        Race(
            "Callgrind, costliest functions",
            callgrind,
            [
                ours("top", callgrind),
                Contestant("callgrind_annotate", ["callgrind_annotate", "--auto=no", str(callgrind)]),
                Contestant("bare loop", [bare("bare_callgrind"), str(callgrind)]),
            ],
        ),
        Race(
            "Callgrind, archived",
            callgrind,
            [
                ours("convert", "-q", callgrind, "-o", out("o.fpa")),
                Contestant(
                    "zstd -19 --long=27",
                    ["zstd", "-q", "-f", "-19", "--long=27", str(callgrind), "-o", out("o.zst")],
                ),
            ],
        ),
    ]


def run(race: Race, rounds: int) -> None:
    missing = [c for c in race.contestants if shutil.which(c.command[0]) is None]
    for contestant in missing:
        print(f"{contestant.command[0]} is not installed")
        race.contestants.remove(contestant)
    for _ in range(rounds):
        for contestant in race.contestants:
            if contestant.seconds and contestant.seconds[0] > SLOW:
                continue
            done = Run(contestant.command)
            contestant.seconds.append(done.cpu_seconds)
            contestant.peak = max(contestant.peak, done.peak_bytes)


# ---- what comes of it ----


def table(found: list[Race]) -> str:
    lines = [
        "| | MB | | CPU s, median | least | MB per CPU-s | peak MiB | CPU, fastprof = 1 |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for race in found:
        megabytes, first = race.input.stat().st_size / 1e6, statistics.median(race.contestants[0].seconds)
        for i, c in enumerate(race.contestants):
            median = statistics.median(c.seconds)
            title, size = (race.title, f"{megabytes:,.0f}") if i == 0 else ("", "")
            lines.append(
                f"| {title} | {size} | {c.name} | {median:.2f} | {min(c.seconds):.2f} | {megabytes / median:,.0f}"
                f" | {c.peak / 2**20:,.0f} | {median / first:,.1f} |"
            )
    return "\n".join(lines) + "\n"


ROW, TITLE, LEFT, WIDTH, BAR = 18, 30, 150, 760, 440  # pixels

STYLE = """
  text { font: 12px system-ui, sans-serif; fill: #1f2328 } .title { font-weight: 600 } .note { fill: #59636e }
  .ours { fill: #1a7f37 } .peer { fill: #8c959f } .bare { fill: #54aeff }
  @media (prefers-color-scheme: dark) { text { fill: #f0f6fc } .note { fill: #9198a1 } .peer { fill: #656c76 } }
"""


def chart(found: list[Race]) -> str:
    """Bars of CPU seconds on a logarithmic scale, from a hundredth of a second on."""
    longest = max(statistics.median(c.seconds) for race in found for c in race.contestants)
    scale = BAR / max(1.0, math.log10(longest / 0.01))
    rows, y = [], 34
    for race in found:
        first = statistics.median(race.contestants[0].seconds)
        megabytes = race.input.stat().st_size / 1e6
        rows.append(f'<text class="title" x="8" y="{y}">{html.escape(race.title)}, {megabytes:,.0f} MB</text>')
        y += 6
        for i, c in enumerate(race.contestants):
            median = statistics.median(c.seconds)
            width = max(2.0, math.log10(max(median, 0.01) / 0.01) * scale)
            kind = "ours" if i == 0 else "bare" if c.name.startswith("bare") else "peer"
            says = f"{median:.2f} s, {c.peak / 2**20:,.0f} MiB" + (f", {median / first:,.1f} x" if i else "")
            rows.append(f'<text x="{LEFT - 6}" y="{y + 13}" text-anchor="end">{html.escape(c.name)}</text>')
            rows.append(f'<rect class="{kind}" x="{LEFT}" y="{y + 3}" width="{width:.0f}" height="{ROW - 5}" rx="2"/>')
            rows.append(f'<text class="note" x="{LEFT + width + 6:.0f}" y="{y + 13}">{says}</text>')
            y += ROW
        y += TITLE - 6
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{y}" viewBox="0 0 {WIDTH} {y}" role="img"'
        ' aria-label="CPU seconds of fastprof and its peers">'
    )
    says = "CPU seconds (logarithmic) and peak memory of the whole command; shorter is better"
    note = f'<text class="note" x="8" y="14">{says}</text>'
    return "\n".join([head, f"<style>{STYLE}</style>", note, *rows, "</svg>"]) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mb", type=int, default=100, help="least size of the inputs; default: 100")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each command; default: 3")
    parser.add_argument("--write", action="store_true", help="write the table and the chart into the repository")
    chosen = parser.parse_args()
    compileall.compile_dir(REPO / "fastprof", quiet=1)  # as installing does
    WORK.mkdir(parents=True, exist_ok=True)
    found = races(chosen.mb)
    for race in found:
        run(race, chosen.rounds)
        print(table([race]))
    if chosen.write:
        before, _, rest = RESULTS.read_text().partition(BEGIN)
        _, _, after = rest.partition(END)
        RESULTS.write_text(f"{before}{BEGIN}\n{table(found)}{END}{after}")
        CHART.write_text(chart(found))


if __name__ == "__main__":
    main()
