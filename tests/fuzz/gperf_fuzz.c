/* gperftools profiles under the fuzzer.  The last byte also chooses options, the
 * one before it how much comes at a time; so a file replays as it is. */
#include "gperftools/read.h"
#include "gperftools/write.h"
#include "window.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void drain(struct fp_gperf_reader *g, struct fp_model *m, uint32_t cap) {
    struct fp_batch *batch = fp_batch_new(FP_STACKS, cap, 2);
    struct fp_gperf_writer w = {.model = m, .period_ns = 1000};
    struct fp_buf out = {0};
    struct fp_err err;
    int status;
    do {
        status = fp_gperf_rows(g, batch, &err);
        if (status >= 0) fp_gperf_put(&w, batch, 0, &out, &err);
        fp_batch_reset(batch);
    } while (status == FP_FULL);
    fp_buf_free(&out);
    fp_batch_free(batch);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2) return 0;
    const uint8_t options = data[size - 1];
    struct fp_model *m = fp_model_new();
    struct fp_gperf_reader *g = fp_gperf_reader_new(m, options & 1);
    g->keep_signal_frames = options >> 1 & 1;
    const size_t step = data[size - 2] ? data[size - 2] : size;
    const uint32_t cap = 1 + (options >> 4);
    struct window window = {.data = data, .size = size, .step = step};
    struct fp_err err;
    int status = FP_MORE;
    while (status == FP_MORE) {
        struct fp_in *in = show(&window, status);
        while ((status = fp_gperf_feed(g, in, &err)) == FP_ASK && g->line_n) {
            if (g->line_n > in->n - in->pos) abort();
            in->pos += g->line_n;
        }
        hide(&window, status, &err);
    }
    if (status == FP_ASK) {
        uint32_t name = fp_strings_intern(&m->strings, "[vdso]", 6);
        uint32_t object = fp_model_object(m, name, 0);
        for (uint64_t start = 0; start < 4; start++)
            fp_gperf_map(g, start << 12, (start + 2) << 12, fp_model_mapping(m, object, start << 12, 0, 0, 0));
        drain(g, m, cap);
    }
    fp_gperf_reader_free(g);
    fp_model_free(m);
    return 0;
}
