/* fp_fold.h - the stack machine: a timeline folded into call arcs or contexts.
 *
 * Floor 3.  One stack per thread.  An exit pops the frame it names; frames
 * above that one end there (unwound: left by an exception or longjmp); an exit
 * of a function that is not on the stack is ignored (orphan: its entry was
 * lost).  Frames open at the end are closed at their thread's last time
 * (unfinished).  Time that runs backwards within a thread is clamped.
 *
 *   enter a 10, enter b 20, exit b 50, exit a 60   gives
 *   arc (-> a) 1 call, 50 ticks, of them a's own: 20;  arc (a -> b) 1 call, 30, 30
 *
 * Recursion: the inclusive ticks of an arc count each moment once, by its
 * outermost activation in its thread; calls count every call.
 * Memory: linear in distinct arcs (or contexts) and in the depth of the stacks.
 */
#ifndef FP_FOLD_H
#define FP_FOLD_H

#include "fp_batch.h"
#include "fp_model.h"

/* cffi-begin */

enum fp_fold_into {
    FP_FOLD_ARCS = 0,  /* (caller, callee) pairs: for a graph */
    FP_FOLD_TREE = 1   /* call paths: for stacks */
};

/* One arc, or one node of the context tree. */
struct fp_arc {
    uint32_t caller;   /* function, 0 = none; tree: node of the caller + 1, 0 = root */
    uint32_t callee;   /* function */
    uint32_t group;    /* thread, or 0 when threads are merged */
    uint32_t active;   /* activations on the stack of the thread at hand */
    uint64_t calls;
    uint64_t ticks;    /* inclusive; outermost activations only */
    uint64_t subcalls; /* calls made within, the arc's own included; likewise */
    uint64_t self;     /* the callee's own ticks when called through here */
};

struct fp_fold_stats {
    uint64_t calls;
    uint64_t orphan_exits;
    uint64_t unwound;
    uint64_t unfinished;
    uint64_t clamped;
    uint64_t events;      /* rows a graph or stacks cannot say: custom and typed events */
    uint64_t arguments;   /* the same: call arguments */
};

struct fp_fold {
    struct fp_model *model;
    int32_t into;              /* enum fp_fold_into */
    int32_t per_thread;
    struct fp_fold_stats stats;
    uint64_t first_time, last_time;  /* over all threads, of function records */
    uint64_t total[2];         /* of the selected group: time in output units, calls */
    uint64_t group_first, group_last;  /* of the selected group's thread */
    uint64_t ticks_per_second; /* output in nanoseconds; 0: output in ticks */

    /* private from here on */
    struct fp_fold_thread *threads;
    uint32_t cap_threads, current;
    struct fp_fold_function *by_function;      /* one an id; private */
    uint32_t cap_functions;
    struct fp_arc *arcs;
    uint32_t n_arcs, cap_arcs;
    uint32_t *index;           /* open addressing: arc + 1 */
    uint32_t index_shift;
    uint32_t *by_caller;       /* arcs ordered by (group, caller, callee) */
    uint32_t *by_callee;       /* arcs ordered by (group, callee, caller) */
    uint32_t *stack_of;        /* tree: node -> stack id */
    uint32_t at, end;          /* pulling: range of by_callee */
    uint32_t out_at;           /* pulling: position in by_caller */
    uint32_t function;         /* pulling: whose calls are being written */
    uint32_t group;            /* pulling: the selected group */
};

/* Functions and threads are ids of `model` (borrowed).  NULL when memory ran out. */
struct fp_fold *fp_fold_new(struct fp_model *model, int into, int per_thread);
void fp_fold_free(struct fp_fold *f);

/* Takes the rows of a timeline batch.  FP_DONE, FP_E_NOMEM or FP_E_OVERFLOW. */
int fp_fold_put(struct fp_fold *f, const struct fp_batch *in, struct fp_err *err);

/* After the last batch: closes what is open and orders the result.
 * `ticks_per_second`: convert times to nanoseconds, each rounded once, half up;
 * 0 leaves ticks. */
int fp_fold_end(struct fp_fold *f, uint64_t ticks_per_second, struct fp_err *err);

/* Chooses what the pulls give: group 0, or a thread when per_thread.  Sets
 * f->total and the group's times.  The number of functions (tree: nodes), 0 if
 * the group has none; negative: FP_E_OVERFLOW. */
int64_t fp_fold_select(struct fp_fold *f, uint32_t group, struct fp_err *err);

/* Pulls graph rows, values (time, calls): per function its self cost, then its
 * calls.  FP_FULL or FP_DONE, FP_E_OVERFLOW. */
int fp_fold_graph(struct fp_fold *f, struct fp_batch *out, struct fp_err *err);

/* Pulls stacks rows, values (self time, calls).  FP_FULL or FP_DONE, FP_E_NOMEM, FP_E_OVERFLOW. */
int fp_fold_stacks(struct fp_fold *f, struct fp_batch *out, struct fp_err *err);

/* cffi-end */

#endif
