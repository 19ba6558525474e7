#include "bridges/rows/last_call.h"

/* What is known of a call. */
struct fp_last_call_made {
    uint64_t row;            /* the last one that has it */
    uint32_t caller, callee; /* frames */
};

/* A place: its number, and the function and line of the model. */
struct go_place {
    uint32_t id, frame, name, line, first_line;
};

struct fp_last_call *fp_last_call_new(struct fp_model *model) {
    struct fp_last_call *l = fp_made(sizeof *l);
    l->model = model;
    fp_table_init(&l->places, 5);
    fp_table_init(&l->pairs, 2);
    return l;
}

void fp_last_call_free(struct fp_last_call *l) {
    FP_CLEAR_TABLES(&l->places, &l->pairs);
    FP_FREE(l->made, l->calls, l->known, l);
}

static uint32_t frame_of(struct fp_model *m, const struct go_place *p, uint32_t line, uint32_t moved) {
    if (!p->name) return p->frame;
    const uint32_t function = fp_model_function(m, 0, 0, p->name, 0, p->first_line - moved);
    return fp_model_frame(m, 0, 0, 0, fp_model_line(m, function, line, 0, 0));
}

/* Lines count from the function's first one, which becomes 1: equal calls of other builds become equal, and small
 * numbers take less space.  Lines before it stay as they are. */
static uint32_t make_caller(struct fp_last_call *l, const struct go_place *caller) {
    const uint32_t before = caller->first_line - (caller->first_line > 0);
    const uint32_t moved = caller->line > before ? before : 0;
    const uint32_t frame = frame_of(l->model, caller, caller->line - moved, moved);
    uint32_t *known = FP_AT(l->known, l->cap_known, caller->name);
    if (!*known) *known = frame;
    return frame;
}

/* The callee's line does not matter, so it is any place of that function that is there, but not the caller's: a place
 * that calls itself would not count. */
static uint32_t make_callee(struct fp_last_call *l, const struct go_place *callee, const struct go_place *caller,
                            uint32_t caller_frame) {
    uint32_t *known = FP_AT(l->known, l->cap_known, callee->name);
    if (callee->name && *known && *known != caller_frame) return *known;
    const int is_alike = caller->name == callee->name && !caller->line;
    const uint32_t before = callee->first_line - (callee->first_line > 0);
    const uint32_t frame = frame_of(l->model, callee, (uint32_t)is_alike, before);
    if (!*known) *known = frame;
    return frame;
}

/* A call of this row, unless it is in it already. */
static void add_call(struct fp_last_call *l, const struct go_place *caller, const struct go_place *callee) {
    if (caller->id == callee->id) return;
    const uint32_t pair = fp_table_intern(&l->pairs, (uint32_t[]){caller->id, callee->id});
    struct fp_last_call_made *made = FP_AT(l->made, l->cap_made, pair);
    if (made->row == l->n_rows) return;
    if (!made->row) made->caller = make_caller(l, caller);
    if (l->is_ready && !made->callee) made->callee = make_callee(l, callee, caller, made->caller);
    made->row = l->n_rows;
    FP_PUSH(l->calls, l->n_calls, l->cap_calls) = pair;
}

static struct go_place place_of(struct fp_last_call *l, uint32_t frame, const uint32_t *line) {
    const struct fp_model *m = l->model;
    const uint64_t address = fp_frame_code(fp_table_row(&m->frames, frame));
    struct go_place p = {.frame = frame};
    if (line) {
        const uint32_t *function = fp_table_row(&m->functions, line[FP_LINE_FUNCTION]);
        p.name = function[FP_FUNCTION_NAME];
        p.line = line[FP_LINE_LINE];
        p.first_line = function[FP_FUNCTION_LINE];
    }
    const uint32_t row[] = {p.name, p.line, p.first_line, (uint32_t)address, (uint32_t)(address >> 32)};
    p.id = fp_table_intern(&l->places, row);
    return p;
}

/* The calls within a frame, innermost first.  Returns its outermost place; *inner gets the innermost one. */
static struct go_place add_frame(struct fp_last_call *l, uint32_t frame, struct go_place *inner) {
    const struct fp_model *m = l->model;
    struct go_place outer = {0};
    for (uint32_t line = fp_table_row(&m->frames, frame)[FP_FRAME_LINES]; line;) {
        const uint32_t *row = fp_table_row(&m->lines, line);
        line = row[FP_LINE_OUTER];
        if (!row[FP_LINE_FUNCTION]) continue; /* is not written */
        const struct go_place place = place_of(l, frame, row);
        if (outer.id)
            add_call(l, &place, &outer);
        else
            *inner = place;
        outer = place;
    }
    if (!outer.id) *inner = outer = place_of(l, frame, NULL);
    return outer;
}

static int begin_row(struct fp_last_call *l, const struct fp_batch *in, struct fp_err *err) {
    const struct fp_model *m = l->model;
    const uint32_t stack = in->stack[l->row];
    if (stack >= m->stacks.n) return fp_unknown_id(err, "a stack", stack, m->stacks.n);
    l->n_rows++;
    l->n_calls = 0;
    uint32_t above = 0;
    if (stack) {
        const uint32_t *node = fp_table_row(&m->stacks, stack);
        const uint32_t parent = node[FP_STACK_PARENT];
        struct go_place callee, caller, ignored;
        callee = add_frame(l, node[FP_STACK_FRAME], &ignored);
        if (parent) {
            node = fp_table_row(&m->stacks, parent);
            above = node[FP_STACK_PARENT];
            add_frame(l, node[FP_STACK_FRAME], &caller);
            add_call(l, &caller, &callee);
        }
    }
    if (l->is_ready && (above || in->label[l->row] || !l->n_calls)) l->cut += fp_batch_samples(in, l->row);
    return FP_DONE;
}

int fp_last_call_batch(struct fp_last_call *l, const struct fp_batch *in, struct fp_batch *out, struct fp_err *err) {
    struct fp_model *m = l->model;
    out->part = in->part;
    out->is_summed = in->is_summed;
    if (!l->is_ready) { /* callers first: callees share their places */
        for (l->row = 0; l->row < in->n; l->row++) FP_TRY(begin_row(l, in, err));
        l->row = 0;
        l->is_ready = 1;
    }
    for (; l->row < in->n; l->row++) {
        if (!l->call) FP_TRY(begin_row(l, in, err));
        for (; l->call < l->n_calls; l->call++) {
            if (out->n == out->cap) return FP_FULL;
            const struct fp_last_call_made *made = &l->made[l->calls[l->call]];
            const uint32_t stack = fp_model_stack(m, fp_model_stack(m, 0, made->caller), made->callee);
            const uint32_t row = fp_batch_sample(out, stack, in->thread[l->row], 0, 0);
            if (in->is_summed) out->count[row] = in->count[l->row];
            for (uint32_t k = 0; k < in->n_values; k++)
                out->values[k * (size_t)out->cap + row] = in->values[k * (size_t)in->cap + l->row];
        }
        l->call = 0;
    }
    l->row = 0;
    l->is_ready = 0;
    return FP_DONE;
}
