#include "trace_event/read.h"

#include <stdlib.h>

#include "core/digits.h"
#include "trace_event/read_private.h"

enum field { OTHER = 0, PH, NAME, TS, DUR, PID, TID, STACK, ARGS, ARG_NAME, ARG_DATA, ARG_TYPE, ARG_NUMBER, META };

struct fp_trace_read *fp_trace_read_new(struct fp_model *model, int lenient, int by_time) {
    struct fp_trace_read *r = calloc(1, sizeof *r);
    if (!r) return NULL;
    r->model = model;
    r->lenient = lenient;
    r->by_time = by_time;
    r->json.loose = 1;
    if (fp_trace_ids_init(&r->thread_ids)) {
        fp_trace_read_free(r);
        return NULL;
    }
    return r;
}

void fp_trace_read_free(struct fp_trace_read *r) {
    if (!r) return;
    fp_buf_free(&r->event.name);
    fp_buf_free(&r->event.data);
    fp_buf_free(&r->event.text);
    fp_buf_free(&r->scratch);
    fp_trace_ids_clear(&r->thread_ids);
    for (uint32_t i = 0; i < r->cap_stacks; i++) {
        free(r->stacks_of[i].calls);
        free(r->stacks_of[i].args);
    }
    free(r->stacks_of);
    free(r->function_of);
    free(r->records);
    free(r->heap);
    fp_trace_lanes_free(&r->lanes);
    free(r);
}

/* ---- fields of an event ---- */

static void begin_event(struct fp_trace_read *r, const struct fp_in *in) {
    struct fp_trace_event *e = &r->event;
    const struct fp_buf name = e->name, data = e->data, text = e->text;
    *e = (struct fp_trace_event){.at = in->base + in->pos, .name = name, .data = data, .text = text};
    e->name.n = e->data.n = e->text.n = 0;
    r->thread_ids.pid = r->thread_ids.tid = (struct fp_trace_id){0};
    r->field = OTHER;
    r->in_args = 0;
    r->thread_ids.noted = 0;
}

static uint32_t field_of(const struct fp_json *j) {
    static const struct {
        const char *key;
        uint32_t field;
    } fields[] = {{"ph", PH},     {"name", NAME}, {"ts", TS},     {"dur", DUR},     {"pid", PID},     {"tid", TID},
                  {"args", ARGS}, {"sf", STACK},  {"esf", STACK}, {"stack", STACK}, {"estack", STACK}};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (fp_json_is(j, fields[i].key)) return fields[i].field;
    return OTHER;
}

/* The field of a key of `args`: name, data, type, or arg0, arg1, ... in this order. */
static uint32_t arg_field_of(const struct fp_trace_read *r) {
    const struct fp_json *j = &r->json;
    uint64_t n;
    uint8_t digits[24] = {0};
    if (fp_json_is(j, "name")) return ARG_NAME;
    if (fp_json_is(j, "data")) return ARG_DATA;
    if (fp_json_is(j, "type")) return ARG_TYPE;
    if (j->text_n < 4 || j->text_n > 20 || memcmp(j->text, "arg", 3)) return OTHER;
    memcpy(digits, j->text + 3, j->text_n - 3);
    const uint8_t *end = fp_decimal(digits, &n);
    return end && !*end && n == r->event.n_args && n < FP_TRACE_ARGS ? ARG_NUMBER : OTHER;
}

static int copy_text(struct fp_trace_read *r, struct fp_buf *to) {
    size_t n;
    const uint8_t *p = fp_json_plain(&r->json, &r->scratch, &n);
    to->n = 0;
    return !p || fp_buf_put(to, p, n) ? FP_E_NOMEM : 0;
}

/* Decodes hexadecimal digits into bytes.  *is_hex is 0 for anything else. */
static int copy_data(struct fp_trace_read *r, int *is_hex) {
    const struct fp_json *j = &r->json;
    struct fp_buf *to = &r->event.data;
    *is_hex = j->text_n % 2 == 0;
    to->n = 0;
    if (fp_buf_reserve(to, j->text_n / 2 + 1)) return FP_E_NOMEM;
    for (size_t i = 0; i + 1 < j->text_n && *is_hex; i += 2) {
        const unsigned high = fp_nibble(j->text[i]), low = fp_nibble(j->text[i + 1]);
        *is_hex = high < 16 && low < 16;
        to->p[to->n++] = (uint8_t)(high << 4 | low);
    }
    return 0;
}

