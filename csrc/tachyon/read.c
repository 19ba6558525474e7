#include "tachyon/read.h"

enum { REPEAT, FULL, SUFFIX, POP_PUSH };
enum { STATES = 32, HEAD = 13 /* bytes of a record: thread, interpreter, kind */ };

struct tachyon_thread {
    uint32_t thread; /* of the model */
    uint32_t *frames;
    uint32_t n, cap; /* of its stack, the outermost first */
    int32_t has_stack;
    uint64_t us;
};

struct tachyon_reader {
    struct fp_tachyon f;
    struct fp_model *model; /* borrowed */
    int32_t lenient;
    uint32_t *strings, *frames;
    uint32_t n_strings, n_frames;
    struct fp_table keys; /* threads: id, interpreter */
    struct tachyon_thread *threads;
    uint32_t cap_threads;
    uint32_t *fresh; /* frames of a record, the innermost first */
    uint32_t cap_fresh;
    uint64_t left;    /* samples of a repetition */
    uint32_t repeats; /* row of its thread */
};

struct fp_tachyon *fp_tachyon_new(struct fp_model *model, int lenient) {
    struct tachyon_reader *r = fp_made(sizeof *r);
    r->model = model;
    r->lenient = lenient;
    fp_table_init(&r->keys, 3);
    return &r->f;
}

void fp_tachyon_free(struct fp_tachyon *f) {
    struct tachyon_reader *r = (struct tachyon_reader *)f;
    for (uint32_t i = 0; i < r->cap_threads; i++) free(r->threads[i].frames);
    fp_table_clear(&r->keys);
    FP_FREE(r->threads, r->strings, r->frames, r->fresh, r);
}

uint32_t fp_tachyon_thread(const struct fp_tachyon *f, uint32_t i, uint64_t *id) {
    const struct tachyon_reader *r = (const struct tachyon_reader *)f;
    *id = fp_words_u64(fp_table_row(&r->keys, i));
    return i < r->cap_threads ? r->threads[i].thread : 0;
}

/* ---- tables ---- */

static int stop(const struct fp_cursor *c, const uint8_t *p, const char *what, struct fp_err *err) {
    return fp_fail(err, c->status == FP_MORE ? FP_E_TRUNCATED : FP_E_MALFORMED, (uint64_t)(c->p - p), what);
}

int fp_tachyon_strings(struct fp_tachyon *f, const uint8_t *p, size_t nbytes, uint32_t n, struct fp_err *err) {
    struct tachyon_reader *r = (struct tachyon_reader *)f;
    struct fp_cursor c = {.p = p, .end = p + nbytes};
    if (n > nbytes) return fp_fail(err, FP_E_MALFORMED, 0, "there are more strings than bytes");
    r->strings = fp_have(calloc((size_t)n + 1, sizeof *r->strings));
    for (; r->n_strings < n; r->n_strings++) {
        const uint64_t length = fp_cursor_number(&c);
        if (length > (uint64_t)(c.end - c.p)) fp_cursor_stop(&c, FP_MORE);
        if (c.status) return stop(&c, p, "the strings end too early", err);
        r->strings[r->n_strings] = fp_strings_intern(&r->model->strings, c.p, (size_t)length);
        c.p += length;
    }
    return 0;
}

