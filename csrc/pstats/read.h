/* pstats/read.h - a profile of Python's cProfile or profile module -> rows of a graph.
 *
 * The file is a dict in marshal (pstats/marshal.h), an entry for each function:
 *
 *   (file, first line, name): (primitive calls, calls, own time, cumulative time, callers)
 *   callers: {(file, first line, name): (calls, primitive calls, own time, cumulative time), ...}
 *
 * Of a function the primitive calls come first, of a caller the second; both are those of the function, the latter only
 * when called from there.  Times are seconds.  The module `profile` has numbers of calls alone as callers.
 *
 * An entry becomes a row of costs, and one for each caller: a call from the caller's first line.  Built-in functions
 * have the file "~" and line 0; their file is empty here.
 *
 * Memory: linear in functions, and in values that others refer to.
 */
#ifndef FP_PSTATS_READ_H
#define FP_PSTATS_READ_H

#include "core/batch.h"
#include "pstats/marshal.h"

/* cffi-begin */

/* Values of a row, in this order.  Of a call: of the callee when called from there; the time is cumulative. */
enum fp_pstats_value {
    FP_PSTATS_TIME, /* nanoseconds: own; of a call cumulative */
    FP_PSTATS_CALLS,
    FP_PSTATS_PRIMITIVE,  /* those that are not recursive */
    FP_PSTATS_CUMULATIVE, /* nanoseconds */
    FP_PSTATS_OWN,        /* nanoseconds */
    FP_PSTATS_VALUES
};

struct fp_pstats_reader {
    struct fp_model *model; /* borrowed */
    int32_t lenient;
    uint64_t functions, calls; /* in the file */
    uint64_t untimed;          /* callers without times: those of the function are divided */
    uint64_t trailing;         /* bytes after the dict */
    uint64_t broken;           /* lenient: entries and callers that cannot be read */
    int32_t bad_end;           /* lenient: the dict cannot be read to its end */

    /* private from here on */
    struct fp_pstats_marshal marshal;
    int32_t state;
    uint64_t at, end; /* of the entry */
    struct fp_pstats_marshal_value key, value;
    uint32_t function, line; /* of the entry */
    int64_t own[FP_PSTATS_VALUES];
    struct fp_pstats_marshal_value callers;
    uint32_t next;         /* of its rows */
    int64_t rest[2], left; /* of callers without times: what remains of the times, and the calls that it is for */
    uint64_t rows;         /* so far */
};

/* Borrows the model.  NULL when memory ran out.  Caller owns. */
struct fp_pstats_reader *fp_pstats_reader_new(struct fp_model *model, int lenient);
void fp_pstats_reader_free(struct fp_pstats_reader *r);

/* FP_MORE, FP_FULL, FP_DONE or an error.  The batch has FP_PSTATS_VALUES value columns. */
int fp_pstats_feed(struct fp_pstats_reader *r, struct fp_in *in, struct fp_batch *out, struct fp_err *err);

/* cffi-end */

#endif
