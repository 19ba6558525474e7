/* core/sort.h - sorts and searches.  C only. */
#pragma once

#include "core/fp.h"

/* Advances i to the first place for which a condition, true of those before and false of those after, is false, or to
 * `end`:
 *
 *     uint32_t i = 0;
 *     FP_BISECT(i, r->n, r->items[i].start <= address); */
#define FP_BISECT(i, end, is_before)                 \
    do {                                             \
        __typeof__(i) fp_low = (i), fp_high = (end); \
        while (fp_low < fp_high) {                   \
            (i) = fp_low + (fp_high - fp_low) / 2;   \
            if (is_before)                           \
                fp_low = (i) + 1;                    \
            else                                     \
                fp_high = (i);                       \
        }                                            \
        (i) = fp_low;                                \
    } while (0)

/* Defines a function for qsort: items of a type by these fields, of which those that differ first decide:
 *
 *     FP_ORDER(by_time, struct span, thread, time, order) */
#define FP_ORDER(name, type, ...)                                                                                     \
    static int name(const void *one, const void *other) {                                                             \
        const type *a = one, *b = other;                                                                              \
        FP_ORDER_OF(__VA_ARGS__, FP_ORDER_5, FP_ORDER_4, FP_ORDER_3, FP_ORDER_2, FP_ORDER_1, )(__VA_ARGS__) return 0; \
    }
#define FP_ORDER_OF(a, b, c, d, e, chosen, ...) chosen
#define FP_ORDER_1(field) \
    if (a->field != b->field) return a->field < b->field ? -1 : 1;
#define FP_ORDER_2(field, ...) FP_ORDER_1(field) FP_ORDER_1(__VA_ARGS__)
#define FP_ORDER_3(field, ...) FP_ORDER_1(field) FP_ORDER_2(__VA_ARGS__)
#define FP_ORDER_4(field, ...) FP_ORDER_1(field) FP_ORDER_3(__VA_ARGS__)
#define FP_ORDER_5(field, ...) FP_ORDER_1(field) FP_ORDER_4(__VA_ARGS__)

/* Sorts by a key of 96 bits. */
struct fp_keyed {
    uint64_t key;
    uint32_t more; /* of the key; it comes first */
    uint32_t item;
};

/* Sorts n items by (more, key).  Byte-wise radix sort, least significant first; skips bytes that are equal in all
 * items, and returns early if the items are already sorted.  Needs as much memory again. */
void fp_sort_keyed(struct fp_keyed *items, uint32_t n);
