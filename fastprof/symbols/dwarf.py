"""Lines of code outside of DWARF functions: assembly, and -g1, where clang leaves out functions without inlined calls.

symbolic keeps only lines inside functions, so these come from the line programs themselves, through pyelftools.
A unit's line program (~150,000 rows a second) is run when the first address in it is asked for, not before.
"""

from __future__ import annotations

import bisect
import posixpath

from fastprof.core._typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from elftools.elf.elffile import ELFFile

_RANGE_ADDRESS_FORMS = frozenset(("DW_FORM_addr", "DW_FORM_addrx", "DW_FORM_GNU_addr_index"))


class LineTables:
    """Link-time address -> (file, line) from .debug_line; nothing is known (None) where the data is damaged."""

    def __init__(self, elf: ELFFile) -> None:
        self._starts: list[int] = []
        self._ranges: list[tuple[int, int]] = []  # end, offset of the unit
        self._rows: dict[int, tuple[list[int], list[tuple[str, int]]]] = {}
        try:
            self._dwarf: Any = elf.get_dwarf_info(relocate_dwarf_sections=False, follow_links=False)
            ranges = sorted(self._unit_ranges())
        except Exception:  # pyelftools lets errors of many kinds out of damaged files; no lines is what remains
            ranges = []
        self._starts = [start for start, _, _ in ranges]
        self._ranges = [(end, unit) for _, end, unit in ranges]

    def find(self, address: int) -> tuple[str, int] | None:
        """The file (compilation directory joined, `..` removed) and line of an address, or None.

        The line is 0 where the compiler says that the code belongs to no line.
        """
        at = bisect.bisect_right(self._starts, address) - 1
        if at < 0 or address >= self._ranges[at][0]:
            return None
        unit = self._ranges[at][1]
        if unit not in self._rows:
            try:
                self._rows[unit] = self._run(unit)
            except Exception:  # as above
                self._rows[unit] = ([], [])
        starts, places = self._rows[unit]
        row = bisect.bisect_right(starts, address) - 1
        return places[row] if row >= 0 and places[row][0] else None

    def _unit_ranges(self) -> list[tuple[int, int, int]]:
        aranges = self._dwarf.get_aranges()
        if aranges is not None and aranges.entries:
            return [(e.begin_addr, e.begin_addr + e.length, e.info_offset) for e in aranges.entries if e.begin_addr]
        found = []
        for unit in self._dwarf.iter_CUs():
            for start, end in self._ranges_of(unit):
                if 0 < start < end:
                    found.append((start, end, unit.cu_offset))
        return found

    def _ranges_of(self, unit: Any) -> list[tuple[int, int]]:
        top = unit.get_top_DIE()
        low, high, ranges = (top.attributes.get("DW_AT_" + name) for name in ("low_pc", "high_pc", "ranges"))
        if ranges is None:
            if low is None or high is None:
                return []
            size = high.value - low.value if high.form in _RANGE_ADDRESS_FORMS else high.value
            return [(low.value, low.value + size)]
        base = low.value if low is not None else 0
        found = []
        for entry in self._dwarf.range_lists().get_range_list_at_offset(ranges.value, unit):
            if hasattr(entry, "base_address"):
                base = entry.base_address
            elif entry.is_absolute:
                found.append((entry.begin_offset, entry.end_offset))
            else:
                found.append((base + entry.begin_offset, base + entry.end_offset))
        return found

    def _run(self, offset: int) -> tuple[list[int], list[tuple[str, int]]]:
        """The (start addresses, places) of one unit, sorted by address; a sequence ends with a place without file."""
        unit = self._dwarf.get_CU_at(offset)
        program = self._dwarf.line_program_for_CU(unit)
        if program is None:
            return [], []
        folder = unit.get_top_DIE().attributes.get("DW_AT_comp_dir")
        names = _file_names(program.header, folder.value.decode("utf-8", "replace") if folder else "")
        first = 0 if program.header.version >= 5 else 1
        rows: dict[int, tuple[str, int]] = {}
        for entry in program.get_entries():
            if (state := entry.state) is None:
                continue
            if state.end_sequence:
                rows.setdefault(state.address, ("", 0))
            else:
                at = state.file - first
                rows[state.address] = (names[at] if 0 <= at < len(names) else "", state.line)
        starts = sorted(rows)
        return starts, [rows[start] for start in starts]


def _file_names(header: Any, folder: str) -> list[str]:
    """The paths of a line program's file table, in its order."""
    folders = [part.decode("utf-8", "replace") for part in header.include_directory]
    if header.version < 5:
        folders.insert(0, folder)  # directory 0 is the compilation directory
    paths = []
    for file in header.file_entry:
        name = file.name.decode("utf-8", "replace")
        within = folders[file.dir_index] if 0 <= file.dir_index < len(folders) else ""
        path = posixpath.join(folder, within, name)
        paths.append(posixpath.normpath(path) if path else "")
    return paths
