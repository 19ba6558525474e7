"""The recorded output of the real opreport, and the product's figures in the same shape."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import fastprof

Counts = tuple[int, ...]


class Figures(NamedTuple):
    """Samples by event; images and programs by their paths.  XML has no images of places and arcs: "" instead."""

    symbols: dict[tuple[str, ...], Counter[int]]  # program, image, symbol, thread -> column -> samples
    places: dict[tuple[str, str, str, int], Counter[int]]  # program, image, symbol, address -> column -> samples
    lines: dict[tuple[str, int], tuple[str, int]]  # symbol, address -> file, line
    arcs: dict[tuple[str, ...], Counter[int]]  # program, caller's image, caller, callee's image, callee -> ...


def spelled(symbol: str) -> str:
    """A name without blanks and with lambdas as LLVM's demangler writes them: demanglers differ in both."""
    return "".join(symbol.replace("{lambda()#1}", "'lambda'()").split())


def counts(sums: Counter[int]) -> dict[int, int]:
    return {column: n for column, n in sums.items() if n}


def product(path: Path, **options: Any) -> Figures:
    """The samples that fastprof reads.  There is a column per event and, if CPUs are separate, per CPU."""
    found = Figures({}, {}, {}, {})
    with fastprof.open(path, **options) as profile:
        model = profile._model
        names: dict[int, tuple[str, str]] = {}

        def name(function: int) -> tuple[str, str]:
            if function not in names:
                f = model.get_function(function)
                names[function] = f.object.decode(), spelled(f.name.decode())
            return names[function]

        for batch in profile:
            part = model.parts[batch.part]
            program = (part.command or b"").decode()
            cpu = next((int(value) for key, value in part.descriptions if key == b"CPU"), 0)
            columns = {c: batch[c] for c in batch.columns}
            n = len(part.value_types)
            for i in range(len(batch)):
                image, symbol = name(columns["function"][i])
                values = Counter({cpu * n + k: batch.values(k)[i] for k in range(n)})
                if columns["kind"][i] == 1:
                    arc = program, image, symbol, *name(columns["callee"][i])
                    found.arcs.setdefault(arc, Counter()).update(values)
                    assert columns["count"][i] == sum(values.values())
                    continue
                thread = str(part.thread) if part.thread is not None else ""
                found.symbols.setdefault((program, image, symbol, thread), Counter()).update(values)
                address = columns["address"][i]
                found.places.setdefault((program, image, symbol, address), Counter()).update(values)
                found.lines[symbol, address] = model.string(columns["file"][i]).decode(), columns["line"][i]
    return found


# ---- XML: -X ------------------------------------------------------------


def image_of(name: str) -> str:
    """Kernel modules are printed with a slash, though they have no path; code made at run time with its path."""
    if name.endswith(".jo"):
        return name.rsplit("/", 1)[-1]
    return name[1:] if name.count("/") == 1 and name.startswith("/") else name


def read_xml(path: Path) -> Figures:
    """The figures of `opreport -X`, with those of -c or -d if present."""
    root = ET.fromstring(path.read_text())
    classes = {c.get("name"): k for k, c in enumerate(root.findall("classes/class"))}
    table = {s.get("id"): s for s in root.findall("symboltable/symboldata")}
    found = Figures({}, {}, {}, {})

    def read_counts(of: ET.Element) -> Counter[int]:
        sums: Counter[int] = Counter()
        for count in of.findall("count"):
            sums[classes.get(count.get("class"), 0)] += int(count.text or 0)
        return sums

    def symbol_name(symbol: ET.Element) -> str:
        return spelled(image_of(str(table[str(symbol.get("idref"))].get("name"))))

    def walk(node: ET.Element, program: str, image: str, thread: str) -> None:
        for child in node:
            if child.tag in ("binary", "process"):
                walk(child, str(child.get("name")), str(child.get("name")), thread)
            elif child.tag == "module":
                walk(child, program, image_of(str(child.get("name"))), thread)
            elif child.tag == "thread":
                walk(child, program, image, str(child.get("tid")))
            elif child.tag == "symbol":
                mine = symbol_name(child)
                found.symbols.setdefault((program, image, mine, thread), Counter()).update(read_counts(child))
                for callee in child.findall("callees//symbol"):
                    if not callee.get("self"):
                        key = program, "", mine, "", symbol_name(callee)
                        found.arcs.setdefault(key, Counter()).update(read_counts(callee))

    walk(root, "", "", "")
    for details in root.findall("detailtable/symboldetails"):
        data = table[str(details.get("id"))]
        for detail in details.findall("detaildata"):
            place = spelled(image_of(str(data.get("name")))), int(str(detail.get("vmaoffset")), 16)
            found.places.setdefault(("", "", *place), Counter()).update(read_counts(detail))
            found.lines[place] = detail.get("file") or data.get("file") or "", int(detail.get("line") or 0)
    return found


# ---- text: -l, -d, -c ---------------------------------------------------


def read_lines(path: Path) -> Iterator[tuple[bool, int, Counts, str]]:
    """The lines below the title: whether it is indented, the address (0 for none), samples of each column, and image,
    program and symbol without blanks.  Rulers have no content."""
    lines = path.read_text().splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith(("samples ", "vma ")))
    n, vma = lines[at].count("samples "), lines[at].startswith("vma ")
    for line in lines[at + 1 :]:
        if line.startswith("-----"):
            yield False, 0, (), ""
            continue
        match = re.match(rf" *{'([0-9a-f]+) +' if vma else '()'}((?:\d+ +[\d.e+-]+(?: +|$)){{{n}}})", line)
        assert match, line
        values = tuple(int(word) for word in match[2].split()[::2])
        # modules by their file name; a slash is added to images without a path
        rest = line[match.end() :].replace("blkmod.ko", "blkmod").replace("/no-vmlinux", "no-vmlinux")
        yield line.startswith(" "), int(match[1] or "0", 16), values, spelled(rest)