/* Microseconds as nanoseconds.  *has is 0 for a word such as null. */
static int time_of(const struct fp_json *j, int64_t *ns, uint8_t *has) {
    size_t n = j->text_n;
    const uint8_t *p = fp_json_trim(j->text, &n);
    *has = j->token != FP_JSON_WORD;
    return *has ? fp_json_number(p, n, 3, ns, NULL) : 0;
}

/* Stores a text, number or word in its field of the event.  0, or an error code with `err` not set. */
static int take_value(struct fp_trace_read *r) {
    struct fp_trace_event *e = &r->event;
    const struct fp_json *j = &r->json;
    const int is_text = j->token == FP_JSON_STRING;
    uint8_t has_dur;
    int is_hex, status;
    if (r->in_args) {
        switch (r->arg_field) {
            case ARG_NAME:
                if (!is_text) break;
                e->other_args |= e->ph != 'M';
                return copy_text(r, &e->text);
            case ARG_DATA:
                if (!is_text) break;
                status = copy_data(r, &is_hex);
                e->has_data = (uint8_t)is_hex;
                e->other_args |= (uint8_t)!is_hex;
                return status;
            case ARG_TYPE:
                if (is_text || fp_json_number(j->text, j->text_n, 0, &e->type, NULL)) break;
                e->has_type = e->type >= 0 && e->type <= UINT32_MAX;
                return 0;
            case ARG_NUMBER:
                if (j->token != FP_JSON_NUMBER) break;
                e->args[e->n_args] = 0;
                for (size_t i = 0; i < j->text_n; i++) {
                    const unsigned digit = (unsigned)j->text[i] - '0';
                    uint64_t *const v = &e->args[e->n_args];
                    if (digit > 9 || *v > (UINT64_MAX - digit) / 10) {
                        e->other_args = 1;
                        return 0;
                    }
                    *v = *v * 10 + digit;
                }
                e->n_args++;
                return 0;
            default: break;
        }
        e->other_args = 1;
        return 0;
    }
    switch (r->field) {
        case PH:
            if (!is_text || j->text_n != 1) return FP_E_MALFORMED;
            e->ph = j->text[0];
            return 0;
        case NAME:
            if (j->token == FP_JSON_WORD) return 0;
            e->has_name = j->text_n > 0;
            return copy_text(r, &e->name);
        case TS: return time_of(j, &e->ts, &e->has_ts);
        case DUR: return time_of(j, &e->dur, &has_dur);
        case PID: return fp_trace_take_id(&r->thread_ids.pid, j, &r->scratch, r->model);
        case TID: return fp_trace_take_id(&r->thread_ids.tid, j, &r->scratch, r->model);
        default: return 0;
    }
}

/* ---- threads ---- */

static int thread_of(struct fp_trace_read *r, uint32_t *thread) {
    const int status = fp_trace_thread_of(&r->thread_ids, thread);
    if (status == FP_ASK) r->request = FP_TRACE_THREAD;
    return status ? status
                  : fp_array_zeroed(&r->stacks_of, &r->cap_stacks, (uint64_t)*thread + 1, sizeof *r->stacks_of);
}

/* The function of the event's name.  FP_NO_ID when memory ran out. */
static uint32_t function_of(struct fp_trace_read *r) {
    const struct fp_buf *name = &r->event.name;
    const uint32_t string = name->n ? fp_strings_intern(&r->model->strings, name->p, name->n)
                                    : fp_strings_intern(&r->model->strings, "[unknown]", 9);
    if (string == FP_NO_ID ||
        fp_array_zeroed(&r->function_of, &r->cap_functions, (uint64_t)string + 1, sizeof *r->function_of))
        return FP_NO_ID;
    if (!r->function_of[string]) r->function_of[string] = fp_model_function(r->model, 0, 0, string, 0, 0);
    return r->function_of[string];
}

/* ---- records ---- */

