#include "trace_event/read.h"

#include "trace_event/read_private.h"

struct fp_trace_event_read *fp_trace_event_read_new(struct fp_model *model, int lenient, int by_time) {
    struct fp_trace_event_read *r = fp_made(sizeof *r);
    r->model = model;
    r->lenient = lenient;
    r->by_time = by_time;
    r->json.loose = 1;
    fp_trace_event_async_new(r);
    fp_chrome_ids_init(&r->thread_ids);
    return r;
}

void fp_trace_event_read_free(struct fp_trace_event_read *r) {
    FP_FREE_BUFFERS(&r->event.name, &r->event.data, &r->event.text, &r->event.id, &r->event.scope, &r->event.key,
                    &r->event.series, &r->text.scratch);
    fp_chrome_ids_clear(&r->thread_ids);
    for (uint32_t i = 0; i < r->calls.cap_stacks; i++) FP_FREE(r->calls.stacks_of[i].calls, r->calls.stacks_of[i].args);
    fp_trace_event_lanes_free(&r->lanes);
    fp_trace_event_async_free(r->async);
    FP_FREE(r->calls.stacks_of, r->calls.function_of, r->documents.document_of, r->records, r->merging.heap, r);
}

/* ---- threads ---- */

static int thread_of(struct fp_trace_event_read *r, uint32_t *thread) {
    const int status = fp_chrome_thread_of(&r->thread_ids, thread);
    if (status == FP_NEEDS) r->request = FP_TRACE_EVENT_THREAD;
    if (status) return status;
    fp_trace_event_in_document(r, *thread, r->thread_ids.document);
    fp_array_zeroed(&r->calls.stacks_of, &r->calls.cap_stacks, (uint64_t)*thread + 1, sizeof *r->calls.stacks_of);
    return 0;
}

static uint32_t name_of(struct fp_trace_event_read *r) {
    const struct fp_buf *name = &r->event.name;
    return name->n ? fp_strings_intern(&r->model->strings, name->p, name->n)
                   : fp_strings_intern(&r->model->strings, "[unknown]", 9);
}

/* The function of the event's name and category. */
static uint32_t function_of(struct fp_trace_event_read *r) {
    struct fp_model *m = r->model;
    const uint32_t string = name_of(r), category = r->event.category;
    struct fp_trace_event_named *const last = FP_AT(r->calls.function_of, r->calls.cap_functions, string);
    if (last->function && last->category == category) return last->function;
    const uint32_t object = category ? fp_model_object(m, category, 0) : 0;
    const uint32_t function = fp_model_function(m, object, 0, string, 0, 0);
    *last = (struct fp_trace_event_named){function, category};
    return function;
}

/* ---- records ---- */

/* Adds a record for the event; its arguments take the next positions in the order. */
static struct fp_trace_event_record *add_record(struct fp_trace_event_read *r, uint32_t thread, uint32_t op,
                                                uint32_t id) {
    struct fp_trace_event_record *record = fp_trace_event_add(r);
    *record = (struct fp_trace_event_record){r->event.ts, 0, r->order++, thread, op, id, 0};
    return record;
}

/* Records a begin or end to pair later. */
static void keep_unpaired(struct fp_trace_event_read *r, uint32_t thread, uint32_t function) {
    const struct fp_trace_event *e = &r->event;
    const int begins = e->ph == 'B';
    struct fp_trace_event_record *record = add_record(r, thread, begins ? FP_OP_ENTER : FP_OP_EXIT, function);
    record->duration = begins ? FP_TRACE_EVENT_BEGIN : 0;
    for (uint32_t k = 0; begins && k < e->n_args; k++) {
        record = add_record(r, thread, FP_OP_ARGUMENT, (uint32_t)e->args[k]);
        record->type = (uint32_t)(e->args[k] >> 32);
    }
}

static void begin_or_end(struct fp_trace_event_read *r, uint32_t thread) {
    struct fp_trace_event *e = &r->event;
    struct fp_trace_event_stack *s = &r->calls.stacks_of[thread];
    uint32_t function = FP_NO_ID; /* of an end its name */
    if (e->ph == 'B' || e->has_name) function = e->ph == 'B' ? function_of(r) : name_of(r);
    r->out_of_order |= s->begun && e->ts < s->last && !r->by_time;
    s->begun = 1;
    s->last = e->ts;
    if (r->by_time) {
        keep_unpaired(r, thread, function);
        return;
    }
    if (e->ph == 'E') {
        fp_trace_event_end(r, thread, e->ts, function);
        return;
    }
    const struct fp_trace_event_record begin = {e->ts, FP_TRACE_EVENT_BEGIN, r->order, thread, FP_OP_ENTER, function,
                                                0};
    r->order += 1 + e->n_args;
    fp_trace_event_begin(r, &begin);
    for (uint32_t k = 0; k < e->n_args; k++) fp_trace_event_argument(r, thread, e->args[k]);
}

