/* bridges/rows/open_calls.h - the open calls in each thread of a timeline, and lookups by function.  Private.
 *
 * An exit ends the innermost open call of its function, and those above it.  If its entry was lost there is no such
 * call.  A successful search is cheap, because the calls above the one found end now.  A failed search visits the whole
 * stack: 100,000 open calls and 100,000 such exits would take minutes.  So once failed searches have cost more than all
 * calls together, a thread keeps the number of open calls per function.
 *
 * Memory: linear in open calls and, for threads with such numbers, in their distinct functions.
 */
#pragma once

#include "core/core.h"

/* The open calls of one thread.  All zero: none yet. */
struct fp_open_calls {
    uint32_t *functions; /* outermost first; the owner frees it */
    uint32_t n, cap;
    int32_t counted; /* `entered` and `active` have the number of its calls per function */
};

/* The state shared by all threads. */
struct fp_open {
    struct fp_table entered; /* (thread, function) */
    uint32_t *active;        /* by row of `entered`: its activations on the stack of the thread */
    uint32_t cap_active;
    uint64_t calls, looked; /* so far; calls visited by failed searches */
};

/* `o` is zeroed. */
void fp_open_init(struct fp_open *o);
void fp_open_clear(struct fp_open *o);

/* In a thread with `counted`: adds 1 to the calls of a function, or subtracts 1 (UINT32_MAX). */
void fp_open_count(struct fp_open *o, uint32_t thread, uint32_t function, uint32_t by);

/* A call begins. */
static inline void fp_open_enter(struct fp_open *o, struct fp_open_calls *t, uint32_t thread, uint32_t function) {
    FP_PUSH(t->functions, t->n, t->cap) = function;
    o->calls++;
    if (FP_UNLIKELY(t->counted)) fp_open_count(o, thread, function, 1);
}

/* The innermost call ends. */
static inline void fp_open_leave(struct fp_open *o, struct fp_open_calls *t, uint32_t thread) {
    t->n--;
    if (FP_UNLIKELY(t->counted)) fp_open_count(o, thread, t->functions[t->n], UINT32_MAX);
}

/* Is a call of this function open? */
int fp_open_has(struct fp_open *o, struct fp_open_calls *t, uint32_t thread, uint32_t function);
