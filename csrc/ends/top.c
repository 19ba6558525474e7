#include "ends/top.h"

enum { COLUMNS = 4, FIRST = 64 };

static void columns_of(struct fp_top_sums *c, int64_t **columns[COLUMNS]) {
    columns[0] = &c->self;
    columns[1] = &c->inclusive;
    columns[2] = &c->calls;
    columns[3] = &c->second;
}

void fp_top_sums_clear(struct fp_top_sums *c) {
    int64_t **columns[COLUMNS];
    columns_of(c, columns);
    for (int k = 0; k < COLUMNS; k++) fp_release(*columns[k], c->cap * sizeof **columns[k]);
    fp_release(c->seen, c->cap);
    memset(c, 0, sizeof *c);
}

void fp_top_room(struct fp_top_sums *c, uint64_t n) {
    if (n <= c->cap) return;
    const uint64_t cap = n < FIRST ? FIRST : n + n / 8; /* a page has them for each value type */
    if (cap > UINT32_MAX) fp_escape();
    /* Grow all arrays or none, because they share their capacity. */
    struct fp_top_sums more = {.cap = (uint32_t)cap};
    int64_t **had[COLUMNS], **to[COLUMNS];
    columns_of(c, had);
    columns_of(&more, to);
    int missing = !(more.seen = fp_grow(NULL, 0, cap));
    for (int k = 0; k < COLUMNS; k++) missing |= !(*to[k] = fp_grow(NULL, 0, cap * sizeof **to[k]));
    if (missing) {
        for (int k = 0; k < COLUMNS; k++)
            if (*to[k]) fp_release(*to[k], cap * sizeof **to[k]);
        if (more.seen) fp_release(more.seen, cap);
        fp_escape();
    }
    for (int k = 0; k < COLUMNS; k++) {
        if (c->cap) memcpy(*to[k], *had[k], c->cap * sizeof **to[k]);
        memset(*to[k] + c->cap, 0, (cap - c->cap) * sizeof **to[k]);
    }
    if (c->cap) memcpy(more.seen, c->seen, c->cap);
    memset(more.seen + c->cap, 0, cap - c->cap);
    fp_top_sums_clear(c);
    *c = more;
}

static int beyond(struct fp_err *err) {
    return fp_fail_beyond(err, "a sum of costs or calls", FP_NO_COLUMN, "2^63 - 1");
}

int fp_top_sums_add(struct fp_top_sums *c, const uint32_t *ids, const int64_t *values, const int64_t *second,
                    uint32_t n, struct fp_err *err) {
    int overflow = 0;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t id = ids[i];
        if (FP_UNLIKELY(id >= c->cap)) fp_top_room(c, (uint64_t)id + 1);
        c->seen[id] = 1;
        overflow |= __builtin_add_overflow(c->self[id], values[i], &c->self[id]);
        if (second) overflow |= __builtin_add_overflow(c->second[id], second[i], &c->second[id]);
    }
    return overflow ? beyond(err) : FP_DONE;
}

