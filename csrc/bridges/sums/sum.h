/* bridges/sums/sum.h - stacks -> stacks: sums rows of the same stack, labels and thread.
 *
 * Exact, except that the times of single samples are lost (`timed`).
 *
 *   main > f  {size: 8}  1        main > f  {size: 8}  4
 *   main > g             2   ->   main > g             2
 *   main > f  {size: 8}  3
 *
 * fp_sum_begin sets what distinguishes rows: without labels the first is
 * `main > f 4`, with a label of its part `main > f {size: 8, part: 2} 4`.
 * Sums are written in the order in which they were first seen, or by the content of stacks, labels and threads
 * (stack_order.h), which does not depend on the order of several inputs.
 *
 * Memory: linear in distinct (stack, labels, thread) since the last fp_sum_empty.  When there are too many, the caller
 * spills them as runs sorted by key.  At the end these are merged, and another fp_sum takes the merged sums and, when
 * there are too many, spills them in output order:
 *
 *   put g 1, f 2   run: f 2 (2nd), g 1 (1st)      put h 4, g 3   run: g 3 (4th), h 4 (3rd)
 *   merged: f 2 (2nd), g 4 (1st), h 4 (3rd)       in order: g 4, f 2, h 4
 */
#ifndef FP_SUM_H
#define FP_SUM_H

#include "core/batch.h"
#include "core/merge.h"
#include "core/model.h"

/* cffi-begin */

/* Which parts of a row's label chain and thread to keep, bits.  Without FP_SUM_INPUTS threads of all inputs become
 * those of input 0. */
enum fp_sum_keep { FP_SUM_LABELS = 1, FP_SUM_PROCESS = 2, FP_SUM_THREAD = 4, FP_SUM_ALL = 7, FP_SUM_INPUTS = 8 };

/* The order of records. */
enum fp_sum_order {
    FP_SUM_BY_KEY = 0,  /* to merge runs */
    FP_SUM_AS_SEEN = 1, /* for output */
    FP_SUM_BY_NAME = 2
};

struct fp_sum {
    struct fp_model *model;
    /* set by fp_sum_begin */
    uint32_t keep;        /* enum fp_sum_keep */
    uint32_t suffix;      /* a label chain that comes after each row's own */
    uint32_t thread;      /* the thread of rows that have none */
    uint32_t had;         /* FP_SUM_PROCESS, FP_SUM_THREAD: rows had such ids */
    uint32_t taken;       /* after FP_E_OVERFLOW: rows of the batch that were taken */
    uint64_t timed;       /* samples whose time is lost */
    uint64_t unlabelled;  /* samples that lose all their labels or their thread */
    struct fp_table keys; /* (stack, labels, thread) */
    uint32_t n_values;

    /* private from here on */
    int64_t *sums;     /* of key i: sums[i * n_values ..]; core/memory.h */
    uint32_t cap;      /* keys that `sums` has room for */
    uint64_t n_before; /* keys dropped so far; added to the numbers of new keys */
    uint64_t *seen;    /* by key: its number, */
    int32_t was_taken; /* whether the present keys came from fp_sum_take */
    uint32_t cap_seen;
    uint32_t by;        /* enum fp_sum_order */
    uint32_t *ranks[3]; /* by name: of stacks, labels, threads */
    uint32_t *order;    /* keys in the order in which they are pulled */
    uint32_t n_order, next;
    uint32_t *labels, *threads; /* by id of a row: its replacement + 1; 0 = not known yet */
    uint32_t cap_labels, cap_threads;
};

/* Borrows the model.  NULL when memory ran out.  Caller owns. */
struct fp_sum *fp_sum_new(struct fp_model *model);
void fp_sum_free(struct fp_sum *s);

/* From now on rows are distinguished by `keep`, get the labels `suffix` and, if they have no thread, the thread
 * `thread`. */
void fp_sum_begin(struct fp_sum *s, uint32_t keep, uint32_t suffix, uint32_t thread);

/* Widens every sum to `n_values` (never narrows).  0 or FP_E_NOMEM. */
int fp_sum_set_values(struct fp_sum *s, uint32_t n_values);

/* Adds the rows of a stacks batch from row `from` on: their value k to sum columns[k], where no two columns are the
 * same.  FP_DONE, FP_E_NOMEM, or FP_E_OVERFLOW: row s->taken does not fit into a sum, the rows before it are added. */
int fp_sum_put(struct fp_sum *s, const struct fp_batch *in, uint32_t from, const uint32_t *columns, struct fp_err *err);

/* Sorts the sums and restarts the pull below.  By name, the model must have all stacks, labels and threads.  0 or
 * FP_E_NOMEM. */
int fp_sum_order(struct fp_sum *s, uint32_t by);

/* Words of a record before its values: two of key; by key: its number, 0; otherwise: stack << 32 | labels, thread. */
enum { FP_SUM_KEPT = 2, FP_SUM_HEAD = 4 };

/* Fills `to` with records (core/merge.h), up to `n` words.  The number of words, 0 at the end. */
size_t fp_sum_pull(struct fp_sum *s, uint64_t *to, size_t n);

/* Takes merged records, sorted by key, until it has `n_keys`.  FP_FULL: more records follow.  FP_DONE.  FP_MORE: refill
 * the merge.  FP_E_NOMEM, or FP_E_OVERFLOW if the merge does not split sums. */
int fp_sum_take(struct fp_sum *s, struct fp_merge *merge, uint32_t n_keys, struct fp_err *err);

/* Drops the sums, to begin again. */
void fp_sum_empty(struct fp_sum *s);

/* Pulls rows made of merged records that are not by key: value k is sum columns[k].  FP_FULL, FP_DONE, FP_MORE: refill
 * the merge.  FP_E_OVERFLOW if the merge does not split sums. */
int fp_sum_rows(struct fp_merge *merge, const uint32_t *columns, struct fp_batch *out, struct fp_err *err);

/* The same for sums that are all in memory, in the order in which they were first seen, without records.  First called
 * after fp_sum_put.  FP_FULL or FP_DONE. */
int fp_sum_rows_as_seen(struct fp_sum *s, const uint32_t *columns, struct fp_batch *out);

/* cffi-end */

#endif
