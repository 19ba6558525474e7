#include "jfr/grid.h"

#include <stdlib.h>

#include "core/array.h"

/* Counts that are near each other are incremented together: the counts of a group fit the processor's first cache.  A
 * group has the same highest bits. */
enum { GROUPS = 1 << 10 };

static unsigned width_of(uint32_t bits) {
    return bits ? 32 - (unsigned)__builtin_clz(bits) : 0;
}

void fp_jfr_empty_grid(struct fp_jfr_grid *t) {
    free(t->counts);
    free(t->number_of);
    *t = (struct fp_jfr_grid){0};
}

/* Makes room for contexts of `low` bits.  0 if there is none. */
static int widen(struct fp_jfr_grid *t, uint32_t low) {
    if (t->counts && low <= t->low) return 1;
    if (low >= 32 || (uint64_t)t->n << low > FP_JFR_GRID) return 0;
    uint32_t *counts = calloc(FP_JFR_GRID, sizeof *counts); /* what is not used is not resident */
    if (!counts) return 0;
    for (uint32_t i = 0; i < t->n; i++)
        memcpy(counts + ((size_t)i << low), t->counts + ((size_t)i << t->low), sizeof *counts << t->low);
    free(t->counts);
    t->counts = counts;
    t->low = low;
    return 1;
}

/* Replaces stacks by their numbers.  0 if there are too many. */
static int pack(struct fp_jfr_grid *t, const uint64_t *keys, uint32_t n, uint32_t *packed) {
    const uint32_t low = t->low, most = FP_JFR_GRID >> low;
    uint32_t *number_of = t->number_of;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t *number = &number_of[keys[i] >> 32];
        if (FP_UNLIKELY(!*number)) {
            if (t->n == most) return 0;
            *number = ++t->n;
        }
        packed[i] = (*number - 1) << low | (uint32_t)keys[i];
    }
    return 1;
}

int fp_jfr_grid_add(struct fp_jfr_grid *t, const uint64_t *keys, uint32_t n, uint64_t bits, int64_t value,
                    uint32_t *packed) {
    const uint64_t stacks = (UINT64_C(1) << width_of((uint32_t)(bits >> 32)));
    uint32_t starts[GROUPS] = {0}, at = 0, *grouped = packed + n;
    if ((t->n_samples && value != t->value) || value != (int32_t)value) return 0;
    if (t->n_samples + n > UINT32_MAX || stacks > FP_JFR_GRID || !widen(t, width_of((uint32_t)bits))) return 0;
    if (fp_array_zeroed(&t->number_of, &t->cap, stacks, sizeof *t->number_of) || !pack(t, keys, n, packed)) return 0;
    const unsigned all = width_of(FP_JFR_GRID - 1), shift = all - width_of(GROUPS - 1);
    for (uint32_t i = 0; i < n; i++) starts[packed[i] >> shift]++;
    for (uint32_t i = 0; i < GROUPS; i++) {
        const uint32_t here = starts[i];
        starts[i] = at;
        at += here;
    }
    for (uint32_t i = 0; i < n; i++) grouped[starts[packed[i] >> shift]++] = packed[i];
    uint32_t n_new = 0;
    for (uint32_t i = 0; i < n; i++) n_new += !t->counts[grouped[i]]++;
    t->n_sums += n_new;
    t->n_samples += n;
    t->value = value;
    return 1;
}

int fp_jfr_grid_sum(struct fp_jfr_grid *t, struct fp_jfr_held_sum *sum) {
    for (; t->stack < t->cap; t->stack++, t->context = 0) {
        if (!t->number_of[t->stack]) continue;
        const uint32_t *counts = t->counts + ((size_t)(t->number_of[t->stack] - 1) << t->low);
        for (; t->context < UINT32_C(1) << t->low; t->context++) {
            const uint32_t count = counts[t->context];
            if (!count) continue;
            *sum = (struct fp_jfr_held_sum){(uint64_t)t->stack << 32 | t->context, count, count * t->value};
            return 1;
        }
    }
    return 0;
}
