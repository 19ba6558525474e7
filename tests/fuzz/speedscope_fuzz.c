/* speedscope's JSON under the fuzzer.  The last byte also chooses options, the one before it the size of a window; so a
 * file replays unchanged.  The samples read are written, and the output must be read without complaint.
 */
#include "speedscope/read.h"
#include "speedscope/write.h"
#include "window.h"

/* Like fastprof/formats/speedscope/write.py, for one value type. */
static void finish(struct fp_speedscope *w, struct fp_buf *out) {
    fp_buf_put(out, "{\"profiles\":[{\"type\":\"sampled\",\"samples\":[", 42);
    for (int pass = 0; pass < 2; pass++) {
        if (pass) fp_buf_put(out, "],\"weights\":[", 13);
        int any = 0;
        for (uint32_t i = 0; i < w->n_groups; i++) {
            struct fp_window in = {w->groups[i].packed.p, w->groups[i].packed.n, 0, 0, 1};
            const size_t before = out->n;
            if (any) fp_buf_put(out, ",", 1);
            fp_speedscope_begin(w, i, 0);
            int status;
            do
                status =
                    pass ? fp_speedscope_put_weights(w, &in, 1, 0, out) : fp_speedscope_put_stacks(w, &in, 1, 0, out);
            while (status == FP_FULL && out->n < 1 << 18);
            if (out->n == before + (size_t)any) out->n = before; /* nothing of this group */
            any |= out->n > before;
        }
    }
    uint32_t from = 0;
    fp_buf_put(out, "]}],\"shared\":{\"frames\":[", 24);
    if (fp_speedscope_put_frames(w, &from, out) < 0) abort();
    fp_buf_put(out, "]}}", 3);
}

static int run(const uint8_t *data, size_t size, uint8_t options, size_t step, struct fp_buf *written) {
    struct fp_model *m = fp_model_new();
    struct fp_speedscope_read *r = fp_speedscope_read_new(m, options & 1);
    const int calls = options >> 1 & 1;
    struct fp_batch *batch = fp_batch_new(calls ? FP_TIMELINE : FP_STACKS, 1 + (options >> 4), calls ? 0 : 1);
    struct fp_speedscope *w = fp_speedscope_new(m);
    struct fp_err err;
    int status = FP_MORE;
    for (int pass = 0; pass < 2 && (status == FP_MORE || status == FP_DONE); pass++) {
        struct window window = {.data = data, .size = size, .step = step};
        if (pass) {
            for (uint32_t i = 0; i < r->n_profiles; i++)
                r->profiles[i].wanted = (r->profiles[i].type == FP_SPEEDSCOPE_EVENTED) == calls;
            fp_speedscope_again(r);
        }
        for (status = FP_MORE;;) {
            status = fp_speedscope_feed(r, show(&window, status), batch, &err);
            hide(&window, status, &err);
            if (status == FP_NEEDS) abort(); /* there are fewer values */
            uint32_t row = 0;
            if (status >= 0 && !calls && fp_speedscope_samples(w, batch, &row) != FP_DONE) abort();
            fp_batch_reset(batch);
            if (status != FP_MORE && status != FP_FULL) break;
        }
    }
    if (status == FP_DONE && written && !calls) finish(w, written);
    fp_speedscope_free(w);
    fp_batch_free(batch);
    fp_speedscope_read_free(r);
    fp_model_free(m);
    return status;
}

#include "round_trip.h"
