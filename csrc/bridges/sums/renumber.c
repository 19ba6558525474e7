#include "bridges/sums/renumber.h"

#include <stdlib.h>

#include "core/array.h"

struct fp_renumber *fp_renumber_new(const struct fp_model *from, struct fp_model *to) {
    struct fp_renumber *r = calloc(1, sizeof *r);
    if (!r) return NULL;
    r->from = from;
    r->to = to;
    r->n_emptied = from->n_emptied;
    return r;
}

void fp_renumber_free(struct fp_renumber *r) {
    if (!r) return;
    for (int i = 0; i < FP_RENUMBERED_TABLES; i++) free(r->ids[i]);
    for (int i = 0; i < 2; i++) free(r->path[i]);
    free(r);
}

/* ---- entries ----
 * Each function below sets *id, an id of `from`, to that in `to`.  0, FP_E_NOMEM or FP_E_MALFORMED. */

static int no_memory(struct fp_err *err) {
    return fp_fail(err, FP_E_NOMEM, 0, "the tables of merged profiles");
}

/* Where the id of an entry of a table of `n` goes; NULL after an error, which is in *status. */
static uint32_t *slot(struct fp_renumber *r, enum fp_renumbered table, uint32_t id, uint32_t n, int *status,
                      struct fp_err *err) {
    if (FP_UNLIKELY(id >= n)) {
        *status = fp_unknown_id(err, "an id in merged profiles", id, n);
        return NULL;
    }
    if (fp_array_zeroed(&r->ids[table], &r->cap[table], n, sizeof *r->ids[table])) {
        *status = no_memory(err);
        return NULL;
    }
    return &r->ids[table][id];
}

/* Is it known already?  Id 0 is the same in all models. */
static inline int known(const struct fp_renumber *r, enum fp_renumbered table, uint32_t *id) {
    if (!*id) return 1;
    if (FP_UNLIKELY(*id >= r->cap[table] || !r->ids[table][*id])) return 0;
    *id = r->ids[table][*id];
    return 1;
}

static int note(uint32_t *to, uint32_t *id, uint32_t found, struct fp_err *err) {
    if (found == FP_NO_ID) return no_memory(err);
    *to = *id = found;
    return 0;
}

static int string_of(struct fp_renumber *r, uint32_t *id, struct fp_err *err) {
    if (known(r, FP_RENUMBERED_STRINGS, id)) return 0;
    const struct fp_strings *s = &r->from->strings;
    int status = 0;
    uint32_t *to = slot(r, FP_RENUMBERED_STRINGS, *id, s->n, &status, err);
    if (!to) return status;
    size_t n;
    const uint8_t *p = fp_string(s, *id, &n);
    return note(to, id, fp_strings_intern(&r->to->strings, p, n), err);
}

static int object_of(struct fp_renumber *r, uint32_t *id, struct fp_err *err) {
    if (known(r, FP_RENUMBERED_OBJECTS, id)) return 0;
    int status = 0;
    uint32_t *to = slot(r, FP_RENUMBERED_OBJECTS, *id, r->from->objects.n, &status, err);
    if (!to) return status;
    uint32_t row[FP_OBJECT_WIDTH];
    memcpy(row, fp_table_row(&r->from->objects, *id), sizeof row);
    if ((status = string_of(r, &row[FP_OBJECT_NAME], err)) || (status = string_of(r, &row[FP_OBJECT_BUILD_ID], err)))
        return status;
    return note(to, id, fp_table_intern(&r->to->objects, row), err);
}

static int mapping_of(struct fp_renumber *r, uint32_t *id, struct fp_err *err) {
    if (known(r, FP_RENUMBERED_MAPPINGS, id)) return 0;
    int status = 0;
    uint32_t *to = slot(r, FP_RENUMBERED_MAPPINGS, *id, r->from->mappings.n, &status, err);
    if (!to) return status;
    uint32_t row[FP_MAPPING_WIDTH];
    memcpy(row, fp_table_row(&r->from->mappings, *id), sizeof row);
    if ((status = object_of(r, &row[FP_MAPPING_OBJECT], err))) return status;
    return note(to, id, fp_table_intern(&r->to->mappings, row), err);
}

