/* core/counts.h - counts of instructions and of calls by address.
 *
 * Rows of a graph with instruction addresses (Callgrind with --dump-instr=yes) or of stacks, whose leaf is the
 * instruction; or of branch stacks (core/branches.h), which have branches and straight runs instead:
 *
 *   object 1, 0x401190, cost 300000                     at 1:0x401190  300000
 *   object 1, 0x401196, 281250 calls of Add::run        at 1:0x401196  target Add::run 281250
 *
 * Rows of a graph without addresses are added up by line instead.
 *
 * Units: the counts are those of the first value column (executions, samples).  Memory: linear in distinct addresses
 * or lines, and pairs of a call and its target.
 */
#pragma once

#include "core/batch.h"
#include "core/model.h"

/* Columns of the tables of addresses and of calls. */
enum fp_counts_place { FP_COUNTS_SPACE = 0, FP_COUNTS_ADDRESS = 1 /* u64 */, FP_COUNTS_PLACE_WIDTH = 3 };
enum fp_counts_branch {
    FP_COUNTS_SOURCE = 0,
    FP_COUNTS_BRANCH_TARGET = 1,
    FP_COUNTS_IS_RUN = 2,
    FP_COUNTS_BRANCH_WIDTH = 3
};
enum fp_counts_call {
    FP_COUNTS_FROM = 0,
    FP_COUNTS_CALLEE = 1,
    FP_COUNTS_TARGET = 2 /* u64 */,
    FP_COUNTS_CALL_WIDTH = 4
};
enum fp_counts_line_row { FP_COUNTS_FUNCTION = 0, FP_COUNTS_FILE = 1, FP_COUNTS_LINE = 2, FP_COUNTS_LINE_WIDTH = 3 };
enum fp_counts_line_call { FP_COUNTS_FROM_LINE = 0, FP_COUNTS_LINE_CALLEE = 1, FP_COUNTS_LINE_CALL_WIDTH = 2 };

struct fp_counts {
    const struct fp_model *model; /* borrowed */
    struct fp_table places;       /* the space of an address: the object of a graph's row, the mapping of a leaf */
    struct fp_table calls;        /* FROM: a row of `places`; CALLEE: a function; TARGET: its address, 0 if unknown */
    struct fp_table lines;        /* rows without an address: FILE is a string, LINE 0 unknown */
    struct fp_table line_calls;   /* FROM_LINE: a row of `lines`; LINE_CALLEE: a function */
    struct fp_table branches;     /* SOURCE, TARGET: frames; of a run its first and last instruction */
    int32_t is_branches;          /* rows of stacks are branches and runs */
    int64_t *taken;               /* by branch; of a run: how often it was executed */
    int64_t *mispredicted;        /* by branch */
    int64_t *counts;              /* by place */
    uint64_t *called;             /* by call */
    int64_t *line_counts;         /* by line */
    uint64_t *line_called;        /* by call of a line */
    uint64_t line_rows;           /* rows that `lines` and `line_calls` add up */
    /* counted: not representable */
    uint64_t without_address; /* rows with a cost, and calls */
    int64_t cost_without;     /* the cost of these rows */
    uint64_t negative;        /* rows with a cost below 0 */
    uint64_t jumps;           /* rows */

    /* private from here on */
    uint32_t cap_counts, cap_called, cap_taken, cap_mispredicted, cap_line_counts, cap_line_called;
};

/* Borrows the model.  Caller owns. */
struct fp_counts *fp_counts_new(const struct fp_model *model);
void fp_counts_free(struct fp_counts *c);

/* Adds the rows of a graph or of stacks.  FP_DONE, or an error: FP_E_OVERFLOW for a sum beyond 63 bits. */
int fp_counts_put(struct fp_counts *c, const struct fp_batch *in, struct fp_err *err);
