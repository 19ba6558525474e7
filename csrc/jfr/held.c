/* Samples that wait to be added up.
 *
 * If few samples are equal to one in the same batch, most would become rows of their own, in random order, and an
 * operator would look each of them up again.  Instead they are added up here, over all chunks, and become rows sorted
 * by stack and context:
 *
 *   log     stack 7 of thread 1 | 3 of 2 | 7 of 2 | 7 of 1
 *   sums    3 of 1: 4 | 7 of 1: 2                becomes      3 of 1: 4 | 3 of 2: 1 | 7 of 1: 4 | 7 of 2: 1
 *
 * A full log is sorted and merged into the sums.  All memory is used from one end to the other: a table of 300,000 sums
 * would wait for memory at each sample.  When there are too many sums, they become rows, so memory is limited.
 */
#include "jfr/held.h"

#include <stdlib.h>

#include "core/memory.h"

enum { LEAST_LOG = 1 << 12, MOST_LOG = 1 << 17, MOST_SUMS = 1 << 19, FEW = 1 << 12 };

/* Replaces the log, which is empty, by one of this size.  0, or FP_E_NOMEM: there is none. */
static int make_log(struct fp_jfr_held *h, uint32_t cap) {
    fp_release(h->log, h->log ? h->cap_log * sizeof *h->log : 0);
    fp_release(h->sorted, h->sorted ? h->cap_log * sizeof *h->log : 0);
    h->log = fp_grow(NULL, 0, cap * sizeof *h->log);
    h->sorted = fp_grow(NULL, 0, cap * sizeof *h->log);
    h->cap_log = cap;
    return h->log && h->sorted ? 0 : FP_E_NOMEM;
}

static void free_held(struct fp_jfr_held *h) {
    fp_release(h->log, h->log ? h->cap_log * sizeof *h->log : 0);
    fp_release(h->sorted, h->sorted ? h->cap_log * sizeof *h->log : 0);
    fp_release(h->sums, h->cap_sums * sizeof *h->sums);
    fp_release(h->other, h->cap_other * sizeof *h->other);
    fp_table_clear(&h->contexts);
    free(h);
}

static struct fp_jfr_held *held_of(struct fp_jfr_reader *r) {
    if (FP_LIKELY(r->held != NULL)) return r->held;
    struct fp_jfr_held *h = calloc(1, sizeof *h);
    if (!h) return NULL;
    if (fp_table_init(&h->contexts, 3) || make_log(h, LEAST_LOG)) {
        free_held(h);
        return NULL;
    }
    return r->held = h;
}

void fp_jfr_free_held(struct fp_jfr_reader *r) {
    if (r->held) free_held(r->held);
    r->held = NULL;
}

uint64_t fp_jfr_held_key(struct fp_jfr_reader *r, struct fp_jfr_context *context, uint32_t stack) {
    struct fp_jfr_held *h = held_of(r);
    if (!h) return 0;
    if (FP_UNLIKELY(!context->held_as)) {
        const uint32_t words[] = {context->label, context->thread, context->metric};
        const uint32_t number = fp_table_intern(&h->contexts, words);
        if (number == FP_NO_ID) return 0;
        context->held_as = number;
    }
    return (uint64_t)stack << 32 | context->held_as;
}

int fp_jfr_hold(struct fp_jfr_reader *r, uint64_t key, uint64_t ticks, int64_t value) {
    struct fp_jfr_held *h = r->held;
    if (h->is_due || h->n_log == h->cap_log || ticks - (uint64_t)r->start_ticks >= r->sure_ticks) return 0;
    if (!h->n_log && !h->n) {
        h->time = fp_jfr_time(r, ticks);
        r->model->n_waiting++;
    }
    h->log[h->n_log++] = (struct fp_jfr_waiting){key, value};
    if (ticks < r->first_ticks) r->first_ticks = ticks;
    if (ticks > r->last_ticks) r->last_ticks = ticks;
    return 1;
}

/* ---- adding up ---- */

