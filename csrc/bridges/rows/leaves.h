/* bridges/rows/leaves.h - leaves out frames at the leaf of stacks.
 *
 *   main > f > operator new > malloc  3        with both dropped:    main > f  3
 *   malloc > init                     1                              malloc > init  1
 *
 * A stack of nothing but dropped frames stays as it is.
 *
 * Memory: 4 bytes for each of the model's stacks.
 */
#pragma once

#include "core/core.h"

struct fp_leaves {
    struct fp_model *model;
    struct fp_mask keep; /* by frame; set it before each batch */
    uint64_t n_cut;      /* rows whose stack was changed */
    /* private from here on */
    uint32_t *kept; /* by stack: the stack without its dropped leaves */
    uint32_t cap_kept;
    uint32_t n_known, n_emptied;
};

/* Borrows the model.  Caller owns. */
struct fp_leaves *fp_leaves_new(struct fp_model *model);
void fp_leaves_free(struct fp_leaves *l);

/* Replaces the stacks of a batch, in place. */
int fp_leaves_cut(struct fp_leaves *l, struct fp_batch *b);
