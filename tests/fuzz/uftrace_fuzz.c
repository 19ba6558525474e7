/* The files of uftrace under the fuzzer: switches, then the records of a thread.  The last byte chooses options, the
 * one before it the size of a window, the one before that how much of the input is switches; so a file replays
 * unchanged. */
#include "uftrace/read.h"
#include "window.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const uint8_t sizes[] = {8, 255, 4, 0, 8};
    if (size < 3) return 0;
    const uint8_t options = data[size - 1];
    struct fp_model *m = fp_model_new();
    struct fp_uftrace *u = fp_uftrace_new(m, options & 1);
    struct fp_batch *batch = fp_batch_new(FP_TIMELINE, 1 + (options >> 4), 0);
    u->schedule = u->preempted = fp_model_function(m, 0, 0, fp_strings_intern(&m->strings, "s", 1), 0, 0);
    const size_t n_switches = size * data[size - 3] / 256;
    int status = FP_DONE;
    for (int part = 0; part < 2 && status == FP_DONE; part++) {
        const size_t from = part ? n_switches : 0, n = part ? size - n_switches : n_switches;
        struct window window = {.data = data + from, .size = n, .step = data[size - 2] ? data[size - 2] : size};
        struct fp_err err;
        u->is_switches = !part;
        u->until = options & 2 ? 1 << 20 : UINT64_MAX;
        if (part) fp_uftrace_begin(u, 7, fp_model_thread(m, 0, 1, 7));
        for (status = FP_MORE; status == FP_MORE || status == FP_FULL || status == FP_NEEDS;) {
            struct fp_window *in = show(&window, status);
            status = fp_uftrace_feed(u, in, batch, &err);
            hide(&window, status, &err);
            if (status == FP_NEEDS && u->request == FP_UFTRACE_SESSION)
                u->session++, u->until = UINT64_MAX;
            else if (status == FP_NEEDS)
                fp_uftrace_define(u, u->schedule, sizes, options & 4 ? sizeof sizes : 0);
            fp_batch_reset(batch);
        }
    }
    fp_batch_free(batch);
    fp_uftrace_free(u);
    fp_model_free(m);
    return 0;
}
