/* Branch stacks in the text of perf script under the fuzzer.  The last byte chooses options, the one before it the size
 * of a window. */
#include "perf_script/branches.h"
#include "window.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Checks that rows are stacks of two frames. */
static void drain(const struct fp_model *m, struct fp_batch *batch) {
    for (uint32_t i = 0; i < batch->n; i++) {
        const uint32_t parent = fp_table_row(&m->stacks, batch->stack[i])[FP_STACK_PARENT];
        if (!parent || fp_table_row(&m->stacks, parent)[FP_STACK_PARENT]) abort();
    }
    fp_batch_reset(batch);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2) return 0;
    const uint8_t options = data[size - 1];
    struct fp_model *m = fp_model_new();
    struct fp_perf_script_branches *r = fp_perf_script_branches_new(m);
    struct fp_batch *batch = fp_batch_new(FP_STACKS, 1 + (options >> 4), FP_BRANCHES_COLUMNS);
    struct window window = {.data = data, .size = size - 2, .step = data[size - 2] ? data[size - 2] : size};
    struct fp_err err;
    r->lenient = options & 1;
    r->most = options & 2 ? 4 : 1 << 10;
    int status = FP_MORE;
    while (status > 0) {
        struct fp_window *in = show(&window, status);
        status = fp_perf_script_branches_feed(r, in, batch, &err);
        hide(&window, status, &err);
        if (status == FP_FULL) drain(m, batch);
    }
    drain(m, batch);
    fp_batch_free(batch);
    fp_perf_script_branches_free(r);
    fp_model_free(m);
    return 0;
}
