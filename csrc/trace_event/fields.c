/* Fields of an event, and the record of an instant. */
#include <math.h>

#include "trace_event/read_private.h"

void fp_trace_event_start(struct fp_trace_event_read *r, const struct fp_window *in) {
    struct fp_trace_event *e = &r->event;
    memset(e, 0, offsetof(struct fp_trace_event, name));
    e->at = in->base + in->pos;
    e->is_object = r->json.token == FP_JSON_OBJECT;
    e->name.n = e->data.n = e->text.n = e->id.n = e->scope.n = e->series.n = 0;
    r->thread_ids.pid = r->thread_ids.tid = (struct fp_chrome_id){0};
    r->text.field = FP_TE_OTHER;
    r->text.in_args = 0;
    r->thread_ids.noted = 0;
}

uint32_t fp_trace_event_field_of(const struct fp_json *j) {
    const uint8_t *p = j->text;
    switch (j->text_n) { /* lengths known to the compiler need no calls */
        case 2:
            if (!memcmp(p, "ph", 2)) return FP_TE_PH;
            if (!memcmp(p, "ts", 2)) return FP_TE_TS;
            if (!memcmp(p, "id", 2)) return FP_TE_ID;
            return !memcmp(p, "sf", 2) ? FP_TE_STACK : FP_TE_OTHER;
        case 3:
            if (!memcmp(p, "cat", 3)) return FP_TE_CATEGORY;
            if (!memcmp(p, "dur", 3)) return FP_TE_DUR;
            if (!memcmp(p, "pid", 3)) return FP_TE_PID;
            if (!memcmp(p, "tid", 3)) return FP_TE_TID;
            if (!memcmp(p, "id2", 3)) return FP_TE_ID2;
            return !memcmp(p, "esf", 3) ? FP_TE_STACK : FP_TE_OTHER;
        case 4:
            if (!memcmp(p, "name", 4)) return FP_TE_NAME;
            return !memcmp(p, "args", 4) ? FP_TE_ARGS : FP_TE_OTHER;
        case 5:
            if (!memcmp(p, "scope", 5)) return FP_TE_SCOPE;
            return !memcmp(p, "stack", 5) ? FP_TE_STACK : FP_TE_OTHER;
        case 6: return !memcmp(p, "estack", 6) ? FP_TE_STACK : FP_TE_OTHER;
        default: return FP_TE_OTHER;
    }
}

uint32_t fp_trace_event_argument_of(const struct fp_trace_event_read *r) {
    const struct fp_json *j = &r->json;
    uint64_t n;
    uint8_t digits[24] = {0};
    if (r->text.in_args == FP_TE_IN_ID2)
        return fp_json_is(j, "local") ? FP_TE_LOCAL : fp_json_is(j, "global") ? FP_TE_GLOBAL : FP_TE_OTHER;
    if (fp_json_is(j, "name") || fp_json_is(j, "labels")) return FP_TE_ARG_NAME;
    if (fp_json_is(j, "data")) return FP_TE_ARG_DATA;
    if (fp_json_is(j, "type")) return FP_TE_ARG_TYPE;
    if (j->text_n < 4 || j->text_n > 20 || memcmp(j->text, "arg", 3)) return FP_TE_OTHER;
    memcpy(digits, j->text + 3, j->text_n - 3);
    const uint8_t *end = fp_decimal(digits, &n);
    return end && !*end && n == r->event.n_args && n < FP_TRACE_EVENT_ARGS ? FP_TE_ARG_NUMBER : FP_TE_OTHER;
}

static void copy_text(struct fp_trace_event_read *r, struct fp_buf *to) {
    size_t n;
    const uint8_t *p = fp_json_plain(&r->json, &r->text.scratch, &n);
    to->n = 0;
    fp_buf_put(to, p, n);
}

/* Decodes hexadecimal digits into bytes.  *is_hex is 0 for anything else. */
static void copy_data(struct fp_trace_event_read *r, int *is_hex) {
    const struct fp_json *j = &r->json;
    struct fp_buf *to = &r->event.data;
    *is_hex = j->text_n % 2 == 0;
    to->n = 0;
    fp_buf_reserve(to, j->text_n / 2 + 1);
    for (size_t i = 0; i + 1 < j->text_n && *is_hex; i += 2) {
        const unsigned high = fp_nibble(j->text[i]), low = fp_nibble(j->text[i + 1]);
        *is_hex = high < 16 && low < 16;
        to->p[to->n++] = (uint8_t)(high << 4 | low);
    }
}

