/* bridges/rows/last_call.h - the calls of stacks that Go's compiler counts, as stacks of two frames.
 *
 *   main:9 > f:20 > g:31   5               f:20 > g   12
 *   main:8 > f:20 > g:33   7      ->
 *
 * Go's compiler adds a sample to the call between the two innermost places of its stack and to the calls of functions
 * that are inlined there, to each once.  It knows a place by its name, line, first line and address, and does not count
 * calls of a place by itself.  Of a call it keeps the names, and the line from the caller's first line on.
 *
 * Memory: 36 bytes and two table entries for each distinct call, by address, and 4 bytes for each name.
 */
#pragma once

#include "core/core.h"

struct fp_last_call_made;

struct fp_last_call {
    struct fp_model *model;
    uint64_t cut; /* samples that lost callers or labels, or have no call */
    /* private from here on */
    uint32_t row, call;             /* of the batch, and of the calls of this row: where to continue */
    uint64_t n_rows;                /* begun so far */
    int32_t is_ready;               /* the batch's callers are made */
    struct fp_table places;         /* name, line, first line, address */
    struct fp_table pairs;          /* of places: caller, callee */
    struct fp_last_call_made *made; /* by pair */
    uint32_t *calls;                /* pairs of this row */
    uint32_t *known;                /* by name: a frame of that function, or 0 */
    uint32_t n_calls, cap_calls, cap_made, cap_known;
};

/* Borrows the model.  Caller owns. */
struct fp_last_call *fp_last_call_new(struct fp_model *model);
void fp_last_call_free(struct fp_last_call *l);

/* Appends the calls of the rows of a batch to another one with as many values.  FP_FULL: drain it and call again;
 * FP_DONE, FP_E_MALFORMED (an id that the model does not have). */
int fp_last_call_batch(struct fp_last_call *l, const struct fp_batch *in, struct fp_batch *out, struct fp_err *err);
