/* profile.proto under the fuzzer.  The last byte also chooses options, the one
 * before it how much comes at a time; so a file replays as it is.  What is read is written, and what was
 * written must be read without complaint. */
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
        struct fp_in *in = show(&window, status);
        status = batch ? fp_pprof_feed(r, in, batch, &err) : fp_pprof_tables(r, in, &err);
        hide(&window, status, &err);
        if (batch && w && status >= 0) {
            int32_t columns[64];
            for (int32_t k = 0; k < 64; k++) columns[k] = k < (int32_t)r->n_types ? k : -1;
            if (fp_pprof_put(w, batch, columns, r->n_types < 64 ? r->n_types : 64, out, &err)) abort();
        }
        if (batch) fp_batch_reset(batch);
        if (status != FP_MORE && status != FP_FULL) return status;
    }
}

/* Reads `data`; what it wrote of it goes to `out` unless NULL. */
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
    if (status == FP_DONE && out && fp_pprof_mappings(w, m->objects.n - 1, out, &err)) abort();
    fp_batch_free(batch);
    fp_pprof_writer_free(w);
    fp_pprof_reader_free(r);
    fp_model_free(m);
    return status;
}

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
