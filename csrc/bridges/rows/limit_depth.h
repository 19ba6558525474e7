/* bridges/rows/limit_depth.h - limits the depth of stacks, for formats that repeat every frame of a stack in each row.
 *
 * 40,000 nested calls make 40,000 stacks with 800 million frames in total.  Stacks deeper than the limit keep their
 * outermost frames; the rest becomes one frame:
 *
 *   main > f > f > f > g  3
 *   main > f > f > f      2   ->   main > f > f > [deeper]  5      with a limit of 3
 *   main > f              1        main > f                 1
 *
 * Inclusive costs stay exact down to the limit; below it the cost per function is lost.  Adjacent rows that become
 * equal are summed.
 *
 * Memory: 8 bytes for each of the model's stacks.
 */
#pragma once

#include "core/core.h"

struct fp_limit_depth {
    struct fp_model *model;
    uint32_t limit;   /* frames, 1 or more */
    int32_t named;    /* whether a frame replaces those below the limit: */
    uint32_t deeper;  /* that frame; 0 until fp_limit_depth_put asks for it */
    uint64_t n_cut;   /* rows whose stack was deeper */
    uint32_t deepest; /* frames of the deepest stack so far */
    /* private from here on */
    uint32_t *depth, *kept; /* by stack: its frames, and the stack that replaces it */
    uint32_t cap_depth, cap_kept;
    uint32_t n_known, n_emptied;
};

/* Borrows the model.  Caller owns. */
struct fp_limit_depth *fp_limit_depth_new(struct fp_model *model, uint64_t limit);
void fp_limit_depth_free(struct fp_limit_depth *s);

/* Replaces the stacks of a batch, in place; the batch may end up with fewer rows.  FP_DONE or FP_NEEDS: set `deeper`
 * and call again with the same batch. */
int fp_limit_depth_put(struct fp_limit_depth *s, struct fp_batch *b);
