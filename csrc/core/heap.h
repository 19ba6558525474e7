/* core/heap.h - binary heaps: functions of the file that declares them.  C only.
 *
 *     static inline int is_before(const struct runs *r, uint32_t a, uint32_t b) { ... }
 *     FP_HEAP(const struct runs *, uint32_t, is_before)
 *
 * heap_push(r, heap, n, item) adds an item to n items, with room for one more.  heap_sink(r, heap, n, at) restores the
 * order of n items below place `at`: after heap[0] changed or was replaced by the last item, and, from n / 2 - 1 down
 * to 0, of items in any order.  heap[0] is before all others.
 */
#pragma once

#include "core/fp.h"

#define FP_HEAP(context, type, is_before)                                                                 \
    __attribute__((unused)) static void heap_sink(context of, type *heap, uint32_t n, uint32_t at) {      \
        const type moved = heap[at];                                                                      \
        for (uint64_t child; (child = 2 * (uint64_t)at + 1) < n; at = (uint32_t)child) {                  \
            child += child + 1 < n && is_before(of, heap[child + 1], heap[child]);                        \
            if (!is_before(of, heap[child], moved)) break;                                                \
            heap[at] = heap[child];                                                                       \
        }                                                                                                 \
        heap[at] = moved;                                                                                 \
    }                                                                                                     \
    __attribute__((unused)) static void heap_push(context of, type *heap, uint32_t n, type item) {        \
        for (; n && is_before(of, item, heap[(n - 1) / 2]); n = (n - 1) / 2) heap[n] = heap[(n - 1) / 2]; \
        heap[n] = item;                                                                                   \
    }
