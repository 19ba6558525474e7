/* core/branches.h - branch stacks, added up: how often each branch was taken, and each straight run executed.
 *
 * A branch stack is the list of the last taken branches, newest first.  Between the target of one branch and the source
 * of the next, code ran straight through:
 *
 *   0x401020 -> 0x401000      run 0x401000 .. 0x401020, both the first bytes of instructions
 *   0x401050 -> 0x401000
 *
 * Each distinct branch and run becomes a row of stacks of two frames: source and target, or the first and the last
 * instruction.  Value columns: FP_BRANCHES_TAKEN, _MISPREDICTED and _STRAIGHT.
 *
 * Units: numbers of executions.  Memory: `most` distinct branches and runs; when there are more, the caller passes on
 * the rows so far.  Rows may then repeat, and are added up where stacks are.
 */
#pragma once

#include "core/batch.h"
#include "core/model.h"

/* cffi-begin */

enum fp_branches_column {
    FP_BRANCHES_TAKEN = 0,
    FP_BRANCHES_MISPREDICTED = 1,
    FP_BRANCHES_STRAIGHT = 2,
    FP_BRANCHES_COLUMNS = 3
};
enum { FP_BRANCHES_ROW = 160 }; /* bytes of memory, at most, of a distinct branch or run */

/* cffi-end */

enum { FP_BRANCHES_RECENT_BITS = 13 };

/* What distinguishes branches.  A key has no padding: it is compared as words. */
struct fp_branch_key {
    uint64_t from, to, space, kernel; /* space, kernel: whatever decides what is at the addresses */
    uint32_t thread, label, is_run, unused;
};

/* A branch or a run. */
struct fp_branch {
    uint64_t count, mispredicted;
    uint32_t from, to; /* frames; FP_NO_ID: it is new, and the caller sets them */
};

struct fp_branches {
    struct fp_model *model; /* borrowed */
    struct fp_table keys;
    struct fp_branch *list; /* by row of `keys` */
    uint32_t cap, most;
    uint32_t next; /* the next row to pass on; 0: not begun */
    uint32_t recent[1 << FP_BRANCHES_RECENT_BITS];
};

/* For the owner of *b, which is zeroed.  Escapes when memory ran out. */
void fp_branches_begin(struct fp_branches *b, struct fp_model *model);
void fp_branches_clear(struct fp_branches *b);

/* The branch of a key, added if it is new.  Valid until the next call.  NULL when memory ran out, without a guard. */
struct fp_branch *fp_branches_find(struct fp_branches *b, const struct fp_branch_key *key);

/* Whether `n` more may be added before rows have to be passed on. */
static inline int fp_branches_have_room(const struct fp_branches *b, uint64_t n) {
    return !b->next && (b->keys.n == 1 || b->keys.n + n <= b->most);
}

/* Passes on all that was added, with a time, and forgets it.  0, or FP_FULL: call again. */
int fp_branches_rows(struct fp_branches *b, uint64_t time, struct fp_batch *out);
