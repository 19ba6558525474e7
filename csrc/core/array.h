/* core/array.h - arrays that grow.
 *
 * Floor 0.  An array is a pointer to its items, from malloc or NULL, and the number of items that it has room for.  It
 * grows to twice its size, so that adding items one by one copies each about once.  The owner gives it back by free.
 * Tables that are looked up at random have memory of their own: core/memory.h.
 */
#ifndef FP_ARRAY_H
#define FP_ARRAY_H

#include "core/fp.h"

/* The slow paths of the two below. */
int fp_array_grow(void *array, uint32_t *cap, uint64_t need, size_t width, int zeroed);

/* Room for `need` items of `width` bytes, at least 1.  `array` is the address of the pointer to the items.  New items
 * hold anything.  0, or FP_E_NOMEM when memory ran out or there would be 2^32 items: then the pointer and the capacity
 * are as they were. */
static inline int fp_array_room(void *array, uint32_t *cap, uint64_t need, size_t width) {
    return FP_LIKELY(need <= *cap) ? 0 : fp_array_grow(array, cap, need, width, 0);
}

/* The same, where new items are zero. */
static inline int fp_array_zeroed(void *array, uint32_t *cap, uint64_t need, size_t width) {
    return FP_LIKELY(need <= *cap) ? 0 : fp_array_grow(array, cap, need, width, 1);
}

/* The same for bytes, of which there may be more than 2^32; new ones hold anything. */
int fp_bytes_room(uint8_t **bytes, size_t *cap, size_t need);

#endif
