"""OProfile: names of files, tars, specifications, images and symbols, damage."""

from __future__ import annotations

import os
import re
import struct
import subprocess
import tarfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import fastprof
from fastprof.core.errors import FastprofError, FormatError, UsageError
from fastprof.core.model import Part
from fastprof.core.parts import merge_parts
from fastprof.formats import of_directory
from fastprof.formats.oprofile.names import BadNameError, Image, parse
from tests.differential.peers import need
from tests.reference import profile_proto
from tests.support.elf import ElfSection, ElfSymbol, elf_file
from tests.support.oprofile import MAGIC, MTIME, path_of, sample_file, tar_of, write_session

X = "{root}/bin/x"
NODES = [(0x1000, 3), (0x1010, 4), (0x2000, 5)]
ELF = elf_file(
    [ElfSection(".text", 0x401000, 0x1000, 0x100)],
    [ElfSymbol("main", 0x401000, 1), ElfSymbol("_Z1fi", 0x401010, 1)],
)


class Read:
    """The sums of an input."""

    def __init__(self, path: Path | bytes, **options: Any) -> None:
        self.costs: Counter[tuple[str, str, int]] = Counter()  # object, function, address
        self.columns: Counter[str] = Counter()
        self.parts: Counter[tuple[Any, ...]] = Counter()
        self.calls: Counter[tuple[str, str, int]] = Counter()  # caller, callee, target address
        with fastprof.open(path, **options) as profile:
            model = profile._model
            for batch in profile:
                part = model.parts[batch.part]
                key = part.command, part.pid, part.thread, tuple(part.descriptions)
                for i in range(len(batch)):
                    values = [batch.values(k)[i] for k in range(len(part.value_types))]
                    f = model.get_function(batch["function"][i])
                    if batch["kind"][i]:
                        callee = model.get_function(batch["callee"][i]).name.decode()
                        self.calls[f.name.decode(), callee, batch["target_address"][i]] += batch["count"][i]
                        continue
                    self.costs[f.object.decode(), f.name.decode(), batch["address"][i]] += sum(values)
                    self.parts[key] += sum(values)
                    for value_type, value in zip(part.value_types, values, strict=True):
                        self.columns[value_type.name] += value
            self.log = profile.log

    def functions(self) -> Counter[str]:
        found: Counter[str] = Counter()
        for (_, name, _), n in self.costs.items():
            found[name] += n
        return found


def image(path: Path, data: bytes = ELF, mtime: int = MTIME) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    os.utime(path, (mtime, mtime))
    return path


# ---- names --------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "program", "sampled", "callee"),
    [
        (f"{X}/{{dep}}/{X}", "/bin/x", Image("/bin/x"), None),
        (f"s/a b/{X}/{{dep}}/{{kern}}/ext4", "/bin/x", Image("ext4", is_kern=True), None),
        (f"{X}/{{dep}}/{X} (deleted)/{{cg}}/{{root}}/lib/c.so", "/bin/x", Image("/bin/x (deleted)"), "/lib/c.so"),
        ("{kern}/no-vmlinux/{dep}/{kern}/no-vmlinux", "no-vmlinux", Image("no-vmlinux", is_kern=True), None),
        (
            f"s/{X}/{{dep}}/{{anon:[heap]}}/7.0x10.0x1f",
            "/bin/x",
            Image("[heap] (tgid:7 range:0x10-0x1f)", f"s/{X}/{{dep}}/{{anon:[heap]}}/7.jo"),
            None,
        ),
        (
            f"{X}/{{dep}}/{{anon}}/7.0x10.0x1f/{{cg}}/{{anon:anon}}/7.0x10.0x1f",
            "/bin/x",
            None,
            "anon (tgid:7 range:0x10-0x1f)",
        ),
    ],
)
def test_names(path: str, program: str, sampled: Image | None, callee: str | None) -> None:
    name = parse(f"{path}/CPU\\.CLK.100.65.all.17.3")
    assert name.program.name == program
    assert sampled is None or name.image == sampled
    assert (name.callee.name if name.callee else None) == callee
    assert (name.event, name.period, name.unit_mask, name.tgid, name.tid, name.cpu) == ("CPU.CLK", 100, 65, None, 17, 3)


