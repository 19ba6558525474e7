/* The archive's payloads under the fuzzer.  Byte 0 chooses: tables, rows or the
 * difference of two halves, and the batch's capacity; the rest is the payload.  Rows that were read are written
 * again, and what was written must read back to the same rows. */
#include <stdlib.h>

#include "archive/archive.h"

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

/* A digest of what the rows say. */
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

/* Reads all rows of a payload; `enc`, if given, gathers them.  0 when damaged. */
static uint64_t rows(const struct fp_archive_ids *ids, const uint8_t *p, size_t n, uint32_t cap,
                     struct fp_archive_enc *enc) {
    struct fp_err err;
    struct fp_archive_dec *d = fp_archive_dec_new(ids);
    struct fp_batch *b = fp_batch_new(p[0], cap, 0);
    uint64_t h = 1;
    int status = fp_archive_dec_open(d, p, n, 3, &err);
    for (uint64_t seen = 0; status >= 0;) {
        status = fp_archive_dec_feed(d, b, &err);
        if (status < 0) break;
        h = digest(b, h);
        seen += b->n;
        /* a few bytes may say millions of rows: enough is enough */
        if (seen > 20000) status = FP_E_OVERFLOW;
        /* the positions of the runs are not known here: all of them, what is absent is 0 */
        if (enc && fp_archive_enc_put(enc, b, 7, &err)) abort();
        fp_batch_reset(b);
        if (status == FP_DONE) break;
    }
    fp_batch_free(b);
    fp_archive_dec_free(d);
    return status == FP_DONE ? h : 0;
}

/* u16 n, n bytes of a base, and what is told against it: both ways, and what applies is taken in turn. */
static void difference(const uint8_t *p, size_t n) {
    if (n < 2) return;
    const size_t half = fp_u16(p) < n - 2 ? fp_u16(p) : n - 2;
    p += 2;
    n -= 2;
    struct fp_buf diff = {0}, again = {0}, other = {0};
    const int status = fp_archive_diff(p, half, p + half, n - half, &diff);
    if (status == FP_DONE) fp_archive_undiff(p, half, diff.p, diff.n, &again);
    if (!fp_archive_undiff(p, half, p + half, n - half, &other)) {
        fp_buf_free(&diff);
        fp_archive_diff(p, half, other.p, other.n, &diff);
    }
    fp_buf_free(&diff);
    fp_buf_free(&again);
    fp_buf_free(&other);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2) return 0;
    if (data[0] % 4 == 3) {
        difference(data + 1, size - 1);
        return 0;
    }
    struct fp_model *m = small_model();
    struct fp_err err;
    const uint32_t cap = 1 + (data[0] >> 1) * 7u;
    /* a block of its own, so that a read beyond it is seen */
    size_t n = size - 1;
    uint8_t *p = malloc(n);
    memcpy(p, data + 1, n);
    if (data[0] & 1) {
        struct fp_model *empty = fp_model_new();
        struct fp_archive_ids *ids = fp_archive_ids_new(empty);
        if (!fp_archive_tables_read(ids, p, n, &err)) {
            uint32_t from[FP_ARCHIVE_TABLES] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
            struct fp_buf out = {0};
            struct fp_model *again = fp_model_new();
            struct fp_archive_ids *same = fp_archive_ids_new(again);
            if (fp_archive_tables_write(empty, from, &out) || fp_archive_tables_read(same, out.p, out.n, &err)) abort();
            if (same->differ || again->strings.n != empty->strings.n || again->stacks.n != empty->stacks.n) abort();
            fp_archive_ids_free(same);
            fp_model_free(again);
            fp_buf_free(&out);
        } else if (err.offset > n) {
            abort();
        }
        fp_archive_ids_free(ids);
        fp_model_free(empty);
    } else if (p[0] >= FP_TIMELINE && p[0] <= FP_GRAPH) {
        struct fp_archive_enc *enc = fp_archive_enc_new(p[0]);
        struct fp_archive_ids *ids = fp_archive_ids_new(m);
        uint32_t from[FP_ARCHIVE_TABLES] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
        struct fp_buf tables = {0};
        if (fp_archive_tables_write(m, from, &tables) || fp_archive_tables_read(ids, tables.p, tables.n, &err)) abort();
        fp_buf_free(&tables);
        uint64_t h = rows(ids, p, n, cap, enc);
        if (h && enc->rows) {
            struct fp_buf out = {0};
            if (fp_archive_enc_flush(enc, &out) || rows(ids, out.p, out.n, 97, NULL) != h) abort();
            fp_buf_free(&out);
        }
        fp_archive_enc_free(enc);
        fp_archive_ids_free(ids);
    }
    free(p);
    fp_model_free(m);
    return 0;
}
