#include "core/json_shape.h"

void fp_json_begin(struct fp_json_walk *w, const struct fp_json_shape *shape) {
    w->json = (struct fp_json){.loose = w->json.loose};
    w->shape = shape;
    w->row = shape->rows;
    w->bad_end = w->over = w->pass = 0;
    w->skipped = 0;
    w->levels[0] = (struct fp_json_level){0};
    for (uint32_t kind = 0, i = 0; kind <= FP_JSON_KINDS; kind++) {
        while (i < shape->n && shape->rows[i].in < kind) i++;
        w->first[kind] = (uint8_t)i;
    }
    for (uint32_t i = 0; i < shape->n; i++) {
        const uint32_t kind = shape->rows[i].in;
        w->next[i] = (uint8_t)(i + 1 < w->first[kind + 1] ? i + 1 : w->first[kind]);
    }
}

void fp_json_free(struct fp_json_walk *w) {
    fp_buf_free(&w->scratch);
}

uint32_t fp_json_intern(struct fp_json_walk *w, struct fp_strings *strings) {
    size_t n;
    const uint8_t *p = fp_json_plain(&w->json, &w->scratch, &n);
    return fp_strings_intern(strings, p, n);
}

static int is_key(const struct fp_json_row *row, const struct fp_json *j) {
    return row->key && row->n == j->text_n && !memcmp(row->key, j->text, row->n);
}

/* The row of the key: mostly the one that followed the last one before. */
static const struct fp_json_row *row_of(struct fp_json_walk *w) {
    static const struct fp_json_row nothing = {0};
    const struct fp_json_row *const rows = w->shape->rows, *any = &nothing;
    struct fp_json_level *level = &w->levels[w->json.depth];
    uint8_t *const next = &w->next[level->row];
    const uint32_t end = w->first[level->kind + 1];
    uint32_t i = *next;
    if (FP_UNLIKELY(!is_key(&rows[i], &w->json))) {
        for (i = w->first[level->kind]; i < end && !is_key(&rows[i], &w->json); i++)
            if (!rows[i].key) any = &rows[i];
        if (i == end) return any;
        *next = (uint8_t)i;
    }
    level->row = (uint8_t)i;
    return &rows[i];
}

static int key(struct fp_json_walk *w, void *to, struct fp_window *in, struct fp_err *err) {
    if (FP_UNLIKELY(w->json.escaped) && w->unescape) fp_json_unescape(&w->json, &w->scratch);
    w->row = row_of(w);
    return w->shape->key ? w->shape->key(to, fp_json_within(w), in, err) : 0;
}

static int not_object(const struct fp_window *in, struct fp_err *err) {
    return fp_fail(err, FP_E_MALFORMED, in->base + in->pos, "the file is not a JSON object");
}

/* An object or array begins. */
static int open_level(struct fp_json_walk *w, void *to, struct fp_window *in, struct fp_err *err) {
    enum { TRIED = 4 }; /* levels: the outermost one may not fit the window */
    struct fp_json *j = &w->json;
    const uint32_t kind = w->skipped ? 0 : j->token == FP_JSON_OBJECT ? w->row->object : w->row->array;
    if (!kind && !j->depth) return not_object(in, err);
    if (kind) {
        const int status = w->shape->begin(to, kind, in, err);
        if (status || j->token == FP_JSON_WORD) return status;
        if (!w->pass && w->first[kind] < w->first[kind + 1]) {
            const struct fp_json_level level = {(uint8_t)kind, (uint8_t)(w->first[kind + 1] - 1)};
            w->levels[j->depth + 1] = level;
            w->row = &w->shape->rows[level.row];
            return 0;
        }
        w->pass = 0;
    }
    const uint8_t *end = w->skipped < TRIED ? fp_json_value(j, in->p + in->pos, in->p + in->n) : NULL;
    if (end)
        fp_json_whole(j, (size_t)(end - in->p));
    else
        w->skipped++;
    return 0;
}

static int close_level(struct fp_json_walk *w, void *to, struct fp_window *in, struct fp_err *err) {
    if (w->skipped) {
        w->skipped--;
        return 0;
    }
    const struct fp_json_level *level = &w->levels[w->json.depth];
    const int status = w->shape->end(to, level->kind, in, err);
    if (!status) w->row = &w->shape->rows[level[-1].row];
    return status;
}

static inline int peek(struct fp_json_walk *w, void *to, struct fp_window *in, struct fp_err *err) {
    if (FP_UNLIKELY(w->skipped)) {
        fp_json_skip(&w->json, in);
    } else if (w->row->many && fp_json_between(&w->json)) {
        FP_TRY(w->shape->elements(to, w->row->value, in, err));
    }
    const int status = fp_json_next(&w->json, in, err);
    w->is_damaged = status < 0;
    return status;
}

static inline int token(struct fp_json_walk *w, void *to, struct fp_window *in, struct fp_err *err) {
    int status = 0;
    switch (w->json.token) {
        case FP_JSON_KEY:
            if (!w->skipped) status = key(w, to, in, err);
            break;
        case FP_JSON_OBJECT:
        case FP_JSON_ARRAY: status = open_level(w, to, in, err); break;
        case FP_JSON_OBJECT_END:
        case FP_JSON_ARRAY_END: status = close_level(w, to, in, err); break;
        default:
            if (w->row->value && !w->skipped)
                status = w->shape->value(to, w->row->value, in, err);
            else if (!w->json.depth)
                status = not_object(in, err);
    }
    if (!status) fp_json_take(&w->json, in);
    return status;
}

int fp_json_peek(struct fp_json_walk *w, void *to, struct fp_window *in, struct fp_err *err) {
    return peek(w, to, in, err);
}

int fp_json_token(struct fp_json_walk *w, void *to, struct fp_window *in, struct fp_err *err) {
    return token(w, to, in, err);
}

int fp_json_run(struct fp_json_walk *w, void *to, struct fp_window *in, struct fp_err *err) {
    for (;;) {
        int status = peek(w, to, in, err);
        if (status || w->json.token == FP_JSON_END) return status;
        status = token(w, to, in, err);
        if (status) return status;
    }
}

int fp_json_walk(struct fp_json_walk *w, void *to, struct fp_window *in, struct fp_err *err) {
    if (!w->over) {
        const int status = fp_json_run(w, to, in, err);
        w->bad_end = status < 0 && w->is_damaged && w->lenient;
        if (status && !w->bad_end) return status;
    }
    w->over = 1;
    in->pos = in->n;
    return in->eof ? FP_DONE : FP_MORE;
}
