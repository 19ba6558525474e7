#include "bridges/rows/pair.h"

static uint32_t counterpart(const struct fp_pair *p, uint32_t function) {
    return function < p->n_to_function ? p->to_function[function] : 0;
}

/* Replaces a function by its counterpart, which has its own file and object. */
static int replaced(void *arg, uint32_t *function) {
    const uint32_t to = counterpart(arg, *function);
    if (to) *function = to;
    return to != 0;
}

static const uint32_t *frame_of(void *arg, uint32_t frame, uint32_t *n) {
    const struct fp_pair *p = arg;
    *n = 1;
    return frame < p->n_frames && p->to_frame[frame] ? &p->to_frame[frame] : NULL;
}

static int file_of(void *arg, enum fp_remap_role role, uint32_t *id, struct fp_err *err) {
    const struct fp_pair *p = arg;
    if (role != FP_REMAP_ROW_FILE) return 0;
    if (*id >= p->model->strings.n) return fp_unknown_id(err, "the name of a file", *id, p->model->strings.n);
    if (*id < p->cap_to_file && p->to_file[*id]) *id = p->to_file[*id];
    return 0;
}

struct fp_pair *fp_pair_new(struct fp_model *model) {
    struct fp_pair *p = fp_made(sizeof *p);
    p->model = model;
    p->ids = fp_have(fp_remap_new_hooked(model, (struct fp_remap_hooks){p, file_of, replaced, NULL, frame_of}));
    return p;
}

void fp_pair_free(struct fp_pair *p) {
    fp_table_clear(&p->rows);
    fp_remap_free(p->ids);
    FP_FREE(p->functions, p->files, p->left, p->objects, p->to_function, p->to_file, p->stacks, p->to_frame, p->chain,
            p);
}

/* Sets a bit of an item of a table with `n` items. */
static int mark(uint8_t **marks, uint32_t *cap, uint32_t id, uint32_t n, uint8_t bit, const char *what,
                struct fp_err *err) {
    if (FP_UNLIKELY(id >= *cap)) {
        if (id >= n) return fp_unknown_id(err, what, id, n);
        fp_array_zeroed(marks, cap, n, 1);
    }
    (*marks)[id] |= bit;
    return FP_DONE;
}

static int mark_function(struct fp_pair *p, uint32_t id, uint8_t bit, struct fp_err *err) {
    return mark(&p->functions, &p->n_functions, id, p->model->functions.n, bit, "a function", err);
}

/* Marks the functions of a stack, up to the first caller that is already marked. */
static int mark_stack(struct fp_pair *p, uint32_t node, uint8_t bit, struct fp_err *err) {
    const struct fp_model *m = p->model;
    int status = FP_DONE;
    while (node && status == FP_DONE) {
        if (node < p->cap_stacks && p->stacks[node] & bit) break;
        status = mark(&p->stacks, &p->cap_stacks, node, m->stacks.n, bit, "the stack of a sample", err);
        if (status != FP_DONE) break;
        const uint32_t *row = fp_table_row(&m->stacks, node);
        if (row[FP_STACK_FRAME] >= m->frames.n)
            return fp_unknown_id(err, "the frame of a stack", row[FP_STACK_FRAME], m->frames.n);
        uint32_t line = fp_table_row(&m->frames, row[FP_STACK_FRAME])[FP_FRAME_LINES];
        while (line && status == FP_DONE) {
            if (line >= m->lines.n) return fp_unknown_id(err, "the lines of a frame", line, m->lines.n);
            const uint32_t *its = fp_table_row(&m->lines, line);
            status = mark_function(p, its[FP_LINE_FUNCTION], bit, err);
            if (its[FP_LINE_OUTER] >= line) break; /* outer entries have lower ids */
            line = its[FP_LINE_OUTER];
        }
        if (row[FP_STACK_PARENT] >= node) break;
        node = row[FP_STACK_PARENT];
    }
    return status;
}

static int mark_row(struct fp_pair *p, const struct fp_batch *b, uint32_t i, uint8_t bit, struct fp_err *err) {
    const uint32_t n = p->model->strings.n;
    const int has_target = b->kind[i] != FP_COST && b->kind[i] != FP_BLOCK;
    int status = mark_function(p, b->function[i], bit, err);
    if (status == FP_DONE) status = mark(&p->files, &p->n_files, b->file[i], n, bit, "a file", err);
    if (status == FP_DONE && has_target) status = mark_function(p, b->callee[i], bit, err);
    if (status == FP_DONE && has_target)
        status = mark(&p->files, &p->n_files, b->target_file[i], n, bit, "a file", err);
    return status;
}

