#include "bridges/rows/last_call.h"

struct fp_last_call *fp_last_call_new(struct fp_model *model) {
    struct fp_last_call *l = fp_made(sizeof *l);
    l->model = model;
    return l;
}

void fp_last_call_free(struct fp_last_call *l) {
    FP_FREE(l->callers, l->callees, l);
}

static uint32_t lines_of(const struct fp_model *m, uint32_t frame) {
    return fp_table_row(&m->frames, frame)[FP_FRAME_LINES];
}

/* Whether both chains have a function on the same line. */
static int have_common(const struct fp_model *m, uint32_t one, uint32_t other) {
    for (; one; one = fp_table_row(&m->lines, one)[FP_LINE_OUTER]) {
        const uint32_t *a = fp_table_row(&m->lines, one);
        for (uint32_t k = other; k; k = fp_table_row(&m->lines, k)[FP_LINE_OUTER]) {
            const uint32_t *b = fp_table_row(&m->lines, k);
            if (a[FP_LINE_FUNCTION] == b[FP_LINE_FUNCTION] && a[FP_LINE_LINE] == b[FP_LINE_LINE]) return 1;
        }
    }
    return 0;
}

/* The frame without its address; with `innermost` on the first line of its innermost function. */
static uint32_t plain(struct fp_last_call *l, uint32_t frame, int innermost) {
    struct fp_model *m = l->model;
    uint32_t lines = lines_of(m, frame);
    if (!lines) return frame;
    if (innermost) {
        const uint32_t *line = fp_table_row(&m->lines, lines);
        const uint32_t function = line[FP_LINE_FUNCTION], outer = line[FP_LINE_OUTER], number = line[FP_LINE_LINE];
        const uint32_t first = fp_table_row(&m->functions, function)[FP_FUNCTION_LINE];
        const uint32_t before = fp_model_line(m, function, number, 0, 0);
        const uint32_t after = fp_model_line(m, function, first, 0, 0);
        if (!have_common(m, before, outer) && !have_common(m, after, outer))
            lines = fp_model_line(m, function, first, 0, outer);
    }
    return fp_model_frame(m, 0, 0, 0, lines);
}

static uint32_t replaced(struct fp_last_call *l, uint32_t frame, int innermost) {
    uint32_t **known = innermost ? &l->callees : &l->callers;
    fp_array_zeroed(known, innermost ? &l->cap_callees : &l->cap_callers, (uint64_t)frame + 1, sizeof **known);
    if (!(*known)[frame]) (*known)[frame] = plain(l, frame, innermost);
    return (*known)[frame];
}

int fp_last_call_batch(struct fp_last_call *l, struct fp_batch *b, struct fp_err *err) {
    struct fp_model *m = l->model;
    for (uint32_t i = 0; i < b->n; i++) {
        const uint32_t stack = b->stack[i];
        if (stack >= m->stacks.n) return fp_unknown_id(err, "a stack", stack, m->stacks.n);
        if (!stack) continue;
        const uint32_t *node = fp_table_row(&m->stacks, stack);
        const uint32_t inner = node[FP_STACK_FRAME], parent = node[FP_STACK_PARENT];
        const uint32_t callee = replaced(l, inner, 1);
        if (!parent) {
            b->stack[i] = fp_model_stack(m, 0, callee);
            continue;
        }
        node = fp_table_row(&m->stacks, parent);
        const uint32_t outer = node[FP_STACK_FRAME];
        l->cut += node[FP_STACK_PARENT] != 0;
        const uint32_t caller = replaced(l, outer, 0);
        const int is_alike = have_common(m, lines_of(m, outer), lines_of(m, inner)) ||
                             have_common(m, lines_of(m, caller), lines_of(m, callee));
        b->stack[i] = fp_model_stack(m, fp_model_stack(m, 0, is_alike ? outer : caller), is_alike ? inner : callee);
    }
    return FP_DONE;
}
