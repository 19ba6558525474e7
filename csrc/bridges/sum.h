/* bridges/sum.h - stacks -> stacks: rows of the same stack, labels and thread summed.
 *
 * Exact; loses the times of single samples, which are counted.
 *
 *   main > f  {size: 8}  1        main > f  {size: 8}  4
 *   main > g             2   ->   main > g             2
 *   main > f  {size: 8}  3
 *
 * fp_sum_begin chooses what keeps rows apart: without labels the first is
 * `main > f 4`, with a label of its part `main > f {size: 8, part: 2} 4`.
 * Memory: linear in distinct (stack, labels, thread) since the last fp_sum_empty.
 */
#ifndef FP_SUM_H
#define FP_SUM_H

#include "core/batch.h"
#include "core/model.h"

/* cffi-begin */

/* What is kept of a row's label chain and thread, bits. */
enum fp_sum_keep { FP_SUM_LABELS = 1, FP_SUM_PROCESS = 2, FP_SUM_THREAD = 4, FP_SUM_ALL = 7 };

struct fp_sum {
    struct fp_model *model;
    /* set by fp_sum_begin */
    uint32_t keep;        /* enum fp_sum_keep */
    uint32_t suffix;      /* a label chain that comes after each row's own */
    uint32_t thread;      /* the thread of rows that have none */
    uint32_t had;         /* FP_SUM_PROCESS, FP_SUM_THREAD: rows had such ids */
    uint32_t taken;       /* after FP_E_OVERFLOW: rows of the batch that were taken */
    uint64_t timed;       /* samples whose time is lost */
    uint64_t unlabelled;  /* samples of which no label, or no thread, is kept */
    struct fp_table keys; /* (stack, labels, thread) */

    /* private from here on */
    int64_t *sums; /* of key i: sums[i * n_values ..] */
    uint32_t cap;  /* keys that `sums` has room for */
    uint32_t n_values;
    uint32_t next;              /* pulling */
    uint32_t *labels, *threads; /* by id of a row: what it becomes, + 1; 0 = not known yet */
    uint32_t cap_labels, cap_threads;
};

/* Borrows the model.  NULL when memory ran out.  Caller owns. */
struct fp_sum *fp_sum_new(struct fp_model *model);
void fp_sum_free(struct fp_sum *s);

/* From now on rows are kept apart by `keep`, and get the labels `suffix` and,
 * if they have none, the thread `thread`. */
void fp_sum_begin(struct fp_sum *s, uint32_t keep, uint32_t suffix, uint32_t thread);

/* Widens every sum to `n_values` (never narrows).  0 or FP_E_NOMEM. */
int fp_sum_set_values(struct fp_sum *s, uint32_t n_values);

/* Adds the rows of a stacks batch from row `from` on: their value k to sum
 * columns[k], where no two columns are the same.  FP_DONE, FP_E_NOMEM, or
 * FP_E_OVERFLOW: row s->taken does not fit into a sum, the rows before it are added. */
int fp_sum_put(struct fp_sum *s, const struct fp_batch *in, uint32_t from, const uint32_t *columns, struct fp_err *err);

/* Pulls the sums, in order of first appearance.  FP_FULL or FP_DONE. */
int fp_sum_pull(struct fp_sum *s, struct fp_batch *out);

/* Forgets the sums that were pulled, for others. */
void fp_sum_empty(struct fp_sum *s);

/* cffi-end */

#endif
