/* gperftools/read.h - reads gperftools CPU profiles of 32 and 64 bit words in either byte order.
 *
 * A profile consists of words of the profiled program's pointer size, and ends in text:
 *
 *   header   0, n >= 3 further words: version (0; 1 = Java), period in us, 0, ...
 *   records  count, depth, that many program counters: the leaf's, then return addresses
 *   trailer  0, 1, 0
 *   text     the mapped objects, as in /proc/PID/maps
 *
 *   00 00 00 00  03 00 00 00  00 00 00 00  10 27 00 00  00 00 00 00   header, period 10000 us
 *   02 00 00 00  01 00 00 00  34 12 00 00                             2 ticks at 0x1234
 *   00 00 00 00  01 00 00 00  00 00 00 00                             trailer
 *
 * The program counters of a record are called a chain here.  The profiler writes a chain whenever it evicts it from its
 * table, so many records have the same chain; their counts are summed.  The mapped objects come last, so rows are
 * returned after the last byte.
 *
 * A process that forks while it is profiled passes its unwritten samples to its child.  When the child exits, it writes
 * them into the file, and the parent writes the same samples again:
 *
 *   header records trailer text   header more records trailer text
 *
 * Each header begins a run.  Runs share samples, so they are not summed: the count of a chain is its maximum over all
 * runs.  If part of the profile was written before the fork, the words after the text begin without a header, and the
 * duplicates cannot be identified: they are summed, and `forks_in_pieces` counts such forks.
 *
 * Memory: 11 to 22 bytes for each distinct chain while records are read; the caller takes the rest out of memory
 * (core/key_sums.h).
 * Source: gperftools doc/cpuprofile-fileformat.html, src/profiledata.cc.
 */
#pragma once

#include "gperftools/state.h"

enum {
    /* The profiler keeps 254 frames of a stack and drops those at the root.  If the unwinder returned the leaf twice,
     * it drops one of the two and 253 are left. */
    FP_GPERF_CUT_DEPTH = 253,
    FP_GPERF_MAX_DEPTH = 65536
};

struct fp_gperftools_stats {
    uint64_t records;
    uint64_t ticks;     /* samples */
    uint64_t chains;    /* distinct */
    uint64_t cut_ticks; /* ticks whose stacks were cut at the profiler's limit */
    /* Removed; each distinct chain counts once. */
    uint64_t FP_COUNT(signal_frames, "signal-frames", repairs, "signal frame(s) removed");
    uint64_t FP_COUNT(duplicate_leaves, "duplicated-leaves", repairs, "duplicated (leaf|leaves) removed");
    uint64_t unmapped; /* distinct addresses in no mapped object */
    uint64_t FP_COUNT(forks, "forked-profiles", repairs, "profile of a forked process in the same file",
                      "profiles of forked processes in the same file");
    uint64_t forks_in_pieces; /* times without a header */
    /* lenient: losses */
    uint64_t FP_COUNT(bad_records, "damaged-records");
    uint64_t FP_COUNT(lost_bytes, "skipped-bytes");
};

struct fp_gperftools_reader {
    struct fp_model *model;
    int32_t lenient;
    int32_t keep_signal_frames;
    int32_t exact_callers; /* callers are addresses of calls, not return addresses */
    /* the header */
    int32_t word; /* bytes a word: 4 or 8 */
    int32_t swap; /* the byte order differs from the machine's */
    int32_t java;
    int32_t trailer;    /* 1: the trailer was seen */
    uint64_t period_us; /* microseconds a tick; the caller may change it before the rows */
    size_t line_n;      /* after FP_NEEDS: bytes of the current line of text, 0 at the end */
    struct fp_gperftools_stats stats;

    /* The program counters of distinct chains, each the difference to the one before, a varint; and the ticks (u64) in
     * the last run that has it. */
    struct fp_key_sums known;

    /* private from here on */
    struct fp_gperftools_feed_state feed;
    struct fp_gperftools_chains chains;
    struct fp_gperftools_addresses addresses;
    struct fp_gperftools_rows_state rows;
};

/* Borrows the model; caller owns the reader. */
struct fp_gperftools_reader *fp_gperftools_reader_new(struct fp_model *model, int lenient);
void fp_gperftools_reader_free(struct fp_gperftools_reader *g);

/* Bytes a word if a header begins here (*swap gets its byte order), otherwise 0.  Profiles that do not count ticks have
 * period 0. */
int fp_gperftools_header(const uint8_t *p, size_t n, int *swap);

/* Whether a profile begins with these first bytes of a file. */
int fp_gperftools_sniff(const uint8_t *p, size_t n);

/* Reads header and records.  FP_MORE, or an error, or FP_NEEDS: the caller reads the current line of text, line_n
 * bytes, and calls again.  line_n 0 is the end of the file: now add the mapped objects and names, then pull the rows.
 */
int fp_gperftools_feed(struct fp_gperftools_reader *g, struct fp_window *in, struct fp_err *err);

/* Assigns [start, limit) to `mapping` of the model.  If ranges overlap, the first one wins. */
int fp_gperftools_map(struct fp_gperftools_reader *g, uint64_t start, uint64_t limit, uint32_t mapping);

/* Assigns a line chain of the model to an address as in the file. */
int fp_gperftools_name(struct fp_gperftools_reader *g, uint64_t address, uint32_t lines);

/* Pulls the rows, one for each distinct stack, with the values (ticks, nanoseconds), or only ticks if the period is 0.
 * FP_FULL, FP_DONE or FP_E_OVERFLOW. */
int fp_gperftools_rows(struct fp_gperftools_reader *g, struct fp_batch *out, struct fp_err *err);
