/* jfr/held.h - samples that wait to be added up. */
#ifndef FP_JFR_HELD_H
#define FP_JFR_HELD_H

#include "jfr/private.h"

struct fp_jfr_waiting {
    uint64_t key;   /* stack << 32 | number of its context */
    uint64_t count; /* 0: a free slot */
    int64_t value;
};

struct fp_jfr_held {
    struct fp_jfr_waiting *rows; /* a table of n_slots; then, sorted, the first n; core/memory.h */
    struct fp_jfr_waiting *other;
    size_t n_slots;
    uint32_t n, next;         /* those from `next` on are not rows of a batch yet */
    int32_t is_due;           /* no more can wait: they must become rows */
    int32_t is_sorted;        /* they are becoming rows */
    uint64_t time;            /* of one of the samples */
    struct fp_table contexts; /* label, thread, metric */
};

static inline size_t fp_jfr_held_slot(const struct fp_jfr_held *h, uint64_t key) {
    return (size_t)fp_mix(key, key >> 32) & (h->n_slots - 1);
}

/* A row may begin in one line of the processor's cache and end in the next. */
static inline void fp_jfr_prefetch_held(const struct fp_jfr_held *h, uint64_t key) {
    const struct fp_jfr_waiting *one = &h->rows[fp_jfr_held_slot(h, key)];
    __builtin_prefetch(one, 1);
    __builtin_prefetch(&one->value, 1);
}

/* The key of samples with a stack and a context.  0 when memory ran out. */
uint64_t fp_jfr_held_key(struct fp_jfr_reader *r, struct fp_jfr_context *context, uint32_t stack);
/* Lets a sample wait.  1, or 0 if it cannot. */
int fp_jfr_hold(struct fp_jfr_reader *r, uint64_t key, uint64_t ticks, int64_t value);
/* Sorts the samples.  0 or FP_E_NOMEM. */
int fp_jfr_sort_held(struct fp_jfr_held *h);
/* Forgets the samples, which have become rows. */
void fp_jfr_empty_held(struct fp_jfr_reader *r);
void fp_jfr_free_held(struct fp_jfr_reader *r);

#endif
