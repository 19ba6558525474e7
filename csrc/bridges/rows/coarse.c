#include "bridges/rows/coarse.h"

struct fp_coarse *fp_coarse_new(struct fp_model *model, uint32_t by) {
    struct fp_coarse *c = fp_made(sizeof *c);
    c->model = model;
    c->by = by;
    return c;
}

void fp_coarse_free(struct fp_coarse *c) {
    FP_FREE(c->to, c);
}

/* The replacement of function `id`; by file, `id` is a file. */
static uint32_t looked_up(struct fp_model *m, uint32_t by, uint32_t id) {
    if (by == FP_COARSE_BY_FILE) return fp_model_function(m, 0, id, id, 0, 0);
    const uint32_t *f = fp_table_row(&m->functions, id);
    const uint32_t object = f[FP_FUNCTION_OBJECT];
    if (by == FP_COARSE_BY_OBJECT) return fp_model_function(m, object, 0, fp_table_row(&m->objects, object)[0], 0, 0);
    if (!f[FP_FUNCTION_SYSTEM_NAME]) return id;
    return fp_model_function(m, object, f[FP_FUNCTION_FILE], f[FP_FUNCTION_NAME], 0, f[FP_FUNCTION_LINE]);
}

/* 0 or FP_E_MALFORMED. */
static int coarse(struct fp_coarse *c, uint32_t id, uint32_t *to, struct fp_err *err) {
    struct fp_model *m = c->model;
    if (FP_UNLIKELY(id >= c->cap || !c->to[id])) {
        const uint32_t n = c->by == FP_COARSE_BY_FILE ? m->strings.n : m->functions.n;
        if (id >= n) return fp_unknown_id(err, c->by == FP_COARSE_BY_FILE ? "a file" : "a function", id, n);
        *FP_AT(c->to, c->cap, id) = looked_up(m, c->by, id) + 1;
    }
    *to = c->to[id] - 1;
    return 0;
}

int fp_coarse_functions(struct fp_coarse *c, const uint8_t *seen, uint32_t n, uint32_t *to, struct fp_err *err) {
    int status = FP_DONE;
    for (uint32_t i = 0; i < n && !status; i++) {
        to[i] = 0;
        if (seen[i]) status = coarse(c, i, &to[i], err);
    }
    return status;
}

static int overflow(const struct fp_batch *b, uint32_t line, const char *what, int64_t column, struct fp_err *err) {
    fp_fail_beyond(err, what, column, column == FP_NO_COLUMN ? "2^64 - 1" : "2^63 - 1");
    err->line = b->line[line];
    return FP_E_OVERFLOW;
}

/* Adds the values of row `from` to those of row `to`. */
static int add_values(struct fp_batch *b, uint32_t from, uint32_t to, struct fp_err *err) {
    int64_t *column = b->values;
    for (uint32_t k = 0; k < b->n_values; k++, column += b->cap)
        if (FP_UNLIKELY(__builtin_add_overflow(column[to], column[from], &column[to])))
            return overflow(b, from, "the cost of a function", k, err);
    return FP_DONE;
}

/* Whether cost rows of one function, or file, are in one group. */
static inline int are_grouped(const struct fp_coarse *c, const struct fp_batch *b, uint32_t i, uint32_t before) {
    if (c->by == FP_COARSE_BY_LINE) return b->file[i] == b->file[before] && b->line[i] == b->line[before];
    return c->by != FP_COARSE_BY_ARC;
}

int fp_coarse_batch(struct fp_coarse *c, struct fp_batch *b, struct fp_err *err) {
    const size_t cap = b->cap;
    const int arcs = c->by == FP_COARSE_BY_ARC, lines = c->by == FP_COARSE_BY_LINE;
    uint32_t n = 0, last = 0; /* the function, or file, of the row to merge with, before it was replaced */
    for (uint32_t i = 0; i < b->n; i++) {
        const uint32_t kind = b->kind[i];
        const int call = kind == FP_CALL && arcs;
        if (kind != FP_COST && !call) continue;
        const uint32_t id = c->by == FP_COARSE_BY_FILE ? b->file[i] : b->function[i];
        const uint32_t before = n - 1; /* the row to merge with */
        if (n && id == last && are_grouped(c, b, i, before)) {
            FP_TRY(add_values(b, i, before, err));
            continue;
        }
        last = id;
        uint32_t function, callee = 0;
        FP_TRY(coarse(c, id, &function, err));
        if (call) FP_TRY(coarse(c, b->callee[i], &callee, err));
        const uint32_t file = lines ? b->file[i] : fp_table_row(&c->model->functions, function)[FP_FUNCTION_FILE];
        const uint32_t line = lines ? b->line[i] : 0;
        const uint64_t count = call ? b->count[i] : 0;
        if (arcs && b->n_values) {
            if (count > INT64_MAX) return overflow(b, i, "the number of calls", b->n_values - 1, err);
            b->values[(b->n_values - 1) * cap + i] = (int64_t)count;
        }

        if (n && b->kind[before] == kind && b->function[before] == function && b->callee[before] == callee &&
            b->file[before] == file && b->line[before] == line) {
            if (__builtin_add_overflow(b->count[before], count, &b->count[before]))
                return overflow(b, i, "the number of calls", FP_NO_COLUMN, err);
            FP_TRY(add_values(b, i, before, err));
            continue;
        }
        b->kind[n] = (uint8_t)kind;
        b->function[n] = function;
        b->callee[n] = callee;
        b->file[n] = file;
        b->line[n] = line;
        b->count[n] = count;
        if (n != i)
            for (uint32_t k = 0; k < b->n_values; k++) b->values[k * cap + n] = b->values[k * cap + i];
        n++;
    }
    b->n = n;
    memset(b->address, 0, n * sizeof *b->address);
    memset(b->bb, 0, n * sizeof *b->bb);
    memset(b->target_file, 0, n * sizeof *b->target_file);
    memset(b->target_line, 0, n * sizeof *b->target_line);
    memset(b->target_address, 0, n * sizeof *b->target_address);
    memset(b->target_bb, 0, n * sizeof *b->target_bb);
    memset(b->count2, 0, n * sizeof *b->count2);
    return FP_DONE;
}

int fp_coarse_base(struct fp_model *model, struct fp_batch *b, uint32_t key, uint32_t text, struct fp_err *err) {
    uint32_t own = 0, labelled = 0; /* a cache: samples come in runs of equal labels */
    for (uint32_t i = 0; i < b->n; i++) {
        if (!labelled || b->label[i] != own) {
            own = b->label[i];
            labelled = fp_model_label(model, own, key, text, 0, 0);
        }
        b->label[i] = labelled;
    }
    for (uint32_t k = 0; k < b->n_values; k++)
        for (uint32_t i = 0; i < b->n; i++) {
            int64_t *value = &b->values[(size_t)k * b->cap + i];
            if (__builtin_sub_overflow((int64_t)0, *value, value)) {
                fp_fail_beyond(err, "a subtracted cost", k, "2^63 - 1");
                return FP_E_OVERFLOW;
            }
        }
    return FP_DONE;
}