static int function_of(struct fp_renumber *r, uint32_t *id, struct fp_err *err) {
    if (known(r, FP_RENUMBERED_FUNCTIONS, id)) return 0;
    int status = 0;
    uint32_t *to = slot(r, FP_RENUMBERED_FUNCTIONS, *id, r->from->functions.n, &status, err);
    if (!to) return status;
    uint32_t row[FP_FUNCTION_WIDTH];
    memcpy(row, fp_table_row(&r->from->functions, *id), sizeof row);
    if ((status = object_of(r, &row[FP_FUNCTION_OBJECT], err)) ||
        (status = string_of(r, &row[FP_FUNCTION_FILE], err)) || (status = string_of(r, &row[FP_FUNCTION_NAME], err)) ||
        (status = string_of(r, &row[FP_FUNCTION_SYSTEM_NAME], err)))
        return status;
    return note(to, id, fp_model_function_row(r->to, row), err);
}

/* ---- trees: the nodes above an entry are entered before it ---- */

/* The nodes from *id upwards that are not known yet go to a path, n of them; *id becomes the one above them, in `to`.
 */
static int unknown_above(struct fp_renumber *r, enum fp_renumbered table, const struct fp_table *t, uint32_t parent,
                         uint32_t *id, uint32_t *n, struct fp_err *err) {
    const int which = table != FP_RENUMBERED_STACKS;
    int status = 0;
    for (*n = 0; !known(r, table, id); ++*n) {
        if (!slot(r, table, *id, t->n, &status, err)) return status;
        if (fp_array_room(&r->path[which], &r->cap_path[which], (uint64_t)*n + 1, sizeof **r->path))
            return no_memory(err);
        r->path[which][*n] = *id;
        const uint32_t above = fp_table_row(t, *id)[parent];
        if (above >= *id) return fp_unknown_id(err, "what is above an entry of merged profiles", above, *id);
        *id = above;
    }
    return 0;
}

static int lines_of(struct fp_renumber *r, uint32_t *id, struct fp_err *err) {
    const struct fp_table *t = &r->from->lines;
    uint32_t n;
    int status = unknown_above(r, FP_RENUMBERED_LINES, t, FP_LINE_OUTER, id, &n, err);
    while (!status && n-- > 0) {
        uint32_t row[FP_LINE_WIDTH];
        memcpy(row, fp_table_row(t, r->path[1][n]), sizeof row);
        row[FP_LINE_OUTER] = *id;
        status = function_of(r, &row[FP_LINE_FUNCTION], err);
        if (!status)
            status = note(&r->ids[FP_RENUMBERED_LINES][r->path[1][n]], id, fp_table_intern(&r->to->lines, row), err);
    }
    return status;
}

static int label_of(struct fp_renumber *r, uint32_t *id, struct fp_err *err) {
    const struct fp_table *t = &r->from->labels;
    uint32_t n;
    int status = unknown_above(r, FP_RENUMBERED_LABELS, t, FP_LABEL_NEXT, id, &n, err);
    while (!status && n-- > 0) {
        uint32_t row[FP_LABEL_WIDTH];
        memcpy(row, fp_table_row(t, r->path[1][n]), sizeof row);
        row[FP_LABEL_NEXT] = *id;
        if (!(status = string_of(r, &row[FP_LABEL_KEY], err)) && !(status = string_of(r, &row[FP_LABEL_STRING], err)))
            status = string_of(r, &row[FP_LABEL_UNIT], err);
        if (!status)
            status = note(&r->ids[FP_RENUMBERED_LABELS][r->path[1][n]], id, fp_table_intern(&r->to->labels, row), err);
    }
    return status;
}

