/* ends/top.h - sums costs by id: functions, places, files, threads ...
 *
 * For each item: self cost, inclusive cost (with its callees), number of calls, and self cost in a second value type,
 * to sort by.  Arrays by id, so adding is one access and memory grows with the ids.
 *
 * Functions of a graph.  A graph records the cost of each arc, not the inclusive cost of each function.  Part by part,
 * a function's inclusive cost is the cost of the calls into it, without calls to itself, or its self cost plus the cost
 * of its calls, whichever is farther from 0.  Both are equal unless some calls have no recorded caller: those of a
 * thread's first function, of a signal handler, of a truncated stack.  For a function without callers it is its self
 * cost plus the cost of its calls.
 *
 *   main -> a 90, a -> a 40, self: main 10, a 90      main: not called, 10 + 90 = 100     a: 90
 *   main -> a 50, self: main 10, a 90                 main: 10 + 50 = 60                  a: 90, of which 40 uncalled
 *
 * Inclusive costs in a cycle overlap.  So the cost of a member is its self cost plus the cost of its calls out of the
 * cycle; the cost of the cycle is the sum of its members.  Where cycles are not shown, a member's cost is that of the
 * calls into it, or its self cost if that is farther from 0.
 *
 *   main -> a 100, a -> b 80, b -> a 60, b -> c 20, self: a 30, b 50, c 20       a 30, b 70, <cycle> 100
 *
 * Inclusive costs of stacks and timelines are exact, and so are those that a graph records itself: they are added
 * unchanged, and their arcs are only listed.
 */
#pragma once

#include "bridges/fold/fold.h"
#include "bridges/project/project.h"

/* `cap` items; new ones are zero.  A zeroed struct has none; fp_top_sums_clear frees the memory. */
struct fp_top_sums {
    int64_t *self, *inclusive, *calls, *second;
    uint8_t *seen; /* 1 if it has a row */
    uint32_t cap;
};

void fp_top_sums_clear(struct fp_top_sums *c);

/* Adds the first value of `n` rows to the self cost of the items `ids`, and the second value, which may be NULL.
 * FP_DONE or FP_E_OVERFLOW. */
int fp_top_sums_add(struct fp_top_sums *c, const uint32_t *ids, const int64_t *values, const int64_t *second,
                    uint32_t n, struct fp_err *err);

/* The kind of items. */
enum fp_top_by {
    FP_TOP_BY_FUNCTION = 0, /* functions of the model */
    FP_TOP_BY_LINE = 1,     /* rows of a table of places: function, file, line */
    FP_TOP_BY_FILE = 2,     /* strings */
    FP_TOP_BY_OBJECT = 3    /* objects */
};

/* Adds the rows of a graph batch by line, file or object.  The inclusive cost of a line includes its calls, and `calls`
 * counts those made there; for files and objects a graph does not provide this.  Value columns `value` and `second`,
 * and `inclusive` with the inclusive cost of each function, at its first line; negative: the batch has none.  `places`
 * has three columns.  FP_DONE or FP_E_OVERFLOW. */
int fp_top_graph(struct fp_top_sums *c, const struct fp_model *model, const struct fp_batch *in, int by, int value,
                 int second, int inclusive, struct fp_table *places, struct fp_err *err);

/* The sum of one of the arrays of `c`.  FP_DONE or FP_E_OVERFLOW. */
int fp_top_sums_sum(const struct fp_top_sums *c, const int64_t *key, int64_t *sum, struct fp_err *err);

/* The ids of the `want` items seen with the largest |key| (`key` is one of the arrays of `c`), in any order, and of
 * all items that tie with the last.  `ids` has room for c->cap.  Returns their number; UINT32_MAX when memory ran
 * out. */
uint32_t fp_top_sums_largest(const struct fp_top_sums *c, const int64_t *key, uint32_t want, uint32_t *ids);

/* Pulls a graph row of zeros for each function from `*at` on that has rows but no self cost.  FP_FULL or FP_DONE. */
int fp_top_sums_zeros(const struct fp_top_sums *c, uint32_t *at, struct fp_batch *out);

struct fp_top_arc {
    uint32_t caller, callee;
    int64_t cost, calls;
};

struct fp_top_functions {
    struct fp_model *model;
    struct fp_top_sums all;
    uint32_t *cycle; /* by function: its cycle from 1 on, 0 = none; set by fp_top_functions_end */
    uint32_t n_cycles;

    /* private from here on */
    int32_t how; /* enum fp_top_functions_part */
    int32_t keep_arcs;
    int64_t *self, *inclusive; /* by function: the shares of `all` that come from graphs */
    int64_t *recursive;        /* by function: inclusive cost if it is in a cycle and cycles are not shown */
    uint32_t cap_graph;
    struct fp_top_function_sums *by_function; /* of the current part */
    uint32_t cap;
    uint32_t *touched; /* functions of the current part */
    uint32_t n_touched, cap_touched;
    struct fp_top_arcs *arcs;     /* two: of graphs, and of exact sources */
    struct fp_top_last_arc *last; /* by function, of FP_PART_ARCS */
    uint32_t cap_last;
    /* set by fp_top_functions_index */
    uint32_t *shown_as;       /* by function: a number for all that have its name, file, object and cycle */
    uint32_t *slot;           /* by that number, then by cycle: 1 + place in `found` while arcs are added up */
    struct fp_top_arc *found; /* of one function */
    struct fp_table names;    /* while they are numbered */
    uint32_t cap_found;
};

/* Functions are ids of `model` (borrowed). */
struct fp_top_functions *fp_top_functions_new(struct fp_model *model);
void fp_top_functions_free(struct fp_top_functions *f);

