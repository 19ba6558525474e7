#include "bridges/rows/rename.h"

#include <stdlib.h>

#include "core/array.h"

struct fp_rename *fp_rename_new(struct fp_model *model, int what) {
    struct fp_rename *r = calloc(1, sizeof *r);
    if (!r) return NULL;
    r->model = model;
    r->what = what;
    return r;
}

void fp_rename_free(struct fp_rename *r) {
    if (!r) return;
    free(r->made);
    free(r->names.to);
    free(r->files.to);
    free(r->functions.to);
    free(r->lines.to);
    free(r->lines.path);
    free(r->frames.to);
    free(r->stacks.to);
    free(r->stacks.path);
    free(r);
}

static int no_memory(struct fp_err *err) {
    return fp_fail(err, FP_E_NOMEM, 0, "other names");
}

static int room(struct fp_renamed *t, uint32_t id) {
    return fp_array_zeroed(&t->to, &t->cap, (uint64_t)id + 1, sizeof *t->to);
}

int fp_rename_answer(struct fp_rename *r, const uint8_t *p, size_t n) {
    struct fp_renamed *t = r->asked == FP_RENAME_FUNCTION ? &r->names : &r->files;
    const uint32_t to = fp_strings_intern(&r->model->strings, p, n);
    if (to == FP_NO_ID) return FP_E_NOMEM;
    t->to[r->string] = to + 1;
    return 0;
}

/* The functions below replace the id at *id.  They return FP_DONE, FP_ASK or an error; then *id is as it was. */

/* A string that names a function or file.  What has no name gets none. */
static int rename_string(struct fp_rename *r, int what, uint32_t *id, struct fp_err *err) {
    struct fp_renamed *t = what == FP_RENAME_FUNCTION ? &r->names : &r->files;
    if (!(r->what & what) || !*id) return FP_DONE;
    if (*id >= r->model->strings.n) return fp_unknown_id(err, "the name of a file", *id, r->model->strings.n);
    if (room(t, *id)) return no_memory(err);
    if (!t->to[*id]) {
        r->asked = what;
        r->string = *id;
        r->text = fp_string(&r->model->strings, *id, &r->text_n);
        return FP_ASK;
    }
    *id = t->to[*id] - 1;
    return FP_DONE;
}

static int note(struct fp_rename *r, uint32_t from, uint32_t to) {
    if (fp_array_room(&r->made, &r->cap_made, (uint64_t)r->n_made + 2, sizeof *r->made)) return FP_E_NOMEM;
    r->made[r->n_made++] = from;
    r->made[r->n_made++] = to;
    return 0;
}

static int rename_function(struct fp_rename *r, uint32_t *id, struct fp_err *err) {
    struct fp_model *m = r->model;
    if (!*id) return FP_DONE;
    if (*id >= m->functions.n) return fp_unknown_id(err, "a function", *id, m->functions.n);
    if (room(&r->functions, *id)) return no_memory(err);
    if (!r->functions.to[*id]) {
        uint32_t row[FP_FUNCTION_WIDTH];
        memcpy(row, fp_table_row(&m->functions, *id), sizeof row);
        const uint32_t name = row[FP_FUNCTION_NAME];
        int status = rename_string(r, FP_RENAME_FUNCTION, &row[FP_FUNCTION_NAME], err);
        if (!status) status = rename_string(r, FP_RENAME_FILE, &row[FP_FUNCTION_FILE], err);
        if (status) return status;
        if (row[FP_FUNCTION_NAME] != name) row[FP_FUNCTION_SYSTEM_NAME] = row[FP_FUNCTION_LINE] = 0;
        const uint32_t to = fp_model_function_row(m, row);
        if (to == FP_NO_ID || (to != *id && note(r, *id, to))) return no_memory(err);
        r->functions.to[*id] = to;
    }
    *id = r->functions.to[*id];
    return FP_DONE;
}

/* Puts `id` and those that its rows lead to, up to one that is known, on the path of `t`: word `at` of a row refers to
 * one that was entered before.  After FP_ASK they are there already. */
static int climb(const struct fp_table *rows, int at, struct fp_renamed *t, uint32_t id, struct fp_err *err) {
    if (t->n_path) return FP_DONE;
    if (room(t, id)) return no_memory(err);
    while (id && !t->to[id]) {
        if (fp_array_room(&t->path, &t->cap_path, (uint64_t)t->n_path + 1, sizeof *t->path)) return no_memory(err);
        t->path[t->n_path++] = id;
        const uint32_t next = fp_table_row(rows, id)[at];
        if (next >= id) return fp_unknown_id(err, "the parent of a stack or line", next, id);
        id = next;
    }
    return FP_DONE;
}