/* The id of an asynchronous call. */
static void take_id(struct fp_trace_event_read *r) {
    if (r->json.token == FP_JSON_WORD) return;
    r->event.id_is = r->json.token == FP_JSON_STRING ? FP_CHROME_TEXT : FP_CHROME_NUMBER;
    copy_text(r, &r->event.id);
}

/* Microseconds as nanoseconds.  *has is 0 for a word such as null. */
static int time_of(const struct fp_json *j, int64_t *ns, uint8_t *has) {
    size_t n = j->text_n;
    const uint8_t *p = fp_json_trim(j->text, &n);
    *has = j->token != FP_JSON_WORD;
    return *has ? fp_json_number(p, n, 3, ns, NULL) : 0;
}

/* A value in the arguments of an event, or of its id2. */
static void take_argument(struct fp_trace_event_read *r) {
    struct fp_trace_event *e = &r->event;
    const struct fp_json *j = &r->json;
    const int is_text = j->token == FP_JSON_STRING;
    int is_hex;
    switch (r->text.arg_field) {
        case FP_TE_ARG_NAME:
            if (!is_text) break;
            e->other_args |= e->ph != 'M';
            copy_text(r, &e->text);
            return;
        case FP_TE_ARG_DATA:
            if (!is_text) break;
            copy_data(r, &is_hex);
            e->has_data = (uint8_t)is_hex;
            e->other_args |= (uint8_t)!is_hex;
            return;
        case FP_TE_ARG_TYPE:
            if (is_text || fp_json_number(j->text, j->text_n, 0, &e->type, NULL)) break;
            e->has_type = e->type >= 0 && e->type < FP_COUNTER_TYPE;
            e->other_args |= (uint8_t)!e->has_type;
            return;
        case FP_TE_ARG_NUMBER:
            if (j->token != FP_JSON_NUMBER) break;
            e->args[e->n_args] = 0;
            for (size_t i = 0; i < j->text_n; i++) {
                const unsigned digit = (unsigned)j->text[i] - '0';
                uint64_t *const v = &e->args[e->n_args];
                if (digit > 9 || *v > (UINT64_MAX - digit) / 10) {
                    e->other_args = 1;
                    return;
                }
                *v = *v * 10 + digit;
            }
            e->n_args++;
            return;
        case FP_TE_LOCAL:
        case FP_TE_GLOBAL:
            e->is_global = r->text.arg_field == FP_TE_GLOBAL;
            take_id(r);
            return;
        default: break;
    }
    e->other_args |= r->text.in_args == FP_TE_IN_ARGS;
}

/* A category: few texts, which mostly occurred before. */
static void take_category(struct fp_trace_event_read *r) {
    size_t n;
    const uint8_t *p = fp_json_plain(&r->json, &r->text.scratch, &n);
    if (!n) return;
    uint32_t *const last =
        &r->calls.categories[(n ^ p[0]) % (sizeof r->calls.categories / sizeof *r->calls.categories)];
    size_t last_n;
    const uint8_t *q = fp_string(&r->model->strings, *last, &last_n);
    if (n != last_n || memcmp(p, q, n)) *last = fp_strings_intern(&r->model->strings, p, n);
    r->event.category = *last;
}

