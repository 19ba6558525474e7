"""The command line from a user's view: pipes, exit codes, signals, terminals, help."""

from __future__ import annotations

import contextlib
import fcntl
import gzip
import json
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import fastprof
from fastprof.plan import reading_options
from tests.support.paths import PYTHON, REPO
from tests.support.signals import heard
from tests.support.xraylog import FdrLog

GOOD = REPO / "tests" / "corpus" / "xray" / "good"
BAD = REPO / "tests" / "corpus" / "xray" / "bad"
POOL = str(GOOD / "fdr5-pool-clang19.xray")
EVENTS = str(GOOD / "fdr5-events-clang19.xray")
BROKEN = str(BAD / "fdr5-cut-record.xray")
COMMAND = [sys.executable, "-m", "fastprof"]


def environment(**more: str) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if k != "FASTPROF_DEBUG"}
    return kept | {"PYTHONPATH": str(REPO)} | more


def run(*args: str, stdin: bytes = b"", code: int = 0, **env: str) -> subprocess.CompletedProcess[bytes]:
    done = subprocess.run([*COMMAND, *args], input=stdin, capture_output=True, env=environment(**env))
    assert done.returncode == code, done.stderr.decode()
    assert b"Traceback" not in done.stderr
    return done


# ---- convert ----------------------------------------------------------------


def test_a_pipe_is_a_file_is_a_pipe(tmp_path: Path) -> None:
    out = tmp_path / "out.callgrind"
    run("convert", POOL, "-o", str(out))
    data = Path(POOL).read_bytes()
    for stdin in (data, gzip.compress(data)):
        piped = run("convert", "-", "--to", "callgrind", stdin=stdin)
        assert piped.stdout == out.read_bytes()
    compressed = tmp_path / "out.callgrind.gz"
    run("convert", POOL, "-o", str(compressed))
    assert gzip.decompress(compressed.read_bytes()) == out.read_bytes()


def test_several_inputs_are_one_profile(tmp_path: Path) -> None:
    def calls(*inputs: str) -> int:
        done = run("convert", *inputs, "--to", "callgrind", "--json")
        found: int = json.loads(done.stderr)["rows"]["calls"]
        return found

    assert calls(POOL, EVENTS) == calls(POOL) + calls(EVENTS)
    assert calls(POOL, POOL) == 2 * calls(POOL)
    folder = tmp_path / "dumps"
    folder.mkdir()
    for i, path in enumerate((POOL, EVENTS)):
        (folder / f"{i}.xray").write_bytes(Path(path).read_bytes())
    assert calls(str(folder)) == calls(POOL) + calls(EVENTS)


def test_the_python_interface_takes_paths(tmp_path: Path) -> None:
    one = tmp_path / "one.callgrind"
    for inputs in (POOL, Path(POOL), [POOL], [Path(POOL)]):
        fastprof.convert(inputs, one)
        assert one.read_bytes() == run("convert", POOL, "--to", "callgrind").stdout
    fastprof.convert([Path(POOL), one], str(tmp_path / "both.callgrind"))
    with pytest.raises(fastprof.UsageError, match="no input given"):
        fastprof.convert([], one)


