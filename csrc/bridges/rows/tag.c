#include "bridges/rows/tag.h"

struct fp_tag *fp_tag_new(struct fp_model *model, int by_thread) {
    struct fp_tag *t = fp_made(sizeof *t);
    t->model = model;
    t->by_thread = by_thread;
    t->n_added = 1; /* place 0 is none */
    return t;
}

void fp_tag_free(struct fp_tag *t) {
    FP_FREE(t->at, t->added, t->frames, t);
}

int fp_tag_key(struct fp_tag *t, uint32_t key, const uint32_t *frames, uint32_t n_roots, uint32_t n_leaves) {
    const uint64_t n = (uint64_t)n_roots + n_leaves;
    fp_array_zeroed(&t->at, &t->cap, (uint64_t)key + 1, sizeof *t->at);
    fp_array_room(&t->added, &t->cap_added, t->n_added + 2 + n, sizeof *t->added);
    uint32_t *added = t->added + t->n_added;
    added[0] = n_roots;
    added[1] = n_leaves;
    memcpy(added + 2, frames, n * sizeof *frames);
    t->at[key] = t->n_added;
    t->n_added += 2 + (uint32_t)n;
    return 0;
}

/* Puts the frames of `stack` into t->frames from place *n on.  FP_DONE or FP_E_MALFORMED. */
static int unfold(struct fp_tag *t, uint32_t stack, uint32_t *n, struct fp_err *err) {
    const struct fp_table *stacks = &t->model->stacks;
    if (stack >= stacks->n) return fp_unknown_id(err, "the stack of a sample", stack, stacks->n);
    while (stack) {
        const uint32_t *row = fp_table_row(stacks, stack);
        /* a stack is always added after its caller's */
        if (row[0] >= stack) return fp_unknown_id(err, "the caller of a stack", row[0], stack);
        fp_array_room(&t->frames, &t->cap_frames, (uint64_t)*n + 1, sizeof *t->frames);
        t->frames[(*n)++] = row[1];
        stack = row[0];
    }
    return FP_DONE;
}

static uint32_t push(struct fp_tag *t, uint32_t parent, const uint32_t *frames, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) parent = fp_model_stack(t->model, parent, frames[i]);
    return parent;
}

/* The stack with the frames that `added` lists. */
static uint32_t tagged(struct fp_tag *t, const uint32_t *added, uint32_t n_frames) {
    uint32_t stack = push(t, 0, added + 2, added[0]);
    for (uint32_t i = n_frames; i; i--) stack = fp_model_stack(t->model, stack, t->frames[i - 1]);
    return push(t, stack, added + 2 + added[0], added[1]);
}

int fp_tag_batch(struct fp_tag *t, struct fp_batch *b, struct fp_err *err) {
    const uint32_t *keys = t->by_thread ? b->thread : b->label;
    uint32_t last_stack = FP_NO_ID, last_key = FP_NO_ID, to = 0; /* samples often repeat the one before */
    for (uint32_t i = 0; i < b->n; i++) {
        const uint32_t key = keys[i], stack = b->stack[i];
        if (key >= t->cap || !t->at[key])
            return fp_unknown_id(err, t->by_thread ? "the thread of a sample" : "the labels of a sample", key, t->cap);
        if (stack != last_stack || key != last_key) {
            uint32_t n_frames = 0;
            FP_TRY(unfold(t, stack, &n_frames, err));
            to = tagged(t, t->added + t->at[key], n_frames);
            last_stack = stack;
            last_key = key;
        }
        b->stack[i] = to;
    }
    return FP_DONE;
}
