/* trace_event/write.h - a timeline as Chrome's Trace Event JSON: a begin (B) and an end (E) for each call, an instant
 * (i) for each event, one per line.
 *
 *   {"name":"main","ph":"B","ts":0.012,"pid":7,"tid":7},
 *   {"name":"note","ph":"i","ts":0.02,"pid":7,"tid":7,"s":"t"},
 *   {"name":"main","ph":"E","ts":1.5,"pid":7,"tid":7}
 *
 * The calls of the timeline must nest, and its times are nanoseconds (bridges/rows/nest.h).  `ts` is in microseconds,
 * formatted from integers.  Viewers read it as a double, which is exact to the nanosecond up to 2^53 ns.  So times keep
 * the clock's zero unless the first one exceeds 2^52: then a multiple of 2^51 is subtracted, which puts the first time
 * between 2^51 and 2^52.  Earlier rows may get negative times.
 *
 * Calls of functions that have a category (fp_model_category) also have "cat":"cpu_op" after their name.
 *
 * An event whose payload is a short printable text is named after it.  Others are named "event", with their bytes in
 * hexadecimal: "args":{"data":"00ff"}.  A typed event also has its type: "args":{"type":5,"data":"00ff"}.
 *
 * Memory: linear in distinct functions.
 */
#pragma once

#include "core/core.h"

/* Maximum depth of calls: Perfetto silently drops the begins of deeper ones, but not their ends. */
enum { FP_TRACE_EVENT_DEPTH = 512 };

struct fp_trace_event_write {
    const struct fp_model *model; /* borrowed */
    int32_t args;                 /* write arguments of calls; set by the caller */
    uint32_t new_thread;          /* after FP_NEEDS: the thread to call fp_trace_event_thread for */
    uint32_t row;                 /* of the batch: the first row not written */
    uint64_t rows;
    uint64_t deep; /* calls dropped because of FP_TRACE_EVENT_DEPTH */
    uint64_t FP_COUNT(arguments, "call-arguments", not_representable, "call argument(s) ({--args} writes them)");
    uint64_t FP_COUNT(replaced, "replaced-bytes");
    uint64_t zero; /* nanoseconds subtracted from each time; known after the first row */

    /* private from here on */
    struct fp_trace_event_thread *threads; /* by id */
    uint32_t cap_threads;
    struct fp_buf names;        /* {"name":"...","cat":"...","ph":" of functions */
    struct fp_utf8_names texts; /* names as UTF-8 */
    struct fp_buf scratch;
    uint64_t *starts; /* by function: its offset in `names` + 1; 0 = not added yet */
    uint32_t cap_starts;
    int32_t begun;   /* a row was written */
    int32_t open;    /* 1: the last row lacks its }, 2: so do its arguments */
    int32_t skipped; /* the last call was dropped */
    uint32_t n_args; /* of the last row */
};

/* Borrows the model.  Caller owns. */
struct fp_trace_event_write *fp_trace_event_write_new(const struct fp_model *model);
void fp_trace_event_write_free(struct fp_trace_event_write *w);

/* Sets the ids of a thread in the output. */
void fp_trace_event_thread(struct fp_trace_event_write *w, uint32_t thread, uint32_t pid, uint32_t tid);

/* Sets the earliest time, and from it w->zero.  Call it first if rows do not come in order of time. */
void fp_trace_event_write_first(struct fp_trace_event_write *w, uint64_t ns);

/* Appends the rows of a batch from w->row on; set it to 0 for a new batch.  FP_NEEDS for a new thread: set its ids and
 * call again.  FP_FULL: drain `out` and call again.  FP_DONE or FP_E_NOMEM. */
int fp_trace_event_write_put(struct fp_trace_event_write *w, const struct fp_batch *b, struct fp_buf *out,
                             struct fp_err *err);

/* Ends the last row, so that other text can follow.  0 or FP_E_NOMEM. */
int fp_trace_event_write_end(struct fp_trace_event_write *w, struct fp_buf *out);
