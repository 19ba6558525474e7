/* bridges/aggregate.h - sums graph rows of the same place.
 *
 * Rows of the same kind, function, file, position and target become
 * one row whose counts and values are the sums:
 *
 *     main  a.c:10  cost  5 2           main  a.c:10  cost  8 2
 *     main  a.c:10  call  f 1x  40  ->  main  a.c:10  call  f 3x  90
 *     f     a.c:3   cost  40            f     a.c:3   cost  90
 *     main  a.c:10  call  f 2x  50
 *     f     a.c:3   cost  50
 *     main  a.c:10  cost  3
 *
 * Out come functions in the order in which they were first seen (or in an
 * order that is given), and within each its rows in the order in which they
 * were first seen.
 *
 * Memory: a distinct cost row takes 32 bytes, any other 88; each value takes 8
 * more, and the index up to 12.
 */
#ifndef FP_AGGREGATE_H
#define FP_AGGREGATE_H

#include "core/batch.h"
#include "core/model.h"

/* cffi-begin */

enum fp_aggregate_mode {
    FP_AGGREGATE_GRAPH = 0, /* everything a row says */
    /* Self costs by file, function name and line.  Objects, addresses and basic
     * blocks are dropped.  Rows of other kinds are dropped and counted. */
    FP_AGGREGATE_LINES = 1
};

struct fp_aggregate;

/* NULL when memory ran out.  Borrows the model; FP_AGGREGATE_LINES adds to its
 * functions. */
struct fp_aggregate *fp_aggregate_new(struct fp_model *model, uint32_t mode);
void fp_aggregate_free(struct fp_aggregate *a);

/* Adds the rows of a graph batch; its value k goes to column columns[k].
 * 0, FP_E_NOMEM, or FP_E_OVERFLOW when a sum does not fit; err->line is then the source line. */
int fp_aggregate_put(struct fp_aggregate *a, const struct fp_batch *in, const uint32_t *columns, struct fp_err *err);

/* Number of rows that the mode dropped (calls and jumps). */
uint64_t fp_aggregate_dropped(const struct fp_aggregate *a);

/* Ends the adding.  `rank` (NULL: as first seen) gives for each of the model's
 * functions its place; rows of FP_AGGREGATE_LINES are sorted by line within
 * it.  0 or FP_E_NOMEM. */
int fp_aggregate_finish(struct fp_aggregate *a, const uint32_t *rank);

/* Fills a batch of `n_values` columns, which must be as many as were put.
 * FP_FULL: drain and call again; FP_DONE: that was all; FP_E_NOMEM. */
int fp_aggregate_pull(struct fp_aggregate *a, struct fp_batch *out);

/* cffi-end */

#endif
