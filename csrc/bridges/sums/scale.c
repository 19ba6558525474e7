#include "bridges/sums/scale.h"

__extension__ typedef __int128 i128;

static const char what[] = "a weighted value", calls[] = "a weighted number of calls or jumps", most[] = "2^63 - 1";

struct fp_scale *fp_scale_new(int64_t up, int64_t down) {
    struct fp_scale *s = fp_made(sizeof *s);
    s->up = up;
    s->down = down;
    return s;
}

void fp_scale_free(struct fp_scale *s) {
    FP_FREE(s->rest, s);
}

/* The floor of a * up / down, after `rest` is added to the product; `rest` gets what remains. */
static i128 scaled(const struct fp_scale *s, int64_t a, int64_t *rest) {
    const i128 product = (i128)a * s->up + *rest;
    i128 quotient = product / s->down, left = product % s->down;
    if (left < 0) {
        left += s->down;
        quotient--;
    }
    *rest = (int64_t)left;
    return quotient;
}

static int fits(i128 value) {
    return value >= INT64_MIN && value <= INT64_MAX;
}

static int scale_count(const struct fp_scale *s, uint64_t *count) {
    int64_t half = s->down / 2;
    const i128 value = *count <= INT64_MAX ? scaled(s, (int64_t)*count, &half) : (i128)INT64_MAX + 1;
    if (!fits(value)) return FP_E_OVERFLOW;
    *count = (uint64_t)value;
    return FP_DONE;
}

static int scale_counts(const struct fp_scale *s, struct fp_batch *b) {
    for (uint32_t i = 0; i < b->n; i++) {
        const uint8_t kind = b->kind[i];
        if (kind != FP_CALL && kind != FP_JUMP && kind != FP_JCND) continue;
        if (scale_count(s, &b->count[i]) || (kind == FP_JCND && scale_count(s, &b->count2[i]))) return FP_E_OVERFLOW;
    }
    return FP_DONE;
}

int fp_scale_batch(struct fp_scale *s, struct fp_batch *b, struct fp_err *err) {
    const int is_graph = b->view == FP_GRAPH;
    fp_array_zeroed(&s->rest, &s->n_rest, b->n_values, sizeof *s->rest);
    for (uint32_t i = 0; s->by_label && i < b->n; i++)
        if (b->label[i] >= s->n_by_label)
            return fp_unknown_id(err, "the labels of a sample", b->label[i], s->n_by_label);
    for (uint32_t k = 0; k < b->n_values; k++) {
        int64_t *values = b->values + (size_t)k * b->cap;
        for (uint32_t i = 0; i < b->n; i++) {
            if (is_graph && b->kind[i] != FP_COST && b->kind[i] != FP_CALL) continue;
            int64_t half = s->down / 2;
            i128 value = scaled(s, values[i], is_graph && b->kind[i] == FP_CALL ? &half : &s->rest[k]);
            if (fits(value) && s->by_label) value *= s->by_label[b->label[i]];
            if (!fits(value)) return fp_fail_beyond(err, what, k, most);
            values[i] = (int64_t)value;
        }
    }
    return is_graph && scale_counts(s, b) ? fp_fail_beyond(err, calls, FP_NO_COLUMN, most) : FP_DONE;
}
