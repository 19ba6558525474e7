/* Small profiles in JSON under the fuzzer.  The last byte chooses options, the one before it the size of a window; so a
 * file replays unchanged. */
#include "small_json/read.h"
#include "window.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2) return 0;
    const uint8_t options = data[size - 1];
    const int format = (options >> 1 & 7) % (FP_SMALL_SAFARI + 1);
    struct fp_model *m = fp_model_new();
    struct fp_small_json *s = fp_small_json_new(m, format, options & 1);
    s->is_marshal = size > 3 && data[0] == 4;
    s->is_graph = format == FP_SMALL_STACKPROF && options & 128;
    const int is_graph = s->is_graph || format == FP_SMALL_SCALENE;
    struct fp_batch *batch = fp_batch_new(is_graph ? FP_GRAPH : FP_STACKS, 1 + (options >> 4), FP_SMALL_VALUES);
    struct window window = {.data = data, .size = size, .step = data[size - 2] ? data[size - 2] : size};
    struct fp_err err;
    int status = FP_MORE;
    while (status == FP_MORE || status == FP_FULL || status == FP_NEEDS) {
        struct fp_window *in = show(&window, status);
        status = fp_small_json_feed(s, in, batch, &err);
        hide(&window, status, &err);
        fp_batch_reset(batch);
    }
    fp_batch_free(batch);
    fp_small_json_free(s);
    fp_model_free(m);
    return 0;
}