/* The source of the following graph rows. */
enum fp_top_functions_part {
    FP_PART_GRAPH = 0,   /* a graph: inclusive costs follow from arcs */
    FP_PART_EXACT = 1,   /* another view: inclusive costs are added to `all` separately */
    FP_PART_ARCS = 2,    /* the same, and so are self costs and calls: of the rows only arcs are added */
    FP_PART_RECORDED = 3 /* a graph with a value that is the inclusive cost of each function */
};

/* Which arcs are kept. */
enum {
    FP_ARCS_NONE = 0,
    FP_ARCS_ALL = 1,
    FP_ARCS_OF_COSTS = 2 /* with FP_PART_ARCS: those whose cost is not 0, and of functions that call themselves */
};

/* Begins a part.  `how` is enum fp_top_functions_part; `arcs`: which of its arcs are kept.  Keep those of a graph,
 * because cycles are found in them. */
void fp_top_functions_begin(struct fp_top_functions *f, int how, int arcs);

/* Adds the rows of a graph batch, of value columns as in fp_top_graph.  Column `calls` (negative: none) of cost rows
 * has the number of calls of their function; without it, arcs into a function are counted.  Column `inclusive`: the
 * inclusive cost of a function, in its cost rows, with FP_PART_RECORDED.  FP_DONE, FP_E_OVERFLOW, FP_E_MALFORMED (a
 * function that the model does not have). */
int fp_top_functions_put(struct fp_top_functions *f, const struct fp_batch *in, int value, int second, int calls,
                         int inclusive, struct fp_err *err);

/* Ends the part and computes its inclusive costs.  As above. */
int fp_top_functions_end_part(struct fp_top_functions *f, struct fp_err *err);

/* After the last part: finds the cycles and the costs of their members.  Without `cycles` n_cycles is 0 and no function
 * has a cycle.  As above. */
int fp_top_functions_end(struct fp_top_functions *f, int cycles, struct fp_err *err);

/* Whether any arcs are kept. */
int fp_top_functions_has_arcs(const struct fp_top_functions *f);

/* After that: prepares the two calls below. */
int fp_top_functions_index(struct fp_top_functions *f);

/* The callers of a function (`into`) or its callees: the `room` arcs with the highest cost, in any order.  Functions of
 * the same name, file, object and cycle are merged.  So are calls into another cycle, to any of its members.  A caller
 * of a member from outside calls the cycle, and is left out.  Returns the number of all arcs or FP_E_OVERFLOW. */
int64_t fp_top_functions_arcs(struct fp_top_functions *f, uint32_t function, int into, struct fp_top_arc *arcs,
                              uint32_t room, struct fp_err *err);

/* The same arcs, only those from or to `n` other functions; each comes once.  `arcs` has room for `n`. */
int64_t fp_top_functions_arcs_with(struct fp_top_functions *f, uint32_t function, int into, const uint32_t *others,
                                   uint32_t n, struct fp_top_arc *arcs, struct fp_err *err);

/* The functions in cycles: the first `room` of them.  Returns the number of all. */
uint32_t fp_top_functions_in_cycles(const struct fp_top_functions *f, uint32_t *functions, uint32_t room);

/* The arcs into a cycle, or into any (0), from outside.  As above; the callee is the member. */
uint32_t fp_top_functions_cycle_arcs(const struct fp_top_functions *f, uint32_t cycle, struct fp_top_arc *arcs,
                                     uint32_t room);

/* Where fp_top_stacks adds the costs of sum `value`, and those of sum `second` to the second values; negative: none. */
struct fp_top_column {
    struct fp_top_sums *to;
    int32_t value, second;
};

/* After fp_project_end, instead of the graph: adds to each of n columns the cost of each function, line, file or object
 * (`by`, enum fp_top_by) of all groups.  Exact: a stack counts once in the inclusive cost of an item that it contains
 * several times.  Sum `calls` (negative: none) of the stacks that end there is the number of calls.  `places` has three
 * columns.  As fp_project_put. */
int fp_top_stacks(struct fp_project *s, int by, const struct fp_top_column *columns, uint32_t n, int calls,
                  struct fp_table *places, struct fp_err *err);

/* After fp_fold_end, with FP_FOLD_INCLUSIVE: adds to `c` the inclusive cost of each function of the graph's rows, over
 * all threads, in value column `column` (enum fp_fold_column).  FP_DONE or FP_E_OVERFLOW. */
int fp_top_timeline(const struct fp_fold *f, const struct fp_fold_out *o, uint32_t column, struct fp_top_sums *c,
                    struct fp_err *err);

/* How long the calls of a function took.  Percentile q is the duration with index floor(q * calls) of all sorted, from
 * 0 on, as llvm-xray has it: more than a share q of the calls took no longer.  It is at most 1 % off (durations.h);
 * least and longest are exact. */
struct fp_top_duration {
    uint64_t calls; /* those that ended */
    uint64_t min, median, p90, p99, max;
};

/* By function.  A zeroed struct has none; fp_top_durations_clear frees the memory. */
struct fp_top_durations {
    struct fp_top_duration *of;
    uint32_t cap;
};

void fp_top_durations_clear(struct fp_top_durations *d);

/* After fp_fold_end, with FP_FOLD_DURATIONS: the durations of the calls of each function of the graph's rows, over all
 * threads, into an empty `d`.  As above. */
int fp_top_summarize(const struct fp_fold *f, const struct fp_fold_out *o, struct fp_top_durations *d,
                     struct fp_err *err);

/* cffi-end */

/* The distance from 0. */
static inline uint64_t fp_top_magnitude(int64_t v) {
    return v < 0 ? (uint64_t)-(v + 1) + 1 : (uint64_t)v;
}

/* Room for the items below `n`. */
void fp_top_room(struct fp_top_sums *c, uint64_t n);
