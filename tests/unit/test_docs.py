"""Generated documentation matches the code, and its commands work.

Their output is compared in tests/differential/test_documents.py.
"""

from __future__ import annotations

import itertools
import re
import runpy
import shlex
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from docs.make_output import renewed
from fastprof import plan
from fastprof.cli import VERBS, main
from tests.support.paths import CORPUS, REPO

# In a block, on an indented line or in a table; several blanks and an explanation, or another command, may follow
LINES = re.compile(
    r"^(?:```\w*\n(.*?)^```$|    (?=fastprof )(.*?)$|\|[^|`\n]*(?:`[^`\n]*`[^|`\n]*)*\| `(fastprof [^`\n]* [^`\n]*)`)",
    re.MULTILINE | re.DOTALL,
)
COMMAND = re.compile(r"^fastprof((?: (?! |&& |\| |> )[^\s#|&>]+)+)", re.MULTILINE)
COMMANDS = {
    str(path.relative_to(REPO)): [
        command for lines in LINES.findall(path.read_text()) for command in COMMAND.findall("".join(lines))
    ]
    for path in [REPO / "README.md", *sorted((REPO / "docs").rglob("*.md"))]
}
# Corpus files for inputs, by the end or the beginning of their name in a command
INPUTS = {
    "./": "xray/pool-clang19",
    "oprofile_data/": "oprofile/good/threads.tar",
    ".tar.zst": "oprofile/good/threads.tar",
    "/": "gperftools/good/plain.prof",
    "Trace-": "trace-event/good/sampled_mixed.json",
    "trace.json": "trace-event/good/sampled_mixed.json",
    "speedscope.json": "speedscope/good/01_evented.json",
    ".xray": "xray/good/fdr5-pool-clang19.xray",
    "perf.data": "perf/good/real-cxx.data",
    ".llvmprof": "llvm-profile/good/inlined.llvmprof",
    ".fdata": "bolt/good/branches.fdata",
    ".jfr": "jfr/good/made-old-objects.jfr",
    ".perf": "perf-script/good/real-default-dwarf.perf",
    ".pb.gz": "pprof/good/go-heap.pb.gz",
    ".fpa": "archive/good/timeline.fpa",
    "callgrind.out": "callgrind/good/cfi.callgrind",
    "cachegrind.out": "callgrind/good/xdebug.callgrind",
    ".callgrind": "callgrind/good/cfi.callgrind",
    ".cachegrind": "cachegrind/good/newer.cachegrind",
    ".folded": "folded/good/plain.folded",
    ".heap": "heap/good/gperftools.heap",
    ".otlp": "otlp/good/v1.10-timestamps.otlp",
    "massif.out": "massif/good/inlined.massif",
    "dhat.out": "dhat/good/heap.dhat.json",
    "heaptrack.": "heaptrack/good/small.heaptrack",
    "memray-": "memray/good/small.memray",
    "gmon.out": "gmon/good/small.gmon",
    ".gprof.txt": "gprof/good/small.gprof.txt",
    ".mojo": "mojo/good/full.mojo",
    ".bpftrace": "tracer-stacks/good/maps.bpftrace",
    ".Rprof": "rprof/good/lines.Rprof",
    ".ghc.prof": "ghc-prof/good/labels.ghc.prof",
    ".simpleperf.trace": "simpleperf/good/app.simpleperf.trace",
    ".tachyon": "tachyon/good/plain.tachyon",
    ".uftrace": "uftrace/good/args.tar",
    "app.tar": "uftrace/good/args.tar",
    ".pyisession": "pyinstrument/good/async.pyisession",
    ".stackprof": "stackprof/good/wall.stackprof",
    "-recording.json": "safari/good/fib-recording.json",
    ".xplane.pb": "xplane/good/device.xplane.pb",
    ".sqlite": "gpu-sqlite/good/nsys.sqlite",
    ".scalene.json": "scalene/good/memory.scalene.json",
    ".ghc.json": "ghc-json/good/lab.ghc.json",
    ".instruments.txt": "instruments/good/time.instruments.txt",
    ".pprof.txt": "pprof-raw/good/everything.pprof.txt",
    ".luajit": "luajit/good/s.luajit",
    ".prof": "gperftools/good/plain.prof",
    ".heapprofile": "heapprofile/good/node20.heapprofile",
    ".pstats": "pstats/good/py3.8.pstats",
    ".cpuprofile": "cpuprofile/good/small.cpuprofile",
    ".pftrace": "perfetto/good/mixed.pftrace",
    "profile.json.gz": "firefox/good/version-41.json",
}
PAGES = [REPO / "README.md", REPO / "CONTRIBUTING.md", *sorted((REPO / "docs").rglob("*.md"))]
LINK = re.compile(r"\]\((?!\w+:)([^)#\s]*)#?([^)\s]*)\)")  # the path and the heading, only of links within this project
# Errors due to data that these files lack
LACKS = (
    "no row matches|no value type|no profile|no (?:instruction )?addresses|unknown (?:key or )?value type|"
    "no sample file matches|no input has a|needs the commits in between|not a git repository|no input has this label|"
    "no costs in a file named|no branch(?:es| stacks)|neither profile has|"
    "no row can be written as (?:llvm-profile|gcov-profile|bolt)"
)


def test_commands_are_found() -> None:
    assert sum(map(len, COMMANDS.values())) > 50


def test_the_index_has_every_page() -> None:
    index = REPO / "docs" / "README.md"
    linked = {(index.parent / path).resolve() for path, _ in LINK.findall(index.read_text())}
    assert [page.name for page in PAGES if page.parts[-2:] != index.parts[-2:] and page not in linked] == []
    assert "docs/README.md" in dict(LINK.findall((REPO / "README.md").read_text()))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPO)))
