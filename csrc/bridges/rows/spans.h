/* bridges/rows/spans.h - the calls of a timeline as intervals, for the timeline of a page.
 *
 * A call is kept with its thread, depth, begin and duration, up to a fixed number of calls.  When that is reached, the
 * pixel grows by a quarter, and calls shorter than a pixel are counted and dropped: their time shows in their callers.
 *
 *   main 0..100, f 10..30, g 12..13      with room for two:      main 0..100, f 10..30, one call is dropped
 *
 * Entries and exits are matched as in the stack machine (fold.h).  Memory: linear in the room and in open calls.
 */
#pragma once

#include "core/core.h"

struct fp_spans_call {
    uint64_t start, duration; /* ticks */
    uint32_t thread, function;
    uint32_t depth; /* 0: no caller */
};

struct fp_spans {
    const struct fp_model *model;
    struct fp_spans_call *spans;
    uint32_t n;
    uint64_t pixel;                 /* ticks: shorter calls are dropped */
    uint64_t left_out;              /* how many */
    uint64_t first_time, last_time; /* of all records */

    /* private from here on */
    uint32_t room, cap;
    struct fp_spans_thread *threads;
    uint32_t cap_threads;
    struct fp_open *open; /* bridges/rows/open_calls.h */
};

/* Room for `room` >= 2 calls.  The model is borrowed. */
struct fp_spans *fp_spans_new(const struct fp_model *model, uint32_t room);
void fp_spans_free(struct fp_spans *s);

/* Adds the rows of a timeline batch.  FP_DONE, FP_E_MALFORMED (a thread that the model does not have). */
int fp_spans_put(struct fp_spans *s, const struct fp_batch *in, struct fp_err *err);

/* Adds the rows of a stacks batch that have a time and a positive value `value`, nanoseconds from that time on, as
 * calls of `function`, such as times off the CPU.  FP_DONE, FP_E_MALFORMED. */
int fp_spans_put_values(struct fp_spans *s, const struct fp_batch *in, uint32_t value, uint32_t function,
                        struct fp_err *err);

/* After the last batch: ends the open calls, and sorts all by thread, begin and depth.  FP_DONE. */
int fp_spans_end(struct fp_spans *s);

/* The longest calls as columns. */
struct fp_spans_columns {
    uint64_t *starts, *durations;
    uint32_t *threads, *functions, *depths;
};

/* After fp_spans_end: copies the longest calls, at most `most`, in the same order; of equally long ones all or none.
 * The caller has room for `most` items in each column.  Returns their number; *shortest becomes a lower bound of their
 * durations, 0 if all calls were copied. */
uint32_t fp_spans_longest(const struct fp_spans *s, uint32_t most, const struct fp_spans_columns *to,
                          uint64_t *shortest);
