/* XLA's profiles under the fuzzer.
 *
 * The last byte chooses options, the one before it the size of a window; so a file replays unchanged.
 */
#include "xplane/read.h"
#include "window.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2) return 0;
    const uint8_t options = data[size - 1];
    struct fp_model *m = fp_model_new();
    struct fp_xplane *f = fp_xplane_new(m, options & 1);
    f->rounds.most = UINT64_C(1) << 34; /* nothing is spilled */
    f->input = fp_model_input(m);
    struct fp_batch *batch = fp_batch_new(FP_TIMELINE, 1 + (options >> 4), 0);
    struct window window = {.data = data, .size = size, .step = data[size - 2] ? data[size - 2] : size};
    struct fp_err err;
    int status = FP_MORE;
    while (status == FP_MORE || status == FP_FULL) {
        struct fp_window *in = show(&window, status);
        status = fp_xplane_feed(f, in, batch, &err);
        hide(&window, status, &err);
        fp_batch_reset(batch);
    }
    fp_batch_free(batch);
    fp_xplane_free(f);
    fp_model_free(m);
    return 0;
}
