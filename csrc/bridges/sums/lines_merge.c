#include "bridges/sums/lines_merge.h"

#include "bridges/sums/name_order.h"

/* An input; rows[at ..] are not read yet. */
struct input {
    const struct fp_batch *rows;
    uint32_t at;
    int32_t ended;
};

struct fp_lines_merge {
    struct fp_name_order order; /* without ranks: names are added while they are compared */
    uint32_t function;          /* the current function, if in_function */
    int32_t in_function;
    uint32_t n;
    struct input inputs[];
};

struct fp_lines_merge *fp_lines_merge_new(const struct fp_model *model, uint32_t n) {
    struct fp_lines_merge *m = fp_have(calloc(1, sizeof *m + n * sizeof *m->inputs));
    m->order.model = model;
    m->n = n;
    return m;
}

void fp_lines_merge_free(struct fp_lines_merge *m) {
    free(m);
}

void fp_lines_merge_put(struct fp_lines_merge *m, uint32_t i, const struct fp_batch *rows) {
    m->inputs[i] = (struct input){.rows = rows, .ended = !rows};
}

static inline int needs_rows(const struct input *in) {
    return !in->ended && (!in->rows || in->at == in->rows->n);
}

/* Finds the first function of all inputs.  Each input has rows or has ended.  Returns 0 when all have ended. */
static int next_function(struct fp_lines_merge *m) {
    m->in_function = 0;
    for (uint32_t i = 0; i < m->n; i++) {
        const struct input *in = &m->inputs[i];
        if (in->ended) continue;
        const uint32_t f = in->rows->function[in->at];
        if (!m->in_function || (f != m->function && fp_name_order_functions(&m->order, f, m->function) < 0))
            m->function = f;
        m->in_function = 1;
    }
    return m->in_function;
}

static inline int is_at(const struct fp_lines_merge *m, const struct input *in) {
    return !in->ended && in->rows->function[in->at] == m->function;
}

/* Adds empty rows for the places of `n` rows of an input. */
static void add_rows(struct fp_batch *out, const struct input *in, uint32_t n) {
    const uint32_t to = out->n, at = in->at;
    const size_t narrow = n * sizeof(uint32_t), wide = n * sizeof(uint64_t);
    memset(out->kind + to, FP_COST, n);
    memcpy(out->function + to, in->rows->function + at, narrow);
    memcpy(out->file + to, in->rows->file + at, narrow);
    memcpy(out->line + to, in->rows->line + at, narrow);
    memset(out->callee + to, 0, narrow);
    memset(out->target_file + to, 0, narrow);
    memset(out->target_line + to, 0, narrow);
    memset(out->address + to, 0, wide);
    memset(out->bb + to, 0, wide);
    memset(out->target_address + to, 0, wide);
    memset(out->target_bb + to, 0, wide);
    memset(out->count + to, 0, wide);
    memset(out->count2 + to, 0, wide);
    for (uint32_t k = 0; k < out->n_values; k++)
        memcpy(out->values + (size_t)k * out->cap + to, in->rows->values + (size_t)k * in->rows->cap + at, wide);
    out->n += n;
}

/* Copies the rows of a function that only this input has. */
static void copy_run(const struct fp_lines_merge *m, struct input *in, struct fp_batch *out) {
    const uint32_t room = out->cap - out->n, left = in->rows->n - in->at, most = room < left ? room : left;
    uint32_t n = 1;
    while (n < most && in->rows->function[in->at + n] == m->function) n++;
    add_rows(out, in, n);
    in->at += n;
}

/* Sums the rows of the function's next line.  FP_FULL or FP_E_OVERFLOW. */
static int add_line(struct fp_lines_merge *m, struct fp_batch *out) {
    struct input *first = NULL;
    for (uint32_t i = 0; i < m->n; i++) {
        struct input *in = &m->inputs[i];
        if (is_at(m, in) && (!first || in->rows->line[in->at] < first->rows->line[first->at])) first = in;
    }
    const uint32_t line = first->rows->line[first->at];
    int overflow = 0;
    add_rows(out, first, 1);
    for (struct input *in = first + 1; in < m->inputs + m->n; in++) {
        if (!is_at(m, in) || in->rows->line[in->at] != line) continue;
        for (uint32_t k = 0; k < out->n_values; k++) {
            int64_t *sum = &out->values[(size_t)k * out->cap + out->n - 1];
            overflow |= __builtin_add_overflow(*sum, in->rows->values[(size_t)k * in->rows->cap + in->at], sum);
        }
        in->at++;
    }
    first->at++;
    return overflow ? FP_E_OVERFLOW : FP_FULL;
}

int fp_lines_merge_pull(struct fp_lines_merge *m, struct fp_batch *out, uint32_t *needs) {
    for (;;) {
        uint32_t n = 0, last = 0;
        for (uint32_t i = 0; i < m->n; i++) {
            if (needs_rows(&m->inputs[i])) {
                *needs = i;
                return FP_MORE;
            }
            if (!m->in_function || !is_at(m, &m->inputs[i])) continue;
            n++;
            last = i;
        }
        if (!n && !next_function(m)) return FP_DONE;
        if (!n) continue;
        if (out->n == out->cap) return FP_FULL;
        if (n == 1)
            copy_run(m, &m->inputs[last], out);
        else if (add_line(m, out) < 0)
            return FP_E_OVERFLOW;
    }
}
