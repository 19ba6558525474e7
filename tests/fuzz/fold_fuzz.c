/* Fuzz target: the stack machine.  Four bytes of input are a record of a
 * timeline, in any order that a damaged log might have.  Checked beside memory:
 * whatever costs are kept apart by, and whether arcs or call paths are kept,
 * the time and the calls are the same in all.
 */
#include <stdint.h>
#include <stdlib.h>

#include "bridges/fold.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

enum { ROWS = 16, FUNCTIONS = 12, THREADS = 3, RECORD = 4 };

struct totals {
    uint64_t ticks, calls;
    int status;
};

static struct fp_model *new_model(void) {
    struct fp_model *m = fp_model_new();
    for (uint8_t i = 0; i < FUNCTIONS; i++) {
        uint8_t letter = (uint8_t)('a' + i);
        fp_model_function(m, 0, 0, fp_strings_intern(&m->strings, &letter, 1), 0, 0);
    }
    for (uint32_t i = 1; i <= THREADS; i++) fp_model_thread(m, 0, i / 2, i);
    return m;
}

/* The records from data[0] on, as many as fit; returns the bytes used.
 *   bits 0..2 op, 3..4 thread, 5..7 CPU | function | ticks since the record before | 255: times 2^52, or back */
static size_t fill(const uint8_t *data, size_t n, uint64_t *now, struct fp_batch *b) {
    size_t at = 0;
    fp_batch_reset(b);
    for (; at + RECORD <= n && b->n < b->cap; at += RECORD, b->n++) {
        const uint8_t *r = data + at;
        uint64_t step = r[2];
        if (r[3] == 255) step <<= 52;
        *now = r[3] == 254 && step < *now ? *now - step : *now + step;
        b->op[b->n] = r[0] & 7;
        b->thread[b->n] = 1 + (r[0] >> 3 & 3) % THREADS;
        b->cpu[b->n] = r[0] >> 5;
        b->function[b->n] = 1 + r[1] % FUNCTIONS;
        b->time[b->n] = *now;
        b->aux[b->n] = 0;
    }
    return at;
}

static struct totals fold(const uint8_t *data, size_t n, int into, int by) {
    struct fp_model *m = new_model();
    struct fp_fold *f = fp_fold_new(m, into, by);
    struct fp_batch *in = fp_batch_new(FP_TIMELINE, ROWS, 0), *out = fp_batch_new(FP_STACKS, 5, 2);
    struct totals t = {0, 0, FP_DONE};
    struct fp_err err;
    uint64_t now = 0;
    for (size_t used; t.status == FP_DONE && n >= RECORD; data += used, n -= used) {
        used = fill(data, n, &now, in);
        t.status = fp_fold_put(f, in, &err);
    }
    if (t.status == FP_DONE) t.status = fp_fold_end(f, &err);
    if (t.status == FP_DONE && into == FP_FOLD_ARCS) {
        uint64_t words[FP_NODE_WIDTH * 3], got;
        if (fp_fold_order(f, 0)) abort();
        while ((got = fp_fold_pull_nodes(f, words, sizeof words / sizeof *words)))
            for (uint64_t i = 0; i < got; i += FP_NODE_WIDTH) {
                t.ticks += words[i + 2];
                t.calls += words[i + 3];
            }
    }
    uint32_t next = 0;
    for (int status = FP_FULL; t.status == FP_DONE && into == FP_FOLD_TREE && status == FP_FULL;) {
        status = fp_fold_stacks(f, 0, &next, out, &err);
        if (status < 0) t.status = status;
        for (uint32_t i = 0; i < out->n; i++) {
            if (out->values[i] < 0 || out->values[out->cap + i] < 0) abort();
            if (!out->label[i] != !(by & FP_FOLD_BY_CPU) || !out->thread[i] != !(by & FP_FOLD_BY_THREAD)) abort();
            t.ticks += (uint64_t)out->values[i];
            t.calls += (uint64_t)out->values[out->cap + i];
        }
        fp_batch_reset(out);
    }
    fp_batch_free(in);
    fp_batch_free(out);
    fp_fold_free(f);
    fp_model_free(m);
    return t;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    static const int by[] = {0, FP_FOLD_BY_THREAD, FP_FOLD_BY_CPU, FP_FOLD_BY_THREAD | FP_FOLD_BY_CPU};
    if (n > 8192) n = 8192;
    struct totals first = fold(data, n, FP_FOLD_ARCS, 0);
    for (int i = 0; i < 5; i++) {
        struct totals t = i < 4 ? fold(data, n, FP_FOLD_TREE, by[i]) : fold(data, n, FP_FOLD_ARCS, FP_FOLD_BY_THREAD);
        /* a sum that is too large in one may be two that fit in another */
        if (t.status != FP_DONE || first.status != FP_DONE) continue;
        if (t.ticks != first.ticks || t.calls != first.calls) abort();
    }
    return 0;
}
