#include "ends/context_times.h"

void fp_context_times_clear(struct fp_context_times *t) {
    FP_FREE(t->samples, t->counts, t->root, t->at);
}

/* Drops the samples that have the next bit of `lot`. */
static void drop_half(struct fp_context_times *t) {
    uint32_t n = 0, moved = 0;
    t->mask = t->mask << 1 | 1;
    for (uint32_t i = 0; i < t->n; i++) {
        if (t->samples[i].lot & t->mask) continue;
        moved += i < t->moved;
        t->samples[n++] = t->samples[i];
    }
    t->n = n;
    t->moved = moved;
}

static uint16_t random_bits(uint64_t number) {
    number = (number ^ number >> 31) * UINT64_C(0x9e3779b97f4a7c15);
    return (uint16_t)(number >> 48);
}

int fp_context_times_put(struct fp_context_times *t, const struct fp_project *s, const struct fp_batch *in,
                         const uint32_t *columns, uint32_t chosen) {
    for (uint32_t i = 0; t->room && i < in->n; i++) {
        if (!in->time[i]) continue;
        uint32_t k = chosen < in->n_values && in->values[(size_t)chosen * in->cap + i] ? chosen : 0;
        while (k < in->n_values && !in->values[(size_t)k * in->cap + i]) k++;
        if (k >= in->n_values || columns[k] > UINT16_MAX) continue;
        ++*FP_AT(t->counts, t->cap_counts, columns[k]);
        const uint16_t lot = random_bits(t->seen++);
        while (t->n >= t->room && t->mask < UINT16_MAX) drop_half(t);
        if (lot & t->mask || t->n >= t->room) continue;
        FP_PUSH(t->samples, t->n, t->cap) =
            (struct fp_context_sample){.time = in->time[i],
                                       .value = in->values[(size_t)k * in->cap + i],
                                       .place = fp_project_key(s, in->stack[i], in->thread[i]),
                                       .column = (uint16_t)columns[k],
                                       .lot = lot};
    }
    return FP_DONE;
}

void fp_context_times_add(struct fp_context_times *t, const uint32_t *node_of) {
    for (; t->moved < t->n; t->moved++) t->samples[t->moved].place = 2 * node_of[t->samples[t->moved].place];
}

void fp_context_times_move(struct fp_context_times *t, const uint32_t *to, const uint8_t *kept) {
    for (uint32_t i = 0; i < t->moved; i++) {
        const uint32_t node = t->samples[i].place / 2;
        t->samples[i].place = 2 * to[node] + ((t->samples[i].place & 1) | !kept[node]);
    }
}

void fp_context_times_order(struct fp_context_times *t, const uint32_t *root) {
    if (!t->n) return;
    struct fp_keyed *items = fp_scratch(t->n, sizeof *items);
    for (uint32_t i = 0; i < t->n; i++)
        items[i] = (struct fp_keyed){.key = t->samples[i].time, .more = root[t->samples[i].place / 2], .item = i};
    fp_sort_keyed(items, t->n);
    free(t->root);
    t->root = NULL;
    t->root = fp_have(malloc(t->n * sizeof *t->root));
    struct fp_context_sample *sorted = fp_scratch(t->n, sizeof *sorted);
    for (uint32_t i = 0; i < t->n; i++) {
        sorted[i] = t->samples[items[i].item];
        t->root[i] = items[i].more;
    }
    memcpy(t->samples, sorted, t->n * sizeof *sorted);
    fp_scratch_free(items);
}

void fp_context_times_fill(struct fp_context_times *t, const uint32_t *where) {
    if (!t->n) return;
    if (!t->at) t->at = fp_have(malloc(t->n * sizeof *t->at));
    for (uint32_t i = 0; i < t->n; i++) t->at[i] = where[t->samples[i].place];
}

uint64_t fp_context_times_count(const struct fp_context_times *t, uint32_t column) {
    return column < t->cap_counts ? t->counts[column] : 0;
}

uint32_t fp_context_times_take(const struct fp_context_times *t, uint32_t column, uint32_t most,
                               const struct fp_context_times_columns *to, uint32_t *step) {
    uint32_t all = 0, n = 0, of_thread = 0, root = FP_NO_ID;
    for (uint32_t i = 0; i < t->n; i++) all += t->samples[i].column == column;
    *step = most && all > most ? all / most + (all % most > 0) : 1;
    for (uint32_t i = 0; t->at && i < t->n; i++) {
        if (t->samples[i].column != column) continue;
        if (t->root[i] != root) of_thread = 0;
        root = t->root[i];
        if (of_thread++ % *step) continue;
        to->times[n] = t->samples[i].time;
        to->values[n] = t->samples[i].value;
        to->contexts[n++] = t->at[i];
    }
    return n;
}