@pytest.mark.parametrize(
    "path",
    [
        f"{X}/{{dep}}/{X}/E.1.0.all.all",
        f"{X}/{{dep}}/{X}/E.1.0.all.all.all.all",
        f"{X}/{{dep}}/{X}/E.1.0..all.all",
        f"{X}/{{dep}}/{X}/E.all.0.all.all.all",
        f"{X}/{{dep}}/{X}/E.1.0.all.-1.all",
        f"{X}/{{dep}}/{X}/E.1.0.all.all.\u0661",
        f"{X}/E.1.0.all.all.all",
        f"{X}/{{dep}}/E.1.0.all.all.all",
        f"{X}/{{dep}}/{{root}}/E.1.0.all.all.all",
        f"{X}/{{dep}}/{{anon:anon}}/7.0x10/E.1.0.all.all.all",
        f"{X}/{{dep}}/{X}/{{cg}}/E.1.0.all.all.all",
    ],
)
def test_bad_names(path: str, tmp_path: Path) -> None:
    with pytest.raises(BadNameError, match="expected"):
        parse(path)
    session = write_session(tmp_path, {f"samples/current/{path}": sample_file(NODES), path_of(X): sample_file(NODES)})
    with pytest.raises(FormatError, match="expected"):
        Read(session)
    kept = Read(session, lenient=True)
    assert sum(kept.costs.values()) == 12
    assert kept.log.losses == {"unknown-files": 1}


# ---- inputs -------------------------------------------------------------


@pytest.mark.parametrize("below", ["", "samples", "samples/current"])
def test_directories(below: str, tmp_path: Path) -> None:
    session = write_session(tmp_path / "s", {path_of(X): sample_file(NODES), "samples/operf.log": b"log"})
    assert of_directory(str(session / below))
    assert sum(Read(session / below).costs.values()) == 12
    log = fastprof.convert([session / below], tmp_path / "out.callgrind")
    assert log.rows["rows_written"] == 3


def test_other_directories_are_their_files(tmp_path: Path) -> None:
    for name in ("a.folded", "b.folded"):
        (tmp_path / name).write_text("main;f 1\n")
    (tmp_path / "samples" / "current" / "other").mkdir(parents=True)
    assert of_directory(str(tmp_path)) is None
    with pytest.raises(FastprofError, match="is a directory"):
        fastprof.info(tmp_path, from_="folded")
    with pytest.raises(FastprofError, match="not a profile of a known format"):
        fastprof.info(tmp_path)


def test_one_sample_file_by_its_path_and_without(tmp_path: Path) -> None:
    session = write_session(tmp_path, {path_of(X, tid=7): sample_file(NODES)})
    file = session / path_of(X, tid=7)
    read = Read(file)
    assert read.columns == {"CPU_CLK_UNHALTED": 12} and read.parts == {(b"/bin/x", None, 7, ()): 12}
    nameless = tmp_path / "nameless"
    nameless.write_bytes(file.read_bytes())
    read = Read(nameless, symbols=(str(image(tmp_path / "any")),))
    assert read.columns == {"event_0x3c": 12}
    assert read.functions() == {"main": 3, "f(int)": 9}


