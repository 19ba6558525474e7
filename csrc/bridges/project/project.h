/* bridges/project/project.h - stacks -> graph: samples become self costs and call arcs.
 *
 *   main > even > odd > even   5        gives  even: self 5
 *   main > even                2               even: self 2
 *                                              main -> even 7, even -> odd 5, odd -> even 0
 *
 * Recursion: if a function is on a sample's stack several times, the values are added only to the outermost arc into
 * it.  So the arcs into a function add up to its inclusive cost, as readers of a graph expect.  The inner arcs have a
 * call count and no cost.
 *
 * Order of calls: fp_project_new, fp_project_set_values, fp_project_put for each batch, which sums values by distinct
 * (stack, group); fp_project_end; for each group fp_project_begin and, until FP_DONE, fp_project_select, which walks
 * the tree of its stacks once, or fp_project_select_self; after each of these fp_project_pull until FP_DONE.
 *
 * Without threads, sums are stored by the stack's id: a sample needs no lookup, and no stack is walked twice.
 *
 * Memory: 16 bytes and the sums of each stack of the model or, with threads, of each distinct (stack, thread) pair; and
 * the positions and arcs of a graph.  To limit it, the caller pulls the graph so far, adds it to the previous ones, and
 * continues after fp_project_empty.
 */
#pragma once

#include "core/core.h"

/* A stack of the selected group, or a parent of such a stack. */
struct fp_project_node {
    uint32_t key;     /* of this stack's own sums; 0 = none */
    uint32_t child;   /* 0 = none */
    uint32_t sibling; /* FP_NO_ID = none; 0 = the stack is not in the tree */
};

/* A walk over the tree of a group, between two calls of fp_project_select. */
struct fp_project_walk {
    uint32_t group, end; /* the groups that remain */
    uint32_t at, depth;
    int32_t is_begun;
    int64_t calls;      /* the value that counts calls; negative: none */
    int64_t *inclusive; /* by depth: the sum of the nodes below so far */
    uint32_t cap_depth;
};

struct fp_project {
    struct fp_model *model;
    uint32_t n_values;
    int32_t per_thread;       /* group = thread; otherwise all samples are in group 0 */
    int32_t inline_calls;     /* inlined functions are calls, not part of their caller */
    int32_t addresses;        /* fp_project_end: some position has an address */
    int32_t return_addresses; /* fp_project_end: some of these are return addresses */
    int32_t lines;            /* fp_project_end: some position has a line */
    uint64_t samples;
    uint64_t FP_COUNT(labelled, "sample-labels");
    uint64_t FP_COUNT(timed, "sample-times");
    /* Distinct stacks of more than two functions, which a graph splits into calls. */
    uint64_t FP_COUNT(joined, "joined-stacks", not_representable, "call stack(s), reduced to call arcs");
    uint32_t n_keys;      /* 1 + distinct (stack, group) */
    struct fp_table keys; /* (stack, group), if per_thread; otherwise the key of a stack is its id + 1 */
    /* set by fp_project_end */
    uint32_t n_groups;     /* highest group + 1 */
    uint32_t *group_start; /* n_groups + 1 positions among the keys ordered by group */
    struct fp_table rows;  /* (position, callee or 0) of the selected group */

    /* private from here on */
    uint32_t no_stack;          /* the frame of the function that samples without a stack are in */
    int64_t *sums;              /* of key i: sums[i * n_values ..] */
    uint32_t cap_sums;          /* keys */
    uint32_t *by_group;         /* keys ordered by group */
    struct fp_table positions;  /* function, file, line, address (two words) */
    struct fp_table names;      /* object, file, name of functions */
    uint32_t *function_of_name; /* by name: the function that stands for it */
    uint32_t cap_names;
    uint32_t *chain; /* per frame: length, then positions, outermost first */
    uint32_t n_chain, cap_chain;
    uint32_t *chain_of;            /* by frame: place in `chain`; 0 = not resolved yet */
    struct fp_project_node *nodes; /* by stack */
    struct fp_project_walk walk;
    uint32_t *active; /* by function: its activations above the current node */
    uint32_t cap_frames, cap_nodes, cap_active;
    uint64_t *start_of; /* by function: its address, if it is named by address */
    uint32_t cap_start;
    uint32_t unknown_file; /* the string ??? */
    int64_t *costs;        /* of row i: costs[i * n_values ..] */
    uint64_t *counts;      /* of row i: calls */
    uint32_t cap_rows;
    uint32_t at;        /* the row to pull next */
    struct fp_buf name; /* scratch */
};

/* Ids of the batches are those of `model` (borrowed). */
struct fp_project *fp_project_new(struct fp_model *model, int per_thread, int inline_calls);
void fp_project_free(struct fp_project *s);

/* Sets the number of values to `n_values` if that is more than now. */
int fp_project_set_values(struct fp_project *s, uint32_t n_values);

/* Adds the rows of a stacks batch: its value k to sum columns[k].  FP_DONE, FP_E_OVERFLOW, or FP_E_MALFORMED: an id
 * that the model does not have. */
int fp_project_put(struct fp_project *s, const struct fp_batch *in, const uint32_t *columns, struct fp_err *err);

/* After the batches: finds the positions of every frame.  Code without a name gets a function named by its address.
 * Returns as fp_project_put. */
int fp_project_end(struct fp_project *s, struct fp_err *err);

/* Begins the graph of a group, or of all groups together (FP_NO_ID).  Call counts come from value `calls`; negative:
 * there are none, and all are 0.  `totals` (n_values) is set to 0. */
void fp_project_begin(struct fp_project *s, uint32_t group, int64_t calls, int64_t *totals);

/* Builds the graph, or a part of it with little more than `most` rows: the graph is the sum of its parts.  FP_FULL:
 * there are further parts; FP_DONE: `totals` got the sums over all samples; or a negative status. */
int fp_project_select(struct fp_project *s, uint32_t most, int64_t *totals, struct fp_err *err);

/* Builds the graph of one group with only self costs, without a walk. */
int fp_project_select_self(struct fp_project *s, uint32_t group, int64_t *totals, struct fp_err *err);

/* Pulls graph rows, each place and arc once.  FP_FULL or FP_DONE. */
int fp_project_pull(struct fp_project *s, struct fp_batch *out);

/* Drops the sums, to begin again.  The graph of all batches is the sum of the graphs pulled before and after. */
void fp_project_empty(struct fp_project *s);

/* cffi-end */

/* The key of a row's sum, after fp_project_put. */
uint32_t fp_project_key(const struct fp_project *s, uint32_t stack, uint32_t thread);
