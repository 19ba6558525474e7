#include "bridges/budget/fit_stacks.h"

#include <math.h>

#include "bridges/budget/bins.h"

/* Upper bounds.  PACKED: a packed row without its values; NUMBER: one value. */
enum { PACKED = 64, NUMBER = 10 };

/* A share of 1.  Ranks distinguish smaller shares from 0 up to this. */
static const double WHOLE = (double)((uint64_t)1 << 48);

struct fp_fit_stacks_stack {
    double share;  /* of its rows; later also of those below it */
    uint32_t rows; /* with this stack itself */
    uint32_t to;   /* its replacement + 1; 0: not known yet */
    uint32_t depth;
    uint16_t rank;
    uint8_t any, inner; /* it or a stack below has rows; a stack below has rows */
    uint8_t counted;    /* counted as pruned */
};

struct fp_fit_stacks *fp_fit_stacks_new(struct fp_model *model, int by_thread) {
    struct fp_fit_stacks *t = fp_made(sizeof *t);
    t->model = model;
    t->by_thread = by_thread;
    return t;
}

void fp_fit_stacks_free(struct fp_fit_stacks *t) {
    for (uint32_t i = 0; i < t->n_groups; i++) fp_buf_free(&t->groups[i].packed);
    FP_FREE(t->groups, t->group_of, t->of, t);
}

/* ---- packing rows ---- */

static struct fp_fit_stacks_group *group_of(struct fp_fit_stacks *t, uint32_t thread) {
    if (!t->by_thread) thread = 0;
    if (!*FP_AT(t->group_of, t->cap_group_of, thread)) {
        FP_PUSH(t->groups, t->n_groups, t->cap_groups) = (struct fp_fit_stacks_group){.thread = thread};
        t->group_of[thread] = t->n_groups;
    }
    return &t->groups[t->group_of[thread] - 1];
}

int fp_fit_stacks_put(struct fp_fit_stacks *t, const struct fp_batch *b, struct fp_err *err) {
    for (uint32_t i = 0; i < b->n; i++) {
        struct fp_fit_stacks_group *const g = group_of(t, b->thread[i]);
        fp_buf_reserve(&g->packed, PACKED + NUMBER * (size_t)b->n_values);
        if (t->n_groups > FP_FIT_STACKS_GROUPS) return fp_fail_beyond(err, "the number of files", FP_NO_COLUMN, "500");
        struct fp_fit_stacks_state *const s = &g->state;
        const int other = !s->begun || s->part != b->part || s->n_values != b->n_values || s->thread != b->thread[i] ||
                          s->label != b->label[i];
        uint8_t *const from = g->packed.p + g->packed.n;
        uint8_t *to = fp_varint(from, (uint64_t)b->stack[i] << 1 | (uint64_t)other);
        if (other) {
            to = fp_varint(to, b->part);
            to = fp_varint(to, b->n_values);
            to = fp_varint(to, b->thread[i]);
            to = fp_varint(to, b->label[i]);
        }
        to = fp_varint(to, fp_zig(b->time[i] - s->time));
        for (uint32_t k = 0; k < b->n_values; k++)
            to = fp_varint(to, fp_zig((uint64_t)b->values[(size_t)k * b->cap + i]));
        *s = (struct fp_fit_stacks_state){b->time[i], b->part, b->n_values, b->thread[i], b->label[i], 1};
        g->timed += b->time[i] != 0;
        g->packed.n += (size_t)(to - from);
        t->packed += (size_t)(to - from);
    }
    return FP_DONE;
}

void fp_fit_stacks_begin(struct fp_fit_stacks *t, uint32_t group) {
    t->groups[group].state = (struct fp_fit_stacks_state){0};
}

int fp_fit_stacks_take(struct fp_fit_stacks *t, uint32_t group, struct fp_window *in, struct fp_batch *out) {
    struct fp_fit_stacks_state *const s = &t->groups[group].state;
    while (in->pos < in->n) {
        if (out->n == out->cap) return FP_FULL;
        const size_t from = in->pos;
        const struct fp_fit_stacks_state before = *s;
        const uint64_t stack = fp_varint_next(in);
        if (stack & 1) {
            s->part = (uint32_t)fp_varint_next(in);
            s->n_values = (uint32_t)fp_varint_next(in);
            s->thread = (uint32_t)fp_varint_next(in);
            s->label = (uint32_t)fp_varint_next(in);
        }
        if (out->n && (out->part != s->part || out->n_values != s->n_values)) {
            in->pos = from;
            *s = before;
            return FP_FULL;
        }
        if (out->n_values != s->n_values) fp_batch_set_values(out, s->n_values);
        s->time += fp_zag(fp_varint_next(in));
        out->part = s->part;
        const uint32_t row = fp_batch_sample(out, (uint32_t)(stack >> 1), s->thread, s->label, s->time);
        for (uint32_t k = 0; k < s->n_values; k++)
            out->values[(size_t)k * out->cap + row] = (int64_t)fp_zag(fp_varint_next(in));
    }
    return FP_DONE;
}