@pytest.mark.parametrize("kind", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_tars(kind: int) -> None:
    folder = "a/" * 70
    files = {f"{folder}{path_of(X, cpu=k)}": sample_file(NODES) for k in range(3)}
    if kind == tarfile.USTAR_FORMAT:
        files = {name.removeprefix(folder): data for name, data in files.items()}
    read = Read(tar_of(files, kind))
    assert read.parts == {(b"/bin/x", None, None, ((b"CPU", b"%d" % k),)): 12 for k in range(3)}


def test_linked_members() -> None:
    data = bytearray(tar_of({path_of(X, cpu=0): sample_file(NODES)}))
    link = tarfile.TarInfo(path_of(X, cpu=1))
    link.type, link.linkname = tarfile.LNKTYPE, path_of(X, cpu=0)
    data[-1024:-1024] = link.tobuf()
    assert sum(Read(bytes(data)).costs.values()) == 24


# ---- selected files: specifications and merging --------------------------

SEVERAL = {
    path_of(X, tid=tid, tgid=1, cpu=cpu, event=event, session=session): sample_file([(0x1000, n)])
    for n, (tid, cpu, event, session) in enumerate(
        [
            (1, 0, "A.100.0", "current"),
            (1, 1, "A.100.0", "current"),
            (2, 0, "A.100.0", "current"),
            (2, 0, "B.5.1", "current"),
            (2, 0, "B.5.2", "current"),
            (2, 0, "A.100.0", "before"),
        ],
        1,
    )
}


@pytest.mark.parametrize(
    ("spec", "total"),
    [
        ((), 15),
        (("session:*",), 21),
        (("session:before,current",), 21),
        (("session:*", "session-exclude:cur*"), 6),
        (("tid:1",), 3),
        (("tid:1,2 cpu:1",), 2),
        (("event:B",), 9),
        (("event:? count:100",), 6),
        (("unit-mask:0x2",), 5),
        (("unit-mask:all",), 15),
        (("tgid:1",), 15),
        (("image:/bin/*",), 15),
        (("bin/x",), 15),
        (("lib-image:/bin/x",), 15),
        (("{ session:before } { session:current }",), 9),
        (("{", "tid:1", "}", "{ tid:2 event:A }"), 0),
    ],
)
def test_specifications(spec: tuple[str, ...], total: int, tmp_path: Path) -> None:
    session = write_session(tmp_path, SEVERAL)
    assert sum(Read(session, spec=spec).costs.values()) == total


def test_a_word_is_the_path_of_a_file_that_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = image(tmp_path / "build/x")
    here = "{root}" + str(program.resolve())
    session = write_session(tmp_path / "s", {path_of(here): sample_file([(0, 2)]), path_of(X): sample_file(NODES)})
    (tmp_path / "link").symlink_to(program)
    monkeypatch.chdir(tmp_path)
    for word in ("./build/x", "build/x", "link", str(program)):
        assert sum(Read(session, spec=(word,)).costs.values()) == 2


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        (("tid:9",), "no sample file matches"),
        (("image-exclude:*",), "no sample file matches"),
        (("colour:red",), "expected session"),
        (("tid:x",), "not a number"),
        (("{ tid:1 }",), "a difference"),
        (("{ tid:1 } tid:2",), "a difference"),
        (("'",), "spec: "),
    ],
)
def test_wrong_specifications(spec: tuple[str, ...], said: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=said):
        Read(write_session(tmp_path, SEVERAL), spec=spec)


@pytest.mark.parametrize(
    "files", [["abi", "samples/operf.log"], ["samples/oprofiled.log"], ["operf.log"], ["abi", "samples/x"]]
)
@pytest.mark.parametrize("in_tar", [False, True])
def test_a_session_without_samples(files: list[str], in_tar: bool, tmp_path: Path) -> None:
    session = tmp_path / "oprofile_data"
    for file in files:
        (session / file).parent.mkdir(parents=True, exist_ok=True)
        (session / file).write_text("sizeof_u32 4\n")
    with tarfile.open(tmp_path / "session.tar", "w") as tar:
        tar.add(session, "oprofile_data")
    with pytest.raises(FormatError, match="oprofile: no sample files in the session: nothing was sampled"):
        fastprof.info(tmp_path / "session.tar" if in_tar else session)


def test_no_session_is_called_current(tmp_path: Path) -> None:
    session = write_session(tmp_path, {path_of(X, session="before"): sample_file(NODES)})
    with pytest.raises(UsageError, match="spec=session:before"):
        Read(session)


