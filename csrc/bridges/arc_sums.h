/* bridges/arc_sums.h - adds up the call arcs of sorted runs that are whole in memory, caller by caller.
 *
 *   run A: a -> b 10, a -> c 3, b -> d 1      run B: a -> b 7, b -> c 2
 *   gives  a -> b 17, a -> c 3, b -> c 2, b -> d 1
 *
 * The callees of a caller are many, and functions have dense numbers.  So each run adds its arcs of the caller to an
 * array by callee, and a bit says which callees there are: no two arcs are compared, which is faster than to merge.
 * Memory: linear in the number of functions.
 */
#ifndef FP_ARC_SUMS_H
#define FP_ARC_SUMS_H

#include "bridges/fold.h"

/* cffi-begin */

struct fp_arc_sums {
    uint32_t n_functions; /* callees are below that */

    /* private from here on */
    uint32_t n_runs, cap_runs;
    struct fp_arc_run *runs;
    uint64_t caller;          /* group << 32 | caller: of the sums */
    struct fp_arc_sum *sums;  /* by callee */
    uint64_t *called;         /* a bit for each callee that has a sum */
    uint64_t *blocks;         /* a bit for each word of `called` that is not 0 */
    uint32_t block, n_blocks; /* of the next sum; all of them */
};

/* NULL when memory ran out.  Caller owns. */
struct fp_arc_sums *fp_arc_sums_new(uint32_t n_functions);
void fp_arc_sums_free(struct fp_arc_sums *s);

/* Takes runs of records as fp_fold_pull_arcs writes them, one behind the other from `words` on, run i of n_words[i]
 * words; of their records only those count whose keys are not below `low`, and below `high`.  NULL: there is no such
 * bound.  Borrows the words until all sums are pulled.  0 or FP_E_NOMEM. */
int fp_arc_sums_begin(struct fp_arc_sums *s, const uint64_t *words, const size_t *n_words, uint32_t n_runs,
                      const uint64_t *low, const uint64_t *high);

/* Fills `to` with such records, in order, up to `n` words; *got becomes their number, 0 at the end.  A sum beyond
 * 2^64 - 1 is several records, each as large as possible.  FP_DONE, or FP_E_MALFORMED: there is no such callee. */
int fp_arc_sums_pull(struct fp_arc_sums *s, uint64_t *to, size_t n, size_t *got, struct fp_err *err);

/* cffi-end */

#endif
