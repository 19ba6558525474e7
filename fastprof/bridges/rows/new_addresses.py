"""The names of new addresses of a model: `rows.symbolize` imports it with the first address."""

import bisect
import struct
from array import array
from collections import Counter

from fastprof.bridges.rows.reported import REPORTED
from fastprof.core._c import ffi, lib
from fastprof.core._typing import fp_restack
from fastprof.core.c_memory import owned
from fastprof.core.errors import check_sums
from fastprof.core.log import Log
from fastprof.core.messages import counted
from fastprof.core.model import Model
from fastprof.core.options import Options
from fastprof.symbols import DEBUG_DIRS, DEMANGLE, FORCE_SYMBOLS, SYMBOLS, SYSROOT
from fastprof.symbols.chains import save_new
from fastprof.symbols.finder import Finder
from fastprof.symbols.mappings import Mapping
from fastprof.symbols.symbol import Chains
from fastprof.symbols.symbolizer import Symbolizer

_MAPPING = lib.FP_MAPPING_WIDTH
_LATEST = 4096
_AT_ONCE = 1 << 16  # mappings passed to a symbolizer at a time: they become Python objects


class _Ranges:
    """Ranges of addresses that do not overlap.

    New ranges are kept in short lists, so that an insertion moves few of them even if a million come in descending
    order.  A full list is merged with lists of about its length, so each range moves only a few times.
    """

    def __init__(self) -> None:
        # starts and limits, sorted; ranges above all others are appended to the first list
        self._lists = [(array("Q"), array("Q"))]
        self._latest = (array("Q"), array("Q"))
        self._highest = 0  # limit while all ranges came in order

    def add(self, start: int, limit: int) -> bool:
        """Add a range, unless it is empty; False if it overlaps one of these."""
        lists, (first, limits) = self._lists, self._lists[0]
        if self._highest <= start < limit:  # the usual order
            first.append(start)
            limits.append(limit)
            self._highest = limit
            return True
        for starts, limits in (*lists, self._latest):
            at = bisect.bisect_left(starts, start)
            if (at and start < limits[at - 1]) or (at < len(starts) and starts[at] < limit):
                return False
        if start >= limit:
            return True
        into = self._latest if first and start < first[-1] else lists[0]
        self._highest = 1 << 64  # the next ones may overlap any
        at = bisect.bisect_left(into[0], start)
        into[0].insert(at, start)
        into[1].insert(at, limit)
        if len(self._latest[0]) == _LATEST:
            lists.append(self._latest)
            self._latest = (array("Q"), array("Q"))
            while len(lists) > 2 and len(lists[-2][0]) < 2 * len(lists[-1][0]):
                both = zip(lists.pop(), lists.pop(), strict=True)
                starts, limits = (array("Q", sorted([*some, *more])) for some, more in both)
                lists.append((starts, limits))
        return True


