/* core/remap.h - the ids of rows replaced: by those of another model, or of other entries of the same one.
 *
 *     from  strings: b.c a.c main f   rows: main a.c:1, f b.c:3      to  strings: a.c main b.c f
 *
 * The entries that rows lead to are entered in the order in which the rows need them, each once.  The ids of a model
 * say in which order its inputs came, and it has entries that no row needs.  Rows in an order that does not say so
 * (bridges/sums/rank.h, stack_order.h) give a model that does not either.
 *
 * Memory: 4 bytes for each entry of `from`.
 */
#ifndef FP_REMAP_H
#define FP_REMAP_H

#include "core/batch.h"
#include "core/model.h"

/* cffi-begin */

struct fp_remap;

/* Borrows both models, which may be one.  NULL when memory ran out. */
struct fp_remap *fp_remap_new(const struct fp_model *from, struct fp_model *to);
void fp_remap_free(struct fp_remap *r);

/* Sets the ids of a batch to those in `to`.  When the stacks of `from` were removed, those of `to` are.  FP_DONE,
 * FP_E_NOMEM, FP_E_MALFORMED (an id that `from` does not have), or what a hook returned: after FP_ASK it is called
 * again with the same batch.  In one model labels and threads stay. */
int fp_remap_batch(struct fp_remap *r, struct fp_batch *b, struct fp_err *err);

/* cffi-end */

enum fp_remap_role { FP_REMAP_TEXT, FP_REMAP_NAME, FP_REMAP_FILE }; /* of a function */

/* What becomes of entries in one model.  NULL: they stay. */
struct fp_remap_hooks {
    void *who; /* the first argument of each */
    /* Replaces a string.  0, FP_ASK or an error; then *id is as it was. */
    int (*string)(void *who, enum fp_remap_role role, uint32_t *id, struct fp_err *err);
    /* A function that became another.  A new name has neither a system name nor a first line.  0 or FP_E_NOMEM. */
    int (*function)(void *who, uint32_t from, uint32_t to);
    /* Which frames replace one in a stack, n of them, outermost first.  NULL: none does. */
    const uint32_t *(*frames)(void *who, uint32_t frame, uint32_t *n);
};

/* The same in one model. */
struct fp_remap *fp_remap_new_hooked(struct fp_model *m, struct fp_remap_hooks hooks);

#endif
