/* XRay logs: the index pass, then the records, in windows and batches of sizes
 * that the input itself chooses; rows go through the stack machine's contract:
 * every id they carry is in the model. */
#include <stdlib.h>

#include "xray/read.h"

static void must(int ok) {
    if (!ok) abort();
}

/* Feeds data[offset, end) in windows of `step` bytes, growing when the decoder needs more. */
static int feed(struct fp_xray *x, const uint8_t *data, size_t offset, size_t end, size_t step, struct fp_batch *b) {
    struct fp_err err;
    size_t at = offset, window = step;
    for (;;) {
        size_t n = end - at < window ? end - at : window;
        uint8_t *copy = malloc(n ? n : 1); /* exact: a read past it is seen */
        must(copy != NULL);
        if (n) memcpy(copy, data + at, n);
        struct fp_in in = {copy, n, 0, at, at + n == end};
        int status;
        do {
            status = fp_xray_feed(x, &in, b, &err);
            must(in.pos <= in.n && b->n <= b->cap);
            if (status == FP_ASK) must(!fp_xray_define(x, x->asked, x->asked % 7));
            if (status == FP_FULL || status == FP_DONE) {
                for (uint32_t i = 0; i < b->n && b->view == FP_TIMELINE; i++)
                    must(b->thread[i] < x->model->threads.n && b->op[i] <= FP_OP_BUFFER);
                for (uint32_t i = 0; i < b->n && b->view == FP_STACKS; i++) must(b->stack[i] < x->model->stacks.n);
                fp_batch_reset(b);
            }
        } while (status == FP_ASK || status == FP_FULL);
        at += in.pos;
        /* no progress on a window: the record is longer */
        window = in.pos ? step : window * 2;
        free(copy);
        if (status == FP_DONE) return 0;
        if (status < 0) {
            must(err.code == status && err.what != NULL);
            return status;
        }
        must(status == FP_MORE && !in.eof); /* else the engine would refill for ever */
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    if (n < 4) return 0;
    const size_t step = 1 + data[n - 1] % 64u * 5u;
    const uint32_t capacity = 1 + data[n - 2] % 50u;
    for (int lenient = 0; lenient < 2; lenient++) {
        struct fp_model *model = fp_model_new();
        struct fp_xray *x = fp_xray_new(model, lenient);
        must(model && x);
        size_t head = 0;
        struct fp_err err;
        if (!fp_xray_header(x, data, n < 4096 ? n : 4096, &head, &err)) {
            int profile = x->mode == FP_XRAY_PROFILE || x->mode == FP_XRAY_PROFILE_RAW;
            struct fp_batch *b = fp_batch_new(profile ? FP_STACKS : FP_TIMELINE, capacity, profile ? 2 : 0);
            must(b != NULL);
            if (x->mode == FP_XRAY_FDR) {
                uint64_t next = head, one, other, nbytes;
                int status = FP_MORE;
                while (status == FP_MORE) {
                    must(next <= n);
                    size_t have = n - (size_t)next < 256 ? n - (size_t)next : 256;
                    struct fp_in in = {data + next, have, 0, next, 0};
                    status = fp_xray_index(x, &in, n, &next, &err);
                }
                if (status == FP_DONE) {
                    while (fp_xray_twins(x, &one, &other, &nbytes)) {
                        must(one <= n && nbytes <= n - one && other <= n && nbytes <= n - other);
                        if (!memcmp(data + one, data + other, (size_t)nbytes)) fp_xray_drop(x);
                    }
                    while (fp_xray_range(x, !lenient, &one, &nbytes)) {
                        must(one <= n && nbytes <= n - one);
                        if (feed(x, data, (size_t)one, (size_t)(one + nbytes), step, b)) break;
                    }
                }
            } else {
                feed(x, data, head, n, step, b);
            }
            fp_batch_free(b);
        }
        fp_xray_free(x);
        fp_model_free(model);
    }
    return 0;
}
