/* bridges/sums/walk.h - sums of stacks as depth-first walks of their tree, and the merge of such walks.  Private.
 *
 * A walk names each frame once, where its path differs from that of the record before, and the rows of a stack after
 * its last frame:
 *
 *     main > f  4             frame 0 main   frame 1 f   row 2: 4
 *     main > f > h  1   as    frame 2 h   row 3: 1
 *     main > g  2             frame 1 g   row 2: 2
 *
 * Records are words of 64 bits:
 *
 *     frame   depth << 32 | frame                               depth: frames above it
 *     row     1 << 63 | depth << 32 | labels,  thread,  values  depth: frames of its stack
 *
 * Children of a stack, and its rows, ascend by ranks.  So a merge of walks holds one path, and memory does
 * not grow with the number of stacks.  At depth d only those walks take part that have the path's first d frames:
 *
 *     A: frame 0 main  frame 1 f  row 2: 4        depth 0  A B   main
 *     B: frame 0 main  frame 1 f  row 2: 3        depth 1  A B   f
 *        frame 1 g  row 2: 2                      depth 2  A B   row 7;   depth 1  B   g;   depth 2  B   row 2
 */
#pragma once

#include "core/core.h"

#define FP_WALK_ROW ((uint64_t)1 << 63)

/* cffi-begin guarded */

/* A row's words before its values. */
enum { FP_WALK_HEAD = 2 };

/* Ranks by id.  Ids from n on have rank 0. */
struct fp_walk_ranks {
    const uint32_t *of; /* borrowed */
    uint32_t n;
};

/* A run's next record: its depth, UINT32_MAX if there is none, and what orders it among those of the depth, 0 for
 * rows. */
struct fp_walk_head {
    uint64_t key;
    uint32_t depth;
};

struct fp_walk {
    uint32_t n_values;
    int32_t split;      /* sums that do not fit become several rows; set by the caller */
    uint32_t to_refill; /* after FP_MORE: the run to refill */
    struct fp_run *runs;
    struct fp_walk_ranks frames, labels, threads;
    /* after FP_FULL: the record */
    uint32_t is_row;
    uint32_t depth, frame; /* as above */
    uint32_t label, thread;
    int64_t *values;

    /* private from here on */
    uint32_t n_runs, level; /* frames of the path */
    uint32_t *start;        /* by depth: its walks are members[start[depth]] to members[start[depth + 1]] */
    uint32_t *members, cap_start, cap_members;
    struct fp_walk_head *heads; /* by run */
    struct fp_walk_sum *sums;   /* of each value of a row */
    uint32_t has_sum, has_rest; /* of a row: more may be added; not all was given */
};

/* A merge of n_runs walks, whose runs start empty, to be refilled first.  Caller owns. */
struct fp_walk *fp_walk_new(uint32_t n_runs, uint32_t n_values);
void fp_walk_free(struct fp_walk *w);

/* The next record of the merged walk: FP_FULL.  FP_MORE: refill run to_refill, or set its eof, and call again.
 * FP_DONE: no more records.  FP_E_OVERFLOW: a sum does not fit; err->got is the number of its value. */
int fp_walk_next(struct fp_walk *w, struct fp_err *err);

/* Fills `to` with records, up to `n` words; *got becomes their number.  Sums are split.  FP_FULL, FP_MORE, FP_DONE. */
int fp_walk_pull(struct fp_walk *w, uint64_t *to, size_t n, size_t *got);

/* cffi-end */

static inline uint32_t fp_walk_rank_of(const struct fp_walk_ranks *ranks, uint32_t id) {
    return id < ranks->n ? ranks->of[id] : 0;
}