/* Adds a record for the event; its arguments take the next positions in the order. */
static struct fp_trace_record *add_record(struct fp_trace_read *r, uint32_t thread, uint32_t op, uint32_t id) {
    struct fp_trace_record *record = fp_trace_add(r);
    if (!record) return NULL;
    *record = (struct fp_trace_record){r->event.ts, 0, r->order++, thread, op, id, 0};
    return record;
}

/* Records a begin or end to pair later.  0 or FP_E_NOMEM. */
static int keep_unpaired(struct fp_trace_read *r, uint32_t thread, uint32_t function) {
    const struct fp_trace_event *e = &r->event;
    const int begins = e->ph == 'B';
    struct fp_trace_record *record = add_record(r, thread, begins ? FP_OP_ENTER : FP_OP_EXIT, function);
    if (!record) return FP_E_NOMEM;
    record->duration = begins ? FP_TRACE_BEGIN : 0;
    for (uint32_t k = 0; begins && k < e->n_args; k++) {
        record = add_record(r, thread, FP_OP_ARGUMENT, (uint32_t)e->args[k]);
        if (!record) return FP_E_NOMEM;
        record->type = (uint32_t)(e->args[k] >> 32);
    }
    return 0;
}

/* A begin or end.  0 or FP_E_NOMEM. */
static int begin_or_end(struct fp_trace_read *r, uint32_t thread) {
    struct fp_trace_event *e = &r->event;
    struct fp_trace_stack *s = &r->stacks_of[thread];
    uint32_t function = FP_NO_ID;
    if ((e->ph == 'B' || e->has_name) && (function = function_of(r)) == FP_NO_ID) return FP_E_NOMEM;
    r->out_of_order |= s->begun && e->ts < s->last && !r->by_time;
    s->begun = 1;
    s->last = e->ts;
    if (r->by_time) return keep_unpaired(r, thread, function);
    if (e->ph == 'E') return fp_trace_end(r, thread, e->ts, function);
    const struct fp_trace_record begin = {e->ts, FP_TRACE_BEGIN, r->order, thread, FP_OP_ENTER, function, 0};
    r->order += 1 + e->n_args;
    if (fp_trace_begin(r, &begin)) return FP_E_NOMEM;
    for (uint32_t k = 0; k < e->n_args; k++)
        if (fp_trace_argument(r, thread, e->args[k])) return FP_E_NOMEM;
    return 0;
}

/* 0 or FP_E_NOMEM. */
static int instant(struct fp_trace_read *r, uint32_t thread) {
    const struct fp_trace_event *e = &r->event;
    const struct fp_buf *payload = e->has_data ? &e->data : &e->name;
    const uint32_t string =
        fp_strings_intern(&r->model->strings, payload->n ? (const void *)payload->p : "", payload->n);
    struct fp_trace_record *record =
        string == FP_NO_ID ? NULL : add_record(r, thread, e->has_type ? FP_OP_TYPED : FP_OP_CUSTOM, string);
    if (!record) return FP_E_NOMEM;
    record->type = e->has_type ? (uint32_t)e->type : 0;
    return 0;
}

/* 0 or FP_E_NOMEM. */
static int complete(struct fp_trace_read *r, uint32_t thread) {
    const struct fp_trace_event *e = &r->event;
    const uint32_t function = function_of(r);
    struct fp_trace_record *record = function == FP_NO_ID ? NULL : add_record(r, thread, FP_OP_ENTER, function);
    if (!record) return FP_E_NOMEM;
    record->duration = e->dur > 0 ? e->dur : 0;
    r->backwards += e->dur < 0;
    return 0;
}

static int broken(struct fp_trace_read *r, const char *what, const char *want, struct fp_err *err) {
    if (r->lenient) {
        r->broken++;
        return FP_DONE;
    }
    fp_fail(err, FP_E_MALFORMED, r->event.at, what);
    err->want = want;
    return FP_E_MALFORMED;
}

