/* core/heap_sums.h - adds up the allocations of a program by stack: all, temporary ones, those at the peak, those left.
 *
 *   +100 a   +50 b   -100 a   +20 a      a: 2 allocations, 120 bytes; 100 at the peak; 20 left
 *                                        b: 1 allocation, 50 bytes; 50 at the peak and left
 *
 * The peak is the moment at which most bytes are in use.  What each stack has in use at that moment follows in one pass
 * without going through all stacks at each new maximum: maxima that a change leaves are numbered, and a stack whose
 * last change is older than the last maximum had at it what it has now.
 *
 * Memory: 80 bytes a stack, and FP_HEAP_SERIES points of time.
 */
#pragma once

#include "core/batch.h"

/* cffi-begin */

enum fp_heap_column {
    FP_HEAP_OBJECTS,
    FP_HEAP_BYTES,
    FP_HEAP_TEMPORARY,
    FP_HEAP_TEMPORARY_BYTES,
    FP_HEAP_LEFT,
    FP_HEAP_LEFT_BYTES,
    FP_HEAP_PEAK,
    FP_HEAP_PEAK_BYTES,
    FP_HEAP_COLUMNS
};

struct fp_heap_sum {
    int64_t values[FP_HEAP_COLUMNS];
    uint64_t settled; /* the number of the last maximum that the peak's values are of */
    uint32_t stack, thread;
};

/* Memory at `time`. */
enum { FP_HEAP_SERIES = 128 };
struct fp_heap_point {
    uint64_t time, heap, resident;
};

struct fp_heap_sums {
    struct fp_heap_sum *sums;
    uint32_t n, cap;
    uint32_t next;         /* of the rows */
    uint32_t first_column; /* of the rows; set by the caller */
    int32_t last_of_equal; /* of equal maxima the last one is the peak; 0: the first one */
    int64_t live, peak;    /* bytes */
    uint64_t peak_time;
    uint64_t now;      /* set by the caller */
    uint64_t n_maxima; /* left by now */
    int32_t is_highest;
    uint32_t n_points, stride, skipped;
    struct fp_heap_point points[FP_HEAP_SERIES];
};

/* cffi-end */

void fp_heap_free(struct fp_heap_sums *h);

/* A new sum; its number. */
uint32_t fp_heap_stack(struct fp_heap_sums *h, uint32_t stack, uint32_t thread);

/* The resident memory at `now`.  If there are too many points, every second one is left out. */
void fp_heap_point(struct fp_heap_sums *h, uint64_t resident);

/* Pulls the rows that are not 0, of the values from `first_column` on.  Call it after the last change.  FP_FULL or
 * FP_DONE. */
int fp_heap_rows(struct fp_heap_sums *h, struct fp_batch *out);

static inline void fp_heap_settle(const struct fp_heap_sums *h, struct fp_heap_sum *s) {
    if (s->settled == h->n_maxima) return;
    s->settled = h->n_maxima;
    s->values[FP_HEAP_PEAK] = s->values[FP_HEAP_LEFT];
    s->values[FP_HEAP_PEAK_BYTES] = s->values[FP_HEAP_LEFT_BYTES];
}

/* `n` (1 or -1) objects more, of `size` bytes in all.  A sum that does not fit: FP_E_OVERFLOW. */
static inline int fp_heap_change(struct fp_heap_sums *h, uint32_t sum, int64_t n, int64_t size) {
    struct fp_heap_sum *s = &h->sums[sum];
    if (h->is_highest && (n < 0 || (!size && !h->last_of_equal))) {
        h->is_highest = 0;
        h->n_maxima++;
    }
    fp_heap_settle(h, s);
    int bad = __builtin_add_overflow(h->live, size, &h->live);
    s->values[FP_HEAP_LEFT] += n;
    bad |= __builtin_add_overflow(s->values[FP_HEAP_LEFT_BYTES], size, &s->values[FP_HEAP_LEFT_BYTES]);
    if (n > 0) {
        s->values[FP_HEAP_OBJECTS]++;
        bad |= __builtin_add_overflow(s->values[FP_HEAP_BYTES], size, &s->values[FP_HEAP_BYTES]);
        if (h->live > h->peak || (h->last_of_equal && h->live == h->peak)) {
            h->peak = h->live;
            h->peak_time = h->now;
            h->is_highest = 1;
        }
    }
    return FP_UNLIKELY(bad) ? FP_E_OVERFLOW : 0;
}

/* An object is made and, as the next one, removed; a temporary one.  1, or 0 without a change: if the peak may move, or
 * a sum would not fit. */
static inline int fp_heap_brief(struct fp_heap_sums *h, uint32_t sum, int64_t size) {
    int64_t *values = h->sums[sum].values, live, bytes, brief;
    if (h->is_highest || __builtin_add_overflow(h->live, size, &live) || live >= h->peak ||
        __builtin_add_overflow(values[FP_HEAP_BYTES], size, &bytes) ||
        __builtin_add_overflow(values[FP_HEAP_TEMPORARY_BYTES], size, &brief))
        return 0;
    values[FP_HEAP_OBJECTS]++;
    values[FP_HEAP_BYTES] = bytes;
    values[FP_HEAP_TEMPORARY]++;
    values[FP_HEAP_TEMPORARY_BYTES] = brief;
    return 1;
}

/* The object that was just removed was a temporary one.  0 or FP_E_OVERFLOW. */
static inline int fp_heap_temporary(struct fp_heap_sums *h, uint32_t sum, int64_t size) {
    int64_t *values = h->sums[sum].values;
    values[FP_HEAP_TEMPORARY]++;
    const int bad = __builtin_add_overflow(values[FP_HEAP_TEMPORARY_BYTES], size, &values[FP_HEAP_TEMPORARY_BYTES]);
    return FP_UNLIKELY(bad) ? FP_E_OVERFLOW : 0;
}
