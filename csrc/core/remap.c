#include "core/remap.h"

#include "core/array.h"
#include "core/guard.h"

enum remap_table { STRINGS, OBJECTS, MAPPINGS, FUNCTIONS, LINES, FRAMES, STACKS, LABELS, THREADS, INPUTS, TABLES };

static const char *const what[TABLES] = {"a string",
                                         "an object",
                                         "a mapping",
                                         "a function",
                                         "the lines of a frame",
                                         "the frame of a stack",
                                         "the stack of a sample",
                                         "the labels of a sample",
                                         "the thread of a sample",
                                         "the input of a thread"};

struct fp_remap {
    const struct fp_model *from;
    struct fp_model *to;
    struct fp_remap_hooks hooks;
    uint32_t *ids[TABLES]; /* by id in `from`: the id in `to`, 0 = not known yet; of inputs + 1 */
    uint32_t cap[TABLES];
    struct remap_path { /* nodes of a tree that are not known yet, from one upwards */
        uint32_t *ids, n, cap;
    } stacks, others;
    uint32_t n_emptied; /* the last known value of `from` */
    uint32_t row;       /* the next row of the batch */
};

struct fp_remap *fp_remap_new(const struct fp_model *from, struct fp_model *to) {
    struct fp_remap *r = fp_have(calloc(1, sizeof *r));
    r->from = from;
    r->to = to;
    r->n_emptied = from->n_emptied;
    return r;
}

struct fp_remap *fp_remap_new_hooked(struct fp_model *m, struct fp_remap_hooks hooks) {
    struct fp_remap *r = fp_remap_new(m, m);
    r->hooks = hooks;
    return r;
}

void fp_remap_free(struct fp_remap *r) {
    if (!r) return;
    for (int i = 0; i < TABLES; i++) free(r->ids[i]);
    FP_FREE(r->stacks.ids, r->others.ids, r);
}

/* ---- entries ----
 * Each function below replaces *id, an id of `from`, by that in `to`.  0, FP_NEEDS or FP_E_MALFORMED: then *id is
 * unchanged. */

/* The place for the new id of an entry of a table of `n`; NULL after an error, which is in *status. */
static uint32_t *slot(struct fp_remap *r, enum remap_table table, uint32_t id, uint32_t n, int *status,
                      struct fp_err *err) {
    if (FP_UNLIKELY(id >= n)) {
        *status = fp_unknown_id(err, what[table], id, n);
        return NULL;
    }
    fp_array_zeroed(&r->ids[table], &r->cap[table], n, sizeof *r->ids[table]);
    return &r->ids[table][id];
}

/* Whether the new id is known.  Id 0 is the same in all models. */
static inline int known(const struct fp_remap *r, enum remap_table table, uint32_t *id) {
    if (!*id) return 1;
    if (FP_UNLIKELY(*id >= r->cap[table] || !r->ids[table][*id])) return 0;
    *id = r->ids[table][*id];
    return 1;
}

static int note(uint32_t *to, uint32_t *id, uint32_t found) {
    *to = *id = found;
    return 0;
}

static int string_of(struct fp_remap *r, enum fp_remap_role role, uint32_t *id, struct fp_err *err) {
    if (r->hooks.string) return *id ? r->hooks.string(r->hooks.arg, role, id, err) : 0;
    if (known(r, STRINGS, id)) return 0;
    const struct fp_strings *s = &r->from->strings;
    int status = 0;
    uint32_t *to = slot(r, STRINGS, *id, s->n, &status, err);
    if (!to) return status;
    size_t n;
    const uint8_t *p = fp_string(s, *id, &n);
    return note(to, id, fp_strings_intern(&r->to->strings, p, n));
}

