"""What the log says of a recording once it is read."""

from fastprof.core._c import lib
from fastprof.core._typing import fp_perf_reader
from fastprof.core.log import Log
from fastprof.core.reported import counts_of
from fastprof.formats.perf.events import Events
from fastprof.formats.perf.reported import REPORTED
from fastprof.formats.perf.tables import ENDS

# Fields of samples that are dropped, by the bits of sample_type.
_EXTRAS = {
    "data-addresses": 1 << 3 | 1 << 19,
    "raw-data": 1 << 10,
    "sample-branches": 1 << 11,
    "sample-registers": 1 << 12 | 1 << 18,
    "sample-weights": 1 << 14 | 1 << 15 | 1 << 17 | 1 << 24,
    "sample-traces": 1 << 20,
}


def log_totals(log: Log, r: fp_perf_reader, events: Events, file: str, *, own_kernel: bool, by_branches: bool) -> None:
    """Add counts, warnings and facts.  `file`: its name, for warnings.  `own_kernel`: names of this
    machine's kernel were used.  `by_branches`: rows are branches, not samples."""
    n_samples = [int(lib.fp_perf_samples(r, event.number)) for event in events]
    counts = r.counts
    log.count_all(
        REPORTED,
        counts_of(counts)
        | {
            "late-records": r.rounds.n_late,
            "side-records": sum(counts.skipped[k] for k in range(lib.FP_PERF_TYPES)),
            "unended-waits": counts.without_return + lib.fp_perf_waiting(r),
        }
        | _dropped(events, n_samples, int(counts.without_fields))
        | ({"sample-branches": 0} if by_branches else {}),
    )
    if counts.branches:
        log.facts["branches"], log.facts["mispredicted_branches"] = int(counts.branches), int(counts.mispredicted)
    if counts.lost or counts.lost_samples:
        log.warn(REPORTED["lost-records"], file=file, lost=int(counts.lost + counts.lost_samples))
    if own_kernel:
        log.warn(REPORTED["own-kernel"], file=file)
    if counts.without_return:
        switches, missed = int(counts.switches), int(counts.without_return)
        log.warn(REPORTED["missed-returns"], file=file, missed=missed, switches=switches)
    facts = log.facts
    facts["events"] = by_name = dict.fromkeys([event.name for event in events], 0)
    for event, n in zip(events, n_samples, strict=True):
        by_name[event.name] += n
    ends = {words: int(counts.unwound[end]) for end, words in ENDS.items() if counts.unwound[end]}
    if ends:
        facts["unwound_stacks"] = ends
    early = ", ".join(f"{n:,} end {words}" for words, n in ends.items() if words != ENDS[lib.FP_UNWIND_COMPLETE])
    if early:
        log.warn(REPORTED["stacks-that-end-early"], file=file, ends=early)
    facts["lost_records"], facts["lost_samples"] = int(counts.lost), int(counts.lost_samples)


def _dropped(events: Events, n_samples: list[int], without_fields: int) -> dict[str, int]:
    """Samples with fields that are dropped, by code.  Those of described tracepoints become labels, except
    `without_fields` of them."""
    found = dict.fromkeys(_EXTRAS, 0) | {"raw-data": without_fields, "tracepoint-fields": 0}
    for event, n in zip(events, n_samples, strict=True):
        for code, bits in _EXTRAS.items():
            if event.attr.sample_type & bits and not (code == "raw-data" and event.tracepoint):
                found[code] += n
        if event.tracepoint:
            found["tracepoint-fields"] += n * event.tracepoint.n_dropped
    return found