/* 0 or FP_NEEDS. */
static int asynchronous(struct fp_trace_event_read *r) {
    const struct fp_trace_event *e = &r->event;
    const int begins = e->ph == 'b' || e->ph == 'S', ends = e->ph == 'e' || e->ph == 'F';
    const uint32_t name = begins ? function_of(r) : ends && e->has_name ? name_of(r) : FP_NO_ID;
    return fp_trace_event_async_event(r, name);
}

static void complete(struct fp_trace_event_read *r, uint32_t thread) {
    const struct fp_trace_event *e = &r->event;
    const uint32_t function = function_of(r);
    struct fp_trace_event_record *record = add_record(r, thread, FP_OP_ENTER, function);
    record->duration = e->dur > 0 ? e->dur : 0;
    r->counts.backwards += e->dur < 0;
}

static int broken(struct fp_trace_event_read *r, const char *what, const char *want, struct fp_err *err) {
    if (r->lenient) {
        r->counts.broken++;
        return FP_DONE;
    }
    fp_fail(err, FP_E_MALFORMED, r->event.at, what);
    err->want = want;
    return FP_E_MALFORMED;
}

/* An event on the time axis: its rows.  0 or FP_NEEDS. */
static int timed_event(struct fp_trace_event_read *r) {
    uint32_t thread;
    const uint8_t ph = r->event.ph;
    if (ph != 'X' && strchr("benSFTp", ph)) return asynchronous(r);
    FP_TRY(thread_of(r, &thread));
    if (ph == 'X')
        complete(r, thread);
    else if (ph == 'C')
        fp_trace_event_counter(r, thread);
    else if (ph == 'B' || ph == 'E')
        begin_or_end(r, thread);
    else
        fp_trace_event_instant(r, thread);
    return 0;
}

static int is_text(const struct fp_trace_event_read *r, uint32_t string, const char *text) {
    size_t n;
    const uint8_t *p = fp_string(&r->model->strings, string, &n);
    return n == strlen(text) && !memcmp(p, text, n);
}

/* Whether PyTorch's profiler wrote the event for itself: its spans are no calls of a thread. */
static int is_of_profiler(const struct fp_trace_event_read *r) {
    const uint32_t pid = r->thread_ids.pid.string;
    return pid && (is_text(r, pid, "Spans") || is_text(r, pid, "Traces"));
}

/* A name of a process or thread.  FP_DONE or FP_NEEDS. */
static int end_meta(struct fp_trace_event_read *r) {
    if (is_of_profiler(r)) return FP_DONE;
    fp_chrome_meta(&r->thread_ids, &r->event.name);
    if (!r->thread_ids.meta || !r->event.text.n || r->thread_ids.noted) return FP_DONE;
    r->request = FP_TRACE_EVENT_NAME;
    return FP_NEEDS;
}

/* Whether arguments that only other phases have are lost. */
static int has_unused_args(const struct fp_trace_event *e) {
    return (e->n_args && e->ph != 'B') || ((e->has_data || e->has_type) && !strchr("IiR", e->ph));
}

