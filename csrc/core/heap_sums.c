#include "core/heap_sums.h"

#include "core/array.h"

void fp_heap_free(struct fp_heap_sums *h) {
    free(h->sums);
}

uint32_t fp_heap_stack(struct fp_heap_sums *h, uint32_t stack, uint32_t thread) {
    FP_PUSH(h->sums, h->n, h->cap) = (struct fp_heap_sum){.settled = h->n_maxima, .stack = stack, .thread = thread};
    return h->n - 1;
}

void fp_heap_point(struct fp_heap_sums *h, uint64_t resident) {
    if (h->skipped++ < h->stride) return;
    h->skipped = 0;
    if (h->n_points == FP_HEAP_SERIES) {
        for (uint32_t i = 0; i < FP_HEAP_SERIES / 2; i++) h->points[i] = h->points[2 * (size_t)i];
        h->n_points = FP_HEAP_SERIES / 2;
        h->stride = 2 * h->stride + 1;
    }
    h->points[h->n_points++] = (struct fp_heap_point){h->now, h->live > 0 ? (uint64_t)h->live : 0, resident};
}

int fp_heap_rows(struct fp_heap_sums *h, struct fp_batch *out) {
    if (h->is_highest) {
        h->is_highest = 0;
        h->n_maxima++;
    }
    for (; h->next < h->n; h->next++) {
        struct fp_heap_sum *s = &h->sums[h->next];
        fp_heap_settle(h, s);
        int64_t any = 0;
        for (size_t k = 0; k < FP_HEAP_COLUMNS; k++) any |= s->values[k];
        if (!any) continue;
        if (out->n == out->cap) return FP_FULL;
        const uint32_t i = fp_batch_sample(out, s->stack, s->thread, 0, 0);
        for (size_t k = h->first_column; k < FP_HEAP_COLUMNS; k++)
            out->values[(k - h->first_column) * out->cap + i] = s->values[k];
    }
    return FP_DONE;
}
