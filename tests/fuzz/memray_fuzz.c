/* memray under the fuzzer.
 *
 * The last byte chooses options, the one before it the size of a window; so a file replays unchanged.
 */
#include "memray/read.h"
#include "window.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2) return 0;
    const uint8_t options = data[size - 1];
    struct fp_model *m = fp_model_new();
    struct fp_memray *f = fp_memray_new(m, options & 1);
    struct fp_batch *batch = fp_batch_new(FP_STACKS, 1 + (options >> 4), FP_HEAP_COLUMNS);
    struct window window = {.data = data, .size = size, .step = data[size - 2] ? data[size - 2] : size};
    struct fp_err err;
    int status = FP_MORE;
    while (status == FP_MORE || status == FP_FULL || status == FP_NEEDS) {
        struct fp_window *in = show(&window, status);
        status = fp_memray_feed(f, in, batch, &err);
        hide(&window, status, &err);
        if (status == FP_NEEDS && f->request == FP_MEMRAY_NAMES && options & 2)
            for (uint32_t i = 1; i < f->n_wanted; i++) f->wanted[i].answer = f->wanted[i].frame % 2;
        fp_batch_reset(batch);
    }
    fp_batch_free(batch);
    fp_memray_free(f);
    fp_model_free(m);
    return 0;
}
