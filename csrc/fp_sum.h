/* fp_sum.h - stacks -> stacks: rows of the same stack, labels and thread summed.
 *
 * Floor 3.  Exact; loses the times of single samples, which are counted.
 * Memory: linear in distinct (stack, labels, thread).
 */
#ifndef FP_SUM_H
#define FP_SUM_H

#include "fp_batch.h"
#include "fp_model.h"

/* cffi-begin */

struct fp_sum {
    struct fp_table keys; /* (stack, labels, thread) */
    int64_t *sums;        /* of key i: sums[i * n_values ..] */
    uint32_t cap;         /* keys that `sums` has room for */
    uint32_t n_values;
    uint32_t next;  /* pulling */
    uint64_t timed; /* samples whose time is lost */
};

/* NULL when memory ran out.  Caller owns. */
struct fp_sum *fp_sum_new(void);
void fp_sum_free(struct fp_sum *s);

/* Widens every sum to `n_values` (never narrows).  0 or FP_E_NOMEM. */
int fp_sum_set_values(struct fp_sum *s, uint32_t n_values);

/* Takes the rows of a stacks batch; its value k is added to sum columns[k].
 * FP_DONE, FP_E_NOMEM, FP_E_OVERFLOW. */
int fp_sum_put(struct fp_sum *s, const struct fp_batch *in, const uint32_t *columns, struct fp_err *err);

/* Pulls the sums, in order of first appearance.  FP_FULL or FP_DONE. */
int fp_sum_pull(struct fp_sum *s, struct fp_batch *out);

/* cffi-end */

#endif
