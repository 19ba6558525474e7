/* bridges/estimate.h - graph -> stacks: self costs, their callers estimated.
 *
 * A graph says which functions call each other, but not which calls
 * were made within which others.  The estimate divides a function's cost among
 * its callers in proportion to the inclusive costs of their arcs, divides each
 * share among the callers of that caller, and so on up to a root:
 *
 *   a -> c 30, b -> c 10, c self 40     gives   a > c 30,  b > c 10
 *
 * Self costs are exact: each position's cost is divided into integers by the
 * method of largest remainders, and these add up to the cost.  All values are
 * divided alike, by the first value that any arc has.
 * Recursion: no function is twice in a stack.  An arc that would close a cycle
 * is left out, and the other callers get its share.  If a function is in no
 * cycle and costs more than the arcs into it, the rest becomes a stack in which
 * it has no caller.
 * Pruning: a caller is not followed if its share is below `prune` of the
 * profile's total in every value.  A frame [pruned] then stands for it and its
 * callers.  A sole caller is always followed.
 * Limits: in a graph with many cycles the number of stacks can grow beyond
 * measure.  The work for one function and all work together are limited.
 * Callers beyond a limit are pruned, too.
 * Memory: linear in distinct positions and arcs, plus one function's callers,
 * plus the model's stacks.
 */
#ifndef FP_ESTIMATE_H
#define FP_ESTIMATE_H

#include "core/batch.h"
#include "core/model.h"

/* cffi-begin */

struct fp_estimate {
    struct fp_model *model;
    uint32_t n_values;
    uint32_t thread;   /* of the stacks to be pulled; set by the caller */
    uint64_t calls;    /* sum of the call counts, which stacks cannot hold */
    uint64_t jumps;    /* jump rows, likewise */
    uint64_t pruned;   /* stacks under [pruned] */
    uint64_t stacks;   /* stacks in all */
    uint64_t limited;  /* functions that met a limit */
    int64_t work_left; /* of the limit to all work.  With several estimates the caller copies it to the next */

    /* private from here on */
    struct fp_table positions; /* function, file, line, address (two words) */
    struct fp_table rows;      /* (position, callee or 0) */
    int64_t *sums;             /* of row i: sums[i * n_values ..] */
    uint64_t *counts;          /* of row i: calls */
    uint32_t cap_rows;
    double *total; /* by value: sum of the magnitudes of self costs */
    double prune;
    uint32_t max_depth;        /* callers followed from a function */
    int32_t cut_is_pruned;     /* what is above max_depth goes under [pruned] */
    uint32_t primary;          /* value whose shares divide; n_values: call counts */
    struct fp_caller *callers; /* ordered by callee, heaviest first */
    uint32_t *callers_start;   /* by function */
    uint32_t *selfs;           /* rows of self costs, ordered by function */
    uint32_t *selfs_start;     /* by function */
    double *called;            /* by function: weight of all its callers */
    double *uncalled;          /* by function: weight of what it costs beyond its callers */
    uint8_t *flags;            /* by function */
    uint32_t *frames;          /* by position; 0 = not made yet */
    uint32_t pruned_frame;
    uint32_t limit_met; /* by the function at hand: 0 or 1 */
    uint32_t unknown;   /* the string ??? */
    uint32_t n_functions;
    uint32_t function, row; /* pulling: function, place in selfs */
    uint32_t context;       /* pulling: place in contexts */
    struct fp_context *contexts;
    uint32_t n_contexts, cap_contexts;
    struct fp_pending *pending;
    uint32_t n_pending, cap_pending;
    uint32_t *path; /* by depth: position of the caller */
    uint32_t cap_path;
    int64_t *parts; /* of the row at hand: by value, by context */
    uint32_t cap_parts;
};

/* Ids of the batches are those of `model` (borrowed).  NULL when memory ran out. */
struct fp_estimate *fp_estimate_new(struct fp_model *model);
void fp_estimate_free(struct fp_estimate *e);

/* Widens every sum to `n_values` (never narrows).  0 or FP_E_NOMEM. */
int fp_estimate_set_values(struct fp_estimate *e, uint32_t n_values);

/* Adds the rows of a graph batch: its value k to sum columns[k].
 * Addresses and lines are read only where the part has such positions.
 * FP_DONE, FP_E_NOMEM, FP_E_OVERFLOW, FP_E_MALFORMED (an id that the model
 * does not have). */
int fp_estimate_put(struct fp_estimate *e, const struct fp_batch *in, const uint32_t *columns, int addresses, int lines,
                    struct fp_err *err);

/* After the last batch.  `max_depth` callers are followed from each function;
 * what is above them goes under [pruned] when `cut_is_pruned`, else it is left
 * out.  FP_DONE or FP_E_NOMEM. */
int fp_estimate_end(struct fp_estimate *e, double prune, uint32_t max_depth, int cut_is_pruned, struct fp_err *err);

/* Pulls stacks rows; a stack comes once for each position of its leaf.
 * FP_FULL, FP_DONE or FP_E_NOMEM. */
int fp_estimate_pull(struct fp_estimate *e, struct fp_batch *out, struct fp_err *err);

/* cffi-end */

#endif
