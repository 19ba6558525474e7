#include "bridges/sums/aggregate.h"

#include "bridges/sums/aggregate_private.h"

struct fp_aggregate *fp_aggregate_new(struct fp_model *model, uint32_t mode) {
    struct fp_aggregate *a = fp_made(sizeof *a);
    a->model = model;
    a->mode = mode;
    a->its = fp_have(calloc(1, sizeof *a->its));
    a->its->order = (struct fp_name_order){.model = model};
    return a;
}

static void free_private(struct fp_aggregate_private *its) {
    fp_release(its->bytes, its->cap);
    fp_buf_free(&its->merged);
    fp_packed_merge_clear(&its->merging);
    fp_packed_merge_clear(&its->chain);
    fp_name_order_clear(&its->order);
    FP_FREE(its->blocks, its->last, its->functions, its->values, its->sorting.rows, its->sorting.values,
            its->sorting.order, its);
}

void fp_aggregate_free(struct fp_aggregate *a) {
    if (a->its) free_private(a->its);
    FP_FREE(a->windows, a);
}

void fp_aggregate_empty(struct fp_aggregate *a) {
    struct fp_aggregate_private *its = a->its;
    if (its->last) memset(its->last, 0, its->cap_last * sizeof *its->last);
    its->n = its->n_blocks = 0;
    its->n_functions = its->next_function = 0;
    its->open.rows = 0;
    a->bytes = 0;
}

/* Makes room for `more` bytes after its->n. */
static void room(struct fp_aggregate_private *its, size_t more) {
    if (FP_LIKELY(more <= its->cap - its->n)) return;
    size_t cap = its->cap ? its->cap : 1 << 16;
    while (cap - its->n < more) {
        if (cap > SIZE_MAX / 2) fp_escape();
        cap *= 2;
    }
    uint8_t *bytes = fp_have(fp_grow(its->bytes, its->cap, cap));
    its->bytes = bytes;
    its->cap = cap;
}

/* ---- blocks ---- */

/* A cursor on the rows of one block in memory. */
static void open_cursor(const struct fp_aggregate_private *its, struct fp_packed_row_cursor *c,
                        const struct fp_aggregate_block *b) {
    c->p = its->bytes + b->at;
    c->end = c->p + b->nbytes;
    c->eof = 1;
}

/* Records the block that ends at its->n.  FP_AGGREGATE_RUNS blocks of one level are merged into one. */
static int add_block(struct fp_aggregate *a, uint32_t function, uint64_t at, uint32_t level, struct fp_err *err) {
    struct fp_aggregate_private *its = a->its;
    if (its->n_blocks == UINT32_MAX - 1) fp_escape();
    fp_array_room(&its->blocks, &its->cap_blocks, its->n_blocks + 1, sizeof *its->blocks);
    const uint32_t before = its->last[function];
    struct fp_aggregate_block *b = &its->blocks[its->n_blocks];
    *b = (struct fp_aggregate_block){.at = at, .nbytes = its->n - at, .before = before, .level = level, .alike = 1};
    if (before && its->blocks[before - 1].level == level) b->alike = its->blocks[before - 1].alike + 1;
    its->last[function] = ++its->n_blocks;
    if (b->alike < FP_AGGREGATE_RUNS) return 0;

    struct fp_packed_merge *m = &its->chain;
    fp_packed_merge_begin(m, &its->order, FP_AGGREGATE_RUNS, a->n_columns);
    uint32_t next = its->last[function];
    for (uint32_t i = 0; i < FP_AGGREGATE_RUNS; i++) {
        open_cursor(its, &m->cursors[i], &its->blocks[next - 1]);
        next = its->blocks[next - 1].before;
    }
    its->last[function] = next;
    its->merged.n = 0;
    int status;
    struct fp_packed_block out = {.rows = 0};
    while ((status = fp_packed_merge_next(m, err)) == FP_FULL) {
        fp_buf_reserve(&its->merged, fp_packed_most(m->n_columns) + FP_PACKED_HEAD + FP_PACKED_SLACK);
        its->merged.n = fp_packed_append(&out, its->order.model, its->merged.p, its->merged.n, &m->row, m->n_columns);
    }
    if (status < 0) return status;
    fp_packed_end(&out, its->merged.p);
    room(its, its->merged.n + FP_PACKED_SLACK);
    at = its->n;
    memcpy(its->bytes + at, its->merged.p, its->merged.n);
    its->n += its->merged.n;
    return add_block(a, function, at, level + 1, err);
}