/* ---- shares ---- */

void fp_fit_stacks_total(const struct fp_batch *b, const uint32_t *columns, double *totals) {
    for (uint32_t k = 0; k < b->n_values; k++)
        for (uint32_t i = 0; i < b->n; i++) totals[columns[k]] += fabs((double)b->values[(size_t)k * b->cap + i]);
}

int fp_fit_stacks_weigh_begin(struct fp_fit_stacks *t) {
    /* including stacks that earlier cuts added, which have no rows */
    const uint32_t n = t->model->stacks.n;
    fp_array_room(&t->of, &t->cap_of, n, sizeof *t->of);
    t->n_of = n;
    memset(t->of, 0, n * sizeof *t->of);
    return 0;
}

void fp_fit_stacks_weigh(struct fp_fit_stacks *t, const struct fp_batch *b, const uint32_t *columns,
                         const double *totals, uint32_t n) {
    uint32_t counted = 0;
    for (uint32_t k = 0; k < n; k++) counted += totals[k] > 0;
    for (uint32_t i = 0; i < b->n; i++) {
        struct fp_fit_stacks_stack *const of = &t->of[b->stack[i]];
        of->rows += of->rows < UINT32_MAX;
        for (uint32_t k = 0; k < b->n_values; k++) {
            const double total = totals[columns[k]];
            if (total > 0) of->share += fabs((double)b->values[(size_t)k * b->cap + i]) / total / counted;
        }
    }
}

void fp_fit_stacks_weighed(struct fp_fit_stacks *t, uint64_t stack, uint64_t row, uint64_t frame) {
    const struct fp_table *const stacks = &t->model->stacks;
    memset(t->bytes, 0, sizeof t->bytes);
    for (uint32_t i = t->n_of; i-- > 1;) { /* callers have lower ids */
        struct fp_fit_stacks_stack *const of = &t->of[i], *const caller =
                                                              &t->of[fp_table_row(stacks, i)[FP_STACK_PARENT]];
        of->any |= of->rows > 0;
        caller->share += of->share;
        caller->any |= of->any;
        caller->inner |= of->any;
    }
    for (uint32_t i = 1; i < t->n_of; i++) {
        struct fp_fit_stacks_stack *const of = &t->of[i];
        of->depth = t->of[fp_table_row(stacks, i)[FP_STACK_PARENT]].depth + 1;
        of->rank = (uint16_t)fp_bins_of((uint64_t)((of->share < 1 ? of->share : 1) * WHOLE));
        /* one more row for its direct children, if pruned */
        if (of->any) t->bytes[of->rank] += stack + ((uint64_t)of->rows + of->inner) * (row + frame * of->depth);
    }
}

double fp_fit_stacks_share(uint32_t rank) {
    return (double)fp_bins_begin(rank) / WHOLE;
}

/* ---- returning rows ---- */

int fp_fit_stacks_cut(struct fp_fit_stacks *t, uint32_t least) {
    struct fp_model *const m = t->model;
    t->pruned = fp_model_name_frame(m, fp_strings_intern(&m->strings, "[pruned]", 8));
    t->least = least;
    t->stacks = 0;
    for (uint32_t i = 0; i < t->n_of; i++) t->of[i].to = t->of[i].counted = 0;
    return 0;
}

/* The child [pruned] of a stack that stays. */
static uint32_t pruned_under(struct fp_fit_stacks *t, uint32_t stack) {
    if (stack && fp_table_row(&t->model->stacks, stack)[FP_STACK_FRAME] == t->pruned) return stack;
    return fp_model_stack(t->model, stack, t->pruned);
}

/* The replacement of a stack. */
static uint32_t replaced(struct fp_fit_stacks *t, uint32_t stack) {
    uint32_t at = stack;
    while (at && t->of[at].rank < t->least && !t->of[at].to) at = fp_table_row(&t->model->stacks, at)[FP_STACK_PARENT];
    if (at == stack && !t->of[at].to) return stack; /* it stays */
    const uint32_t to = t->of[at].to ? t->of[at].to - 1 : pruned_under(t, at);
    for (uint32_t i = stack; i != at; i = fp_table_row(&t->model->stacks, i)[FP_STACK_PARENT]) t->of[i].to = to + 1;
    return to;
}

int fp_fit_stacks_batch(struct fp_fit_stacks *t, struct fp_batch *b, const uint32_t *columns, double *pruned) {
    for (uint32_t i = 0; i < b->n; i++) {
        const uint32_t stack = b->stack[i], to = replaced(t, stack);
        if (to == stack) continue;
        b->stack[i] = to;
        t->stacks += !t->of[stack].counted;
        t->of[stack].counted = 1;
        for (uint32_t k = 0; k < b->n_values; k++)
            pruned[columns[k]] += fabs((double)b->values[(size_t)k * b->cap + i]);
    }
    return 0;
}
