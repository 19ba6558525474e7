"""XRay function ids to functions: the instrumentation map of a program, from its ELF file or from YAML.

```
entry of section xray_instr_map          64-bit   32-bit
  sled      address or distance             0        0
  function  address or distance             8        4
  kind      u8, 0..5                       16        8     entry, exit, tail, entry with arguments, custom, typed event
  always    u8                             17        9
  version   u8, 0..2                       18       10     0, 1: addresses; 2: distances from the field itself
  padding                                  19       11     up to 32 / 16 bytes
```
Ids start at 1; the next id begins whenever the function differs from the entry before. Position-independent programs
of versions 0 and 1 hold zeros there, and the addresses in relocations. Source: LLVM, lib/XRay/InstrumentationMap.cpp
(reader) and compiler-rt/lib/xray (numbering).
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from fastprof.core import lazy_re as re
from fastprof.core._typing import NamedTuple
from fastprof.core.errors import SymbolError
from fastprof.core.messages import counted
from fastprof.symbols.demangle import Demangle, left_mangled
from fastprof.symbols.demangle import demangle as readable
from fastprof.symbols.elf import SHT_RELA, ElfFile, Section
from fastprof.symbols.file_cache import FileCache
from fastprof.symbols.objects import ElfObject, cached_object
from fastprof.symbols.symbol import Symbol

ENTER, EXIT, TAIL_EXIT, ENTER_ARGUMENTS = range(4)  # kinds of sleds
MAX_KIND = 5
MAX_VERSION = 2
MAX_CACHED = 16  # maps that a process caches for its next logs
OBJECT_SHIFT = 24  # -fxray-shared: the id of a function is object << 24 | id in that object
_RELATIVE = {  # the relocation type "load address + addend" of each machine
    62: 8,  # EM_X86_64
    3: 8,  # EM_386
    183: 1027,  # EM_AARCH64
    40: 23,  # EM_ARM
    21: 22,  # EM_PPC64
    258: 3,  # EM_LOONGARCH
    243: 3,  # EM_RISCV
    22: 12,  # EM_S390
    164: 35,  # EM_HEXAGON
}
# No piece backtracks (`*+`, or because the next byte differs), so matching a line takes time proportional to its
# length.  No `(?:...)*+`: Python 3.11.2 and others match it wrongly if the group has alternatives.
_PAIR = r"""\s*+(?P<key>[A-Za-z][\w-]*+)\s*+:[ \t]*+
    (?:'(?P<single>[^']*+(?:''[^']*+)*)'|"(?P<double>[^"\\]*+(?:\\.[^"\\]*+)*)"
    |(?P<plain>[^%s'"\s][^%s \r\n]*+(?:(?:[ ](?!\#)|\r(?!\n))[^%s \r\n]*+)*))?
    [ \t]*+(?:\#[^\n]*+)?(?P<end>,|\}|\r?\n|$)"""
_FLOW_PAIR = re.compile(_PAIR % (",{}", ",}", ",}"), re.VERBOSE | re.DOTALL)
_BLOCK_PAIR = re.compile(_PAIR % ("{", "", ""), re.VERBOSE | re.DOTALL)
_SPACE = re.compile(r"(?:[ \t\r\n]++|\#[^\n]*+|^(?:---|\.\.\.)[^\n]*+)*", re.MULTILINE)
_ESCAPE = re.compile(r"\\(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))", re.DOTALL)
_KINDS = {  # the words of YAML maps
    "function-enter": ENTER,
    "function-exit": EXIT,
    "tail-exit": TAIL_EXIT,
    "log-args-enter": ENTER_ARGUMENTS,
    "custom-event": 4,
    "typed-event": 5,
}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "e": "\x1b", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}


class Function(NamedTuple):
    """The function of an id. `name` is `@(hexaddress)` where the address has no symbol; `file`, `line` are where the
    function starts ("", 0 if unknown); `address` is link-time; `object` is the path of the program, "" if the map is
    not the program itself. `sleds` has bit k for each sled of kind k; 0 if the map does not have them."""

    name: str
    system_name: str
    file: str
    line: int
    address: int
    object: str
    sleds: int
    is_named: bool

    def can(self, operations: int) -> bool:
        """Whether the function has sleds for `operations`, where bit k is recorded by sleds of kind k.

        Machines without sleds for tail calls record exits.  A sled for arguments may record none.
        """
        able = self.sleds | 1 << ENTER | (self.sleds >> TAIL_EXIT & 1) << EXIT
        return not self.sleds or operations & ~able == 0


class InstrumentationMap:
    """The functions of one program or shared object by XRay id; each is symbolized at its first lookup.

    `warnings` lists oddities that do not make the map unusable.
    """

    def __init__(self, path: str, addresses: dict[int, int], sleds: dict[int, int], demangle: Demangle) -> None:
        self.path = path
        self.warnings: list[str] = []
        self._addresses = addresses
        self._sleds = sleds
        self._demangle = demangle
        self._elf: ElfObject | None = None
        self._given: dict[int, str] = {}
        self._known: dict[int, Function] = {}
        self._refused: set[str] = set()

    @classmethod
    def load(cls, path: str | os.PathLike[str], demangle: Demangle = "full") -> InstrumentationMap:
        """Read the map of an ELF file, or a YAML map as `llvm-xray extract` writes it.

        Maps are cached, so a process that reads many logs of one program reads its map once.
        Errors: SymbolError with file, section and byte offset, or file and line.
        """
        return _cache.get(path, demangle, lambda: cls._read(os.fspath(path), demangle))

    @classmethod
    def _read(cls, path: str, demangle: Demangle) -> InstrumentationMap:
        try:
            with open(path, "rb") as file:
                start = file.read(4)
                text = b"" if start == b"\x7fELF" else start + file.read()
        except OSError as error:
            raise SymbolError(f"{path}: {error.strerror}") from error
        return cls._from_yaml(path, text, demangle) if text else cls._from_elf(path, demangle)

    @property
    def ids(self) -> int:
        """The number of functions."""
        return len(self._addresses)

    @property
    def program(self) -> str:
        """The path of the program; "" if the map is YAML."""
        return self.path if self._elf else ""

    def lookup(self, function_id: int) -> Function | None:
        """The function of an id, or None when it is not in the map."""
        return self.lookup_many((function_id,))[0]

    def lookup_many(self, function_ids: Sequence[int]) -> list[Function | None]:
        """`lookup` for many ids, in order; new ones are symbolized together."""
        new = [i for i in dict.fromkeys(function_ids) if i in self._addresses and i not in self._known]
        symbols = self._elf.entries([self._addresses[i] for i in new]) if self._elf else [None] * len(new)
        for function_id, symbol in zip(new, symbols, strict=True):
            self._known[function_id] = self._function(function_id, symbol)
        return [self._known.get(i) for i in function_ids]

    def _function(self, function_id: int, symbol: Symbol | None) -> Function:
        address, sleds = self._addresses[function_id], self._sleds[function_id]
        if symbol:
            name, file, line = symbol.name, symbol.file, symbol.line
            return Function(name, symbol.system_name, file, line, address, self.program, sleds, True)
        given = self._given.get(function_id, "")
        name = readable(given, self._demangle, self._refused) if given else f"@({address:x})"
        return Function(name, given or name, "", 0, address, self.program, sleds, bool(given))

    def notes(self, named: Iterable[Function]) -> list[str]:
        """Warnings about these functions' names."""
        unnamed = [function for function in named if not function.is_named]
        names = {function.system_name for function in named}
        notes = []
        if unnamed:
            why = f": {self._elf.reason}" if self._elf and self._elf.reason else ""
            notes.append(f"{len(unnamed):,} of {counted(len(names), 'function')} without a symbol{why}")
        if self._elf and self._elf.note:
            notes.append(self._elf.note)
        if refused := names & (self._elf.refused if self._elf else self._refused):
            notes.append(left_mangled(refused))
        return [f"{self.path}: {note}" for note in notes]

    # ---- ELF

    @classmethod
    def _from_elf(cls, path: str, demangle: Demangle) -> InstrumentationMap:
        elf = cached_object(path, demangle=demangle)
        if elf.reason:
            raise SymbolError(f"{path}: {elf.reason}")
        section = elf.section("xray_instr_map")
        if section is None:
            raise SymbolError(f"{path}: no section xray_instr_map (built without -fxray-instrument, or stripped of it)")
        try:
            entries = list(_read_sleds(elf, section))
            runs = [i for i, entry in enumerate(entries) if i == 0 or entry[0] != entries[i - 1][0]]
            firsts, warning = _read_index(elf, section, len(entries))
        except SymbolError as error:
            raise SymbolError(f"{path}: {error}") from error
        if firsts and firsts != runs:
            counts = f"section xray_fn_idx numbers {counted(len(firsts), 'function')}, xray_instr_map {len(runs)}"
            warning = f"{counts}; numbered by xray_fn_idx"
            runs = firsts  # as the runtime numbers them; runs give functions that the linker folded a single id
        addresses = {i: entries[first][0] for i, first in enumerate(runs, 1)}
        sleds = dict.fromkeys(addresses, 0)
        ends = dict(pairwise([*sorted(runs), len(entries)]))
        for i, first in enumerate(runs, 1):
            for _, kind in entries[first : ends[first]]:
                sleds[i] |= 1 << kind
        result = cls(path, addresses, sleds, demangle)
        result._elf = elf
        result.warnings += [f"{path}: {warning}"] if warning else []
        return result

    # ---- YAML

    @classmethod
    def _from_yaml(cls, path: str, text: bytes, demangle: Demangle) -> InstrumentationMap:
        result = cls(path, {}, {}, demangle)
        for line, item in _read_yaml(path, text):
            function_id = _number(path, line, item, "id", 1, 32)
            address = _number(path, line, item, "function", 0, 64)
            if result._addresses.setdefault(function_id, address) != address:
                known = result._addresses[function_id]
                raise SymbolError(f"{path}: line {line}: id {function_id} is function {address:#x}, earlier {known:#x}")
            kind = _KINDS.get(item.get("kind", ""))
            result._sleds[function_id] = result._sleds.get(function_id, 0) | (0 if kind is None else 1 << kind)
            if name := item.get("function-name"):
                result._given[function_id] = name
        return result


_cache = FileCache[InstrumentationMap](MAX_CACHED)


class FunctionNames:
    """The maps of a program and its shared objects: id = object << 24 | id in the object.

    The first map is object 0, the program; the others are objects 1, 2, ... in the order given.  That must be the order
    in which the process loaded them, because an XRay log does not name its objects.
    """

    def __init__(self, maps: Iterable[InstrumentationMap]) -> None:
        self.maps = tuple(maps)
        self._named: list[list[Function]] = [[] for _ in self.maps]

    def lookup(self, function_id: int) -> Function | None:
        """The function of an id as the log has it, or None when it is in no map."""
        number = function_id >> OBJECT_SHIFT
        if number >= len(self.maps):
            return None
        found = self.maps[number].lookup(function_id & ((1 << OBJECT_SHIFT) - 1))
        if found:
            self._named[number].append(found)
        return found

    def notes(self) -> list[str]:
        """Warnings about the maps, and about the names of looked-up functions."""
        pairs = zip(self.maps, self._named, strict=True)
        return [note for one, named in pairs for note in (*one.warnings, *one.notes(named))]


def _read_sleds(elf: ElfFile, section: Section) -> Iterator[tuple[int, int]]:
    """Function address and kind of each entry.  Errors: SymbolError with section and byte offset."""
    layout = struct.Struct(elf.order + ("QQBBB13x" if elf.bits == 64 else "IIBBB5x"))
    word, mask = elf.bits // 8, (1 << elf.bits) - 1
    data = elf.data(section)
    if not len(data) or len(data) % layout.size:
        where = f"section xray_instr_map at byte {section.offset}"
        raise SymbolError(f"{where}: size is {len(data)}, expected a multiple of {layout.size}")
    moved: dict[int, int] | None = None
    field = section.address + word - layout.size
    for _, function, kind, _, version in layout.iter_unpack(data):
        field += layout.size
        if version == MAX_VERSION:
            function = (field + function) & mask
        elif function == 0:
            if moved is None:
                moved = _relative_relocations(elf)
            function = moved.get(field, 0)
        if version > MAX_VERSION or kind > MAX_KIND or function == 0:
            where = f"section xray_instr_map at byte {section.offset + field - word - section.address}"
            if version > MAX_VERSION:
                raise SymbolError(f"{where}: version is {version}, expected 0..{MAX_VERSION}")
            if kind > MAX_KIND:
                raise SymbolError(f"{where}: kind is {kind}, expected 0..{MAX_KIND}")
            raise SymbolError(f"{where}: function address is 0 and no relocation fills it in")
        yield function, kind


def _relative_relocations(elf: ElfFile) -> dict[int, int]:
    """place -> addend of all relative relocations with addends (those without keep the address in place)."""
    wanted = _RELATIVE.get(elf.machine)
    layout = struct.Struct(elf.order + ("QQq" if elf.bits == 64 else "IIi"))
    type_mask = 0xFFFFFFFF if elf.bits == 64 else 0xFF
    places: dict[int, int] = {}
    for section in elf.sections:
        if section.kind == SHT_RELA:
            data = elf.data(section)
            for place, info, addend in layout.iter_unpack(data[: len(data) // layout.size * layout.size]):
                if info & type_mask == wanted:
                    places[place] = addend & ((1 << elf.bits) - 1)
    return places


def _read_index(elf: ElfFile, sleds: Section, count: int) -> tuple[list[int], str]:
    """From xray_fn_idx: the number of the first entry of each function ([] without index), and a warning or "".

    An index entry is two words: the distance from itself to the first sled entry, and how many there are; before
    LLVM 17 the absolute start and end address. An index that fits neither layout is ignored: the ids of runs remain.
    """
    section = elf.section("xray_fn_idx")
    if section is None:
        return [], ""
    layout = struct.Struct(elf.order + ("QQ" if elf.bits == 64 else "II"))
    size, mask = (32 if elf.bits == 64 else 16), (1 << elf.bits) - 1
    data = elf.data(section)
    where = f"section xray_fn_idx at byte {section.offset}"
    if len(data) % layout.size:
        return [], f"{where}: size is {len(data)}, expected a multiple of {layout.size}; ignored"
    pairs = list(layout.iter_unpack(data))
    places = [section.address + at * layout.size for at in range(len(pairs))]
    near = [((place + first) & mask, n * size) for place, (first, n) in zip(places, pairs, strict=True)]
    far = [(start, end - start) for start, end in pairs]
    if any(start == 0 for start, _ in pairs):
        moved = _relative_relocations(elf)
        ends = [(moved.get(p, 0), moved.get(p + layout.size // 2, 0)) for p in places]
        far = [(start, end - start) for start, end in ends]
    for ranges in (near, far):
        offsets = [start - sleds.address for start, _ in ranges]
        whole = all(
            o % size == 0 and n > 0 and o >= 0 and o + n <= count * size
            for o, (_, n) in zip(offsets, ranges, strict=True)
        )
        if whole:
            return [offset // size for offset in offsets], ""
    return [], f"{where}: entries do not point into xray_instr_map; ignored"


def _read_yaml(path: str, raw: bytes) -> Iterator[tuple[int, dict[str, str]]]:
    """(line, mapping) of each item of a YAML sequence of flat mappings, in braces or as a block.

    Only the subset of YAML that `llvm-xray extract` writes. Errors: SymbolError with file and line.
    """
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise SymbolError(f"{path}: at byte {error.start}: neither an ELF file nor a YAML map") from error
    at, line, counted = _skip(text, 0), 1, 0
    while at < len(text):
        line, counted = line + text.count("\n", counted, at), at
        if text[at : at + 2] not in ("- ", "-\n", "-\t"):
            raise SymbolError(f"{path}: line {line}: found {text[at : at + 20]!r}, expected '- ' and a map entry")
        at = _skip(text, at + 1)
        braces = text.startswith("{", at)
        at += braces
        item: dict[str, str] = {}
        while True:
            match = (_FLOW_PAIR if braces else _BLOCK_PAIR).match(text, at)
            if match is None or (braces and match["end"] not in (",", "}", "\n", "\r\n")):
                broken = line + text.count("\n", counted, at)
                raise SymbolError(f"{path}: line {broken}: found {text[at : at + 20]!r}, expected 'key: value'")
            item[match["key"]] = _scalar(match)
            at = match.end()
            if braces and match["end"] != "}":
                at = _skip(text, at)
                at += text.startswith(",", at)
                if not text.startswith("}", at):
                    continue
                at += 1
            if braces or text[at : at + 1] not in (" ", "\t"):
                break
        yield line, item
        at = _skip(text, at)


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


def _scalar(match: re.Match[str]) -> str:
    if match["single"] is not None:
        return match["single"].replace("''", "'")
    if match["double"] is not None:
        text = _ESCAPE.sub(_unescape, match["double"])
        # two escapes may form one character; half a character becomes U+FFFD
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return (match["plain"] or "").rstrip()


def _unescape(match: re.Match[str]) -> str:
    code = match[1] or match[2] or match[3]
    if not code:
        return _ESCAPES.get(match[4], match[4])
    return chr(int(code, 16)) if int(code, 16) < 0x110000 else match[0]


def _number(path: str, line: int, item: dict[str, str], key: str, least: int, bits: int) -> int:
    text = item.get(key, "")
    try:
        value = int(text, 0) if len(text) <= 80 else 1 << bits
    except ValueError:
        found = repr(text) if key in item else "missing"
        raise SymbolError(f"{path}: line {line}: {key} is {found:.40}, expected a number") from None
    if not least <= value < 1 << bits:
        raise SymbolError(f"{path}: line {line}: {key} is {text:.40}, expected {least}..{(1 << bits) - 1}")
    return value
