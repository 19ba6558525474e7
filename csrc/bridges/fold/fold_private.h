/* bridges/fold/fold_private.h - shared by the stack machine's files.  Private.
 *
 *   fold.c        the machine: rows of a timeline in, arcs and contexts out
 *   fold_arcs.c   the table of arcs
 *   fold_spill.c  arcs and nodes as sorted records, and dropping those that were spilled
 *   fold_rows.c   such records to graph rows
 *   fold_tree.c   contexts as sorted records
 *   fold_merge.c  such records merged and turned into stacks rows
 *   fold_join.c   joins folds of different threads
 */
#pragma once

#include "bridges/fold/durations.h"
#include "bridges/fold/fold.h"
#include "bridges/sums/name_order.h"

/* What distinguishes contexts: a row of fp_fold's `groups`. */
enum fp_group_col { FP_GROUP_PID = 0, FP_GROUP_TID = 1, FP_GROUP_INPUT = 2, FP_GROUP_CPU = 3, FP_GROUP_WIDTH = 4 };

/* By function. */
struct fp_fold_function {
    uint32_t active;    /* activations on the stack of the current thread */
    uint32_t last_arc;  /* the arc by which it was entered last: usually the next one too, */
    uint64_t last_from; /* and known without waiting for the caller's frame: group << 32 | caller */
    uint32_t as;        /* the function recorded in arcs and nodes */
    uint32_t entered;   /* 1 once it has been called */
};

/* By function: the sums of its arcs of one group. */
struct fp_fold_node {
    __extension__ unsigned __int128 self;
    uint64_t calls;
    int32_t is_called;
};

struct fp_fold_frame {
    uint64_t enter;
    uint64_t child;        /* ticks spent in callees so far */
    uint64_t calls_before; /* of the thread, when this frame was entered */
    uint32_t arc;
    uint32_t function;
};

struct fp_fold_thread {
    struct fp_fold_frame *frames; /* frames[0] is a sentinel: function 0, the caller of roots */
    uint32_t n, cap;
    uint64_t first, last; /* times of its records */
    uint64_t calls;
    uint32_t row[FP_THREAD_WIDTH]; /* its row of the model */
    int32_t seen;
    uint32_t own;   /* its group, if CPUs are not distinguished */
    uint32_t group; /* of the arcs on the stack */
};

#define FP_FOLD_PATH_COST "the self cost of a call path"
#define FP_FOLD_TIME_OF_CALLS "the time of a function's calls" /* an arc's or its own, as overflows first */

/* The self ticks of a context, or the inclusive ticks of an arc, passed 2^64 - 1. */
int fp_fold_fail_too_long(const struct fp_fold *f, struct fp_err *err);

#define FP_FOLD_NO_CALLER UINT64_MAX /* no caller: neither a function id nor a tree node */

/* Fibonacci hashing; the table is kept sparse, because probing a second slot costs a mispredicted branch.  An index
 * with a secret (core/hash_key.h) has its arcs elsewhere: if an arc is not found from this slot on, call fp_fold_arc.
 */
static inline uint32_t fp_fold_slot(uint32_t caller, uint32_t callee, uint32_t group, unsigned shift) {
    uint64_t key = ((uint64_t)caller << 32 | callee) ^ (uint64_t)group * 0xd6e8feb86659fd93u;
    return (uint32_t)((key * 0x9e3779b97f4a7c15u) >> shift);
}

/* Contexts: the slot to try first, close to those of the caller's neighbours in the table, so that a new context of a
 * new caller is found in the cache.  Only if it is taken, the context is from fp_fold_slot on. */
static inline uint32_t fp_fold_near(uint32_t caller, uint32_t callee, uint32_t mask) {
    return (caller * 8 + callee % 8) & mask;
}

/* Slots of the index, less one. */
static inline uint32_t fp_fold_mask(unsigned shift) {
    return (uint32_t)(((uint64_t)1 << (64 - shift)) - 1);
}

/* An empty table. */
void fp_fold_arcs_init(struct fp_fold *f);

/* The number of an arc that was not found from fp_fold_slot on.  It is added if it is new. */
uint32_t fp_fold_arc(struct fp_fold *f, uint32_t caller, uint32_t callee, uint32_t group);

/* Keeps only the first `n` arcs. */
void fp_fold_keep_arcs(struct fp_fold *f, uint32_t n);

/* Ticks as nanoseconds, rounded half up; unchanged at 0 ticks a second.  0 or FP_E_OVERFLOW. */
static inline int fp_fold_in_units(uint64_t ticks_per_second, uint64_t ticks, int64_t *value) {
    __extension__ typedef unsigned __int128 u128;
    enum { SMALL = 1000000000 }; /* ticks whose nanoseconds fit 64 bits, also with half a second added */
    if (!ticks_per_second) {
        *value = (int64_t)ticks;
        return ticks > INT64_MAX ? FP_E_OVERFLOW : 0;
    }
    if (ticks <= SMALL) {
        *value = (int64_t)((ticks * 1000000000u + ticks_per_second / 2) / ticks_per_second);
        return 0;
    }
    const u128 v = ((u128)ticks * 1000000000u + ticks_per_second / 2) / ticks_per_second;
    *value = (int64_t)v;
    return v > INT64_MAX ? FP_E_OVERFLOW : 0;
}

/* The function in the graph: if it has no file, the same with o->unknown_file, added if it is new. */
uint32_t fp_fold_in_graph(const struct fp_fold_out *o, uint32_t function);

/* A record of a context: the levels to rise from the previous record, which has `levels` of them, to the parent;
 * function, self time, calls.  FP_TREE_RECORD bytes at most.
 *
 *   main 5 1, main > f 7 2, g 1 1, as functions 1, 2, 3:     00 01 05 01   00 02 07 02   02 03 01 01
 */
static inline uint8_t *fp_fold_tree_record(uint8_t *to, uint32_t levels, uint32_t depth, uint32_t function,
                                           uint64_t self, uint64_t calls) {
    to = fp_varint(to, levels - depth);
    to = fp_varint(to, function);
    to = fp_varint(to, self);
    return fp_varint(to, calls);
}