def test_the_log() -> None:
    done = run("convert", POOL, "-o", "/dev/null", "--to", "callgrind")
    assert re.fullmatch(
        rb"fastprof: wrote /dev/null: \d+ rows \(2,329 calls; times of calls, CPU of calls and threads are not part of "
        rb"the output, -v lists them\)\nfastprof: repairs: 3 unwound frames\n"
        rb"fastprof: warning: .*: functions are shown by number: .*\n",
        done.stderr,
    )
    verbose = run("convert", POOL, "-o", "/dev/null", "--to", "callgrind", "-v").stderr
    assert re.fullmatch(
        rb"fastprof: wrote /dev/null: \d+ rows \(2,329 calls; [\d,]+ bytes\)\nfastprof: repairs: 3 unwound frames\n"
        rb"fastprof: not part of the output: 2,329 calls whose CPU is dropped \(.*\), 2,329 calls, summed up without "
        rb"their times, 4 threads, merged \(--per-thread keeps them separate\)\n"
        rb"fastprof: warning: .*: functions are shown by number: .*\n",
        verbose,
    )
    quiet = run("convert", POOL, "-o", "/dev/null", "--to", "callgrind", "-q").stderr
    assert quiet == done.stderr[done.stderr.index(b"fastprof: warning") :]  # the warning, and no summary
    log = json.loads(run("convert", POOL, "-o", "/dev/null", "--to", "callgrind", "--json").stderr)
    assert set(log) == {"schema", "rows", "repairs", "losses", "left_out", "not_representable", "warnings", "facts"}
    assert log["repairs"] == [{"code": "unwound-frames", "text": "unwound frames", "count": 3}]
    said = json.loads(run("convert", EVENTS, "-o", "/dev/null", "--to", "callgrind", "--json").stderr)
    assert {"code": "events", "text": "events", "count": 240} in said["not_representable"]
    as_it_is = run("convert", EVENTS, "-o", "/dev/null", "--to", "xray").stderr
    assert as_it_is.startswith(b"fastprof: wrote /dev/null: 1,582 rows")


def test_a_sum_does_not_read_as_a_loss(tmp_path: Path) -> None:
    out = str(tmp_path / "x.callgrind")
    samples = str(REPO / "tests/corpus/gperftools/good/duplicates.prof")
    for words, says in (
        (["convert", samples, "--no-symbols"], "62 rows (27 samples"),
        (["convert", samples, samples, "--no-symbols"], "62 rows (54 samples"),
        (["merge", out, out], "62 rows (124 rows"),
        (["convert", out, "--aggregate"], "62 rows"),
    ):
        to = str(tmp_path / "y.callgrind") if out in words else out
        assert run(*words, "-o", to).stderr.decode().startswith(f"fastprof: wrote {to}: {says}")


def test_the_target_is_named_or_in_the_suffix(tmp_path: Path) -> None:
    assert b"--to" in run("convert", POOL, code=2).stderr
    assert b"--to" in run("convert", POOL, "-o", str(tmp_path / "out.unknown"), code=2).stderr
    for name, says in (
        ("nonsense", "unknown format 'nonsense', expected xray, gperftools,"),
        ("KCachegrind", "unknown format 'KCachegrind' (did you mean callgrind?), expected xray,"),
    ):
        assert run("convert", POOL, "--to", name, code=2).stderr.decode().startswith(f"fastprof: {says}")
    for name, hint in (
        (
            "x.json",
            "; .otlp.json (otlp), .speedscope.json (speedscope), .trace.json (trace-event), "
            ".profile.json (firefox), .firefox.json",
        ),
        ("x.svg.gz", "; `fastprof report` writes a page with a flame graph; use --to"),
        ("x", "; use --to, see `fastprof formats`"),
    ):
        found = run("convert", POOL, "-o", str(tmp_path / name), code=2).stderr.decode()
        assert f"{name}: no output format has this suffix{hint}" in found
    assert b", or name a file with -o" in run("convert", POOL, code=2).stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["absent", "empty", "unknown", "broken", "directory"])
def test_errors_are_one_line_and_leave_nothing(kind: str, tmp_path: Path) -> None:
    inputs, outputs = tmp_path / "in", tmp_path / "out"
    inputs.mkdir()
    outputs.mkdir()
    (inputs / "empty").write_bytes(b"")
    (inputs / "unknown").write_bytes(b"what is this\n" * 10)
    (inputs / "broken").write_bytes(Path(BROKEN).read_bytes())
    (inputs / "directory").mkdir()
    done = run("convert", str(inputs / kind), "-o", str(outputs / "out.callgrind"), code=1)
    assert done.stdout == b""
    assert done.stderr.startswith(b"fastprof: " + os.fsencode(inputs / kind))
    assert done.stderr.count(b"\n") == 1
    assert list(outputs.iterdir()) == []


def test_an_error_keeps_the_old_output(tmp_path: Path) -> None:
    out = tmp_path / "out.callgrind"
    out.write_bytes(b"precious")
    run("convert", BROKEN, "-o", str(out), code=1)
    assert out.read_bytes() == b"precious"


