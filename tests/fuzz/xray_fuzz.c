/* XRay logs: the index pass, then the records, in windows and batches of sizes that the input chooses; rows must fulfil
 * the stack machine's contract: all their ids are in the model. */
#include <sanitizer/asan_interface.h>
#include <stdlib.h>

#include "mutate.h"
#include "xray/read.h"
#include "xray/records.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void must(int ok) {
    if (!ok) abort();
}

/* The sums of rows, in any order; checks and drops them. */
static uint64_t take_rows(const struct fp_xray *x, struct fp_batch *b) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < b->n && b->view == FP_TIMELINE; i++) {
        must(b->thread[i] < x->model->threads.n && b->op[i] <= FP_OP_BUFFER);
        const uint64_t words[] = {b->thread[i], b->time[i], b->function[i], b->cpu[i], b->op[i]};
        uint64_t row = 0;
        for (size_t k = 0; k < sizeof words / sizeof *words; k++) row = (row ^ words[k]) * 0x9e3779b97f4a7c15u >> 1;
        sum += row;
    }
    for (uint32_t i = 0; i < b->n && b->view == FP_STACKS; i++) must(b->stack[i] < x->model->stacks.n);
    fp_batch_reset(b);
    return sum;
}

/* Feeds data[offset, end) in windows of `step` bytes, growing when the decoder needs more. */
static int feed(struct fp_xray *x, const uint8_t *data, size_t offset, size_t end, size_t step, struct fp_batch *b,
                uint64_t *sum) {
    enum { FORBIDDEN = 256 };
    struct fp_err err;
    size_t at = offset, window = step;
    for (;;) {
        const size_t n = end - at < window ? end - at : window;
        /* Detects a read past the window without copying it. */
        const size_t forbidden = end - at - n < FORBIDDEN ? end - at - n : FORBIDDEN;
        ASAN_POISON_MEMORY_REGION(data + at + n, forbidden);
        struct fp_window in = {data + at, n, 0, at, at + n == end};
        int status;
        do {
            status = fp_xray_feed(x, &in, b, &err);
            must(in.pos <= in.n && b->n <= b->cap);
            if (status == FP_NEEDS) must(!fp_xray_define(x, x->requested, x->requested % 7));
            if (status == FP_FULL || status == FP_DONE) *sum += take_rows(x, b);
        } while (status == FP_NEEDS || status == FP_FULL);
        ASAN_UNPOISON_MEMORY_REGION(data + at + n, forbidden);
        at += in.pos;
        /* no progress on a window: the record is longer */
        window = in.pos ? step : window * 2;
        if (status == FP_DONE) return 0;
        if (status < 0) {
            must(err.code == status && err.what != NULL);
            return status;
        }
        must(status == FP_MORE && !in.eof); /* or the engine would refill forever */
    }
}

/* FDR: finds the buffers.  FP_DONE or an error. */
static int find_buffers(struct fp_xray *x, const uint8_t *data, size_t n, size_t head) {
    uint64_t next = head, one, other, nbytes;
    int status = FP_MORE;
    struct fp_err err;
    while (status == FP_MORE) {
        must(next <= n);
        const size_t have = n - (size_t)next < 256 ? n - (size_t)next : 256;
        struct fp_window in = {data + next, have, 0, next, 0};
        status = fp_xray_index(x, &in, n, &next, &err);
    }
    while (status == FP_DONE && fp_xray_duplicates(x, &one, &other, &nbytes)) {
        must(one <= n && nbytes <= n - one && other <= n && nbytes <= n - other);
        if (!memcmp(data + one, data + other, (size_t)nbytes)) fp_xray_drop(x);
    }
    return status;
}

enum { SHARES = 2, PIECE_NBYTES = 600, PIECE_BUFFERS = 5 };

/* One share of the buffers from `first` to `end` - 1.  0 or an error. */
static int feed_share(struct fp_xray_share *s, const struct fp_xray_piece *piece, uint32_t first, uint32_t end,
                      struct fp_batch *b, uint64_t *sum) {
    fp_xray_share_take(s, piece, 0, first, end);
    for (;;) {
        const int status = s->feed.fill(&s->feed);
        must(status != FP_MORE && s->next <= end && b->n <= b->cap);
        if (status == FP_NEEDS) must(!fp_xray_define(s->x, s->x->requested, s->x->requested % 7));
        if (status == FP_FULL || status == FP_DONE) *sum += take_rows(s->x, b);
        if (status == FP_DONE) return 0;
        if (status < 0) return status;
    }
}

