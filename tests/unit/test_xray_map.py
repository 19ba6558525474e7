"""Instrumentation maps: real ones against llvm-xray's, hand-built ones for targets that this machine cannot link."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

import pytest

import fastprof
from fastprof.core.errors import SymbolError
from fastprof.core.options import Options
from fastprof.formats.xray.map import FunctionNames, InstrumentationMap
from tests.support import product
from tests.support.paths import CORPUS, NO_SHARED, shared
from tests.support.xraylog import FdrLog

CASES = [
    "basic3-interp-args-clang19",
    "fdr5-events-clang19",
    "fdr5-interp-args-clang14",
    "fdr5-lua-clang19",
    "fdr5-pool-clang19",
    "profiling-pool-clang19",
]
MAP = 0x2000  # address of the map section in hand-built files
CODE = 0x1000


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> Path:
    folder = shared("xray", request.param)
    if folder is None:
        pytest.skip(NO_SHARED)
    return folder


def expected_map(folder: Path, tmp_path: Path) -> Path:
    path = folder / "expected.instr-map.yaml"
    if not path.exists():
        path = tmp_path / "map.yaml"
        path.write_bytes(gzip.decompress((folder / "expected.instr-map.yaml.gz").read_bytes()))
    return path


def test_every_name_equals_llvm_xray(case: Path, tmp_path: Path) -> None:
    (program,) = [path for path in case.iterdir() if path.suffix in (".14", ".19")]
    mine, theirs = InstrumentationMap.load(program), InstrumentationMap.load(expected_map(case, tmp_path))
    assert mine.ids == theirs.ids > 5
    assert mine.warnings == []
    ids = range(1, mine.ids + 1)
    pairs = list(zip(mine.lookup_many(ids), theirs.lookup_many(ids), strict=True))
    assert [(a.name, a.address) for a, _ in pairs if a] == [(b.name, b.address) for _, b in pairs if b]
    assert mine.lookup(0) is None
    assert mine.lookup(mine.ids + 1) is None
    assert all(a and a.file for a, _ in pairs)
    assert sum(a.line > 0 for a, _ in pairs if a) >= mine.ids - 1  # one function of lua has no line in its DWARF


def test_raw_names() -> None:
    program = shared("xray", "fdr5-pool-clang19", "pool.19")
    if program is None:
        pytest.skip(NO_SHARED)
    function = InstrumentationMap.load(program, demangle="none").lookup(1)
    assert function is not None
    assert (function.name, function.system_name) == ("_Z6insertP4Treej",) * 2
    assert (function.file, function.line, function.address) == ("pool.cpp", 20, 0x28BC0)


# ---- hand-built ELF files


def build_elf(
    path: Path,
    sections: dict[str, bytes],
    *,
    bits: int = 64,
    order: str = "<",
    machine: int = 62,
    addresses: dict[str, int] | None = None,
) -> Path:
    """A minimal ET_DYN with the given sections; `.rela*` become SHT_RELA, others SHT_PROGBITS."""
    addresses = {"xray_instr_map": MAP, **(addresses or {})}
    word = "Q" if bits == 64 else "I"
    header_size, section_size = (64, 64) if bits == 64 else (52, 40)
    names = b"\0" + b"".join(name.encode() + b"\0" for name in (*sections, ".shstrtab"))
    body, headers, at = b"", b"\0" * section_size, header_size
    for name, data in (*sections.items(), (".shstrtab", names)):
        kind = 4 if name.startswith(".rela") else 3 if name == ".shstrtab" else 1
        place = (
            names.index(name.encode() + b"\0"),
            kind,
            2,
            addresses.get(name, 0),
            at,
            len(data),
            0,
            0,
            1,
            24 if kind == 4 else 0,
        )
        headers += struct.pack(f"{order}II{word}{word}{word}{word}II{word}{word}", *place)
        body, at = body + data, at + len(data)
    identity = b"\x7fELF" + bytes([2 if bits == 64 else 1, 1 if order == "<" else 2, 1]) + b"\0" * 9
    rest = (3, machine, 1, 0, 0, at, 0, header_size, 0, 0, section_size, len(sections) + 2, len(sections) + 1)
    path.write_bytes(identity + struct.pack(f"{order}HHI{word}{word}{word}IHHHHHH", *rest) + body + headers)
    return path


def sleds(functions: list[int], *, version: int, bits: int = 64, order: str = "<", kind: int = 0) -> bytes:
    """Map entries with two sleds per function, like the compiler's (version 2: distances)."""
    layout, size, mask = ("QQBBB13x", 32, (1 << 64) - 1) if bits == 64 else ("IIBBB5x", 16, (1 << 32) - 1)
    data = b""
    for i, function in enumerate(f for f in functions for _ in range(2)):
        place = MAP + i * size
        sled = function + 4 * (i % 2)
        words = (sled, function)
        if version == 2:
            words = ((sled - place) & mask, (function - place - bits // 8) & mask)
        data += struct.pack(order + layout, *words, kind, 1, version)
    return data


FUNCTIONS = [CODE, CODE + 0x40, CODE + 0x20]


@pytest.mark.parametrize("version", [0, 1, 2])
@pytest.mark.parametrize(("bits", "order", "machine"), [(64, "<", 62), (64, "<", 21), (64, ">", 22), (32, "<", 40)])
def test_versions_and_machines(tmp_path: Path, version: int, bits: int, order: str, machine: int) -> None:
    data = sleds(FUNCTIONS, version=version, bits=bits, order=order)
    path = build_elf(tmp_path / "x", {"xray_instr_map": data}, bits=bits, order=order, machine=machine)
    one = InstrumentationMap.load(path)
    assert one.ids == 3
    found = one.lookup_many([1, 2, 3, 4])
    assert [f and (f.name, f.address) for f in found] == [
        ("@(1000)", 0x1000),
        ("@(1040)", 0x1040),
        ("@(1020)", 0x1020),
        None,
    ]


def test_relocations_fill_zeros(tmp_path: Path) -> None:
    zeros = struct.pack("<QQBBB13x", 0, 0, 0, 1, 0) * 4
    places = [(MAP + i * 32 + 8, FUNCTIONS[i // 2]) for i in range(4)]
    rela = b"".join(struct.pack("<QQq", place, 8, function) for place, function in places)
    one = InstrumentationMap.load(build_elf(tmp_path / "x", {"xray_instr_map": zeros, ".rela.dyn": rela}))
    assert [f and f.address for f in one.lookup_many([1, 2, 3])] == [0x1000, 0x1040, None]
    other = rela.replace(struct.pack("<Q", 8), struct.pack("<Q", 6))  # not a relative relocation
    with pytest.raises(SymbolError, match="no relocation"):
        InstrumentationMap.load(build_elf(tmp_path / "y", {"xray_instr_map": zeros, ".rela.dyn": other}))


def test_typed_event_sleds_are_accepted(tmp_path: Path) -> None:
    data = sleds(FUNCTIONS, version=2, kind=5)
    assert InstrumentationMap.load(build_elf(tmp_path / "x", {"xray_instr_map": data})).ids == 3


def test_function_index_decides_where_the_linker_folded_functions(tmp_path: Path) -> None:
    data = sleds([CODE, CODE, CODE + 0x40], version=2)
    base = 0x3000
    index = b"".join(struct.pack("<QQ", (MAP + 64 * i - base - 16 * i) & (1 << 64) - 1, 2) for i in range(3))
    sections = {"xray_instr_map": data, "xray_fn_idx": index}
    one = InstrumentationMap.load(build_elf(tmp_path / "x", sections, addresses={"xray_fn_idx": base}))
    assert [f and f.address for f in one.lookup_many([1, 2, 3])] == [CODE, CODE, CODE + 0x40]
    assert "numbers 3 functions, xray_instr_map 2" in one.warnings[0]
    old = b"".join(struct.pack("<QQ", MAP + 64 * i, MAP + 64 * i + 64) for i in range(3))
    sections["xray_fn_idx"] = old
    assert InstrumentationMap.load(build_elf(tmp_path / "y", sections, addresses={"xray_fn_idx": base})).ids == 3
    sections["xray_fn_idx"] = b"\xff" * 32
    one = InstrumentationMap.load(build_elf(tmp_path / "z", sections, addresses={"xray_fn_idx": base}))
    assert one.ids == 2
    assert "do not point into" in one.warnings[0]


def test_what_is_odd_about_a_map_is_said(tmp_path: Path) -> None:
    """Names from another build are wrong."""
    sections = {"xray_instr_map": sleds([CODE, CODE + 0x40], version=2), "xray_fn_idx": b"\xff" * 32}
    program = build_elf(tmp_path / "x", sections, addresses={"xray_fn_idx": 0x3000})
    log = FdrLog()
    log.buffer().cpu(0, 1000).enter(1).enter(2).enter(3).enter(1 << 24 | 1)
    warnings = product.graph(log.bytes(), Options(symbols=(str(program),))).log.warnings
    assert warnings == [
        f"{program}: section xray_fn_idx at byte {64 + len(sections['xray_instr_map'])}: "
        "entries do not point into xray_instr_map; ignored",
        f"{program}: 2 of 2 functions without a symbol: stripped: neither symbols nor debug information",
        f"{program}: seems to be another build or object: not in the map: 2 of 4 functions of the log",
    ]
    assert product.graph(log.bytes()).log.warnings == [
        "input: functions are shown by number: XRay logs hold no names; name the program that wrote the log "
        "with symbols="
    ]


@pytest.mark.parametrize(
    ("kinds", "record", "fits"),
    [
        ((0, 1), "exit", True),
        ((0, 1), "tail", False),
        ((0, 2), "tail", True),
        ((0, 2), "exit", True),  # PowerPC records tail calls as exits
        ((0,), "exit", False),
        ((3, 1), "enter", True),
        ((3, 1), "enter_args", True),
        ((0, 1), "enter_args", False),
    ],
)
def test_functions_that_do_what_they_have_no_sleds_for(
    tmp_path: Path, kinds: tuple[int, ...], record: str, fits: bool
) -> None:
    """A log of another build is recognized by what its functions do."""
    words = {0: "function-enter", 1: "function-exit", 2: "tail-exit", 3: "log-args-enter"}
    path = tmp_path / "map.yaml"
    path.write_text("".join(f"- {{ id: 1, function: 16, function-name: f, kind: {words[kind]} }}\n" for kind in kinds))
    log = FdrLog()
    buffer = log.buffer().cpu(0, 1000)
    if record == "enter_args":
        buffer.enter_args(1, 0, 7)
    else:
        buffer.enter(1)
        getattr(buffer, record)(1)
    warnings = product.graph(log.bytes(), Options(symbols=(str(path),))).log.warnings
    doubt = "seems to be another build or object: entries or exits that the map lacks: 1 of 1 function"
    assert warnings == ([] if fits else [f"{path}: {doubt}"])


def test_a_log_without_names_says_where_to_get_them(tmp_path: Path) -> None:
    log = FdrLog()
    log.buffer().cpu(0, 1000).enter(1).exit(1)
    (tmp_path / "x.xray").write_bytes(log.bytes())
    told = fastprof.convert(tmp_path / "x.xray", tmp_path / "x.callgrind").warnings
    assert told == [
        f"{tmp_path}/x.xray: functions are shown by number: XRay logs hold no names; name the program that "
        "wrote the log with symbols="
    ]
    assert fastprof.convert(tmp_path / "x.xray", tmp_path / "y.xray").warnings == []  # an XRay log holds no names


def test_a_map_is_not_the_program(tmp_path: Path) -> None:
    (tmp_path / "map.yaml").write_text("- { id: 1, function: 16, function-name: f }\n")
    log = FdrLog()
    log.buffer().cpu(0, 1000).enter(1).enter(2)
    for program, expected in (("", None), ("/bin/app", b"ob=(1) /bin/app")):
        symbols = {"symbols": [str(tmp_path / "map.yaml")], **({"program": program} if program else {})}
        (tmp_path / "x.xray").write_bytes(log.bytes())
        fastprof.convert(tmp_path / "x.xray", tmp_path / "x.callgrind", **symbols)
        lines = (tmp_path / "x.callgrind").read_bytes().splitlines()
        assert [line for line in lines if line.startswith(b"ob=") and line != b"ob=(1)"] == (
            [expected] if expected else []
        )


def test_the_program_of_the_readme_has_lines() -> None:
    one = InstrumentationMap.load(CORPUS / "xray" / "pool-clang19")
    names = InstrumentationMap.load(CORPUS / "xray" / "pool-clang19.yaml")
    both = zip(one.lookup_many(range(1, 41)), names.lookup_many(range(1, 41)), strict=True)
    pairs = [(mine, theirs) for mine, theirs in both if mine and theirs]
    assert len(pairs) == 40
    assert all(
        (mine.name, mine.address, mine.sleds) == (theirs.name, theirs.address, theirs.sleds) for mine, theirs in pairs
    )
    assert all(mine.line and mine.file for mine, _ in pairs)


def test_a_process_reads_a_map_once_for_many_logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = build_elf(tmp_path / "x", {"xray_instr_map": sleds(FUNCTIONS, version=2)})
    first = InstrumentationMap.load(program)
    assert InstrumentationMap.load(program) is first
    assert InstrumentationMap.load(program, "none") is not first
    build_elf(program, {"xray_instr_map": sleds(FUNCTIONS[:1], version=2)})
    assert InstrumentationMap.load(program).ids == 1


GOOD = sleds(FUNCTIONS, version=2)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "size is 0, expected a multiple of 32"),
        (GOOD[:-1], "at byte 64: size is 191"),
        (GOOD[:32] + GOOD[32:48] + b"\x06" + GOOD[49:], "at byte 96: kind is 6, expected 0..5"),
        (GOOD[:18] + b"\x03" + GOOD[19:], "at byte 64: version is 3, expected 0..2"),
        (GOOD[:18] + b"\x01" + GOOD[19:64] + b"\0" * 32, "at byte 128: function address is 0"),
    ],
)
def test_hostile_sections(tmp_path: Path, data: bytes, message: str) -> None:
    path = build_elf(tmp_path / "x", {"xray_instr_map": data})
    with pytest.raises(SymbolError, match=message) as error:
        InstrumentationMap.load(path)
    assert str(error.value).startswith(f"{path}: section xray_instr_map")


def test_section_past_the_end(tmp_path: Path) -> None:
    path = build_elf(tmp_path / "x", {"xray_instr_map": GOOD})
    raw = bytearray(path.read_bytes())
    at = raw.rindex(struct.pack("<QQQ", MAP, 64, len(GOOD)))
    raw[at + 16 : at + 24] = struct.pack("<Q", 1 << 60)
    path.write_bytes(raw)
    with pytest.raises(SymbolError, match="extend past the end of the file"):
        InstrumentationMap.load(path)


def test_no_map_at_all(tmp_path: Path) -> None:
    with pytest.raises(SymbolError, match="no section xray_instr_map"):
        InstrumentationMap.load(build_elf(tmp_path / "x", {"other": b"1234"}))
    with pytest.raises(SymbolError, match="No such file"):
        InstrumentationMap.load(tmp_path / "none")
    (tmp_path / "noise").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SymbolError, match="neither an ELF file nor a YAML map"):
        InstrumentationMap.load(tmp_path / "noise")


# ---- YAML

FLOW = """---
- { id: 1, address: 0x1234, function: 0x1230, kind: function-enter, always-instrument: true, version: 2 }
- { id: 1, address: 0x1238, function: 0x1230, kind: function-exit, function-name: '', version: 2 }
- { id: 7, address: 0x2000, function: 0x2000, kind: function-enter, always-instrument: false,
    function-name: 'f(int, A::''lambda''(), {x})', version: 2 }
- { function: 48, function-name: "a \\"b\\"\\x41", id: 9, address: 48, kind: tail-exit } # by hand
...
"""
BLOCK = """# a comment
---
- id:              1
  address:         0x1234
  function:        0x1230
  kind:            function-enter
  always-instrument: true
- id:              7
  address:         0x2000
  function:        0x2000
  function-name:   'f(int, A::''lambda''(), {x})'
- id:              9
  function:        48
  function-name:   "a \\"b\\"\\x41"
...
"""


@pytest.mark.parametrize("text", [FLOW, BLOCK, BLOCK.replace("\n", "\r\n"), FLOW.removesuffix("...\n").rstrip("\n")])
def test_yaml(tmp_path: Path, text: str) -> None:
    path = tmp_path / "map.yaml"
    path.write_bytes(text.encode())
    one = InstrumentationMap.load(path)
    assert one.ids == 3
    found = one.lookup_many([1, 7, 9, 2])
    assert [f and (f.name, f.address) for f in found] == [
        ("@(1230)", 0x1230),
        ("f(int, A::'lambda'(), {x})", 0x2000),
        ('a "b"A', 48),
        None,
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("---\n- { id: 1, function: 0x10 }\n- { id: x, function: 0x10 }\n", "line 3: id is 'x', expected a number"),
        ("- { id: 1 }\n", "line 1: function is missing, expected a number"),
        ("---\nid: 4\n", "line 2: found 'id: 4.*', expected '- '"),
        ("---\n- { id: 1, function: 0x10\n", "line 3: found '', expected 'key: value'"),
        ("- { id: 0, function: 0x10 }\n", "line 1: id is 0, expected 1"),
        ("- { id: 2, function: 1 }\n- { id: 2, function: 9 }\n", "line 2: id 2 is function 0x9, earlier 0x1"),
    ],
)
def test_broken_yaml(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "map.yaml"
    path.write_text(text)
    with pytest.raises(SymbolError, match=message):
        InstrumentationMap.load(path)


@pytest.mark.parametrize(
    "byte", ["", " ", "\t", "'", '"', "\\", "#", ",", "{", "}", "-", ":", "a", "1", "\n", "\r", "é"]
)
@pytest.mark.parametrize(
    "before", ["", "- ", "- { id: ", "- id: 1\n  function-name: ", "- { id: 1, function-name: '", '- { a: "']
)
def test_a_line_of_any_length_takes_linear_time(tmp_path: Path, before: str, byte: str) -> None:
    """A megabyte: quadratic work would not end."""
    path = tmp_path / "map.yaml"
    path.write_text(f"{before}{byte * (1 << 20)}\n x")
    with pytest.raises(SymbolError) as error:
        InstrumentationMap.load(path)
    assert len(str(error.value)) < 400


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (r'"a\uD83D\uDE00b"', "a\N{GRINNING FACE}b"),
        (r'"a\ud800"', "a\N{REPLACEMENT CHARACTER}"),
        (r'"\udc00\ud800x"', "\N{REPLACEMENT CHARACTER}" * 2 + "x"),
        ("a  b   # a comment, {with} 'all'", "a  b"),
        ("a#b", "a#b"),
    ],
)
def test_texts_of_yaml(tmp_path: Path, value: str, name: str) -> None:
    path = tmp_path / "map.yaml"
    for text in (
        f"- {{ id: 1, function: 1, function-name: {value}\n}}\n",
        f"- id: 1\n  function: 1\n  function-name: {value}\n",
    ):
        path.write_text(text)
        assert InstrumentationMap.load(path).lookup(1).name == name  # type: ignore[union-attr]
        path.unlink()


