/* bridges/sums/renumber.h - rows of one model become rows of another, whose entries are numbered as the rows need them.
 *
 *     from  strings: b.c a.c main f   rows: main a.c:1, f b.c:3      to  strings: a.c main b.c f
 *
 * The ids of a model say in which order its inputs came, and it has entries that no row needs.  Rows in an order that
 * does not say so (rank.h, stack_order.h) give a model that does not either.
 *
 * Memory: 4 bytes for each entry of `from`.
 */
#ifndef FP_RENUMBER_H
#define FP_RENUMBER_H

#include "core/batch.h"
#include "core/model.h"

/* cffi-begin */

enum fp_renumbered {
    FP_RENUMBERED_STRINGS,
    FP_RENUMBERED_OBJECTS,
    FP_RENUMBERED_MAPPINGS,
    FP_RENUMBERED_FUNCTIONS,
    FP_RENUMBERED_LINES,
    FP_RENUMBERED_FRAMES,
    FP_RENUMBERED_STACKS,
    FP_RENUMBERED_LABELS,
    FP_RENUMBERED_THREADS,
    FP_RENUMBERED_INPUTS, /* of threads */
    FP_RENUMBERED_TABLES
};

struct fp_renumber {
    const struct fp_model *from;
    struct fp_model *to;
    /* private from here on */
    uint32_t *ids[FP_RENUMBERED_TABLES]; /* by id in `from`: the id in `to`, 0 = not known yet; of inputs + 1 */
    uint32_t cap[FP_RENUMBERED_TABLES];
    uint32_t *path[2]; /* of a tree, from a node upwards: of stacks; of what their frames have */
    uint32_t cap_path[2];
    uint32_t n_emptied; /* of `from`, as far as is known */
};

/* Borrows both models.  NULL when memory ran out. */
struct fp_renumber *fp_renumber_new(const struct fp_model *from, struct fp_model *to);
void fp_renumber_free(struct fp_renumber *r);

/* Sets the ids of a batch to those in `to`.  When the stacks of `from` were removed, those of `to` are.  FP_DONE,
 * FP_E_NOMEM, FP_E_MALFORMED (an id that `from` does not have). */
int fp_renumber_batch(struct fp_renumber *r, struct fp_batch *b, struct fp_err *err);

/* cffi-end */

#endif
