/* OpenTelemetry profiles under the fuzzer, binary or JSON.  The last byte also chooses options, the one before it the
 * size of a window; so a file replays unchanged.  The profile read is written, and the output must be read without
 * complaint.
 */
#include "otlp/from_json.h"
#include "otlp/read.h"
#include "otlp/to_json.h"
#include "otlp/write.h"
#include "window.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A pass over part of the input, `step` bytes at a time. */
static int pass(struct fp_otlp_reader *r, int which, const uint8_t *data, size_t size, size_t step) {
    struct window window = {.data = data, .size = size, .step = step};
    struct fp_err err;
    fp_otlp_begin(r, which);
    for (int status = FP_MORE;;) {
        struct fp_window *in = show(&window, status);
        status = which == FP_OTLP_SCAN ? fp_otlp_scan(r, in, &err) : fp_otlp_tables(r, in, &err);
        hide(&window, status, &err);
        if (status != FP_MORE) return status;
    }
}

static void write_rows(struct fp_otlp_writer *w, const struct fp_batch *batch) {
    int32_t columns[16];
    struct fp_err err;
    int written;
    for (int32_t k = 0; k < 16; k++) columns[k] = k < (int32_t)batch->n_values ? k : -1;
    while ((written = fp_otlp_put(w, batch, columns)) == FP_FULL) w->buffers[w->full].n = 0;
    if (written) abort();
}

/* Moves the window of a profile: a block of exactly its size, so that reads beyond it are detected. */
static void refill(struct fp_window *in, const uint8_t *data, uint64_t end, size_t step) {
    if (in->eof) abort(); /* at the end no more input can be requested */
    const size_t start = (size_t)in->base + in->pos, tail = in->n - in->pos, left = (size_t)end - start - tail;
    const size_t n = tail + (step < left ? step : left);
    uint8_t *block = malloc(n ? n : 1);
    if (!block) abort();
    memcpy(block, data + start, n);
    free((void *)(uintptr_t)in->p);
    *in = (struct fp_window){block, n, 0, start, start + n == end};
}

/* The samples of a message; with a writer, they are written. */
static int rows(struct fp_otlp_reader *r, const uint8_t *data, size_t size, size_t step, struct fp_batch *batch,
                struct fp_otlp_writer *w) {
    struct fp_err err;
    int n, status = FP_DONE;
    fp_otlp_begin(r, FP_OTLP_ROWS);
    while (status == FP_DONE && (n = fp_otlp_choose(r)) > 0) {
        const struct fp_otlp_profile *profiles = r->current.profiles + r->first;
        for (int k = 0; k < n; k++) {
            if (profiles[k].start > profiles[k].end || profiles[k].end > size) abort();
            *fp_otlp_window(r, (uint32_t)k) = (struct fp_window){.base = profiles[k].start};
        }
        do {
            status = fp_otlp_feed(r, batch, &err);
            if (status == FP_MORE) {
                refill(fp_otlp_window(r, r->waiting), data, profiles[r->waiting].end, step);
                continue;
            }
            if (status < 0 && err.offset > size) abort();
            if (status >= 0 && w) write_rows(w, batch);
            fp_batch_reset(batch);
        } while (status == FP_MORE || status == FP_FULL);
        for (int k = 0; k < n; k++) {
            struct fp_window *in = fp_otlp_window(r, (uint32_t)k);
            free((void *)(uintptr_t)in->p);
            *in = (struct fp_window){0};
        }
    }
    return status;
}

/* Assembles a message from the writer's buffers, without resources: all samples are those of one profile. */
static void assemble(struct fp_otlp_writer *w, struct fp_buf *out) {
    const size_t resources = fp_wire_begin(out, 1), scopes = fp_wire_begin(out, 2), profile = fp_wire_begin(out, 2);
    for (uint32_t i = FP_OTLP_TABLE_BUFFERS; i < w->n_buffers; i++) {
        if (fp_buf_put(out, w->buffers[i].p, w->buffers[i].n)) abort();
    }
    if (fp_wire_end(out, profile) || fp_wire_end(out, scopes) || fp_wire_end(out, resources)) abort();
    const size_t dictionary = fp_wire_begin(out, 2);
    for (uint32_t i = 1; i < FP_OTLP_TABLE_BUFFERS; i++) {
        struct fp_buf text = {0};
        if (fp_buf_put(out, w->buffers[i].p, w->buffers[i].n)) abort();
        if (fp_otlp_to_json(w->buffers[i].p, w->buffers[i].n, FP_OTLP_DICTIONARY, i, 1, &text)) abort();
        fp_buf_free(&text);
    }
    if (fp_wire_end(out, dictionary)) abort();
}

