/* core/remap.h - replaces the ids of rows by those of another model, or of other entries of the same one.
 *
 *     from  strings: b.c a.c main f   rows: main a.c:1, f b.c:3      to  strings: a.c main b.c f
 *
 * Entries are added to `to` when a row first needs them, so its ids follow the order of the rows, and it has no unused
 * entries.  Purpose: the ids of `from` depend on the order of its inputs.  If the order of the rows does not
 * (bridges/sums/name_order.h, stack_order.h), neither does `to`.
 *
 * Memory: 4 bytes for each entry of `from`.
 */
#pragma once

#include "core/batch.h"
#include "core/model.h"

struct fp_remap;

/* Borrows both models, which may be the same. */
struct fp_remap *fp_remap_new(const struct fp_model *from, struct fp_model *to);
void fp_remap_free(struct fp_remap *r);

/* Sets the ids of a batch to those in `to`; within one model labels and threads stay.  If the stacks of `from` were
 * removed since, removes those of `to`.  FP_DONE, FP_E_MALFORMED (an id that `from` does not have), or the
 * result of a hook: after FP_NEEDS call again with the same batch. */
int fp_remap_batch(struct fp_remap *r, struct fp_batch *b, struct fp_err *err);

/* cffi-end */

/* What a string names: FILE is that of a function, ROW_FILE that of a graph's row. */
enum fp_remap_role { FP_REMAP_TEXT, FP_REMAP_NAME, FP_REMAP_FILE, FP_REMAP_ROW_FILE, FP_REMAP_OBJECT };

/* Callbacks that replace entries within one model.  NULL: such entries stay. */
struct fp_remap_hooks {
    void *arg; /* the first argument of each */
    /* Replaces a string.  0, FP_NEEDS or an error, which leave *id unchanged. */
    int (*string)(void *arg, enum fp_remap_role role, uint32_t *id, struct fp_err *err);
    /* Replaces a function as a whole: 1, and no other hook is called for it.  0: it stays. */
    int (*replace)(void *arg, uint32_t *id);
    /* Called when a function was replaced by another.  A renamed function loses its system name and first line. */
    void (*function)(void *arg, uint32_t from, uint32_t to);
    /* The *n frames that replace a frame of a stack, outermost first.  NULL: it stays. */
    const uint32_t *(*frames)(void *arg, uint32_t frame, uint32_t *n);
};

/* fp_remap_new within one model. */
struct fp_remap *fp_remap_new_hooked(struct fp_model *m, struct fp_remap_hooks hooks);
