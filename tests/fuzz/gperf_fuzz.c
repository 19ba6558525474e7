/* gperftools profiles under the fuzzer: byte 0 chooses options, byte 1 how much
 * comes at a time, the rest is the file. */
#include <stdlib.h>

#include "fp_gperf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void drain(struct fp_gperf *g, struct fp_model *m, uint32_t cap) {
    struct fp_batch *batch = fp_batch_new(FP_STACKS, cap, 2);
    struct fp_gperf_writer w = {.model = m, .period_ns = 1000};
    struct fp_buf out = {0};
    struct fp_err err;
    int status;
    do {
        status = fp_gperf_rows(g, batch, &err);
        if (status >= 0) fp_gperf_put(&w, batch, 0, &out, &err);
        fp_batch_reset(batch);
    } while (status == FP_FULL);
    fp_buf_free(&out);
    fp_batch_free(batch);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2) return 0;
    struct fp_model *m = fp_model_new();
    struct fp_gperf *g = fp_gperf_new(m, data[0] & 1);
    g->keep_signal_frames = data[0] >> 1 & 1;
    size_t step = data[1] ? data[1] : size;
    const uint32_t cap = 1 + (data[0] >> 4);
    data += 2;
    size -= 2;
    /* each window is a block of its own, so that a read beyond it is seen */
    struct fp_in in = {0};
    struct fp_err err;
    size_t have = 0;
    int status = FP_MORE;
    while (status == FP_MORE) {
        if (in.eof) abort(); /* at the end there is no more to ask for */
        size_t start = (size_t)in.base + in.pos;
        have = have + step < size ? have + step : size;
        uint8_t *window = malloc(have - start + 1);
        memcpy(window, data + start, have - start);
        in = (struct fp_in){window, have - start, 0, start, have == size};
        status = fp_gperf_feed(g, &in, &err);
        if (in.pos > in.n) abort();
        if (status < 0 && err.offset > size) abort();
        free(window);
    }
    if (status == FP_ASK) {
        uint32_t name = fp_strings_intern(&m->strings, "[vdso]", 6);
        uint32_t object = fp_model_object(m, name, 0);
        for (uint64_t start = 0; start < 4; start++)
            fp_gperf_map(g, start << 12, (start + 2) << 12, fp_model_mapping(m, object, start << 12, 0, 0, 0));
        drain(g, m, cap);
    }
    fp_gperf_free(g);
    fp_model_free(m);
    return 0;
}
