#include "trace_event/read.h"

#include <stdlib.h>

#include "core/array.h"
#include "core/digits.h"
#include "trace_event/read_private.h"

enum field { OTHER = 0, PH, NAME, TS, DUR, PID, TID, STACK, ARGS, ARG_NAME, ARG_DATA, ARG_TYPE, ARG_NUMBER };

struct fp_trace_read *fp_trace_read_new(struct fp_model *model, int lenient, int sorting) {
    struct fp_trace_read *r = calloc(1, sizeof *r);
    if (!r) return NULL;
    r->model = model;
    r->lenient = lenient;
    r->sorting = sorting;
    if (fp_trace_who_init(&r->who)) {
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
    fp_trace_who_clear(&r->who);
    for (uint32_t i = 0; i < r->cap_stacks; i++) free(r->stacks_of[i].calls);
    free(r->stacks_of);
    free(r->function_of);
    free(r->records);
    free(r->heap);
    free(r->calls);
    free(r);
}

/* ---- what an event says ---- */

static void begin_event(struct fp_trace_read *r, const struct fp_in *in) {
    struct fp_trace_event *e = &r->event;
    const struct fp_buf name = e->name, data = e->data, text = e->text;
    *e = (struct fp_trace_event){.at = in->base + in->pos, .name = name, .data = data, .text = text};
    e->name.n = e->data.n = e->text.n = 0;
    r->who.pid = r->who.tid = (struct fp_trace_id){0};
    r->field = OTHER;
    r->in_args = 0;
    r->stage = 0;
    r->who.noted = 0;
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

/* A key of the arguments: name, data, type, or arg0, arg1 ... in this order. */
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

/* Hexadecimal digits as bytes; *well is 0 if it is something else. */
static int copy_data(struct fp_trace_read *r, int *well) {
    const struct fp_json *j = &r->json;
    struct fp_buf *to = &r->event.data;
    *well = j->text_n % 2 == 0;
    to->n = 0;
    if (fp_buf_reserve(to, j->text_n / 2 + 1)) return FP_E_NOMEM;
    for (size_t i = 0; i + 1 < j->text_n && *well; i += 2) {
        const unsigned high = fp_nibble(j->text[i]), low = fp_nibble(j->text[i + 1]);
        *well = high < 16 && low < 16;
        to->p[to->n++] = (uint8_t)(high << 4 | low);
    }
    return 0;
}

static int time_of(const struct fp_json *j, int64_t *ns) {
    return j->token == FP_JSON_WORD ? FP_E_MALFORMED : fp_json_number(j->text, j->text_n, 3, ns, NULL);
}

/* A text, number or word of an event.  0 or an error that is not yet described. */
static int take_value(struct fp_trace_read *r) {
    struct fp_trace_event *e = &r->event;
    const struct fp_json *j = &r->json;
    const int is_text = j->token == FP_JSON_STRING;
    int well, status;
    if (r->in_args) {
        switch (r->arg_field) {
            case ARG_NAME:
                if (!is_text) break;
                e->other_args |= e->ph != 'M';
                return copy_text(r, &e->text);
            case ARG_DATA:
                if (!is_text) break;
                status = copy_data(r, &well);
                e->has_data = (uint8_t)well;
                e->other_args |= (uint8_t)!well;
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
            if (!is_text) return 0;
            e->has_name = 1;
            return copy_text(r, &e->name);
        case TS: e->has_ts = 1; return time_of(j, &e->ts);
        case DUR: return j->token == FP_JSON_WORD ? 0 : time_of(j, &e->dur);
        case PID: return fp_trace_take_id(&r->who.pid, j, &r->scratch, r->model);
        case TID: return fp_trace_take_id(&r->who.tid, j, &r->scratch, r->model);
        default: return 0;
    }
}

/* ---- who ---- */

static int thread_of(struct fp_trace_read *r, uint32_t *thread) {
    const int status = fp_trace_thread_of(&r->who, thread);
    if (status == FP_ASK) r->asks = FP_TRACE_WHO;
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

/* ---- rows ---- */

static struct fp_trace_record *add_record(struct fp_trace_read *r) {
    if (fp_array_room(&r->records, &r->cap_records, (uint64_t)r->n_records + 1, sizeof *r->records)) return NULL;
    return &r->records[r->n_records++];
}

static int push_call(struct fp_trace_stack *s, struct fp_trace_open call) {
    if (fp_array_room(&s->calls, &s->cap, (uint64_t)s->n + 1, sizeof *s->calls)) return FP_E_NOMEM;
    s->calls[s->n++] = call;
    return 0;
}

/* The event's call ends: how many calls that are open do, from the innermost one on; 0: it is not open.  One that is
 * very deep is not looked for. */
static uint32_t ended_by(const struct fp_trace_stack *s, const struct fp_trace_event *e, uint32_t function) {
    enum { LOOK = 4096 };
    if (!s->n || !e->has_name) return s->n ? 1 : 0;
    for (uint32_t k = 1; k <= s->n && k <= LOOK; k++)
        if (s->calls[s->n - k].function == function) return k;
    return 0;
}

/* A begin or end.  0, FP_FULL, FP_E_NOMEM. */
static int call_row(struct fp_trace_read *r, uint32_t thread, uint64_t now, struct fp_batch *out) {
    struct fp_trace_event *e = &r->event;
    struct fp_trace_stack *s = &r->stacks_of[thread];
    const int begins = e->ph == 'B';
    uint32_t function = 0;
    if ((begins || e->has_name) && (function = function_of(r)) == FP_NO_ID) return FP_E_NOMEM;
    if (begins && r->stage == 0) {
        const struct fp_trace_open call = {now, r->order++, function};
        if (push_call(s, call)) return FP_E_NOMEM;
        if (r->sorting) return 0;
        r->stage = 1;
    }
    if (begins) {
        for (; r->stage <= e->n_args + 1; r->stage++) {
            if (out->n == out->cap) return FP_FULL;
            if (r->stage == 1) {
                fp_trace_row(out, e->n_args ? FP_OP_ENTER_ARGS : FP_OP_ENTER, now, thread, function);
            } else {
                const uint32_t i = fp_trace_row(out, FP_OP_ARGUMENT, now, thread, 0);
                out->aux[i] = e->args[r->stage - 2];
            }
        }
        return 0;
    }
    const uint32_t ended = ended_by(s, e, function);
    if (r->sorting) {
        r->lost_ends += !ended;
        for (uint32_t k = 0; k < ended; k++) {
            const struct fp_trace_open call = s->calls[--s->n];
            struct fp_trace_record *record = add_record(r);
            if (!record) return FP_E_NOMEM;
            *record = (struct fp_trace_record){
                call.time, now > call.time ? now - call.time : 0, call.order, thread, FP_OP_ENTER, call.function, 0};
        }
        return 0;
    }
    if (out->n == out->cap) return FP_FULL;
    r->nameless_ends += !e->has_name;
    if (!e->has_name && !ended) {
        r->lost_ends++;
        return 0;
    }
    if (!e->has_name) function = s->calls[s->n - 1].function;
    s->n -= ended;
    fp_trace_row(out, FP_OP_EXIT, now, thread, function);
    return 0;
}

/* An instant.  0, FP_FULL, FP_E_NOMEM, FP_E_OVERFLOW. */
static int instant_row(struct fp_trace_read *r, uint32_t thread, uint64_t now, struct fp_batch *out) {
    struct fp_trace_event *e = &r->event;
    const struct fp_buf *payload = e->has_data ? &e->data : &e->name;
    const uint8_t op = e->has_type ? FP_OP_TYPED : FP_OP_CUSTOM;
    const uint32_t type = e->has_type ? (uint32_t)e->type : 0;
    if (r->sorting) {
        const uint32_t string =
            fp_strings_intern(&r->model->strings, payload->n ? (const void *)payload->p : "", payload->n);
        struct fp_trace_record *record = string == FP_NO_ID ? NULL : add_record(r);
        if (!record) return FP_E_NOMEM;
        *record = (struct fp_trace_record){now, 0, r->order++, thread, op, string, type};
        return 0;
    }
    uint64_t slice;
    if (out->n == out->cap) return FP_FULL;
    const int status = fp_batch_payload(out, payload->n ? (const void *)payload->p : "", payload->n, &slice);
    if (status) return status == FP_E_OVERFLOW && out->n ? FP_FULL : status;
    out->aux[fp_trace_row(out, op, now, thread, type)] = slice;
    return 0;
}

static int complete_record(struct fp_trace_read *r, uint32_t thread, uint64_t now) {
    const uint32_t function = function_of(r);
    struct fp_trace_record *record = function == FP_NO_ID ? NULL : add_record(r);
    if (!record) return FP_E_NOMEM;
    const uint64_t duration = r->event.dur > 0 ? (uint64_t)r->event.dur : 0;
    r->below_zero += r->event.dur < 0;
    *record = (struct fp_trace_record){now, duration, r->order++, thread, FP_OP_ENTER, function, 0};
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

static int end_event(struct fp_trace_read *r, struct fp_batch *out, struct fp_err *err) {
    struct fp_trace_event *e = &r->event;
    uint32_t thread;
    if (!e->keys) {
        r->empty++;
        return FP_DONE;
    }
    switch (e->ph) {
        case 0: return broken(r, "an event has no phase", "\"ph\"", err);
        case 'M':
            fp_trace_meta(&r->who, &e->name);
            if (!r->who.meta || !e->text.n || r->who.noted) return FP_DONE;
            r->asks = FP_TRACE_NAME;
            return FP_ASK;
        case 'B':
        case 'E':
        case 'X':
        case 'i':
        case 'I':
        case 'R': break;
        case 'P': r->samples++; return FP_DONE;
        default: r->unsaid++; return FP_DONE;
    }
    if (!e->has_ts) return broken(r, "an event has no time", "\"ts\"", err);
    if (r->n_records >= FP_TRACE_RECORDS) {
        r->asks = FP_TRACE_SPILL;
        return FP_ASK;
    }
    int status = thread_of(r, &thread);
    if (status == FP_ASK) return status;
    const uint64_t now = e->ts > 0 ? (uint64_t)e->ts : 0;
    if (status)
        ;
    else if (e->ph == 'X')
        status = complete_record(r, thread, now);
    else if (e->ph == 'B' || e->ph == 'E')
        status = call_row(r, thread, now, out);
    else
        status = instant_row(r, thread, now, out);
    if (status == FP_E_NOMEM) return fp_no_memory(err);
    if (status < 0) return fp_fail(err, status, e->at, "an event is beyond 4 GiB");
    if (status) return status;
    r->events++;
    r->below_zero += e->ts < 0;
    r->other_args += e->other_args;
    r->stacks += e->has_stack;
    return FP_DONE;
}

/* ---- the text ---- */

/* A token outside of events. */
static int outer_token(struct fp_trace_read *r, struct fp_in *in, struct fp_err *err) {
    struct fp_json *j = &r->json;
    const int begins_events = j->token == FP_JSON_ARRAY && (!j->depth || (j->depth == 1 && r->field == ARGS));
    if (!j->depth && j->token != FP_JSON_OBJECT && j->token != FP_JSON_ARRAY && j->token != FP_JSON_OBJECT_END)
        return fp_fail_text(err, FP_E_MALFORMED, in->base + in->pos, 0, "the JSON text", j->text, j->text_n,
                            "an object or an array of events");
    if (j->token == FP_JSON_KEY && j->depth == 1) {
        r->field = fp_json_is(j, "traceEvents") ? ARGS : OTHER; /* ARGS: the events follow */
        r->samples += (uint64_t)fp_json_is(j, "samples");
    }
    if (begins_events) {
        r->in_events = r->seen_events = 1;
        r->events_depth = j->depth + 1;
    }
    fp_json_take(j, in);
    return FP_DONE;
}

static int event_token(struct fp_trace_read *r, struct fp_in *in, struct fp_batch *out, struct fp_err *err) {
    struct fp_json *j = &r->json;
    const uint32_t depth = j->depth - r->events_depth; /* 0: between events, 1: in one, 2: in its args */
    int status = FP_DONE;
    if (j->token == FP_JSON_ARRAY_END && !depth) {
        r->in_events = 0;
    } else if (!depth) {
        begin_event(r, in);
        if (j->token != FP_JSON_OBJECT) status = broken(r, "an event is no object", "{", err);
    } else if (depth == 1 && j->token == FP_JSON_OBJECT_END) {
        status = end_event(r, out, err);
    } else if (depth == 1 && j->token == FP_JSON_KEY) {
        r->field = field_of(j);
        r->event.keys = 1;
        r->event.has_stack |= r->field == STACK;
    } else if (depth == 1 && (j->token == FP_JSON_OBJECT || j->token == FP_JSON_ARRAY)) {
        r->in_args = j->token == FP_JSON_OBJECT && r->field == ARGS;
    } else if (depth == 2 && r->in_args && j->token == FP_JSON_KEY) {
        r->arg_field = arg_field_of(r);
    } else if (depth == 2 && r->in_args && (j->token == FP_JSON_OBJECT || j->token == FP_JSON_ARRAY)) {
        r->event.other_args = 1;
    } else if (depth == 2 && (j->token == FP_JSON_OBJECT_END || j->token == FP_JSON_ARRAY_END)) {
        r->in_args = 0;
    } else if ((depth == 1 || (depth == 2 && r->in_args)) && j->token >= FP_JSON_STRING) {
        status = take_value(r);
        if (status == FP_E_NOMEM) return fp_no_memory(err);
        if (status && r->lenient) {
            r->broken++;
            status = FP_DONE;
        }
        if (status)
            return fp_fail_text(err, status, in->base + in->pos, 0,
                                r->field == PH ? "the phase of an event" : "a number of an event", j->text, j->text_n,
                                r->field == PH ? "one letter" : "a number within 64 bits");
    }
    if (status == FP_DONE) fp_json_take(j, in);
    return status;
}

/* Calls that are open at the end of the text become records. */
static int close_calls(struct fp_trace_read *r) {
    for (; r->closing < r->cap_stacks; r->closing++) {
        struct fp_trace_stack *s = &r->stacks_of[r->closing];
        for (; s->n; s->n--) {
            const struct fp_trace_open call = s->calls[s->n - 1];
            struct fp_trace_record *record = add_record(r);
            if (!record) return FP_E_NOMEM;
            *record =
                (struct fp_trace_record){call.time, UINT64_MAX, call.order, r->closing, FP_OP_ENTER, call.function, 0};
        }
    }
    return 0;
}

static int end_text(struct fp_trace_read *r, struct fp_err *err) {
    r->over = 1;
    if (!r->seen_events && !r->lenient) return fp_fail(err, FP_E_MALFORMED, 0, "the object has no traceEvents");
    if (!r->sorting) return FP_DONE;
    if (close_calls(r)) return fp_no_memory(err);
    r->merging = 1;
    r->asks = FP_TRACE_MERGE;
    return FP_ASK;
}

int fp_trace_feed(struct fp_trace_read *r, struct fp_in *in, struct fp_batch *out, struct fp_err *err) {
    struct fp_json *j = &r->json;
    while (!r->over) {
        int status = fp_json_next(j, in, err);
        if (status == FP_MORE) return status;
        if (status == FP_E_TRUNCATED && r->in_events && r->events_depth == 1 && fp_json_between(j)) {
            r->open_end = 1; /* an array may lack its end */
            in->pos = in->n;
            return end_text(r, err);
        }
        if (status < 0 && r->lenient) {
            r->bad_end = 1;
            return end_text(r, err);
        }
        if (status < 0) return status;
        if (j->token == FP_JSON_END) return end_text(r, err);
        status = r->in_events ? event_token(r, in, out, err) : outer_token(r, in, err);
        if (status) return status;
    }
    if (!in->eof) {
        in->pos = in->n;
        return FP_MORE;
    }
    return r->merging ? fp_trace_merge(r, out, err) : FP_DONE;
}