static int rename_lines(struct fp_rename *r, uint32_t *id, struct fp_err *err) {
    struct fp_model *m = r->model;
    struct fp_renamed *t = &r->lines;
    if (*id >= m->lines.n) return fp_unknown_id(err, "the lines of a frame", *id, m->lines.n);
    int status = climb(&m->lines, FP_LINE_OUTER, t, *id, err);
    for (; !status && t->n_path; t->n_path--) {
        const uint32_t line = t->path[t->n_path - 1], *row = fp_table_row(&m->lines, line);
        const uint32_t number = row[FP_LINE_LINE], column = row[FP_LINE_COLUMN], outer = row[FP_LINE_OUTER];
        uint32_t function = row[FP_LINE_FUNCTION];
        status = rename_function(r, &function, err);
        if (status) return status;
        const uint32_t to = fp_model_line(m, function, number, column, outer ? t->to[outer] : 0);
        if (to == FP_NO_ID) return no_memory(err);
        t->to[line] = to;
    }
    if (!status && *id) *id = t->to[*id];
    return status;
}

static int rename_frame(struct fp_rename *r, uint32_t *id, struct fp_err *err) {
    struct fp_model *m = r->model;
    if (*id >= m->frames.n) return fp_unknown_id(err, "the frame of a stack", *id, m->frames.n);
    if (room(&r->frames, *id)) return no_memory(err);
    if (!r->frames.to[*id]) {
        const uint32_t *row = fp_table_row(&m->frames, *id);
        const uint32_t mapping = row[FP_FRAME_MAPPING], flags = row[FP_FRAME_FLAGS];
        const uint64_t address = fp_words_u64(row + FP_FRAME_ADDRESS);
        uint32_t lines = row[FP_FRAME_LINES];
        const int status = rename_lines(r, &lines, err);
        if (status) return status;
        const uint32_t to = fp_model_frame(m, mapping, address, flags, lines);
        if (to == FP_NO_ID) return no_memory(err);
        r->frames.to[*id] = to;
    }
    *id = r->frames.to[*id];
    return FP_DONE;
}

static int rename_stack(struct fp_rename *r, uint32_t *id, struct fp_err *err) {
    struct fp_model *m = r->model;
    struct fp_renamed *t = &r->stacks;
    if (*id >= m->stacks.n) return fp_unknown_id(err, "the stack of a sample", *id, m->stacks.n);
    int status = climb(&m->stacks, FP_STACK_PARENT, t, *id, err);
    for (; !status && t->n_path; t->n_path--) {
        const uint32_t stack = t->path[t->n_path - 1], *row = fp_table_row(&m->stacks, stack);
        const uint32_t parent = row[FP_STACK_PARENT];
        uint32_t frame = row[FP_STACK_FRAME];
        status = rename_frame(r, &frame, err);
        if (status) return status;
        const uint32_t to = fp_model_stack(m, parent ? t->to[parent] : 0, frame);
        if (to == FP_NO_ID) return no_memory(err);
        t->to[stack] = to;
    }
    if (!status && *id) *id = t->to[*id];
    return status;
}

static int rename_graph_row(struct fp_rename *r, struct fp_batch *b, uint32_t i, struct fp_err *err) {
    uint32_t function = b->function[i], callee = b->callee[i], file = b->file[i], target_file = b->target_file[i];
    int status = rename_function(r, &function, err);
    if (!status) status = rename_function(r, &callee, err);
    if (!status) status = rename_string(r, FP_RENAME_FILE, &file, err);
    if (!status) status = rename_string(r, FP_RENAME_FILE, &target_file, err);
    if (status) return status;
    b->function[i] = function;
    b->callee[i] = callee;
    b->file[i] = file;
    b->target_file[i] = target_file;
    return FP_DONE;
}

int fp_rename_batch(struct fp_rename *r, struct fp_batch *b, struct fp_err *err) {
    for (; r->row < b->n; r->row++) {
        const uint32_t i = r->row;
        int status = FP_DONE;
        if (b->view == FP_STACKS)
            status = rename_stack(r, &b->stack[i], err);
        else if (b->view == FP_GRAPH)
            status = rename_graph_row(r, b, i, err);
        else if (b->op[i] <= FP_OP_ENTER_ARGS)
            status = rename_function(r, &b->function[i], err);
        if (status) return status;
    }
    r->row = 0;
    return FP_DONE;
}