@pytest.mark.parametrize(
    ("merge", "n_parts", "names"),
    [
        ((), 3, {"A", "B.5.1", "B.5.2"}),
        (("cpu",), 2, {"A", "B.5.1", "B.5.2"}),
        (("tid", "cpu"), 1, {"A", "B.5.1", "B.5.2"}),
        (("tgid",), 2, {"A", "B.5.1", "B.5.2"}),
        (("unitmask",), 3, {"A", "B"}),
        (("all",), 1, {"A", "B"}),
    ],
)
def test_merging(merge: tuple[str, ...], n_parts: int, names: set[str], tmp_path: Path) -> None:
    read = Read(write_session(tmp_path, SEVERAL), add_up=merge)
    assert (len(read.parts), {*read.columns}) == (n_parts, names)
    assert sum(read.costs.values()) == 15


@pytest.mark.parametrize(
    ("labels", "sums"),
    [
        (None, {(): 15}),
        (("cpu",), {(("cpu", "0"),): 13, (("cpu", "1"),): 2}),
        (("thread",), {(("tid", 1),): 3, (("tid", 2),): 12}),
        (
            ("cpu", "thread"),
            {(("cpu", "0"), ("tid", 1)): 1, (("cpu", "0"), ("tid", 2)): 12, (("cpu", "1"), ("tid", 1)): 2},
        ),
    ],
)
@pytest.mark.parametrize("inputs", [1, 2])
def test_cpus_and_threads_are_labels_of_stacks(
    labels: tuple[str, ...] | None, sums: dict[Any, int], inputs: int, tmp_path: Path
) -> None:
    session = write_session(tmp_path / "s", SEVERAL)
    fastprof.convert([session] * inputs, tmp_path / "x.pb", labels=labels, symbolize=False)
    found: Counter[Any] = Counter()
    for _, given, values in profile_proto.rows(profile_proto.parse((tmp_path / "x.pb").read_bytes())):
        key = ((key.decode(), string.decode() or number) for key, string, number, _ in given)
        found[tuple(sorted(key))] += sum(values)
    assert found == {key: inputs * n for key, n in sums.items()}


def test_one_cpu_of_all_parts_or_none() -> None:
    """A merged part has a CPU only if all its parts have the same."""
    one, same, other, none = (Part(extra=extra) for extra in ({"cpu": 1}, {"cpu": 1}, {"cpu": 0}, {}))
    merged = {"merged": {"parts": 2}}
    assert merge_parts([one, same], []).extra == {"cpu": 1, **merged}
    assert merge_parts([one, other], []).extra == merge_parts([one, none], []).extra == merged


@pytest.mark.parametrize(
    ("spec", "columns", "parts"),
    [
        ("{ cpu:0 } { cpu:1 }", {"A": 2 - 4, "B.5.1": -4, "B.5.2": -5}, {1, 2}),
        ("{ tid:1 cpu:0 } { tid:2 event:A }", {"A": 2}, {None}),
        ("{ tid:1 } { tid:2 event:A }", {"A": 0}, {None}),
        ("{ session:before } { session:current event:A tid:2 }", {"A": -3}, {2}),
    ],
)
def test_a_difference_does_not_tell_apart_what_it_compares(
    spec: str, columns: dict[str, int], parts: set[int | None], tmp_path: Path
) -> None:
    read = Read(write_session(tmp_path, SEVERAL), spec=(spec,))
    assert read.columns == columns
    assert {thread for _, _, thread, _ in read.parts} == parts


def test_a_difference_of_calls(tmp_path: Path) -> None:
    arcs = {s: sample_file([(0x1000 << 32 | 0x1010, n)]) for s, n in (("before", 9), ("current", 4))}
    session = write_session(tmp_path, {path_of(X, callee=X, session=s): data for s, data in arcs.items()})
    read = Read(session, spec=("{ session:before } { session:current }",))
    assert read.calls == {("/bin/x", "/bin/x", 0x1010): 5}  # the absolute difference; the values have the sign


