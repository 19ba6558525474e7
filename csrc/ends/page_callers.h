/* ends/page_callers.h - the most expensive callers and callees of each function, of arcs that come once each.
 *
 * For each function, direction and value column the FP_PAGE_CALLERS arcs with the highest |cost| are kept, so memory is
 * linear in functions, however many arcs there are: at most 2 KB each.
 *
 *   rows   a -> b 5, a -> c 9, a -> d 1, with FP_PAGE_CALLERS 2        callees of a: c 9, b 5        callers of d: a 1
 */
#pragma once

#include "core/core.h"

enum { FP_PAGE_CALLERS = 15, FP_PAGE_CALLERS_VALUES = 2 };

/* An arc of a function. */
struct fp_page_callers_arc {
    uint64_t other; /* the other function */
    int64_t costs[FP_PAGE_CALLERS_VALUES];
    int64_t calls;
};

struct fp_page_callers {
    /* private from here on */
    struct fp_page_callers_heap
        *heaps; /* of function f, direction d, column k: [(f * 2 + d) * FP_PAGE_CALLERS_VALUES + k] */
    uint32_t cap_heaps;
};

/* A zeroed struct has none. */
void fp_page_callers_clear(struct fp_page_callers *l);

/* Adds the calls of a graph batch with FP_PAGE_CALLERS_VALUES values, each arc for the first time.  FP_DONE or
 * FP_E_OVERFLOW.
 */
int fp_page_callers_put(struct fp_page_callers *l, const struct fp_batch *in, struct fp_err *err);

/* The callers (`into`) or callees of a function that are among the most expensive ones in any column, each once, by
 * falling |cost| in column `by`.  `arcs` has room for FP_PAGE_CALLERS * FP_PAGE_CALLERS_VALUES.  Returns their number.
 */
uint32_t fp_page_callers_get(const struct fp_page_callers *l, uint32_t function, int into, uint32_t by,
                             struct fp_page_callers_arc *arcs);
