/* bridges/sums/scale.h - multiplies the values of an input: the weights of a merge.
 *
 *     up 3, down 2      samples 1 1 1  (total 3)     1 2 1  (total 4: the floor of 3 * 3/2)
 *
 * Rounding: the floor of a running sum.  What a row loses is carried to the next one with self values, in each column,
 * so that totals are exact.  Inclusive values and numbers of calls and jumps are rounded alone, halves up.
 */
#pragma once

#include "core/core.h"

struct fp_scale {
    int64_t up, down;        /* the factor of all values; both are positive */
    const int64_t *by_label; /* stacks: a second factor, by label chain; NULL: none */
    uint32_t n_by_label;
    /* private from here on */
    int64_t *rest; /* by column: less than `down` */
    uint32_t n_rest;
};

struct fp_scale *fp_scale_new(int64_t up, int64_t down);
void fp_scale_free(struct fp_scale *s);

/* Multiplies the values of a batch of stacks or of a graph, in place.  FP_DONE; FP_E_OVERFLOW for a value or a number
 * of calls beyond 2^63 - 1; FP_E_MALFORMED for a label without a factor. */
int fp_scale_batch(struct fp_scale *s, struct fp_batch *b, struct fp_err *err);