# ---- images -------------------------------------------------------------


def test_images_are_found_by_name_below_the_sysroot_and_in_the_archive(tmp_path: Path) -> None:
    files = {path_of(X): sample_file(NODES)}
    want = {"main": 3, "f(int)": 9}
    session = write_session(tmp_path / "s", files)
    image(tmp_path / "root/bin/x")
    assert Read(session).functions() == {"/bin/x": 12}
    assert Read(session, sysroot=str(tmp_path / "root")).functions() == want
    assert Read(session, symbols=(str(tmp_path / "root"),)).functions() == want
    assert Read(session, symbols=(str(tmp_path / "root/bin/x"),)).functions() == want
    assert Read(session, sysroot=str(tmp_path / "root"), symbolize=False).functions() == {"/bin/x": 12}
    packed = {f"out/var/lib/oprofile/{name}": data for name, data in files.items()} | {"out/bin/x": ELF}
    archive = write_session(tmp_path / "a", packed)
    assert Read(archive / "out").functions() == want
    read = Read(tar_of(packed))
    assert read.functions() == want and not read.log.warnings


def test_a_file_that_was_changed(tmp_path: Path) -> None:
    """With a file that the user names there is a warning; one at the path of the image is not used."""
    here = "{root}" + str(tmp_path / "x")
    session = write_session(tmp_path / "s", {path_of(here): sample_file(NODES)})
    image(tmp_path / "x")
    assert Read(session).functions() == {"main": 3, "f(int)": 9}
    image(tmp_path / "x", mtime=MTIME + 1)
    read = Read(session)
    assert read.functions() == {str(tmp_path / "x"): 12}
    assert "its file is newer than the profile" in read.log.warnings[0]
    read = Read(session, symbols=(str(tmp_path),))
    assert read.functions() == {"main": 3, "f(int)": 9}
    assert "newer than the profile" in read.log.warnings[0]


@pytest.mark.parametrize("where", ["folder", "file", "archive"])
def test_modules_have_underscores_where_their_files_have_hyphens(where: str, tmp_path: Path) -> None:
    module = elf_file([ElfSection(".text", 0, 0x40, 0x100)], [ElfSymbol("read", 0, 1)], kind=1)
    files = {path_of("{kern}/aes_x86_64", program=X): sample_file([(0, 1)], is_kernel=1)}
    if where == "archive":
        files["lib/modules/6.1/aes-x86_64.ko"] = module
    session = write_session(tmp_path / "s", files)
    file = image(tmp_path / "modules/aes-x86_64.ko", module)
    symbols = {"folder": (str(tmp_path / "modules"),), "file": (str(file),), "archive": ()}[where]
    assert Read(session, symbols=symbols).functions() == {"read": 1}
    # names of programs are not changed
    session = write_session(tmp_path / "t", {path_of("{root}/bin/a_b"): sample_file(NODES)})
    image(tmp_path / "programs/a-b")
    assert Read(session, symbols=(str(tmp_path / "programs"),)).functions() == {"/bin/a_b": 12}


def test_kernel_and_modules_count_from_text(tmp_path: Path) -> None:
    module = elf_file(
        [ElfSection(".text", 0, 0x40, 0x100), ElfSection(".init.text", 0, 0x140, 0x20)],
        [ElfSymbol("read", 0, 1), ElfSymbol("write", 0x20, 1), ElfSymbol("setup", 0, 2)],
        kind=1,
    )
    image(tmp_path / "modules/ext4.ko", module)
    data = sample_file([(0, 1), (0x1F, 2), (0x20, 4)], is_kernel=1)
    session = write_session(tmp_path / "s", {path_of("{kern}/ext4", program=X): data})
    read = Read(session, symbols=(str(tmp_path / "modules"),))
    assert read.functions() == {"read": 3, "write": 4}
    assert {address for _, _, address in read.costs} == {0, 0x1F, 0x20}


