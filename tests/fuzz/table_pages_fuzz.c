/* Fuzz target: pages of Parquet.  The input is a column's width, its validity and its items, short or repeated. Checked
 * besides memory: runs and differences, decoded again, are the values of the column, and texts those of its ids.
 */
#include <stdint.h>
#include <stdlib.h>

#include "arrow/pages.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

enum { MOST = 2048 };

static uint64_t bits_at(const uint8_t *p, uint64_t bit, unsigned bits) {
    uint64_t v = 0;
    for (unsigned k = 0; k < bits; k++) v |= (uint64_t)(p[(bit + k) >> 3] >> ((bit + k) & 7) & 1) << k;
    return v;
}

/* Decodes n values of runs, which must end at `end`. */
static void check_runs(const uint8_t *p, const uint8_t *end, unsigned bits, uint64_t *v, uint32_t n) {
    for (uint32_t i = 0; i < n;) {
        uint64_t head;
        if (p >= end) abort();
        p = fp_varint_read(p, &head);
        if (head & 1) {
            for (uint64_t k = 0; k < (head >> 1) * 8 && i < n; k++) v[i++] = bits_at(p, k * bits, bits);
            p += (head >> 1) * bits;
        } else {
            if (head >> 1 > n - i) abort();
            for (uint64_t k = head >> 1; k--;) v[i++] = bits_at(p, 0, bits);
            p += (bits + 7) / 8;
        }
    }
    if (p != end) abort();
}

static void check_differences(const uint8_t *p, const uint8_t *end, uint64_t *v, uint32_t n) {
    uint64_t block, minis, count, first;
    p = fp_varint_read(fp_varint_read(fp_varint_read(fp_varint_read(p, &block), &minis), &count), &first);
    if (block != 128 || minis != 4 || count != n) abort();
    uint64_t last = v[0] = fp_zag(first);
    for (uint32_t i = 1; i < n;) {
        uint64_t least;
        p = fp_varint_read(p, &least);
        const uint8_t *widths = p;
        p += 4;
        for (unsigned mini = 0; mini < 4 && i < n; p += 4 * widths[mini++])
            for (unsigned k = 0; k < 32 && i < n; k++)
                last = v[i++] = last + fp_zag(least) + bits_at(p, (uint64_t)k * widths[mini], widths[mini]);
    }
    if (p != end) abort();
}

static uint64_t value_of(const struct fp_arrow_rows *rows, uint32_t i) {
    uint64_t v = 0;
    memcpy(&v, (const uint8_t *)rows->items + (size_t)i * rows->width, rows->width);
    return v;
}

/* Compares entry `index` of a dictionary of texts with the text of an id. */
static void check_text(const struct fp_arrow_pages *p, uint64_t index, const struct fp_arrow_texts *texts,
                       uint64_t id) {
    const uint8_t *at = p->dictionary.p;
    uint32_t n;
    for (;; at += 4 + n) {
        if (at + 4 > p->dictionary.p + p->dictionary.n) abort();
        memcpy(&n, at, 4);
        if (!index--) break;
    }
    if (id >= texts->n || n != texts->offsets[id + 1] - texts->offsets[id]) abort();
    if (memcmp(at + 4, texts->bytes + texts->offsets[id], n)) abort();
}

/* Compares the chunk with its rows; `texts`: NULL for numbers. */
static void check_chunk(const struct fp_arrow_pages *p, const struct fp_arrow_rows *rows,
                        const struct fp_arrow_texts *texts) {
    static uint64_t levels[MOST], found[MOST];
    const uint8_t *at = p->data.p, *end = p->data.p + p->data.n;
    if (p->n_values > MOST) abort();
    if (rows->valid) {
        uint32_t n;
        memcpy(&n, at, 4);
        check_runs(at + 4, at + 4 + n, 1, levels, rows->n);
        at += 4 + n;
    }
    if (p->encoding == FP_ARROW_DICTIONARY) check_runs(at + 1, end, *at, found, p->n_values);
    if (p->encoding == FP_ARROW_DELTA) check_differences(at, end, found, p->n_values);
    if (p->encoding == FP_ARROW_PLAIN && end - at != p->n_values * (ptrdiff_t)sizeof *found) abort();
    if (p->encoding == FP_ARROW_PLAIN && p->n_values) memcpy(found, at, p->n_values * sizeof *found);
    const uint32_t width = rows->width == 8 ? 8 : 4;
    uint32_t k = 0;
    for (uint32_t i = 0; i < rows->n; i++) {
        const unsigned has = rows->valid ? rows->valid[i >> 3] >> (i & 7) & 1u : 1;
        if (rows->valid && levels[i] != has) abort();
        if (!has) continue;
        uint64_t v = found[k++];
        if (texts) {
            check_text(p, v, texts, value_of(rows, i));
            continue;
        }
        if (p->encoding == FP_ARROW_DICTIONARY) {
            const uint64_t index = v;
            v = 0;
            memcpy(&v, p->dictionary.p + index * width, width);
        }
        if (width == 4) v = (uint32_t)v;
        if (v != value_of(rows, i)) abort();
    }
    if (k != p->n_values) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    if (n < 6) return 0;
    struct fp_arrow_rows rows = {.width = 1u << (data[0] & 3), .is_signed = data[0] >> 2 & 1};
    const unsigned is_nullable = data[0] >> 3 & 1, distinct = data[0] >> 4 & 1, repeats = 1u << (data[1] & 7);
    const int is_portable = data[0] >> 5 & 1;
    data += 2;
    n -= 2;
    const size_t distinct_items = n / rows.width;
    rows.n = (uint32_t)(distinct_items * repeats < MOST ? distinct_items * repeats : MOST);
    if (!rows.n) return 0; /* has no chunk */
    uint8_t *items = malloc((size_t)rows.n * rows.width + 1), *valid = malloc(rows.n / 8 + 1);
    if (!items || !valid) abort();
    for (uint32_t i = 0; i < rows.n; i++)
        memcpy(items + (size_t)i * rows.width, data + (size_t)(i / repeats) * rows.width, rows.width);
    for (uint32_t i = 0; i <= rows.n / 8; i++) valid[i] = data[i / repeats % n];
    rows.items = items;
    rows.valid = is_nullable ? valid : NULL;
    struct fp_arrow_pages *p = fp_arrow_pages_new();
    if (!p) abort();
    p->is_portable = is_portable;
    if (fp_arrow_pages_numbers(p, &rows, distinct)) abort();
    check_chunk(p, &rows, NULL);
    if (rows.width == 8) {
        if (fp_arrow_pages_reals(p, &rows)) abort();
        check_chunk(p, &rows, NULL);
    }
    static const int64_t offsets[] = {0, 0, 3, 7};
    const struct fp_arrow_texts texts = {offsets, (const uint8_t *)"onetwo.", 3};
    struct fp_err err;
    if (rows.width == 1 || rows.width == 4) {
        if (data[0] & 1) /* half of the inputs have only ids of texts */
            for (uint32_t i = 0; i < rows.n * rows.width; i++) items[i] = i % rows.width ? 0 : items[i] % texts.n;
        if (!fp_arrow_pages_texts(p, &rows, &texts, n, &err)) check_chunk(p, &rows, &texts);
    }
    fp_arrow_pages_free(p);
    free(items);
    free(valid);
    return 0;
}
