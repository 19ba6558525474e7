/* Samples that wait to be added up.
 *
 * If few samples are equal to one in the same batch, most would become rows of their own, in random order, and an
 * operator would look each of them up again.  Instead they are added up here, over all chunks, and become rows sorted
 * by stack:
 *
 *   stack 7 of thread 1 | 3 of 2 | 7 of 2 | 7 of 1      becomes      3 of 2: 1 | 7 of 1: 2 | 7 of 2: 1
 *
 * Rows of a stack follow each other, so writers and compressors find what they share in the caches.
 *
 * The table has open addressing with short searches.  When it is full, a search is too long or a sum would overflow,
 * the samples become rows and it is empty again, so its size is limited.  It is small again if it was mostly empty, so
 * that input made to end it early costs little.
 */
#include "jfr/held.h"

#include <stdlib.h>

#include "core/memory.h"

enum { LEAST = 1 << 12, MOST = 1 << 20, FAR = 64 }; /* slots, and those of a search */

static struct fp_jfr_held *held_of(struct fp_jfr_reader *r) {
    if (FP_LIKELY(r->held != NULL)) return r->held;
    struct fp_jfr_held *h = calloc(1, sizeof *h);
    if (!h) return NULL;
    h->rows = fp_zeroed(LEAST * sizeof *h->rows);
    h->n_slots = LEAST;
    if (!h->rows || fp_table_init(&h->contexts, 3)) {
        fp_release(h->rows, h->rows ? LEAST * sizeof *h->rows : 0);
        fp_table_clear(&h->contexts);
        free(h);
        return NULL;
    }
    return r->held = h;
}

void fp_jfr_free_held(struct fp_jfr_reader *r) {
    struct fp_jfr_held *h = r->held;
    if (!h) return;
    fp_release(h->rows, h->n_slots * sizeof *h->rows);
    fp_release(h->other, h->other ? h->n * sizeof *h->other : 0);
    fp_table_clear(&h->contexts);
    free(h);
    r->held = NULL;
}

/* The slot of a key: the one with it, or a free one.  NULL if there is none nearby. */
static inline struct fp_jfr_waiting *slot_of(const struct fp_jfr_held *h, uint64_t key) {
    const size_t mask = h->n_slots - 1;
    size_t at = fp_jfr_held_slot(h, key);
    for (uint32_t i = 0; i < FAR; i++, at = (at + 1) & mask)
        if (h->rows[at].key == key || !h->rows[at].count) return &h->rows[at];
    return NULL;
}

/* Doubles the table.  0, or 1: samples must become rows first, because it is large, memory ran out or a search is too
 * long. */
static int grow(struct fp_jfr_held *h) {
    const size_t n_slots = 2 * h->n_slots;
    struct fp_jfr_held bigger = {.n_slots = n_slots};
    if (n_slots > MOST || !(bigger.rows = fp_zeroed(n_slots * sizeof *h->rows))) return 1;
    for (size_t i = 0; i < h->n_slots; i++) {
        if (!h->rows[i].count) continue;
        struct fp_jfr_waiting *to = slot_of(&bigger, h->rows[i].key);
        if (!to) {
            fp_release(bigger.rows, n_slots * sizeof *h->rows);
            return 1;
        }
        *to = h->rows[i];
    }
    fp_release(h->rows, h->n_slots * sizeof *h->rows);
    h->rows = bigger.rows;
    h->n_slots = n_slots;
    return 0;
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
    if (h->is_due || ticks - (uint64_t)r->start_ticks >= r->sure_ticks) return 0;
    struct fp_jfr_waiting *to = slot_of(h, key);
    if (FP_UNLIKELY(!to)) {
        h->is_due = 1;
        return 0;
    }
    int64_t sum;
    if (FP_UNLIKELY(__builtin_add_overflow(to->value, value, &sum))) {
        h->is_due = 1;
        return 0;
    }
    if (!to->count++) {
        to->key = key;
        if (!h->n++) {
            h->time = fp_jfr_time(r, ticks);
            r->model->n_waiting++;
        }
        to->value = sum;
        if (h->n > h->n_slots / 2) h->is_due = grow(h);
    } else {
        to->value = sum;
    }
    if (ticks < r->first_ticks) r->first_ticks = ticks;
    if (ticks > r->last_ticks) r->last_ticks = ticks;
    return 1;
}

/* Sorts n rows by 11 bits of their stacks; equal ones keep their order. */
static void sort_by(const struct fp_jfr_waiting *from, struct fp_jfr_waiting *to, uint32_t n, unsigned shift) {
    enum { KEYS = 1 << 11 };
    uint32_t starts[KEYS] = {0}, at = 0;
    for (uint32_t i = 0; i < n; i++) starts[from[i].key >> shift & (KEYS - 1)]++;
    for (uint32_t k = 0; k < KEYS; k++) {
        const uint32_t here = starts[k];
        starts[k] = at;
        at += here;
    }
    for (uint32_t i = 0; i < n; i++) to[starts[from[i].key >> shift & (KEYS - 1)]++] = from[i];
}

int fp_jfr_sort_held(struct fp_jfr_held *h) {
    h->other = fp_grow(NULL, 0, h->n * sizeof *h->other);
    if (!h->other) return FP_E_NOMEM;
    uint32_t n = 0;
    uint64_t all = 0;
    for (size_t i = 0; i < h->n_slots; i++) {
        if (!h->rows[i].count) continue;
        all |= h->rows[i].key;
        h->rows[n++] = h->rows[i];
    }
    for (unsigned shift = 32; shift < 64 && all >> shift; shift += 11) {
        sort_by(h->rows, h->other, n, shift);
        memcpy(h->rows, h->other, n * sizeof *h->rows);
    }
    h->next = 0;
    h->is_sorted = h->is_due = 1;
    return 0;
}

/* Replaces a table by one of the least size.  If memory ran out, the table stays. */
static void shrink(struct fp_jfr_held *h) {
    struct fp_jfr_waiting *rows = fp_zeroed(LEAST * sizeof *rows);
    if (!rows) return;
    fp_release(h->rows, h->n_slots * sizeof *h->rows);
    h->rows = rows;
    h->n_slots = LEAST;
}

void fp_jfr_empty_held(struct fp_jfr_reader *r) {
    struct fp_jfr_held *h = r->held;
    fp_release(h->other, h->other ? h->n * sizeof *h->other : 0);
    h->other = NULL;
    if (h->n_slots > LEAST && h->n < h->n_slots / 8) shrink(h);
    memset(h->rows, 0, h->n_slots * sizeof *h->rows);
    h->n = h->next = 0;
    h->is_sorted = h->is_due = 0;
    r->model->n_waiting--;
}

void fp_jfr_abandon(struct fp_jfr_reader *r) {
    if (r->held && r->held->n) fp_jfr_empty_held(r);
}
