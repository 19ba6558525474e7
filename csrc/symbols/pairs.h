/* symbols/pairs.h - sorts pairs of a key and a payload.  C only. */
#pragma once

#include "core/core.h"

struct fp_pairs_item {
    uint64_t key, value;
};

/* Sorts by key, stable.  Linear time: a pass for each byte in which keys differ, none if they are sorted. */
void fp_pairs_sort(struct fp_pairs_item *pairs, size_t n);

/* The number of pairs whose key is at most `key`, in sorted pairs. */
static inline size_t fp_pairs_upper(const struct fp_pairs_item *pairs, size_t n, uint64_t key) {
    size_t i = 0;
    FP_BISECT(i, n, pairs[i].key <= key);
    return i;
}
