#include "jfr/pending_counts.h"

#include <stdlib.h>

#include "core/array.h"

/* AHEAD: so many samples ahead their counts are fetched, which are in no near cache. */
enum { MOST_STACKS = 1 << 22, MOST_NUMBERS = FP_JFR_GRID_CELLS / 8, AHEAD = 32 };

void fp_jfr_empty_pending_counts(struct fp_jfr_pending_counts *g) {
    free(g->counts);
    free(g->full);
    *g = (struct fp_jfr_pending_counts){.number_of = g->number_of,
                                        .stack_of = g->stack_of,
                                        .cap_number_of = g->cap_number_of,
                                        .cap_stack_of = g->cap_stack_of,
                                        .n = g->n};
}

void fp_jfr_free_pending_counts(struct fp_jfr_pending_counts *g) {
    fp_jfr_empty_pending_counts(g);
    free(g->number_of);
    free(g->stack_of);
}

uint32_t fp_jfr_pending_counts_number(struct fp_jfr_pending_counts *g, uint32_t stack) {
    if (stack >= MOST_STACKS || fp_array_zeroed(&g->number_of, &g->cap_number_of, stack + 1, sizeof *g->number_of))
        return 0;
    if (FP_LIKELY(g->number_of[stack])) return g->number_of[stack];
    if (g->n == MOST_NUMBERS || fp_array_room(&g->stack_of, &g->cap_stack_of, g->n + 2, sizeof *g->stack_of)) return 0;
    g->stack_of[++g->n] = stack;
    return g->number_of[stack] = g->n;
}

/* Makes room for all numbers and this many contexts.  0 if there is none. */
static int widen(struct fp_jfr_pending_counts *g, uint32_t n_contexts) {
    const uint64_t rows = (uint64_t)g->n + 1, more = g->width + g->width / 2;
    uint64_t width = g->width;
    if (n_contexts > width) width = ((n_contexts > more ? n_contexts : more) + 7) & ~UINT64_C(7);
    if (rows * width > FP_JFR_GRID_CELLS) return 0;
    if (g->counts && width == g->width) return 1;
    uint16_t *counts = calloc(FP_JFR_GRID_CELLS, sizeof *counts); /* what is not used is not resident */
    if (!counts) return 0;
    for (uint64_t i = 0; i < rows && g->counts; i++)
        if ((i + 1) * g->width <= FP_JFR_GRID_CELLS)
            memcpy(counts + i * width, g->counts + i * g->width, g->width * sizeof *counts);
    for (uint32_t i = 0; i < g->n_full; i++)
        g->full[i] = (uint32_t)(g->full[i] / g->width * width + g->full[i] % g->width);
    free(g->counts);
    g->counts = counts;
    g->width = (uint32_t)width;
    return 1;
}

static inline uint32_t cell_of(const struct fp_jfr_pending_counts *g, uint64_t key) {
    return (uint32_t)(key >> 32) * g->width + (uint32_t)key;
}

int fp_jfr_pending_counts_add(struct fp_jfr_pending_counts *g, const uint64_t *keys, uint32_t n, uint32_t n_contexts,
                              int64_t value) {
    uint32_t n_new = 0;
    if ((g->n_samples && value != g->value) || value != (int32_t)value || g->n_samples + n > UINT32_MAX) return 0;
    if (!widen(g, n_contexts) || fp_array_room(&g->full, &g->cap_full, (uint64_t)g->n_full + n, sizeof *g->full))
        return 0;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t cell = cell_of(g, keys[i]);
        uint16_t *count = &g->counts[cell];
        if (FP_LIKELY(n - i > AHEAD)) __builtin_prefetch(&g->counts[cell_of(g, keys[i + AHEAD])], 1);
        n_new += !*count;
        if (FP_UNLIKELY(*count == UINT16_MAX)) {
            g->full[g->n_full++] = cell;
            *count = 0;
        }
        ++*count;
    }
    g->is_sorted = 0;
    g->n_sums += n_new;
    g->n_samples += n;
    g->value = value;
    return 1;
}

static int by_cell(const void *a, const void *b) {
    const uint32_t one = *(const uint32_t *)a, other = *(const uint32_t *)b;
    return (one > other) - (one < other);
}

/* How many of `full`, which is sorted, are below a cell. */
static uint32_t below(const struct fp_jfr_pending_counts *g, uint64_t cell) {
    uint32_t from = 0, to = g->n_full;
    while (from < to) {
        const uint32_t middle = from + (to - from) / 2;
        if (g->full[middle] < cell)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

int fp_jfr_pending_counts_sum(struct fp_jfr_pending_counts *g, struct fp_jfr_pending_sum *sum) {
    if (!g->is_sorted && g->n_full) qsort(g->full, g->n_full, sizeof *g->full, by_cell);
    g->is_sorted = 1;
    for (; g->stack < g->cap_number_of; g->stack++, g->context = 0) {
        const uint64_t first = (uint64_t)g->number_of[g->stack] * g->width;
        if (!first || first + g->width > FP_JFR_GRID_CELLS) continue; /* a number may be newer than all samples */
        for (; g->context < g->width; g->context++) {
            const uint64_t cell = first + g->context, here = g->counts[cell];
            if (!here) continue;
            const uint64_t count = here + (uint64_t)UINT16_MAX * (below(g, cell + 1) - below(g, cell));
            *sum = (struct fp_jfr_pending_sum){(uint64_t)g->stack << 32 | g->context, count, (int64_t)count * g->value};
            return 1;
        }
    }
    return 0;
}