static int object_of(struct fp_remap *r, uint32_t *id, struct fp_err *err) {
    if ((r->from == r->to && !r->hooks.string) || known(r, OBJECTS, id)) return 0;
    int status = 0;
    uint32_t *to = slot(r, OBJECTS, *id, r->from->objects.n, &status, err);
    if (!to) return status;
    uint32_t row[FP_OBJECT_WIDTH];
    memcpy(row, fp_table_row(&r->from->objects, *id), sizeof row);
    FP_TRY(string_of(r, FP_REMAP_OBJECT, &row[FP_OBJECT_NAME], err));
    FP_TRY(string_of(r, FP_REMAP_TEXT, &row[FP_OBJECT_BUILD_ID], err));
    return note(to, id, fp_table_intern(&r->to->objects, row));
}

static int mapping_of(struct fp_remap *r, uint32_t *id, struct fp_err *err) {
    if ((r->from == r->to && !r->hooks.string) || known(r, MAPPINGS, id)) return 0;
    int status = 0;
    uint32_t *to = slot(r, MAPPINGS, *id, r->from->mappings.n, &status, err);
    if (!to) return status;
    uint32_t row[FP_MAPPING_WIDTH];
    memcpy(row, fp_table_row(&r->from->mappings, *id), sizeof row);
    FP_TRY(object_of(r, &row[FP_MAPPING_OBJECT], err));
    return note(to, id, fp_table_intern(&r->to->mappings, row));
}

static int function_of(struct fp_remap *r, uint32_t *id, struct fp_err *err) {
    if (known(r, FUNCTIONS, id)) return 0;
    int status = 0;
    uint32_t *to = slot(r, FUNCTIONS, *id, r->from->functions.n, &status, err);
    if (!to) return status;
    uint32_t other = *id;
    if (r->hooks.replace && r->hooks.replace(r->hooks.arg, &other)) return note(to, id, other);
    uint32_t row[FP_FUNCTION_WIDTH];
    memcpy(row, fp_table_row(&r->from->functions, *id), sizeof row);
    const uint32_t name = row[FP_FUNCTION_NAME], before = *id;
    FP_TRY(object_of(r, &row[FP_FUNCTION_OBJECT], err));
    FP_TRY(string_of(r, FP_REMAP_FILE, &row[FP_FUNCTION_FILE], err));
    FP_TRY(string_of(r, FP_REMAP_NAME, &row[FP_FUNCTION_NAME], err));
    FP_TRY(string_of(r, FP_REMAP_TEXT, &row[FP_FUNCTION_SYSTEM_NAME], err));
    if (r->from == r->to && row[FP_FUNCTION_NAME] != name) row[FP_FUNCTION_SYSTEM_NAME] = row[FP_FUNCTION_LINE] = 0;
    const uint32_t found = fp_model_function_row(r->to, row);
    if (found != before && r->hooks.function) r->hooks.function(r->hooks.arg, before, found);
    return note(to, id, found);
}

/* ---- trees: the nodes above an entry are entered before it ---- */

/* Collects the nodes from `id` upwards that are not known yet in a path.  After FP_NEEDS the path already has them. */
static int climb(struct fp_remap *r, enum remap_table table, const struct fp_table *t, uint32_t parent, uint32_t id,
                 struct remap_path *path, struct fp_err *err) {
    if (path->n) return 0;
    int status = 0;
    const uint32_t *ids = slot(r, table, 0, t->n, &status, err);
    if (!ids) return status;
    if (id >= t->n) return fp_unknown_id(err, what[table], id, t->n);
    while (id && !ids[id]) {
        FP_PUSH(path->ids, path->n, path->cap) = id;
        const uint32_t above = fp_table_row(t, id)[parent];
        if (above >= id) return fp_unknown_id(err, "the parent of an entry of a model", above, id);
        id = above;
    }
    return 0;
}

