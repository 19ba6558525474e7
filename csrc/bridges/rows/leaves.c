#include "bridges/rows/leaves.h"

struct fp_leaves *fp_leaves_new(struct fp_model *model) {
    struct fp_leaves *l = fp_made(sizeof *l);
    l->model = model;
    return l;
}

void fp_leaves_free(struct fp_leaves *l) {
    FP_FREE(l->kept, l);
}

/* Finds what remains of new stacks.  A parent's id is less than its child's. */
static void learn(struct fp_leaves *l) {
    const struct fp_table *stacks = &l->model->stacks;
    if (l->n_emptied != l->model->n_emptied) {
        l->n_emptied = l->model->n_emptied;
        l->n_known = 0;
    }
    fp_array_room(&l->kept, &l->cap_kept, stacks->n, sizeof *l->kept);
    for (; l->n_known < stacks->n; l->n_known++) {
        const uint32_t node = l->n_known, *row = fp_table_row(stacks, node), frame = row[FP_STACK_FRAME];
        const int keeps = !node || frame >= l->keep.n || l->keep.keep[frame];
        l->kept[node] = keeps ? node : l->kept[row[FP_STACK_PARENT]];
    }
}

int fp_leaves_cut(struct fp_leaves *l, struct fp_batch *b) {
    learn(l);
    for (uint32_t i = 0; i < b->n; i++) {
        const uint32_t kept = l->kept[b->stack[i]];
        if (!kept || kept == b->stack[i]) continue;
        b->stack[i] = kept;
        l->n_cut++;
    }
    return 0;
}
