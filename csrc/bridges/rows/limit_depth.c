#include "bridges/rows/limit_depth.h"

struct fp_limit_depth *fp_limit_depth_new(struct fp_model *model, uint64_t limit) {
    struct fp_limit_depth *s = fp_made(sizeof *s);
    s->model = model;
    s->limit = limit < UINT32_MAX ? (uint32_t)limit : UINT32_MAX - 1; /* there are never more stacks */
    return s;
}

void fp_limit_depth_free(struct fp_limit_depth *s) {
    FP_FREE(s->depth, s->kept, s);
}

/* Reads the frames of new stacks.  A parent's id is less than its child's.  FP_DONE or FP_NEEDS. */
static int read_frames(struct fp_limit_depth *s) {
    struct fp_table *stacks = &s->model->stacks;
    if (s->n_emptied != s->model->n_emptied) {
        s->n_emptied = s->model->n_emptied;
        s->n_known = 0;
    }
    for (uint32_t node = s->n_known; node < stacks->n; node++) { /* fp_model_stack may add one at the end */
        fp_array_room(&s->depth, &s->cap_depth, (uint64_t)node + 1, sizeof *s->depth);
        fp_array_room(&s->kept, &s->cap_kept, (uint64_t)node + 1, sizeof *s->kept);
        const uint32_t *row = fp_table_row(stacks, node);
        const uint32_t parent = row[FP_STACK_PARENT], depth = node ? s->depth[parent] + 1 : 0;
        const int is_end = s->deeper && row[FP_STACK_FRAME] == s->deeper && depth == s->limit + 1;
        s->depth[node] = depth;
        s->kept[node] = node;
        if (depth <= s->limit || is_end) continue;
        if (s->named && !s->deeper) {
            s->n_known = node;
            return FP_NEEDS;
        }
        if (depth > s->deepest) s->deepest = depth;
        s->kept[node] = s->kept[parent];
        if (depth == s->limit + 1 && s->named) s->kept[node] = fp_model_stack(s->model, parent, s->deeper);
    }
    s->n_known = stacks->n;
    return FP_DONE;
}

/* Adds the values of row `from` to row `to`, unless a sum passes 2^63 - 1. */
static int added(struct fp_batch *b, uint32_t to, uint32_t from) {
    for (uint32_t k = 0; k < b->n_values; k++) {
        int64_t *column = b->values + (size_t)k * b->cap;
        int64_t sum;
        if (!__builtin_add_overflow(column[to], column[from], &sum)) {
            column[to] = sum;
            continue;
        }
        while (k--) b->values[(size_t)k * b->cap + to] -= b->values[(size_t)k * b->cap + from];
        return 0;
    }
    return 1;
}

static void move(struct fp_batch *b, uint32_t to, uint32_t from) {
    b->stack[to] = b->stack[from];
    b->label[to] = b->label[from];
    b->thread[to] = b->thread[from];
    b->time[to] = b->time[from];
    b->count[to] = b->count[from];
    for (uint32_t k = 0; k < b->n_values; k++)
        b->values[(size_t)k * b->cap + to] = b->values[(size_t)k * b->cap + from];
}

int fp_limit_depth_put(struct fp_limit_depth *s, struct fp_batch *b) {
    const int status = read_frames(s);
    if (status != FP_DONE || FP_LIKELY(!s->deepest)) return status;
    uint32_t n = 0;
    for (uint32_t i = 0; i < b->n; i++) {
        const uint32_t kept = s->kept[b->stack[i]];
        const int is_cut = kept != b->stack[i];
        s->n_cut += is_cut ? fp_batch_samples(b, i) : 0;
        b->stack[i] = kept;
        if (is_cut && n && !b->is_summed && b->stack[n - 1] == kept && b->label[n - 1] == b->label[i] &&
            b->thread[n - 1] == b->thread[i] && !b->time[n - 1] && !b->time[i] && added(b, n - 1, i))
            continue;
        if (n != i) move(b, n, i);
        n++;
    }
    b->n = n;
    return FP_DONE;
}
