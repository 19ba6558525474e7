/* bridges/estimate/estimate.h - graph -> stacks: self costs are exact, their callers estimated.
 *
 * A graph records which functions call each other, but not the chains of calls.  A
 * context is a function with a stack of callers; its share is the part of the function's cost that it represents.  From
 * the roots down, a context passes its share on to each arc, in proportion to the arc's part of the callee's cost:
 *
 *   share of "... > f > g"  =  share of "... > f"  *  cost of the arc f -> g / cost of g
 *
 *   main -> a 30, main -> b 10, a -> c 30, b -> c 10, c self 40
 *   shares: main 1, main > a 1, main > b 1, main > a > c 3/4, main > b > c 1/4
 *
 * Exact: each place's cost is divided into integers that add up to it, in the same proportions for all values: those of
 * the first value that any arc has.
 * Roots: functions without callers.  A function that costs more than the arcs into it is a root for the difference.  So
 * is a cycle: of its members, those that have more calls than the arcs into them, if calls of functions are recorded,
 * otherwise those that cost more than the arcs into them.
 * Pruning: a context below `prune` of the profile's total, averaged over the values, is not created.  The pruned part
 * of an arc b -> c becomes a context [pruned] > b > c if that is large enough, otherwise [pruned] > c.
 * Cycles: a function occurs at most once in a stack.  The walk skips arcs that would close a cycle, then scales the
 * shares of each function of the cycle to add up to 1.
 * Size: beyond most_rows the cheapest lines and functions are merged (docs/bridges.md).
 *
 * Order of calls: fp_estimate_new, fp_estimate_set_values, fp_estimate_put for each batch, fp_estimate_end,
 * fp_estimate_pull until FP_DONE.
 */
#pragma once

#include "core/core.h"

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
    uint32_t by;        /* enum fp_estimate_by */
    uint32_t own_calls; /* the value of a self cost that counts the calls of its function; FP_NO_ID: none */
    double prune;       /* fp_estimate_end raises it if there would be more than max_contexts */
    /* set by fp_estimate_end: functions without callers while another one of the same name has callers but no rows,
     * and their share of the total */
    uint32_t uncalled;
    double uncalled_cost;
    uint32_t max_contexts;
    uint32_t most_rows; /* rows that are written in full detail; 1 / prune if that is more */
    uint64_t FP_COUNT(calls, "call-counts", not_representable, "call count(s)"); /* their sum */
    uint64_t FP_COUNT(jumps, "jumps", not_representable, "jump(s)");
    /* In none of the rows pulled so far: no cost, pruned, or a second time on their path. */
    uint32_t FP_COUNT(unshown, "unshown-arcs", not_representable, "call arc(s) that no stack shows");
    /* of the rows pulled so far; shares are of the value that divides */
    uint64_t stacks;
    double pruned;    /* share of the total under [pruned] */
    double unlined;   /* share of the total that lost its line or address */
    uint64_t unnamed; /* functions merged into [pruned] */

    /* private from here on */
    struct fp_estimate_sums *own; /* self costs by place */
    struct fp_estimate_sums *arcs;
    struct fp_estimate_flow *flow;
    struct fp_estimate_rows *rows;
};

/* Ids of the batches are those of `model` (borrowed). */
struct fp_estimate *fp_estimate_new(struct fp_model *model, uint32_t by, double prune);
void fp_estimate_free(struct fp_estimate *e);

/* Sets the number of values to `n_values` if that is more than now. */
int fp_estimate_set_values(struct fp_estimate *e, uint32_t n_values);

/* Adds the rows of a graph batch: its value k to sum columns[k].  `addresses`, `lines`: whether the part has such
 * positions.  FP_DONE, FP_E_OVERFLOW, or FP_E_MALFORMED: an id that the model does not have. */
int fp_estimate_put(struct fp_estimate *e, const struct fp_batch *in, const uint32_t *columns, int addresses, int lines,
                    struct fp_err *err);

/* Frees the memory needed only to add rows, while other profiles are read.  fp_estimate_put may be called again. */
void fp_estimate_pause(struct fp_estimate *e);

/* After the last batch: finds the contexts.  `callers`: enum fp_estimate_callers.  FP_DONE or FP_E_OVERFLOW. */
int fp_estimate_end(struct fp_estimate *e, uint32_t callers, struct fp_err *err);

/* After fp_estimate_end: the object with most self cost.  FP_NO_ID when memory ran out. */
uint32_t fp_estimate_costliest_object(const struct fp_estimate *e);

/* Pulls stacks rows, which get this thread.  FP_FULL or FP_DONE. */
int fp_estimate_pull(struct fp_estimate *e, uint32_t thread, struct fp_batch *out);
