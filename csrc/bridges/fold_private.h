/* bridges/fold_private.h - what the stack machine's files share.  Private.
 *
 *   fold.c        the machine: rows of a timeline in, arcs and contexts out
 *   fold_arcs.c   the table of arcs
 *   fold_spill.c  arcs and nodes as sorted records, and forgetting those that were written away
 *   fold_rows.c   records to graph rows, contexts to stacks rows
 */
#ifndef FP_FOLD_PRIVATE_H
#define FP_FOLD_PRIVATE_H

#include "bridges/fold.h"

/* By function. */
struct fp_fold_function {
    uint32_t active;    /* activations on the stack of the thread at hand */
    uint32_t last_arc;  /* the arc by which it was entered last: usually the next one too, */
    uint64_t last_from; /* and known without waiting for the caller's frame: group << 32 | caller */
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
    int32_t seen;
    uint32_t group; /* of the arcs on the stack */
};

#define FP_FOLD_NOWHERE UINT64_MAX /* no caller: neither a function id nor a tree node */

/* Fibonacci hashing; the table is kept sparse, because a probe that has to
 * look at a second slot costs a mispredicted branch. */
static inline uint32_t fp_fold_slot(uint32_t caller, uint32_t callee, uint32_t group, unsigned shift) {
    uint64_t key = ((uint64_t)caller << 32 | callee) ^ (uint64_t)group * 0xd6e8feb86659fd93u;
    return (uint32_t)((key * 0x9e3779b97f4a7c15u) >> shift);
}

/* Slots of the index, less one. */
static inline uint32_t fp_fold_mask(unsigned shift) {
    return (uint32_t)(((uint64_t)1 << (64 - shift)) - 1);
}

/* An empty table.  0 or FP_E_NOMEM. */
int fp_fold_arcs_init(struct fp_fold *f);

/* Enters an arc that is not there.  Its number; UINT32_MAX when memory ran out. */
uint32_t fp_fold_add_arc(struct fp_fold *f, uint32_t caller, uint32_t callee, uint32_t group);

/* Keeps the first `n` arcs alone. */
void fp_fold_keep_arcs(struct fp_fold *f, uint32_t n);

#endif
