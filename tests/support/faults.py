"""fastprof under failing system calls: run in a separate process with tests/support/shim.c preloaded.

`python -m tests.support.faults SHIM` reads lines of a folder, a tab and a name.  For each it injects the faults of
`PLANS[name]` below the folder one after the other, writes there `result`, JSON with the number of faults and the
failures, and `stderr`, and prints the exit status as a line of JSON.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import gc
import io
import json
import os
import shutil
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import fastprof
from fastprof import cli, formats
from fastprof.core.errors import FastprofError
from fastprof.store import adding as stores
from fastprof.store import listing
from fastprof.store.compact import compact, remove
from fastprof.verbs.batch.convert import BatchLog
from tests.contract.dump import files
from tests.support.conversions import OF_PROGRAMS, WRITERS, format_of
from tests.support.fault_jobs import CALLS, JOBS
from tests.support.paths import CORPUS
from tests.support.shim import CLOSE, MEMORY, NAME, OPEN, READ, SYNC, THREAD, WRITE, Fault, Faults, Shim

LIBRARIES = Path(fastprof.__file__).parent
SOURCES = ("xray/good/fdr5-pool-clang19.xray", "callgrind/good/xdebug.callgrind", "gperftools/good/64be.prof")


PROGRAM = CORPUS / "llvm-profile/small"


def sources(to: str) -> dict[str, dict[str, Any]]:
    """The corpus files that are written as a format, with the arguments."""
    if to in OF_PROGRAMS:
        return {"llvm-profile/few.callgrind": {"from_": "callgrind", "symbols": [str(PROGRAM)]}}
    return {file: {"from_": format_of(file)} for file in SOURCES}


def reading(faults: Faults, file: str) -> None:
    """A file of each format: its reads and those of its spooled copy."""
    path, from_ = faults.given(file), format_of(file)
    to = "archive"
    out = faults.out / "out"
    size = path.stat().st_size if path.is_file() else 4096

    def action() -> None:
        fastprof.convert(path, out, from_=from_, to=to)

    action()
    want = out.read_bytes()
    out.unlink()
    few = max(size // 10, 1)
    for most in {few, 7 if size < 20_000 else 256}:
        faults.run(f"{file} short", faults.inputs, Fault(READ, most=most), action, path, want)
    faults.run(f"{file} EINTR", faults.inputs, Fault(READ | OPEN, every=2, error=errno.EINTR), action, path, want)
    some = Fault(READ, error=errno.EIO, most=few)
    assert faults.each(f"{file} EIO", faults.inputs, some, action, path, want)
    assert faults.each(f"{file} EMFILE", faults.inputs, Fault(OPEN, error=errno.EMFILE), action, path, want)
    faults.each(f"{file} is not closed", faults.inputs, Fault(CLOSE, error=errno.EIO), action, path, want)

    def shrink() -> None:
        """Truncate to less than was certainly read, so that no data can follow."""
        os.truncate(path, size // 2)

    if path.is_file():
        nth = 0
        while not nth or faults.shim.seen >= nth:
            nth += 1
            path.write_bytes((CORPUS / file).read_bytes())
            # data that was already read cannot be missed
            fault = Fault(READ, nth, most=few, meanwhile=shrink)
            faults.run(f"{file} shrinks", faults.inputs, fault, action, path, want)
        faults.given(file)
    for fault, names in (
        (Fault(WRITE, error=errno.ENOSPC, most=few), faults.tmp),
        (Fault(OPEN, error=errno.EMFILE), faults.tmp),
        (Fault(READ, error=errno.EIO), faults.tmp),
    ):

        def piped() -> None:
            read, write = os.pipe()
            with open(read, "rb", buffering=0) as end, open(write, "wb", buffering=0) as other:
                os.set_blocking(write, False)
                with contextlib.suppress(BlockingIOError):
                    other.write((CORPUS / file).read_bytes())
                other.close()
                fastprof.convert(end, out, from_=from_, to=to)

        if path.is_file() and size < 60_000:  # the size of a pipe's buffer
            piped()
            data = out.read_bytes()
            out.unlink()
            faults.each(f"{file} spooled", faults.tmp, fault, piped, names, data)


def writing(faults: Faults, to: str) -> None:
    """Each written format, from one small source compressed in every way, to a new file and over an existing one."""
    suffixes = ["", ".gz", ".zst", ".xz", ".bz2"]
    of = sources(to)
    for file in sorted(of, key=lambda file: (CORPUS / file).stat().st_size):
        path, options = faults.given(file), of[file]
        for suffix in suffixes:
            out = faults.out / f"out{suffix}"

            def action(path: Path = path, out: Path = out, options: dict[str, Any] = options) -> None:
                fastprof.convert(path, out, to=to, **options)

            try:
                action()
            except FastprofError:
                continue  # no conversion exists from this view to that format
            want = out.read_bytes()
            out.unlink()
            what = f"{file} to {to}{suffix}"
            few = max(len(want) // 5, 1)
            faults.run(f"{what} short", faults.out, Fault(WRITE, most=few), action, out, want)
            again = Fault(WRITE | OPEN | SYNC, every=2, error=errno.EINTR)
            faults.run(f"{what} EINTR", faults.out, again, action, out, want)
            for fault in (
                Fault(WRITE, error=errno.ENOSPC, most=few),
                Fault(OPEN, error=errno.EMFILE),
                Fault(SYNC, error=errno.EIO),
                Fault(CLOSE, error=errno.EIO),
                Fault(NAME, error=errno.EDQUOT),
                Fault(WRITE | SYNC | NAME | OPEN, most=few, meanwhile=lambda: shutil.rmtree(faults.out)),
            ):
                assert faults.each(what, faults.out, fault, action, out, want), fault
            if suffix == suffixes[-1]:
                suffixes = [""]
        # a failed replacement keeps the old file
        out = faults.out / "out"
        for calls in (WRITE, SYNC, NAME):
            fault = Fault(calls, 1, error=errno.EIO)
            out.write_bytes(b"old")
            with faults.shim.set(faults.out, fault), contextlib.suppress(FastprofError):
                fastprof.convert(path, out, to=to, **options)
            if [p.read_bytes() for p in faults.out.iterdir()] != [b"old"]:
                faults.wrong.append(f"{file} to {to} {fault}: what was there is gone")
            out.unlink()


def compressed(faults: Faults, kind: str) -> None:
    """Compressed inputs."""
    from tests.unit.test_io import PACK

    file = SOURCES[1]
    path, out = faults.given(file, kind, PACK[kind]), faults.out / "out"

    def action() -> None:
        fastprof.convert(path, out, to="pprof")

    action()
    want = out.read_bytes()
    out.unlink()
    size = path.stat().st_size
    faults.run(f"{kind} short", faults.inputs, Fault(READ, most=7), action, path, want)
    faults.run(f"{kind} EINTR", faults.inputs, Fault(READ, every=2, error=errno.EINTR), action, path, want)
    faults.each(f"{kind} EIO", faults.inputs, Fault(READ, error=errno.EIO, most=size // 7), action, path, want)
    for nth in range(1, 9):
        faults.given(file, kind, PACK[kind])
        fault = Fault(READ, nth, most=size // 7, meanwhile=lambda: os.truncate(path, size // 2))
        faults.run(f"{kind} shrinks", faults.inputs, fault, action, path, want)


def adding(faults: Faults, _: str) -> None:
    """Add to a store: its contents stay, whether or not the addition succeeds."""
    path, kept = faults.given(SOURCES[1]), faults.inputs / "store.fpa"
    stores.add(str(kept), [str(path)], name="one")
    before = kept.read_bytes()
    empty = faults.inputs / "new.fpa"
    for fault in (
        Fault(WRITE, error=errno.ENOSPC, most=400),
        Fault(SYNC, error=errno.EIO),
        Fault(READ, error=errno.EIO),
        Fault(OPEN, error=errno.EMFILE),
    ):
        for where in (kept, empty):
            nth = 0
            while not nth or faults.shim.seen >= nth:
                nth += 1
                kept.write_bytes(before)
                faults.run(
                    f"adding to {where.name}",
                    where,
                    fault._replace(nth=nth),
                    lambda where=where: stores.add(str(where), [str(path)], name="two"),  # type: ignore[misc]
                    where,
                )
                names = [member["name"] for member in listing.members(str(kept))]
                if names[:1] != ["one"] or (where == empty and faults.shim.seen >= nth and empty.exists()):
                    faults.wrong.append(f"adding to {where.name} {fault} {nth}: {names}, {empty.exists()}")
                empty.unlink(missing_ok=True)


def changing(faults: Faults, verb: str) -> None:
    """Remove from a store or rewrite it: afterwards it has its old or its new state."""
    folder = faults.inputs
    store_ = str(folder / "store.fpa")
    stores.add(store_, [str(CORPUS / SOURCES[1])], name="one")
    stores.add(store_, [str(CORPUS / SOURCES[2])], name="two")
    if verb == "compact":
        remove(store_, ["one"])
    kept, was = Path(store_).read_bytes(), listing.names(store_)
    for fault in (
        Fault(WRITE, error=errno.ENOSPC, most=400),
        Fault(SYNC, error=errno.EIO),
        Fault(NAME, error=errno.EDQUOT),
        Fault(READ, error=errno.EIO),
        Fault(OPEN, error=errno.EMFILE),
    ):
        nth = 0
        while not nth or faults.shim.seen >= nth:
            nth += 1
            Path(store_).write_bytes(kept)

            def action() -> None:
                if verb == "compact":
                    compact(store_)
                else:
                    remove(store_, ["one"])

            good = faults.run(verb, folder, fault._replace(nth=nth), action, folder)
            names = listing.names(store_)
            if names not in ([["two"]] if good else [was, ["two"]]):
                faults.wrong.append(f"{verb} {fault} {nth}: {names}")
            if left := [path for path in folder.iterdir() if str(path) != store_]:
                faults.wrong.append(f"{verb} {fault} {nth}: left {left}")


def batching(faults: Faults, _: str) -> None:
    """A batch whose manifest cannot be written: repeating the call resumes it."""
    path, outdir = faults.given(SOURCES[1]), faults.inputs / "batch"

    def action() -> BatchLog:
        return fastprof.batch_convert([str(path)], outdir, to="folded", jobs=1)

    for fault in (
        Fault(WRITE, error=errno.ENOSPC, most=150),
        Fault(SYNC, error=errno.EIO),
        Fault(OPEN, error=errno.EMFILE),
    ):
        nth = 0
        while not nth or faults.shim.seen >= nth:
            nth += 1
            faults.run("batch", outdir, fault._replace(nth=nth), action, outdir)
            again = action()
            if again.statuses["ok"] != 1 or len([*outdir.rglob("*.folded")]) != 1:
                faults.wrong.append(f"batch {fault} {nth}: {again}")
            shutil.rmtree(outdir)


def doing(faults: Faults, name: str) -> None:
    """A job, with faults under its inputs, its outputs and its temporary files."""
    action = JOBS[name](faults.inputs, faults.out)
    action()
    want = [*map(Path.read_bytes, faults.outputs())]
    for path in faults.outputs():
        path.unlink()
    size = max(map(len, want))
    again, few = Fault(READ | WRITE | OPEN | SYNC, every=2, error=errno.EINTR), max(size // 4, 1)
    for below in faults.inputs, faults.out, faults.tmp:
        faults.run(f"{name} short", below, Fault(READ | WRITE, most=few), action, below, want)
        faults.run(f"{name} EINTR", below, again, action, below, want)
    for below, fault in (
        (faults.inputs, Fault(READ, error=errno.EIO)),
        (faults.inputs, Fault(OPEN, error=errno.EMFILE)),
        (faults.out, Fault(WRITE, error=errno.ENOSPC, most=few)),
        (faults.out, Fault(OPEN, error=errno.EMFILE)),
        (faults.out, Fault(SYNC, error=errno.EIO)),
        (faults.out, Fault(CLOSE, error=errno.EIO)),
        (faults.out, Fault(NAME, error=errno.EDQUOT)),
        (faults.out, Fault(WRITE | SYNC | NAME | OPEN, most=few, meanwhile=lambda: shutil.rmtree(faults.out))),
        (faults.tmp, Fault(WRITE, error=errno.ENOSPC)),
        (faults.tmp, Fault(READ, error=errno.EIO)),
        (faults.tmp, Fault(OPEN, error=errno.EMFILE)),
    ):
        if below == faults.out and name == "show":
            continue  # the test itself writes it
        n = faults.each(name, below, fault, action, below, want)
        assert n or below == faults.tmp, (below, fault)
        faults.spilled += n * (below == faults.tmp)
    assert faults.spilled or not name.startswith("spill")
    if name.startswith("threads"):
        few = max(size // 20, 1)

        def shrink() -> None:
            os.truncate(path, nbytes // 2)

        (path,) = faults.inputs.iterdir()
        data = path.read_bytes()
        nbytes, nth = len(data), 0
        while not nth or faults.shim.seen >= nth:
            nth += 1
            path.write_bytes(data)
            faults.run(f"{name} shrinks", path, Fault(READ, nth, most=few, meanwhile=shrink), action, path, want)
        path.write_bytes(data)
        none = Fault(THREAD, error=errno.EAGAIN)
        assert faults.each(name, faults.inputs, none, action, Path("cannot start a thread"), want)


_VERBS: dict[str, tuple[str, str]] = {
    "convert timeline": (SOURCES[0], "convert - -q -t callgrind -o -"),
    "convert graph": (SOURCES[1], "convert - -q -t pprof -o -"),
    "convert stacks": (SOURCES[2], "convert - -q -t archive"),
    "merge": (SOURCES[1], "merge - {} -q -t callgrind -o -"),
    "diff": (SOURCES[1], "diff - {} -q"),
    "info": (SOURCES[0], "info - --json"),
    "top": (SOURCES[2], "top - -q --csv"),
    "annotate": (SOURCES[1], "annotate - -q"),
    "report": (SOURCES[2], "report - -q -o -"),
}


def streams(path: Path, out: Path, command: list[str]) -> Callable[..., None]:
    """Runs the command with standard input from `path` and output to `out`, each directly or through a pipe."""
    data = path.read_bytes()

    def action(piped_in: bool = False, piped_out: bool = False) -> None:
        ends = []
        with contextlib.ExitStack() as opened:
            for number, piped in ((0, piped_in), (1, piped_out)):
                opened.callback(os.close, kept := os.dup(number))
                opened.callback(os.dup2, kept, number)
                if piped:
                    read, write = os.pipe()
                    fcntl.fcntl(read, fcntl.F_SETPIPE_SZ, 1 << 20)  # no other process reads or writes at the same time
                    ends.append(opened.enter_context(open((write, read)[number], ("wb", "rb")[number], buffering=0)))
                    mine = (read, write)[number]
                else:
                    mine = os.open((path, out)[number], (os.O_RDONLY, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)[number])
                os.dup2(mine, number)
                os.close(mine)
            if piped_in:
                ends[0].write(data)
                ends[0].close()
            said = io.StringIO()
            opened.enter_context(contextlib.redirect_stderr(said))
            with open(1, "w", closefd=False) as text, contextlib.redirect_stdout(text):
                code = cli.main(command)
            if piped_out:
                os.dup2(2, 1)
                out.write_bytes(ends[-1].read())
        if code:
            out.unlink()
        errors = [line for line in said.getvalue().splitlines() if not line.startswith("fastprof: warning: ")]
        if not errors:
            assert not code
            return
        error = errors[0]
        if error.startswith("{"):  # --json
            error = f"fastprof: {json.loads(error)['message']}"
        assert code == 1 and error.startswith("fastprof: <std"), errors
        raise FastprofError(error)

    return action


def streaming(faults: Faults, verb: str) -> None:
    """Standard input and output, as files and as pipes opened by others: the output written so far is kept."""
    file, words = _VERBS[verb]
    path, out = faults.given(file), faults.out / "out"
    action = streams(path, out, words.format(shutil.copy(path, faults.inputs / "other")).split())
    data = path.read_bytes()

    action()
    want = out.read_bytes()
    out.unlink()
    few = len(data) // 10
    for piped in False, True:
        below = Path("pipe:") if piped else path
        read = partial(action, piped_in=piped)
        faults.run(f"{verb} short", below, Fault(READ, most=few), read, path, want)
        faults.run(f"{verb} EINTR", below, Fault(READ, every=2, error=errno.EINTR), read, path, want)
        assert faults.each(verb, below, Fault(READ, error=errno.EIO, most=few), read, Path("<stdin>"), want)
        below = Path("pipe:") if piped else out
        write = partial(action, piped_out=piped)
        faults.run(f"{verb} short", below, Fault(WRITE, most=7), write, path, want)
        faults.run(f"{verb} EINTR", below, Fault(WRITE, every=2, error=errno.EINTR), write, path, want)
        for error in errno.ENOSPC, errno.EIO:
            some = Fault(WRITE, error=error, most=max(len(want) // 5, 1))
            assert faults.each(verb, below, some, write, Path("<stdout>"), want)
    nth = 0
    while not nth or faults.shim.seen >= nth:
        nth += 1
        path.write_bytes(data)
        fault = Fault(READ, nth, most=few, meanwhile=lambda: os.truncate(path, len(data) // 2))
        faults.run(f"{verb} shrinks", path, fault, action, Path("<stdin>"), want)


def starving(faults: Faults, what: str, action: Callable[[], object]) -> None:
    """Fail the libraries' first allocation, then the second ... until one is beyond the last.

    Nothing may crash or leak; and a successful run has the same outputs.
    """

    def done() -> tuple[str, list[bytes]]:
        """The error, without its traceback, which keeps objects alive; and the outputs."""
        error = ""
        try:
            action()
        except Exception as e:
            error = f"{type(e).__name__}: {e}"
        gc.collect()
        outputs = faults.outputs()
        data = [*map(Path.read_bytes, outputs)]
        for path in outputs:
            path.unlink()
        return error, data

    want = done()
    nth = 0
    while not nth or faults.shim.seen >= nth:
        nth += 1
        faults.made += 1
        with faults.shim.set(LIBRARIES, Fault(MEMORY, nth, error=errno.ENOMEM)):
            error, data = done()
            blocks = faults.shim.blocks
        problems = {
            "": error and not error.startswith("MemoryError: "),
            "an output": error and data,
            "another output": not error and (error, data) != want,
            f"{blocks} blocks are kept": blocks,
            "temporary files": [*faults.tmp.iterdir()],
        }
        for problem, is_one in problems.items():
            if is_one:
                faults.wrong.append(f"{what}, allocation {nth}: {problem} {error}")


def starved_reading(faults: Faults, file: str) -> None:
    path, out = faults.given(file), faults.out / "out"
    starving(faults, file, lambda: fastprof.convert(path, out, from_=format_of(file), to="archive"))


def starved_writing(faults: Faults, to: str) -> None:
    for file, options in sources(to).items():
        path, out = faults.given(file), faults.out / "out"

        def action(path: Path = path, out: Path = out, options: dict[str, Any] = options) -> None:
            fastprof.convert(path, out, to=to, **options)

        try:
            action()
        except FastprofError:
            continue  # no conversion exists from this view to that format
        starving(faults, f"{file} to {to}", action)


def starved_doing(faults: Faults, name: str) -> None:
    starving(faults, name, {**JOBS, **CALLS}[name](faults.inputs, faults.out))


def _typical() -> Iterator[str]:
    """One file per format that is neither tiny nor slow."""
    for format_ in dict.fromkeys(map(format_of, files("good"))):
        mine = [file for file in files("good") if format_of(file) == format_]
        yield min(mine, key=lambda file: abs((CORPUS / file).stat().st_size - 20_000))


PLANS: dict[str, tuple[Callable[[Faults, str], None], str]] = {
    **{f"reading {format_of(file)}": (reading, file) for file in _typical()},
    "reading a directory": (reading, "oprofile/good/abi-i386.tar/"),
    **{f"writing {to}": (writing, to) for to in WRITERS},
    **{f"reading {kind}": (compressed, kind) for kind in (".gz", ".zst", ".xz", ".bz2")},
    "adding": (adding, ""),
    "removing": (changing, "rm"),
    "compacting": (changing, "compact"),
    "batch": (batching, ""),
    **{name: (doing, name) for name in JOBS},
    **{f"standard streams of {verb}": (streaming, verb) for verb in _VERBS},
    **{f"reading {format_of(file)} without memory": (starved_reading, file) for file in _typical()},
    **{f"writing {to} without memory": (starved_writing, to) for to in WRITERS},
    **{f"{name} without memory": (starved_doing, name) for name in [*JOBS, *CALLS]},
}


def main() -> None:
    """Fork a process for each plan, so that the imports, most of a second, happen once."""
    shim = Shim(sys.argv[1])
    formats.formats()
    gc.freeze()  # and are exempt from the collection after each fault
    for line in sys.stdin:
        folder, name = line.rstrip("\n").split("\t")
        if pid := os.fork():
            print(json.dumps({"status": os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])}), flush=True)
            continue
        signal.alarm(500)
        with open(Path(folder, "stderr"), "wb") as said:
            os.dup2(said.fileno(), 2)
        status = 1
        try:
            faults = Faults(shim, Path(folder, "faults"))
            plan, of = PLANS[name]
            plan(faults, of)
            Path(folder, "result").write_text(json.dumps({"made": faults.made, "wrong": faults.wrong}))
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(status)


if __name__ == "__main__":
    main()
