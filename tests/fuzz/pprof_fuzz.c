/* profile.proto under the fuzzer.  The last byte also chooses options, the one before it the size of a window; so a
 * file replays unchanged.  The profile read is written, and the output must be read without complaint. */
#include "mutate.h"
#include "pprof/read.h"
#include "pprof/write.h"
#include "window.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* One pass over the input, `step` bytes at a time. */
static int pass(struct fp_pprof_reader *r, const uint8_t *data, size_t size, size_t step, struct fp_batch *batch,
                struct fp_pprof_writer *w, struct fp_buf *out) {
    struct window window = {.data = data, .size = size, .step = step};
    struct fp_err err;
    for (int status = FP_MORE;;) {
        struct fp_window *in = show(&window, status);
        status = batch ? fp_pprof_feed(r, in, batch, &err) : fp_pprof_tables(r, in, &err);
        hide(&window, status, &err);
        if (batch && w && status >= 0) {
            int32_t columns[64];
            for (int32_t k = 0; k < 64; k++) columns[k] = k < (int32_t)r->n_types ? k : -1;
            struct fp_buf piece = {0};
            int written;
            do {
                piece.n = 0;
                written = fp_pprof_put(w, batch, columns, r->n_types < 64 ? r->n_types : 64, &piece);
                if (fp_buf_put(out, piece.p, piece.n)) abort();
            } while (written == FP_FULL);
            fp_buf_free(&piece);
            if (written) abort();
        }
        if (batch) fp_batch_reset(batch);
        if (status != FP_MORE && status != FP_FULL) return status;
    }
}

/* Reads `data` and writes it to `out`, unless that is NULL. */
static int run(const uint8_t *data, size_t size, int lenient, size_t step, uint32_t cap, struct fp_buf *out) {
    struct fp_model *m = fp_model_new();
    struct fp_pprof_reader *r = fp_pprof_reader_new(m, lenient);
    struct fp_pprof_writer *w = fp_pprof_writer_new(m);
    struct fp_batch *batch = fp_batch_new(FP_STACKS, cap, 1);
    struct fp_err err;
    w->words.no_stack = fp_strings_intern(&m->strings, "[no stack]", 10);
    w->name_addresses = cap & 1;
    fp_pprof_sniff(data, size < 4096 ? size : 4096);
    int status = pass(r, data, size, step, NULL, NULL, NULL);
    if (status == FP_DONE) status = fp_pprof_resolve(r, &err);
    if (status == FP_DONE && out) {
        fp_buf_put(out, "\x32\x00", 2);
        for (uint32_t k = 0; k < r->n_types && k < 64; k++) fp_buf_put(out, "\x0a\x00", 2);
    }
    if (status == FP_DONE) status = pass(r, data, size, step, batch, out ? w : NULL, out);
    if (status == FP_DONE && out && fp_pprof_mappings(w, m->objects.n - 1, out)) abort();
    fp_batch_free(batch);
    fp_pprof_writer_free(w);
    fp_pprof_reader_free(r);
    fp_model_free(m);
    return status;
}

/* ---- the mutator --------------------------------------------------------- */

/* The content of a field of wire type BYTES; the kinds up to LOCATION are messages. */
enum kind { PROFILE, SAMPLE, LOCATION, NUMBERS_ONLY, LIST, TEXT, UNKNOWN };

static const uint8_t inside[][16] = {
    [PROFILE] = {[1] = NUMBERS_ONLY,
                 [2] = SAMPLE,
                 [3] = NUMBERS_ONLY,
                 [4] = LOCATION,
                 [5] = NUMBERS_ONLY,
                 [6] = TEXT,
                 [11] = NUMBERS_ONLY,
                 [13] = LIST},
    [SAMPLE] = {[1] = LIST, [2] = LIST, [3] = NUMBERS_ONLY},
    [LOCATION] = {[4] = NUMBERS_ONLY},
    [NUMBERS_ONLY] = {0},
};

/* The message at [at, end): adds a field, changes fields as pieces, or changes one field and fixes its length. */
static void change_message(struct input *in, int kind, size_t at, size_t end) {
    struct pieces q;
    struct fp_wire_field f;
    uint8_t bytes[2 * FP_WIRE_HEAD];
    begin_pieces(&q, at);
    for (;;) {
        const uint8_t *p = in->p + q.at[q.n];
        const size_t left = end - q.at[q.n];
        const int head = fp_wire_read_head(p, p + left, &f);
        if (head <= 0 || f.n > left || !add_piece(&q, (size_t)(f.p - p) + f.n, left)) break;
    }
    const uint32_t how = below(in, 8);
    if (!how || !q.n) {
        const uint8_t *behind =
            fp_varint(fp_varint(bytes, FP_WIRE_TAG(1 + below(in, 15), FP_WIRE_VARINT)), mostly_below(in, 8));
        replace(in, between_pieces(in, &q), 0, bytes, (size_t)(behind - bytes));
        return;
    }
    if (how < 3) {
        change_pieces(in, &q);
        return;
    }
    const uint32_t i = below(in, q.n);
    fp_wire_read_head(in->p + q.at[i], in->p + q.at[i + 1], &f);
    const size_t content = (size_t)(f.p - in->p), before = in->n;
    if (f.wire == FP_WIRE_VARINT) {
        replace(in, content, f.n, bytes, (size_t)(fp_varint(bytes, other_number(in, f.v)) - bytes));
    } else if (f.wire != FP_WIRE_BYTES) {
        change_bytes(in, content, f.n, 0);
    } else {
        const int own = f.number < 16 && inside[kind][f.number] ? inside[kind][f.number] : UNKNOWN;
        if (own == LIST)
            change_varints(in, content, content + f.n);
        else if (own < LIST)
            change_message(in, own, content, content + f.n);
        else
            change_bytes(in, content, f.n, 8);
        const unsigned length = fp_varint_length(f.n);
        const uint8_t *behind = fp_varint(bytes, f.n + in->n - before);
        replace(in, content - length, length, bytes, (size_t)(behind - bytes));
    }
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t n, size_t max, unsigned seed) {
    struct input in = input_of(data, n, max, seed);
    if (n < 2 || !below(&in, 8)) return LLVMFuzzerMutate(data, n, max);
    for (uint32_t changes = 1 + below(&in, 3); changes--;) change_message(&in, PROFILE, 0, in.n);
    return in.n;
}

/* -------------------------------------------------------------------------- */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2) return 0;
    const uint8_t options = data[size - 1];
    const size_t step = data[size - 2] ? data[size - 2] : size;
    struct fp_buf out = {0};
    int status = run(data, size, options & 1, step, 1 + (options >> 4), &out);
    trim(&out);
    if (status == FP_DONE && run(out.p, out.n, 0, out.n, 100, NULL) != FP_DONE) abort();
    fp_buf_free(&out);
    return 0;
}
