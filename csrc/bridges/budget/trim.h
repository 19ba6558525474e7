/* bridges/budget/trim.h - stacks, kept until it is known how many of them fit into what a viewer opens.
 *
 * Stacks that cost less than some share of the total, with all that goes on from them, become one frame [pruned] under
 * their caller.  What a stack and all that goes on from it cost is never more than what its caller costs, so what is
 * pruned are whole subtrees, and every total stays as it was.
 *
 *   main > a > b 5, main > a > c 1, main > a > c > d 1, main > e 93      less than 3 % pruned:
 *   main > a > b 5, main > a > [pruned] 2,              main > e 93
 *
 * The share of a row is the mean over its value types, each as a part of that value type's total.  Which share is too
 * small is known at the end.  So rows are first kept, packed; the caller reads them once for the totals, once for the
 * shares, and then for what is to be written.  Shares are counted in ranks (fp_bins_of), of which 0 is that of nothing.
 *
 * Groups are what becomes a file: everything, or each thread.
 *
 * A packed row, in varints: the stack, twice, plus 1 if the row is not of the part, thread and labels of the one before
 *
 *   [part] [value types] [thread] [labels]   time since the row before (zigzag)   each value (zigzag)
 *
 * Memory: linear in the model's stacks, and what the caller lets there be of packed rows.
 */
#ifndef FP_TRIM_H
#define FP_TRIM_H

#include "core/batch.h"
#include "core/buf.h"
#include "core/model.h"

/* cffi-begin */

enum { FP_TRIM_RANKS = 45 * 32, FP_TRIM_GROUPS = 500 };

/* What came before a packed row. */
struct fp_trim_state {
    uint64_t time;
    uint32_t part, n_values, thread, label;
    int32_t begun;
};

struct fp_trim_group {
    uint32_t thread;
    struct fp_buf packed; /* rows that the caller has not yet written away */
    /* private from here on */
    struct fp_trim_state state;
};

struct fp_trim {
    struct fp_model *model; /* borrowed */
    int32_t by_thread;
    struct fp_trim_group *groups;
    uint32_t n_groups;
    uint64_t packed; /* bytes in all groups */
    /* of the rows that were weighed */
    uint64_t bytes[FP_TRIM_RANKS + 1]; /* by rank: what its stacks take */
    uint64_t stacks;                   /* that were pruned and had rows of their own */
    /* private from here on */
    uint32_t cap_groups, *group_of, cap_group_of; /* by thread: its group + 1 */
    struct fp_trim_stack *of;                     /* by stack of the model */
    uint32_t n_of, cap_of;
    uint32_t least;  /* the rank that stacks must have to stay */
    uint32_t pruned; /* the frame */
};

struct fp_trim *fp_trim_new(struct fp_model *model, int by_thread);
void fp_trim_free(struct fp_trim *t);

/* Keeps rows of stacks.  FP_DONE, FP_E_NOMEM, or FP_E_OVERFLOW for more groups than FP_TRIM_GROUPS. */
int fp_trim_put(struct fp_trim *t, const struct fp_batch *b, struct fp_err *err);

/* Begins to give out the rows of a group. */
void fp_trim_begin(struct fp_trim *t, uint32_t group);

/* Appends rows of the group to `out`, from its packed bytes from in->pos on.  FP_DONE: the bytes are used up; FP_FULL,
 * also where another part begins; FP_E_NOMEM. */
int fp_trim_take(struct fp_trim *t, uint32_t group, struct fp_in *in, struct fp_batch *out);

/* Adds the rows of a batch: value k, whatever its sign, to totals[columns[k]]. */
void fp_trim_total(const struct fp_batch *b, const uint32_t *columns, double *totals);

/* Forgets what was weighed.  0 or FP_E_NOMEM. */
int fp_trim_weigh_begin(struct fp_trim *t);

/* Adds the shares of rows, of these n totals. */
void fp_trim_weigh(struct fp_trim *t, const struct fp_batch *b, const uint32_t *columns, const double *totals,
                   uint32_t n);

/* After the last of them: t->bytes, if a distinct stack takes `stack` bytes, a row `row`, and each of its frames
 * `frame`. */
void fp_trim_weighed(struct fp_trim *t, uint64_t stack, uint64_t row, uint64_t frame);

/* The share at which a rank begins. */
double fp_trim_share(uint32_t rank);

/* Says the rank that stacks must have to stay.  0 or FP_E_NOMEM. */
int fp_trim_cut(struct fp_trim *t, uint32_t least);

/* Replaces the stacks of a batch that do not stay, and adds the values of its rows to pruned[columns[k]].  0 or
 * FP_E_NOMEM. */
int fp_trim_batch(struct fp_trim *t, struct fp_batch *b, const uint32_t *columns, double *pruned);

/* cffi-end */

#endif