/* The digits by which keys are sorted: three of 11 bits or less of contexts, then of stacks. */
enum { DIGITS = 6, DIGIT = 11, MASK = (1 << DIGIT) - 1 };
static const uint8_t SHIFTS[DIGITS] = {0, DIGIT, 21, 32, 32 + DIGIT, 53};

/* Sorts the log by a digit of its keys; equal ones keep their order. */
static void sort_by(struct fp_jfr_held *h, unsigned shift) {
    uint32_t starts[1 << DIGIT] = {0}, at = 0;
    const struct fp_jfr_waiting *from = h->log, *end = from + h->n_log;
    struct fp_jfr_waiting *to = h->sorted;
    for (const struct fp_jfr_waiting *one = from; one < end; one++) starts[one->key >> shift & MASK]++;
    for (uint32_t k = 0; k <= MASK; k++) {
        const uint32_t here = starts[k];
        starts[k] = at;
        at += here;
    }
    for (const struct fp_jfr_waiting *one = from; one < end; one++) to[starts[one->key >> shift & MASK]++] = *one;
    h->sorted = h->log;
    h->log = to;
}

/* Sorts the log by key.  Most digits are the same in all keys. */
static void sort(struct fp_jfr_held *h) {
    uint64_t bits = 0;
    for (uint32_t i = 0; i < h->n_log; i++) bits |= h->log[i].key ^ h->log[0].key;
    for (unsigned i = 0; i < DIGITS; i++)
        if (bits >> SHIFTS[i] & MASK) sort_by(h, SHIFTS[i]);
}

/* Merges the log, which is sorted, into the sums, and sets `are_few`.  A sum that would overflow begins another one
 * with the same key.  0 or FP_E_NOMEM. */
static int merge(struct fp_jfr_held *h) {
    const size_t most = (size_t)h->n + h->n_log;
    if (most > h->cap_other) {
        fp_release(h->other, h->cap_other * sizeof *h->other);
        h->cap_other = 0;
        if (!(h->other = fp_grow(NULL, 0, 2 * most * sizeof *h->other))) return FP_E_NOMEM;
        h->cap_other = 2 * most; /* what is not used is not resident */
    }
    const struct fp_jfr_held_sum *at = h->sums, *end = at + h->n;
    const struct fp_jfr_waiting *one = h->log, *last = one + h->n_log;
    struct fp_jfr_held_sum *to = h->other;
    uint32_t n_keys = 0;
    while (one < last) {
        struct fp_jfr_held_sum sum = {.key = one->key};
        for (; at < end && at->key < sum.key; at++) *to++ = *at;
        if (at < end && at->key == sum.key) sum = *at++;
        for (; one < last && one->key == sum.key; one++) {
            int64_t value;
            if (FP_UNLIKELY(__builtin_add_overflow(sum.value, one->value, &value))) {
                *to++ = sum;
                sum.count = 0;
                value = one->value;
            }
            sum.count++;
            sum.value = value;
        }
        *to++ = sum;
        n_keys++;
    }
    while (at < end) *to++ = *at++;
    h->are_few = n_keys < h->n_log / 4 && n_keys < FEW;
    h->n = (uint32_t)(to - h->other);
    const struct fp_jfr_held had = *h;
    h->sums = had.other;
    h->cap_sums = had.cap_other;
    h->other = had.sums;
    h->cap_other = had.cap_sums;
    return 0;
}

int fp_jfr_add_up(struct fp_jfr_held *h) {
    if (!h->n_log) return 0;
    sort(h);
    if (merge(h)) return FP_E_NOMEM;
    h->n_log = 0;
    h->is_due |= h->n > MOST_SUMS;
    return h->cap_log < MOST_LOG && h->n > h->cap_log / 2 ? make_log(h, 2 * h->cap_log) : 0;
}

void fp_jfr_empty_held(struct fp_jfr_reader *r) {
    struct fp_jfr_held *h = r->held;
    h->n_log = h->n = h->next = 0;
    h->is_due = 0;
    r->model->n_waiting--;
}

void fp_jfr_abandon(struct fp_jfr_reader *r) {
    if (r->held && (r->held->n || r->held->n_log)) fp_jfr_empty_held(r);
}