static int end_event(struct fp_trace_event_read *r, struct fp_err *err) {
    struct fp_trace_event *e = &r->event;
    if (!e->keys) {
        r->counts.empty++;
        return FP_DONE;
    }
    if (e->is_bad && e->ph != 'M') {
        r->counts.broken++;
        return FP_DONE;
    }
    if (!e->ph) return broken(r, "an event has no phase", "\"ph\"", err);
    if (e->ph == 'M') return end_meta(r);
    const int is_counter = e->ph == 'C' && e->has_ts && e->series.n;
    if (!is_counter && e->ph != 'X' && !strchr("BEiIRbenSFTp", e->ph)) {
        r->counts.samples += e->ph == 'P';
        r->counts.counters += e->ph == 'C';
        r->counts.flows += e->ph == 's' || e->ph == 't' || e->ph == 'f';
        r->counts.other_events += !strchr("PCstf", e->ph);
        return FP_DONE;
    }
    if (!e->has_ts) return broken(r, "an event has no time", "\"ts\"", err);
    if (e->ph == 'X' && is_of_profiler(r) && is_text(r, e->category, "Trace")) {
        r->counts.spans++;
        return FP_DONE;
    }
    if (r->n_records >= FP_TRACE_EVENT_RECORDS) {
        r->request = FP_TRACE_EVENT_SPILL;
        return FP_NEEDS;
    }
    if (!e->is_moved && __builtin_add_overflow(e->ts, r->documents.more, &e->ts))
        return broken(r, "a time in an event", "a 64-bit number", err);
    e->is_moved = 1;
    FP_TRY(timed_event(r));
    if (e->ts < r->documents.first) r->documents.first = e->ts;
    r->counts.events++;
    r->counts.negative_times += e->ts < 0;
    r->counts.other_args += is_counter ? e->nested_args : e->other_args || has_unused_args(e);
    r->counts.stacks += e->has_stack;
    return FP_DONE;
}

/* ---- the text ---- */

/* Records a key or value of the file's metadata.  A pair that exceeds the limit is dropped whole. */
static void note(struct fp_trace_event_read *r) {
    const struct fp_json *j = &r->json;
    const int is_key = j->token == FP_JSON_KEY;
    const uint32_t before = is_key ? 0 : r->text.n_key;
    r->text.n_key = 0;
    if (!is_key && (!before || (j->token != FP_JSON_STRING && j->token != FP_JSON_NUMBER && j->token != FP_JSON_WORD)))
        return;
    size_t n;
    const uint8_t *p = fp_json_plain(j, &r->text.scratch, &n);
    const size_t room = sizeof r->stated - r->n_stated - before;
    if (n >= room || memchr(p, 0, n)) return;
    uint8_t *to = r->stated + r->n_stated + before;
    memcpy(to, p, n);
    to[n] = 0;
    if (is_key)
        r->text.n_key = (uint32_t)n + 1;
    else
        r->n_stated += before + (uint32_t)n + 1;
}

/* The time from which all times of this document count, in nanoseconds.  0; FP_E_MALFORMED if it comes after times of a
 * further document, which are moved when they are read. */
static int take_base(struct fp_trace_event_read *r) {
    int64_t base;
    if (fp_json_number(r->json.text, r->json.text_n, 0, &base, NULL) || base < 0 || base > INT64_MAX / 2) return 0;
    if (!r->thread_ids.document) {
        r->documents.base = base;
        return 0;
    }
    if (base && r->counts.events > r->documents.events_before) return FP_E_MALFORMED;
    r->documents.more = base - r->documents.base;
    return 0;
}

/* A token at depth 1, outside of events.  Sets the field.  FP_DONE or an error. */
static int key_token(struct fp_trace_event_read *r, const struct fp_window *in, struct fp_err *err) {
    const struct fp_json *j = &r->json;
    if (j->token == FP_JSON_KEY) {
        r->text.field = fp_json_is(j, "traceEvents")           ? FP_TE_ARGS
                        : fp_json_is(j, "baseTimeNanoseconds") ? FP_TE_BASE
                        : fp_json_is(j, "samples")             ? FP_TE_SAMPLES
                        : fp_json_is(j, "metadata") || fp_json_is(j, "otherData") || fp_json_is(j, "distributedInfo")
                            ? FP_TE_META
                            : FP_TE_OTHER;
    } else if (r->text.field == FP_TE_BASE && j->token == FP_JSON_NUMBER && take_base(r)) {
        r->event.at = in->base + in->pos;
        FP_TRY(broken(r, "a further document states its base time after its events",
                      "\"baseTimeNanoseconds\" before \"traceEvents\"", err));
    }
    if (j->token != FP_JSON_KEY || !fp_json_is(j, "displayTimeUnit")) note(r);
    return FP_DONE;
}

