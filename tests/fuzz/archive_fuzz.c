/* The archive's payloads under the fuzzer.  Byte 0 chooses: tables, rows or the difference of two halves, of rows or of
 * tables, and the batch's capacity; the rest is the payload.  The rows read are written again, which must read back to
 * the same rows. */
#include <stdlib.h>

#include "archive/private.h"
#include "mutate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct fp_model *small_model(void) {
    struct fp_model *m = fp_model_new();
    for (uint32_t i = 1; i < 60; i++) {
        uint32_t name =
            fp_strings_intern(&m->strings, "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz12345678", i);
        fp_model_function(m, 0, 0, name, 0, i);
        fp_model_stack(m, i - 1, fp_model_frame(m, 0, i, 0, 0));
        fp_model_label(m, 0, name, 0, i, 0);
        fp_model_thread(m, 0, 1, i);
    }
    return m;
}

static uint64_t mix(uint64_t h, uint64_t v) {
    return fp_mix(h ^ v, 0x9e3779b97f4a7c15u);
}

/* A digest of the rows. */
static uint64_t digest(const struct fp_batch *b, uint64_t h) {
    for (uint32_t i = 0; i < b->n; i++) {
        h = mix(h, b->part);
        if (b->view == FP_TIMELINE) {
            int payload = b->op[i] == FP_OP_CUSTOM || b->op[i] == FP_OP_TYPED;
            h = mix(mix(h, b->time[i]), (uint64_t)b->function[i] << 8 | b->op[i]);
            h = mix(mix(h, b->thread[i]), b->cpu[i]);
            if (!payload)
                h = mix(h, b->aux[i]);
            else if ((uint32_t)b->aux[i])
                h = mix(h, fp_hash_bytes(b->bytes + (b->aux[i] >> 32), (uint32_t)b->aux[i]));
        } else if (b->view == FP_STACKS) {
            h = mix(mix(h, b->stack[i]), b->time[i]);
            h = mix(mix(h, b->label[i]), b->thread[i]);
        } else {
            h = mix(mix(h, b->kind[i]), (uint64_t)b->function[i] << 32 | b->file[i]);
            h = mix(mix(h, b->line[i]), mix(b->address[i], b->bb[i]));
            h = mix(mix(h, b->callee[i]), mix(b->target_line[i], b->target_address[i]));
            h = mix(mix(h, b->target_bb[i]), mix(b->target_file[i], mix(b->count[i], b->count2[i])));
        }
        for (uint32_t k = 0; k < b->n_values; k++) h = mix(h, (uint64_t)b->values[(size_t)k * b->cap + i]);
    }
    return h;
}

/* Reads all rows of a payload; `enc`, if given, collects them, and `filter` drops some.  0 when damaged. */
static uint64_t rows(struct fp_archive_ids *ids, const uint8_t *p, size_t n, uint32_t cap, struct fp_archive_enc *enc,
                     struct fp_archive_filter *filter) {
    struct fp_err err;
    struct fp_archive_dec *d = fp_archive_dec_new(ids);
    fp_archive_dec_filter(d, filter);
    struct fp_batch *b = fp_batch_new(p[0], cap, 0);
    uint64_t h = 1;
    int status = fp_archive_dec_open(d, p, n, 3, &err);
    for (uint64_t seen = 0; status >= 0;) {
        status = fp_archive_dec_feed(d, b, &err);
        if (status < 0) break;
        h = digest(b, h);
        seen += b->n + 1;
        /* a few bytes may encode millions of rows: stop here */
        if (seen > 20000) status = FP_E_OVERFLOW;
        /* the positions of the runs are not known here: keep all, absent ones are 0 */
        if (enc && fp_archive_enc_put(enc, b, 7, &err)) abort();
        fp_batch_reset(b);
        if (status == FP_DONE) break;
    }
    fp_batch_free(b);
    fp_archive_dec_free(d);
    return status == FP_DONE ? h : 0;
}

enum { ROWS, TABLES, DIFFERENCE, TABLES_DIFFERENCE, N_STACKS = 64 };

static int kind_of(uint8_t first) {
    return first % 4 == 3 ? (first & 4 ? TABLES_DIFFERENCE : DIFFERENCE) : first & 1 ? TABLES : ROWS;
}

/* The difference of two payloads of rows or of tables, as `kind` chooses. */
static int make_difference(int kind, const uint8_t *base, size_t base_n, const uint8_t *p, size_t n,
                           struct fp_buf *out) {
    uint32_t same[N_STACKS];
    struct fp_buf stacks = {0};
    for (uint32_t i = 0; i < N_STACKS; i++) same[i] = i % 7 == 6 ? 0 : i;
    const int status = kind == TABLES_DIFFERENCE ? fp_archive_tables_diff(base, base_n, p, n, out, &stacks)
                                                 : fp_archive_diff(base, base_n, p, n, same, N_STACKS, out);
    fp_buf_free(&stacks);
    return status;
}

