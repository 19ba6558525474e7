"""Archives on the command line, and the options that they refuse."""

from __future__ import annotations

import gzip
import json
import os
import resource
import subprocess
from pathlib import Path

import pytest

import fastprof
from tests.support.paths import REPO
from tests.unit.test_cli import COMMAND, EVENTS, POOL, environment, run

CALLGRIND = str(REPO / "tests" / "corpus" / "callgrind" / "good" / "quirks_inherit.callgrind")


def test_add_list_extract(tmp_path: Path) -> None:
    store = str(tmp_path / "store.fpa")
    run("archive", "add", store, POOL, CALLGRIND)
    run("archive", "add", store, EVENTS, "--name", "events", "--level", "19")
    names = [m["name"] for m in json.loads(run("archive", "list", store, "--json").stdout)["profiles"]]
    assert names == sorted([Path(POOL).name, Path(CALLGRIND).name, "events"])
    assert run("archive", "list", store).stdout.count(b"\n") == 5
    for name, original in ((Path(POOL).name, POOL), (Path(CALLGRIND).name, CALLGRIND), ("events", EVENTS)):
        extracted, direct = tmp_path / "extracted.callgrind", tmp_path / "direct.callgrind"
        run("archive", "extract", store, name, "-o", str(extracted))
        run("convert", original, "-o", str(direct))
        assert extracted.read_bytes() == direct.read_bytes()
    assert b"has no profile 'x'" in run("archive", "extract", store, "x", "--to", "callgrind", code=2).stderr
    assert b"archive: at byte 0: magic is" in run("archive", "extract", POOL, "x", "--to", "callgrind", code=1).stderr
    assert b"already" in run("archive", "add", store, POOL, code=1).stderr


def test_a_store_is_a_plain_file(tmp_path: Path) -> None:
    fifo, empty = tmp_path / "fifo", tmp_path / "empty.fpa"
    os.mkfifo(fifo)
    expected = f"fastprof: {fifo}: a store must be a plain file\n".encode()
    assert run("archive", "add", str(fifo), POOL, code=2).stderr == expected
    assert fifo.is_fifo()
    packed = tmp_path / "a.gz"
    packed.write_bytes(gzip.compress(b"x"))
    assert b"plain file, not compressed" in run("archive", "list", str(packed), code=2).stderr
    for action in ("list", "verify"):
        expected = f"fastprof: {tmp_path}: is a directory, expected a store\n".encode()
        assert run("archive", action, str(tmp_path), code=2).stderr == expected
    # an empty file may become a store, like one from mktemp, but is not one yet
    empty.touch()
    for action in (["list", str(empty)], ["extract", str(empty), "x", "--to", "callgrind"]):
        expected = f"fastprof: {empty}: archive: at byte 0: the file is empty\n".encode()
        assert run("archive", *action, code=1).stderr == expected
    run("archive", "add", str(empty), POOL)
    assert json.loads(run("archive", "list", str(empty), "--json").stdout)["profiles"][0]["name"] == Path(POOL).name


def test_a_name_is_taken_as_it_is_and_as_it_is_listed(tmp_path: Path) -> None:
    store = str(tmp_path / "store.fpa")
    names = ["a\udcff\nb", "\u202e", "\\u202e", "\\x1b", "\x1b", "c\nd", "c\\nd", "d\r"]
    for n, name in enumerate(names):
        path = tmp_path / "x.callgrind"
        path.write_text(f"events: Ir\nfl=a\nfn=f\n1 {n}\n")
        run("archive", "add", store, str(path), "--name", name)
    listed = [
        line.split(b"  ")[0].decode()
        for line in run("archive", "list", store, "--sort", "added").stdout.splitlines()[1:-1]
    ]
    assert listed == ["a\\udcff\\nb", *["\\u202e"] * 2, *["\\x1b"] * 2, *["c\\nd"] * 2, "d\\r"]
    for n, name in enumerate(names):
        assert f"\n1 {n}\n".encode() in run("archive", "extract", store, name, "--to", "callgrind").stdout
    for n, name in [(0, listed[0]), (2, listed[1]), (3, listed[3]), (6, listed[5]), (7, listed[7])]:
        assert f"\n1 {n}\n".encode() in run("archive", "extract", store, name, "--to", "callgrind").stdout
    assert run("info", store, "--member", listed[0]).stdout


