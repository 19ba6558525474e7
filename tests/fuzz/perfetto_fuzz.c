/* Perfetto traces under the fuzzer.  The last byte chooses the data and the size of a window.  The contents of
 * compressed packets are read without decompressing. */
#include "mutate.h"
#include "perfetto/read.h"
#include "window.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* ---- the mutator: whole packets, and numbers in them ---- */

/* The end of the varint at p, and its value. */
static size_t varint_at(const struct input *in, size_t at, uint64_t *value) {
    *value = 0;
    for (unsigned shift = 0; at < in->n && shift < 64; shift += 7) {
        const uint8_t byte = in->p[at++];
        *value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) return at;
    }
    return 0;
}

static void change_packets(struct input *in) {
    struct pieces packets;
    begin_pieces(&packets, 0);
    for (;;) {
        const size_t at = packets.at[packets.n];
        uint64_t n;
        const size_t start = at + 1 < in->n - 1 && in->p[at] == 10 ? varint_at(in, at + 1, &n) : 0;
        if (!start || !add_piece(&packets, start - at + n, in->n - 1 - at)) break;
    }
    if (packets.n < 2) {
        change_bytes(in, 0, in->n, 8);
        return;
    }
    const uint32_t i = below(in, packets.n);
    if (below(in, 2))
        change_pieces(in, &packets);
    else
        change_bytes(in, packets.at[i], packets.at[i + 1] - packets.at[i], 4);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t n, size_t max, unsigned seed) {
    struct input in = input_of(data, n, max, seed);
    if (n < 8 || !below(&in, 8)) return LLVMFuzzerMutate(data, n, max);
    for (uint32_t changes = 1 + below(&in, 3); changes--;) change_packets(&in);
    return in.n;
}

/* ---- the caller ---- */

/* Serves a request.  The temporary file is in memory. */
static void answer(struct fp_perfetto_read *r, struct fp_model *m, struct fp_buf *file, uint32_t *n_threads) {
    struct fp_rounds *rounds = &r->rounds;
    if (r->asks == FP_PERFETTO_TEXT) {
        r->text.n = 0;
    } else if (r->asks == FP_PERFETTO_THREAD) {
        if (r->requested >= r->tracks.place_keys.n) abort();
        const uint32_t thread = fp_model_thread(m, 0, 1, ++*n_threads);
        if (thread == FP_NO_ID || fp_perfetto_set_thread(r, thread)) abort();
    } else if (r->asks == FP_PERFETTO_INFLATE) {
        if (fp_perfetto_give(r, r->compressed, r->n_compressed, 1)) abort();
    } else if (rounds->asks == FP_ROUNDS_WRITE) {
        if (fp_buf_put(file, rounds->bytes, rounds->n_bytes)) abort();
    } else {
        if (rounds->offset > file->n || rounds->n_bytes > file->n - rounds->offset) abort();
        memcpy(rounds->bytes, file->p + rounds->offset, rounds->n_bytes);
    }
}

/* Checks that rows refer to existing entries. */
static void drain(const struct fp_model *m, struct fp_batch *b) {
    for (uint32_t i = 0; i < b->n; i++) {
        if (b->thread[i] >= m->threads.n) abort();
        if (b->view == FP_STACKS && (b->stack[i] >= m->stacks.n || b->label[i] >= m->labels.n)) abort();
        if (b->view == FP_TIMELINE && b->op[i] < FP_OP_ARGUMENT && b->function[i] >= m->functions.n) abort();
    }
    fp_batch_reset(b);
}

/* One pass over the input.  Its status. */
static int pass(struct fp_perfetto_read *r, struct fp_model *m, struct fp_batch *batch, struct window *w,
                uint32_t *n_threads) {
    struct fp_buf file = {0};
    struct fp_err err;
    int status = FP_MORE;
    while (status > 0) {
        struct fp_window *in = show(w, status);
        status = batch ? fp_perfetto_feed(r, in, batch, &err) : fp_perfetto_survey(r, in, 0, &err);
        while (status == FP_NEEDS) {
            answer(r, m, &file, n_threads);
            status = batch ? fp_perfetto_feed(r, in, batch, &err) : fp_perfetto_survey(r, in, 0, &err);
        }
        hide(w, status, &err);
        if (batch) drain(m, batch);
    }
    fp_buf_free(&file);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const uint32_t kinds[8] = {FP_PERFETTO_CALLS, FP_PERFETTO_CALLS,  FP_PERFETTO_SAMPLES, FP_PERFETTO_HEAP,
                                      FP_PERFETTO_V8,    FP_PERFETTO_STATES, FP_PERFETTO_OFF_CPU, FP_PERFETTO_OBJECTS};
    if (size < 2) return 0;
    const uint8_t options = data[--size];
    const uint32_t kind = kinds[(options & 3) | (options >> 7) << 2];
    const int is_timeline = kind == FP_PERFETTO_CALLS || kind == FP_PERFETTO_STATES;
    struct fp_model *m = fp_model_new();
    struct fp_perfetto_read *r = m ? fp_perfetto_read_new(m, options >> 2 & 1) : NULL;
    struct fp_batch *batch = fp_batch_new(is_timeline ? FP_TIMELINE : FP_STACKS, 1 + (options >> 4 & 7), 6);
    uint32_t n_threads = 0;
    if (!r || !batch) abort();
    const struct window start = {.data = data, .size = size, .step = options & 8 ? 7 : size + 1};
    struct window w = start;
    int status = FP_DONE;
    r->rounds.most = 256;
    if (!is_timeline) {
        if (fp_perfetto_keep_stacks(r)) abort();
        status = pass(r, m, NULL, &w, &n_threads);
        if (fp_perfetto_restart(r)) abort();
    }
    r->data = kind;
    for (int again = 0; again < 2 && status >= 0; again++) {
        w = start;
        status = pass(r, m, batch, &w, &n_threads);
        if (!r->again) break;
        if (fp_perfetto_restart(r)) abort();
    }
    fp_batch_free(batch);
    fp_perfetto_read_free(r);
    fp_model_free(m);
    return 0;
}
