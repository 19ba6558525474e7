/* core/merge.h - merges sorted runs of records and sums up records with the same key.
 *
 *   run A: (1,5 | 10)  (2,1 | 3)      run B: (1,5 | 7)      gives  (1,5 | 17)  (2,1 | 3)
 *
 * A table that outgrows its memory is written to disk as sorted runs.  The merge reads them back through one small
 * window per run, which the caller refills.
 *
 * A record is `width` 64-bit words: FP_MERGE_KEY words of key, then unsigned counters.
 *
 * A sum that does not fit its counter is an error or, with `split`, becomes several records that add up to it, each as
 * large as possible.  Either depends only on the sum, not on how it is spread over the runs.
 */
#pragma once

#include "core/fp.h"

/* cffi-begin */

enum { FP_MERGE_KEY = 2, FP_MERGE_NONE = 0xffffffffu };

/* A window on one run, in words.  When less than a record is left, the caller appends to it or sets `eof`. */
struct fp_run {
    uint32_t width; /* words of its records, at most those of the merge; missing counters are 0 */
    uint64_t *p;
    size_t n;
    size_t pos;
    int32_t eof;
};

/* The key of a run's next record and, to break ties, run + 1.  Heads form a tournament tree of losers: only the
 * winner's run moves to its next record, which plays against the losers on its way up.  All 0: not played yet, which
 * wins. */
struct fp_merge_head {
    uint64_t key[FP_MERGE_KEY];
    uint64_t order;
};

struct fp_merge {
    uint32_t width;     /* words a record */
    int32_t split;      /* sums that do not fit become several records; set by the caller */
    uint32_t to_refill; /* after FP_MORE: the run to refill */
    uint64_t *head;     /* after FP_FULL: the record */
    struct fp_run *runs;

    /* private from here on */
    uint32_t n_runs;
    struct fp_merge_head *tree; /* [0]: the least head; [i]: the loser between the subtrees 2 i and 2 i + 1 */
    uint32_t n_started;         /* runs that have played */
    uint64_t *sum;              /* the record to which more may be added */
    uint64_t *beyond;           /* overflow of each of its words: the sum is beyond[i] * 2^64 + sum[i] */
    int32_t has_sum, has_rest;
};

/* NULL when memory ran out.  All runs start empty, to be refilled first.  Caller owns. */
struct fp_merge *fp_merge_new(uint32_t n_runs, uint32_t width);
void fp_merge_free(struct fp_merge *m);

/* Sets m->head to the next record and returns FP_FULL.  FP_MORE: refill run m->to_refill (or set its eof) and call
 * again.  FP_DONE: no more records.  FP_E_OVERFLOW: a sum does not fit; err->got is the number of its counter, from 0.
 */
int fp_merge_next(struct fp_merge *m, struct fp_err *err);

/* Fills `to` with records, up to `n` words; *got becomes their number.  Sums are split.  FP_FULL, FP_MORE, FP_DONE. */
int fp_merge_pull(struct fp_merge *m, uint64_t *to, size_t n, size_t *got);