def test_what_was_mended_for_the_archive_is_said_of_what_is_made_of_it(tmp_path: Path) -> None:
    source, archive = str(REPO / "tests" / "corpus" / "xray" / "good" / "basic3-busy.xray"), str(tmp_path / "a.fpa")
    run("convert", source, "-o", archive)
    direct = run("convert", source, "--to", "callgrind").stdout
    assert b"desc: Repairs: 1 orphan arguments" in direct
    assert run("convert", archive, "--to", "callgrind").stdout == direct


@pytest.mark.parametrize("costs", ["...", "x..", ".x.", "..x", "x.x"])
def test_parts_without_rows_stay(costs: str, tmp_path: Path) -> None:
    """Callgrind writes them for threads that were idle between two dumps."""
    parts = [
        f"part: {i}\npositions: line\nevents: {event}\nsummary: {rows}\n"
        + "fl=a\nfn=f\n1 1\n" * rows
        + f"totals: {rows}\n"
        for i, event, rows in zip((1, 2, 3), ("Ir", "Dr", "Bc"), (int(c == "x") for c in costs), strict=True)
    ]
    source, archive = tmp_path / "a.callgrind", tmp_path / "a.fpa"
    source.write_text("version: 1\ncreator: callgrind-3.19.0\npid: 5\ncmd: p\n" + "\n".join(parts))
    fastprof.convert([source], archive)
    for to in ("callgrind", "cachegrind", "pprof"):
        for inputs in ([source], [source, CALLGRIND]):
            made = []
            for first in (source, archive):
                fastprof.convert([first, *inputs[1:]], tmp_path / "out", to=to, **{"union": True} if inputs[1:] else {})
                made.append((tmp_path / "out").read_bytes())
            assert made[0] == made[1]
    for part in (1, 2, 3):
        out = run("convert", str(archive), "--part", str(part), "--to", "callgrind").stdout
        assert [line for line in out.splitlines() if line.startswith(b"part: ")] == [b"part: %d" % part]


def test_a_directory_is_added_file_by_file(tmp_path: Path) -> None:
    store, folder = str(tmp_path / "store.fpa"), tmp_path / "dumps"
    folder.mkdir()
    for name in ("out.10", "out.9", "out.11"):
        (folder / name).write_bytes(Path(CALLGRIND).read_bytes())
    (folder / "more").symlink_to(tmp_path)
    assert run("archive", "add", store, str(folder) + "/").stderr.count(b"not regular files: more") == 1
    listed = json.loads(run("archive", "list", store, "--sort", "added", "--json").stdout)["profiles"]
    names = [m["name"] for m in listed]
    assert names == ["out.9", "out.10", "out.11"]
    assert b"--name takes a single" in run("archive", "add", store, str(folder), "--name", "x", code=2).stderr
    assert b"out.9, out.10" in run("top", store, code=2).stderr
    assert json.loads(run("info", store, "--member", "out.10", "--json").stdout)["facts"]["records"] == 11


def test_a_store_that_does_not_fit_is_as_it_was(tmp_path: Path) -> None:
    store = tmp_path / "store.fpa"
    run("archive", "add", str(store), CALLGRIND)
    before = store.read_bytes()
    size = (len(before), resource.RLIM_INFINITY)
    done = subprocess.run(
        [*COMMAND, "archive", "add", str(store), POOL],
        capture_output=True,
        env=environment(),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, size),
    )
    assert (done.returncode, done.stderr) == (1, f"fastprof: {store}: File too large\n".encode())
    assert store.read_bytes() == before


def test_names_of_profiles(tmp_path: Path) -> None:
    store = str(tmp_path / "store.fpa")
    data = Path(POOL).read_bytes()
    assert b"use --name" in run("archive", "add", store, "-", stdin=data, code=2).stderr
    assert b"needs a name" in run("archive", "add", store, POOL, "--name", "", code=2).stderr
    assert not Path(store).exists()
    run("archive", "add", store, "-", "--name", "../a\x1b[31m", stdin=data)
    assert run("archive", "list", store).stdout.splitlines()[1].startswith(b"../a\\x1b[31m  timeline")
    (entry,) = json.loads(run("archive", "list", store, "--json").stdout)["profiles"]
    assert entry["name"] == "../a\x1b[31m"
    extracted = run("archive", "extract", store, entry["name"], "--to", "callgrind").stdout
    assert extracted == run("convert", POOL, "--to", "callgrind").stdout
    folder = run("archive", "extract", store, entry["name"], "--to", "callgrind", "-o", str(tmp_path), code=1)
    assert b"leads out of the output folder" in folder.stderr
    assert [p.name for p in tmp_path.iterdir()] == ["store.fpa"]