/* A token outside of events. */
static int outer_token(struct fp_trace_event_read *r, struct fp_window *in, struct fp_err *err) {
    struct fp_json *j = &r->json;
    const int begins_events =
        j->token == FP_JSON_ARRAY && (!j->depth || (j->depth == 1 && r->text.field == FP_TE_ARGS));
    if (!j->depth && j->token != FP_JSON_OBJECT && j->token != FP_JSON_ARRAY && j->token != FP_JSON_OBJECT_END)
        return fp_fail_text(err, FP_E_MALFORMED, in->base + in->pos, 0, "the JSON text", j->text, j->text_n,
                            "an object or an array of events");
    if (j->depth == 1) FP_TRY(key_token(r, in, err));
    if (j->depth == 2 && r->text.field == FP_TE_META) note(r);
    if (j->depth == 2 && r->text.field == FP_TE_SAMPLES) {
        r->counts.samples += j->token != FP_JSON_ARRAY_END; /* a table counts once; some writers add an empty one */
        r->text.field = FP_TE_OTHER;
    }
    if (begins_events) {
        r->text.in_events = r->text.seen_events = 1;
        r->text.events_depth = j->depth + 1;
    }
    fp_json_take(j, in);
    return FP_DONE;
}

/* A string, a number or a word of an event. */
static int value_token(struct fp_trace_event_read *r, const struct fp_window *in, struct fp_err *err) {
    const int status = fp_trace_event_take_value(r);
    if (!status) return FP_DONE;
    if (!r->lenient)
        return fp_fail_text(err, status, in->base + in->pos, 0,
                            r->text.field == FP_TE_PH ? "the phase of an event" : "a number in an event", r->json.text,
                            r->json.text_n, r->text.field == FP_TE_PH ? "one letter" : "a 64-bit number");
    r->event.is_bad = 1;
    return FP_DONE;
}

/* A token among the fields of an event. */
static int field_token(struct fp_trace_event_read *r, const struct fp_window *in, struct fp_err *err) {
    const struct fp_json *j = &r->json;
    if (j->token == FP_JSON_OBJECT_END) return end_event(r, err);
    if (j->token == FP_JSON_KEY) {
        r->text.field = fp_trace_event_field_of(j);
        r->event.keys = 1;
        r->event.has_stack |= r->text.field == FP_TE_STACK;
    } else if (j->token == FP_JSON_OBJECT || j->token == FP_JSON_ARRAY) {
        r->text.in_args = j->token != FP_JSON_OBJECT    ? 0
                          : r->text.field == FP_TE_ARGS ? FP_TE_IN_ARGS
                          : r->text.field == FP_TE_ID2  ? FP_TE_IN_ID2
                                                        : 0;
    } else if (j->token >= FP_JSON_STRING) {
        return value_token(r, in, err);
    }
    return FP_DONE;
}

/* A token within a field; only those of `args` are used. */
static int arg_token(struct fp_trace_event_read *r, const struct fp_window *in, struct fp_err *err) {
    const struct fp_json *j = &r->json;
    if (j->token == FP_JSON_OBJECT_END || j->token == FP_JSON_ARRAY_END) {
        r->text.in_args = 0;
    } else if (r->text.in_args && j->token == FP_JSON_KEY) {
        r->text.arg_field = fp_trace_event_argument_of(r);
        fp_trace_event_take_series(r);
    } else if (r->text.in_args && (j->token == FP_JSON_OBJECT || j->token == FP_JSON_ARRAY)) {
        if (r->text.in_args == FP_TE_IN_ARGS) r->event.other_args = r->event.nested_args = 1;
        const uint8_t *end = fp_json_value(&r->json, in->p + in->pos, in->p + in->n);
        if (end) fp_json_whole(&r->json, (size_t)(end - in->p));
    } else if (r->text.in_args && j->token >= FP_JSON_STRING) {
        if (r->text.in_args == FP_TE_IN_ARGS) fp_trace_event_take_series(r);
        return value_token(r, in, err);
    }
    return FP_DONE;
}

/* The first token of an element of the events. */
static int element(struct fp_trace_event_read *r, const struct fp_window *in, struct fp_err *err) {
    struct fp_json *j = &r->json;
    fp_trace_event_start(r, in);
    r->counts.stray_elements += !r->event.is_object;
    if (!r->event.is_object) return FP_DONE;
    if (fp_trace_event_whole_event(r, in)) return end_event(r, err);
    j->token = FP_JSON_OBJECT;
    fp_trace_event_start(r, in); /* again: some fields may have been read */
    return FP_DONE;
}

