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
}

void fp_json_free(struct fp_json_walk *w) {
    fp_buf_free(&w->scratch);
}

uint32_t fp_json_intern(struct fp_json_walk *w, struct fp_strings *strings) {
    size_t n;
    const uint8_t *p = fp_json_plain(&w->json, &w->scratch, &n);
    return p ? fp_strings_intern(strings, p, n) : FP_NO_ID;
}

/* The row of the key: mostly the one after that of the last key. */
static const struct fp_json_row *row_of(struct fp_json_walk *w) {
    static const struct fp_json_row nothing = {0};
    const struct fp_json *j = &w->json;
    struct fp_json_level *level = &w->levels[j->depth];
    const uint32_t first = w->first[level->kind], end = w->first[level->kind + 1];
    uint32_t i = level->row;
    for (uint32_t tried = first; tried < end; tried++) {
        if (++i >= end) i = first;
        const struct fp_json_row *row = &w->shape->rows[i];
        if (row->key && (row->n != j->text_n || memcmp(row->key, j->text, row->n) != 0)) continue;
        level->row = (uint8_t)i;
        return row;
    }
    return &nothing;
}

/* An object or array begins. */
static int open_level(struct fp_json_walk *w, void *to, struct fp_in *in, struct fp_err *err) {
    enum { TRIED = 4 }; /* levels: the outermost one may not fit the window */
    struct fp_json *j = &w->json;
    const uint32_t kind = w->skipped ? 0 : j->token == FP_JSON_OBJECT ? w->row->object : w->row->array;
    if (!kind && !j->depth) return fp_fail(err, FP_E_MALFORMED, in->base + in->pos, "the file is not a JSON object");
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

static int close_level(struct fp_json_walk *w, void *to, struct fp_in *in, struct fp_err *err) {
    if (w->skipped) {
        w->skipped--;
        return 0;
    }
    const struct fp_json_level *level = &w->levels[w->json.depth];
    const int status = w->shape->end(to, level->kind, in, err);
    if (!status) w->row = &w->shape->rows[level[-1].row];
    return status;
}

static int token(struct fp_json_walk *w, void *to, struct fp_in *in, struct fp_err *err) {
    struct fp_json *j = &w->json;
    switch (j->token) {
        case FP_JSON_OBJECT:
        case FP_JSON_ARRAY: return open_level(w, to, in, err);
        case FP_JSON_OBJECT_END:
        case FP_JSON_ARRAY_END: return close_level(w, to, in, err);
        case FP_JSON_KEY:
            if (w->skipped) return 0;
            if (j->escaped && w->unescape && fp_json_unescape(j, &w->scratch)) return fp_no_memory(err);
            w->row = row_of(w);
            return w->shape->key ? w->shape->key(to, fp_json_within(w), in, err) : 0;
        default:
            if (!w->skipped && w->row->value) return w->shape->value(to, w->row->value, in, err);
            return j->depth ? 0 : fp_fail(err, FP_E_MALFORMED, in->base + in->pos, "the file is not a JSON object");
    }
}

int fp_json_walk(struct fp_json_walk *w, void *to, struct fp_in *in, struct fp_err *err) {
    while (!w->over) {
        int status = 0;
        if (w->skipped)
            fp_json_skip(&w->json, in);
        else if (w->row->many && fp_json_between(&w->json))
            status = w->shape->elements(to, w->row->value, in, err);
        if (status) return status;
        status = fp_json_next(&w->json, in, err);
        if (status < 0 && w->lenient) {
            w->bad_end = 1;
            break;
        }
        if (status) return status;
        if (w->json.token == FP_JSON_END) break;
        status = token(w, to, in, err);
        if (status) return status;
        fp_json_take(&w->json, in);
    }
    w->over = 1;
    in->pos = in->n;
    return in->eof ? FP_DONE : FP_MORE;
}
