/* core/merge.h - merges sorted runs of records; records with the same key are summed.
 *
 * A table that outgrows its memory is written to disk as sorted runs.  This
 * reads them back, through one small window for each run.
 *
 * A record is `width` 64-bit words: FP_MERGE_KEY words of key, perhaps some that are kept as they are, then counters,
 * all of them signed or none.
 *
 *   run A: (1,5 | 10)  (2,1 | 3)      run B: (1,5 | 7)      gives  (1,5 | 17)  (2,1 | 3)
 *
 * A sum that does not fit its counter is an error, or becomes several records that add up to it, each as large as
 * possible.  Both depend on the whole sum alone, and not on which run holds which part of it.
 */
#ifndef FP_MERGE_H
#define FP_MERGE_H

#include "core/fp.h"

/* cffi-begin */

enum { FP_MERGE_KEY = 2, FP_MERGE_NONE = 0xffffffffu };

/* A window on one run, in words.  When less than a record is left the caller
 * refills it behind that, unless `eof`. */
struct fp_run {
    uint32_t width; /* words of its records: the counters that they lack are 0 */
    uint64_t *p;
    size_t n;
    size_t pos;
    int32_t eof;
};

/* The key of a run's next record, and what decides between equal ones: run + 1.  Runs play against each other as in a
 * tournament; only the winner's run has another record next, which plays against those that lost on the way up.  All 0:
 * nobody has played there yet, which wins. */
struct fp_merge_head {
    uint64_t key[FP_MERGE_KEY];
    uint64_t order;
};

struct fp_merge {
    uint32_t width;    /* words a record */
    uint32_t kept;     /* words behind the key that are not added up: those of the first run that has the key */
    int32_t is_signed; /* counters are int64_t */
    int32_t split;     /* sums that do not fit become several records; set by the caller */
    uint32_t hungry;   /* after FP_MORE: the run to refill */
    uint64_t *head;    /* after FP_FULL: the record */
    struct fp_run *runs;

    /* private from here on */
    uint32_t n_runs;
    struct fp_merge_head *tree; /* [0]: the least head; [i]: what lost against another from below 2 i or 2 i + 1 */
    uint32_t n_started;         /* runs that have played */
    uint64_t *sum;              /* the record to which more may be added */
    int64_t *beyond;            /* of each of its words: the sum is beyond[i] * 2^64 + sum[i] */
    int32_t has_sum, has_rest;
};

/* NULL when memory ran out.  All runs start empty and hungry.  Caller owns. */
struct fp_merge *fp_merge_new(uint32_t n_runs, uint32_t width, uint32_t kept, int is_signed);
void fp_merge_free(struct fp_merge *m);

/* The next record, into m->head.  FP_FULL: there is one.  FP_MORE: refill run
 * m->hungry (or set its eof) and call again.  FP_DONE: no more records.
 * FP_E_OVERFLOW: a sum does not fit; err->got is the number of its counter, the first is 0. */
int fp_merge_next(struct fp_merge *m, struct fp_err *err);

/* Fills `to` with records, up to `n` words; *got becomes their number.  Sums are split.  FP_FULL, FP_MORE, FP_DONE. */
int fp_merge_pull(struct fp_merge *m, uint64_t *to, size_t n, size_t *got);

/* cffi-end */

#endif
