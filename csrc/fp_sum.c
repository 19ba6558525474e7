#include "fp_sum.h"

#include <stdlib.h>

struct fp_sum *fp_sum_new(void) {
    struct fp_sum *s = calloc(1, sizeof *s);
    if (!s || fp_table_init(&s->keys, 3)) {
        fp_sum_free(s);
        return NULL;
    }
    s->next = 1;
    return s;
}

void fp_sum_free(struct fp_sum *s) {
    if (!s) return;
    fp_table_clear(&s->keys);
    free(s->sums);
    free(s);
}

int fp_sum_set_values(struct fp_sum *s, uint32_t n_values) {
    if (n_values <= s->n_values) return 0;
    int64_t *sums = calloc((size_t)s->cap * n_values + 1, sizeof *sums);
    if (!sums) return FP_E_NOMEM;
    for (uint32_t i = 0; i < s->keys.n && i < s->cap && s->n_values; i++)
        memcpy(sums + (size_t)i * n_values, s->sums + (size_t)i * s->n_values, s->n_values * sizeof *sums);
    free(s->sums);
    s->sums = sums;
    s->n_values = n_values;
    return 0;
}

int fp_sum_put(struct fp_sum *s, const struct fp_batch *in, const uint32_t *columns, struct fp_err *err) {
    int overflow = 0;
    for (uint32_t i = 0; i < in->n; i++) {
        s->timed += in->time[i] != 0;
        uint32_t key = fp_table_intern(&s->keys, (uint32_t[]){in->stack[i], in->label[i], in->thread[i]});
        if (key == FP_NO_ID) return fp_fail(err, FP_E_NOMEM, 0, "the table of stacks");
        if (key >= s->cap) {
            const size_t cap = s->cap ? (size_t)s->cap * 2 : 1024, width = s->n_values;
            int64_t *sums = realloc(s->sums, (cap * width + 1) * sizeof *sums);
            if (!sums) return fp_fail(err, FP_E_NOMEM, 0, "the table of stacks");
            memset(sums + s->cap * width, 0, (cap - s->cap) * width * sizeof *sums);
            s->sums = sums;
            s->cap = (uint32_t)cap;
        }
        int64_t *sums = s->sums + (size_t)key * s->n_values;
        for (uint32_t k = 0; k < in->n_values; k++) {
            int64_t *sum = &sums[columns[k]];
            overflow |= __builtin_add_overflow(*sum, in->values[(size_t)k * in->cap + i], sum);
        }
    }
    return overflow ? fp_fail(err, FP_E_OVERFLOW, 0, "the sum of a stack's samples") : FP_DONE;
}

int fp_sum_pull(struct fp_sum *s, struct fp_batch *out) {
    for (; s->next < s->keys.n; s->next++) {
        if (out->n == out->cap) return FP_FULL;
        const uint32_t *key = fp_table_row(&s->keys, s->next), row = out->n++;
        out->stack[row] = key[0];
        out->label[row] = key[1];
        out->thread[row] = key[2];
        out->time[row] = 0;
        for (uint32_t k = 0; k < s->n_values; k++)
            out->values[(size_t)k * out->cap + row] = s->sums[(size_t)s->next * s->n_values + k];
    }
    return FP_DONE;
}