KALLSYMS = b"""\
0000000000000000 A per_cpu
ffffffff81000000 T _text
ffffffff81000010 t one
ffffffff81000010 T also_one
ffffffff81000020 T two
ffffffff81000030 T _etext
ffffffffc0000000 t init\t[ext4]
"""


@pytest.mark.parametrize(("name", "base"), [("{kern}/no-vmlinux", 0xFFFFFFFF81000000), ("{root}/proc/kallsyms", 0)])
def test_kallsyms(name: str, base: int, tmp_path: Path) -> None:
    (tmp_path / "kallsyms.txt").write_bytes(KALLSYMS)
    data = sample_file([(base + 0x10, 1), (base + 0x1F, 2), (base + 0x2F, 4), (base + 0x30, 8)], is_kernel=1)
    session = write_session(tmp_path / "s", {path_of(name, program=X): data})
    read = Read(session, symbols=(str(tmp_path / "kallsyms.txt"),))
    shown = name.removeprefix("{kern}/").removeprefix("{root}")
    assert read.functions() == {"also_one": 3, "two": 4, shown: 8}
    assert (shown, "two", 0xFFFFFFFF8100002F) in read.costs


def test_a_kernel_that_was_sampled_without_its_image(tmp_path: Path) -> None:
    """Its keys are addresses, which the user's vmlinux may resolve."""
    text = 0xFFFFFFFF81000000
    kernel = elf_file([ElfSection(".text", text, 0x200000, 0x100)], [ElfSymbol("go", text, 1)])
    vmlinux = image(tmp_path / "vmlinux-6.1", kernel)
    data = sample_file([(0xFFFFFFFF81000008, 5)], is_kernel=1, mtime=0)
    session = write_session(tmp_path / "s", {path_of("{kern}/no-vmlinux", program=X): data})
    assert Read(session, symbols=(str(vmlinux),)).costs == {("no-vmlinux", "go", 0xFFFFFFFF81000008): 5}
    assert "give a copy of its /proc/kallsyms" in Read(session).log.warnings[0]


def test_a_file_for_symbols_that_is_not_used(tmp_path: Path) -> None:
    session = write_session(tmp_path / "s", {path_of(X): sample_file(NODES)})
    y = image(tmp_path / "y")
    assert f"{y}: matches no image in the profile" in Read(session, symbols=(str(y),)).log.warnings
    with pytest.raises(FastprofError, match="No such file"):
        Read(session, symbols=(str(tmp_path / "absent"),))


def test_symbols_of_a_separate_debug_file(tmp_path: Path) -> None:
    """Found by .gnu_debuglink in the image's folder; its sections have no bytes."""
    whole, x, debug = tmp_path / "whole", tmp_path / "x", tmp_path / "x.debug"
    (tmp_path / "x.c").write_text("int f(int a) { return a + 1; }\nint main(void) { return f(2); }\n")
    for command in (
        [need("gcc"), "-g", "-O0", "-o", whole, tmp_path / "x.c"],
        [need("objcopy"), "--only-keep-debug", whole, debug],
        [need("objcopy"), "--strip-all", f"--add-gnu-debuglink={debug}", whole, x],
    ):
        subprocess.run([*map(str, command)], check=True, cwd=tmp_path)
    symbols = subprocess.run([need("nm"), whole], capture_output=True, text=True, check=True).stdout
    sections = subprocess.run([need("objdump"), "-h", whole], capture_output=True, text=True, check=True).stdout
    (value,) = re.findall(r"^(\w+) T f$", symbols, re.MULTILINE)
    ((address, offset),) = re.findall(r" \.text +\w+ +(\w+) +\w+ +(\w+) ", sections)
    at = int(value, 16) - int(address, 16) + int(offset, 16)
    session = write_session(tmp_path / "s", {path_of(X): sample_file([(at, 5)])})
    with fastprof.open(session, symbols=[str(x)]) as profile:
        ((function, line),) = ((batch["function"][0], batch["line"][0]) for batch in profile)
        assert (profile._model.get_function(function).name, line) == (b"f", 1)


