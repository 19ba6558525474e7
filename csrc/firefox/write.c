#include "firefox/write.h"

#include <math.h>

#include "firefox/private.h"

struct fp_firefox_call {
    uint32_t path; /* its stack + 1 */
    uint64_t time; /* when it was entered */
};

struct fp_firefox *fp_firefox_new(struct fp_model *model) {
    struct fp_firefox *w = fp_made(sizeof *w);
    w->model = model;
    w->max_paths = 1 << 19;
    fp_table_init(&w->funcs, 3);
    FP_INIT_TABLES(2, &w->paths, &w->counted);
    fp_array_zeroed(&w->columns, &w->cap_columns, FP_FIREFOX_SHARED, sizeof *w->columns);
    return w;
}

void fp_firefox_free(struct fp_firefox *w) {
    for (uint32_t i = 0; i < w->cap_columns; i++) fp_buf_free(&w->columns[i]);
    for (uint32_t i = 0; i < w->n_threads; i++) free(w->threads[i].calls);
    fp_utf8_names_clear(&w->texts);
    FP_CLEAR_TABLES(&w->funcs, &w->paths, &w->counted);
    FP_FREE_BUFFERS(&w->scratch, &w->text);
    FP_FREE(w->columns, w->dirty, w->threads, w->libraries, w->thread_of, w->string_of, w->source_of, w->resource_of,
            w->base_of, w->last_base, w->function_of, w->frame_of, w->stack_of, w->path, w->counter_of, w->above,
            w->nodes, w);
}

enum { FEW_COLUMNS = 64 }; /* up to this many columns keep their buffers */

void fp_firefox_spilled(struct fp_firefox *w) {
    for (uint32_t i = 0; i < w->n_dirty; i++) {
        struct fp_buf *b = &w->columns[w->dirty[i]];
        b->n = 0;
        if (w->cap_columns > FEW_COLUMNS) fp_buf_free(b);
    }
    w->n_dirty = 0;
    w->buffered = 0;
}

/* ---- numbers ---- */

/* Writes v / 10^places without trailing zeros: 0, 123e-6, 1.5.  An exponent is shorter than the zeros of a small
 * number. FP_DIGITS_ROOM + 8 bytes must be writable. */
static uint8_t *put_fraction(uint8_t *to, uint64_t v, unsigned places) {
    const uint64_t one = places == 6 ? 1000000 : 1000;
    if (v < one) {
        to = fp_put_decimal(to, v);
        if (!v) return to;
        memcpy(to, places == 6 ? "e-6" : "e-3", 3);
        return to + 3;
    }
    to = fp_put_decimal(to, v / one);
    if (v % one == 0) return to;
    uint64_t digits = one + v % one; /* a leading 1 keeps the zeros after the point */
    while (digits % 10 == 0) digits /= 10;
    uint8_t *end = fp_put_decimal(to, digits);
    *to = '.';
    return end;
}

enum { NUMBER_ROOM = FP_DIGITS_ROOM + 16 };

static uint8_t *put_weight(uint8_t *to, int64_t value, int32_t unit) {
    const uint64_t v = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    if (value < 0) *to++ = '-';
    if (unit == FP_FIREFOX_NANOSECONDS) return put_fraction(to, v, 6);
    if (unit == FP_FIREFOX_MICROSECONDS) return put_fraction(to, v, 3);
    to = fp_put_decimal(to, v);
    if (unit == FP_FIREFOX_SECONDS && v) {
        memcpy(to, "000", 3);
        to += 3;
    }
    return to;
}

int fp_firefox_times(const uint8_t *times, size_t n, uint64_t start, struct fp_buf *out) {
    for (size_t i = 0; i < n; i++) {
        fp_buf_reserve(out, NUMBER_ROOM);
        uint8_t *to = put_fraction(out->p + out->n, fp_u64(times + 8 * i) - start, 6);
        *to++ = ',';
        out->n = (size_t)(to - out->p);
    }
    return 0;
}

int fp_firefox_repeat(const char *item, size_t n, uint64_t times, struct fp_buf *out) {
    for (; times; times--) fp_buf_put(out, item, n);
    return 0;
}

int fp_firefox_count(uint64_t from, uint64_t to, struct fp_buf *out) {
    for (; from < to; from++) {
        fp_buf_reserve(out, NUMBER_ROOM);
        uint8_t *end = fp_put_decimal(out->p + out->n, from);
        *end++ = ',';
        out->n = (size_t)(end - out->p);
    }
    return 0;
}

/* ---- threads ---- */

static uint32_t column_of(const struct fp_firefox *w, const struct fp_firefox_thread *t, uint32_t column) {
    return FP_FIREFOX_SHARED + (uint32_t)(t - w->threads) * FP_FIREFOX_STRIDE + column;
}

/* Adds a thread or a counter; row i is its first one. */
static struct fp_firefox_thread *add(struct fp_firefox *w, const struct fp_batch *b, uint32_t i) {
    const uint64_t n = (uint64_t)w->n_threads + 1;
    fp_array_zeroed(&w->threads, &w->cap_threads, n, sizeof *w->threads);
    fp_array_zeroed(&w->columns, &w->cap_columns, FP_FIREFOX_SHARED + n * FP_FIREFOX_STRIDE, sizeof *w->columns);
    struct fp_firefox_thread *t = &w->threads[w->n_threads++];
    t->thread = b->thread[i];
    t->part = b->part;
    if (b->view == FP_TIMELINE) t->first = t->last = b->time[i];
    return t;
}

