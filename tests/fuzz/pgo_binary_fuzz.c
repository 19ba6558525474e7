/* Binary LLVM sample profiles under the fuzzer: a file of the encoding `binary`, or the sections of an extbinary file,
 * cut out of the input.  The last byte chooses options, the one before it the size of a window. */
#include "pgo/binary.h"
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

/* Reads one section.  Returns its status. */
static int feed(struct fp_pgo_binary *b, const struct fp_model *m, struct fp_batch *batch, struct window *window) {
    struct fp_err err;
    int status = FP_MORE;
    while (status > 0) {
        struct fp_window *in = show(window, status);
        status = fp_pgo_binary_feed(b, in, batch, &err);
        hide(window, status, &err);
        if (status == FP_FULL) drain(m, batch);
    }
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 4) return 0;
    const uint8_t options = data[size - 1];
    const size_t step = data[size - 2] ? data[size - 2] : size;
    size_t rest = size - 2;
    struct fp_model *m = fp_model_new();
    struct fp_pgo_binary *b = fp_pgo_binary_new(m, options & 1);
    struct fp_batch *batch = fp_batch_new(FP_STACKS, 1 + (options >> 4), FP_PGO_COLUMNS);
    if (options & 2) {
        b->has_contexts = (options & 4) != 0;
        b->has_tables = (options & 8) != 0;
        const int sections[3] = {FP_PGO_NAMES + data[0] % 3, FP_PGO_CONTEXTS, FP_PGO_FUNCTIONS};
        data++, rest--;
        for (int k = 0; k < 3 && rest; k++) {
            if (k == 1 && !b->has_contexts) continue;
            size_t n = k == 2 ? rest - 1 : *data;
            data++, rest--;
            if (n > rest) n = rest;
            struct window window = {.data = data, .size = n, .step = step};
            fp_pgo_binary_begin(b, sections[k]);
            if (feed(b, m, batch, &window) < 0) break;
            data += n;
            rest -= n;
        }
    } else {
        struct window window = {.data = data, .size = rest, .step = step};
        feed(b, m, batch, &window);
    }
    drain(m, batch);
    fp_batch_free(batch);
    fp_pgo_binary_free(b);
    fp_model_free(m);
    return 0;
}
