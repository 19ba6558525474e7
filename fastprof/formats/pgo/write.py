"""Writes profiles for compilers."""

from collections import Counter
from collections.abc import Iterator

from fastprof.core._c import ffi, lib
from fastprof.core.branches import NAMES
from fastprof.core.branches import most as most_branches
from fastprof.core.c_memory import enough, owned, rows_of
from fastprof.core.engine import Writer
from fastprof.core.errors import FastprofError, inputs_of
from fastprof.core.log import percent
from fastprof.core.messages import Message, counted
from fastprof.core.model import Batch, ValueType
from fastprof.formats.pgo import ENCODING, GCOV_LAYOUT, NEST, rank
from fastprof.formats.pgo.binary import binary, extbinary
from fastprof.formats.pgo.gcov import gcov
from fastprof.formats.pgo.join import Join
from fastprof.formats.pgo.levels import Profile
from fastprof.formats.pgo.nest import BY_HAND, SMALL, is_flat, nest
from fastprof.formats.pgo.reported import REPORTED
from fastprof.formats.pgo.text import text

_MISSED = 0.05  # above this share of the counts, an object that is not found is named
_WRONG = 0.05  # some processors record a branch twice
_LOW = 0.7  # optimized code has no lines for up to a quarter of its instructions
_FEW = 5_000  # samples: Lua gains half of what exact counts give with as many, and no more with 60 times as many
_ENCODERS = {"text": text, "binary": binary, "extbinary": extbinary}


class CountsWriter(Writer):
    """Adds up counts by address, or branches."""

    view = "graph"
    counts_jumps = False  # whether branches outside of the programs are counted, next to runs

    def start(self) -> None:
        self.counts = owned(lib.fp_counts_new(self.model.c), "counts of instructions")
        self.is_graph, self.value = True, ValueType("")
        self.most_branches = most_branches(self.options)
        self.n_dropped = 0  # branches and runs
        self.not_found: Counter[str] = Counter()  # their ends, by the reason why there is no file

    def put(self, batch: Batch) -> None:
        self.is_graph = batch.view == "graph"
        types = self.model.parts[batch.part].value_types
        self.counts.is_branches = not self.is_graph and tuple(t.name for t in types) == NAMES
        self.value = types[0] if types else ValueType("")
        self.check(lib.fp_counts_put(self.counts, batch.c, self.err))
        self.log.rows["rows_written"] += len(batch)
        if self.counts.branches.n > self.most_branches:
            self._drop_branches()

    def _drop_branches(self) -> None:
        """Drop the branches outside of the programs, so that the size of these bounds memory."""
        counts, n = self.counts, self.counts.branches.n
        join = Join(self.model, self.options, self.is_graph)
        places = bytearray(self.model.count("frames"))  # 1: in a program, 2: outside
        kept: list[tuple[list[int], int, int]] = []
        for row, key in rows_of(counts.branches):
            for frame in key[:2]:
                places[frame] = places[frame] or 2 - (join.spot_of_frame(frame) is not None)
            if 1 in (places[key[0]], places[key[1]]):
                kept.append(([*key], counts.taken[row], counts.mispredicted[row]))
            else:
                self.n_dropped += key[2] or self.counts_jumps
        self.not_found += join.not_found
        table, width = ffi.addressof(counts.branches), counts.branches.width
        lib.fp_table_clear(table)
        enough(lib.fp_table_init(table, width))
        for sums in (counts.taken, counts.mispredicted):
            ffi.memmove(sums, bytes(8 * n), 8 * n)
        for words, taken, mispredicted in kept:
            at = lib.fp_table_intern(table, words)
            if at == lib.FP_NO_ID:
                raise MemoryError
            counts.taken[at], counts.mispredicted[at] = taken, mispredicted
        self.most_branches = max(self.most_branches, 2 * counts.branches.n)

    def join(self) -> Join:
        join = Join(self.model, self.options, self.is_graph)
        join.n_elsewhere += self.n_dropped
        join.not_found += self.not_found
        return join

    def log_losses(self, join: Join) -> None:
        c = self.counts
        self.log.count_all(
            REPORTED,
            {
                "calls-elsewhere": join.n_jumps,
                "instructions-elsewhere": join.n_elsewhere,
                "jumps": c.jumps,
                "lines-elsewhere": join.n_lines_elsewhere,
                "negative-counts": c.negative,
                "rows-without-address": c.without_address + (0 if join.n_lines else c.line_rows),
                "unplaced-instructions": join.n_unplaced,
                "unplaced-lines": join.n_unplaced_lines,
                "unsymbolized-instructions": join.n_unknown,
                "wrong-runs": join.n_wrong_runs,
            },
        )