/* The thread of row i; of stacks that of the first value type. */
static struct fp_firefox_thread *thread_of(struct fp_firefox *w, const struct fp_batch *b, uint32_t i) {
    const uint32_t thread = b->thread[i];
    if (FP_LIKELY(w->n_threads && w->threads[w->current].thread == thread)) return &w->threads[w->current];
    if (!*FP_AT(w->thread_of, w->cap_thread_of, thread)) {
        const uint32_t first = w->n_threads + 1;
        do {
            add(w, b, i);
        } while (w->n_threads + 1 - first < w->n_values);
        w->thread_of[thread] = first;
    }
    w->current = w->thread_of[thread] - 1;
    return &w->threads[w->current];
}

/* Appends the time of row i to a column. */
static void put_time_of(struct fp_firefox *w, uint32_t column, const struct fp_batch *b, uint32_t i) {
    uint8_t *to = fp_firefox_room(w, column, 8);
    memcpy(to, &b->time[i], 8);
    fp_firefox_grown(w, column, to + 8);
}

/* The counter with this name of a row's thread, which is added first. */
static struct fp_firefox_thread *counter_of(struct fp_firefox *w, const struct fp_batch *b, uint32_t i,
                                            const uint8_t *name, size_t n) {
    thread_of(w, b, i);
    const uint32_t key[2] = {b->thread[i], fp_strings_intern(&w->model->strings, name, n)};
    const uint32_t row = fp_table_intern(&w->counted, key);
    if (!*FP_AT(w->counter_of, w->cap_counter_of, row)) {
        struct fp_firefox_thread *t = add(w, b, i);
        /* the viewer reads the first count as 0, whatever it is */
        fp_firefox_item(w, column_of(w, t, FP_FIREFOX_COUNT), -1, "null");
        put_time_of(w, column_of(w, t, FP_FIREFOX_MARKER_TIME), b, i);
        t->is_counter = 1;
        t->name = key[1];
        t->samples = 1;
        w->counter_of[row] = w->n_threads;
    }
    return &w->threads[w->counter_of[row] - 1];
}

/* ---- stacks ---- */

/* Appends the time since the sample before, except to the first sample.  0: that of the sample before. */
static void put_delta(struct fp_firefox *w, struct fp_firefox_thread *t, uint64_t time) {
    const uint32_t column = column_of(w, t, FP_FIREFOX_DELTA);
    if (!t->first) { /* earlier samples have no times */
        t->first = t->last = time;
        w->without_time += t->samples;
        for (uint64_t n = t->samples; n; n--) fp_firefox_item(w, column, 0, "");
        return;
    }
    w->without_time += !time;
    if (!time) time = t->last;
    uint8_t *to = fp_firefox_room(w, column, NUMBER_ROOM);
    to = put_fraction(to, time - t->last, 6);
    *to++ = ',';
    fp_firefox_grown(w, column, to);
    t->last = time;
}

static void put_sample(struct fp_firefox *w, const struct fp_batch *b, uint32_t i, const int32_t *columns) {
    struct fp_firefox_thread *t = thread_of(w, b, i);
    const uint32_t stack = fp_firefox_stack(w, b->stack[i]);
    uint32_t n = 0; /* values */
    for (uint32_t k = 0; k < w->n_values; k++) n += columns[k] >= 0 && b->values[(size_t)columns[k] * b->cap + i];
    for (uint32_t k = 0; k == 0 || k < w->n_values; k++, t++) {
        const int64_t value = w->n_values && columns[k] >= 0 ? b->values[(size_t)columns[k] * b->cap + i] : 0;
        if (n && !value && b->time[i]) continue; /* a sample of another event */
        fp_firefox_item(w, column_of(w, t, FP_FIREFOX_STACK), (int64_t)stack - 1, "");
        if (b->time[i] || t->first) put_delta(w, t, b->time[i]);
        t->samples++;
        if (!w->n_values) break;
        const uint32_t column = column_of(w, t, FP_FIREFOX_WEIGHT);
        uint8_t *to = fp_firefox_room(w, column, NUMBER_ROOM);
        to = put_weight(to, value, w->units[k]);
        *to++ = ',';
        fp_firefox_grown(w, column, to);
    }
    w->samples++;
}

/* ---- timelines ---- */

/* Adds the sample from t->last to `now`. */
static void put_time(struct fp_firefox *w, struct fp_firefox_thread *t, uint64_t now) {
    if (now == t->last) return;
    const uint32_t stack = column_of(w, t, FP_FIREFOX_STACK), weight = column_of(w, t, FP_FIREFOX_WEIGHT);
    fp_firefox_item(w, stack, t->n ? (int64_t)t->calls[t->n - 1].path - 1 : -1, "null");
    uint8_t *to = fp_firefox_room(w, weight, NUMBER_ROOM);
    to = put_fraction(to, now - t->last, 6);
    *to++ = ',';
    fp_firefox_grown(w, weight, to);
    t->last = now;
    t->samples++;
    w->samples++;
}

