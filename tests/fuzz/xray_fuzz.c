/* XRay logs: the index pass, then the records, in windows and batches of sizes
 * that the input itself chooses; rows go through the stack machine's contract:
 * every id they carry is in the model. */
#include <sanitizer/asan_interface.h>
#include <stdlib.h>

#include "mutate.h"
#include "xray/read.h"
#include "xray/records.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void must(int ok) {
    if (!ok) abort();
}

/* Feeds data[offset, end) in windows of `step` bytes, growing when the decoder needs more. */
static int feed(struct fp_xray *x, const uint8_t *data, size_t offset, size_t end, size_t step, struct fp_batch *b) {
    enum { FORBIDDEN = 256 };
    struct fp_err err;
    size_t at = offset, window = step;
    for (;;) {
        const size_t n = end - at < window ? end - at : window;
        /* A read past the window is seen, and costs no copy of it. */
        const size_t forbidden = end - at - n < FORBIDDEN ? end - at - n : FORBIDDEN;
        ASAN_POISON_MEMORY_REGION(data + at + n, forbidden);
        struct fp_in in = {data + at, n, 0, at, at + n == end};
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
        ASAN_UNPOISON_MEMORY_REGION(data + at + n, forbidden);
        at += in.pos;
        /* no progress on a window: the record is longer */
        window = in.pos ? step : window * 2;
        if (status == FP_DONE) return 0;
        if (status < 0) {
            must(err.code == status && err.what != NULL);
            return status;
        }
        must(status == FP_MORE && !in.eof); /* else the engine would refill for ever */
    }
}

/* ---- the mutator --------------------------------------------------------- */

enum { HEADER_NBYTES = 32, BASIC_NBYTES = 32, MOST_RECORDS = 1024, LONGEST = 64 };

/* Puts little-endian numbers at p. */
static uint8_t *put(uint8_t *p, uint64_t v, int nbytes) {
    for (; nbytes--; v >>= 8) *p++ = (uint8_t)v;
    return p;
}

static size_t basic_record(struct input *in, uint8_t *p) {
    const uint32_t type = below(in, 2);
    p = put(p, type, 2);
    p = put(p, below(in, 2), 1);
    p = put(p, below(in, 4), 1);
    p = put(p, mostly_below(in, 6), 4);
    p = put(p, type ? below(in, 2) | (uint64_t)below(in, 2) << 32 : mostly_below(in, 1000), 8);
    p = put(p, below(in, 2), 4);
    p = put(p, below(in, 2), 4);
    put(p, 0, 8);
    return BASIC_NBYTES;
}

static size_t function_record(struct input *in, uint8_t *p) {
    const uint64_t id = mostly_below(in, 6), kind = mostly_below(in, 4);
    put(put(p, id << 4 | (kind & 7) << 1, 4), mostly_below(in, 1000), 4);
    return FUNCTION_NBYTES;
}

static size_t metadata_record(struct input *in, uint8_t *p, uint8_t kind) {
    const uint32_t size = below(in, LONGEST - METADATA_NBYTES);
    memset(p, 0, LONGEST);
    uint8_t *body = put(p, kind, 1);
    switch (kind) {
        case NEW_BUFFER:
        case PID: put(body, below(in, 3), 4); break;
        case NEW_CPU: put(put(body, below(in, 3), 2), mostly_below(in, 1000), 8); break;
        case WALL_TIME: put(put(body, below(in, 3), 8), mostly_below(in, 1000), 4); break;
        case CUSTOM_EVENT: put(put(body, size, 4), mostly_below(in, 1000), 8); return METADATA_NBYTES + size;
        case TYPED_EVENT:
            put(put(put(body, size, 4), mostly_below(in, 1000), 4), below(in, 3), 2);
            return METADATA_NBYTES + size;
        default: put(body, mostly_below(in, 1000), 8);
    }
    return METADATA_NBYTES;
}

/* Where records begin and, behind them, the end of the last; the number of records. */
static uint32_t find_records(const struct input *in, int fdr, size_t *at) {
    uint32_t n = 0;
    at[0] = HEADER_NBYTES;
    while (n < MOST_RECORDS) {
        const size_t left = in->n - at[n];
        const uint64_t nbytes = fdr ? fp_xray_record_nbytes(in->p + at[n], left, 0) : BASIC_NBYTES;
        if (!nbytes || nbytes > left) break;
        at[n + 1] = at[n] + (size_t)nbytes;
        n++;
    }
    return n;
}

