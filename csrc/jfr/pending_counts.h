/* jfr/pending_counts.h - counts samples by stack and context, while there are few of both and all samples have the same
 * value.
 *
 * Stacks get numbers as they occur, so that the counts are dense:
 *
 *   stack 4711, context 5 of up to 72      number 3: cell 3 * 72 + 5 = 221
 *
 * A cell has 16 bits; one that would overflow begins again at 1, and is noted in `full`.
 */
#pragma once

#include "core/fp.h"

/* Samples with the same key: stack << 32 | number of the context. */
struct fp_jfr_pending_sum {
    uint64_t key, count;
    int64_t value;
};

struct fp_jfr_pending_counts {
    uint32_t *number_of; /* by stack; 0: none */
    uint32_t *stack_of;  /* by number, from 1 on */
    uint32_t cap_number_of, cap_stack_of, n;
    uint16_t *counts; /* FP_JFR_GRID_CELLS of them, by number * width + context; NULL: none yet */
    uint32_t width;
    uint32_t n_sums; /* counts that are not 0 */
    uint32_t *full;  /* cells, once for each 2^16 - 1 samples that their count lacks */
    uint32_t n_full, cap_full;
    int32_t is_sorted; /* `full` is */
    uint64_t n_samples;
    int64_t value;           /* of each sample */
    uint32_t stack, context; /* of the next sum */
};

enum { FP_JFR_GRID_CELLS = 1 << 22 };

/* The number of a stack; 0: there are no more. */
uint32_t fp_jfr_pending_counts_number(struct fp_jfr_pending_counts *g, uint32_t stack);
/* Counts n samples of this value, by number << 32 | context.  1, or 0: the grid does not take them. */
int fp_jfr_pending_counts_add(struct fp_jfr_pending_counts *g, const uint64_t *keys, uint32_t n, uint32_t n_contexts,
                              int64_t value);
/* The next sum, by key.  1, or 0: there are no more.  Increment `context` to pass over it. */
int fp_jfr_pending_counts_sum(struct fp_jfr_pending_counts *g, struct fp_jfr_pending_sum *sum);
/* Forgets all samples, but not the numbers. */
void fp_jfr_empty_pending_counts(struct fp_jfr_pending_counts *g);
void fp_jfr_free_pending_counts(struct fp_jfr_pending_counts *g);
