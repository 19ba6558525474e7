/* Both passes over samples of simpleperf under the fuzzer.  The last byte chooses options, the one before it the size
 * of a window; so a file replays unchanged. */
#include "simpleperf/read.h"
#include "window.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2) return 0;
    const uint8_t options = data[size - 1];
    struct fp_model *m = fp_model_new();
    struct fp_simpleperf *s = fp_simpleperf_new(m, options & 1);
    struct fp_err err;
    int status = FP_DONE;
    for (; status == FP_DONE && s->is_second < 2; s->is_second++) {
        if (!s->n_events) s->n_events = s->is_second;
        struct fp_batch *batch = fp_batch_new(FP_STACKS, 1 + (options >> 4), 2 * s->n_events);
        struct window window = {.data = data, .size = size, .step = data[size - 2] ? data[size - 2] : size};
        status = FP_MORE;
        while (status == FP_MORE || status == FP_FULL) {
            struct fp_window *in = show(&window, status);
            status = fp_simpleperf_feed(s, in, batch, &err);
            hide(&window, status, &err);
            fp_batch_reset(batch);
        }
        fp_batch_free(batch);
    }
    fp_simpleperf_free(s);
    fp_model_free(m);
    return 0;
}