def test_symbols_of_the_image_with_lines_of_its_debug_file(tmp_path: Path) -> None:
    """Like packaged kernels and modules: the symbol table stays where it is."""
    module, debug = tmp_path / "x.ko", tmp_path / "x.debug"
    (tmp_path / "x.c").write_text("\n\nint f(int a) { return a + 1; }\n")
    for command in (
        [need("gcc"), "-c", "-g", "-O0", "-o", module, tmp_path / "x.c"],
        [need("objcopy"), "--only-keep-debug", module, debug],
        [need("objcopy"), "--strip-debug", f"--add-gnu-debuglink={debug}", module],
    ):
        subprocess.run([*map(str, command)], check=True)
    data = sample_file([(4, 5)], is_kernel=1)
    session = write_session(tmp_path / "s", {path_of("{kern}/x", program=X): data})
    with fastprof.open(session, symbols=[str(module)]) as profile:
        ((function, address, line),) = (
            (batch["function"][0], batch["address"][0], batch["line"][0]) for batch in profile
        )
        assert profile._model.get_function(function)[1:3] == (str(tmp_path / "x.c").encode(), b"f")
        assert (address, line) == (4, 3)


def test_symbols_without_a_name(tmp_path: Path) -> None:
    """OProfile names them after their section, and prefers any other at the same place."""
    sections = [ElfSection(".text", 0x401000, 0x1000, 0x100), ElfSection(".fini", 0x402000, 0x2000, 0x10)]
    symbols = [("", 0x401000, 1), ("", 0x401010, 1), ("named", 0x401010, 1), ("", 0x402000, 2)]
    elf = elf_file(sections, [ElfSymbol(*symbol) for symbol in symbols])
    session = write_session(tmp_path / "s", {path_of(X): sample_file(NODES)})
    read = Read(session, symbols=(str(image(tmp_path / "x", elf)),))
    assert read.functions() == {"??.text": 3, "named": 4, "??.fini": 5}


def test_arcs_between_images(tmp_path: Path) -> None:
    image(tmp_path / "root/bin/x")
    image(tmp_path / "root/lib/y", elf_file([ElfSection(".text", 0x500, 0x500, 0x100)], [ElfSymbol("y", 0x500, 1)]))
    arcs = [(0x1000 << 32 | 0x520, 3), (0x1010 << 32 | 0x520, 4), (0x1000 << 32 | 0x520, 10)]
    files = {path_of(X, callee="{root}/lib/y"): sample_file(arcs), path_of(X): sample_file(NODES)}
    read = Read(write_session(tmp_path / "s", files), sysroot=str(tmp_path / "root"))
    assert read.calls == {("main", "y", 0x520): 13, ("f(int)", "y", 0x520): 4}
    assert read.functions() == {"main": 3, "f(int)": 9}


def test_a_header_of_the_caller_says_where_both_regions_begin(tmp_path: Path) -> None:
    """Code made at run time: positions are addresses in memory."""
    jit = elf_file([ElfSection(".text.0", 0x7F0000000100, 0x200, 0x100)], [ElfSymbol("hot", 0, 1)], kind=1)
    region = "{anon:anon}/7.0x7f0000000000.0x7f0000000fff"
    data = sample_file([(0x110 << 32 | 0x120, 6)], anon_start=0x7F0000000000, callee_anon_start=0x7F0000000000)
    folder = os.path.dirname(os.path.dirname(path_of(region, program=X)))
    session = write_session(tmp_path, {path_of(region, program=X, callee=region): data, f"{folder}/7.jo": jit})
    assert Read(session).calls == {("hot", "hot", 0x7F0000000120): 6}


# ---- damage -------------------------------------------------------------


