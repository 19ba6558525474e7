/* Samples of Tachyon under the fuzzer, and its tables.  The last byte chooses options, the one before it the size of a
 * window; so a file replays unchanged. */
#include "tachyon/read.h"
#include "window.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const uint8_t strings[] = {1, 'a', 1, 'b'}, frames[] = {0, 1, 6, 0, 2, 0, 255, 0, 0, 1, 0, 1, 0, 255};
    if (size < 2) return 0;
    const uint8_t options = data[size - 1];
    struct fp_model *m = fp_model_new();
    struct fp_tachyon *f = fp_tachyon_new(m, options & 1);
    struct fp_batch *batch = fp_batch_new(FP_STACKS, 1 + (options >> 4), 2);
    struct fp_err err;
    f->swap = options >> 1 & 1;
    f->interval_ns = 1000;
    if (options & 4) {
        struct fp_tachyon *t = fp_tachyon_new(m, 0);
        if (!fp_tachyon_strings(t, data, size, data[0], &err)) (void)fp_tachyon_frames(t, data, size, data[0], &err);
        fp_tachyon_free(t);
    }
    (void)fp_tachyon_strings(f, strings, sizeof strings, 2, &err);
    (void)fp_tachyon_frames(f, frames, sizeof frames, 2, &err);
    struct window window = {.data = data, .size = size, .step = data[size - 2] ? data[size - 2] : size};
    int status = FP_MORE;
    while (status == FP_MORE || status == FP_FULL) {
        struct fp_window *in = show(&window, status);
        status = fp_tachyon_feed(f, in, batch, &err);
        hide(&window, status, &err);
        fp_batch_reset(batch);
    }
    fp_batch_free(batch);
    fp_tachyon_free(f);
    fp_model_free(m);
    return 0;
}
