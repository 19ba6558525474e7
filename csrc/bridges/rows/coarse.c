#include "bridges/rows/coarse.h"

#include <stdlib.h>

#include "core/array.h"

struct fp_coarse *fp_coarse_new(struct fp_model *model, uint32_t by) {
    struct fp_coarse *c = calloc(1, sizeof *c);
    if (!c) return NULL;
    c->model = model;
    c->by = by;
    return c;
}

void fp_coarse_free(struct fp_coarse *c) {
    if (!c) return;
    free(c->to);
    free(c);
}

/* The replacement of function `id`; by file, `id` is a file.  FP_NO_ID when memory ran out. */
static uint32_t looked_up(struct fp_model *m, uint32_t by, uint32_t id) {
    if (by == FP_COARSE_BY_FILE) return fp_model_function(m, 0, id, id, 0, 0);
    const uint32_t *f = fp_table_row(&m->functions, id);
    const uint32_t object = f[FP_FUNCTION_OBJECT];
    if (by == FP_COARSE_BY_OBJECT) return fp_model_function(m, object, 0, fp_table_row(&m->objects, object)[0], 0, 0);
    if (!f[FP_FUNCTION_SYSTEM_NAME] && !f[FP_FUNCTION_LINE]) return id;
    return fp_model_function(m, object, f[FP_FUNCTION_FILE], f[FP_FUNCTION_NAME], 0, 0);
}

/* 0, FP_E_NOMEM or FP_E_MALFORMED. */
static int coarse(struct fp_coarse *c, uint32_t id, uint32_t *to, struct fp_err *err) {
    struct fp_model *m = c->model;
    if (FP_UNLIKELY(id >= c->cap || !c->to[id])) {
        const uint32_t n = c->by == FP_COARSE_BY_FILE ? m->strings.n : m->functions.n;
        if (id >= n) return fp_unknown_id(err, c->by == FP_COARSE_BY_FILE ? "a file" : "a function", id, n);
        if (fp_array_zeroed(&c->to, &c->cap, (uint64_t)id + 1, sizeof *c->to)) return FP_E_NOMEM;
        const uint32_t found = looked_up(m, c->by, id);
        if (found == FP_NO_ID) return FP_E_NOMEM;
        c->to[id] = found + 1;
    }
    *to = c->to[id] - 1;
    return 0;
}

static int overflow(const struct fp_batch *b, uint32_t line, const char *what, int64_t column, struct fp_err *err) {
    fp_fail_beyond(err, what, column, column == FP_NO_COLUMN ? "2^64 - 1" : "2^63 - 1");
    err->line = b->line[line];
    return FP_E_OVERFLOW;
}

int fp_coarse_batch(struct fp_coarse *c, struct fp_batch *b, struct fp_err *err) {
    const size_t cap = b->cap;
    uint32_t n = 0;
    for (uint32_t i = 0; i < b->n; i++) {
        const uint32_t kind = b->kind[i];
        const int call = kind == FP_CALL && c->by == FP_COARSE_BY_ARC;
        if (kind != FP_COST && !call) continue;
        uint32_t function, callee = 0;
        int status = coarse(c, c->by == FP_COARSE_BY_FILE ? b->file[i] : b->function[i], &function, err);
        if (!status && call) status = coarse(c, b->callee[i], &callee, err);
        if (status) return status;
        const uint32_t file =
            c->by == FP_COARSE_BY_LINE ? b->file[i] : fp_table_row(&c->model->functions, function)[FP_FUNCTION_FILE];
        const uint32_t line = c->by == FP_COARSE_BY_LINE ? b->line[i] : 0;
        const uint64_t count = call ? b->count[i] : 0;
        if (c->by == FP_COARSE_BY_ARC && b->n_values) {
            if (count > INT64_MAX) return overflow(b, i, "the number of calls", b->n_values - 1, err);
            b->values[(b->n_values - 1) * cap + i] = (int64_t)count;
        }

        const uint32_t before = n - 1; /* the row to merge with */
        if (n && b->kind[before] == kind && b->function[before] == function && b->callee[before] == callee &&
            b->file[before] == file && b->line[before] == line) {
            if (__builtin_add_overflow(b->count[before], count, &b->count[before]))
                return overflow(b, i, "the number of calls", FP_NO_COLUMN, err);
            for (uint32_t k = 0; k < b->n_values; k++) {
                int64_t *sum = &b->values[k * cap + before];
                if (__builtin_add_overflow(*sum, b->values[k * cap + i], sum))
                    return overflow(b, i, "the cost of a function", k, err);
            }
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
            if (labelled == FP_NO_ID) return FP_E_NOMEM;
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