def test_a_bad_second_input_is_an_error(tmp_path: Path) -> None:
    run("convert", POOL, BROKEN, "-o", str(tmp_path / "out.callgrind"), code=1)
    assert list(tmp_path.iterdir()) == []


def test_lenient_says_what_is_lost_and_exits_3(tmp_path: Path) -> None:
    out = tmp_path / "out.callgrind"
    done = run("convert", BROKEN, "--lenient", "-o", str(out), code=3)
    assert b"losses: " in done.stderr
    quiet = run("convert", BROKEN, "--lenient", "-q", "-o", str(out), code=3).stderr.decode()
    assert re.match(r"fastprof: losses: \d[^;]*\n", quiet) and "written" not in quiet
    assert b"losses: " in run("top", BROKEN, "--lenient", "-q", code=3).stderr
    assert b"fn=" in out.read_bytes()
    run("convert", POOL, "--lenient", "-o", str(out), code=0)
    run("info", BROKEN, "--lenient", code=3)
    cut = tmp_path / "cut.gz"
    cut.write_bytes(gzip.compress(Path(POOL).read_bytes())[:-400])
    assert b"inside a stream; --lenient" in run("convert", str(cut), "-o", str(out), code=1).stderr
    assert b"damaged gz stream" in run("convert", str(cut), "--lenient", "-o", str(out), code=3).stderr


def test_debug_shows_the_traceback() -> None:
    done = subprocess.run([*COMMAND, "info", BROKEN], capture_output=True, env=environment(FASTPROF_DEBUG="1"))
    assert b"Traceback" in done.stderr


# ---- other verbs --------------------------------------------------------------


def test_info_lists_in_words() -> None:
    said = run("info", str(REPO / "tests/corpus/pprof/good/go-block.pb.gz")).stdout.decode()
    assert re.search(r"^sample types +contentions/count, delay/nanoseconds$", said, re.MULTILINE)


def test_info() -> None:
    text = run("info", POOL).stdout.decode()
    for line in ("mode +fdr", "version +5", "threads +4", "records +4,655", "  enter +2,329", "losses +none"):
        assert re.search(rf"^{line}$", text, re.MULTILINE), line
    facts = json.loads(run("info", POOL, "--json").stdout)["facts"]
    assert (facts["format"], facts["records"], facts["threads"]) == ("xray", 4655, 4)
    assert run("info", "-", stdin=Path(POOL).read_bytes()).stdout.startswith(b"file")


def test_formats() -> None:
    entries = {e["name"]: e for e in json.loads(run("formats", "--json").stdout)["formats"]}
    assert entries["xray"]["reads"] and entries["callgrind"]["writes"]
    assert (entries["firefox"]["view"], entries["firefox"]["also"]) == ("stacks", "timeline")
    text = run("formats").stdout.decode()
    assert any(line.split()[:3] == ["firefox", "stacks,", "timeline"] for line in text.splitlines())
    assert all(name in text for name in entries)


def test_only_a_timeline_becomes_one() -> None:
    for inputs in (["callgrind/good/hex.callgrind"], ["xray/good/fdr5-busy.xray", "callgrind/good/hex.callgrind"]):
        paths = [str(REPO / "tests" / "corpus" / name) for name in inputs]
        says = f"fastprof: {paths[-1]}: a graph has no begin and end of calls, which a timeline needs\n"
        assert run("convert", *paths, "--to", "xray", code=2).stderr.decode() == says


def loaded_by(*args: str) -> set[str]:
    """The modules loaded at the end of a run of the command."""
    code = "import sys; from fastprof.cli import main; main(sys.argv[1:]); print(*sys.modules, file=sys.stderr)"
    # -S: imports of `site` are not ours
    paths = os.pathsep.join([str(REPO), *sys.path])
    command = [sys.executable, "-S", "-c", code, *args]
    ran = subprocess.run(command, check=True, capture_output=True, env=environment(PYTHONPATH=paths))
    return set(ran.stderr.decode().splitlines()[-1].split())