/* The node on top of the path as a row, and its parent in `to`. */
static uint32_t take_node(const struct fp_remap *r, enum remap_table table, const struct fp_table *t, uint32_t parent,
                          const struct remap_path *path, uint32_t *row) {
    const uint32_t node = path->ids[path->n - 1];
    memcpy(row, fp_table_row(t, node), t->width * sizeof *row);
    row[parent] = row[parent] ? r->ids[table][row[parent]] : 0;
    return node;
}

static int lines_of(struct fp_remap *r, uint32_t *id, struct fp_err *err) {
    if (known(r, LINES, id)) return 0;
    const struct fp_table *t = &r->from->lines;
    struct remap_path *path = &r->others;
    FP_TRY(climb(r, LINES, t, FP_LINE_OUTER, *id, path, err));
    uint32_t row[FP_LINE_WIDTH], found = 0;
    for (; path->n; path->n--) {
        const uint32_t node = take_node(r, LINES, t, FP_LINE_OUTER, path, row);
        FP_TRY(function_of(r, &row[FP_LINE_FUNCTION], err));
        FP_TRY(note(&r->ids[LINES][node], &found, fp_table_intern(&r->to->lines, row)));
    }
    *id = found;
    return 0;
}

static int label_of(struct fp_remap *r, uint32_t *id, struct fp_err *err) {
    if (known(r, LABELS, id)) return 0;
    const struct fp_table *t = &r->from->labels;
    struct remap_path *path = &r->others;
    FP_TRY(climb(r, LABELS, t, FP_LABEL_NEXT, *id, path, err));
    uint32_t row[FP_LABEL_WIDTH], found = 0;
    for (; path->n; path->n--) {
        const uint32_t node = take_node(r, LABELS, t, FP_LABEL_NEXT, path, row);
        FP_TRY(string_of(r, FP_REMAP_TEXT, &row[FP_LABEL_KEY], err));
        FP_TRY(string_of(r, FP_REMAP_TEXT, &row[FP_LABEL_STRING], err));
        FP_TRY(string_of(r, FP_REMAP_TEXT, &row[FP_LABEL_UNIT], err));
        FP_TRY(note(&r->ids[LABELS][node], &found, fp_table_intern(&r->to->labels, row)));
    }
    *id = found;
    return 0;
}

static int frame_of(struct fp_remap *r, uint32_t *id, struct fp_err *err) {
    if (known(r, FRAMES, id)) return 0;
    int status = 0;
    uint32_t *to = slot(r, FRAMES, *id, r->from->frames.n, &status, err);
    if (!to) return status;
    uint32_t row[FP_FRAME_WIDTH];
    memcpy(row, fp_table_row(&r->from->frames, *id), sizeof row);
    FP_TRY(mapping_of(r, &row[FP_FRAME_MAPPING], err));
    FP_TRY(lines_of(r, &row[FP_FRAME_LINES], err));
    return note(to, id, fp_table_intern(&r->to->frames, row));
}

/* Moves *node of `to` down by a frame, or by the frames that replace it. */
static int push_frame(struct fp_remap *r, uint32_t frame, uint32_t *node, struct fp_err *err) {
    uint32_t n = 1;
    const uint32_t *frames = r->hooks.frames ? r->hooks.frames(r->hooks.arg, frame, &n) : NULL;
    if (!r->hooks.frames) FP_TRY(frame_of(r, &frame, err));
    if (!frames) frames = &frame;
    for (uint32_t k = 0; k < n; k++) {
        /* in another model each stack comes once, as in `from`, so it needs no lookup */
        *node = r->from == r->to ? fp_model_stack(r->to, *node, frames[k]) : fp_model_stack_once(r->to, *node, *frames);
    }
    return 0;
}

/* Whether a stack stays, which needs no lookup: its frame is not replaced, and its parent, which is `parent` now,
 * stayed.
 */
static int stays(const struct fp_remap *r, const uint32_t *row, uint32_t parent) {
    uint32_t n;
    return r->hooks.frames && parent == row[FP_STACK_PARENT] && !r->hooks.frames(r->hooks.arg, row[FP_STACK_FRAME], &n);
}

