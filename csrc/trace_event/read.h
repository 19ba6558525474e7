/* trace_event/read.h - Chrome's Trace Event JSON -> timeline rows.
 *
 *   {"traceEvents":[{"ph":"B","name":"f","ts":1.5,"pid":1,"tid":2}, ...]}        or the array alone, or with `lines`
 *                                                                               one such object after the other
 *
 * If other documents follow the first one, they are read, too; each has its own threads.  A category becomes the object
 * of the function.
 *
 * A complete event (X) is written when its call ends, long after the call began.  So calls and instants become records,
 * sorted by thread, time, duration (longest first) and position in the file.  The caller spills sorted runs, which are
 * merged at the end.  Begins and ends (B, E) are paired in the order of the file.  If their times decrease
 * within a thread (`out_of_order`), the file must be read again with `by_time`, which sorts them by time first.
 *
 * Calls of one thread may overlap without nesting: PyTorch's annotations, kernels of a stream, Bazel's virtual threads.
 * Such a call goes to the first lane of its thread in which it nests.  Lane 0 is the thread itself; each further lane
 * becomes a thread that the caller names.  A call that ends 1 ns after its caller because of rounding is cut instead.
 *
 * Times are in microseconds, converted to nanoseconds digit by digit.  Numbers may be strings.  If a time is negative,
 * all times are shifted so that the earliest is 0.
 *
 * Each number among the arguments of a counter (C) becomes a value of it (core/counter_value.h).
 *
 * Asynchronous calls (b, e; S, F) are paired by category and id and get tracks of their own (async.c).
 *
 * Memory: linear in distinct names and threads, open calls, and FP_TRACE_EVENT_RECORDS.
 */
#pragma once

#include "chrome/threads.h"

/* RECORDS: kept in memory before a spill.  ARGS: maximum number of arguments kept per call. */
enum { FP_TRACE_EVENT_RECORDS = 131072, FP_TRACE_EVENT_ARGS = 16 };

/* What the caller must do after FP_NEEDS, before the next call. */
enum fp_trace_event_request {
    FP_TRACE_EVENT_THREAD = 1, /* call fp_chrome_set_thread for r->thread_ids.pid, r->thread_ids.tid */
    FP_TRACE_EVENT_NAME = 2,   /* record r->event.text as the name r->thread_ids.meta of r->thread_ids.pid,
                            r->thread_ids.tid;   set r->thread_ids.noted */
    FP_TRACE_EVENT_SPILL = 3,  /* call fp_trace_event_sort, spill the records and set r->n_records to 0 */
    FP_TRACE_EVENT_MERGE = 4,  /* set r->runs; the last one is the records in memory, sorted */
    FP_TRACE_EVENT_REFILL = 5, /* r->runs[r->run] is used up */
    FP_TRACE_EVENT_LANE = 6,   /* call fp_trace_event_set_lane for lane r->lane (> 0) of thread r->lane_of */
    FP_TRACE_EVENT_TRACK = 7   /* the same for the asynchronous calls of process r->thread_ids.pid and category
                            r->category,   a string: thread r->lane_of if r->lane is above 0, otherwise a new one */
};

/* Durations of calls without one. */
enum fp_trace_event_durations { FP_TRACE_EVENT_BEGIN = -1, FP_TRACE_EVENT_ENDLESS = -2 };

/* Of a value of a counter, the type is FP_COUNTER_TYPE, `id` the name and `duration` the bits of the value. */
struct fp_trace_event_record {
    int64_t time,
        duration;        /* nanoseconds, the duration as 64 unsigned bits; FP_TRACE_EVENT_ENDLESS: a call without end,
                            FP_TRACE_EVENT_BEGIN: not paired yet; of a begin or end with an id, not paired yet: its hash */
    uint64_t order;      /* position in the file; arguments follow their call */
    uint32_t thread, op; /* FP_OP_*; FP_OP_EXIT: an end that is not paired yet */
    uint32_t id;         /* call: function; event: payload, a string; argument: its low half */
    uint32_t type;       /* typed event: its type; argument: its high half; begin or end with an id: its track */
};

