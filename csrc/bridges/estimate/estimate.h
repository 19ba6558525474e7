/* bridges/estimate/estimate.h - graph -> stacks: self costs, their callers estimated.
 *
 * A graph records which functions call each other, but not which calls were made within which others.  The estimate
 * works from the roots down.  A context is a function with a stack of callers; its share is its part of the function's
 * cost.  A context passes its share on to each arc in proportion:
 *
 *   share of "... > f > g"  =  share of "... > f"  *  cost of the arc f -> g / cost of g
 *
 *   main -> a 30, main -> b 10, a -> c 30, b -> c 10, c self 40
 *   shares: main 1, main > a 1, main > b 1, main > a > c 3/4, main > b > c 1/4
 *
 * Self costs are exact: each place's cost is divided into integers that add up to it.  All values are divided alike, by
 * the first value that any arc has.
 * Roots: functions without callers, and the cost of a function outside of cycles beyond the arcs into it.
 * Pruning: a context that would cost less than `prune` of the profile's total, on average over its values, is not made.
 * The rest of an arc b -> c becomes a context [pruned] > b > c, if that is not too small; the remaining cost is under a
 * frame [pruned] alone.
 * Cycles: no function is twice in a stack.  Arcs that would close a cycle are left out, and the shares of each function
 * of the cycle are scaled, so that they add up to one again.
 * Size: docs/bridges.md describes how rows are summed beyond most_rows.
 */
#ifndef FP_ESTIMATE_H
#define FP_ESTIMATE_H

#include "core/batch.h"
#include "core/model.h"

/* cffi-begin */

/* The granularity of a place in a stack. */
enum fp_estimate_by { FP_BY_FUNCTION = 0, FP_BY_LINE = 1, FP_BY_ADDRESS = 2 };

/* Which callers a stack has. */
enum fp_estimate_callers { FP_CALLERS_NONE = 0, FP_CALLERS_DIRECT = 1, FP_CALLERS_ALL = 2 };

/* The defaults of most_rows, and of max_contexts, which take 64 MiB. */
enum { FP_ESTIMATE_ROWS = 150000, FP_ESTIMATE_CONTEXTS = 1 << 21 };

/* Callers in a stack. */
enum { FP_ESTIMATE_DEPTH = 1000 };

struct fp_estimate {
    struct fp_model *model;
    uint32_t n_values;
    uint32_t by;  /* enum fp_estimate_by */
    double prune; /* fp_estimate_end raises it if there would be more than max_contexts */
    /* after fp_estimate_end: functions without callers while another of the same name has callers but no rows, and
     * their share of the total */
    uint32_t uncalled;
    double uncalled_cost;
    uint32_t max_contexts;
    uint32_t most_rows; /* written in full detail with any `prune`; 1 / prune if that is more */
    uint64_t calls;     /* sum of the call counts, which stacks cannot hold */
    uint64_t jumps;     /* jump rows, likewise */
    /* of the rows pulled so far: */
    uint64_t stacks;
    double pruned;    /* share of the total under [pruned], of the value that divides */
    double unlined;   /* the same, of costs that lost their line or address */
    uint64_t unnamed; /* functions that are summed up as [pruned] */

    /* private from here on */
    struct fp_estimate_sums *own; /* self costs by place */
    struct fp_estimate_sums *arcs;
    struct fp_estimate_flow *flow;
    struct fp_estimate_rows *rows;
};

/* Ids of the batches are those of `model` (borrowed).  NULL when memory ran out. */
struct fp_estimate *fp_estimate_new(struct fp_model *model, uint32_t by, double prune);
void fp_estimate_free(struct fp_estimate *e);

/* Widens every sum to `n_values` (never narrows).  0 or FP_E_NOMEM. */
int fp_estimate_set_values(struct fp_estimate *e, uint32_t n_values);

/* Adds the rows of a graph batch: its value k to sum columns[k].
 * Addresses and lines are read only where the part has such positions.
 * FP_DONE, FP_E_NOMEM, FP_E_OVERFLOW, FP_E_MALFORMED (an id that the model
 * does not have). */
int fp_estimate_put(struct fp_estimate *e, const struct fp_batch *in, const uint32_t *columns, int addresses, int lines,
                    struct fp_err *err);

/* Before rows of other profiles: frees the memory needed only to add rows.  fp_estimate_put may be called again. */
void fp_estimate_pause(struct fp_estimate *e);

/* After the last batch: finds the contexts.  `callers` is an enum
 * fp_estimate_callers.  FP_DONE, FP_E_OVERFLOW or FP_E_NOMEM. */
int fp_estimate_end(struct fp_estimate *e, uint32_t callers, struct fp_err *err);

/* After fp_estimate_end: the object with most self cost.  FP_NO_ID when memory ran out. */
uint32_t fp_estimate_costliest_object(const struct fp_estimate *e);

/* Pulls stacks rows of this thread.  FP_FULL, FP_DONE or FP_E_NOMEM. */
int fp_estimate_pull(struct fp_estimate *e, uint32_t thread, struct fp_batch *out, struct fp_err *err);

/* cffi-end */

#endif
