#include "trace_event/write.h"

/* TEXT: maximum length of a payload that becomes the name of its event.  FIXED: maximum length of a row without its
 * name. */
enum { TEXT = 200, FIXED = 256 };

struct fp_trace_event_thread {
    uint32_t depth;   /* open calls */
    uint32_t tail_n;  /* bytes of `tail`; 0: the thread's ids are not known yet */
    uint8_t tail[40]; /* ,"pid":1,"tid":2 */
};

struct fp_trace_event_write *fp_trace_event_write_new(const struct fp_model *model) {
    struct fp_trace_event_write *w = fp_made(sizeof *w);
    w->model = model;
    return w;
}

void fp_trace_event_write_free(struct fp_trace_event_write *w) {
    fp_utf8_names_clear(&w->texts);
    FP_FREE_BUFFERS(&w->names, &w->scratch);
    FP_FREE(w->starts, w->threads, w);
}

#define NAME "{\"name\":\""
#define CATEGORY ",\"cat\":\""
#define PHASE ",\"ph\":\""
#define VALUE ",\"args\":{\"value\":"
#define PUT(to, text) (memcpy(to, text, sizeof text - 1), (to) + sizeof text - 1)

/* Appends {"name":"TEXT" to `to`. */
static void put_name(struct fp_trace_event_write *w, struct fp_buf *to, const void *p, size_t n) {
    if (!n) {
        p = "[unknown]";
        n = 9;
    }
    fp_buf_put(to, NAME, sizeof NAME - 1);
    fp_json_text(to, p, n, &w->replaced);
    fp_buf_put(to, "\"", 1);
}

/* Appends ,"cat":"TEXT" to `to` if the function has a category. */
static void put_category(struct fp_trace_event_write *w, struct fp_buf *to, uint32_t function) {
    const uint32_t category = fp_model_category(w->model, function);
    if (!category) return;
    size_t n;
    const uint8_t *p = fp_utf8_names_utf8(&w->texts, &w->scratch, &w->model->strings, category, &n, &w->replaced);
    fp_buf_put(to, CATEGORY, sizeof CATEGORY - 1);
    fp_json_text(to, p, n, &w->replaced);
    fp_buf_put(to, "\"", 1);
}

/* The beginning of a function's rows, *n bytes. */
static const uint8_t *name_of(struct fp_trace_event_write *w, uint32_t function, size_t *n) {
    const struct fp_model *m = w->model;
    if (FP_UNLIKELY(!*FP_AT(w->starts, w->cap_starts, function))) {
        const size_t start = w->names.n;
        uint32_t length;
        size_t name_n;
        const uint32_t string = fp_table_row(&m->functions, function)[FP_FUNCTION_NAME];
        const uint8_t *name = fp_utf8_names_utf8(&w->texts, &w->scratch, &m->strings, string, &name_n, &w->replaced);
        fp_buf_put(&w->names, &(uint32_t){0}, sizeof length);
        put_name(w, &w->names, name, name_n);
        put_category(w, &w->names, function);
        fp_buf_put(&w->names, PHASE, sizeof PHASE - 1);
        if (w->names.n - start - sizeof length > UINT32_MAX) fp_escape();
        length = (uint32_t)(w->names.n - start - sizeof length);
        memcpy(w->names.p + start, &length, sizeof length);
        w->starts[function] = start + 1;
    }
    const uint8_t *p = w->names.p + w->starts[function] - 1;
    *n = fp_u32(p);
    return p + sizeof(uint32_t);
}

/* Ends the last row.  FIXED bytes must be writable. */
static uint8_t *close_row(struct fp_trace_event_write *w, uint8_t *to) {
    if (w->open == 2) *to++ = '}';
    if (w->open) *to++ = '}';
    w->open = 0;
    return to;
}

/* Nanoseconds as microseconds: 12345 is 12.345, 12000 is 12. */
static uint8_t *put_us(uint8_t *to, uint64_t ns) {
    const uint64_t us = ns / 1000, rest = ns % 1000;
    to = fp_put_decimal(to, us);
    if (!rest) return to;
    fp_put_decimal(to, 1000 + rest);
    *to = '.'; /* instead of the 1 */
    return to + 4;
}

void fp_trace_event_thread(struct fp_trace_event_write *w, uint32_t thread, uint32_t pid, uint32_t tid) {
    struct fp_trace_event_thread *t = &w->threads[thread];
    uint8_t tail[FIXED], *to = PUT(tail, ",\"pid\":");
    to = fp_put_decimal(to, pid);
    to = PUT(to, ",\"tid\":");
    to = fp_put_decimal(to, tid);
    t->tail_n = (uint32_t)(to - tail);
    memcpy(t->tail, tail, sizeof t->tail);
}

/* Whether it is a short text without control characters. */
static int is_text(const uint8_t *p, size_t n) {
    if (!n || n > TEXT) return 0;
    for (size_t i = 0, length; i < n; i += length) {
        length = fp_utf8_length(p + i, n - i);
        if (!length || p[i] < ' ' || p[i] == 0x7f || (p[i] == 0xc2 && p[i + 1] < 0xa0)) return 0;
    }
    return 1;
}

/* Appends the beginning of an event's row, up to its phase. */
static void put_event_name(struct fp_trace_event_write *w, const struct fp_batch *b, uint32_t i, struct fp_buf *out) {
    const size_t value = fp_counter_value_of(b, i), n = (uint32_t)b->aux[i];
    const uint8_t *p = fp_batch_bytes(b, b->aux[i]);
    if (value)
        put_name(w, out, p + value + 1, n - value - 1);
    else if (is_text(p, n))
        put_name(w, out, p, n);
    else
        put_name(w, out, "event", 5);
    fp_buf_put(out, value ? PHASE "C" : PHASE "i", sizeof PHASE);
}