def test_version_imports_nothing_heavy() -> None:
    assert run("--version").stdout.decode() == f"fastprof {fastprof.__version__}\n"
    loaded = loaded_by("--version")
    ours = {
        "fastprof",
        "fastprof.core",
        "fastprof.core._typing",
        "fastprof.core.loaded",
        "fastprof.core.version",
        "fastprof.cli",
    }
    assert {name for name in loaded if name.startswith("fastprof")} == ours
    assert not {"argparse", "json", "typing"} & loaded


HEAVY = {"typing", "dataclasses", "inspect", "json", "tempfile", "subprocess"}
HEAVY |= {"cffi", "pycparser", "isal", "zstandard", "pycxxfilt"}


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("callgrind/good/everything.callgrind", "callgrind"),
        ("callgrind/good/everything.callgrind", "cachegrind"),
        ("gperftools/good/small.prof", "gperftools"),
        ("gperftools/good/small.prof", "callgrind"),
        ("pprof/good/everything.pb", "callgrind"),  # its binary is not on this machine
        ("xray/good/fdr5-pool-clang19.xray", "callgrind"),
    ],
)
def test_a_short_run_imports_nothing_heavy(name: str, target: str) -> None:
    path = str(REPO / "tests" / "corpus" / name)
    assert not HEAVY & loaded_by("info", path)
    assert not HEAVY & loaded_by("convert", path, "-q", "--to", target)


def test_a_compressed_output_costs_a_compressor_alone(tmp_path: Path) -> None:
    path = str(REPO / "tests" / "corpus" / "gperftools/good/small.prof")
    found = loaded_by("convert", path, "-q", "--no-symbols", "-o", str(tmp_path / "y.pb.gz")) & (HEAVY | {"isal.igzip"})
    assert found == {"isal"}


# ---- the system around it -------------------------------------------------------