/* Merges adjacent ascending runs until one is left; returns the array that contains it. */
static struct fp_packed_row **merge_sort(const struct fp_name_order *o, struct fp_packed_row **from,
                                         struct fp_packed_row **to, uint32_t n) {
    for (;;) {
        uint32_t out = 0, runs = 0;
        for (uint32_t i = 0; i < n; runs++) {
            uint32_t mid = i + 1;
            while (mid < n && fp_packed_row_compare(o, from[mid - 1], from[mid]) <= 0) mid++;
            uint32_t end = mid < n ? mid + 1 : n, left = i, right = mid;
            while (end < n && fp_packed_row_compare(o, from[end - 1], from[end]) <= 0) end++;
            while (left < mid && right < end)
                to[out++] = fp_packed_row_compare(o, from[right], from[left]) < 0 ? from[right++] : from[left++];
            while (left < mid) to[out++] = from[left++];
            while (right < end) to[out++] = from[right++];
            i = end;
        }
        struct fp_packed_row **swap = from;
        from = to;
        to = swap;
        if (runs <= 1) return from;
    }
}

/* Sorts the open block in place, and sums rows of the same place. */
static int sort_open(struct fp_aggregate *a, struct fp_err *err) {
    struct fp_aggregate_private *its = a->its;
    struct fp_aggregate_sorting *s = &its->sorting;
    const uint32_t n = its->open.rows, n_columns = its->open.n_columns;
    fp_array_room(&s->rows, &s->cap_rows, n, sizeof *s->rows);
    fp_array_room(&s->order, &s->cap_order, 2 * (uint64_t)n, sizeof *s->order);
    fp_array_room(&s->values, &s->cap_values, (uint64_t)n * n_columns + 1, sizeof *s->values);
    const uint8_t *p = its->bytes + its->open.at + FP_PACKED_HEAD;
    struct fp_packed_before before = {.file = fp_file_of_function(a->model, its->open.function)};
    for (uint32_t i = 0; i < n; i++) {
        s->rows[i].function = its->open.function;
        s->rows[i].values = s->values + (size_t)i * n_columns;
        p = fp_packed_take(p, &before, &s->rows[i], n_columns);
        s->order[i] = &s->rows[i];
    }
    struct fp_packed_row **order = merge_sort(&its->order, s->order, s->order + n, n);
    struct fp_packed_block out = {.rows = 0};
    its->n = its->open.at;
    for (uint32_t i = 0, next; i < n; i = next) {
        for (next = i + 1; next < n && !fp_packed_row_compare(&its->order, order[i], order[next]); next++)
            if (fp_packed_row_add(order[i], order[next], n_columns, err)) return FP_E_OVERFLOW;
        room(its, fp_packed_most(n_columns) + FP_PACKED_HEAD + FP_PACKED_SLACK);
        its->n = fp_packed_append(&out, a->model, its->bytes, its->n, order[i], n_columns);
    }
    fp_packed_end(&out, its->bytes);
    return 0;
}

/* Ends the open block, if there is one. */
static int close_block(struct fp_aggregate *a, struct fp_err *err) {
    struct fp_aggregate_private *its = a->its;
    if (!its->open.rows) return 0;
    int status = 0;
    if (its->open.unsorted) {
        status = sort_open(a, err);
    } else {
        const uint32_t head[3] = {its->open.function, its->open.rows, its->open.n_columns};
        memcpy(its->bytes + its->open.at, head, sizeof head);
    }
    its->open.rows = 0;
    if (status) return status;
    status = add_block(a, its->open.function, its->open.at, 0, err);
    a->bytes = its->n + its->n_blocks * sizeof *its->blocks;
    return status;
}

/* ---- adding ---- */

/* The function for rows of lines: without an object, defined in the row's file. */
static uint32_t line_function(struct fp_model *m, uint32_t function, uint32_t file) {
    const uint32_t *f = fp_table_row(&m->functions, function);
    if (!f[FP_FUNCTION_OBJECT] && f[FP_FUNCTION_FILE] == file && !f[FP_FUNCTION_SYSTEM_NAME] && !f[FP_FUNCTION_LINE])
        return function;
    return fp_model_function(m, 0, file, f[FP_FUNCTION_NAME], 0, 0);
}

