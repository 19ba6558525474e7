/* Samples of Chrome's traces and of V8's CPU profiles under the fuzzer.  The last byte also chooses options, the one
 * before it the size of a window; so a file replays unchanged.  Nothing is written; the rows are checked.
 */
#include <stdlib.h>

#include "chrome/samples.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look(const struct fp_model *m, const struct fp_batch *b) {
    for (uint32_t i = 0; i < b->n; i++) {
        if (b->stack[i] >= m->stacks.n || b->thread[i] >= m->threads.n) abort();
        for (uint32_t k = 0; k < b->n_values; k++)
            if (b->values[(size_t)k * b->cap + i] < 0) abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2) return 0;
    const size_t step = data[size - 2] ? data[size - 2] : size;
    const uint8_t options = data[size - 1];
    struct fp_model *m = fp_model_new();
    struct fp_chrome_samples_read *r = fp_chrome_samples_read_new(m, options & 1);
    struct fp_batch *batch = fp_batch_new(FP_STACKS, 1 + (options >> 4), 1);
    struct fp_err err;
    int status = FP_DONE;
    for (int pass = 0; pass < 2 && status == FP_DONE; pass++) {
        struct fp_window in = {0};
        size_t have = 0;
        r->part = 0;
        r->named = 1;
        if (pass && fp_chrome_samples_again(r, &err) < 0) break;
        for (status = FP_MORE;;) {
            if (in.eof && status == FP_MORE) abort(); /* at the end no more input can be requested */
            const size_t start = (size_t)in.base + in.pos;
            if (status == FP_MORE) have = have + step < size ? have + step : size;
            uint8_t *window = malloc(have - start + 1); /* a separate block, so that a read beyond it is detected */
            memcpy(window, data + start, have - start);
            in = (struct fp_window){window, have - start, 0, start, have == size};
            while ((status = fp_chrome_samples_feed(r, &in, batch, &err)) == FP_NEEDS) {
                if (r->request == FP_CHROME_THREAD)
                    fp_chrome_set_thread(&r->thread_ids, fp_model_thread(m, 0, (uint32_t)r->thread_ids.pid.number,
                                                                         (uint32_t)r->thread_ids.tid.number));
                else if (r->request == FP_CHROME_NAME)
                    r->thread_ids.noted = 1;
                else
                    abort(); /* there are fewer samples */
            }
            free(window);
            if (in.pos > in.n) abort();
            if (status < 0 && err.offset > size) abort();
            look(m, batch);
            fp_batch_reset(batch);
            if (status != FP_MORE && status != FP_FULL) break;
        }
    }
    fp_batch_free(batch);
    fp_chrome_samples_read_free(r);
    fp_model_free(m);
    return 0;
}