def test_a_closed_pipe_ends_quietly(tmp_path: Path) -> None:
    log = FdrLog()
    buffer = log.buffer().cpu(0, 0)
    for i in range(20_000):
        buffer.enter(1 + i % 9000, 1)
    path = tmp_path / "big.xray"
    path.write_bytes(log.bytes())
    with subprocess.Popen(
        [*COMMAND, "convert", str(path), "--to", "callgrind", "-q"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    ) as process:
        assert process.stdout and process.stderr
        process.stdout.read(10)
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 0
    done = subprocess.run(
        f"{PYTHON} -m fastprof formats | true", shell=True, capture_output=True, env=environment(), cwd=REPO
    )
    assert (done.returncode, done.stderr) == (0, b"")


def shell(command: str) -> subprocess.CompletedProcess[bytes]:
    """Run `command`, in which the word "fastprof" is the program; paths may contain it."""
    program = f"{PYTHON} -m fastprof"
    words, n = re.subn(r"(?<!\S)fastprof(?!\S)", lambda _: program, command)
    assert n == 1
    # buffered, as it is for users
    env = environment() | {"PYTHONUNBUFFERED": ""}
    return subprocess.run(["bash", "-c", words], capture_output=True, env=env, cwd=REPO)


def test_streams_that_someone_made_non_blocking() -> None:
    data = Path(POOL).read_bytes()
    ours, theirs = os.pipe(), os.pipe()
    for fd in (*ours, *theirs):
        os.set_blocking(fd, False)
    process = subprocess.Popen(
        [*COMMAND, "convert", "-", "-f", "xray", "-t", "xray", "-q"], stdin=ours[0], stdout=theirs[1], env=environment()
    )
    os.close(theirs[1])
    os.set_blocking(ours[1], True)
    os.set_blocking(theirs[0], True)
    time.sleep(0.5)  # it may wait for input now, and later for room
    with open(ours[1], "wb") as feeding:
        feeding.write(data)
    time.sleep(0.5)
    with open(theirs[0], "rb") as out:
        assert out.read() == run("convert", POOL, "-t", "xray").stdout
    os.close(ours[0])
    assert process.wait() == 0


def test_standard_input_is_read_once() -> None:
    done = run("convert", "-", "-", "--to", "callgrind", stdin=Path(POOL).read_bytes(), code=2)
    assert b"standard input (-) can be read only once" in done.stderr


def test_names_that_a_terminal_must_not_obey(tmp_path: Path) -> None:
    name = os.fsencode(tmp_path) + b"/b\xe9d\xff\n\x1b[31m.xray"
    Path(os.fsdecode(name)).write_bytes(Path(EVENTS).read_bytes())
    done = run("info", os.fsdecode(name), PYTHONIOENCODING="utf-8:strict")
    assert done.stdout.splitlines()[0].endswith(rb"/b\udce9d\udcff\n\x1b[31m.xray")
    Path(os.fsdecode(name)).write_bytes(Path(BROKEN).read_bytes())
    for code, more in ((1, []), (3, ["--lenient"])):
        error = run("convert", os.fsdecode(name), *more, "-o", os.fsdecode(name + b".xray"), code=code).stderr
        assert rb"/b\udce9d\udcff\n\x1b[31m.xray" in error and error.count(b"\n") == (2 if more else 1)


def test_names_beyond_what_a_stream_can_say(tmp_path: Path) -> None:
    path = tmp_path / "pr\xe9cis \u4e2d.xray"
    path.write_bytes(Path(EVENTS).read_bytes())
    store = tmp_path / "store.fpa"
    for env in ({"PYTHONIOENCODING": "ascii"}, {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}):
        store.unlink(missing_ok=True)
        escaped = rb"pr\udcc3\udca9cis \udce4\udcb8\udcad.xray" if "LC_ALL" in env else rb"pr\xe9cis \u4e2d.xray"
        assert escaped in run("archive", "add", str(store), str(path), **env).stderr
        assert escaped in run("info", str(path), **env).stdout
        assert escaped in run("archive", "list", str(store), **env).stdout


def test_what_a_directory_holds_beside_files_is_said(tmp_path: Path) -> None:
    (tmp_path / "a.xray").write_bytes(Path(EVENTS).read_bytes())
    assert b"warning" not in run("convert", str(tmp_path), "--to", "xray").stderr
    (tmp_path / "link").symlink_to(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    done = run("convert", str(tmp_path), "--to", "xray")
    assert b"fastprof: warning: %s: skipped, not regular files: pipe, link\n" % os.fsencode(tmp_path) in done.stderr


@pytest.mark.parametrize(
    ("option", "says"),
    [
        ("--max-memory=0", "'0' is not a size such as 200M"),
        ("--max-memory=1.5G", "'1.5G' is not a size such as 200M"),
        ("--max-memory=99999999999G", "is not a size such as 200M"),
        ("--period=0", "fastprof: --period: 0 is not a whole number from 1 to 9223372036854775"),
        ("--period=9223372036854775808", "is not a whole number from 1"),
        ("-Otime_ns=-5", "-O time_ns=-5: -5 is not a whole number from 0"),
        ("-Otime_ns=9223372036854775808", "is not a whole number from 0"),
        ("--part=0", "0 is not a whole number from 1"),
        ("--thread=x", "no row matches --thread='x'; the threads are 29280"),
        ("--time-range=5:1", "'5:1' is not a range A:B"),
        ("--time-range=5", "'5' is not a range A:B"),
        ("--time-range=1:18446744073709551616", "'1:18446744073709551616' is not a range A:B"),
        ("--time-range=100:5ms", "'100:5ms' is not a range A:B"),
        ("--time-range=101%:", "'101%:' is not a range A:B"),
        ("--level=23", "23 is not a whole number from 1 to 22"),
        ("--labels=,", "'' is not one of own, thread"),
    ],
)
def test_values_that_make_no_sense(option: str, says: str) -> None:
    assert says in run("convert", POOL, "--to", "callgrind", option, code=2).stderr.decode()


INFO = {option.name for option in reading_options()}


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("time_unit", "h", "time_unit: 'h' is not one of ns, ticks"),
        ("demangle", None, "demangle: None is not one of full"),
        ("stacks", "all", "stacks: 'all' is not one of"),
        ("labels", ("cpu", "threads"), "labels: 'threads' is not one of own, thread"),
        ("labels", "threads", "labels: 'threads' is not one of own, thread"),
        ("period_us", 1 << 63, "period_us: 9223372036854775808 is not a whole number from 1"),
        ("time_ns", -1, "time_ns: -1 is not a whole number"),
        ("max_memory", 0, "max_memory: 0 is not a whole number from 1"),
        ("level", 23, "level: 23 is not a whole number from 1 to 22"),
        ("threads", (1, 1 << 64), "threads: 18446744073709551616 is not a whole number"),
        ("threads", 1.5, "threads: 1.5 is not a whole number"),
        ("time_range", (5, 1), "time_range: \\(5, 1\\) is not a range"),
        ("time_range", (0, 1 << 64), "time_range: 18446744073709551616 is not a whole number"),
        ("time_range", ("a", 1), "time_range: 'a' is not a whole number"),
        ("part", "1", "part: '1' is not a whole number"),
        ("prune", float("nan"), "prune: nan is not a share from 0 to 1"),
        ("symbols", {1}, "symbols: 1 is not a string"),
        ("symbols", (b"x",), "symbols: b'x' is not a string"),
        ("member", 1, "member: 1 is not a string"),
        ("lenient", "no", "lenient: 'no' is neither True nor False"),
    ],
)
def test_the_python_interface_refuses_what_the_command_line_does(
    name: str, value: object, says: str, tmp_path: Path
) -> None:
    options: Any = {name: value}
    with pytest.raises(fastprof.UsageError, match=says):
        fastprof.convert(POOL, tmp_path / "out.callgrind", **options)
    with pytest.raises(fastprof.UsageError, match=says if name in INFO else f"unknown option '{name}'"):
        fastprof.info(POOL, **options)
    with pytest.raises(fastprof.UsageError, match=says):
        fastprof.open(POOL, **options)


