"""The tables of archives, and their differences, for the slow reader (archive.py)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tests.reference.archive_bytes import MASK, Bytes, varint, zag, zig

TABLES = {
    "objects": 2, "mappings": 5, "functions": 5, "lines": 4, "frames": 4, "stacks": 2, "labels": 5, "threads": 3,
}  # fmt: skip
# The table that each column refers to, and the tables from those that refer to others to those referred to
REFERENCES: dict[str, tuple[str, ...]] = {
    "objects": ("strings", "strings"), "mappings": ("objects", "", "", "", ""),
    "functions": ("objects", "strings", "strings", "strings", ""), "lines": ("functions", "", "", "lines"),
    "frames": ("mappings", "", "", "lines"), "stacks": ("stacks", "frames"),
    "labels": ("labels", "strings", "strings", "", "strings"), "threads": ("", "", ""),
}  # fmt: skip
ORDER = ("stacks", "labels", "threads", "frames", "lines", "functions", "mappings", "objects", "strings")


@dataclass
class Profile:
    view: str = ""
    name: str = ""
    parts: list[dict[str, Any]] = field(default_factory=list)
    strings: list[bytes] = field(default_factory=lambda: [b""])
    tables: dict[str, list[tuple[int, ...]]] = field(
        default_factory=lambda: {name: [(0,) * n] for name, n in TABLES.items()}
    )
    rows: list[tuple[int, dict[str, Any], list[int]]] = field(default_factory=list)  # part, columns, values
    end: dict[str, Any] = field(default_factory=dict)
    numbers: dict[int, int] = field(default_factory=dict)  # of functions
    same_stacks: list[int] = field(default_factory=list)  # by stack: that of the base


def read_tables(profile: Profile, b: Bytes) -> None:
    assert b.varint() == len(profile.strings)
    lengths = [b.varint() for _ in range(b.varint())]
    profile.strings += [b.take(n) for n in lengths]
    for name, n_columns in TABLES.items():
        assert b.varint() == len(profile.tables[name])
        n = b.varint()
        columns = []
        for _ in range(n_columns):
            value, column = 0, []
            for _ in range(n):
                value = (value + b.delta()) & MASK
                column.append(value)
            columns.append(column)
        profile.tables[name] += list(zip(*columns, strict=True))


def tagged(profile: Profile, name: str, tag: int, new: dict[str, list[Any]]) -> tuple[int, ...]:
    """The columns of an entry; those that refer to a table are tags."""
    if tag % 2:
        return tuple(new[name][tag // 2])
    row = profile.tables[name][tag // 2]
    return tuple(2 * v if to else v for v, to in zip(row, REFERENCES[name], strict=True))


def guesses(profile: Profile, name: str, tags: dict[str, list[int]], new: dict[str, list[Any]], leaf: int) -> list[int]:
    found: list[int] = []
    for above in ORDER[: ORDER.index(name)]:
        rows = [tagged(profile, above, tag, new) for tag in tags[above]]
        if leaf and above == "stacks":
            runs: list[list[tuple[int, ...]]] = []
            for i, row in enumerate(rows):
                if i and row[0] == tags[above][i - 1]:
                    runs[-1].insert(0, row)
                else:
                    runs.append([row])
            rows = [row for run in runs for row in run]
        for row in rows:
            found += [v for v, to in zip(row, REFERENCES[above], strict=True) if to == name != above and v]
    return list(dict.fromkeys(found))


class OwnList:
    """The tags of a table's entries, which follow the base's order from `next` on."""

    def __init__(self, profile: Profile, name: str, guessed: list[int]) -> None:
        self.tags: list[int] = []
        self.listed: set[int] = set()
        self.guessed, self.n_new, self.next, self.saved = guessed, 0, 1, 1
        self.rows = profile.strings if name == "strings" else profile.tables[name]
        columns = REFERENCES.get(name, ())
        self.outer = columns.index(name) if name in columns else None

    def from_(self, at: int) -> tuple[int, int]:
        """The base's id that comes next if its order continues at `at`, and where it continues after that."""
        last = at + 256
        while at < min(last, len(self.rows)) and 2 * at in self.listed:
            at += 1
        id_, then = at, at + 1
        for _ in range(256 if self.outer is not None and at < len(self.rows) else 0):
            outer = self.rows[id_][self.outer]  # type: ignore[index]
            if not outer or 2 * outer in self.listed:  # type: ignore[operator]
                break
            id_, then = outer, at  # type: ignore[assignment]
        return id_, then

    def take_expected(self) -> None:
        while self.guessed and self.guessed[0] in self.listed:
            del self.guessed[0]
        if self.guessed:
            tag = self.guessed[0]
            self.place(tag, self.next if tag % 2 else tag // 2 + 1)
            return
        id_, then = self.from_(self.next)
        self.place(2 * id_, then)

    def take_code(self, code: int) -> None:
        if code == 0:
            self.place(2 * self.n_new + 1, self.next)
            return
        at = self.saved if code == 1 else self.next + zag(code - 2)
        self.saved = self.next
        id_, then = self.from_(at)
        self.place(2 * id_, then)

    def place(self, tag: int, then: int) -> None:
        assert tag not in self.listed and (tag // 2 == self.n_new if tag % 2 else 0 < tag // 2 < len(self.rows))
        self.n_new += tag % 2
        self.next = then
        self.tags.append(tag)
        self.listed.add(tag)


def tables_applied(base: Bytes, difference: Bytes) -> tuple[bytes, list[int]]:
    """The TABLES payload from which the difference was made, and the base's id of each stack, or of each function."""
    profile = Profile()
    read_tables(profile, base)
    counts = {name: difference.varint() for name in ("strings", *TABLES)}
    tags: dict[str, list[int]] = {}
    new: dict[str, list[Any]] = {}
    for name in ORDER:
        guessed = guesses(profile, name, tags, new, difference.u8() if name == "frames" else 0)
        own = OwnList(profile, name, guessed)
        while len(own.tags) < counts[name]:
            run = difference.varint()
            assert len(own.tags) + run <= counts[name]
            for _ in range(run):
                own.take_expected()
            if len(own.tags) < counts[name]:
                own.take_code(difference.varint())
        tags[name], n_new = own.tags, own.n_new
        if name == "strings":
            lengths = [difference.varint() for _ in range(n_new)]
            new[name] = [difference.take(n) for n in lengths]
        else:
            new[name] = [[difference.varint() for _ in range(TABLES[name])] for _ in range(n_new)]
    assert difference.at == len(difference.data)
    own = {name: {0: 0} | {tag: i for i, tag in enumerate(tags[name], 1)} for name in tags}
    strings = [new["strings"][tag // 2] if tag % 2 else profile.strings[tag // 2] for tag in tags["strings"]]
    out = b"".join(varint(n) for n in (1, len(strings), *map(len, strings))) + b"".join(strings)
    for name in TABLES:
        out += varint(1) + varint(counts[name])
        rows = [tagged(profile, name, tag, new) for tag in tags[name]]
        for j, to in enumerate(REFERENCES[name]):
            last = 0
            for row in rows:
                value = own[to][row[j]] if to else row[j]
                step = (value - last + (1 << 63)) % (1 << 64) - (1 << 63)
                out += varint(zig(step))
                last = value
    return out, [0, *(0 if tag % 2 else tag // 2 for tag in tags["stacks"] or tags["functions"])]
