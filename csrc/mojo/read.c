#include "mojo/read.h"

enum { NEWEST = 3, UNKNOWN = 1 /* a string's number */ };
enum { DESCRIPTION = 1, SAMPLE, FRAME, INVALID, FRAME_USE, KERNEL, GC, IDLE, TIME, MEMORY, STRING, STRING_USE };

struct mojo_reader {
    struct fp_mojo f;
    struct fp_model *model; /* borrowed */
    int32_t lenient, has_head, was_asked;
    uint32_t pid;
    /* by (process, number in the file): strings and frames of the model */
    struct fp_table string_keys, frame_keys, thread_keys;
    uint32_t *strings, *frames, *threads, cap_strings, cap_frames, cap_threads;
    /* the sample that is being read */
    int32_t has_sample, is_gc, is_idle;
    uint32_t thread, n, cap;
    uint32_t *stack;
    int64_t time, memory;
};

struct fp_mojo *fp_mojo_new(struct fp_model *model, int lenient) {
    struct mojo_reader *r = fp_made(sizeof *r);
    r->model = model;
    r->lenient = lenient;
    FP_INIT_TABLES(3, &r->string_keys, &r->frame_keys, &r->thread_keys);
    return &r->f;
}

void fp_mojo_free(struct fp_mojo *f) {
    struct mojo_reader *r = (struct mojo_reader *)f;
    FP_CLEAR_TABLES(&r->string_keys, &r->frame_keys, &r->thread_keys);
    FP_FREE(r->strings, r->frames, r->threads, r->stack, r);
}

/* The magnitude of a number is at most `most`; a negative one wraps around. */
static uint64_t number_to(struct fp_cursor *c, uint64_t most) {
    uint64_t v = 0;
    int is_negative = 0;
    for (unsigned shift = 0;;) {
        if (c->p == c->end) return fp_cursor_stop(c, FP_MORE);
        const uint8_t byte = *c->p++;
        const uint64_t bits = byte & (shift ? 127u : 63u);
        if (!shift) is_negative = byte >> 6 & 1;
        if (shift > 62 || bits << shift >> shift != bits || bits << shift > most)
            return fp_cursor_stop(c, fp_cursor_bad(c, "a number is too large", NULL));
        v |= bits << shift;
        if (!(byte & 128)) return is_negative ? 0 - v : v;
        shift += shift ? 7 : 6;
    }
}

static int64_t number(struct fp_cursor *c) {
    return (int64_t)number_to(c, INT64_MAX);
}

/* A number by which frames and strings are known: the addresses that Austin makes it of, and offsets from -1 on. */
static int64_t key_of(struct fp_cursor *c) {
    return (int64_t)number_to(c, UINT64_MAX);
}

/* The row of a number of the current process. */
static uint32_t row_of(struct mojo_reader *r, struct fp_table *keys, int64_t n) {
    return fp_table_intern(keys, (uint32_t[3]){r->pid, FP_WORDS(n)});
}

static uint32_t string_of(struct mojo_reader *r, int64_t n) {
    if (!n) return 0;
    const uint32_t row = row_of(r, &r->string_keys, n);
    if (row < r->cap_strings && r->strings[row]) return r->strings[row];
    return fp_strings_intern(&r->model->strings, n == UNKNOWN ? "<unknown>" : "?", n == UNKNOWN ? 9 : 1);
}

static int add(struct mojo_reader *r, uint32_t frame) {
    FP_PUSH(r->stack, r->n, r->cap) = frame;
    return 0;
}

static int add_named(struct mojo_reader *r, const void *name, size_t n) {
    return add(r, fp_model_name_frame(r->model, fp_strings_intern(&r->model->strings, name, n)));
}

static int read_description(struct mojo_reader *r, struct fp_cursor *c) {
    const struct fp_cursor_text key = fp_cursor_text(c), value = fp_cursor_text(c);
    if (c->status) return c->status;
    struct fp_strings *s = &r->model->strings;
    if (r->f.n_descriptions < FP_MOJO_DESCRIPTIONS) {
        uint32_t *to = &r->f.descriptions[2 * r->f.n_descriptions++];
        to[0] = fp_strings_intern(s, key.p, key.n);
        to[1] = fp_strings_intern(s, value.p, value.n);
    }
    return 0;
}