static int apply_difference(int kind, const uint8_t *base, size_t base_n, const uint8_t *p, size_t n,
                            struct fp_buf *out) {
    uint32_t same[N_STACKS];
    struct fp_buf stacks = {0};
    for (uint32_t i = 0; i < N_STACKS; i++) same[i] = i % 7 == 6 ? 0 : i;
    const int status = kind == TABLES_DIFFERENCE ? fp_archive_tables_undiff(base, base_n, p, n, out, &stacks)
                                                 : fp_archive_undiff(base, base_n, p, n, same, N_STACKS, out);
    fp_buf_free(&stacks);
    return status;
}

/* u16 n, n bytes of a base; the rest is tried as a payload and as a difference to the base.  What the encoder makes,
 * the decoder reads. */
static void difference(int kind, const uint8_t *p, size_t n) {
    if (n < 2) return;
    const size_t half = fp_u16(p) < n - 2 ? fp_u16(p) : n - 2;
    p += 2;
    n -= 2;
    struct fp_buf diff = {0}, again = {0}, other = {0};
    const int status = make_difference(kind, p, half, p + half, n - half, &diff);
    if (status == FP_DONE && kind == TABLES_DIFFERENCE && apply_difference(kind, p, half, diff.p, diff.n, &again))
        abort();
    if (status == FP_DONE && kind == DIFFERENCE) apply_difference(kind, p, half, diff.p, diff.n, &again);
    if (!apply_difference(kind, p, half, p + half, n - half, &other)) {
        fp_buf_free(&diff);
        make_difference(kind, p, half, other.p, other.n, &diff);
    }
    fp_buf_free(&diff);
    fp_buf_free(&again);
    fp_buf_free(&other);
}

/* The ids of a small model, created once because no run changes them.  With `differ` they differ from the payload's.
 */
static struct fp_archive_ids *small_ids(int differ) {
    static struct fp_archive_ids *both[2];
    struct fp_archive_ids *ids = both[differ];
    if (ids) return ids;
    struct fp_model *m = small_model(), *other = fp_model_new();
    if (differ) {
        const uint32_t name = fp_strings_intern(&other->strings, "other", 5);
        fp_model_function(other, 0, 0, name, 0, 1);
        fp_model_stack(other, 0, fp_model_frame(other, 0, 99, 0, 0));
        fp_model_label(other, 0, name, 0, 1, 0);
        fp_model_thread(other, 0, 7, 7);
    }
    uint32_t from[FP_ARCHIVE_TABLES] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
    struct fp_buf tables = {0};
    struct fp_err err;
    ids = both[differ] = fp_archive_ids_new(differ ? other : m);
    if (fp_archive_tables_write(m, from, 0, &tables) || fp_archive_tables_read(ids, tables.p, tables.n, &err)) abort();
    fp_model_free(differ ? m : other);
    fp_buf_free(&tables);
    return ids;
}

/* ---- the mutator --------------------------------------------------------- */

enum { MOST_RUNS = 16, MOST_STREAMS = 64, MOST_NBYTES = 4096 };

/* A chunk of rows, or a difference, which has the same parts. */
struct chunk {
    uint8_t view;
    uint32_t n_runs, n_streams;
    uint64_t runs[MOST_RUNS][4];
    struct fp_buf streams[MOST_STREAMS];
};

static void free_chunk(struct chunk *c) {
    for (uint32_t i = 0; i < MOST_STREAMS; i++) fp_buf_free(&c->streams[i]);
}

/* 0 if it is not a chunk, or too large. */
static int take_apart(const uint8_t *p, size_t n, struct chunk *c) {
    struct fp_cursor cur = {.p = p, .end = p + n};
    memset(c, 0, sizeof *c);
    c->view = fp_archive_byte(&cur);
    c->n_runs = fp_archive_u32(&cur);
    if (cur.status || c->n_runs > MOST_RUNS) return 0;
    for (uint32_t i = 0; i < 4 * c->n_runs; i++) c->runs[i / 4][i % 4] = fp_cursor_number(&cur);
    c->n_streams = fp_archive_u32(&cur);
    if (cur.status || c->n_streams > MOST_STREAMS) return 0;
    struct fp_cursor lengths = cur;
    for (uint32_t i = 0; i < c->n_streams; i++) fp_cursor_number(&cur);
    for (uint32_t i = 0; i < c->n_streams && !cur.status; i++) {
        const uint64_t length = fp_cursor_number(&lengths);
        if (length > (size_t)(cur.end - cur.p)) return 0;
        fp_buf_put(&c->streams[i], cur.p, (size_t)length);
        cur.p += length;
    }
    return !cur.status;
}