def test_options_may_be_a_mapping_and_tuples_lists(tmp_path: Path) -> None:
    with pytest.raises(fastprof.UsageError, match="unknown option 'lenent'; did you mean 'lenient'"):
        fastprof.info(POOL, lenent=True)
    store, threads = tmp_path / "a.fpa", []
    for name in (POOL, EVENTS):
        run("archive", "add", str(store), name)
    assert fastprof.info(store).facts["profiles"] == 2
    with pytest.raises(fastprof.UsageError, match="holds several profiles"):
        fastprof.open(store)
    chosen: Any = {"member": Path(POOL).name, "lenient": True}
    whole = fastprof.info(store, **chosen).facts
    with fastprof.open(store, **chosen) as profile:
        for batch in profile:
            threads += batch["thread"]
        thread = profile._model.row("threads", threads[0])[2]
    for threads_, range_ in (([thread], [0, 1 << 63]), ((thread,), (0, 1 << 63))):
        some = fastprof.info(store, **chosen, threads=threads_, time_range=range_).facts
        assert 0 < some["records"] <= threads.count(threads[0]) < whole["records"]
    assert fastprof.info(BROKEN, lenient=True).losses
    with fastprof.open(POOL, symbols=[GOOD.parent / "pool-clang19.yaml"]) as profile:
        assert any(len(batch) for batch in profile)
        names = {profile.function_name(i) for i in range(1, profile._model.count("functions"))}
    assert names and not any(name.startswith("#") for name in names)


def wait_until_it_reads(pid: int) -> None:
    """Wait until a process sleeps for input.  Python checks for signals before it reads: a signal between the two is
    handled only when more input arrives."""
    asleep = 0
    while asleep < 5:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        asleep = asleep + 1 if state == "S" else 0
        time.sleep(0.01)