int fp_pair_note(struct fp_pair *p, const struct fp_batch *b, uint32_t side, struct fp_err *err) {
    const uint8_t bit = (uint8_t)(1u << side);
    int status = FP_DONE;
    if (p->n_emptied != p->model->n_emptied && p->cap_stacks) memset(p->stacks, 0, p->cap_stacks);
    p->n_emptied = p->model->n_emptied;
    for (uint32_t i = 0; i < b->n && status == FP_DONE; i++)
        status = b->view == FP_STACKS ? mark_stack(p, b->stack[i], bit, err) : mark_row(p, b, i, bit, err);
    return status;
}

int fp_pair_function(struct fp_pair *p, uint32_t from, uint32_t to) {
    *FP_AT(p->to_function, p->n_to_function, from) = to;
    p->n_replaced++;
    return 0;
}

int fp_pair_file(struct fp_pair *p, uint32_t from, uint32_t to) {
    *FP_AT(p->to_file, p->cap_to_file, from) = to;
    p->n_replaced++;
    return 0;
}

void fp_pair_functions(const struct fp_pair *p, uint32_t *functions, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t to = counterpart(p, functions[i]);
        if (to) functions[i] = to;
    }
}

/* The line chain with its functions replaced by their counterparts; sets *any, and *object to that of one of them, if
 * there is a counterpart. */
static uint32_t lines_of(struct fp_pair *p, uint32_t line, uint32_t *object, int *any) {
    struct fp_model *m = p->model;
    uint32_t n = 0, to = 0;
    while (line && line < m->lines.n) {
        FP_PUSH(p->chain, n, p->cap_chain) = line;
        const uint32_t *row = fp_table_row(&m->lines, line);
        const uint32_t other = counterpart(p, row[FP_LINE_FUNCTION]);
        if (other) {
            *any = 1;
            *object = fp_table_row(&m->functions, other)[FP_FUNCTION_OBJECT];
        }
        line = row[FP_LINE_OUTER] < line ? row[FP_LINE_OUTER] : 0;
    }
    while (*any && n) { /* outer entries first */
        uint32_t row[FP_LINE_WIDTH];
        memcpy(row, fp_table_row(&m->lines, p->chain[--n]), sizeof row);
        replaced(p, &row[FP_LINE_FUNCTION]);
        to = fp_model_line(m, row[FP_LINE_FUNCTION], row[FP_LINE_LINE], row[FP_LINE_COLUMN], to);
    }
    return to;
}

int fp_pair_frames(struct fp_pair *p) {
    struct fp_model *m = p->model;
    const uint32_t n = p->cap_stacks ? m->frames.n : 0;                        /* 0: no row refers to frames */
    uint32_t *mapping = fp_scratch((size_t)m->objects.n + 1, sizeof *mapping); /* by object: its first mapping */
    uint32_t cap = 0;
    fp_array_zeroed(&p->to_frame, &cap, n, sizeof *p->to_frame);
    for (uint32_t i = m->mappings.n; i-- > 1;) {
        const uint32_t object = fp_table_row(&m->mappings, i)[FP_MAPPING_OBJECT];
        if (object < m->objects.n) mapping[object] = i;
    }
    p->n_frames = n;
    for (uint32_t i = 1; i < n; i++) {
        uint32_t row[FP_FRAME_WIDTH], object = 0;
        int any = 0;
        memcpy(row, fp_table_row(&m->frames, i), sizeof row);
        const uint32_t lines = lines_of(p, row[FP_FRAME_LINES], &object, &any);
        if (any)
            p->to_frame[i] = fp_model_frame(m, object < m->objects.n ? mapping[object] : 0, 0,
                                            row[FP_FRAME_FLAGS] & ~(uint32_t)FP_FRAME_RETURN_ADDRESS, lines);
    }
    return FP_DONE;
}

/* Replaces the file of a row if it is its function's. */
static void own_file(const struct fp_pair *p, uint32_t function, uint32_t *file) {
    const uint32_t to = counterpart(p, function);
    if (to && *file == fp_table_row(&p->model->functions, function)[FP_FUNCTION_FILE])
        *file = fp_table_row(&p->model->functions, to)[FP_FUNCTION_FILE];
}

int fp_pair_batch(struct fp_pair *p, struct fp_batch *b, struct fp_err *err) {
    for (uint32_t i = 0; b->view == FP_GRAPH && i < b->n; i++) {
        own_file(p, b->function[i], &b->file[i]);
        if (b->kind[i] != FP_COST && b->kind[i] != FP_BLOCK) own_file(p, b->callee[i], &b->target_file[i]);
    }
    return fp_remap_batch(p->ids, b, err);
}