/* Appends the fields of an event after its thread. */
static void put_event(const struct fp_batch *b, uint32_t i, struct fp_buf *out) {
    const uint32_t n = (uint32_t)b->aux[i];
    const uint8_t *p = fp_batch_bytes(b, b->aux[i]);
    const int typed = b->op[i] == FP_OP_TYPED, text = is_text(p, n);
    const size_t value = fp_counter_value_of(b, i);
    if (value) {
        fp_buf_put(out, VALUE, sizeof VALUE - 1);
        fp_buf_put(out, p, value);
        fp_buf_put(out, "}", 1);
        return;
    }
    fp_buf_reserve(out, 2 * (size_t)n + FIXED);
    uint8_t *to = PUT(out->p + out->n, ",\"s\":\"t\"");
    if (typed || !text) to = PUT(to, ",\"args\":{");
    if (typed) {
        to = PUT(to, "\"type\":");
        to = fp_put_decimal(to, b->function[i]);
        if (!text) *to++ = ',';
    }
    if (!text) {
        to = PUT(to, "\"data\":\"");
        for (uint32_t k = 0; k < n; k++) {
            *to++ = (uint8_t)"0123456789abcdef"[p[k] >> 4];
            *to++ = (uint8_t)"0123456789abcdef"[p[k] & 15];
        }
        *to++ = '"';
    }
    if (typed || !text) *to++ = '}';
    out->n = (size_t)(to - out->p);
}

static void put_argument(struct fp_trace_event_write *w, uint64_t argument, struct fp_buf *out) {
    if (!w->args || !w->open) {
        w->arguments++;
        return;
    }
    fp_buf_reserve(out, FIXED);
    uint8_t *to = out->p + out->n;
    to = w->open == 1 ? PUT(to, ",\"args\":{\"arg") : PUT(to, ",\"arg");
    to = fp_put_decimal(to, w->n_args++);
    to = PUT(to, "\":");
    to = fp_put_decimal(to, argument);
    w->open = 2;
    out->n = (size_t)(to - out->p);
}

/* Whether this row belongs to a call that is too deep. */
static int is_deep(struct fp_trace_event_write *w, struct fp_trace_event_thread *t, uint8_t op) {
    if (op == FP_OP_EXIT || op == FP_OP_TAIL_EXIT) return --t->depth >= FP_TRACE_EVENT_DEPTH;
    if (op != FP_OP_ENTER && op != FP_OP_ENTER_ARGS) return 0;
    w->skipped = t->depth++ >= FP_TRACE_EVENT_DEPTH;
    w->deep += (uint64_t)w->skipped;
    return w->skipped;
}

void fp_trace_event_write_first(struct fp_trace_event_write *w, uint64_t ns) {
    w->zero = ns >> 52 ? ((ns >> 51) - 1) << 51 : 0;
    w->begun = 1;
}

int fp_trace_event_write_put(struct fp_trace_event_write *w, const struct fp_batch *b, struct fp_buf *out,
                             struct fp_err *err) {
    (void)err;
    for (; w->row < b->n; w->row++) {
        if (FP_UNLIKELY(out->n >= FP_DRAIN)) return FP_FULL;
        const uint32_t i = w->row, thread = b->thread[i];
        const uint8_t op = b->op[i];
        const int is_event = op == FP_OP_CUSTOM || op == FP_OP_TYPED;
        if (op == FP_OP_ARGUMENT) {
            if (!w->skipped) put_argument(w, b->aux[i], out);
            continue;
        }
        struct fp_trace_event_thread *t = FP_AT(w->threads, w->cap_threads, thread);
        if (FP_UNLIKELY(!t->tail_n)) {
            w->new_thread = thread;
            return FP_NEEDS;
        }
        const uint64_t ns = b->time[i];
        if (FP_UNLIKELY(!w->begun)) fp_trace_event_write_first(w, ns);
        if (FP_UNLIKELY(is_deep(w, t, op))) continue;
        size_t n = 0;
        const uint8_t *name = is_event ? NULL : name_of(w, b->function[i], &n);
        fp_buf_reserve(out, n + FIXED);
        uint8_t *to = close_row(w, out->p + out->n);
        if (w->rows++) *to++ = ',';
        *to++ = '\n';
        if (is_event) {
            out->n = (size_t)(to - out->p);
            put_event_name(w, b, i, out);
            fp_buf_reserve(out, FIXED);
            to = out->p + out->n;
        } else {
            memcpy(to, name, n);
            to += n;
            *to++ = op == FP_OP_ENTER || op == FP_OP_ENTER_ARGS ? 'B' : 'E';
        }
        to = PUT(to, "\",\"ts\":");
        if (FP_UNLIKELY(ns < w->zero)) *to++ = '-';
        to = put_us(to, ns < w->zero ? w->zero - ns : ns - w->zero);
        memcpy(to, t->tail, sizeof t->tail);
        out->n = (size_t)(to - out->p) + t->tail_n;
        if (is_event) put_event(b, i, out);
        w->open = 1;
        w->n_args = 0;
    }
    return FP_DONE;
}

int fp_trace_event_write_end(struct fp_trace_event_write *w, struct fp_buf *out) {
    fp_buf_reserve(out, FIXED);
    out->n = (size_t)(close_row(w, out->p + out->n) - out->p);
    return 0;
}
