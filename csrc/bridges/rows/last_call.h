/* bridges/rows/last_call.h - cuts the callers above the last call of stacks, for compilers that look at that one only.
 *
 *   main:9 > f:20 > g:31   5               f:20 > g   12
 *   main:8 > f:20 > g:33   7      ->
 *
 * Go's compiler adds a sample to the call between the two innermost places of its stack and to the calls of functions
 * that are inlined there.  A caller keeps its line; the innermost function gets its first line, and addresses are left
 * out, so that most samples become equal.  Places of which a function calls itself on the same line stay as they are:
 * without addresses they would be one.
 *
 * Memory: 8 bytes for each of the model's frames.
 */
#pragma once

#include "core/core.h"

struct fp_last_call {
    struct fp_model *model;
    uint64_t cut; /* rows that lost callers */
    /* private from here on */
    uint32_t *callers, *callees; /* by frame: what replaces it as the caller, and as the innermost one; 0: not known */
    uint32_t cap_callers, cap_callees;
};

/* Borrows the model.  Caller owns. */
struct fp_last_call *fp_last_call_new(struct fp_model *model);
void fp_last_call_free(struct fp_last_call *l);

/* Replaces the stacks of a batch, in place.  FP_DONE, FP_E_MALFORMED (an id that the model does not have). */
int fp_last_call_batch(struct fp_last_call *l, struct fp_batch *b, struct fp_err *err);
