/* bridges/rows/nest.h - makes the calls of a timeline nest, and its times nanoseconds.
 *
 *   enter f 10, enter g 20, exit f 50, exit h 60, enter f 70      of a thread becomes
 *   enter f 10, enter g 20, exit g 50, exit f 50, enter f 70, exit f 70
 *
 * Damage is repaired as in the stack machine (bridges/fold/fold.h): an exit without an entry is dropped, a call
 * left by an exception or longjmp ends with its caller, a call still open at the end of its thread ends there, and the
 * time of a thread does not go back.  The log's buffer starts are dropped.
 *
 * Memory: linear in open calls and, for threads with very many lost entries, in their distinct functions.
 */
#pragma once

#include "core/core.h"

struct fp_nest {
    struct fp_clock clock;                               /* of the following rows */
    uint64_t orphan_exits, unwound, unfinished, clamped; /* repairs */
    /* private from here on */
    struct fp_nest_thread *threads; /* by id */
    uint32_t cap_threads, ended;    /* threads whose calls have ended */
    struct fp_open *open;           /* bridges/rows/open_calls.h */
};

struct fp_nest *fp_nest_new(void);
void fp_nest_free(struct fp_nest *n);

/* Sets the clock of the following rows. */
void fp_nest_clock(struct fp_nest *n, uint64_t ticks_per_second);

/* Appends the rows of `in` from *from on, and advances it.  FP_DONE, FP_FULL or FP_E_OVERFLOW for a time of 2^63
 * nanoseconds or more. */
int fp_nest_put(struct fp_nest *n, const struct fp_batch *in, uint32_t *from, struct fp_batch *out, struct fp_err *err);

/* Ends the open calls, each in the part of its thread's last row.  Returns the same. */
int fp_nest_end(struct fp_nest *n, struct fp_batch *out);