struct fp_trace_event_run {
    const struct fp_trace_event_record *records;
    uint32_t n, pos;
    int32_t eof;
};

struct fp_trace_event {
    uint64_t at; /* its offset */
    int64_t ts, dur, type;
    uint8_t ph; /* 0: none */
    uint8_t has_ts, has_name, has_data, has_type, other_args, nested_args, has_stack, is_object;
    uint8_t is_bad;                 /* a value of it cannot be read */
    uint8_t is_moved;               /* `ts` includes what the document's times are moved by */
    uint8_t id_is;                  /* enum fp_chrome_id_kind */
    uint8_t is_global;              /* the id is that of all processes */
    uint32_t category;              /* a string */
    uint32_t n_args, keys;          /* keys: their number */
    struct fp_buf name, data, text; /* data: decoded; text: args.name, or args.labels.  The next event reuses these: */
    struct fp_buf id, scope;        /* of an asynchronous call */
    struct fp_buf key, series;      /* a key of args; the values of a counter */
    uint64_t args[16];
};

/* The maximum number of calls that an annotation divides (divide.c). */
enum { FP_TRACE_EVENT_DIVIDED = 16 };

/* An open call of a lane.  end INT64_MAX: unknown.  A call with end < rest ends, and then goes on until `rest`. */
struct fp_trace_event_call {
    int64_t end, rest;
    uint32_t function;
};

/* The open calls of a thread by lane, and the end of each lane's innermost call (lanes.c). */
struct fp_trace_event_lanes {
    struct fp_trace_event_lane *lanes;
    struct fp_trace_event_ends *ends; /* a binary tree: ends[cap + i] is lane i, ends[1] all lanes */
    uint32_t cap, n;                  /* n: lanes in use */
    uint32_t thread, last;            /* their thread; the lane of the latest call */
    /* calls of lane 0 that ended at `again_at` and go on; not as long as `dividing` */
    struct fp_trace_event_call again[FP_TRACE_EVENT_DIVIDED];
    uint32_t n_again, dividing;
    int64_t again_at;
};

struct fp_trace_event_counts {
    uint64_t events;
    uint64_t FP_COUNT(empty, "blank-events", repairs, "event(s) without content");
    uint64_t FP_COUNT(stray_elements, "stray-elements", repairs,
                      "element(s) of traceEvents that (is|are) not (an event,|events,) skipped");
    uint64_t FP_COUNT(nameless_ends, "nameless-ends", repairs, "unnamed end(s), matched with the innermost call");
    uint64_t FP_COUNT(negative_times, "negative-times", repairs, "negative time(s), all times shifted");
    uint64_t FP_COUNT(backwards, "negative-durations", repairs, "negative duration(s), set to 0");
    uint64_t FP_COUNT(in_lanes, "overlapping-calls", repairs,
                      "overlapping call(s), moved to (a lane|lanes) of (its|their) thread");
    uint64_t FP_COUNT(cut, "cut-calls", repairs, "call(s) that (ends|end) just after (its|their) caller, shortened");
    uint64_t FP_COUNT(broken, "unreadable-events", losses, "unreadable event(s)");
    uint64_t FP_COUNT(counters, "counter-values");
    uint64_t FP_COUNT(flows, "flows", not_representable, "end(s) of (an arrow|arrows) between calls");
    uint64_t FP_COUNT(other_events, "other-events", not_representable, "event(s) without a call");
    uint64_t FP_COUNT(other_args, "event-arguments", not_representable, "event(s) with non-numeric arguments");
    uint64_t FP_COUNT(lost_ends, "orphan-exits");
    uint64_t FP_COUNT(unwound, "unwound-frames");
    uint64_t FP_COUNT(divided, "divided-calls", repairs, "call divided by an annotation that begins or ends within it",
                      "calls divided by annotations that begin or end within them");
    uint64_t FP_COUNT(spans, "profiler-spans", not_representable, "span(s) of PyTorch's profiler, in no thread");
    uint64_t FP_COUNT(samples, "trace-samples", not_representable,
                      "sample(s), or table(s) of them ({--samples} reads these instead of the calls)");
    uint64_t FP_COUNT(stacks, "call-stacks", not_representable, "stack(s) of (a call or event|calls and events)");
    uint64_t FP_COUNT(open_end, "open-end");
    uint64_t killed; /* the text ends within an event or object */
    uint64_t FP_COUNT(bad_end, "unreadable-rest");
};

