/* bridges/sums/lines_merge.h - merges profiles of self costs whose lines are sorted.
 *
 * Each input lends its rows by function (in the order of struct fp_name_order: file, then name) and ascending line,
 * each place once, as Cachegrind writes them; fp_aggregate_in_order checks that.  So sums are complete as soon as all
 * inputs have passed their place:
 *
 *   a.c f   3  10 2         a.c f   3   5 0         a.c f   3  15 2
 *   a.c f   7   1 0         b.c g   1   4 4    ->   a.c f   7   1 0
 *                                                   b.c g   1   4 4
 *
 * Memory: a word for each input.  No rows are kept.
 */
#pragma once

#include "core/core.h"

struct fp_lines_merge;

/* A merge of `n` inputs, all of which need rows.  Borrows the model, to which all inputs add.  NULL when memory ran
 * out. Caller owns. */
struct fp_lines_merge *fp_lines_merge_new(const struct fp_model *model, uint32_t n);
void fp_lines_merge_free(struct fp_lines_merge *m);

/* Lends the next rows of input i, at least one, until it needs rows again; NULL: it has ended. */
void fp_lines_merge_put(struct fp_lines_merge *m, uint32_t i, const struct fp_batch *rows);

/* Appends the next sums to a graph batch that has as many value columns as the inputs.  FP_FULL: drain it and call
 * again.  FP_MORE: *needs is the input that needs rows.  FP_DONE.  FP_E_OVERFLOW: a sum passes 2^63 - 1. */
int fp_lines_merge_pull(struct fp_lines_merge *m, struct fp_batch *out, uint32_t *needs);
