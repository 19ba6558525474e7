/* Profiles of cProfile under the fuzzer, read and written.  The last byte chooses options, the one before it the size
 * of a window; so a file replays unchanged. */
#include "pstats/read.h"
#include "pstats/write.h"
#include "window.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2) return 0;
    const uint8_t options = data[size - 1];
    struct fp_model *m = fp_model_new();
    struct fp_pstats_reader *r = fp_pstats_reader_new(m, options & 1);
    struct fp_pstats_writer *w = fp_pstats_writer_new(m);
    struct fp_batch *batch = fp_batch_new(FP_GRAPH, 1 + (options >> 4), FP_PSTATS_VALUES);
    struct window window = {.data = data, .size = size, .step = data[size - 2] ? data[size - 2] : size};
    struct fp_err err;
    struct fp_buf out = {0};
    int status = FP_MORE, written = FP_DONE;
    w->complete = options >> 1 & 1;
    while (status == FP_MORE || status == FP_FULL) {
        struct fp_window *in = show(&window, status);
        status = fp_pstats_feed(r, in, batch, &err);
        hide(&window, status, &err);
        if (!written) written = fp_pstats_put(w, batch, &err);
        fp_batch_reset(batch);
    }
    if (!written)
        while ((written = fp_pstats_take(w, &out, &err)) == FP_FULL) out.n = 0;
    fp_buf_free(&out);
    fp_batch_free(batch);
    fp_pstats_writer_free(w);
    fp_pstats_reader_free(r);
    fp_model_free(m);
    return 0;
}
