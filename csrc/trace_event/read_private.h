/* trace_event/read_private.h - shared by the files of the reader.  Private.
 *
 *   read.c    the text: events become records
 *   event.c   whole events, without tokens
 *   fields.c  fields of an event
 *   pair.c    begins and ends become calls
 *   merge.c   records, sorted, become rows
 *   lanes.c   calls of a thread that overlap
 *   divide.c  calls that an annotation divides
 *   async.c   asynchronous calls, paired by their ids
 */
#pragma once

#include "trace_event/read.h"

/* An open call. */
struct fp_trace_event_open {
    int64_t time;
    uint64_t order;
    uint32_t function, n_args;
};

struct fp_trace_event_stack {
    struct fp_trace_event_open *calls;
    uint64_t *args; /* of all calls */
    uint32_t n, cap, n_args, cap_args;
    uint32_t n_unwound; /* calls above the n open ones: unwound at `unwound_at`, and their ends may follow */
    int32_t begun;      /* there was a begin or end, at time `last` */
    int64_t last, unwound_at;
};

struct fp_trace_event_lane {
    struct fp_trace_event_call *calls;
    uint32_t n, cap;
    uint32_t thread; /* of the model, + 1; 0: not requested yet */
};

/* The earliest and the latest end among the innermost calls of a range of lanes; INT64_MAX for a lane without calls. */
struct fp_trace_event_ends {
    int64_t least, most;
};

/* A function, and the category (a string) with which it was found. */
struct fp_trace_event_named {
    uint32_t function, category;
};

static inline struct fp_trace_event_record *fp_trace_event_add(struct fp_trace_event_read *r) {
    fp_array_room(&r->records, &r->cap_records, (uint64_t)r->n_records + 1, sizeof *r->records);
    return &r->records[r->n_records++];
}

/* The duration of a call as 64 unsigned bits: times may be further apart than 2^63 ns.  Two values are taken. */
static inline int64_t fp_trace_event_duration(int64_t begin, int64_t end) {
    const uint64_t most = (uint64_t)FP_TRACE_EVENT_ENDLESS - 1,
                   lasts = end > begin ? (uint64_t)end - (uint64_t)begin : 0;
    return (int64_t)(lasts < most ? lasts : most);
}

/* pair.c.  `name` is a string, or FP_NO_ID of an end without a name. */
void fp_trace_event_begin(struct fp_trace_event_read *r, const struct fp_trace_event_record *begin);
void fp_trace_event_argument(struct fp_trace_event_read *r, uint32_t thread, uint64_t value);
void fp_trace_event_end(struct fp_trace_event_read *r, uint32_t thread, int64_t time, uint32_t name);
/* Turns the calls that are still open into records. */
void fp_trace_event_close(struct fp_trace_event_read *r);

enum fp_trace_event_field {
    FP_TE_OTHER = 0,
    FP_TE_PH,
    FP_TE_NAME,
    FP_TE_CATEGORY,
    FP_TE_TS,
    FP_TE_DUR,
    FP_TE_PID,
    FP_TE_TID,
    FP_TE_ID,
    FP_TE_ID2,
    FP_TE_SCOPE,
    FP_TE_STACK,
    FP_TE_ARGS, /* of the whole text: its events */
    FP_TE_ARG_NAME,
    FP_TE_ARG_DATA,
    FP_TE_ARG_TYPE,
    FP_TE_ARG_NUMBER,
    FP_TE_LOCAL, /* of id2 */
    FP_TE_GLOBAL,
    FP_TE_META, /* of the whole text */
    FP_TE_BASE,
    FP_TE_SAMPLES
};
/* What the reader is in, within an event. */
enum { FP_TE_IN_ARGS = 1, FP_TE_IN_ID2 = 2 };

/* Records the document of a thread. */
static inline void fp_trace_event_in_document(struct fp_trace_event_read *r, uint32_t thread, uint32_t document) {
    if (FP_LIKELY(!document)) return;
    fp_array_zeroed(&r->documents.document_of, &r->documents.cap_document_of, (uint64_t)thread + 1,
                    sizeof *r->documents.document_of);
    r->documents.document_of[thread] = document;
}

/* Whether events of a phase have arguments that are read: numbers of a call, data of an instant, values, names. */
static inline int fp_trace_event_has_args(uint8_t ph) {
    return ph == 'B' || ph == 'C' || ph == 'M' || ph == 'I' || ph == 'i' || ph == 'R';
}

/* event.c.  Reads the event whose first token was read, and sets the token to all of it.  0: it must be read token by
 * token, from its beginning. */
int fp_trace_event_whole_event(struct fp_trace_event_read *r, const struct fp_window *in);