static void change_header(struct input *in) {
    switch (below(in, 3)) {
        case 0: put(in->p, 1 + below(in, in->p[2] ? 5 : 3), 2); break;
        case 1: put(in->p + 4, below(in, 8), 4); break;
        default: put(in->p + 16, mostly_below(in, 512), 8);
    }
}

/* One or a few records (or the beginning of a buffer) put in, put in again, moved, taken out, or changed. */
static void change_records(struct input *in, int fdr) {
    size_t at[MOST_RECORDS + 1];
    uint8_t bytes[5 * LONGEST], *p = bytes;
    const uint32_t n = find_records(in, fdr, at), i = below(in, (size_t)n + 1), to = below(in, (size_t)n + 1);
    const uint32_t most = 1 + below(in, 4), last = n - i < most ? n : i + most;
    const size_t run = at[last] - at[i];
    switch (below(in, 6)) {
        case 0: change_header(in); break;
        case 1:
            if (!fdr) {
                p += basic_record(in, p);
            } else if (below(in, 4)) {
                p += below(in, 2) ? function_record(in, p)
                                  : metadata_record(in, p, (uint8_t)(below(in, LAST_METADATA / 2 + 1) << 1 | 1));
            } else {
                if (in->p[0] > 1) p += metadata_record(in, p, BUFFER_EXTENTS);
                p += metadata_record(in, p, NEW_BUFFER);
                p += metadata_record(in, p, WALL_TIME);
                if (in->p[0] > 2) p += metadata_record(in, p, PID);
                p += metadata_record(in, p, NEW_CPU);
            }
            replace(in, at[to], 0, bytes, (size_t)(p - bytes));
            break;
        case 2:
        case 3:
            if (run > sizeof bytes) break;
            memcpy(bytes, in->p + at[i], run);
            if (!replace(in, at[to], 0, bytes, run) || below(in, 2)) break;
            replace(in, at[i] + (to <= i ? run : 0), run, NULL, 0);
            break;
        case 4: replace(in, at[i], run, NULL, 0); break;
        default:
            if (run) LLVMFuzzerMutate(in->p + at[i], run, run);
    }
}

/* Makes extents what they have to be: the distance to the next. */
static void mend_extents(struct input *in) {
    size_t at[MOST_RECORDS + 1], end = in->n;
    for (uint32_t i = find_records(in, 1, at); i--;) {
        if (in->p[at[i]] != BUFFER_EXTENTS) continue;
        put(in->p + at[i] + 1, end - at[i] - METADATA_NBYTES, 8);
        end = at[i];
    }
}

/* Version 1: fills or cuts buffers, so that each has the size of the header. */
static void mend_fixed(struct input *in) {
    size_t size = (size_t)fp_u64(in->p + 16);
    if (size < 48 || size > 1024) put(in->p + 16, size = 256, 8);
    for (size_t start = HEADER_NBYTES; start < in->n; start += size) {
        size_t next = start;
        do {
            const uint64_t nbytes = fp_xray_record_nbytes(in->p + next, in->n - next, 0);
            if (!nbytes || nbytes > in->n - next) return;
            next += (size_t)nbytes;
        } while (next < in->n && in->p[next] != NEW_BUFFER);
        const size_t had = next - start;
        if (had > size)
            replace(in, start + size, had - size, NULL, 0);
        else if (!replace(in, next, 0, NULL, size - had))
            return;
    }
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t n, size_t max, unsigned seed) {
    struct input in = input_of(data, n, max, seed);
    /* a log with a file header in this byte order; others are bytes */
    if (n < HEADER_NBYTES || !data[0] || data[0] > 5 || data[1] || data[2] > 1 || data[3] || !below(&in, 8))
        return LLVMFuzzerMutate(data, n, max);
    const int fdr = data[2];
    for (uint32_t changes = 1 + below(&in, 3); changes--;) change_records(&in, fdr);
    if (fdr && below(&in, 4)) (data[0] > 1 ? mend_extents : mend_fixed)(&in);
    return in.n;
}

/* -------------------------------------------------------------------------- */

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
