/* core/array.h - plain arrays that grow.
 *
 * Floor 0.  The memory is malloc's, so the owner gives it back by free.  Tables that are looked up at random and
 * become large have memory of another kind: core/memory.h.
 */
#ifndef FP_ARRAY_H
#define FP_ARRAY_H

#include "core/fp.h"

/* The slow half of fp_array_cover. */
int fp_array_grow(void *items, uint32_t *cap, uint64_t need, size_t size);

/* Makes an array hold at least `need` items of `size` bytes.  `items` is the address of the pointer to the array
 * (NULL: none yet), *cap the number of items it has room for.  New items are 0.  Returns 0, or FP_E_NOMEM: then the
 * array is as it was. */
static inline int fp_array_cover(void *items, uint32_t *cap, uint64_t need, size_t size) {
    return FP_LIKELY(need <= *cap) ? 0 : fp_array_grow(items, cap, need, size);
}

#endif