def test_links_lead_somewhere(page: Path) -> None:
    for path, heading in LINK.findall(page.read_text()):
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), path
        headings = re.findall(r"^#+ (.*)$", target.read_text(), re.MULTILINE) if heading else []
        assert not heading or heading in [re.sub(r"[^\w\- ]", "", one.lower()).replace(" ", "-") for one in headings]


def test_options_are_listed_as_they_are_declared() -> None:
    made = runpy.run_path(str(REPO / "docs" / "make_options.py"))["text"]()
    assert (REPO / "docs" / "options.md").read_text() == made, "make docs"


def test_every_long_option_of_every_verb_has_a_heading() -> None:
    made = runpy.run_path(str(REPO / "docs" / "make_options.py"))
    headings = re.findall(r"^### (.+)$", made["text"](), re.MULTILINE)
    shown = set()
    for verb in VERBS:
        for _, parser, _ in made["parsers"](verb):
            shown |= {*re.findall(r"(?<![\w-])--[a-z][\w-]+", parser.format_usage())}
            shown |= {max(action.option_strings, key=len) for action in parser._actions if action.option_strings}
    assert len(shown) > 110 and [flag for flag in sorted(shown) if flag not in headings] == []
    assert len(headings) == len({*headings})
    assert len(re.findall(r"^    .*fastprof ", made["text"](), re.MULTILINE)) >= len(headings)  # each with an example


def test_the_comparison_counts_our_formats(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["formats"]) == 0
    flags = re.findall(r"^\S+ +(?:\w+, )?\w+ +(yes|-) +(yes|-)", capsys.readouterr().out, re.MULTILINE)
    counts = re.search(
        r"^\| fastprof \| \[(\d+)\]\S+ \| (\d+)", (REPO / "docs/comparison.md").read_text(), re.MULTILINE
    )
    assert counts and [*map(int, counts.groups())] == [[*one].count("yes") for one in zip(*flags, strict=True)]


def test_every_option_has_a_flag_of_its_own_and_an_owner() -> None:
    known = plan.known_options()
    flags = [flag for option in known for flag in (option.flag, option.short) if flag]
    assert len(set(flags)) == len(flags)
    assert [option for option in known if not plan.owners(option) or not option.help or not option.group] == []


@pytest.mark.parametrize("page", [page for page, commands in COMMANDS.items() if commands])
def test_commands_are_understood(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    for i, command in enumerate(COMMANDS[page]):
        # folders such as /mnt/image are made below here
        words = [word.removeprefix("/") for word in shlex.split(command)]
        if re.search("://|--shard|--serve|--tui|--help|^ ?mcp ", command):  # test_remote, test_view, test_browse ...
            continue
        folder = tmp_path / str(i)
        folder.mkdir()
        monkeypatch.chdir(folder)
        if "nightly.fpa:" in command:
            for member in ("host1/mon.prof", "host1/tue.prof", "host2/mon.prof"):
                Path("runs", member).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(CORPUS / INPUTS[".prof"], Path("runs", member))
            assert main(["archive", "add", "-q", "nightly.fpa", "runs"]) == 0
        for before, word in itertools.pairwise(words):
            source = next((INPUTS[part] for part in INPUTS if word.endswith(part) or word.startswith(part)), "")
            if source and before != "-o" and ":" not in word and not word.startswith("s/"):
                if word == "oprofile_data/":
                    shutil.unpack_archive(CORPUS / source, word)
                    continue
                path = Path(word, "one.prof") if word.endswith("/") else Path(word)
                path.parent.mkdir(exist_ok=True)
                shutil.copy(CORPUS / source, path)
        Path("labels.csv").write_text("input,host\none.prof,web1\n")
        if "--plan" in words:
            Path("dumps").mkdir()
            shutil.copy(CORPUS / INPUTS[".prof"], "dumps/one.prof")
            assert main(["batch", "plan", "dumps/", "-q", "-o", "dumps.plan"]) == 0
        code = main(words)
        said = capfd.readouterr().err
        assert not code or re.search(LACKS, said), f"{command}: {code}: {said}"


def test_targets_of_make_and_extras_exist() -> None:
    """Of the lines that other tests cannot run: they would compile, test and measure everything."""
    text = "".join(page.read_text() for page in PAGES)
    targets = sorted({target for line in re.findall(r"^make ([^#\n]+)", text, re.MULTILINE) for target in line.split()})
    assert len(targets) > 8
    done = subprocess.run(["make", "-n", *targets], cwd=REPO, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    extras = {name for names in re.findall(r"pip install (?:-e )?'\.\[([\w,]+)\]'", text) for name in names.split(",")}
    assert len(extras) > 3
    assert extras <= tomllib.loads((REPO / "pyproject.toml").read_text())["project"]["optional-dependencies"].keys()


def test_output_is_renewed() -> None:
    """What commands print in README.md and docs/; tests/differential/test_documents.py compares it."""
    piece = "$ fastprof top\na\n...\nb\nc\n"
    assert renewed(piece, "a\nx\ny\nb\nc\n") == piece
    assert renewed(piece, "A\nx\ny\nB\nC\n") == "$ fastprof top\nA\n...\nB\nC\n"
    assert renewed("$ fastprof top\na\n", "b\nc\n") == "$ fastprof top\nb\nc\n"
    assert renewed("$ fastprof convert a\n", "wrote b\n") == "$ fastprof convert a\n"