static int stack_of(struct fp_remap *r, uint32_t *id, struct fp_err *err) {
    if (known(r, STACKS, id)) return 0;
    const struct fp_table *t = &r->from->stacks;
    struct remap_path *path = &r->stacks;
    FP_TRY(climb(r, STACKS, t, FP_STACK_PARENT, *id, path, err));
    uint32_t *ids = r->ids[STACKS], found = 0;
    for (; path->n; path->n--) {
        const uint32_t node = path->ids[path->n - 1], *row = fp_table_row(t, node);
        found = ids[row[FP_STACK_PARENT]];
        if (stays(r, row, found))
            found = node;
        else
            FP_TRY(push_frame(r, row[FP_STACK_FRAME], &found, err));
        ids[node] = found;
    }
    *id = found;
    return 0;
}

static int thread_of(struct fp_remap *r, uint32_t *id, struct fp_err *err) {
    if (known(r, THREADS, id)) return 0;
    int status = 0;
    uint32_t *to = slot(r, THREADS, *id, r->from->threads.n, &status, err);
    if (!to) return status;
    uint32_t row[FP_THREAD_WIDTH];
    memcpy(row, fp_table_row(&r->from->threads, *id), sizeof row);
    const uint32_t n_inputs = r->from->n_inputs ? r->from->n_inputs : 1; /* input 0 if inputs are not distinguished */
    uint32_t *input = slot(r, INPUTS, row[FP_THREAD_INPUT], n_inputs, &status, err);
    if (!input) return status;
    if (!*input) *input = fp_model_input(r->to) + 1;
    row[FP_THREAD_INPUT] = *input - 1;
    return note(to, id, fp_table_intern(&r->to->threads, row));
}

/* ---- rows ---- */

static int graph_row(struct fp_remap *r, struct fp_batch *b, uint32_t i, struct fp_err *err) {
    uint32_t function = b->function[i], callee = b->callee[i], file = b->file[i], target_file = b->target_file[i];
    FP_TRY(function_of(r, &function, err));
    FP_TRY(string_of(r, FP_REMAP_ROW_FILE, &file, err));
    if (b->kind[i] != FP_COST && b->kind[i] != FP_BLOCK) {
        FP_TRY(function_of(r, &callee, err));
        FP_TRY(string_of(r, FP_REMAP_ROW_FILE, &target_file, err));
    }
    b->function[i] = function;
    b->callee[i] = callee;
    b->file[i] = file;
    b->target_file[i] = target_file;
    return 0;
}

static int sample_row(struct fp_remap *r, struct fp_batch *b, uint32_t i, struct fp_err *err) {
    int status = stack_of(r, &b->stack[i], err);
    if (status || r->from == r->to) return status;
    status = label_of(r, &b->label[i], err);
    return status ? status : thread_of(r, &b->thread[i], err);
}

int fp_remap_batch(struct fp_remap *r, struct fp_batch *b, struct fp_err *err) {
    if (r->n_emptied != r->from->n_emptied) {
        r->n_emptied = r->from->n_emptied;
        if (r->from != r->to) fp_model_empty_stacks(r->to);
        if (r->ids[STACKS]) memset(r->ids[STACKS], 0, r->cap[STACKS] * sizeof *r->ids[STACKS]);
    }
    for (; r->row < b->n; r->row++) {
        const uint32_t i = r->row;
        int status = 0;
        if (b->view == FP_STACKS)
            status = sample_row(r, b, i, err);
        else if (b->view == FP_GRAPH)
            status = graph_row(r, b, i, err);
        else if (b->op[i] <= FP_OP_ENTER_ARGS)
            status = function_of(r, &b->function[i], err);
        if (status < 0) r->row = r->stacks.n = r->others.n = 0;
        if (status) return status;
    }
    r->row = 0;
    return FP_DONE;
}