static int end_event(struct fp_trace_read *r, struct fp_err *err) {
    struct fp_trace_event *e = &r->event;
    uint32_t thread;
    if (!e->keys) {
        r->empty++;
        return FP_DONE;
    }
    switch (e->ph) {
        case 0: return broken(r, "an event has no phase", "\"ph\"", err);
        case 'M':
            fp_trace_meta(&r->thread_ids, &e->name);
            if (!r->thread_ids.meta || !e->text.n || r->thread_ids.noted) return FP_DONE;
            r->request = FP_TRACE_NAME;
            return FP_ASK;
        case 'B':
        case 'E':
        case 'X':
        case 'i':
        case 'I':
        case 'R': break;
        case 'P': r->samples++; return FP_DONE;
        default: r->other_events++; return FP_DONE;
    }
    if (!e->has_ts) return broken(r, "an event has no time", "\"ts\"", err);
    if (r->n_records >= FP_TRACE_RECORDS) {
        r->request = FP_TRACE_SPILL;
        return FP_ASK;
    }
    int status = thread_of(r, &thread);
    if (status == FP_ASK) return status;
    if (!status)
        status = e->ph == 'X'                   ? complete(r, thread)
                 : e->ph == 'B' || e->ph == 'E' ? begin_or_end(r, thread)
                                                : instant(r, thread);
    if (status) return fp_no_memory(err);
    if (e->ts < r->first) r->first = e->ts;
    r->events++;
    r->negative_times += e->ts < 0;
    r->other_args += e->other_args;
    r->stacks += e->has_stack;
    return FP_DONE;
}

/* ---- the text ---- */

/* Records a key or value of the file's metadata.  A pair that exceeds the limit is dropped whole. */
static int note(struct fp_trace_read *r) {
    const struct fp_json *j = &r->json;
    const int is_key = j->token == FP_JSON_KEY;
    const uint32_t before = is_key ? 0 : r->n_key;
    r->n_key = 0;
    if (!is_key && (!before || (j->token != FP_JSON_STRING && j->token != FP_JSON_NUMBER && j->token != FP_JSON_WORD)))
        return FP_DONE;
    size_t n;
    const uint8_t *p = fp_json_plain(j, &r->scratch, &n);
    if (!p) return FP_E_NOMEM;
    const size_t room = sizeof r->stated - r->n_stated - before;
    if (n >= room || memchr(p, 0, n)) return FP_DONE;
    uint8_t *to = r->stated + r->n_stated + before;
    memcpy(to, p, n);
    to[n] = 0;
    if (is_key)
        r->n_key = (uint32_t)n + 1;
    else
        r->n_stated += before + (uint32_t)n + 1;
    return FP_DONE;
}

/* A token outside of events. */
static int outer_token(struct fp_trace_read *r, struct fp_in *in, struct fp_err *err) {
    struct fp_json *j = &r->json;
    const int begins_events = j->token == FP_JSON_ARRAY && (!j->depth || (j->depth == 1 && r->field == ARGS));
    if (!j->depth && j->token != FP_JSON_OBJECT && j->token != FP_JSON_ARRAY && j->token != FP_JSON_OBJECT_END)
        return fp_fail_text(err, FP_E_MALFORMED, in->base + in->pos, 0, "the JSON text", j->text, j->text_n,
                            "an object or an array of events");
    if (j->token == FP_JSON_KEY && j->depth == 1) {
        const int is_meta = fp_json_is(j, "metadata") || fp_json_is(j, "otherData");
        r->field = fp_json_is(j, "traceEvents") ? ARGS : is_meta ? META : OTHER; /* ARGS: the events follow */
        r->samples += (uint64_t)fp_json_is(j, "samples");
    }
    if (j->depth == 2 && r->field == META && note(r)) return fp_no_memory(err);
    if (begins_events) {
        r->in_events = r->seen_events = 1;
        r->events_depth = j->depth + 1;
    }
    fp_json_take(j, in);
    return FP_DONE;
}

/* A string, a number or a word of an event. */
static int value_token(struct fp_trace_read *r, const struct fp_in *in, struct fp_err *err) {
    const int status = take_value(r);
    if (status == FP_E_NOMEM) return fp_no_memory(err);
    if (!status) return FP_DONE;
    if (!r->lenient)
        return fp_fail_text(err, status, in->base + in->pos, 0,
                            r->field == PH ? "the phase of an event" : "a number in an event", r->json.text,
                            r->json.text_n, r->field == PH ? "one letter" : "a 64-bit number");
    r->broken++;
    return FP_DONE;
}