/* fields.c. */
void fp_trace_event_start(struct fp_trace_event_read *r, const struct fp_window *in);
uint32_t fp_trace_event_field_of(const struct fp_json *j);
/* The field of a key of `args`: name, labels, data, type, or arg0, arg1, ... in this order; or of `id2`. */
uint32_t fp_trace_event_argument_of(const struct fp_trace_event_read *r);
/* Stores a text, number or word in its field of the event.  0, or an error code with `err` not set. */
int fp_trace_event_take_value(struct fp_trace_event_read *r);

/* An instant becomes a record, a counter one for each value. */
void fp_trace_event_instant(struct fp_trace_event_read *r, uint32_t thread);
void fp_trace_event_counter(struct fp_trace_event_read *r, uint32_t thread);
/* A key or number of the arguments, if the event is or may be a counter. */
void fp_trace_event_take_series(struct fp_trace_event_read *r);

/* The name of a function. */
static inline uint32_t fp_trace_event_name_of(const struct fp_trace_event_read *r, uint32_t function) {
    return fp_table_row(&r->model->functions, function)[FP_FUNCTION_NAME];
}

/* How far before `end` the last of n calls of that name is; 0: none.  Of many calls only the last ones are searched. */
static inline uint32_t fp_trace_event_among(const struct fp_trace_event_read *r, const struct fp_trace_event_open *end,
                                            uint32_t n, uint32_t name) {
    enum { FP_TE_MAX_SEARCHED = 4096 };
    for (uint32_t k = 1; k <= n && k <= FP_TE_MAX_SEARCHED; k++)
        if (fp_trace_event_name_of(r, (end - k)->function) == name) return k;
    return 0;
}

/* How many of the innermost calls an end of `name` ends; 0: `name` is not open. */
static inline uint32_t fp_trace_event_ended_by(const struct fp_trace_event_read *r,
                                               const struct fp_trace_event_stack *s, uint32_t name) {
    if (!s->n || name == FP_NO_ID) return s->n ? 1 : 0;
    return fp_trace_event_among(r, s->calls + s->n, s->n, name);
}

/* async.c.  Each returns 0 or FP_NEEDS. */
void fp_trace_event_async_new(struct fp_trace_event_read *r);
void fp_trace_event_async_free(struct fp_trace_event_async *a);
/* A begin, end or instant of an asynchronous call; its name as a function (of an end as a string, or FP_NO_ID). */
int fp_trace_event_async_event(struct fp_trace_event_read *r, uint32_t name);
/* The same for a record of such an event, in order of time. */
int fp_trace_event_async_record(struct fp_trace_event_read *r, const struct fp_trace_event_record *record);
void fp_trace_event_async_close(struct fp_trace_event_read *r);

/* merge.c.  Appends rows of the runs' records; by time, first turns them into calls.  FP_FULL, FP_NEEDS or
 * FP_DONE. */
int fp_trace_event_merge(struct fp_trace_event_read *r, struct fp_batch *out);

static inline uint64_t fp_trace_event_shown(const struct fp_trace_event_read *r, int64_t time) {
    return (uint64_t)time - (uint64_t)r->documents.first + (uint64_t)r->documents.base;
}

/* divide.c.  What happens to a call of lane 0 that ends later than the innermost one. */
enum fp_trace_event_overlap { FP_TRACE_EVENT_ASIDE = 0, FP_TRACE_EVENT_DIVIDES, FP_TRACE_EVENT_IS_DIVIDED };
enum fp_trace_event_overlap fp_trace_event_overlap(const struct fp_trace_event_read *r, int64_t end);
/* Ends the calls of lane 0 that end before `end`, to go on.  FP_DONE or FP_FULL. */
int fp_trace_event_divide(struct fp_trace_event_read *r, int64_t end, struct fp_batch *out);
/* Enters them again, if they are all.  FP_DONE or FP_FULL. */
int fp_trace_event_enter_again(struct fp_trace_event_read *r, struct fp_batch *out);
/* Notes a call of lane 0 that ends, if it goes on. */
static inline void fp_trace_event_note_again(struct fp_trace_event_lanes *l, const struct fp_trace_event_call *call) {
    if (call->rest == call->end || l->n_again == FP_TRACE_EVENT_DIVIDED) return;
    l->again[l->n_again++] = *call;
    l->again_at = call->end;
}

/* lanes.c.  The first lane in which a call with this end nests. */
uint32_t fp_trace_event_lane_for(struct fp_trace_event_lanes *l, int64_t end);
/* The lane whose innermost call ends first, if that is not later than `now`; otherwise FP_NO_ID. */
uint32_t fp_trace_event_lane_ending(const struct fp_trace_event_lanes *l, int64_t now);
void fp_trace_event_lane_push(struct fp_trace_event_lanes *l, uint32_t lane, struct fp_trace_event_call call);
void fp_trace_event_lane_pop(struct fp_trace_event_lanes *l, uint32_t lane);
/* Drops all calls, to use the lanes for another thread. */
void fp_trace_event_lanes_reset(struct fp_trace_event_lanes *l, uint32_t thread);
void fp_trace_event_lanes_free(struct fp_trace_event_lanes *l);
