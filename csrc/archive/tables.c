/* The model's tables as a payload.  See docs/formats/archive.md, "Tables". */
#include "archive/private.h"
#include "archive/row_layout.h"

static void init(struct fp_archive_ids *ids, struct fp_model *m) {
    ids->model = m;
    fp_table_init(&ids->inputs, 1);
    ids->stacks = fp_have(calloc(1, sizeof *ids->stacks));
    for (unsigned i = 0; i < FP_ARCHIVE_TABLES; i++) {
        ids->to[i] = fp_have(calloc(64, sizeof **ids->to));
        ids->cap[i] = 64;
        ids->n[i] = 1;
    }
}

struct fp_archive_ids *fp_archive_ids_new(struct fp_model *m) {
    struct fp_archive_ids *ids = fp_made(sizeof *ids);
    init(ids, m);
    return ids;
}

void fp_archive_ids_begin(struct fp_archive_ids **to, struct fp_model *m) {
    init(*to = fp_have(calloc(1, sizeof **to)), m);
}

void fp_archive_ids_free(struct fp_archive_ids *ids) {
    if (!ids) return;
    for (unsigned i = 0; i < FP_ARCHIVE_TABLES; i++) free(ids->to[i]);
    fp_table_clear(&ids->inputs);
    if (ids->stacks) fp_own_stacks_free(ids->stacks);
    FP_FREE(ids->model_inputs, ids->stacks, ids);
}

/* Records that the archive's next id of a table is `id` in the model. */
static void add_id(struct fp_archive_ids *ids, unsigned table, uint32_t id) {
    uint32_t n = ids->n[table];
    *FP_AT(ids->to[table], ids->cap[table], n) = id;
    ids->n[table]++;
    ids->differ |= id != n;
}

/* The model's number for input `own` of the archive, which is created at its first use. */
static uint32_t input_of(struct fp_archive_ids *ids, uint32_t own) {
    const uint32_t known = ids->inputs.n, id = fp_table_intern(&ids->inputs, &own);
    fp_array_room(&ids->model_inputs, &ids->cap_inputs, (uint64_t)id + 1, sizeof *ids->model_inputs);
    if (id == known) ids->model_inputs[id] = fp_model_input(ids->model);
    return ids->model_inputs[id];
}

int fp_archive_tables_write(const struct fp_model *m, uint32_t *from, uint32_t forgotten, struct fp_buf *out) {
    const struct fp_strings *s = &m->strings;
    if (forgotten > FP_NO_ID - m->stacks.n) return FP_E_OVERFLOW;
    fp_buf_varint(out, from[0]);
    fp_buf_varint(out, s->n - from[0]);
    for (uint32_t i = from[0]; i < s->n; i++) fp_buf_varint(out, s->start[i + 1] - s->start[i]);
    fp_buf_put(out, s->bytes + s->start[from[0]], (size_t)(s->start[s->n] - s->start[from[0]]));
    from[0] = s->n;
    for (unsigned k = 0; k < FP_ARCHIVE_TABLES - 1; k++) {
        const struct fp_table *t = fp_archive_table_of((struct fp_model *)m, k);
        const uint32_t first = from[k + 1], before = k + 1 == FP_T_STACKS ? forgotten : 0;
        fp_buf_varint(out, first + before);
        fp_buf_varint(out, t->n - first);
        uint32_t at = 0;
        for (const uint8_t *word = shapes[k]; *word != FP_SHAPE_END; word++) {
            uint64_t last = 0;
            for (uint32_t i = first; i < t->n; i++) {
                const uint32_t *row = fp_table_row(t, i) + at;
                uint64_t v = *word == FP_SHAPE_WIDE ? fp_words_u64(row) : *row;
                if (before && v && fp_archive_target_of(*word, k + 1) == FP_T_STACKS) v += before;
                fp_buf_varint(out, fp_zig(v - last));
                last = v;
            }
            at += *word == FP_SHAPE_WIDE ? 2 : 1;
        }
        from[k + 1] = t->n;
    }
    return 0;
}

static int malformed(struct fp_err *err, const uint8_t *p, const struct fp_cursor *c, const char *what) {
    return fp_fail(err, FP_E_MALFORMED, (uint64_t)(c->p - p), what);
}