/* Writes a payload as a JSON string: unchanged if printable, otherwise in hexadecimal. */
static void put_payload(struct fp_firefox *w, const uint8_t *p, size_t n) {
    if (fp_is_text(p, n))
        fp_json_text(&w->text, p, n, &w->replaced);
    else
        fp_buf_hex(&w->text, p, n);
}

static void put_marker(struct fp_firefox *w, struct fp_firefox_thread *t, const struct fp_batch *b, uint32_t i) {
    static const char type[] = "{\"type\":\"event\",\"data\":\"", number[] = "\",\"number\":";
    const int typed = b->op[i] == FP_OP_TYPED;
    const uint64_t slice = b->aux[i];
    const int64_t name = fp_firefox_string(w, typed ? w->typed : w->custom);
    fp_firefox_item(w, column_of(w, t, FP_FIREFOX_MARKER_NAME), name, "");
    w->text.n = 0;
    fp_buf_put(&w->text, type, sizeof type - 1);
    put_payload(w, fp_batch_bytes(b, slice), (uint32_t)slice);
    fp_buf_put(&w->text, number, typed ? sizeof number - 1 : 1);
    fp_buf_reserve(&w->text, NUMBER_ROOM);
    if (typed) w->text.n = (size_t)(fp_put_decimal(w->text.p + w->text.n, b->function[i]) - w->text.p);
    fp_buf_put(&w->text, "},", 2);
    const uint32_t data = column_of(w, t, FP_FIREFOX_MARKER_DATA);
    uint8_t *to = fp_firefox_room(w, data, w->text.n);
    memcpy(to, w->text.p, w->text.n);
    fp_firefox_grown(w, data, to + w->text.n);
    t->markers++;
    w->events++;
    put_time_of(w, column_of(w, t, FP_FIREFOX_MARKER_TIME), b, i);
}

/* Writes the value of a counter, of `length` bytes; its name follows a blank. */
static void put_counter(struct fp_firefox *w, const struct fp_batch *b, uint32_t i, size_t length) {
    const uint8_t *p = fp_batch_bytes(b, b->aux[i]);
    struct fp_firefox_thread *t = counter_of(w, b, i, p + length + 1, (uint32_t)b->aux[i] - length - 1);
    const uint32_t count = column_of(w, t, FP_FIREFOX_COUNT);
    const double value = fp_real_of(p, length), difference = value - t->value;
    uint8_t *to = fp_firefox_room(w, count, FP_REAL_ROOM + 1);
    const size_t n = fp_put_real(to, difference);
    if (!n) {
        w->counters++;
        return;
    }
    to[n] = ',';
    fp_firefox_grown(w, count, to + n + 1);
    t->value += difference; /* what readers find: differences from it do not accumulate roundings */
    w->rounded += fabs(t->value - value) > fabs(value) * 1e-9; /* 1e16, then 1: they find 0 */
    t->samples++;
    w->values++;
    put_time_of(w, column_of(w, t, FP_FIREFOX_MARKER_TIME), b, i);
}

static void put_row(struct fp_firefox *w, const struct fp_batch *b, uint32_t i) {
    const size_t length = fp_counter_value_of(b, i);
    if (FP_UNLIKELY(length > 0)) {
        put_counter(w, b, i, length);
        return;
    }
    struct fp_firefox_thread *t = thread_of(w, b, i);
    const uint32_t op = b->op[i];
    const uint64_t now = b->time[i];
    if (op == FP_OP_ARGUMENT) {
        w->arguments++;
        return;
    }
    if (op == FP_OP_CUSTOM || op == FP_OP_TYPED) {
        put_marker(w, t, b, i);
        return;
    }
    put_time(w, t, now);
    if (op == FP_OP_EXIT || op == FP_OP_TAIL_EXIT) {
        w->empty += t->calls[--t->n].time == now;
        return;
    }
    const uint32_t path = fp_firefox_path(w, t->n ? t->calls[t->n - 1].path : 0, b->function[i]);
    FP_PUSH(t->calls, t->n, t->cap) = (struct fp_firefox_call){path, now};
    w->calls++;
}

int fp_firefox_put(struct fp_firefox *w, const struct fp_batch *b, const int32_t *columns) {
    for (uint32_t i = 0; i < b->n; i++)
        if (b->view == FP_TIMELINE)
            put_row(w, b, i);
        else
            put_sample(w, b, i, columns);
    if (b->view != FP_TIMELINE && b->n) fp_firefox_remember(w, b->stack[b->n - 1]);
    return FP_DONE;
}

int fp_firefox_end(struct fp_firefox *w) {
    for (uint32_t i = 0; i < w->n_threads; i++) {
        struct fp_firefox_thread *t = &w->threads[i];
        if (t->is_counter) continue;
        fp_firefox_item(w, column_of(w, t, FP_FIREFOX_STACK), -1, "null");
        t->samples++;
        w->samples++;
    }
    return FP_DONE;
}