int fp_tachyon_frames(struct fp_tachyon *f, const uint8_t *p, size_t nbytes, uint32_t n, struct fp_err *err) {
    struct tachyon_reader *r = (struct tachyon_reader *)f;
    struct fp_cursor c = {.p = p, .end = p + nbytes};
    if (n > nbytes) return fp_fail(err, FP_E_MALFORMED, 0, "there are more frames than bytes");
    r->frames = fp_have(calloc((size_t)n + 1, sizeof *r->frames));
    for (; r->n_frames < n; r->n_frames++) {
        const uint64_t file = fp_cursor_number(&c), name = fp_cursor_number(&c);
        const int64_t line = (int64_t)fp_cursor_delta(&c);
        (void)fp_cursor_delta(&c);
        const int64_t column = (int64_t)fp_cursor_delta(&c);
        (void)fp_cursor_delta(&c), (void)fp_cursor_fixed(&c, 1);
        if (c.status) return stop(&c, p, "the frames end too early", err);
        if (file >= r->n_strings || name >= r->n_strings || line > INT32_MAX || column >= INT32_MAX)
            return stop(&c, p, "a frame has a string that is not there, or a line or column beyond 2^31", err);
        struct fp_model *m = r->model;
        const uint32_t function = fp_model_function(m, 0, r->strings[file], r->strings[name], 0, 0);
        r->frames[r->n_frames] = fp_model_line_frame(m, function, line > 0 ? (uint32_t)line : 0,
                                                     line > 0 && column >= 0 ? (uint32_t)column + 1 : 0);
    }
    return 0;
}

/* ---- samples ---- */

static uint32_t label_of(struct tachyon_reader *r, uint32_t state, uint32_t interpreter) {
    static const struct {
        uint32_t bit; /* of the state */
        const char *key, *value;
    } labels[] = {{16, "exception", "yes"},
                  {8, "gil", "waiting"},
                  {1, "gil", "held"},
                  {2, "on cpu", "yes"},
                  {4, "state", "unknown"}};
    struct fp_model *m = r->model;
    struct fp_strings *s = &m->strings;
    uint32_t label = 0;
    if (interpreter) label = fp_model_label(m, 0, fp_strings_intern(s, "interpreter", 11), 0, interpreter, 0);
    for (size_t k = 0; k < sizeof labels / sizeof *labels; k++) {
        if (!(state & labels[k].bit)) continue;
        const uint32_t key = fp_strings_intern(s, labels[k].key, strlen(labels[k].key));
        const uint32_t value = fp_strings_intern(s, labels[k].value, strlen(labels[k].value));
        label = fp_model_label(m, label, key, value, 0, 0);
    }
    return label;
}

/* The sample of a thread, `delta` after the one before.  The batch has room. */
static int put_sample(struct tachyon_reader *r, struct fp_cursor *c, struct fp_batch *out, uint32_t row, uint64_t delta,
                      uint64_t state) {
    struct tachyon_thread *t = &r->threads[row];
    if (state >= STATES) return fp_cursor_bad(c, "the state of a sample", "less than 32");
    if (__builtin_add_overflow(t->us, delta, &t->us) || t->us > INT64_MAX / 1000)
        return fp_cursor_bad(c, "the time of a sample", "less than 2^63 nanoseconds");
    uint32_t stack = 0;
    for (uint32_t k = 0; k < t->n; k++) stack = fp_model_stack(r->model, stack, t->frames[k]);
    const uint32_t label = label_of(r, (uint32_t)state, fp_table_row(&r->keys, row)[2]);
    const uint32_t i = fp_batch_sample(out, stack, t->thread, label, t->us * 1000);
    out->values[i] = (int64_t)r->f.interval_ns;
    out->values[out->cap + i] = 1;
    r->f.samples++;
    return 0;
}

static uint32_t thread_of(struct tachyon_reader *r, uint64_t id, uint32_t interpreter) {
    const uint32_t row = fp_table_intern(&r->keys, (uint32_t[3]){FP_WORDS(id), interpreter});
    struct tachyon_thread *t = FP_AT(r->threads, r->cap_threads, row);
    if (!t->thread) {
        const uint32_t tid = id < INT32_MAX && !interpreter ? (uint32_t)id : UINT32_MAX - row;
        t->thread = fp_model_thread(r->model, r->f.input, 0, tid);
        t->us = r->f.start_us;
        if (r->f.n_threads <= row) r->f.n_threads = row + 1;
    }
    return row;
}