static int event_token(struct fp_trace_event_read *r, struct fp_window *in, struct fp_err *err) {
    struct fp_json *j = &r->json;
    const uint32_t depth = j->depth - r->text.events_depth; /* 0: between events, 1: in an event, 2: in its args */
    int status = FP_DONE;
    if (j->token == FP_JSON_ARRAY_END && !depth) {
        r->text.in_events = 0;
    } else if (!depth) {
        status = element(r, in, err);
    } else if (r->event.is_object && depth <= 2) {
        status = depth == 1 ? field_token(r, in, err) : arg_token(r, in, err);
    }
    if (status == FP_DONE) fp_json_take(j, in);
    return status;
}

/* Another value follows: an event, or a document. */
static int continues(struct fp_trace_event_read *r, struct fp_window *in) {
    struct fp_json *j = &r->json;
    if (j->rest != 2) return 0;
    const uint8_t c = in->p[in->pos];
    if (r->lines && (c == '{' || c == ',')) {
        in->pos += c == ',';
        fp_json_again(j);
        return 1;
    }
    if (r->lines || (c != '{' && c != '[')) return 0;
    fp_json_again(j);
    r->text.field = FP_TE_OTHER;
    r->documents.more = -r->documents.base;
    r->text.in_events = r->event.is_object = 0;
    /* each number gets a part of the model: `{}{}{}...` would fill the memory */
    const int is_used = !r->thread_ids.document || r->counts.events > r->documents.events_before;
    r->documents.events_before = r->counts.events;
    r->documents.stray_before = r->counts.stray_elements;
    r->documents.words_before = j->odd_words;
    r->thread_ids.document += (uint32_t)is_used; /* else the next document gets the number of the one without events */
    return 1;
}

static int end_text(struct fp_trace_event_read *r, struct fp_err *err) {
    r->text.over = 1;
    if (!r->text.seen_events && !r->lenient) return fp_fail(err, FP_E_MALFORMED, 0, "the object has no traceEvents");
    if (r->documents.first + r->documents.base < 0) {
        r->documents.base = 0;
    } else {
        r->documents.first = 0;
        r->counts.negative_times = 0;
    }
    if (!r->by_time) fp_trace_event_close(r);
    r->merging.is_on = 1;
    r->pairing = r->by_time;
    r->request = FP_TRACE_EVENT_MERGE;
    return FP_NEEDS;
}

/* The text is truncated or not JSON.  FP_NEEDS or FP_DONE if what was read can be kept, otherwise the error. */
static int end_early(struct fp_trace_event_read *r, int status, struct fp_window *in, struct fp_err *err) {
    const int between =
        r->lines ? !r->json.depth : r->text.in_events && r->text.events_depth == 1 && fp_json_between(&r->json);
    const int has_begun = r->text.in_events && (r->text.events_depth > 1 || r->event.is_object);
    if (r->thread_ids.document && !has_begun &&
        r->counts.events == r->documents.events_before) { /* not a document: [12:00:00] done */
        r->json.rest = 2;
        r->json.odd_words = r->documents.words_before;
        r->counts.stray_elements = r->documents.stray_before;
        r->thread_ids.document--;
        in->pos = in->n;
        return end_text(r, err);
    }
    if (status == FP_E_TRUNCATED && r->text.seen_events) { /* the writer was killed, or left the array open */
        r->counts.open_end = 1;
        r->counts.killed = !between;
        in->pos = in->n;
        return end_text(r, err);
    }
    if (!r->lenient) return status;
    r->counts.bad_end = 1;
    return end_text(r, err);
}

int fp_trace_event_feed(struct fp_trace_event_read *r, struct fp_window *in, struct fp_batch *out, struct fp_err *err) {
    struct fp_json *j = &r->json;
    if (r->lines) r->text.in_events = r->text.seen_events = 1;
    while (!r->text.over) {
        int status = fp_json_next(j, in, err);
        if (status == FP_MORE) return status;
        if (status < 0) return end_early(r, status, in, err);
        if (j->token == FP_JSON_END && continues(r, in)) continue;
        if (j->token == FP_JSON_END) return end_text(r, err);
        if (j->escaped && (j->token == FP_JSON_KEY || r->text.field == FP_TE_PH)) fp_json_unescape(j, &r->text.scratch);
        status = r->text.in_events ? event_token(r, in, err) : outer_token(r, in, err);
        if (status) return status;
        if (r->out_of_order) return FP_DONE;
    }
    if (!in->eof) {
        in->pos = in->n;
        return FP_MORE;
    }
    return fp_trace_event_merge(r, out);
}