/* FDR: the same log, decoded in pieces by shares, must have the same rows. */
static void compare_pieces(const uint8_t *data, size_t n, struct fp_batch *b, int failed, uint64_t expected) {
    struct fp_model *model = fp_model_new();
    struct fp_xray *x = fp_xray_new(model, 0);
    struct fp_xray_share *shares[SHARES];
    struct fp_err err;
    size_t head;
    must(model && x && !fp_xray_header(x, data, n < 4096 ? n : 4096, &head, &err));
    must(find_buffers(x, data, n, head) == FP_DONE);
    uint8_t *bytes = malloc(PIECE_NBYTES);
    struct fp_xray_buffer buffers[PIECE_BUFFERS];
    struct fp_xray_piece piece = {
        .bytes = bytes, .cap_bytes = PIECE_NBYTES, .buffers = buffers, .cap_buffers = PIECE_BUFFERS};
    static struct fp_shares divided;
    divided = (struct fp_shares){.n = SHARES};
    uint64_t nothing = UINT64_MAX; /* no share waits for another */
    for (uint32_t i = 0; i < SHARES; i++) must((shares[i] = fp_xray_share_new(x, i, &divided, &nothing, b)) != NULL);
    uint64_t sum = 0, offset, nbytes;
    int status = 0;
    fp_batch_reset(b);
    while (!status) {
        fp_xray_fill(x, &piece);
        if (!piece.n) { /* too large, or the end */
            if (!fp_xray_range(x, 0, &offset, &nbytes)) break;
            status = feed(x, data, (size_t)offset, (size_t)(offset + nbytes), 4096, b, &sum);
        }
        for (uint32_t i = 0; i < piece.n;) {
            const struct fp_xray_buffer *first = &buffers[i];
            const size_t run = fp_xray_run(&piece, &i);
            must(i <= piece.n && first->at + run <= PIECE_NBYTES && first->offset + run <= n);
            memcpy(bytes + first->at, data + first->offset, run);
        }
        for (uint32_t i = 0; i < piece.n && !status; i++) {
            const uint32_t end = (uint32_t)fp_xray_threads(x, &piece, i);
            uint32_t firsts[SHARES] = {FP_NO_ID, FP_NO_ID}, thread, next = i;
            while ((thread = fp_xray_firsts(&piece, &next, end, &divided, firsts)) != FP_NO_ID)
                fp_shares_assign(&divided, thread, fp_xray_thread_nbytes(x, 0, thread));
            for (uint32_t k = 0; k < SHARES && !status; k++) status = feed_share(shares[k], &piece, i, end, b, &sum);
            i = end;
            if (i == piece.n || status) break;
            offset = buffers[i].offset;
            status = feed(x, data, (size_t)offset, (size_t)(offset + buffers[i].nbytes), 4096, b, &sum);
        }
    }
    must(!status == !failed && (failed || sum == expected));
    free(bytes);
    for (uint32_t i = 0; i < SHARES; i++) fp_xray_share_free(shares[i]);
    fp_xray_free(x);
    fp_model_free(model);
}

/* ---- the mutator --------------------------------------------------------- */

enum { HEADER_NBYTES = 32, BASIC_NBYTES = 32, BLOCK_NBYTES = 16, SUMS_NBYTES = 16, LONGEST = 64 };

static size_t basic_record(struct input *in, uint8_t *p) {
    const uint32_t type = below(in, 2);
    p = put(in, p, type, 2);
    p = put(in, p, below(in, 2), 1);
    p = put(in, p, below(in, 4), 1);
    p = put(in, p, mostly_below(in, 6), 4);
    p = put(in, p, type ? below(in, 2) | (uint64_t)below(in, 2) << 32 : mostly_below(in, 1000), 8);
    p = put(in, p, below(in, 2), 4);
    p = put(in, p, below(in, 2), 4);
    put(in, p, 0, 8);
    return BASIC_NBYTES;
}

static size_t function_record(struct input *in, uint8_t *p) {
    const uint64_t id = mostly_below(in, 6), kind = mostly_below(in, 4);
    put(in, put(in, p, id << 4 | (kind & 7) << 1, 4), mostly_below(in, 1000), 4);
    return FP_XRAY_FUNCTION_NBYTES;
}

static size_t metadata_record(struct input *in, uint8_t *p, uint8_t kind) {
    const uint32_t size = below(in, LONGEST - FP_XRAY_METADATA_NBYTES);
    memset(p, 0, LONGEST);
    uint8_t *body = put(in, p, kind, 1);
    switch (kind) {
        case FP_XRAY_NEW_BUFFER:
        case FP_XRAY_PID: put(in, body, below(in, 3), 4); break;
        case FP_XRAY_NEW_CPU: put(in, put(in, body, below(in, 3), 2), mostly_below(in, 1000), 8); break;
        case FP_XRAY_WALL_TIME: put(in, put(in, body, below(in, 3), 8), mostly_below(in, 1000), 4); break;
        case FP_XRAY_CUSTOM_EVENT:
            put(in, put(in, body, size, 4), mostly_below(in, 1000), 8);
            return FP_XRAY_METADATA_NBYTES + size;
        case FP_XRAY_TYPED_EVENT:
            put(in, put(in, put(in, body, size, 4), mostly_below(in, 1000), 4), below(in, 3), 2);
            return FP_XRAY_METADATA_NBYTES + size;
        default: put(in, body, mostly_below(in, 1000), 8);
    }
    return FP_XRAY_METADATA_NBYTES;
}

