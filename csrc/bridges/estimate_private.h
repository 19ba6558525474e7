/* bridges/estimate_private.h - what the estimate's files share.  Private.
 *
 *   estimate.c           sums by (position, callee), and who calls whom
 *   estimate_contexts.c  the stacks of each function, and how its costs are divided over them
 */
#ifndef FP_ESTIMATE_PRIVATE_H
#define FP_ESTIMATE_PRIVATE_H

#include <math.h>

#include "bridges/common.h"
#include "bridges/estimate.h"
#include "core/array.h"

/* What all estimating together may take, in looks at a caller; what is beyond it is pruned. */
#if defined(FP_DEBUG)
enum { FP_ESTIMATE_WORK = 1 << 18 }; /* so that fuzzers meet it, and within their time */
#else
enum { FP_ESTIMATE_WORK = 1 << 29 }; /* half a minute, a gigabyte */
#endif

/* Flags of functions. */
enum { FP_ESTIMATE_IN_CYCLE = 1, FP_ESTIMATE_ON_PATH = 2 };

/* One who calls: a position, and how much of the callee's cost it stands for. */
struct fp_caller {
    double weight;
    uint32_t position;
    uint32_t function;
};

static inline int fp_estimate_no_memory(struct fp_err *err) {
    return fp_fail(err, FP_E_NOMEM, 0, "the callers of the stacks");
}

static inline double fp_estimate_magnitude(int64_t v) {
    return fabs((double)v);
}

static inline uint32_t fp_estimate_function(const struct fp_estimate *e, uint32_t position) {
    return fp_table_row(&e->positions, position)[FP_POSITION_FUNCTION];
}

static inline const int64_t *fp_estimate_sums(const struct fp_estimate *e, uint32_t row) {
    return e->sums + (size_t)row * e->n_values;
}

#endif
