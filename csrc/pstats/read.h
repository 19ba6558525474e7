/* pstats/read.h - a profile of Python's cProfile or profile module -> graph rows.
 *
 * The file is a dict in marshal format (pstats/marshal.h) with an entry for each function:
 *
 *   (file, first line, name): (primitive calls, calls, own time, cumulative time, callers)
 *   callers: {(file, first line, name): (calls, primitive calls, own time, cumulative time), ...}
 *
 * Primitive calls are those that are not recursive.  They come before the calls in the entry of a function, but after
 * them in a caller.  The four values of a caller are those of the function when called from there.  Times are in
 * seconds.  The module `profile` writes only the number of calls for a caller.
 *
 * Python 3.15's profiling.sampling counts samples instead of calls: calls are those with the function anywhere in the
 * stack, primitive calls those with it at the leaf.  Its last entry is the mark  ("__sampled__",): True.
 *
 * An entry becomes a row with the function's own costs and a call row for each caller, at the caller's first line.
 * Built-in functions have the file "~" and line 0; their file is empty in the model.
 *
 * Memory: linear in functions and in values that others refer to.
 */
#pragma once

#include "pstats/marshal.h"

/* The values of a row.  Those of a call are the callee's when called from that caller. */
enum fp_pstats_value {
    FP_PSTATS_TIME, /* nanoseconds: own time; cumulative time in call rows */
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
    /* Each gets a part of the function's. */
    uint64_t FP_COUNT(untimed, "callers-without-times", repairs,
                      "caller(s) without times, given (a part|parts) of the function's");
    uint64_t FP_COUNT(trailing, "trailing-bytes", repairs, "byte(s) after the profile");
    int32_t sampled; /* the dict has the mark of profiling.sampling */
    uint64_t FP_COUNT(broken, "broken-functions", losses, "function(s) or caller(s) that could not be read");
    int32_t FP_COUNT(bad_end, "unreadable-rest");

    /* private from here on */
    struct fp_pstats_marshal marshal;
    int32_t state;
    uint64_t at, end; /* offsets of the entry */
    struct fp_pstats_marshal_value key, value;
    uint32_t function, line; /* of the entry */
    int64_t own[FP_PSTATS_VALUES];
    struct fp_pstats_marshal_value callers;
    uint32_t next;         /* of its rows */
    int64_t rest[2], left; /* callers without times: the times not yet divided, and the calls to divide them among */
    uint64_t rows;         /* so far */
};

/* Borrows the model.  Caller owns. */
struct fp_pstats_reader *fp_pstats_reader_new(struct fp_model *model, int lenient);
void fp_pstats_reader_free(struct fp_pstats_reader *r);

/* FP_MORE, FP_FULL, FP_DONE or an error.  The batch has FP_PSTATS_VALUES value columns. */
int fp_pstats_feed(struct fp_pstats_reader *r, struct fp_window *in, struct fp_batch *out, struct fp_err *err);