static int read_frame(struct mojo_reader *r, struct fp_cursor *c) {
    struct fp_model *m = r->model;
    const int64_t key = key_of(c), file = key_of(c), scope = key_of(c), line = number(c);
    int64_t column = 0;
    if (r->f.version > 1) {
        (void)number(c), column = number(c);
        (void)number(c);
    }
    if (c->status) return c->status;
    const int is_odd = line > INT32_MAX || column > INT32_MAX; /* Austin reads frames while the program changes them */
    const int has_line = line > 0 && !is_odd;
    r->f.odd_lines += (uint64_t)is_odd;
    const uint32_t function = fp_model_function(m, 0, string_of(r, file), string_of(r, scope), 0, 0);
    *FP_AT(r->frames, r->cap_frames, row_of(r, &r->frame_keys, key)) =
        fp_model_line_frame(m, function, has_line ? (uint32_t)line : 0, has_line && column > 0 ? (uint32_t)column : 0);
    return 0;
}

static int use_frame(struct mojo_reader *r, struct fp_cursor *c, int64_t key) {
    const uint32_t row = row_of(r, &r->frame_keys, key);
    if (row < r->cap_frames && r->frames[row]) return add(r, r->frames[row]);
    if (!r->lenient) return fp_cursor_bad(c, "the frame is not defined", NULL);
    r->f.undefined++;
    return add_named(r, "?", 1);
}

static int read_sample(struct mojo_reader *r, struct fp_cursor *c) {
    const int64_t pid = number(c);
    if (r->f.version > 2) (void)number(c); /* the interpreter */
    const struct fp_cursor_text text = fp_cursor_text(c);
    const uint8_t *p = text.p, *end = p + text.n;
    uint64_t id = 0;
    if (c->status) return c->status;
    if (pid < 0 || pid > UINT32_MAX) return fp_cursor_bad(c, "the process", "a number from 0, below 2^32");
    if (!text.n || fp_hexadecimal(&p, end, &id) || p != end)
        return fp_cursor_bad(c, "the thread", "1 to 16 hexadecimal digits");
    r->pid = (uint32_t)pid;
    const uint32_t row = row_of(r, &r->thread_keys, (int64_t)id);
    if (row >= r->cap_threads || !r->threads[row]) {
        const uint32_t tid = id < UINT32_MAX - row ? (uint32_t)id : UINT32_MAX - row;
        *FP_AT(r->threads, r->cap_threads, row) = fp_model_thread(r->model, r->f.input, r->pid, tid);
        if (r->f.n_threads <= row) r->f.n_threads = row + 1;
    }
    r->thread = r->threads[row];
    r->has_sample = 1;
    r->is_gc = r->is_idle = 0;
    r->time = r->memory = r->n = 0;
    return 0;
}

uint32_t fp_mojo_thread(const struct fp_mojo *f, uint32_t i, uint64_t *id) {
    const struct mojo_reader *r = (const struct mojo_reader *)f;
    *id = fp_words_u64(fp_table_row(&r->thread_keys, i) + 1);
    return i < r->cap_threads ? r->threads[i] : 0;
}