def read_symbols(path: Path) -> Counter[tuple[Counts, str]]:
    """`opreport -l`."""
    return Counter((values, text) for _, _, values, text in read_lines(path))


def read_details(path: Path) -> Counter[tuple[str, int, Counts]]:
    """The indented lines of `opreport -d`, with the symbol of the line above them."""
    found: Counter[tuple[str, int, Counts]] = Counter()
    symbol = ""
    for indented, address, values, text in read_lines(path):
        if indented:
            found[symbol, address, values] += 1
        else:
            symbol = text
    return found


Arcs = Counter[tuple[Counts, str, str]]  # samples, caller, callee


def read_arcs(path: Path) -> tuple[Arcs, Arcs, Counter[tuple[Counts, str]]]:
    """`opreport -c`: the arcs as listed at callers and at callees, and the samples of each symbol itself."""
    at_callers: Arcs = Counter()
    at_callees: Arcs = Counter()
    own: Counter[tuple[Counts, str]] = Counter()
    callers: list[tuple[Counts, str]] = []
    symbol = ""
    for indented, _, values, text in read_lines(path):
        if not values:
            callers, symbol = [], ""
        elif not indented:
            own[values, symbol := text] += 1
            at_callees.update((n, caller, symbol) for n, caller in callers)
        elif not symbol:
            callers.append((values, text))
        elif not text.endswith("[self]"):
            at_callers[values, symbol, text] += 1
    return at_callers, at_callees, own


def base(path: str) -> str:
    """The last component; memory and modules are not paths."""
    return path.rsplit("/", 1)[-1] if path.startswith("/") else path


def titles(path: Path) -> tuple[bool, bool]:
    """Whether `opreport -l` has columns for images and programs."""
    text = path.read_text()
    return "image name" in text, "app name" in text


def as_symbols(figures: Figures, path: Path, n: int) -> Counter[tuple[Counts, str]]:
    """The product's symbols in the shape of `read_symbols`."""
    found: Counter[tuple[Counts, str]] = Counter()
    outside = outside_of_symbols(figures)
    for (program, image, symbol, _), sums in figures.symbols.items():
        if (program, image, symbol) not in outside:
            found[tuple(sums[k] for k in range(n)), as_text(path, program, image, symbol)] += 1
    return found


def as_text(path: Path, program: str, image: str, symbol: str) -> str:
    """A symbol in the shape of `read_lines`."""
    images, programs = titles(path)
    of = base(program or image)  # libraries are programs: each image is its own
    return spelled((base(image) if images else "") + (of if programs else "") + symbol)


def outside_of_symbols(figures: Figures) -> set[tuple[str, str, str]]:
    """(program, image, symbol) of the code outside of all symbols, which opreport leaves out."""
    known = with_symbols(figures)
    keys = {key[:3] for key in figures.symbols}
    return {(p, i, s) for p, i, s in keys if s == spelled(i) and i.startswith("/") and (p, i) in known}


def as_details(figures: Figures, path: Path, n: int) -> Counter[tuple[str, int, Counts]]:
    outside = outside_of_symbols(figures)
    return Counter(
        (as_text(path, *symbol), address, tuple(sums[k] for k in range(n)))
        for (*symbol, address), sums in figures.places.items()
        if tuple(symbol) not in outside
    )


def as_arcs(figures: Figures, path: Path, n: int) -> Arcs:
    """Without samples in images without symbols and in memory, which opreport drops."""
    known = with_symbols(figures)
    found: Arcs = Counter()
    for (program, image, caller, *callee), sums in figures.arcs.items():
        if (program, image) in known and caller != spelled(image):
            texts = as_text(path, program, image, caller), as_text(path, program or image, *callee)
            found[tuple(sums[k] for k in range(n)), *texts] += 1
    return found


def with_symbols(figures: Figures) -> set[tuple[str, str]]:
    """(program, image) of the images that have symbols themselves."""
    return {(program, image) for program, image, symbol, _ in figures.symbols if symbol != spelled(image)}


# ---- text: the summary --------------------------------------------------


def read_summary(path: Path) -> Counter[tuple[Counts, str]]:
    """The lines of the summary: samples, and the image, which is indented below its program."""
    found: Counter[tuple[Counts, str]] = Counter()
    for line in path.read_text().splitlines():
        match = re.match(r"(\t?) *(\d+) +[\d.e+-]+ +(?:(\d+) +[\d.e+-]+ +)*", line)
        if match and not line.startswith("CPU"):
            values = tuple(int(word) for word in match[0].split()[::2])
            found[values, match[1] + line[match.end() :]] += 1
    return found


def as_summary(figures: Figures, n: int) -> Counter[tuple[Counts, str]]:
    programs: dict[str, Counter[int]] = {}
    images: dict[tuple[str, str], Counter[int]] = {}
    for (program, image, _, _), sums in figures.symbols.items():
        programs.setdefault(program, Counter()).update(sums)
        images.setdefault((program, image), Counter()).update(sums)
    found: Counter[tuple[Counts, str]] = Counter()

    for program, sums in programs.items():
        found[tuple(sums[k] for k in range(n)), base(program)] += 1
        mine = [image for of, image in images if of == program]
        for image in mine:
            if mine != [program]:
                found[tuple(images[program, image][k] for k in range(n)), "\t" + base(image)] += 1
    return found