static inline void load(const struct fp_batch *in, uint32_t i, uint32_t mode, struct fp_packed_row *row) {
    const uint32_t kind = in->kind[i];
    row->kind = kind;
    row->file = in->file[i];
    row->line = in->line[i];
    if (mode == FP_AGGREGATE_LINES) return;
    row->address = in->address[i];
    row->bb = in->bb[i];
    row->callee = row->target_file = row->target_line = 0;
    row->target_address = row->target_bb = row->count = row->count2 = 0;
    if (kind == FP_COST) return;
    if (kind == FP_BLOCK) {
        row->line = 0;
        row->address = row->bb = 0;
        return;
    }
    row->callee = in->callee[i];
    row->target_file = kind == FP_CALL ? 0 : in->target_file[i];
    row->target_line = in->target_line[i];
    row->target_address = in->target_address[i];
    row->target_bb = in->target_bb[i];
    row->count = in->count[i];
    row->count2 = kind == FP_JCND ? in->count2[i] : 0;
}

/* Whether the row sorts after the previous one, as most do: the fast path. */
static inline int ascends(const struct fp_name_order *o, const struct fp_packed_row *before,
                          const struct fp_packed_row *row) {
    if (FP_LIKELY(row->kind == FP_COST && before->file == row->file && before->address == row->address &&
                  before->bb == row->bb && before->line < row->line && before->kind != FP_BLOCK))
        return 1;
    return fp_packed_row_compare(o, before, row) < 0;
}

int fp_aggregate_set_values(struct fp_aggregate *a, uint32_t n, struct fp_err *err) {
    struct fp_aggregate_private *its = a->its;
    if (n <= a->n_columns) return 0;
    if (close_block(a, err)) return err->code; /* the number of columns of a block is fixed */
    int64_t *values = fp_have(realloc(its->values, n * sizeof *values));
    its->values = values;
    a->n_columns = n;
    return 0;
}

int fp_aggregate_calls(const struct fp_batch *b) {
    int found = 0;
    for (uint32_t i = 0; i < b->n && found < 2; i++)
        if (b->kind[i] == FP_CALL) found = b->count[i] ? 2 : 1;
    return found;
}

int fp_aggregate_put(struct fp_aggregate *a, const struct fp_batch *in, const uint32_t *columns, struct fp_err *err) {
    struct fp_aggregate_private *its = a->its;
    uint32_t want = a->n_columns;
    for (uint32_t k = 0; k < in->n_values; k++)
        if (columns[k] >= want) want = columns[k] + 1;
    if (want > a->n_columns && fp_aggregate_set_values(a, want, err)) return err->code;
    const size_t most = fp_packed_most(want) + FP_PACKED_HEAD + FP_PACKED_SLACK;
    if (want) memset(its->values, 0, want * sizeof *its->values);

    struct fp_packed_row *row = &its->open.row, *before = &its->open.row_before;
    row->values = before->values = its->values;
    uint32_t from_function = 0, from_file = 0, to_function = 0; /* the last one looked up */
    for (uint32_t i = 0; i < in->n; i++) {
        uint32_t function = in->function[i];
        if (a->mode == FP_AGGREGATE_LINES) {
            if (in->kind[i] != FP_COST) {
                a->dropped += in->kind[i] != FP_BLOCK;
                continue;
            }
            if (function != from_function || in->file[i] != from_file || !to_function) {
                from_function = function;
                from_file = in->file[i];
                to_function = line_function(a->model, function, from_file);
            }
            function = to_function;
        }
        if (function != its->open.function || !its->open.rows || its->open.rows == FP_AGGREGATE_BLOCK) {
            if (close_block(a, err)) return err->code;
            fp_array_zeroed(&its->last, &its->cap_last, (uint64_t)function + 1, sizeof *its->last);
            its->open.function = row->function = before->function = function;
            its->open.at = its->n;
            its->open.n_columns = want;
            its->open.unsorted = 0;
            its->open.packed = (struct fp_packed_before){.file = fp_file_of_function(a->model, function)};
            room(its, most);
            its->n += FP_PACKED_HEAD;
        }
        load(in, i, a->mode, row);
        if (row->kind == FP_BLOCK) row->file = its->open.packed.file;
        if (its->open.rows && !its->open.unsorted) its->open.unsorted = !ascends(&its->order, before, row);
        if (row->kind <= FP_CALL)
            for (uint32_t k = 0; k < in->n_values; k++) its->values[columns[k]] = in->values[(size_t)k * in->cap + i];
        room(its, most);
        its->n = (size_t)(fp_packed_put(its->bytes + its->n, &its->open.packed, row, want) - its->bytes);
        its->open.rows++;
        struct fp_packed_row *swap = row;
        row = before;
        before = swap;
    }
    /* the next batch continues after the last row of this one */
    if (before != &its->open.row_before) its->open.row_before = *before;
    a->bytes = its->n + its->n_blocks * sizeof *its->blocks;
    return 0;
}