def test_lenient_keeps_what_is_there(tmp_path: Path) -> None:
    whole = sample_file([(k, 1) for k in range(100)])
    files = {path_of(X, cpu=0): whole, path_of(X, cpu=1): whole[: 104 + 16 * 11], path_of(X, cpu=2): b"no sample file"}
    session = write_session(tmp_path, files)
    with pytest.raises(FormatError, match=r"all\.all\.1: oprofile: at byte 280: .* expected 128, as in its header"):
        Read(session)
    read = Read(session, lenient=True)
    assert sum(read.costs.values()) == 110
    assert read.log.losses == {
        "lost-nodes": 90,
        "damaged-files": 1,
        "cut-files": 1,
    }


def test_a_file_that_shrinks(tmp_path: Path) -> None:
    session = write_session(tmp_path, {path_of(X): sample_file([(k, 1) for k in range(100)])})
    profile = fastprof.open(session)
    (session / path_of(X)).write_bytes(sample_file([(k, 1) for k in range(100)])[:500])
    with pytest.raises(FormatError, match="at byte 500: the file ends inside its nodes"):
        list(profile)


def test_files_changed_while_they_were_sampled(tmp_path: Path) -> None:
    files = {path_of(X, cpu=k): sample_file(NODES, mtime=MTIME + k) for k in range(2)}
    read = Read(write_session(tmp_path, files), add_up=("cpu",))
    assert sum(read.costs.values()) == 24
    assert any("changed while it was sampled" in warning for warning in read.log.warnings)


def test_lost_samples(tmp_path: Path) -> None:
    stats = {"total_samples": b"1000", "lost_record": b"3", "throttled/CPU": b""}
    files = {f"samples/{s}/stats/{name}": data for s in ("current", "before") for name, data in stats.items()}
    log = fastprof.info(write_session(tmp_path, files | {path_of(X): sample_file(NODES)}))
    assert log.facts["samples_lost"] == {"lost_record": 3}
    assert [w.partition(": ")[2] for w in log.warnings if "lost" in w or "throttled" in w] == [
        "3 samples were lost, 1,000 were recorded",
        "the kernel throttled CPU: it was sampled less often than requested",
    ]


@pytest.mark.parametrize("order", "<>")
def test_an_abi_file_says_where_fields_are(order: str, tmp_path: Path) -> None:
    """A layout of no known machine; the start of the region has more than 32 bits."""
    start = 0x7F0000000000
    head = MAGIC + struct.pack(f"{order}6I12xdQ2IQQ16x", 0x13, 32, 0x3C, 0, 100, 0, 2400.0, MTIME, 0, 0, start, 0)
    whole = sample_file([(0x110, 6)], order=order)
    fields = {"cpu_speed": 40, "mtime": 48, "cg_to_is_kernel": 56, "anon_start": 64, "cg_to_anon_start": 72}
    lines = [f"offsetof_header_{name} {at}" for name, at in fields.items()]
    jit = elf_file([ElfSection(".text.0", start + 0x100, 0x200, 0x100)], [ElfSymbol("hot", 0, 1)], kind=1)
    files = {
        path_of("{anon:anon}/7.0x7f0000000000.0x7f0000000fff", program=X): head + whole[72:],
        f"samples/current/{X}/{{dep}}/{{anon:anon}}/7.jo": jit,
    }
    with pytest.raises(FormatError, match="the number of nodes"):
        Read(write_session(tmp_path, files))
    files["abi"] = "\n".join([f"sizeof_struct_opd_header {len(head)}", *lines]).encode()
    assert Read(write_session(tmp_path, files)).costs == {("7.jo", "hot", start + 0x110): 6}


def test_an_abi_file_that_lies_does_no_harm(tmp_path: Path) -> None:
    lines = [f"{name} 4000000" for name in ("sizeof_struct_opd_header", "offsetof_header_mtime")]
    fields = ("cpu_speed", "cg_to_is_kernel", "anon_start", "cg_to_anon_start")
    lines += [f"offsetof_header_{field} 99999999" for field in fields]
    files = {"abi": "\n".join(lines).encode(), path_of(X): sample_file(NODES)}
    assert sum(Read(write_session(tmp_path, files)).costs.values()) == 12
