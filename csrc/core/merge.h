/* core/merge.h - merges sorted runs of records; records with the same key are summed.
 *
 * A table that outgrows its memory is written to disk as sorted runs.  This
 * reads them back, through one small window for each run.
 *
 * A record is `width` 64-bit words: FP_MERGE_KEY words of key, then counters.
 *   run A: (1,5 | 10)  (2,1 | 3)      run B: (1,5 | 7)
 *   gives  (1,5 | 17)  (2,1 | 3)
 */
#ifndef FP_MERGE_H
#define FP_MERGE_H

#include "core/fp.h"

/* cffi-begin */

enum { FP_MERGE_KEY = 2, FP_MERGE_MAX_WIDTH = 8, FP_MERGE_NONE = 0xffffffffu };

/* A window on one run, in words.  When it is used up (pos == n) the caller
 * refills it, unless `eof`. */
struct fp_run {
    uint64_t *p;
    size_t n;
    size_t pos;
    int32_t eof;
};

struct fp_merge {
    uint32_t width;   /* words a record */
    uint32_t hungry;  /* after FP_MORE: the run to refill */
    uint64_t head[8]; /* after FP_FULL: the record */
    struct fp_run *runs;
    uint32_t n_runs;
    uint32_t *heap; /* runs by their next record */
    uint32_t n_heap;
    uint32_t n_started; /* runs that entered the heap or were empty */
    int32_t have_head;  /* `head` holds 0: nothing, 1: a record to which more may be added, 2: one that was returned */
};

/* NULL when memory ran out.  All runs start empty and hungry.  Caller owns. */
struct fp_merge *fp_merge_new(uint32_t n_runs, uint32_t width);
void fp_merge_free(struct fp_merge *m);

/* The next record, into m->head.  FP_FULL: there is one.  FP_MORE: refill run
 * m->hungry (or set its eof) and call again.  FP_DONE: no more records.
 * FP_E_OVERFLOW: a counter passed 2^64-1; err->got is its number, the first is 0. */
int fp_merge_next(struct fp_merge *m, struct fp_err *err);

/* cffi-end */

#endif
