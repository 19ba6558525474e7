/* bridges/fold/durations.h - how long the calls of each function took: a histogram with a relative error below 1 %.
 *
 * Durations are counted in buckets.  A power of two is divided into 64 of them, so the middle of a bucket is at most
 * 1/128 = 0.8 % from each of its durations.  Those below 128 have a bucket each.
 *
 *   duration   1 .. 127   128, 129   130, 131   ...   254, 255   256 .. 259   ...
 *   bucket     1 .. 127        128        129   ...        191          192   ...
 *
 * Only runs of 8 buckets that have a call are stored (pages), in one table for all functions.  Memory is linear in
 * them: at most 472 pages a function, usually fewer than 50, and never more than there are calls.  A function with many
 * calls also gets an index of its pages, which is quicker than the table.  Counts are integers, so histograms of
 * different threads are added up exactly, in any order.
 * C only.
 */
#pragma once

#include "core/core.h"

enum { FP_DURATIONS_BITS = 6, FP_DURATIONS_PAGE = 8 }; /* 2^6 buckets a power of two */
enum { FP_DURATIONS_PAGES = 472 };                     /* of 64 bits: (64 - 6) * 64 + 64 buckets, rounded up */

struct fp_durations_function {
    uint64_t calls, min, max;
    uint32_t *rows; /* of FP_DURATIONS_PAGES pages, 0: none; NULL for a function with few calls */
};

/* A call that is not yet counted. */
struct fp_durations_call {
    uint64_t duration;
    uint32_t function, row;
};
enum { FP_DURATIONS_WAITING = 512 };

#if defined(FP_DEBUG)
typedef uint8_t fp_durations_low; /* so that fuzzers reach carries */
#else
typedef uint32_t fp_durations_low;
#endif
enum { FP_DURATIONS_LOW = 8 * sizeof(fp_durations_low) };

struct fp_durations {
    struct fp_table pages;                         /* (function, page) */
    fp_durations_low (*counts)[FP_DURATIONS_PAGE]; /* by row of `pages`, modulo 2^32 */
    uint32_t cap_counts;
    uint64_t *carries; /* row * FP_DURATIONS_PAGE + place of a count, once for each 2^32 calls */
    uint32_t n_carries, cap_carries;
    struct fp_durations_function *by_function; /* by id */
    uint32_t n_functions, n_indexes;
    /* Counts are all over memory, so calls are counted many at a time, which the cache fetches side by side. */
    struct fp_durations_call waiting[FP_DURATIONS_WAITING];
    uint32_t n_waiting;
};

/* Makes *to, which is NULL. */
void fp_durations_begin(struct fp_durations **to);
void fp_durations_free(struct fp_durations *d);

/* Makes room for the functions below `n`. */
void fp_durations_room(struct fp_durations *d, uint32_t n);

/* Adds a call of a function, for which there must be room. */
void fp_durations_add(struct fp_durations *d, uint32_t function, uint64_t duration);

/* After the last call: counts those that wait. */
void fp_durations_end(struct fp_durations *d);

/* Adds the calls of `other`, after its end. */
void fp_durations_join(struct fp_durations *d, const struct fp_durations *other);

/* A count of a page. */
static inline uint64_t fp_durations_count(const struct fp_durations *d, uint32_t row, uint32_t place) {
    uint64_t count = d->counts[row][place];
    for (uint32_t i = 0; i < d->n_carries; i++)
        if (d->carries[i] == (uint64_t)row * FP_DURATIONS_PAGE + place) count += (uint64_t)1 << FP_DURATIONS_LOW;
    return count;
}

/* The middle of a bucket, rounded down. */
static inline uint64_t fp_durations_middle(uint32_t bucket) {
    const uint32_t each = 1u << FP_DURATIONS_BITS;
    if (bucket < 2 * each) return bucket;
    const uint32_t shift = bucket / each - 1;
    return ((uint64_t)(each + bucket % each) << shift) + (((uint64_t)1 << shift) - 1) / 2;
}