/* Where the reader is in the text. */
struct fp_trace_event_text {
    uint32_t events_depth; /* of the array of events; 0: not seen yet */
    int32_t in_events, seen_events, in_args, over;
    uint32_t field, arg_field;
    uint32_t n_key; /* bytes after n_stated: a key that waits for its value */
    struct fp_buf scratch;
};

struct fp_trace_event_documents {
    uint64_t events_before, stray_before, words_before; /* this document: events, stray elements, odd words */
    uint32_t *document_of;                              /* by thread, of documents after the first */
    uint32_t cap_document_of;
    int64_t first; /* the earliest time, or 0 */
    int64_t base;  /* nanoseconds added to all times; those of a document whose base differs already include that */
    int64_t more;  /* that difference */
};

struct fp_trace_event_calls {
    struct fp_trace_event_named *function_of; /* by string: the last function of that name */
    uint32_t cap_functions, categories[16];   /* the last strings, by length and first letter */
    struct fp_trace_event_stack *stacks_of;   /* by thread: open calls */
    uint32_t cap_stacks, closing;
};

struct fp_trace_event_merging {
    struct fp_trace_event_record head;
    uint32_t *heap; /* runs by their next record */
    uint32_t n_heap, cap_heap, n_started;
    int32_t has_heap, has_head, is_on;
};

struct fp_trace_event_read {
    struct fp_model *model; /* borrowed */
    int32_t lenient, by_time;
    int32_t out_of_order; /* after FP_DONE: the result is invalid; read the file again by time */
    uint32_t request;     /* after FP_NEEDS: enum fp_trace_event_request */
    uint32_t lane, lane_of, category;
    int32_t lines; /* set by the caller before the first call: events are at the top level of the text */
    struct fp_chrome_ids thread_ids;
    struct fp_trace_event event;
    struct fp_trace_event_record *records;
    uint32_t n_records, run, n_runs;
    struct fp_trace_event_run *runs; /* caller-owned */
    const uint32_t *parts;           /* by document, set for FP_TRACE_EVENT_MERGE if there are several; caller-owned */
    struct fp_trace_event_counts counts;
    uint8_t stated[4096]; /* of the file's metadata: keys and values, each followed by 0 */
    uint32_t n_stated;

    struct fp_json json; /* counts, too */
    int32_t pairing;     /* by time, to pair begins and ends */

    /* private from here on */
    struct fp_trace_event_text text;
    struct fp_trace_event_documents documents;
    struct fp_trace_event_calls calls;
    struct fp_trace_event_async *async;
    uint32_t cap_records;
    uint64_t order;
    struct fp_trace_event_merging merging;
    struct fp_trace_event_lanes lanes;
};

/* Borrows the model.  Caller owns. */
struct fp_trace_event_read *fp_trace_event_read_new(struct fp_model *model, int lenient, int by_time);
void fp_trace_event_read_free(struct fp_trace_event_read *r);

/* Sorts the records in memory. */
void fp_trace_event_sort(struct fp_trace_event_read *r);

/* Sets the thread of the model for the requested lane or track. */
void fp_trace_event_set_lane(struct fp_trace_event_read *r, uint32_t thread);
void fp_trace_event_set_track(struct fp_trace_event_read *r, uint32_t thread);

/* FP_MORE, FP_FULL, FP_NEEDS, FP_DONE or an error. */
int fp_trace_event_feed(struct fp_trace_event_read *r, struct fp_window *in, struct fp_batch *out, struct fp_err *err);