def test_a_thread_of_an_archive(tmp_path: Path) -> None:
    store = str(tmp_path / "pool.fpa")
    run("convert", POOL, "-o", store)
    whole = json.loads(run("convert", store, "--to", "callgrind", "--per-thread", "--json").stderr)
    out = run("convert", store, "--to", "callgrind", "--per-thread").stdout.decode()
    threads = [line.split()[1] for line in out.splitlines() if line.startswith("thread:")]
    assert len(threads) == 4
    calls = 0
    for thread in threads:
        one = run("convert", store, "--to", "callgrind", "--thread", thread, "--json")
        calls += json.loads(one.stderr)["rows"]["calls"]
    assert calls == whole["rows"]["calls"]
    refused = run("convert", store, "--to", "callgrind", "--thread", "1", code=2)
    said = f"fastprof: {store}: no row matches --thread=1; the threads are {', '.join(sorted(threads))}\n"
    assert refused.stderr.decode() == said
    refused = run("convert", store, "--to", "callgrind", "--part", "2", code=2)
    assert refused.stderr.decode() == f"fastprof: {store}: no row matches --part=2\n"


def test_selections_and_levels_are_refused_where_they_mean_nothing(tmp_path: Path) -> None:
    store = tmp_path / "pool.fpa"
    run("convert", POOL, "-o", str(store))
    says = f"{POOL}: --member has no effect from xray to callgrind: it applies to reading archive; convert it"
    for inputs in ([POOL], [str(store), POOL], [POOL, str(store)]):
        assert says.encode() in run("convert", *inputs, "--to", "callgrind", "--member", "", code=2).stderr
    says = f"{store}: --level has no effect from archive to callgrind: it applies to writing archive"
    refused = run("convert", str(store), "--to", "callgrind", "--level", "3", code=2)
    assert refused.stderr.decode() == f"fastprof: {says}\n"


def test_an_archive_without_names_is_told_how_to_get_them(tmp_path: Path) -> None:
    symbols = ("-s", str(REPO / "tests" / "corpus" / "xray" / "pool-clang19.yaml"))
    store, log = str(tmp_path / "pool.fpa"), str(tmp_path / "pool.xray")
    run("convert", POOL, "-o", store)
    refused = run("convert", store, *symbols, "--to", "callgrind", code=2)
    assert refused.stderr.decode().endswith("; convert it to xray first\n")
    run("convert", store, "-o", log)
    named = run("convert", log, *symbols, "--to", "callgrind").stdout
    assert named == run("convert", POOL, *symbols, "--to", "callgrind").stdout


def test_selections_are_refused_by_the_python_interface_too() -> None:
    says = "pool-clang19.xray: member= has no effect with xray: it applies to reading archive"
    for read in (fastprof.open, fastprof.info):
        with pytest.raises(fastprof.UsageError, match=says):
            read(POOL, member="x")


def test_info_says_which_calls_do_not_fit() -> None:
    (repair,) = json.loads(run("info", POOL, "--json").stdout)["repairs"]
    assert (repair["code"], repair["count"]) == ("unwound-frames", 3)


def test_two_pprofs_are_summed(tmp_path: Path) -> None:
    one, both = tmp_path / "one.pb.gz", tmp_path / "both.pb.gz"
    run("convert", POOL, "-o", str(one))
    run("convert", str(one), str(one), "-o", str(both))
    totals = [json.loads(run("info", str(p), "--json").stdout)["facts"]["totals"] for p in (one, both)]
    assert totals[1] == {name: 2 * value for name, value in totals[0].items()}
    samples = [json.loads(run("info", str(p), "--json").stdout)["facts"]["records"] for p in (one, both)]
    assert samples[0] == samples[1]