def has_open(pid: int, folder: Path) -> bool:
    """Whether the process has a file of the folder open, including unnamed ones."""
    for link in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            if os.readlink(link).startswith(f"{folder}/"):
                return True
    return False


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, -2), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_interrupted_while_writing_leaves_nothing(number: int, code: int, tmp_path: Path) -> None:
    fifo, out = tmp_path / "in.xray", tmp_path / "out"
    os.mkfifo(fifo)
    out.mkdir()
    process = subprocess.Popen(
        [*COMMAND, "convert", str(fifo), "--from", "callgrind", "-o", str(out / "out.callgrind")],
        stderr=subprocess.PIPE,
        env=environment(),
        preexec_fn=heard,
    )
    assert process.stderr
    with open(fifo, "wb", buffering=0) as writing, process.stderr:
        writing.write(b"events: Ir\nfn=main\n" + b"1 1\n" * 2000)
        for _ in range(6000):
            if has_open(process.pid, out):
                break
            time.sleep(0.01)
        assert has_open(process.pid, out)
        wait_until_it_reads(process.pid)
        process.send_signal(number)
        assert process.wait(30) == code
        assert b"Traceback" not in process.stderr.read()
    assert list(out.iterdir()) == []


def test_ctrl_c_ends_the_loop_of_a_shell(tmp_path: Path) -> None:
    """A terminal also sends it to the shell, which continues unless the signal killed its command."""
    fifo, out = tmp_path / "in.callgrind", tmp_path / "out"
    os.mkfifo(fifo)
    out.mkdir()
    command = f"{PYTHON} -m fastprof convert {fifo} -f callgrind -o {out}/o.callgrind"
    loop = f"for i in 1 2; do echo run $i; {command}; echo code $?; done"
    given: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "start_new_session": True}
    with subprocess.Popen(["bash", "-c", loop], env=environment(), preexec_fn=heard, **given) as shell:
        assert shell.stdout
        with open(fifo, "wb", buffering=0) as writing:
            writing.write(b"events: Ir\nfn=main\n" + b"1 1\n" * 2000)
            ours = int(Path(f"/proc/{shell.pid}/task/{shell.pid}/children").read_text())
            for _ in range(6000):
                if has_open(ours, out):
                    break
                time.sleep(0.01)
            wait_until_it_reads(ours)
            os.killpg(shell.pid, signal.SIGINT)
            assert shell.stdout.read() == b"run 1\n"
    assert shell.returncode == -signal.SIGINT
    assert list(out.iterdir()) == []


def on_a_terminal(*args: str, command: Sequence[str] = COMMAND) -> tuple[int, bytes]:
    """Exit code and standard error of a command whose standard error is a terminal."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    process = subprocess.Popen(
        [*command, *args], stdout=subprocess.DEVNULL, stderr=theirs, env=environment(TERM="xterm", COLUMNS="80")
    )
    os.close(theirs)
    seen = b""
    while True:
        try:
            part = os.read(ours, 4096)
        except OSError:
            break
        if not part:
            break
        seen += part
    os.close(ours)
    return process.wait(), seen


def test_progress_is_for_terminals_only() -> None:
    code = "import sys; from fastprof.cli import bar, main; bar._FIRST = 0; sys.exit(main())"
    arguments = ("convert", POOL, "--to", "callgrind")
    arguments += ("-s", str(GOOD.parent / "pool-clang19"))  # without it a warning appears
    done, seen = on_a_terminal(*arguments, command=[sys.executable, "-c", code])
    assert done == 0
    assert b"fdr5-pool-clang19.xray" in seen and b"%" in seen and seen.isascii()
    assert on_a_terminal(*arguments, "-q", command=[sys.executable, "-c", code]) == (0, b"")
    piped = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, env=environment())
    assert b"%" not in piped.stderr


def test_what_is_not_text_is_not_written_to_a_terminal() -> None:
    ours, theirs = pty.openpty()
    for words, says in (
        (["convert", POOL, "-t", "pprof"], "binary output is not written to a terminal; name a file with -o"),
        (["report", POOL], "the page is not written to a terminal: name a file with -o, or use `fastprof view`"),
    ):
        done = subprocess.run([*COMMAND, *words], stdout=theirs, stderr=subprocess.PIPE, env=environment())
        assert (done.returncode, done.stderr.decode()) == (2, f"fastprof: {says}\n")
    os.write(theirs, b"end\n")
    assert os.read(ours, 4096) == b"end\r\n"
    os.close(ours)
    os.close(theirs)