int fp_trace_event_take_value(struct fp_trace_event_read *r) {
    struct fp_trace_event *e = &r->event;
    const struct fp_json *j = &r->json;
    const int is_text = j->token == FP_JSON_STRING;
    uint8_t has_dur;
    if (r->text.in_args) {
        take_argument(r);
        return 0;
    }
    switch (r->text.field) {
        case FP_TE_PH:
            if (!is_text || j->text_n != 1) return FP_E_MALFORMED;
            e->ph = j->text[0];
            return 0;
        case FP_TE_NAME:
            if (j->token == FP_JSON_WORD) return 0;
            e->has_name = j->text_n > 0;
            copy_text(r, &e->name);
            return 0;
        case FP_TE_CATEGORY:
            if (is_text) take_category(r);
            return 0;
        case FP_TE_TS: return time_of(j, &e->ts, &e->has_ts);
        case FP_TE_DUR: return time_of(j, &e->dur, &has_dur);
        case FP_TE_PID: return fp_chrome_take_id(&r->thread_ids.pid, j, &r->text.scratch, r->model);
        case FP_TE_TID: return fp_chrome_take_id(&r->thread_ids.tid, j, &r->text.scratch, r->model);
        case FP_TE_ID: take_id(r); return 0;
        case FP_TE_SCOPE:
            if (is_text) copy_text(r, &e->scope);
            return 0;
        default: return 0;
    }
}

enum { MOST_NUMBER = 512 };

/* Arguments that may be values: the lengths of number and key, then both as in the file.  The phase may come later. */
struct series_head {
    uint32_t n_number, n_key;
};

void fp_trace_event_take_series(struct fp_trace_event_read *r) {
    struct fp_trace_event *e = &r->event;
    const struct fp_json *j = &r->json;
    if (e->ph && e->ph != 'C') return;
    if (j->token == FP_JSON_KEY) copy_text(r, &e->key);
    if (j->token == FP_JSON_KEY || (j->token == FP_JSON_WORD && fp_json_is(j, "null"))) return;
    /* numbers may be texts; nothing longer is a number */
    const struct series_head head = {j->text_n <= MOST_NUMBER ? (uint32_t)j->text_n : 0, (uint32_t)e->key.n};
    fp_buf_put(&e->series, &head, sizeof head);
    fp_buf_put(&e->series, j->text, head.n_number);
    fp_buf_put(&e->series, e->key.p, e->key.n);
}

/* The name of a value: that of the event, its id if it has one, and the key unless it is "value". */
static void counter_name(struct fp_trace_event_read *r, const uint8_t *key, size_t n) {
    const struct fp_trace_event *e = &r->event;
    struct fp_buf *name = &r->text.scratch;
    name->n = 0;
    fp_buf_put(name, e->name.p, e->name.n);
    fp_buf_put(name, " id: ", e->id.n ? 5 : 0);
    fp_buf_put(name, e->id.p, e->id.n);
    if (n == 5 && !memcmp(key, "value", 5)) return;
    fp_buf_put(name, " ", name->n ? 1 : 0);
    fp_buf_put(name, key, n);
}

void fp_trace_event_counter(struct fp_trace_event_read *r, uint32_t thread) {
    const struct fp_buf *series = &r->event.series;
    for (size_t at = 0; at < series->n;) {
        struct series_head head;
        int64_t bits;
        memcpy(&head, series->p + at, sizeof head);
        const uint8_t *number = series->p + at + sizeof head, *key = number + head.n_number;
        const double value = fp_real_of(number, head.n_number);
        at += sizeof head + head.n_number + head.n_key;
        if (!isfinite(value)) { /* 1e999, or another text */
            r->counts.counters++;
            continue;
        }
        memcpy(&bits, &value, sizeof bits);
        counter_name(r, key, head.n_key);
        const uint32_t name = fp_strings_intern(
            &r->model->strings, r->text.scratch.n ? (const void *)r->text.scratch.p : "", r->text.scratch.n);
        *fp_trace_event_add(r) =
            (struct fp_trace_event_record){r->event.ts, bits, r->order++, thread, FP_OP_TYPED, name, FP_COUNTER_TYPE};
    }
}

void fp_trace_event_instant(struct fp_trace_event_read *r, uint32_t thread) {
    const struct fp_trace_event *e = &r->event;
    const struct fp_buf *payload = e->has_data ? &e->data : &e->name;
    const uint32_t string =
        fp_strings_intern(&r->model->strings, payload->n ? (const void *)payload->p : "", payload->n);
    const uint32_t op = e->has_type ? FP_OP_TYPED : FP_OP_CUSTOM, type = e->has_type ? (uint32_t)e->type : 0;
    *fp_trace_event_add(r) = (struct fp_trace_event_record){e->ts, 0, r->order++, thread, op, string, type};
}