class PgoWriter(CountsWriter):
    """Joins counts with lines at the end."""

    whole = False  # whether lines that were not executed are written
    advice = Message(
        "profiles for compilers need instruction addresses (Callgrind with --dump-instr=yes, perf, pprof), or lines "
        "of Callgrind or Cachegrind, and the program with its debug information ({--symbols})"
    )

    def end(self) -> None:
        join = self.join()
        join.add(self.counts, by_line=self.value.name == "Ir")  # instructions executed
        if self.whole and not self.counts.is_branches:
            join.add_unseen()
        flat = is_flat(join)
        if self.is_graph and not flat:
            self.log.warn(REPORTED["optimized-program"])
        if self.is_graph and (most := self.nested_bytes(flat and join.inlined <= BY_HAND * join.total)):
            nest(join, most)
        profile = join.profile()
        profile.limit()
        if join.total > self.counts.cost_without * join.scale and not profile.functions:
            none = "no counted address is in a function with lines; build the program with debug information"
            raise FastprofError(f"{inputs_of(self.model)}{none}")
        self._report(join, len(profile.functions))
        for piece in self.encoded(profile):
            self.text(piece)
        self.written = len(profile.functions)

    def nested_bytes(self, nests: bool) -> int:
        """The most bytes of code of callees that are nested in their callers' levels; 0: none are."""
        return SMALL if nests else 0

    def encoded(self, profile: Profile) -> Iterator[bytes]:
        raise NotImplementedError

    def _report(self, join: Join, functions: int) -> None:
        log = self.log
        log.facts["functions"] = functions
        log.facts["coverage"] = round(join.placed, 4)
        log.facts["coverage_of_functions"] = round(join.known, 4)
        found = join.builds()
        for sentence in found.stale:
            log.warn(REPORTED["stale-program"], sentence=sentence)
        for sentence in found.mixed:
            log.warn(REPORTED["mixed-builds"], sentence=sentence)
        if join.fits.wrong > _WRONG:
            log.warn(REPORTED["other-build"], share=percent(join.fits.wrong))
        self.log_losses(join)
        if join.n_lines:
            log.warn(REPORTED["counts-by-line"])
        if join.placed < _LOW:
            log.warn(REPORTED["low-coverage"], placed=percent(join.placed))
        samples = join.total // join.scale
        counted_ = samples + join.not_found.total()
        for reason, count in join.not_found.most_common():
            if reason and count > _MISSED * counted_:
                log.warn(REPORTED["programs-not-found"], reason=reason, share=percent(count / counted_))
        is_samples = not self.is_graph and not self.counts.is_branches and rank(self.value) == 0
        if is_samples and samples < _FEW:
            log.warn(REPORTED["few-samples"], samples=counted(samples, "sample"))


class LlvmWriter(PgoWriter):
    format = "llvm-profile"

    def nested_bytes(self, nests: bool) -> int:
        most: int | None = self.options[NEST]
        return super().nested_bytes(nests) if most is None else most

    def encoded(self, profile: Profile) -> Iterator[bytes]:
        return _ENCODERS[self.options[ENCODING]](profile)


class GcovWriter(PgoWriter):
    format = "gcov-profile"
    whole = True

    def encoded(self, profile: Profile) -> Iterator[bytes]:
        return gcov(profile, self.options[GCOV_LAYOUT], sampled=not self.is_graph)