static void put_together(const struct chunk *c, struct fp_buf *out) {
    fp_buf_byte(out, c->view);
    fp_buf_varint(out, c->n_runs);
    for (uint32_t i = 0; i < 4 * c->n_runs; i++) fp_buf_varint(out, c->runs[i / 4][i % 4]);
    fp_buf_varint(out, c->n_streams);
    for (uint32_t i = 0; i < c->n_streams; i++) fp_buf_varint(out, c->streams[i].n);
    for (uint32_t i = 0; i < c->n_streams; i++) fp_buf_put(out, c->streams[i].p, c->streams[i].n);
}

/* Duplicates, removes or changes a run. */
static void change_runs(struct input *in, struct chunk *c) {
    const uint32_t i = below(in, MOST_RUNS), how = below(in, 6);
    if (!how && c->n_runs && c->n_runs < MOST_RUNS) {
        memcpy(c->runs[c->n_runs], c->runs[i % c->n_runs], sizeof *c->runs);
        c->n_runs++;
    } else if (how == 1 && c->n_runs) {
        c->n_runs--;
    } else if (c->n_runs) {
        c->runs[i % c->n_runs][below(in, 4)] = mostly_below(in, 8);
    }
}

/* Adds or removes streams until there are as many as the runs need. */
static void mend_streams(struct chunk *c) {
    uint64_t most = 0;
    for (uint32_t i = 0; i < c->n_runs; i++) most = c->runs[i][2] > most ? c->runs[i][2] : most;
    if (most > 16) return;
    c->n_streams = (uint32_t)(c->view == FP_TIMELINE ? FP_TIMELINE_STREAMS
                              : c->view == FP_STACKS ? FP_STACKS_STREAMS + most
                                                     : FP_GRAPH_STREAMS + 2 * most);
}

static void change_stream(struct input *in, struct chunk *c) {
    struct fp_buf *one = &c->streams[below(in, c->n_streams)], *other = &c->streams[below(in, c->n_streams)];
    switch (below(in, 6)) {
        case 0: {
            const struct fp_buf swapped = *one;
            *one = *other;
            *other = swapped;
            break;
        }
        case 1:
            if (other->n && !fp_buf_reserve(one, other->n)) fp_buf_put(one, other->p, other->n);
            break;
        case 2:
            if (!fp_buf_reserve(one, 16)) one->n = LLVMFuzzerMutate(one->p, one->n, one->n + 16);
            break;
        default: {
            if (fp_buf_reserve(one, MOST_MOVED)) break;
            struct input stream = {one->p, one->n, one->cap, in->random, 0};
            change_varints(&stream, 0, one->n);
            one->n = stream.n;
            in->random = stream.random;
        }
    }
}

/* Adds a number to each stream: a row, if each row has one in each. */
static void add_row(struct input *in, struct chunk *c) {
    for (uint32_t i = 0; i < c->n_streams; i++) fp_buf_varint(&c->streams[i], mostly_below(in, 4));
    if (c->n_runs) c->runs[c->n_runs - 1][1]++;
}

/* The chunk p[at, at + n) is changed; its new length. */
static size_t change_chunk(struct input *in, size_t at, size_t n) {
    struct chunk c;
    struct fp_buf made = {0};
    size_t length = n;
    if (take_apart(in->p + at, n, &c)) {
        for (uint32_t changes = 1 + below(in, 3); changes--;) {
            const uint32_t how = below(in, 6);
            if (!how)
                change_runs(in, &c);
            else if (how == 1)
                add_row(in, &c);
            else if (c.n_streams)
                change_stream(in, &c);
        }
        if (below(in, 8)) mend_streams(&c);
        put_together(&c, &made);
        if (made.n <= MOST_NBYTES && replace(in, at, n, made.p, made.n)) length = made.n;
    }
    free_chunk(&c);
    fp_buf_free(&made);
    return length;
}

static void put_u16(uint8_t *p, size_t v) {
    p[0] = (uint8_t)v;
    p[1] = (uint8_t)(v >> 8);
}

/* Changes a part of the input: a chunk or tables. */
static size_t change_half(struct input *in, int kind, size_t at, size_t n) {
    if (kind == DIFFERENCE) return change_chunk(in, at, n);
    const size_t before = in->n;
    change_bytes(in, at, n, 8);
    return n + in->n - before;
}

/* Replaces the base, the payload or both; the payload also by its difference to the base, or by the
 * reverse. */