static int read_strings(struct fp_archive_ids *ids, const uint8_t *p, struct fp_cursor *c, struct fp_err *err) {
    uint32_t first = fp_archive_u32(c), n = fp_archive_u32(c);
    if (c->status || first != ids->n[FP_T_STRINGS] || n > (size_t)(c->end - c->p))
        return malformed(err, p, c, "range of strings");
    struct fp_cursor lengths = *c;
    for (uint32_t i = 0; i < n; i++) fp_cursor_number(c);
    for (uint32_t i = 0; i < n; i++) {
        uint64_t length = fp_cursor_number(&lengths);
        if (c->status || length > (size_t)(c->end - c->p)) return malformed(err, p, c, "length of a string");
        add_id(ids, FP_T_STRINGS, fp_strings_intern(&ids->model->strings, c->p, (size_t)length));
        c->p += length;
    }
    return 0;
}

/* Keeps the archive's next stack, until a row needs it. */
static void keep_stack(struct fp_archive_ids *ids, const uint32_t *row) {
    fp_own_stacks_add(ids->stacks, row[FP_STACK_PARENT], row[FP_STACK_FRAME]);
    ids->n[FP_T_STACKS]++;
    ids->differ = 1;
}

/* The payload has one column after the other.  One cursor per column reads them in parallel, row by row. */
static int read_table(struct fp_archive_ids *ids, unsigned k, const uint8_t *p, struct fp_cursor *c,
                      struct fp_err *err) {
    const unsigned own = k + 1;
    uint32_t first = fp_archive_u32(c), n = fp_archive_u32(c), columns = fp_archive_columns_of(k);
    const uint32_t before = own == FP_T_STACKS ? ids->forgotten : 0;
    if (c->status || first != (uint64_t)ids->n[own] + before || n > (size_t)(c->end - c->p) / columns ||
        n > FP_NO_ID - first)
        return malformed(err, p, c, "range of a table");
    struct fp_cursor column[6];
    uint64_t last[6] = {0};
    for (uint32_t j = 0; j < columns; j++) {
        column[j] = *c;
        for (uint32_t i = 0; i < n; i++) fp_cursor_number(c);
    }
    if (c->status) return malformed(err, p, c, "column of a table");
    const int keeps = own == FP_T_STACKS && ids->renews_stacks;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t row[8], at = 0;
        for (uint32_t j = 0; j < columns; j++) {
            uint8_t word = shapes[k][j];
            uint64_t v = last[j] += fp_zag(fp_cursor_number(&column[j]));
            unsigned target = fp_archive_target_of(word, own);
            if (word == FP_SHAPE_WIDE) {
                row[at++] = (uint32_t)v;
                row[at++] = (uint32_t)(v >> 32);
            } else if (word == FP_SHAPE_NUMBER) {
                if (v > UINT32_MAX) return malformed(err, p, &column[j], "number in a table");
                row[at++] = (uint32_t)v;
            } else {
                if (before && v && target == own) v = v > before ? v - before : UINT64_MAX;
                if (v >= ids->n[target]) return malformed(err, p, &column[j], "reference in a table");
                row[at++] = keeps && target == own ? (uint32_t)v : ids->to[target][v];
            }
        }
        if (own == FP_T_THREADS) row[FP_THREAD_INPUT] = input_of(ids, row[FP_THREAD_INPUT]);
        if (keeps)
            keep_stack(ids, row);
        else if (ids->appends)
            add_id(ids, own, fp_table_append(fp_archive_table_of(ids->model, k), row));
        else if (own == FP_T_FUNCTIONS)
            add_id(ids, own, fp_model_function_row(ids->model, row));
        else
            add_id(ids, own, fp_table_intern(fp_archive_table_of(ids->model, k), row));
    }
    return 0;
}

void fp_archive_ids_forget(struct fp_archive_ids *ids) {
    ids->forgotten += ids->n[FP_T_STACKS] - 1;
    ids->n[FP_T_STACKS] = 1;
    fp_own_stacks_empty(ids->stacks);
}

int fp_archive_tables_read(struct fp_archive_ids *ids, const uint8_t *p, size_t n, struct fp_err *err) {
    struct fp_cursor c = {.p = p, .end = p + n};
    int status = read_strings(ids, p, &c, err);
    for (unsigned k = 0; k < FP_ARCHIVE_TABLES - 1 && !status; k++) status = read_table(ids, k, p, &c, err);
    if (!status && c.p != c.end) return malformed(err, p, &c, "end of the tables");
    return status;
}
