/* trace_event/read.h - Chrome's Trace Event JSON -> timeline rows.
 *
 *   {"traceEvents":[{"ph":"B","name":"f","ts":1.5,"pid":1,"tid":2}, ...]}        or the array alone
 *
 * Begins and ends (B, E) become rows as they come.  A complete event (X) stands where it ended, its begin may have been
 * at the start of the file; so if there is any (`sorting`), calls and instants become records, which are sorted by
 * thread, time, longest first, order in the file, in runs that the caller writes away, and merged at the end.  A call
 * that overlaps its caller ends with it.
 *
 * Times are in microseconds, and made nanoseconds digit by digit.  Numbers may be texts.
 * Memory: linear in distinct names and threads, open calls, and FP_TRACE_RECORDS.
 */
#ifndef FP_TRACE_EVENT_READ_H
#define FP_TRACE_EVENT_READ_H

#include "core/batch.h"
#include "core/buf.h"
#include "core/json_lex.h"
#include "core/model.h"
#include "trace_event/who.h"

/* cffi-begin */

/* RECORDS: that are kept before they are written away.  ARGS: arguments of a call that are kept. */
enum { FP_TRACE_RECORDS = 131072, FP_TRACE_ARGS = 16 };

/* What is to be done after FP_ASK, before the next call. */
enum fp_trace_asks {
    FP_TRACE_WHO = 1,   /* call fp_trace_is for r->who.pid, r->who.tid */
    FP_TRACE_NAME = 2,  /* note that r->who.meta of r->who.pid, r->who.tid is r->event.text; set r->who.noted */
    FP_TRACE_SPILL = 3, /* call fp_trace_sort, write the records away and set r->n_records to 0 */
    FP_TRACE_MERGE = 4, /* set r->runs; the last is what is still in memory, sorted */
    FP_TRACE_REFILL = 5 /* r->runs[r->hungry] is used up */
};

struct fp_trace_record {
    uint64_t time, duration; /* nanoseconds; a call without end: UINT64_MAX */
    uint64_t order;          /* in the file */
    uint32_t thread, op;     /* FP_OP_ENTER, FP_OP_CUSTOM, FP_OP_TYPED */
    uint32_t id;             /* function; of an event the string that is its payload */
    uint32_t type;           /* of a typed event */
};

struct fp_trace_run {
    const struct fp_trace_record *records;
    uint32_t n, pos;
    int32_t eof;
};

struct fp_trace_event {
    uint64_t at; /* where it begins */
    uint8_t ph;  /* 0: none */
    uint8_t has_ts, has_name, has_data, has_type, other_args, has_stack;
    int64_t ts, dur, type;
    struct fp_buf name, data, text; /* data: decoded; text: args.name */
    uint32_t n_args, keys;          /* keys: how many it has */
    uint64_t args[16];
};

struct fp_trace_read {
    struct fp_model *model; /* borrowed */
    int32_t lenient, sorting;
    uint32_t asks; /* after FP_ASK: enum fp_trace_asks */
    struct fp_trace_who who;
    struct fp_trace_event event;
    struct fp_trace_record *records;
    uint32_t n_records, hungry, n_runs;
    struct fp_trace_run *runs; /* caller-owned */
    /* counted */
    uint64_t events, unsaid, other_args, nameless_ends, below_zero, cut, empty, broken, lost_ends, open_end, bad_end;
    uint64_t samples, stacks; /* events that are samples and tables of samples; stacks of other events */

    /* private from here on */
    struct fp_json json;
    uint32_t events_depth; /* of the array of events; 0: not seen yet */
    int32_t in_events, seen_events, in_args, over;
    uint32_t field, arg_field, stage;
    struct fp_buf scratch;
    uint32_t *function_of; /* by string: the function of that name */
    uint32_t cap_functions;
    struct fp_trace_stack *stacks_of; /* by thread: open calls */
    uint32_t cap_stacks, cap_records, closing;
    uint64_t order;
    /* merging */
    struct fp_trace_record head;
    uint32_t *heap; /* runs by their next record */
    uint32_t n_heap, cap_heap, n_started;
    int32_t has_heap, has_head, merging;
    struct fp_trace_call *calls;
    uint32_t n_calls, cap_calls, calls_of;
};

/* Borrows the model.  NULL when memory ran out.  Caller owns. */
struct fp_trace_read *fp_trace_read_new(struct fp_model *model, int lenient, int sorting);
void fp_trace_read_free(struct fp_trace_read *r);

void fp_trace_sort(struct fp_trace_read *r);

/* FP_MORE, FP_FULL, FP_ASK, FP_DONE or an error. */
int fp_trace_feed(struct fp_trace_read *r, struct fp_in *in, struct fp_batch *out, struct fp_err *err);

/* cffi-end */

#endif
