"""Stores on the command line: repeated adding, listings, profiles of a store as inputs of every verb."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

import fastprof
from fastprof.cli import main, text
from fastprof.core.errors import FastprofError, UsageError
from fastprof.store import compact, listing
from fastprof.store.listing import members
from tests.unit.test_cli import run

DUMP = "events: Ir\nfl=a.c\nfn={}\n1 {}\n"


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of dumps of two hosts, next to which commands run."""
    for host, n in (("host1", 3), ("host2", 2)):
        (tmp_path / "runs" / host).mkdir(parents=True)
        for i in range(n):
            (tmp_path / "runs" / host / f"{i}.callgrind").write_text(DUMP.format(f"{host}_f{i}", 10**i))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "runs"


NAMES = [f"host1/{i}.callgrind" for i in range(3)] + [f"host2/{i}.callgrind" for i in range(2)]


def archive(*words: str, code: int = 0) -> None:
    assert main(["archive", *words]) == code


def names(path: str = "s.fpa") -> list[str]:
    return [member["name"] for member in members(path, sort="added")]


def test_a_tree_is_added_by_relative_paths(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    archive("add", "s.fpa", "runs")
    assert names() == NAMES
    assert capsys.readouterr().err == "fastprof: wrote s.fpa: added 5 profiles\n"
    archive("add", "t.fpa", "./runs/", "runs/host2/1.callgrind")
    assert names("t.fpa") == [*NAMES, "1.callgrind"]


def test_the_store_itself_is_no_input(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    archive("add", "runs/s.fpa", "runs")
    archive("add", "runs/s.fpa", "runs", "--skip-existing")
    assert names("runs/s.fpa") == NAMES
    assert "runs/s.fpa: skipped, it is the store itself" in capsys.readouterr().err


def test_names_that_are_there(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    archive("add", "s.fpa", "runs/host1/0.callgrind", "runs/host1/1.callgrind")
    before = Path("s.fpa").read_bytes()
    (runs / "host1" / "0.callgrind").write_text(DUMP.format("other", 7))
    archive("add", "s.fpa", "runs/host1", code=1)
    said = "s.fpa: already has a profile '0.callgrind' and 1 more; use --skip-existing or --replace\n"
    assert capsys.readouterr().err.endswith(said)
    assert Path("s.fpa").read_bytes() == before
    archive("add", "s.fpa", "runs/host1", "--skip-existing")
    assert "wrote s.fpa: added 1 profile, skipped 2 already present" in capsys.readouterr().err
    assert [member["totals"]["Ir"] for member in members("s.fpa")] == [1, 10, 100]
    archive("add", "s.fpa", "runs/host1", "--replace")
    assert "wrote s.fpa: added 3 profiles, replacing 3" in capsys.readouterr().err
    assert [member["totals"]["Ir"] for member in members("s.fpa")] == [7, 10, 100]
    archive("add", "s.fpa", "runs/host1", "--replace", "--skip-existing", code=2)
    assert compact.verify("s.fpa") == []


def test_keep_going(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (runs / "host1" / "1.callgrind").write_text("events: Ir\nfn=f\n1 x\n")
    archive("add", "s.fpa", "runs", code=1)
    assert names() == NAMES[:1]  # added before the error
    archive("add", "s.fpa", "runs", "--keep-going", code=3)
    said = capsys.readouterr().err
    assert "wrote s.fpa: added 3 profiles" in said and "losses: 2 inputs that could not be read" in said
    assert "runs/host1/1.callgrind: callgrind: line 3" in said and "already has a profile" in said
    assert names() == [name for name in NAMES if name != "host1/1.callgrind"]
    archive("add", "s.fpa", "runs", "--keep-going", "--skip-existing", "-q", code=3)
    archive("add", "s.fpa", "runs", "--keep-going", "--name", "x", code=2)


def test_two_inputs_of_one_name(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    archive("add", "s.fpa", "runs/host1", "runs/host2", code=2)
    said = "runs/host1/0.callgrind and runs/host2/0.callgrind would both be named '0.callgrind': "
    assert said + "pass a directory that has both" in capsys.readouterr().err
    assert not os.path.exists("s.fpa")


def test_list(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    archive("add", "s.fpa", "runs")
    os.utime("runs/host2/1.callgrind", (0, 10**9))
    archive("add", "s.fpa", "runs/host2/1.callgrind")
    capsys.readouterr()

    def listed(*words: str) -> list[list[str]]:
        archive("list", "s.fpa", *words)
        return [line.split() for line in capsys.readouterr().out.splitlines()]

    head, *rows, last = listed("host1/*")
    assert head == ["name", "view", "format", "date", "rows", "bytes", "total"]
    assert [row[0] for row in rows] == NAMES[:3]
    assert [(row[1], row[2], row[-2], row[-1]) for row in rows] == [
        ("graph", "callgrind", n, "Ir") for n in ("1", "10", "100")
    ]
    assert last[:3] == ["3", "profiles", "3"] and int(last[3]) == sum(int(row[-3]) for row in rows)
    assert [row[0] for row in listed("--sort", "name")[1:-1]] == sorted([*NAMES, "1.callgrind"])
    oldest = listed("--sort", "date")[1]
    assert oldest[0] == "1.callgrind" and oldest[3].startswith("2001-09-0")
    archive("list", "s.fpa", "1.callgrind", "host2/*", "--json")
    said = json.loads(capsys.readouterr().out)["profiles"]
    assert [one["name"] for one in said] == ["1.callgrind", *NAMES[3:]]
    archive("list", "s.fpa", "1.callgrind", "host2/*", "*", "--sort", "added", "--json")
    assert [one["name"] for one in json.loads(capsys.readouterr().out)["profiles"]] == [*NAMES, "1.callgrind"]
    wanted = {"format": "callgrind", "mtime": 10**18, "nbytes": len(DUMP.format("host2_f1", 10)), "totals": {"Ir": 10}}
    assert wanted.items() <= said[0].items()
    archive("list", "s.fpa", "nothing*", code=2)
    with pytest.raises(UsageError, match="sorted by 'colour'"):
        members("s.fpa", sort="colour")


def test_a_list_is_printed_as_it_is_read(
    runs: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    archive("add", "s.fpa", "runs")
    capsys.readouterr()
    archive("list", "s.fpa")
    whole = capsys.readouterr().out
    monkeypatch.setattr(text, "_BLOCK", 2)
    read, entry = [], listing._entry
    monkeypatch.setattr(listing, "_entry", lambda *args: read.append(args[-1].name) or entry(*args))
    monkeypatch.setattr(sys.stdout, "flush", lambda: read.append("|"))
    archive("list", "s.fpa")
    first = read.index(NAMES[0])
    assert read[first : first + 4] == [NAMES[0], "|", *NAMES[1:3]]
    assert [line.split() for line in capsys.readouterr().out.splitlines()] == [
        line.split() for line in whole.splitlines()
    ]
    archive("list", "s.fpa", "host[12]/*", "host2/*", NAMES[0], "--json")  # each once
    assert [one["name"] for one in json.loads(capsys.readouterr().out)["profiles"]] == NAMES
    archive("rm", "s.fpa", "*")
    capsys.readouterr()
    archive("list", "s.fpa", "--json")
    assert json.loads(capsys.readouterr().out)["profiles"] == []


def test_info_of_a_store(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    archive("add", "s.fpa", "runs")
    facts = fastprof.info("s.fpa").facts
    assert (facts["profiles"], facts["records"]) == (5, 5)
    assert facts["profiles_by_view"] == {"graph": 5} and facts["profiles_by_format"] == {"callgrind": 5}
    assert facts["bytes_of_profiles"] < facts["bytes"] == os.path.getsize("s.fpa")
    compact.remove("s.fpa", NAMES[1:])
    assert fastprof.info("s.fpa").facts["totals"] == {"Ir": 1}  # of the remaining profile
    compact.remove("s.fpa", NAMES[:1])
    assert fastprof.info("s.fpa").facts["profiles"] == 0


def test_extract_many(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    archive("add", "s.fpa", "runs")
    archive("extract", "s.fpa", "host1/*", "-t", "folded", "-o", "out")
    assert sorted(str(path) for path in Path("out").rglob("*.*")) == [f"out/{name}.folded" for name in NAMES[:3]]
    assert Path("out/host1/2.callgrind.folded").read_text() == "host1_f2 100\n"
    archive("extract", "s.fpa", "host1/*", "-o", "out", code=2)
    archive("extract", "s.fpa", "host1/*", "-t", "folded", code=2)
    archive("extract", "s.fpa", "host1/2*", "-o", "one.folded")  # a pattern that matches one profile names it
    assert Path("one.folded").read_text() == "host1_f2 100\n"
    assert main(["archive", "add", "s.fpa", "runs/host1/0.callgrind", "--name", "../0"]) == 0
    capsys.readouterr()
    archive("extract", "s.fpa", "*", "-t", "folded", "-o", "out", code=1)
    assert "the name '../0' leads out of the output folder" in capsys.readouterr().err


def test_profiles_of_a_store_are_inputs_of_every_verb(runs: Path, capfdbinary: Any) -> None:
    archive("add", "s.fpa", "runs")

    def out(*words: str) -> bytes:
        capfdbinary.readouterr()
        assert main([*words]) == 0
        return bytes(capfdbinary.readouterr().out)

    one, many = "s.fpa:host1/1.callgrind", "s.fpa:host1/*"
    assert out("convert", one, "-t", "folded") == b"host1_f1 10\n"
    files = [f"runs/{name}" for name in NAMES[:3]]
    for verb in ("convert", "merge"):
        assert out(verb, many, "-t", "pprof") == out(verb, *files, "-t", "pprof").replace(
            b"runs/host", b"s.fpa:host"
        )  # under their names
    assert out("top", many) == out("top", *files)
    assert out("annotate", one) == out("annotate", files[1])
    assert json.loads(out("info", one, "--json"))["facts"]["totals"] == {"Ir": 10}
    assert json.loads(out("info", "s.fpa:*1/1*", "--json"))["profiles"][0]["facts"]["file"] == one
    assert out("diff", "s.fpa:host1/0*", "s.fpa:host2/1*", "--json")
    assert main(["report", one, "-o", "page.html"]) == 0
    assert fastprof.open(one).log is not None
    assert sum(len(batch) for batch in fastprof.open(one)) == 1


def test_profiles_of_a_store_are_inputs_of_a_batch(runs: Path) -> None:
    archive("add", "s.fpa", "runs")
    assert fastprof.batch_convert("s.fpa:host1/*", "out", to="folded").statuses == {"ok": 3}
    assert Path("out/host1/1.callgrind.folded").read_text() == "host1_f1 10\n"
    assert fastprof.batch_convert("s.fpa:host1/*", "out", to="folded").earlier == 3
    (runs / "host1" / "1.callgrind").write_text(DUMP.format("f", 11))
    archive("add", "s.fpa", "runs", "--replace")
    assert fastprof.batch_convert("s.fpa:host1/*", "out", to="folded").earlier == 0
    assert Path("out/host1/1.callgrind.folded").read_text() == "f 11\n"
    log = fastprof.batch_archive("s.fpa:host1/*", "t.fpa")
    assert log.statuses == {"ok": 3} and sorted(names("t.fpa")) == NAMES[:3]


def test_profiles_of_a_store_are_added_to_another_under_their_names(runs: Path) -> None:
    archive("add", "s.fpa", "runs")
    archive("add", "t.fpa", "s.fpa:host1/*", "runs/host2/1.callgrind")
    assert names("t.fpa") == [*NAMES[:3], "1.callgrind"]
    fastprof.convert("t.fpa:host1/2*", "x.folded")
    assert Path("x.folded").read_text() == "host1_f2 100\n"


def test_merging_profiles_of_a_store_opens_one_at_a_time(runs: Path) -> None:
    for i in range(300):
        (runs / "host1" / f"{i}.callgrind").write_text(DUMP.format("f", 1))
    archive("add", "-q", "s.fpa", "runs/host1")
    fds = len(os.listdir("/proc/self/fd"))
    seen = []
    fastprof.merge("s.fpa:*", "all.folded", progress=lambda source: seen.append(len(os.listdir("/proc/self/fd"))))
    assert Path("all.folded").read_text() == "f 300\n"
    assert len(seen) == 300 and max(seen) < fds + 5


def test_what_is_no_profile_of_a_store(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    archive("add", "s.fpa", "runs")
    for words, code, said in (
        (["convert", "s.fpa:x", "-t", "folded"], 2, "s.fpa: the archive has no profile 'x', only host1/0.callgrind, "),
        (["top", "s.fpa:host2/1.callgrin"], 2, "no profile 'host2/1.callgrin', only host2/1.callgrind, "),
        (["convert", "s.fpa:", "-t", "folded"], 2, "has no profile ''"),
        (["convert", "absent.fpa:x", "-t", "folded"], 1, "absent.fpa:x: No such file"),
        (["convert", "runs/host1/0.callgrind:x", "-t", "folded"], 1, "0.callgrind:x: No such file"),
        (["info", "s.fpa:host1/0*", "--member", "x"], 2, "names a profile of the archive, so --member"),
    ):
        assert main(words) == code
        assert said in capsys.readouterr().err


def test_a_file_that_is_really_called_so_is_meant(runs: Path) -> None:
    archive("add", "s.fpa", "runs")
    Path("s.fpa:host1").mkdir()
    Path("s.fpa:host1/1.callgrind").write_text(DUMP.format("the_file", 5))
    fastprof.convert("s.fpa:host1/1.callgrind", "out.folded")
    assert Path("out.folded").read_text() == "the_file 5\n"
    # also a store whose own name has a colon
    os.rename("s.fpa", "a:b.fpa")
    fastprof.convert("a:b.fpa:host1/1.callgrind", "out.folded")
    assert Path("out.folded").read_text() == "host1_f1 10\n"
    os.symlink("nowhere", "a:b.fpa:host1:2")
    with pytest.raises(FastprofError, match="No such file"):
        fastprof.convert("a:b.fpa:host1:2", "out.folded")


def test_rm_compact_verify(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    archive("add", "s.fpa", "runs")
    capsys.readouterr()
    archive("rm", "s.fpa", "host1/*", "host2/0.callgrind")
    assert capsys.readouterr().err == "fastprof: 4 profiles removed from s.fpa; compact frees their space\n"
    before = os.path.getsize("s.fpa")
    archive("compact", "s.fpa")
    after = os.path.getsize("s.fpa")
    assert capsys.readouterr().err == f"fastprof: s.fpa: {before:,} bytes -> {after:,} bytes\n"
    assert after < before
    archive("verify", "s.fpa")
    assert capsys.readouterr().err == "fastprof: s.fpa: 1 profile read, no errors\n"
    whole = bytearray(Path("s.fpa").read_bytes())
    whole[120] ^= 1
    Path("s.fpa").write_bytes(whole)
    archive("verify", "s.fpa", "--json", code=1)
    wrong = json.loads(capsys.readouterr().out)["errors"]
    assert wrong and all("s.fpa: archive: at byte" in one["error"] for one in wrong)
    archive("verify", "s.fpa", code=1)
    assert "s.fpa: archive: at byte" in capsys.readouterr().err
    archive("rm", "s.fpa", "nothing", code=2)


def test_a_run_without_a_store_does_not_load_what_stores_need(runs: Path) -> None:
    code = (
        "import sys; from fastprof.cli import main; main(sys.argv[1:]); print('fastprof.inputs.state' in sys.modules)"
    )
    from tests.unit.test_archive_store import add_command

    Path("a:b").write_text(DUMP.format("f", 1))
    import subprocess

    done = subprocess.run(add_command(code, "convert", "a:b", "-o", "x.folded"), capture_output=True, check=True)
    assert done.stdout == b"False\n"
    assert run("archive", "list", "s.fpa", code=1).stderr == b"fastprof: s.fpa: No such file or directory\n"