static int read_event(struct mojo_reader *r, struct fp_cursor *c) {
    const uint8_t kind = *c->p++;
    if (kind == DESCRIPTION) return read_description(r, c);
    if (kind == SAMPLE) return read_sample(r, c);
    if (kind < DESCRIPTION || kind > STRING_USE) return fp_cursor_bad(c, "the kind of an event", "1 to 12");
    if (!r->has_sample) return fp_cursor_bad(c, "an event before the first sample", NULL);
    if (kind == FRAME) return read_frame(r, c);
    if (kind == INVALID) return add_named(r, "INVALID", 7);
    r->is_gc |= kind == GC;
    r->is_idle |= kind == IDLE;
    if (kind == GC || kind == IDLE) return 0;
    if (kind == KERNEL) {
        const struct fp_cursor_text name = fp_cursor_text(c);
        return c->status ? c->status : add_named(r, name.p, name.n);
    }
    const int64_t v = kind == TIME || kind == MEMORY ? number(c) : key_of(c);
    if (kind == STRING) {
        const struct fp_cursor_text text = fp_cursor_text(c);
        if (c->status) return c->status;
        const uint32_t row = row_of(r, &r->string_keys, v);
        *FP_AT(r->strings, r->cap_strings, row) = fp_strings_intern(&r->model->strings, text.p, text.n);
    }
    if (c->status) return c->status;
    if (kind == FRAME_USE) return use_frame(r, c, v);
    if (kind == TIME && (v < 0 || v > INT64_MAX / 1000)) return fp_cursor_bad(c, "a time", "0 to 2^53 microseconds");
    if (kind == TIME) r->time = v * 1000;
    if (kind == MEMORY) r->memory = v;
    return 0;
}

static void put_sample(struct mojo_reader *r, struct fp_batch *out) {
    struct fp_model *m = r->model;
    const int64_t values[FP_MOJO_VALUES] = {1, r->memory, r->memory > 0 ? r->memory : 0, r->is_idle ? 0 : r->time,
                                            r->time};
    uint32_t label = 0, stack = 0;
    struct fp_strings *s = &m->strings;
    if (r->is_idle || r->is_gc) {
        const uint32_t key = fp_strings_intern(s, "state", 5);
        if (r->is_idle) label = fp_model_label(m, label, key, fp_strings_intern(s, "idle", 4), 0, 0);
        if (r->is_gc) label = fp_model_label(m, label, key, fp_strings_intern(s, "gc", 2), 0, 0);
    }
    for (uint32_t k = 0; k < r->n; k++) stack = fp_model_stack(m, stack, r->stack[k]);
    const uint32_t i = fp_batch_sample(out, stack, r->thread, label, 0);
    for (size_t k = 0; k < FP_MOJO_VALUES; k++)
        if (r->f.columns[k] >= 0) out->values[(size_t)r->f.columns[k] * out->cap + i] = values[k];
    r->has_sample = 0;
}

static int read_head(struct mojo_reader *r, struct fp_cursor *c) {
    if (c->end - c->p < 4) return FP_MORE;
    if (memcmp(c->p, "MOJ", 3) != 0) return fp_cursor_bad(c, "the file's beginning", "MOJ and a version");
    c->p += 3;
    const int64_t version = number(c);
    if (c->status) return c->status;
    if (version < 1 || version > NEWEST) {
        (void)fp_cursor_bad(c, "the version", "1 to 3 (Austin 3)");
        return FP_E_VERSION;
    }
    r->f.version = (uint32_t)version;
    r->has_head = 1;
    return 0;
}

int fp_mojo_feed(struct fp_mojo *f, struct fp_window *in, struct fp_batch *out, struct fp_err *err) {
    struct mojo_reader *r = (struct mojo_reader *)f;
    while (!f->bad_end && (in->pos < in->n || !r->has_head)) {
        struct fp_cursor c = fp_cursor_at(in);
        const int begins = r->has_head && *c.p == SAMPLE;
        if (begins && !r->was_asked) {
            r->was_asked = 1;
            return FP_NEEDS;
        }
        if (begins && r->has_sample) {
            if (out->n == out->cap) return FP_FULL;
            put_sample(r, out);
        }
        int status = r->has_head ? read_event(r, &c) : read_head(r, &c);
        status = fp_cursor_done(&c, status, "the file ends inside an event", in, err);
        if (status == FP_MORE || (status && !(r->lenient && r->has_head))) return status;
        f->bad_end = status != 0;
    }
    if (f->bad_end) in->pos = in->n;
    if (!in->eof) return FP_MORE;
    if (!r->was_asked) {
        r->was_asked = 1;
        return FP_NEEDS;
    }
    if (r->has_sample && out->n == out->cap) return FP_FULL;
    if (r->has_sample) put_sample(r, out);
    return FP_DONE;
}
