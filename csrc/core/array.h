/* core/array.h - growable arrays.  C only.
 *
 * An array is a pointer to its items (from malloc, or NULL) and its capacity, the number of items that it has room for.
 * It grows to twice its size, so that adding items one by one copies each about once.  The owner frees it with free().
 * Large tables that are looked up at random use core/memory.h instead.
 */
#pragma once

#include "core/fp.h"

/* The slow path of the two functions below. */
int fp_array_grow(void *array, uint32_t *cap, uint64_t need, size_t width, int zeroed);

/* Makes room for `need` items of `width` >= 1 bytes.  `array` is the address of the pointer to the items.  New items
 * are not initialized.  0.  If memory ran out or 2^32 items would be needed, the pointer and the capacity are
 * unchanged, and it escapes (core/guard.h); without a guard it returns FP_E_NOMEM. */
static inline int fp_array_room(void *array, uint32_t *cap, uint64_t need, size_t width) {
    return FP_LIKELY(need <= *cap) ? 0 : fp_array_grow(array, cap, need, width, 0);
}

/* The next item of an array of `n` items, for which it makes room: FP_PUSH(r->names, r->n, r->cap) = name.  Only in
 * code that runs in a guard.  The value must not call what adds to the same array, which may move. */
#define FP_PUSH(array, n, cap) (*(fp_array_room(&(array), &(cap), (uint64_t)(n) + 1, sizeof *(array)), &(array)[(n)++]))

/* The same, but new items are zero. */
static inline int fp_array_zeroed(void *array, uint32_t *cap, uint64_t need, size_t width) {
    return FP_LIKELY(need <= *cap) ? 0 : fp_array_grow(array, cap, need, width, 1);
}

/* Item i of an array whose items are zero at first, for which it makes room:
 *
 *     struct name *name = FP_AT(r->names, r->cap_names, id);
 *     *FP_AT(r->lines, r->cap_lines, id) = 1;
 *
 * Only in code that runs in a guard.  As the array may move, a value stored in it is not taken from it. */
#define FP_AT(array, cap, i) ((__typeof__(array))fp_array_at(&(array), &(cap), i, sizeof *(array)))

static inline void *fp_array_at(void *array, uint32_t *cap, uint64_t i, size_t width) {
    uint8_t *items;
    fp_array_zeroed(array, cap, i + 1, width);
    memcpy(&items, array, sizeof items);
    return items + i * width;
}

/* fp_array_zeroed for the largest arrays, which grow by an eighth: realloc moves them without copying, and what they
 * have in addition is soon used. */
int fp_array_slowly(void *array, uint32_t *cap, uint64_t need, size_t width);

/* fp_array_room for bytes, of which there may be more than 2^32. */
int fp_bytes_room(uint8_t **bytes, size_t *cap, size_t need);