class Names:
    """Names the frames added since the last call."""

    def __init__(self, model: Model, options: Options) -> None:
        self._model = model
        self._options = options
        self._finder: Finder | None = None
        self._seen = 1
        self._symbolizers: list[Symbolizer] = []
        self._process_of = array("I", [0])  # by mapping: index of its symbolizer
        self._taken = _Ranges()  # mappings of the last process
        self._texts: dict[int, tuple[str, str]] = {}  # by object: name and build id
        # by chains and object: ids in the model, by number
        self._functions: dict[tuple[Chains, int], array[int]] = {}
        self._unnamed = owned(lib.fp_unnamed_new(), "symbols")
        self._err = ffi.new("struct fp_err *")
        self._failures: Counter[tuple[str, str]] = Counter()

    def replace_new(self, restack: fp_restack) -> None:
        """Replace the frames added since the last call by frames with lines, where these are known."""
        model, unnamed = self._model, self._unnamed
        if int(model.c.frames.n) == self._seen:
            return
        check_sums(lib.fp_unnamed_find(unnamed, model.c, self._seen, self._err), self._err, model, "symbols")
        self._seen = int(model.c.frames.n)
        if not unnamed.n:
            self._map()
            return
        frames, addresses = ffi.unpack(unnamed.frames, unnamed.n), ffi.unpack(unnamed.addresses, unnamed.n)
        callers, n = ffi.buffer(unnamed.callers, unnamed.n)[:], unnamed.n_mappings
        self._map()
        first = 0
        for mapping, end in zip(ffi.unpack(unnamed.mappings, n), ffi.unpack(unnamed.ends, n), strict=True):
            if mapping or self._has_one_program():
                object_id = model.c.mappings.words[mapping * _MAPPING + lib.FP_MAPPING_OBJECT] if mapping else 0
                symbolizer, its_frames = self._symbolizers[self._process_of[mapping]], frames[first:end]
                for chains, positions, found in symbolizer.look_up(addresses[first:end], callers[first:end]):
                    named = its_frames if len(positions) == end - first else [its_frames[at] for at in positions]
                    with chains.lock:
                        self._replace(restack, named, chains, found, object_id)
            else:
                self._failures["", "address outside all mappings"] += end - first
            first = end
        self._seen = int(model.c.frames.n)

    def _has_one_program(self) -> bool:
        """Whether there are no mappings, as in Go's heaps, and the user named the program: then its addresses belong to
        a mapping without a name, number 0."""
        if self._model.c.mappings.n > 1 or SYMBOLS not in self._options:
            return False
        if not self._symbolizers:
            self._symbolizers.append(self._symbolizer())
            self._symbolizers[0].add([Mapping(0, (1 << 64) - 1, 0, "")])
        return True

    def _replace(
        self, restack: fp_restack, frames: list[int], chains: Chains, found: list[bytes], object_id: int
    ) -> None:
        ids = self._functions.setdefault((chains, object_id), array("I"))
        ids.extend([0] * (len(chains.first_lines) - len(ids)))
        named = ffi.new("struct fp_restack_named *", {"object": object_id, "n_functions": len(ids)})
        words = ffi.from_buffer("uint32_t[]", b"".join(found))
        rows = ffi.new("uint32_t[]", frames), ffi.from_buffer("uint32_t[]", ids)
        texts, ends = ffi.from_buffer("uint8_t[]", chains.texts), ffi.from_buffer("uint64_t[]", chains.ends)
        first_lines = ffi.from_buffer("uint32_t[]", chains.first_lines)
        named.frames, named.functions = rows
        named.chains, named.texts, named.ends, named.first_lines = words, texts, ends, first_lines
        named.n_frames, named.n_words = len(frames), len(words)
        check_sums(lib.fp_restack_chains(restack, named, self._err), self._err, self._model, "symbols")

    def _map(self) -> None:
        """Assign each new mapping to the last process, or to a new process if it overlaps a mapping there."""
        model, taken = self._model, self._taken
        new: list[Mapping] = []
        known, mappings = len(self._process_of), model.c.mappings
        words = ffi.buffer(mappings.words + known * _MAPPING, (mappings.n - known) * _MAPPING * 4)[:]
        for object_id, start, limit, offset, flags in struct.iter_unpack("=IQQQI", words):
            if not taken.add(start, limit) or not self._symbolizers:
                self._add(new)
                self._symbolizers.append(self._symbolizer())
                taken = self._taken = _Ranges()
                taken.add(start, limit)
                new = []
            from_base = flags & lib.FP_MAPPING_FROM_BASE != 0
            new.append(Mapping(start, limit, offset, *self._texts_of(object_id), from_base))
            self._process_of.append(len(self._symbolizers) - 1)
            if len(new) == _AT_ONCE:
                self._add(new)
                new = []
        self._add(new)

    def _texts_of(self, object_id: int) -> tuple[str, str]:
        if object_id not in self._texts:
            words, at = self._model.c.objects.words, object_id * lib.FP_OBJECT_WIDTH
            name, build_id = words[at + lib.FP_OBJECT_NAME], words[at + lib.FP_OBJECT_BUILD_ID]
            self._texts[object_id] = self._text(name), self._text(build_id)
        return self._texts[object_id]

    def _text(self, string_id: int) -> str:
        return self._model.string(string_id).decode("utf-8", "surrogateescape") if string_id else ""

    def _add(self, mappings: list[Mapping]) -> None:
        if mappings:
            self._symbolizers[-1].add(mappings)

    def _symbolizer(self) -> Symbolizer:
        if self._finder is None:
            options = self._options
            self._finder = Finder(
                symbols=options[SYMBOLS],
                sysroot=options[SYSROOT],
                debug_dirs=options[DEBUG_DIRS],
                demangle=options[DEMANGLE],
                force=options[FORCE_SYMBOLS],
            )
        return Symbolizer((), self._finder)

    def log_to(self, log: Log) -> None:
        """Log the addresses without symbols by object and reason, and keep what was looked up for later runs."""
        save_new()
        for symbolizer in self._symbolizers:
            for path, reason, n in symbolizer.unresolved():
                self._failures[path, reason] += n
        for path, note in self._finder.notes() if self._finder else ():
            log.warn(REPORTED["object-notes"], path=path, note=note)
        for (path, reason), n in self._failures.most_common():
            log.warn(
                REPORTED["unresolved-addresses"],
                path=path or "no object",
                addresses=counted(n, "address", "addresses"),
                reason=reason,
            )
        could_help = any(path for path, _ in self._failures) or self._model.c.mappings.n == 1
        if self._failures and could_help and SYMBOLS not in self._options:
            log.warn(REPORTED["unnamed-addresses"])
