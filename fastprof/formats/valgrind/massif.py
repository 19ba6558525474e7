"""Reads Massif profiles (_massif.pyx)."""

from __future__ import annotations

from collections.abc import Iterable

from fastprof.core._typing import TYPE_CHECKING, Any
from fastprof.core.allocators import NAMES
from fastprof.core.c_memory import address_of
from fastprof.core.model import Part, ValueType
from fastprof.core.native import NativeReader
from fastprof.core.options import LENIENT
from fastprof.core.reported import coded
from fastprof.formats.valgrind import SNAPSHOT
from fastprof.formats.valgrind._massif import Lexer
from fastprof.formats.valgrind.places import Places
from fastprof.formats.valgrind.reported import REPORTED

if TYPE_CHECKING:
    from fastprof.core._c import fp_batch, fp_err, fp_window
    from fastprof.formats.valgrind._massif import Snapshot

_TREES = ("", "detailed", "peak")


_INACCURACY = 1.01  # Massif's default: what it marks as the peak may be 1 % below the real one


def _total(s: Snapshot) -> int:
    return s["heap_bytes"] + s["extra_bytes"] + s["stacks_bytes"]


class MassifReader(NativeReader):
    """Reads the trees of snapshots in two passes: the first lists the snapshots."""

    format = "massif"
    view = "stacks"
    allocator = True

    def start(self) -> None:
        self.source.spool()
        self._lexer = Lexer(address_of(self.model.c), self.options[LENIENT])
        self._header: dict[bytes, bytes] = {}
        self._places = Places(self.model)

    def ranges(self) -> Iterable[tuple[int, int | None]]:
        yield 0, None
        lexer = self._lexer
        found = lexer.snapshots
        chosen = self._chosen(found)
        self._add_part(found, {*chosen})
        several = self.options[SNAPSHOT] == "all"
        for k in chosen:
            s = found[k]
            lexer.select(k, self.model.label("snapshot", number=s["number"]) if several else 0)
            yield s["tree_at"], s["tree_end"] - s["tree_at"]

    def _chosen(self, found: list[Snapshot]) -> list[int]:
        """The indexes of the snapshots to read.  Errors: FormatError."""
        which = str(self.options[SNAPSHOT])
        trees = [k for k, s in enumerate(found) if s["kind"]]
        if which == "all":
            return trees
        if which.isdigit():
            named = [k for k in trees if found[k]["number"] == int(which)]
            if not named:
                numbers = ", ".join(str(found[k]["number"]) for k in trees) or "none"
                detail = f"no tree in snapshot {int(which)}; snapshots with a tree: {numbers}"
                raise self.damaged(detail)
            return named[-1:]
        if which == "last":
            return trees[-1:]
        peaks = [k for k in trees if _TREES[found[k]["kind"]] == "peak"]
        largest = sorted(trees, key=lambda k: _total(found[k]))[-1:]
        if not peaks or _total(found[largest[0]]) <= _INACCURACY * _total(found[peaks[-1]]):
            return peaks[-1:] or largest
        # with --pages-as-heap=yes Massif takes an early snapshot for the peak
        peak, most = (found[of[-1]]["number"] for of in (peaks, largest))
        self.log.warn(REPORTED["larger-than-peak"], file=self.source.name, peak=peak, largest=most)
        return largest

    def _add_part(self, found: list[Snapshot], chosen: set[int]) -> None:
        header = self._header
        self.part = self.model.add_part(
            Part(
                [ValueType("heap_bytes", "bytes")],
                command=header.get(b"cmd"),
                descriptions=[(b"desc", header[b"desc"])] if header.get(b"desc", b"(none)") != b"(none)" else [],
                extra={"drop_frames": NAMES},
            )
        )
        facts = self.log.facts
        facts["time_unit"] = header.get(b"time_unit", b"").decode("utf-8", "replace")
        series: list[dict[str, Any]] = []
        for k, s in enumerate(found):
            row: dict[str, Any] = {
                key: s[key] for key in ("number", "time", "heap_bytes", "extra_bytes", "stacks_bytes")
            }
            if s["nanos"]:
                row["time"] += s["nanos"] / 1e9
            series.append(row | {"total_bytes": _total(s), "tree": _TREES[s["kind"]], "read": k in chosen})
        facts["snapshots"] = series
        if not any(s["kind"] for s in found):
            self.log.warn(REPORTED["no-tree"], file=self.source.name)

    def step(self, in_: fp_window, batch: fp_batch, err: fp_err) -> int:
        return self._lexer.feed(address_of(in_), address_of(batch), address_of(err))

    def answer(self, batch: fp_batch) -> None:
        lexer = self._lexer
        if lexer.is_place:
            lexer.place(*self._places.enter(lexer.text))
        else:
            key, _, value = lexer.text.partition(b": ")
            self._header[key] = self._header[key] + b" " + value if key in self._header else value
            lexer.header_taken()

    def finish(self) -> None:
        self.log.count_all(REPORTED, coded(REPORTED, self._lexer.counts))