int fp_aggregate_in_order(struct fp_aggregate *a, struct fp_batch *b) {
    struct fp_aggregate_private *its = a->its;
    for (uint32_t i = 0; i < b->n; i++) {
        if (b->kind[i] != FP_COST) return 0;
        if (!its->any || b->function[i] != its->last_function || b->file[i] != its->last_file) {
            const uint32_t booked = line_function(a->model, b->function[i], b->file[i]);
            if (its->any && fp_name_order_functions(&its->order, its->last_booked, booked) >= 0) return 0;
            its->any = 1;
            its->last_function = b->function[i];
            its->last_file = b->file[i];
            its->last_booked = booked;
        } else if (b->line[i] <= its->last_line) {
            return 0;
        }
        its->last_line = b->line[i];
        b->function[i] = its->last_booked;
    }
    return 1;
}

int fp_aggregate_move(struct fp_aggregate *a, const uint32_t *to, uint32_t n, struct fp_err *err) {
    struct fp_aggregate_private *its = a->its;
    const uint32_t n_functions = a->model->functions.n;
    if (close_block(a, err)) return err->code;
    for (uint32_t f = 0; f < n && f < its->cap_last; f++) {
        if (!to[f] || to[f] == f || !its->last[f]) continue;
        if (to[f] >= n_functions) return fp_unknown_id(err, "a function", to[f], n_functions);
        fp_array_zeroed(&its->last, &its->cap_last, (uint64_t)to[f] + 1, sizeof *its->last);
        /* a block's head begins with its function, and rows in its file do not name the file */
        uint32_t *end = &its->last[f];
        for (; *end; end = &its->blocks[*end - 1].before)
            memcpy(its->bytes + its->blocks[*end - 1].at, &to[f], sizeof to[f]);
        *end = its->last[to[f]];
        its->last[to[f]] = its->last[f];
        its->last[f] = 0;
    }
    return 0;
}

/* ---- output ---- */

/* Collects the functions that have rows, sorted, in its->functions. */
static void order_functions(struct fp_aggregate_private *its) {
    const struct fp_name_order *o = &its->order;
    const uint32_t n = its->cap_last < o->n_functions ? its->cap_last : o->n_functions;
    uint32_t *functions = fp_have(realloc(its->functions, ((size_t)o->n_functions + 1) * sizeof *functions));
    its->functions = functions;
    memset(functions, 0xff, (size_t)o->n_functions * sizeof *functions);
    for (uint32_t f = 0; f < n; f++)
        if (its->last[f]) functions[o->rank_of_function[f]] = f;
    uint32_t found = 0;
    for (uint32_t i = 0; i < o->n_functions; i++)
        if (functions[i] != UINT32_MAX) functions[found++] = functions[i];
    its->n_functions = found;
    its->next_function = 0;
}

int fp_aggregate_finish(struct fp_aggregate *a, struct fp_err *err) {
    struct fp_aggregate_private *its = a->its;
    if (close_block(a, err)) return err->code;
    its->from_runs = its->in_function = its->held = 0;
    fp_name_order_rank(&its->order);
    order_functions(its);
    fp_packed_merge_begin(&its->merging, &its->order, 0, a->n_columns);
    return 0;
}

int fp_aggregate_merge(struct fp_aggregate *a, uint32_t n) {
    struct fp_aggregate_private *its = a->its;
    fp_name_order_rank(&its->order);
    fp_packed_merge_begin(&its->merging, &its->order, n, a->n_columns);
    free(a->windows);
    a->windows = NULL;
    a->windows = fp_have(calloc((size_t)n + 1, sizeof *a->windows));
    its->from_runs = 1;
    its->held = 0;
    return 0;
}

size_t fp_aggregate_room(const struct fp_aggregate *a) {
    return fp_packed_most(a->n_columns) + FP_PACKED_HEAD + FP_PACKED_SLACK;
}