static void change_difference(struct input *in, int kind) {
    const size_t half = fp_u16(in->p + 1), own = 3 + half;
    if (own > in->n) return;
    struct fp_buf made = {0};
    int status = FP_E_MALFORMED;
    switch (below(in, 6)) {
        case 0: put_u16(in->p + 1, change_half(in, kind, 3, half)); break;
        case 1: status = fp_buf_put(&made, in->p + 3, half); break;
        case 2: status = make_difference(kind, in->p + 3, half, in->p + own, in->n - own, &made); break;
        case 3: status = apply_difference(kind, in->p + 3, half, in->p + own, in->n - own, &made); break;
        default: change_half(in, kind, own, in->n - own);
    }
    if (status >= 0 && made.n <= MOST_NBYTES) replace(in, own, in->n - own, made.p, made.n);
    fp_buf_free(&made);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t n, size_t max, unsigned seed) {
    struct input in = input_of(data, n, max, seed);
    if (n < 8 || !below(&in, 8)) return LLVMFuzzerMutate(data, n, max);
    if (!below(&in, 16)) data[0] ^= (uint8_t)(below(&in, 64) << 2); /* the batch's capacity */
    const int kind = kind_of(data[0]);
    if (kind == ROWS)
        change_chunk(&in, 1, n - 1);
    else if (kind == TABLES)
        change_bytes(&in, 1, n - 1, 8);
    else
        change_difference(&in, kind);
    return in.n;
}

/* -------------------------------------------------------------------------- */

/* Tables that can be read are written and read back, as after an end of `forgotten` stacks. */
static void tables(uint32_t forgotten, const uint8_t *p, size_t n) {
    struct fp_err err;
    uint32_t sketch[FP_ARCHIVE_SKETCH];
    const int hashes = fp_archive_sketch(p, n, sketch);
    if (hashes > FP_ARCHIVE_SKETCH) abort();
    for (int i = 1; i < hashes; i++)
        if (sketch[i - 1] >= sketch[i]) abort();
    struct fp_model *empty = fp_model_new();
    struct fp_archive_ids *ids = fp_archive_ids_new(empty);
    if (!fp_archive_tables_read(ids, p, n, &err)) {
        if (hashes < 0) abort();
        uint32_t from[FP_ARCHIVE_TABLES] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
        struct fp_buf out = {0};
        struct fp_model *again = fp_model_new();
        struct fp_archive_ids *same = fp_archive_ids_new(again);
        same->forgotten = forgotten;
        if (fp_archive_tables_write(empty, from, same->forgotten, &out) ||
            fp_archive_tables_read(same, out.p, out.n, &err))
            abort();
        if (same->differ || again->strings.n != empty->strings.n || again->stacks.n != empty->stacks.n) abort();
        fp_archive_ids_free(same);
        fp_model_free(again);
        fp_buf_free(&out);
    } else if (err.offset > n) {
        abort();
    }
    fp_archive_ids_free(ids);
    fp_model_free(empty);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2) return 0;
    const int kind = kind_of(data[0]);
    if (kind == DIFFERENCE || kind == TABLES_DIFFERENCE) {
        difference(kind, data + 1, size - 1);
        return 0;
    }
    const uint32_t cap = 1 + (data[0] >> 1) * 7u;
    /* a separate block, so that a read beyond it is detected */
    size_t n = size - 1;
    uint8_t *p = malloc(n);
    memcpy(p, data + 1, n);
    if (kind == TABLES) {
        tables(data[0] >> 4, p, n);
    } else if (p[0] >= FP_TIMELINE && p[0] <= FP_GRAPH) {
        struct fp_archive_enc *enc = fp_archive_enc_new(p[0]);
        struct fp_archive_ids *ids = small_ids(0);
        uint64_t h = rows(ids, p, n, cap, enc, NULL);
        if (h && enc->rows) {
            struct fp_buf out = {0};
            if (fp_archive_enc_flush(enc, &out) || rows(ids, out.p, out.n, 97, NULL, NULL) != h) abort();
            fp_buf_free(&out);
        }
        fp_archive_enc_free(enc);
        /* some rows, into a model with further entries */
        static const uint8_t keep[] = {1, 0, 1, 1, 0, 1};
        const struct fp_mask some = {keep, sizeof keep}, all = {NULL, 0};
        struct fp_archive_filter filter = {.part = data[0] & 4 ? 0 : UINT32_MAX};
        filter.rows.last_time = data[0] & 8 ? 1000 : UINT64_MAX;
        filter.rows.threads = filter.rows.functions = data[0] & 16 ? some : all;
        filter.rows.stacks = filter.rows.labels = data[0] & 32 ? some : all;
        rows(small_ids(1), p, n, cap, NULL, &filter);
    }
    free(p);
    return 0;
}