static int frame_of(struct fp_renumber *r, uint32_t *id, struct fp_err *err) {
    if (known(r, FP_RENUMBERED_FRAMES, id)) return 0;
    int status = 0;
    uint32_t *to = slot(r, FP_RENUMBERED_FRAMES, *id, r->from->frames.n, &status, err);
    if (!to) return status;
    uint32_t row[FP_FRAME_WIDTH];
    memcpy(row, fp_table_row(&r->from->frames, *id), sizeof row);
    if ((status = mapping_of(r, &row[FP_FRAME_MAPPING], err)) || (status = lines_of(r, &row[FP_FRAME_LINES], err)))
        return status;
    return note(to, id, fp_table_intern(&r->to->frames, row), err);
}

static int stack_of(struct fp_renumber *r, uint32_t *id, struct fp_err *err) {
    const struct fp_table *t = &r->from->stacks;
    uint32_t n;
    int status = unknown_above(r, FP_RENUMBERED_STACKS, t, FP_STACK_PARENT, id, &n, err);
    while (!status && n-- > 0) {
        const uint32_t node = r->path[0][n];
        uint32_t frame = fp_table_row(t, node)[FP_STACK_FRAME];
        status = frame_of(r, &frame, err);
        /* each comes once, because it does in `from`: so it is not looked up */
        if (!status)
            status = note(&r->ids[FP_RENUMBERED_STACKS][node], id, fp_model_stack_once(r->to, *id, frame), err);
    }
    return status;
}

static int thread_of(struct fp_renumber *r, uint32_t *id, struct fp_err *err) {
    if (known(r, FP_RENUMBERED_THREADS, id)) return 0;
    int status = 0;
    uint32_t *to = slot(r, FP_RENUMBERED_THREADS, *id, r->from->threads.n, &status, err);
    if (!to) return status;
    uint32_t row[FP_THREAD_WIDTH];
    memcpy(row, fp_table_row(&r->from->threads, *id), sizeof row);
    const uint32_t n_inputs = r->from->n_inputs ? r->from->n_inputs : 1; /* who tells no inputs apart uses input 0 */
    uint32_t *input = slot(r, FP_RENUMBERED_INPUTS, row[FP_THREAD_INPUT], n_inputs, &status, err);
    if (!input) return status;
    if (!*input) {
        const uint32_t found = fp_model_input(r->to);
        if (found == FP_NO_ID) return no_memory(err);
        *input = found + 1;
    }
    row[FP_THREAD_INPUT] = *input - 1;
    return note(to, id, fp_table_intern(&r->to->threads, row), err);
}

/* ---- rows ---- */

static int graph(struct fp_renumber *r, struct fp_batch *b, struct fp_err *err) {
    int status = 0;
    for (uint32_t i = 0; i < b->n && !status; i++)
        if (!(status = function_of(r, &b->function[i], err)) && !(status = string_of(r, &b->file[i], err)) &&
            b->kind[i] != FP_COST && b->kind[i] != FP_BLOCK && !(status = function_of(r, &b->callee[i], err)))
            status = string_of(r, &b->target_file[i], err);
    return status;
}

static int stacks(struct fp_renumber *r, struct fp_batch *b, struct fp_err *err) {
    int status = 0;
    for (uint32_t i = 0; i < b->n && !status; i++)
        if (!(status = stack_of(r, &b->stack[i], err)) && !(status = label_of(r, &b->label[i], err)))
            status = thread_of(r, &b->thread[i], err);
    return status;
}

int fp_renumber_batch(struct fp_renumber *r, struct fp_batch *b, struct fp_err *err) {
    if (r->n_emptied != r->from->n_emptied) {
        r->n_emptied = r->from->n_emptied;
        fp_model_empty_stacks(r->to);
        uint32_t *ids = r->ids[FP_RENUMBERED_STACKS];
        if (ids) memset(ids, 0, r->cap[FP_RENUMBERED_STACKS] * sizeof *ids);
    }
    const int status = b->view == FP_GRAPH ? graph(r, b, err) : stacks(r, b, err);
    return status ? status : FP_DONE;
}
