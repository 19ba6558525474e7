/* gperftools/gperf.h - gperftools CPU profiles: 32 and 64 bit words, either byte order.
 *
 * Floor 2.  A file is a run of words of the profiled program's pointer size:
 *
 *   header   0, n >= 3 further words: version (0; 1 = Java), period in us, 0, ...
 *   records  count, depth, depth program counters (leaf first, then return addresses)
 *   trailer  0, 1, 0
 *   text     the mapped objects, as /proc/PID/maps has them
 *
 *   00 00 00 00  03 00 00 00  00 00 00 00  10 27 00 00  00 00 00 00   header, period 10000 us
 *   02 00 00 00  01 00 00 00  34 12 00 00                             2 ticks at 0x1234
 *   00 00 00 00  01 00 00 00  00 00 00 00                             trailer
 *
 * A forked process that exits writes what the profiler had kept until then, into
 * the file of the process it came from, and that process writes it once more:
 *
 *   header records trailer text   header more records trailer text
 *
 * Of such runs a chain counts as often as the one says that has most of it.
 * Where a part was in the file before the fork, no second header follows the
 * text, and nothing says which records are there twice: they are summed.
 *
 * The same chain comes in many records, because the profiler's hash table
 * evicts; equal chains of a run are summed.  The maps follow the records, so rows come
 * after the last byte.  Memory: linear in the distinct chains.
 * Source: gperftools doc/cpuprofile-fileformat.html, src/profiledata.cc.
 */
#ifndef FP_GPERF_H
#define FP_GPERF_H

#include "core/batch.h"
#include "core/buf.h"
#include "core/model.h"

/* cffi-begin */

enum {
    /* Frames the profiler keeps of a stack; deeper ones lose their roots.  253
     * when it dropped the leaf that the unwinder gave a second time. */
    FP_GPERF_CUT_DEPTH = 253,
    FP_GPERF_MAX_DEPTH = 65536
};

struct fp_gperf_stats {
    uint64_t records;
    uint64_t ticks;
    uint64_t chains;           /* distinct */
    uint64_t cut_ticks;        /* ticks whose stacks were cut at the profiler's limit */
    uint64_t signal_frames;    /* removed, summed over distinct chains */
    uint64_t duplicate_leaves; /* likewise */
    uint64_t unmapped;         /* distinct addresses in no mapped object */
    uint64_t forks;            /* words again after the text */
    uint64_t forks_in_pieces;  /* of these, without a header */
    /* lenient: losses */
    uint64_t bad_records;
    uint64_t lost_bytes;
};

struct fp_gperf {
    struct fp_model *model;
    int32_t lenient;
    int32_t keep_signal_frames;
    int32_t exact_callers; /* callers are addresses of calls, not return addresses */
    /* the header */
    int32_t word; /* bytes a word: 4 or 8 */
    int32_t swap; /* byte order differs from the machine's */
    int32_t java;
    int32_t trailer;    /* 1: the trailer was seen */
    uint64_t period_us; /* microseconds a tick; may be overridden before the rows */
    size_t line_n;      /* after FP_ASK: bytes of the line of text at hand, 0 at the end */
    struct fp_gperf_stats stats;

    /* private from here on */
    int32_t state;
    int32_t has_empty; /* a record without stack was seen */
    uint32_t header_words;
    uint32_t run;             /* headers after the first */
    uint64_t skip;            /* header bytes still to pass over */
    struct fp_strings chains; /* the program counters as they stand in the file */
    uint64_t *ticks;          /* by chain */
    uint32_t cap_ticks;
    uint64_t *before; /* by chain: the most that a run before its last one had */
    uint32_t *run_of; /* by chain: its last run */
    uint32_t cap_before;
    struct fp_gperf_range *ranges;
    uint32_t n_ranges, cap_ranges;
    struct fp_gperf_name *names;
    uint32_t n_names, cap_names;
    struct fp_table pcs; /* (address low, high, is leaf) */
    uint32_t *pc_frames; /* by pcs id: frame */
    uint32_t cap_pc_frames;
    uint32_t *chain_stacks; /* by chain: stack */
    uint32_t n_rules;
    uint64_t rules[4];    /* addresses of signal frames to remove; 0: a duplicated leaf */
    uint64_t *pc;         /* one chain, decoded */
    struct fp_buf frames; /* u32, of some chains */
    uint32_t next;        /* chain of the next row */
};

/* NULL when memory ran out.  Borrows the model; caller owns the decoder. */
struct fp_gperf *fp_gperf_new(struct fp_model *model, int lenient);
void fp_gperf_free(struct fp_gperf *g);

/* Word size if the bytes begin like a profile (*swap gets its byte order), else 0. */
int fp_gperf_sniff(const uint8_t *p, size_t n, int *swap);

/* Takes header and records.  FP_MORE; FP_ASK for each line of the text, which the
 * caller takes (g->line_n bytes), and at the end of the file: then fp_gperf_rows. */
int fp_gperf_feed(struct fp_gperf *g, struct fp_in *in, struct fp_err *err);

/* [start, limit) belongs to `mapping` of the model.  Of overlapping ranges the
 * first one given wins.  0 or FP_E_NOMEM. */
int fp_gperf_map(struct fp_gperf *g, uint64_t start, uint64_t limit, uint32_t mapping);

/* The address, as it stands in the file, has this line chain.  0 or FP_E_NOMEM. */
int fp_gperf_name(struct fp_gperf *g, uint64_t address, uint32_t lines);

/* Pulls the rows, values (ticks, nanoseconds), one a distinct stack.  FP_FULL
 * or FP_DONE, FP_E_NOMEM, FP_E_OVERFLOW. */
int fp_gperf_rows(struct fp_gperf *g, struct fp_batch *out, struct fp_err *err);

/* Writing: a profile of 64-bit little-endian words. */
struct fp_gperf_writer {
    struct fp_model *model;
    uint64_t period_ns;
    uint64_t unit_ns; /* nanoseconds that 1 stands for in a value; 0: values are ticks */
    /* what the format cannot say */
    uint64_t no_address; /* frames without an address */
    uint64_t no_stack;   /* rows none of whose frames has one */
    uint64_t negative;   /* rows of negative value */
    uint64_t labels;     /* rows with labels, threads or times */
    uint64_t rounded;    /* rows whose value is no multiple of the period */
    uint64_t rows;
};

/* Appends records for the rows, from value column `column`.  FP_DONE, FP_E_NOMEM or
 * FP_E_OVERFLOW. */
int fp_gperf_put(struct fp_gperf_writer *w, const struct fp_batch *in, uint32_t column, struct fp_buf *out,
                 struct fp_err *err);

/* cffi-end */

#endif