@pytest.mark.parametrize("number", ["0x1" + "0" * 16, "9" * 5000, "-1"])
def test_numbers_beyond_64_bits(tmp_path: Path, number: str) -> None:
    path = tmp_path / "map.yaml"
    path.write_text(f"- {{ id: 1, function: {number} }}\n")
    with pytest.raises(SymbolError, match=r"line 1: function is .*, expected 0\.\.18446744073709551615"):
        InstrumentationMap.load(path)


def test_mangled_names_in_yaml_follow_demangle(tmp_path: Path) -> None:
    path = tmp_path / "map.yaml"
    path.write_text("- { id: 1, function: 1, function-name: _Z3fooi }\n")
    assert InstrumentationMap.load(path).lookup(1).name == "foo(int)"  # type: ignore[union-attr]
    assert InstrumentationMap.load(path, demangle="none").lookup(1).name == "_Z3fooi"  # type: ignore[union-attr]
    assert InstrumentationMap.load(path, demangle="templates").lookup(1).name == "foo"  # type: ignore[union-attr]


def test_several_objects(tmp_path: Path) -> None:
    maps = []
    for name in ("program", "library"):
        path = tmp_path / name
        path.write_text(f"- {{ id: 1, function: 16, function-name: {name}_start }}\n")
        maps.append(InstrumentationMap.load(path))
    names = FunctionNames(maps)
    found = [names.lookup(i) for i in (1 << 24 | 1, 1, 2, 2 << 24 | 1)]
    assert [f and (f.name, f.object) for f in found] == [("library_start", ""), ("program_start", ""), None, None]
