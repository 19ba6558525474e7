/* LLVM sample profiles in text under the fuzzer.  The last byte chooses options, the one before it the size of a
 * window. */
#include "pgo/read.h"
#include "window.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Checks that rows refer to existing stacks and have one value. */
static void drain(const struct fp_model *m, struct fp_batch *batch) {
    for (uint32_t i = 0; i < batch->n; i++) {
        uint32_t n = 0;
        for (uint32_t k = 0; k < FP_PGO_COLUMNS; k++) n += batch->values[(size_t)k * batch->cap + i] != 0;
        if (!batch->stack[i] || batch->stack[i] >= m->stacks.n || n > 1) abort();
    }
    fp_batch_reset(batch);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2) return 0;
    const uint8_t options = data[size - 1];
    struct fp_model *m = fp_model_new();
    struct fp_pgo_reader *r = fp_pgo_reader_new(m, options & 1);
    struct fp_batch *batch = fp_batch_new(FP_STACKS, 1 + (options >> 4), FP_PGO_COLUMNS);
    struct window window = {.data = data, .size = size - 2, .step = data[size - 2] ? data[size - 2] : size};
    struct fp_err err;
    int status = FP_MORE;
    while (status > 0) {
        struct fp_window *in = show(&window, status);
        status = fp_pgo_feed(r, in, batch, &err);
        hide(&window, status, &err);
        if (status == FP_FULL) drain(m, batch);
    }
    drain(m, batch);
    fp_batch_free(batch);
    fp_pgo_reader_free(r);
    fp_model_free(m);
    return 0;
}