/* A token among the fields of an event. */
static int field_token(struct fp_trace_read *r, const struct fp_in *in, struct fp_err *err) {
    const struct fp_json *j = &r->json;
    if (j->token == FP_JSON_OBJECT_END) return end_event(r, err);
    if (j->token == FP_JSON_KEY) {
        r->field = field_of(j);
        r->event.keys = 1;
        r->event.has_stack |= r->field == STACK;
    } else if (j->token == FP_JSON_OBJECT || j->token == FP_JSON_ARRAY) {
        r->in_args = j->token == FP_JSON_OBJECT && r->field == ARGS;
    } else if (j->token >= FP_JSON_STRING) {
        return value_token(r, in, err);
    }
    return FP_DONE;
}

/* A token within a field; only those of `args` are used. */
static int arg_token(struct fp_trace_read *r, const struct fp_in *in, struct fp_err *err) {
    const struct fp_json *j = &r->json;
    if (j->token == FP_JSON_OBJECT_END || j->token == FP_JSON_ARRAY_END) {
        r->in_args = 0;
    } else if (r->in_args && j->token == FP_JSON_KEY) {
        r->arg_field = arg_field_of(r);
    } else if (r->in_args && (j->token == FP_JSON_OBJECT || j->token == FP_JSON_ARRAY)) {
        r->event.other_args = 1;
    } else if (r->in_args && j->token >= FP_JSON_STRING) {
        return value_token(r, in, err);
    }
    return FP_DONE;
}

static int event_token(struct fp_trace_read *r, struct fp_in *in, struct fp_err *err) {
    struct fp_json *j = &r->json;
    const uint32_t depth = j->depth - r->events_depth; /* 0: between events, 1: in an event, 2: in its args */
    int status = FP_DONE;
    if (j->token == FP_JSON_ARRAY_END && !depth) {
        r->in_events = 0;
    } else if (!depth) {
        begin_event(r, in);
        r->event.is_object = j->token == FP_JSON_OBJECT;
        r->stray_elements += !r->event.is_object;
    } else if (r->event.is_object && depth <= 2) {
        status = depth == 1 ? field_token(r, in, err) : arg_token(r, in, err);
    }
    if (status == FP_DONE) fp_json_take(j, in);
    return status;
}

static int end_text(struct fp_trace_read *r, struct fp_err *err) {
    r->over = 1;
    if (!r->seen_events && !r->lenient) return fp_fail(err, FP_E_MALFORMED, 0, "the object has no traceEvents");
    if (!r->by_time && fp_trace_close(r)) return fp_no_memory(err);
    r->merging = 1;
    r->pairing = r->by_time;
    r->request = FP_TRACE_MERGE;
    return FP_ASK;
}

/* The text is truncated or not JSON.  FP_ASK if what was read can be kept, otherwise the error. */
static int end_early(struct fp_trace_read *r, int status, struct fp_in *in, struct fp_err *err) {
    const int between = r->in_events && r->events_depth == 1 && fp_json_between(&r->json);
    if (status == FP_E_TRUNCATED && r->seen_events) { /* the writer was killed, or left the array open */
        r->open_end = 1;
        r->killed = !between;
        in->pos = in->n;
        return end_text(r, err);
    }
    if (!r->lenient) return status;
    r->bad_end = 1;
    return end_text(r, err);
}

int fp_trace_feed(struct fp_trace_read *r, struct fp_in *in, struct fp_batch *out, struct fp_err *err) {
    struct fp_json *j = &r->json;
    while (!r->over) {
        int status = fp_json_next(j, in, err);
        if (status == FP_MORE) return status;
        if (status < 0) return end_early(r, status, in, err);
        if (j->token == FP_JSON_END) return end_text(r, err);
        if (j->escaped && (j->token == FP_JSON_KEY || r->field == PH) && fp_json_unescape(j, &r->scratch))
            return fp_no_memory(err);
        status = r->in_events ? event_token(r, in, err) : outer_token(r, in, err);
        if (status) return status;
        if (r->out_of_order) return FP_DONE;
    }
    if (!in->eof) {
        in->pos = in->n;
        return FP_MORE;
    }
    return fp_trace_merge(r, out, err);
}