int fp_top_graph(struct fp_top_sums *c, const struct fp_model *model, const struct fp_batch *in, int by, int value,
                 int second, int inclusive, struct fp_table *places, struct fp_err *err) {
    const int64_t *const recorded = inclusive < 0 ? NULL : in->values + (size_t)inclusive * in->cap;
    const int64_t *const values = value < 0 ? NULL : in->values + (size_t)value * in->cap;
    const int64_t *const seconds = second < 0 ? NULL : in->values + (size_t)second * in->cap;
    uint32_t last[3] = {0, 0, 0}, id = 0;
    int overflow = 0;
    for (uint32_t i = 0; i < in->n; i++) {
        const uint32_t kind = in->kind[i], function = in->function[i];
        if (kind > (by == FP_TOP_BY_LINE ? FP_CALL : FP_COST)) continue;
        if (by == FP_TOP_BY_FILE) {
            id = in->file[i];
        } else if (by == FP_TOP_BY_OBJECT) {
            if (function >= model->functions.n)
                return fp_unknown_id(err, "the function of a row", function, model->functions.n);
            id = fp_table_row(&model->functions, function)[FP_FUNCTION_OBJECT];
        } else if (!id || in->line[i] != last[2] || function != last[0] || in->file[i] != last[1]) {
            last[0] = function;
            last[1] = in->file[i];
            last[2] = in->line[i];
            id = fp_table_intern(places, last);
        }
        if (FP_UNLIKELY(id >= c->cap)) fp_top_room(c, (uint64_t)id + 1);
        c->seen[id] = 1;
        const int64_t cost = values ? values[i] : 0, with = !recorded ? cost : kind == FP_CALL ? 0 : recorded[i];
        overflow |= __builtin_add_overflow(c->inclusive[id], with, &c->inclusive[id]);
        if (kind == FP_CALL) {
            overflow |= __builtin_add_overflow(c->calls[id], in->count[i], &c->calls[id]);
            continue;
        }
        overflow |= __builtin_add_overflow(c->self[id], cost, &c->self[id]);
        if (seconds) overflow |= __builtin_add_overflow(c->second[id], seconds[i], &c->second[id]);
    }
    return overflow ? beyond(err) : FP_DONE;
}

int fp_top_sums_sum(const struct fp_top_sums *c, const int64_t *key, int64_t *sum, struct fp_err *err) {
    int overflow = 0;
    *sum = 0;
    for (uint32_t i = 0; i < c->cap; i++) overflow |= __builtin_add_overflow(*sum, key[i], sum);
    return overflow ? beyond(err) : FP_DONE;
}

static inline int is_before(const void *nothing, uint64_t a, uint64_t b) {
    (void)nothing;
    return a < b;
}

FP_HEAP(const void *, uint64_t, is_before)

uint32_t fp_top_sums_largest(const struct fp_top_sums *c, const int64_t *key, uint32_t want, uint32_t *ids) {
    uint32_t n_seen = 0, n = 0;
    for (uint32_t i = 0; i < c->cap; i++) n_seen += c->seen[i];
    uint64_t least = 0;
    if (want < n_seen) {
        if (!want) return 0;
        /* the `want` largest so far, the least of them on top */
        uint64_t *heap = calloc(want, sizeof *heap);
        if (!heap) return UINT32_MAX;
        for (uint32_t i = 0; i < c->cap; i++)
            if (c->seen[i] && fp_top_magnitude(key[i]) > heap[0]) {
                heap[0] = fp_top_magnitude(key[i]);
                heap_sink(NULL, heap, want, 0);
            }
        least = heap[0];
        free(heap);
    }
    for (uint32_t i = 0; i < c->cap; i++)
        if (c->seen[i] && fp_top_magnitude(key[i]) >= least) ids[n++] = i;
    return n;
}

int fp_top_sums_zeros(const struct fp_top_sums *c, uint32_t *at, struct fp_batch *out) {
    uint32_t n = 0, i = *at;
    for (; i < c->cap && n < out->cap; i++)
        if (c->seen[i] && !c->self[i]) out->function[n++] = i;
    *at = i;
    out->n = n;
    memset(out->kind, FP_COST, n);
    uint32_t *const words[] = {out->file, out->line, out->callee, out->target_file, out->target_line};
    for (size_t k = 0; k < sizeof words / sizeof *words; k++) memset(words[k], 0, n * sizeof *words[k]);
    uint64_t *const longs[] = {out->address, out->bb, out->target_address, out->target_bb, out->count, out->count2};
    for (size_t k = 0; k < sizeof longs / sizeof *longs; k++) memset(longs[k], 0, n * sizeof *longs[k]);
    for (uint32_t k = 0; k < out->n_values; k++) memset(out->values + (size_t)k * out->cap, 0, n * sizeof *out->values);
    return i < c->cap ? FP_FULL : FP_DONE;
}