/* Records of a basic log, or of FDR buffers. */
static void find_records(const struct input *in, int fdr, struct pieces *q) {
    size_t left;
    begin_pieces(q, HEADER_NBYTES);
    do left = in->n - q->at[q->n];
    while (add_piece(q, fdr ? fp_xray_record_nbytes(in->p + q->at[q->n], left, in->big) : (size_t)BASIC_NBYTES, left));
}

static void change_header(struct input *in, int fdr) {
    switch (below(in, 3)) {
        case 0: put(in, in->p, 1 + below(in, fdr ? 5 : 3), 2); break;
        case 1: put(in, in->p + 4, below(in, 8), 4); break;
        default: put(in, in->p + 16, mostly_below(in, 512), 8);
    }
}

/* Adds a record or the beginning of a buffer, or changes whole records. */
static void change_records(struct input *in, int fdr) {
    const uint64_t version = get(in, in->p, 2);
    struct pieces q;
    uint8_t bytes[5 * LONGEST], *p = bytes;
    find_records(in, fdr, &q);
    const uint32_t how = below(in, 6);
    if (!how) {
        change_header(in, fdr);
    } else if (how > 1) {
        change_pieces(in, &q);
    } else {
        if (!fdr) {
            p += basic_record(in, p);
        } else if (below(in, 4)) {
            p += below(in, 2) ? function_record(in, p)
                              : metadata_record(in, p, (uint8_t)(below(in, FP_XRAY_LAST_METADATA / 2 + 1) << 1 | 1));
        } else {
            if (version > 1) p += metadata_record(in, p, FP_XRAY_BUFFER_EXTENTS);
            p += metadata_record(in, p, FP_XRAY_NEW_BUFFER);
            p += metadata_record(in, p, FP_XRAY_WALL_TIME);
            if (version > 2) p += metadata_record(in, p, FP_XRAY_PID);
            p += metadata_record(in, p, FP_XRAY_NEW_CPU);
        }
        replace(in, between_pieces(in, &q), 0, bytes, (size_t)(p - bytes));
    }
}

/* Corrects the extents: the distance to the next. */
static void mend_extents(struct input *in) {
    struct pieces q;
    size_t end = in->n;
    find_records(in, 1, &q);
    for (uint32_t i = q.n; i--;) {
        if (in->p[q.at[i]] != FP_XRAY_BUFFER_EXTENTS) continue;
        put(in, in->p + q.at[i] + 1, end - q.at[i] - FP_XRAY_METADATA_NBYTES, 8);
        end = q.at[i];
    }
}

/* Version 1: fills or cuts buffers, so that each has the size of the header. */
static void mend_fixed(struct input *in) {
    size_t size = (size_t)get(in, in->p + 16, 8);
    if (size < 48 || size > 1024) put(in, in->p + 16, size = 256, 8);
    for (size_t start = HEADER_NBYTES; start < in->n; start += size) {
        size_t next = start;
        do {
            const uint64_t nbytes = fp_xray_record_nbytes(in->p + next, in->n - next, in->big);
            if (!nbytes || nbytes > in->n - next) return;
            next += (size_t)nbytes;
        } while (next < in->n && in->p[next] != FP_XRAY_NEW_BUFFER);
        const size_t had = next - start;
        if (had > size)
            replace(in, start + size, had - size, NULL, 0);
        else if (!replace(in, next, 0, NULL, size - had))
            return;
    }
}

/* The ids of a call path as pieces, without the final 0, after which its sums begin.  Returns the length of its record
 * in [at, end); 0: not a record. */
static uint64_t find_ids(const struct input *in, size_t at, size_t end, struct pieces *ids) {
    begin_pieces(ids, at);
    while (end - ids->at[ids->n] >= 4 && get(in, in->p + ids->at[ids->n], 4))
        if (!add_piece(ids, 4, 4)) return 0;
    const size_t nbytes = ids->at[ids->n] - at + 4 + SUMS_NBYTES;
    return nbytes <= end - at ? nbytes : 0;
}