/* The next summed row, into m->row: FP_FULL, FP_MORE, FP_DONE or an error. */
static int next_row(struct fp_aggregate *a, struct fp_err *err) {
    struct fp_aggregate_private *its = a->its;
    struct fp_packed_merge *m = &its->merging;
    if (its->from_runs) {
        if (m->to_refill != UINT32_MAX) {
            const struct fp_aggregate_window *w = &a->windows[m->to_refill];
            m->cursors[m->to_refill].p = w->p + w->pos;
            m->cursors[m->to_refill].end = w->p + w->n;
            m->cursors[m->to_refill].eof = w->eof;
            m->to_refill = UINT32_MAX;
        }
        int status = fp_packed_merge_next(m, err);
        if (status == FP_MORE) {
            struct fp_aggregate_window *w = &a->windows[m->to_refill];
            const uint8_t *p = m->cursors[m->to_refill].p;
            a->to_refill = m->to_refill;
            w->pos = p ? (size_t)(p - w->p) : 0; /* no window before the first refill */
        }
        return status;
    }
    for (;;) {
        int status = its->in_function ? fp_packed_merge_next(m, err) : FP_DONE;
        if (status != FP_DONE) return status;
        its->in_function = 0;
        if (its->next_function == its->n_functions) return FP_DONE;
        const uint32_t last = its->last[its->functions[its->next_function++]];
        uint32_t n = 0;
        for (uint32_t b = last; b; b = its->blocks[b - 1].before) n++;
        fp_packed_merge_begin(m, &its->order, n, a->n_columns);
        n = 0;
        for (uint32_t b = last; b; b = its->blocks[b - 1].before)
            open_cursor(its, &m->cursors[n++], &its->blocks[b - 1]);
        its->in_function = 1;
    }
}

/* The single block of the next function, if it has just one and its output has not begun. */
static const struct fp_aggregate_block *only_block(const struct fp_aggregate_private *its) {
    if (its->from_runs || its->in_function || its->next_function == its->n_functions) return NULL;
    const struct fp_aggregate_block *b = &its->blocks[its->last[its->functions[its->next_function]] - 1];
    return b->before ? NULL : b;
}

static void give(struct fp_batch *out, const struct fp_packed_row *row, uint32_t n_columns) {
    const uint32_t i = out->n++;
    out->kind[i] = (uint8_t)row->kind;
    out->function[i] = row->function;
    out->file[i] = row->file;
    out->line[i] = row->line;
    out->address[i] = row->address;
    out->bb[i] = row->bb;
    out->callee[i] = row->callee;
    out->target_file[i] = row->target_file;
    out->target_line[i] = row->target_line;
    out->target_address[i] = row->target_address;
    out->target_bb[i] = row->target_bb;
    out->count[i] = row->count;
    out->count2[i] = row->count2;
    for (uint32_t k = 0; k < n_columns; k++) out->values[(size_t)k * out->cap + i] = row->values[k];
}

int fp_aggregate_pull(struct fp_aggregate *a, struct fp_batch *out, struct fp_err *err) {
    struct fp_aggregate_private *its = a->its;
    struct fp_packed_row *row = &its->merging.row;
    fp_batch_set_values(out, a->n_columns);
    for (;;) {
        if (out->cap - out->n < 2) return FP_FULL; /* a held row and the next */
        int status = next_row(a, err);
        if (status < 0 || status == FP_MORE) return status;
        /* functions with other rows need no row that only names them */
        if (its->held && (status == FP_DONE || row->function != its->held_function)) {
            const uint32_t file = fp_file_of_function(a->model, its->held_function);
            int64_t *zeros = its->merging.values; /* zeros: a row without values */
            give(out,
                 &(struct fp_packed_row){
                     .function = its->held_function, .file = file, .kind = FP_BLOCK, .values = zeros},
                 0);
            for (uint32_t k = 0; k < a->n_columns; k++) out->values[(size_t)k * out->cap + out->n - 1] = 0;
        }
        its->held = 0;
        if (status == FP_DONE) return FP_DONE;
        if (row->kind == FP_BLOCK) {
            its->held = 1;
            its->held_function = row->function;
        } else {
            give(out, row, a->n_columns);
        }
    }
}

int fp_aggregate_spill(struct fp_aggregate *a, uint8_t *to, size_t *at, size_t n, struct fp_err *err) {
    struct fp_packed_block out = {.rows = 0};
    int status = FP_FULL;
    while (n - *at >= fp_aggregate_room(a)) {
        const struct fp_aggregate_block *only = only_block(a->its);
        if (only && only->nbytes <= n - FP_PACKED_SLACK) { /* unchanged */
            fp_packed_end(&out, to);
            if (only->nbytes > n - *at) return FP_FULL;
            memcpy(to + *at, a->its->bytes + only->at, only->nbytes);
            *at += only->nbytes;
            a->its->next_function++;
            continue;
        }
        if ((status = next_row(a, err)) != FP_FULL) break;
        *at = fp_packed_append(&out, a->model, to, *at, &a->its->merging.row, a->n_columns);
    }
    fp_packed_end(&out, to);
    return status;
}
