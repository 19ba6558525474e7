/* bridges/rows/tag.h - labels of samples, or their threads, become frames of their stacks.
 *
 *     main > f  {host: a, size: 8 bytes}        root: host  leaf: size        a > main > f > 8 bytes  {host: a, ...}
 *
 * The caller decides which frames a key, a set of labels or a thread, adds.
 */
#pragma once

#include "core/core.h"

struct fp_tag {
    struct fp_model *model;
    /* private from here on */
    uint32_t *at;     /* by key: where its frames are in `added`, 0 = it has none yet */
    uint32_t *added;  /* number of roots, number of leaves, the roots from the outermost one on, the leaves likewise */
    uint32_t *frames; /* of the stack at hand, leaf first */
    uint32_t cap, n_added, cap_added, cap_frames;
    int by_thread;
};

/* Keys are threads, or label chains.  Borrows the model. */
struct fp_tag *fp_tag_new(struct fp_model *model, int by_thread);
void fp_tag_free(struct fp_tag *t);

/* The frames that samples with this key get: n_roots around the stack, then n_leaves at its end.  Call before the first
 * batch that has the key. */
int fp_tag_key(struct fp_tag *t, uint32_t key, const uint32_t *frames, uint32_t n_roots, uint32_t n_leaves);

/* Replaces the stacks of a batch, in place.  FP_DONE, FP_E_MALFORMED (an id that the model does not have, or a key
 * without its frames). */
int fp_tag_batch(struct fp_tag *t, struct fp_batch *b, struct fp_err *err);
