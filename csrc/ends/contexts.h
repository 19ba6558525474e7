/* ends/contexts.h - the context tree of a page: functions under their callers, cut to a size that can be shown.
 *
 * A context is a function with a stack of callers, in one thread.  Its share is its inclusive cost as a part of the
 * total, on average over the value types; no context is larger than its caller.  Contexts that are cut become one
 * context without a function under their caller, so all totals stay.
 *
 *   main > a > b 5, main > a > c 1, main > d 94          cut below 2 %:
 *   main > a > b 5, main > a > (cut) 1, main > d 94
 *
 * Memory: linear in the distinct contexts that were added.  When there are too many, the caller cuts the smaller ones
 * by their costs so far; if they come again, they start from 0.  From then on a new context of a timeline is only added
 * if its cost since the stack machine was emptied is at least half of what was too small then.
 */
#pragma once

#include "bridges/fold/fold.h"
#include "ends/context_labels.h"
#include "ends/context_times.h"

/* Samples whose contexts are looked up at the same time, so that they wait for memory together. */
enum { FP_CONTEXT_LANES = 32 };

struct fp_contexts {
    uint32_t n_values;
    uint32_t lanes; /* set by fp_contexts_new; tests set 1, which adds contexts one after the other */
    uint64_t n_all; /* contexts that were added */
    /* Set by fp_contexts_cut.  The callers of each thread's first contexts are its root. */
    uint32_t n;
    uint32_t *up;          /* distance to the caller, which comes first; 0: the root of a thread */
    uint32_t *function;    /* 0: the root of a thread, or the contexts cut there */
    uint32_t *thread;      /* of the model; FP_NO_ID: threads that were cut as a whole */
    int64_t *self;         /* value k of context i: self[k * n + i] */
    struct fp_table nodes; /* parent, function, thread + 1 (roots only) */
    struct fp_context_labels labels;
    struct fp_context_times times;
    double above; /* the share up to which contexts were cut by the last fp_contexts_shrink; 0: none were */

    /* private from here on */
    int64_t *own, *cut; /* of node i: [i * n_values ..] */
    uint32_t cap_own, cap_cut;
    uint32_t next;      /* where fp_contexts_add continues, among the keys ordered by group */
    int32_t is_large;   /* it returned FP_FULL */
    double *share;      /* by node */
    double total[2];    /* of a timeline, by enum fp_fold_column: in ticks, and calls */
    uint32_t *in_graph; /* of a timeline, by function: the same in the graph (fp_fold_in_graph), 0: not known yet */
    uint32_t cap_in_graph;
    struct fp_table rebuilt; /* in fp_contexts_shrink: the next `nodes` */
};

struct fp_contexts *fp_contexts_new(void);
void fp_contexts_free(struct fp_contexts *c);

/* Adds the stacks of all groups of `s`, after fp_project_end, and labels and times of their samples; its values are the
 * first ones of `c`, which gets as many.  FP_FULL: there are more than `most` contexts, and the next call continues,
 * unless there are labels or times, which refer to contexts; from then on keys of threads are in depth-first order.
 * FP_DONE or FP_E_OVERFLOW. */
int fp_contexts_add(struct fp_contexts *c, struct fp_project *s, uint32_t most, struct fp_err *err);

/* The same for a timeline, which must be the only input: adds the tree of the stack machine, after which the caller
 * drops it (fp_fold_drop_spilled).  Values by enum fp_fold_column; time is in ticks until fp_contexts_scale.  FP_DONE
 * or FP_E_OVERFLOW. */
int fp_contexts_take(struct fp_contexts *c, const struct fp_fold *f, struct fp_err *err);

/* After the last of these: ticks become nanoseconds, rounded in each context; 0 ticks a second: unchanged.  FP_DONE or
 * FP_E_OVERFLOW. */
int fp_contexts_scale(struct fp_contexts *c, uint64_t ticks_per_second, struct fp_err *err);

/* May be called between two calls of either: keeps at most `most` contexts, the largest.  FP_DONE or FP_E_OVERFLOW. */
int fp_contexts_shrink(struct fp_contexts *c, uint32_t most, struct fp_err *err);

/* After the last of them: computes the share of each context.  FP_DONE or FP_E_OVERFLOW. */
int fp_contexts_end(struct fp_contexts *c, struct fp_err *err);

/* Keeps contexts of at least the share `least`, and no more than `most` of them; each may get one more for those cut
 * below it.  May be called again, to keep less or more.  FP_DONE or FP_E_OVERFLOW. */
int fp_contexts_cut(struct fp_contexts *c, double least, uint32_t most, struct fp_err *err);