static uint64_t fixed(const struct tachyon_reader *r, struct fp_cursor *c, size_t n) {
    const uint64_t v = fp_cursor_fixed(c, n);
    if (!r->f.swap || n == 1) return v;
    return n == 8 ? __builtin_bswap64(v) : __builtin_bswap32((uint32_t)v);
}

/* The stack of a record, in place of the thread's: `keep` outer frames of it, and n others, the innermost first. */
static int read_stack(struct tachyon_reader *r, struct fp_cursor *c, struct tachyon_thread *t, uint64_t keep,
                      uint64_t n) {
    if (c->status) return c->status;
    if (keep > t->n) return fp_cursor_bad(c, "a record keeps or removes more frames than there are", NULL);
    if (n > (uint64_t)(c->end - c->p)) return FP_MORE; /* a frame has a byte or more */
    fp_array_room(&r->fresh, &r->cap_fresh, n, sizeof *r->fresh);
    for (uint64_t k = 0; k < n; k++) {
        const uint64_t id = fp_cursor_number(c);
        if (!c->status && id >= r->n_frames && !r->lenient) return fp_cursor_bad(c, "the frame is not defined", NULL);
        r->fresh[k] = id < r->n_frames ? r->frames[id] : 0;
    }
    if (c->status) return c->status;
    fp_array_room(&t->frames, &t->cap, keep + n, sizeof *t->frames);
    for (t->n = (uint32_t)keep; n; t->n++) {
        const uint32_t frame = r->fresh[--n];
        r->f.undefined += !frame;
        struct fp_strings *s = &r->model->strings;
        t->frames[t->n] = frame ? frame : fp_model_name_frame(r->model, fp_strings_intern(s, "?", 1));
    }
    t->has_stack = 1;
    return 0;
}

static int read_record(struct tachyon_reader *r, struct fp_cursor *c, struct fp_batch *out) {
    if (r->left) {
        const uint64_t delta = fp_cursor_number(c), state = fp_cursor_fixed(c, 1);
        if (c->status) return c->status;
        r->left--;
        return put_sample(r, c, out, r->repeats, delta, state);
    }
    const uint64_t id = fixed(r, c, 8);
    const uint32_t interpreter = (uint32_t)fixed(r, c, 4);
    const uint64_t kind = fp_cursor_fixed(c, 1);
    if (c->status) return c->status;
    if (kind > POP_PUSH) return fp_cursor_bad(c, "the kind of a record", "0 to 3");
    const uint32_t row = thread_of(r, id, interpreter);
    struct tachyon_thread *t = &r->threads[row];
    if (kind == REPEAT) {
        const uint64_t n = fp_cursor_number(c);
        if (c->status) return c->status;
        if (!t->has_stack) return fp_cursor_bad(c, "a record repeats a stack that is not there", NULL);
        r->left = n;
        r->repeats = row;
        return 0;
    }
    const uint64_t delta = fp_cursor_number(c), state = fp_cursor_fixed(c, 1);
    uint64_t keep = kind == FULL ? 0 : fp_cursor_number(c);
    const uint64_t n = fp_cursor_number(c);
    if (kind == POP_PUSH) keep = keep <= t->n ? t->n - keep : UINT64_MAX;
    const int status = read_stack(r, c, t, keep, n);
    return status ? status : put_sample(r, c, out, row, delta, state);
}

int fp_tachyon_feed(struct fp_tachyon *f, struct fp_window *in, struct fp_batch *out, struct fp_err *err) {
    struct tachyon_reader *r = (struct tachyon_reader *)f;
    while (!f->bad_end && (in->pos < in->n || r->left)) {
        if (out->n == out->cap) return FP_FULL;
        struct fp_cursor c = fp_cursor_at(in);
        const int status = fp_cursor_done(&c, read_record(r, &c, out), "the samples end inside a record", in, err);
        if (status == FP_MORE || (status && !r->lenient)) return status;
        f->bad_end = status != 0;
    }
    if (f->bad_end) in->pos = in->n;
    return in->eof ? FP_DONE : FP_MORE;
}
