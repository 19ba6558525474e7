/* jfr/pending.h - samples that wait to be added up.  C only. */
#pragma once

#include "jfr/private.h"

/* Samples with the same key. */
struct fp_jfr_pending_sum {
    uint64_t key, count;
    int64_t value;
};

/* Samples that wait.  Their keys: stack << 32 | number of the context. */
struct fp_jfr_pending_list {
    uint64_t *keys;
    int64_t *values;
};

struct fp_jfr_pending {
    /* samples in the order in which they were read, and as many for sorting them; core/memory.h */
    struct fp_jfr_pending_list log, sorted;
    uint32_t n_log, cap_log;
    uint64_t bits, differs; /* that are set in some key of the log, and in which some of its values differ */
    /* of all samples before those, by key, with the memory for the next ones; core/memory.h */
    struct fp_jfr_pending_sum *sums, *other;
    size_t cap_sums, cap_other;
    uint32_t n, next;         /* sums of either; of `sums` those from `next` on are not rows of a batch yet */
    int32_t is_due;           /* no more can wait: they must become rows */
    uint32_t n_stacks;        /* of the model when the first of them waited */
    int32_t are_few;          /* the last log had few different keys */
    uint64_t time;            /* of one of the samples */
    struct fp_table contexts; /* label, thread, metric */
};

enum { FP_JFR_HELD_ROOM = 64 }; /* samples that can wait after the log counts as full */

/* Whether samples must be added up, or become rows, before others can wait. */
static inline int fp_jfr_is_full(const struct fp_jfr_pending *h) {
    return h->n_log + FP_JFR_HELD_ROOM > h->cap_log;
}

/* Enters a sample in the log, which has room. */
static inline void fp_jfr_enter(struct fp_jfr_pending *h, uint64_t key, int64_t value) {
    h->log.keys[h->n_log] = key;
    h->log.values[h->n_log++] = value;
    h->bits |= key;
    h->differs |= (uint64_t)(value ^ h->log.values[0]);
}

static inline void fp_jfr_empty_pending_list(struct fp_jfr_pending *h) {
    h->n_log = 0;
    h->bits = h->differs = 0;
}

/* The key of samples with a stack and a context. */
uint64_t fp_jfr_pending_key(struct fp_jfr_reader *r, struct fp_jfr_context *context, uint32_t stack);
/* Lets a sample wait.  1, or 0 if it cannot. */
int fp_jfr_add_pending(struct fp_jfr_reader *r, uint64_t key, uint64_t ticks, int64_t value);
/* Adds up the samples of the log. */
void fp_jfr_add_up(struct fp_jfr_pending *h);
/* Forgets the samples, which have become rows. */
void fp_jfr_empty_pending(struct fp_jfr_reader *r);
void fp_jfr_free_pending(struct fp_jfr_reader *r);
