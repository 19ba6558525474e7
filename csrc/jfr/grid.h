/* jfr/grid.h - counts samples by stack and context, while there are few of both and all samples have the same value.
 *
 * Stacks get numbers as they occur, so that the counts are dense:
 *
 *   stack 4711, context 5      number 3 << 7 | 5: counts[389]
 */
#ifndef FP_JFR_GRID_H
#define FP_JFR_GRID_H

#include "core/fp.h"

/* Samples with the same key: stack << 32 | number of the context. */
struct fp_jfr_held_sum {
    uint64_t key, count;
    int64_t value;
};

struct fp_jfr_grid {
    uint32_t *counts;    /* FP_JFR_GRID of them; NULL: none yet */
    uint32_t *number_of; /* by stack: its number + 1; 0: none */
    uint32_t cap, n;     /* of number_of; numbers */
    uint32_t low;        /* bits of a context */
    uint32_t n_sums;     /* counts that are not 0 */
    uint64_t n_samples;
    int64_t value;           /* of each sample */
    uint32_t stack, context; /* of the next sum */
};

enum { FP_JFR_GRID = 1 << 22 };

/* Counts n samples of this value.  `bits`: those that are set in some key; `packed`: room for 2 n numbers.  1, or 0:
 * the grid does not take them, and has not changed. */
int fp_jfr_grid_add(struct fp_jfr_grid *t, const uint64_t *keys, uint32_t n, uint64_t bits, int64_t value,
                    uint32_t *packed);
/* The next sum, by key.  1, or 0: there are no more.  Increment `context` to pass over it. */
int fp_jfr_grid_sum(struct fp_jfr_grid *t, struct fp_jfr_held_sum *sum);
/* Forgets all samples. */
void fp_jfr_empty_grid(struct fp_jfr_grid *t);

#endif
