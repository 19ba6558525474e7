/* bridges/fold.h - the stack machine: a timeline folded into call arcs or contexts.
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
 * A change of thread costs the depth of both stacks.  Where that adds up, what is
 * left of a batch is taken thread by thread: each row's time is its own, so
 * sums are the same (and only nodes may be found in another order).
 * Memory: linear in distinct arcs (or contexts) and in the depth of the stacks.
 */
#ifndef FP_FOLD_H
#define FP_FOLD_H

#include "core/batch.h"
#include "core/merge.h"
#include "core/model.h"

/* cffi-begin */

enum fp_fold_into {
    FP_FOLD_ARCS = 0, /* (caller, callee) pairs: for a graph */
    FP_FOLD_TREE = 1  /* call paths: for stacks */
};

/* What arcs or nodes are kept apart by, bits. */
enum fp_fold_by {
    FP_FOLD_BY_THREAD = 1,
    FP_FOLD_BY_CPU = 2 /* tree only: the time up to the next record is its CPU's */
};

/* One arc, or one node of the context tree. */
struct fp_arc {
    uint32_t caller; /* function, 0 = none; tree: node of the caller + 1, 0 = root */
    uint32_t callee; /* function */
    uint32_t group;  /* thread, 0 when threads are merged; by CPU: row of fp_fold's `groups` */
    uint32_t active; /* activations on the stack of the thread at hand */
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
    uint64_t events;    /* rows a graph or stacks cannot say: custom and typed events */
    uint64_t arguments; /* the same: call arguments */
};

struct fp_fold {
    struct fp_model *model;
    int32_t into; /* enum fp_fold_into */
    int32_t by;   /* enum fp_fold_by */
    uint32_t cpu; /* string: key of the labels that CPUs become; set by the caller */
    struct fp_fold_stats stats;
    uint64_t first_time, last_time; /* over all threads, of their records */
    struct fp_arc *arcs;
    uint32_t n_arcs; /* decides when to spill */

    /* private from here on */
    uint32_t cap_arcs;
    struct fp_fold_thread *threads;
    uint32_t cap_threads, current;
    uint64_t switched;                    /* frames that were looked at because the thread changed */
    struct fp_table groups;               /* by CPU: (thread or 0, CPU) */
    struct fp_fold_function *by_function; /* one an id */
    uint32_t cap_functions;
    uint32_t *index; /* open addressing: arc + 1 */
    uint32_t index_shift;
    uint32_t *by_caller; /* arcs ordered by (group, caller, callee) */
    uint32_t *by_callee; /* arcs ordered by (group, callee) */
    uint32_t *foreseen;  /* index slots of the batch at hand, and a scratch stack */
    uint32_t *stack_of;  /* tree: node -> stack id */
    uint32_t next_arc, next_node, n_ordered;
    uint64_t hot; /* calls from which on an arc is kept when others are spilled */
};

/* Functions and threads are ids of `model` (borrowed).  NULL when memory ran out. */
struct fp_fold *fp_fold_new(struct fp_model *model, int into, int by);
void fp_fold_free(struct fp_fold *f);

/* Takes the rows of a timeline batch, whose functions and threads are ids of the
 * model (not checked again here).  FP_DONE, FP_E_NOMEM or FP_E_OVERFLOW. */
int fp_fold_put(struct fp_fold *f, const struct fp_batch *in, struct fp_err *err);

/* Turns the times of a timeline batch from ticks of one clock (per second) into
 * those of another, rounded down.  FP_DONE or FP_E_OVERFLOW. */
int fp_fold_rescale(struct fp_batch *b, uint64_t from, uint64_t to, struct fp_err *err);

/* After the last batch: closes what is open.  FP_DONE or FP_E_OVERFLOW. */
int fp_fold_end(struct fp_fold *f, struct fp_err *err);

/* First and last time of a thread's records; 0 when it has none. */
int fp_fold_thread_times(const struct fp_fold *f, uint32_t thread, uint64_t *first, uint64_t *last);

/* Arcs: orders what there is, so that the two pulls below give sorted records
 * from the start; with `keep_hot` without the arcs called most, up to half of
 * them, which fp_fold_forget then keeps.  0 or FP_E_NOMEM. */
int fp_fold_order(struct fp_fold *f, int keep_hot);

/* Fill `to` with up to `n` words of records; the number of words, 0 at the end.
 *   arcs:   group, caller << 32 | callee, calls, ticks, subcalls   (FP_ARC_WIDTH)
 *   nodes:  group, function, self ticks, calls                     (FP_NODE_WIDTH) */
enum { FP_ARC_WIDTH = 5, FP_NODE_WIDTH = 4 };
size_t fp_fold_pull_arcs(struct fp_fold *f, uint64_t *to, size_t n);
size_t fp_fold_pull_nodes(struct fp_fold *f, uint64_t *to, size_t n);

/* Forgets the arcs that were ordered, but those on a stack, whose sums start anew.  0 or FP_E_NOMEM. */
int fp_fold_forget(struct fp_fold *f);

/* What to write values as: nanoseconds of this clock, each rounded once, half
 * up; or ticks as they are (0). */
struct fp_fold_out {
    struct fp_model *model;
    uint32_t unknown_file;         /* string: the file of functions that have none.  Readers of
                                      graphs take an empty one for the caller's */
    struct fp_merge *nodes, *arcs; /* records as above, merged */
    uint64_t ticks_per_second;
    uint32_t group;    /* set by fp_fold_totals and fp_fold_graph */
    uint64_t total[2]; /* fp_fold_totals: time in output units, calls */
    /* private from here on */
    uint32_t function;
    int32_t node_ready, arc_ready, arcs_done, begun;
};

/* Reads nodes up to the end of a group and adds them up.  FP_FULL: o->group and
 * o->total hold.  FP_MORE: refill o->nodes.  FP_DONE: no group left. */
int fp_fold_totals(struct fp_fold_out *o, struct fp_err *err);

/* Pulls graph rows of group o->group, values (time, calls): per function its
 * self cost, then its calls.  FP_FULL; FP_MORE: refill o->nodes or o->arcs,
 * whichever is hungry; FP_DONE: the group is complete; FP_E_OVERFLOW. */
int fp_fold_graph(struct fp_fold_out *o, struct fp_batch *out, struct fp_err *err);

/* Tree: pulls stacks rows, values (self time, calls), from *next on; by CPU they
 * have a label f->cpu, a string: pprof drops a number 0.  FP_FULL or FP_DONE,
 * FP_E_NOMEM, FP_E_OVERFLOW. */
int fp_fold_stacks(struct fp_fold *f, uint64_t ticks_per_second, uint32_t *next, struct fp_batch *out,
                   struct fp_err *err);

/* cffi-end */

#endif
