/* core/sort.h - sorts many items by a key of 96 bits.  C only. */
#pragma once

#include "core/fp.h"

struct fp_keyed {
    uint64_t key;
    uint32_t more; /* of the key; it comes first */
    uint32_t item;
};

/* Sorts n items by (more, key).  Byte-wise radix sort, least significant first; skips bytes that are equal in all
 * items, and returns early if the items are already sorted.  Needs as much memory again. */
void fp_sort_keyed(struct fp_keyed *items, uint32_t n);
