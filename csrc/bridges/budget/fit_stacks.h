/* bridges/budget/fit_stacks.h - prunes the cheapest stacks, so that a viewer can open the output.
 *
 * Stacks that cost inclusively less than some share of the total become one frame [pruned] under their caller.  The
 * inclusive cost of a stack is never more than its caller's, so whole subtrees are pruned, and all totals stay.
 *
 *   main > a > b 5, main > a > c 1, main > a > c > d 1, main > e 93      less than 3 % pruned:
 *   main > a > b 5, main > a > [pruned] 2,              main > e 93
 *
 * The share of a row is the mean over its value types, each as a part of that value type's total.  The limit is known
 * only at the end, so rows are first packed and kept; the caller reads them once for the totals, once for the shares
 * and once to write them.  Shares are grouped into ranks (fp_bins_of); rank 0 is a share of 0.
 *
 * Each group becomes a file: everything, or a thread.
 *
 * A packed row, in varints: 2 * stack, plus 1 if part, thread or labels differ from the previous row's
 *
 *   [part] [value types] [thread] [labels]   time since the row before (zigzag)   each value (zigzag)
 *
 * The tree of all stacks is here, not in the model, if they are those of a walk, which may be removed from the model
 * between batches (Model.takes_walks).  Packed rows refer to its nodes; fp_fit_stacks_batch adds what stays to the
 * model again, where it may be removed again after each batch.  Other stacks are nodes of their own numbers, and they
 * are here only if they are weighed.
 *
 * Memory: 32 bytes for each node, in a file if the caller has one, and the packed rows that the caller allows.
 */
#pragma once

#include "core/core.h"

enum { FP_FIT_STACKS_RANKS = 45 * 32, FP_FIT_STACKS_GROUPS = 500 };

/* The state before a packed row. */
struct fp_fit_stacks_state {
    uint64_t time;
    uint32_t part, n_values, thread, label;
    int32_t begun;
};

struct fp_fit_stacks_group {
    uint32_t thread;
    uint64_t timed;       /* rows with a time */
    struct fp_buf packed; /* rows that the caller has not spilled yet */
    /* private from here on */
    struct fp_fit_stacks_state state;
};

struct fp_fit_stacks {
    struct fp_model *model; /* borrowed */
    int32_t by_thread;
    struct fp_fit_stacks_group *groups;
    uint32_t n_groups;
    uint64_t packed; /* bytes in all groups */
    int32_t is_walk; /* the stacks of the rows may be removed from the model; the caller sets it before the first row */
    /* of the rows that were weighed */
    uint64_t bytes[FP_FIT_STACKS_RANKS + 1]; /* by rank: bytes of its stacks */
    uint64_t stacks;                         /* pruned stacks that had rows */
    uint32_t n_of;
    int32_t is_renewed; /* the model's stacks were removed meanwhile: its ids are not those of nodes */
    int32_t file_error; /* errno, if there was no room in the file */
    /* private from here on */
    uint32_t cap_groups, *group_of, cap_group_of; /* by thread: its group + 1 */
    struct fp_fit_stacks_stack *of;               /* nodes; callers come before what they call */
    uint32_t cap_of;
    int32_t file;  /* fp_fit_stacks_to_file: the descriptor, plus 1 */
    uint32_t used; /* nodes used since the file's memory was given back */
    /* Of the model's stacks the first n_same are nodes of `path`; `shift` added to another id is that of its node. */
    uint32_t n_emptied, n_seen, n_same, shift, last;
    uint32_t *path, n_path, cap_path; /* nodes that lead to the last one */
    uint32_t *ids, cap_ids;           /* and the stacks that were added for them */
    uint32_t least;                   /* the minimum rank of stacks that stay */
    uint32_t pruned;                  /* the frame */
};

struct fp_fit_stacks *fp_fit_stacks_new(struct fp_model *model, int by_thread);
void fp_fit_stacks_free(struct fp_fit_stacks *t);

/* Moves the nodes to a file of the caller, to FP_FILE_PART (core/memory.h).  They stay in memory if that fails. */
void fp_fit_stacks_to_file(struct fp_fit_stacks *t, int fd);

/* Keeps rows of stacks.  FP_DONE or FP_E_OVERFLOW for more groups than FP_FIT_STACKS_GROUPS. */
int fp_fit_stacks_put(struct fp_fit_stacks *t, const struct fp_batch *b, struct fp_err *err);

/* Starts to return the rows of a group. */
void fp_fit_stacks_begin(struct fp_fit_stacks *t, uint32_t group);

/* Appends rows of the group, whose stacks are nodes, to `out`, from its packed bytes from in->pos on.  FP_DONE: the
 * bytes are used up; FP_FULL, also where another part begins. */
int fp_fit_stacks_take(struct fp_fit_stacks *t, uint32_t group, struct fp_window *in, struct fp_batch *out);

/* Adds the rows of a batch: value k, whatever its sign, to totals[columns[k]]. */
void fp_fit_stacks_total(const struct fp_batch *b, const uint32_t *columns, double *totals);

/* Resets the weights. */
int fp_fit_stacks_weigh_begin(struct fp_fit_stacks *t);

/* Adds the shares of rows, whose stacks are nodes, in these n totals. */
void fp_fit_stacks_weigh(struct fp_fit_stacks *t, const struct fp_batch *b, const uint32_t *columns,
                         const double *totals, uint32_t n);

/* After the last of them: sets t->bytes, for `stack` bytes per distinct stack, `row` per row and `frame` per frame. */
void fp_fit_stacks_weighed(struct fp_fit_stacks *t, uint64_t stack, uint64_t row, uint64_t frame);

/* The share at which a rank begins. */
double fp_fit_stacks_share(uint32_t rank);

/* Sets the minimum rank of stacks that stay. */
int fp_fit_stacks_cut(struct fp_fit_stacks *t, uint32_t least);

/* Replaces the nodes of a batch with stacks of the model, and adds the values of rows whose stack does not stay to
 * pruned[columns[k]]. */
int fp_fit_stacks_batch(struct fp_fit_stacks *t, struct fp_batch *b, const uint32_t *columns, double *pruned);