static size_t path_record(struct input *in, uint8_t *p) {
    const uint8_t *start = p;
    for (uint32_t depth = 1 + below(in, 4); depth--;) p = put(in, p, 1 + mostly_below(in, 6), 4);
    p = put(in, put(in, p, 0, 4), mostly_below(in, 10), 8);
    return (size_t)(put(in, p, mostly_below(in, 1000), 8) - start);
}

/* Profiling mode: whole blocks, the records of a block, or the ids and sums of a record.  In the layout without
 * file header each record is a block, whose size is not used. */
static void change_profile(struct input *in, int bare) {
    struct pieces blocks, records, ids;
    uint8_t bytes[BLOCK_NBYTES + LONGEST];
    begin_pieces(&blocks, bare ? 0 : HEADER_NBYTES);
    for (uint64_t nbytes = 1; nbytes;) {
        const size_t at = blocks.at[blocks.n], left = in->n - at;
        nbytes = left < BLOCK_NBYTES ? 0 : bare ? find_ids(in, at + BLOCK_NBYTES, in->n, &ids) : get(in, in->p + at, 4);
        if (bare && nbytes) nbytes += BLOCK_NBYTES;
        if (!bare && left >= HEADER_NBYTES && !memcmp(in->p + at, in->p, 8)) nbytes = HEADER_NBYTES; /* another log */
        if (!add_piece(&blocks, nbytes, left)) break;
    }
    const uint32_t how = below(in, 8), i = blocks.n ? below(in, blocks.n) : 0;
    const size_t begin = blocks.at[i], before = in->n;
    if (!how || !blocks.n || blocks.at[i + 1] - begin < BLOCK_NBYTES) {
        memset(bytes, 0, BLOCK_NBYTES);
        put(in, bytes + 8, mostly_below(in, 3), 8);
        const size_t n = BLOCK_NBYTES + path_record(in, bytes + BLOCK_NBYTES);
        put(in, bytes, n, 4);
        replace(in, between_pieces(in, &blocks), 0, bytes, n);
        return;
    }
    if (how < 3) {
        change_pieces(in, &blocks);
        return;
    }
    begin_pieces(&records, begin + BLOCK_NBYTES);
    while (add_piece(&records, find_ids(in, records.at[records.n], blocks.at[i + 1], &ids), in->n)) {
    }
    if (how == 3 && !bare) {
        replace(in, between_pieces(in, &records), 0, bytes, path_record(in, bytes));
    } else if (how == 4 && !bare) {
        change_pieces(in, &records);
    } else if (records.n) {
        const uint32_t k = below(in, records.n);
        find_ids(in, records.at[k], records.at[k + 1], &ids);
        uint8_t *sum = in->p + records.at[k + 1] - 8 * (1 + below(in, 2));
        put(in, bytes, 1 + mostly_below(in, 6), 4);
        if (how == 5)
            put(in, sum, other_number(in, get(in, sum, 8)), 8);
        else if (how == 6)
            replace(in, between_pieces(in, &ids), 0, bytes, 4);
        else
            change_pieces(in, &ids);
    }
    put(in, in->p + begin, blocks.at[i + 1] - begin + in->n - before, 4);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t n, size_t max, unsigned seed) {
    struct input in = input_of(data, n, max, seed);
    struct fp_xray x = {0};
    struct fp_err err;
    size_t head;
    if (!below(&in, 8) || n < HEADER_NBYTES || fp_xray_header(&x, data, n, &head, &err))
        return LLVMFuzzerMutate(data, n, max);
    in.big = x.swap;
    const int fdr = x.mode == FP_XRAY_FDR;
    for (uint32_t changes = 1 + below(&in, 3); changes-- && in.n >= HEADER_NBYTES;)
        if (fdr || x.mode == FP_XRAY_BASIC)
            change_records(&in, fdr);
        else
            change_profile(&in, x.mode == FP_XRAY_PROFILE_RAW);
    if (fdr && below(&in, 4)) (get(&in, data, 2) > 1 ? mend_extents : mend_fixed)(&in);
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
            uint64_t at, nbytes, sum = 0;
            if (x->mode != FP_XRAY_FDR) {
                feed(x, data, head, n, step, b, &sum);
            } else if (find_buffers(x, data, n, head) == FP_DONE) {
                int status = 0;
                while (!status && fp_xray_range(x, lenient ? 0 : UINT64_MAX, &at, &nbytes)) {
                    must(at <= n && nbytes <= n - at);
                    status = feed(x, data, (size_t)at, (size_t)(at + nbytes), step, b, &sum);
                }
                if (!lenient) compare_pieces(data, n, b, status, sum);
            }
            fp_batch_free(b);
        }
        fp_xray_free(x);
        fp_model_free(model);
    }
    return 0;
}