static int run(const uint8_t *data, size_t size, int form, int lenient, size_t step, uint32_t cap, struct fp_buf *out) {
    struct fp_model *m = fp_model_new();
    struct fp_otlp_reader *r = fp_otlp_reader_new(m, lenient);
    struct fp_otlp_writer *w = fp_otlp_writer_new(m);
    struct fp_batch *batch = fp_batch_new(FP_STACKS, cap, 1);
    struct fp_err err;
    r->words.process_pid = w->keys.process_pid = fp_strings_intern(&m->strings, "process.pid", 11);
    r->words.trace_id = w->keys.trace_id = fp_strings_intern(&m->strings, "trace_id", 8);
    r->words.value = fp_strings_intern(&m->strings, "value", 5);
    r->walk.form = form;
    w->n_columns = 16;
    int status = pass(r, FP_OTLP_SCAN, data, size, step);
    if (status == FP_DONE) status = fp_otlp_scanned(r, &err);
    for (uint32_t k = 0; k < r->n_messages && status == FP_DONE; k++) {
        const struct fp_otlp_message message = r->messages[k];
        if (message.start > message.end || message.end > size) abort();
        const uint8_t *p = data + message.start;
        const size_t n = (size_t)(message.end - message.start);
        status = pass(r, FP_OTLP_TABLES, p, n, step);
        if (status == FP_DONE) status = fp_otlp_resolve_strings(r, &err);
        if (status == FP_DONE) status = fp_otlp_resolve(r, &err);
        if (status == FP_DONE) status = rows(r, p, n, step, batch, out && form == FP_OTLP_PLAIN ? w : NULL);
    }
    if (status == FP_DONE && out && fp_otlp_end(w)) abort();
    if (status == FP_DONE && out) assemble(w, out);
    fp_batch_free(batch);
    fp_otlp_writer_free(w);
    fp_otlp_reader_free(r);
    fp_model_free(m);
    return status;
}

/* JSON becomes messages. */
static int translate(const uint8_t *data, size_t size, int lenient, size_t step, struct fp_buf *out) {
    struct fp_otlp_json *j = fp_otlp_json_new();
    struct window window = {.data = data, .size = size, .step = step};
    struct fp_err err;
    int status = FP_MORE;
    j->lenient = lenient;
    while (status == FP_MORE) { /* the input is shorter than what would fill the buffer */
        struct fp_window *in = show(&window, status);
        status = fp_otlp_json_feed(j, in, out, &err);
        hide(&window, status, &err);
    }
    fp_otlp_json_free(j);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2 || size > 1 << 16) return 0;
    const uint8_t options = data[size - 1];
    const size_t step = data[size - 2] ? data[size - 2] : size;
    const int lenient = options & 1;
    struct fp_buf out = {0}, messages = {0};
    fp_otlp_sniff(data, size < 4096 ? size : 4096);
    if (data[0] == '{' || data[0] == ' ') {
        if (translate(data, size, lenient, step, &messages) == FP_DONE && messages.n) {
            trim(&messages);
            run(messages.p, messages.n, FP_OTLP_GROUPED, lenient, step, 1 + (options >> 4), NULL);
        }
    } else {
        const int form = data[0] < 8 ? FP_OTLP_FRAMED : FP_OTLP_PLAIN;
        const int status = run(data, size, form, lenient, step, 1 + (options >> 4), &out);
        trim(&out);
        if (status == FP_DONE && form == FP_OTLP_PLAIN && run(out.p, out.n, form, 0, out.n, 100, NULL) != FP_DONE)
            abort();
    }
    fp_buf_free(&messages);
    fp_buf_free(&out);
    return 0;
}
