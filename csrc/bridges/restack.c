#include "bridges/restack.h"

#include <stdlib.h>

#include "bridges/common.h"
#include "core/array.h"

struct fp_restack *fp_restack_new(struct fp_model *model) {
    struct fp_restack *r = calloc(1, sizeof *r);
    if (r) r->model = model;
    return r;
}

void fp_restack_free(struct fp_restack *r) {
    if (!r) return;
    free(r->frame_to);
    free(r->stack_to);
    free(r->path);
    free(r);
}

int fp_restack_frame(struct fp_restack *r, uint32_t frame, uint32_t to) {
    if (fp_array_zeroed(&r->frame_to, &r->cap_frames, (uint64_t)frame + 1, sizeof *r->frame_to)) return FP_E_NOMEM;
    r->frame_to[frame] = to;
    return 0;
}

static int no_memory(struct fp_err *err) {
    return fp_fail(err, FP_E_NOMEM, 0, "the stacks with symbols");
}

int fp_restack_batch(struct fp_restack *r, struct fp_batch *b, struct fp_err *err) {
    struct fp_model *m = r->model;
    const uint32_t n_stacks = m->stacks.n;
    if (fp_array_zeroed(&r->stack_to, &r->cap_stacks, n_stacks, sizeof *r->stack_to)) return no_memory(err);
    for (uint32_t i = 0; i < b->n; i++) {
        uint32_t stack = b->stack[i], n = 0;
        if (stack >= n_stacks) return fp_unknown_id(err, "the stack of a sample", stack, n_stacks);
        for (; stack && !r->stack_to[stack]; n++) {
            if (fp_array_room(&r->path, &r->cap_path, (uint64_t)n + 1, sizeof *r->path)) return no_memory(err);
            r->path[n] = stack;
            uint32_t parent = fp_table_row(&m->stacks, stack)[FP_STACK_PARENT];
            if (parent >= stack) /* a stack can only have been entered after its parent */
                return fp_unknown_id(err, "the parent of a stack", parent, stack);
            stack = parent;
        }
        uint32_t to = stack ? r->stack_to[stack] : 0;
        while (n-- > 0) {
            uint32_t frame = fp_table_row(&m->stacks, r->path[n])[FP_STACK_FRAME];
            if (frame < r->cap_frames && r->frame_to[frame]) frame = r->frame_to[frame];
            to = fp_model_stack(m, to, frame);
            if (to == FP_NO_ID) return no_memory(err);
            r->stack_to[r->path[n]] = to;
        }
        b->stack[i] = to;
    }
    return FP_DONE;
}
