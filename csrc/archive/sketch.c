/* The sketch of tables: the smallest hashes of what distinguishes programs.  See archive.h. */
#include "archive/private.h"
#include "archive/row_layout.h"

/* Distinct hashes, ascending. */
struct lowest {
    uint32_t *v, n;
};

static void note(struct lowest *l, uint64_t hash) {
    const uint32_t h = (uint32_t)(hash >> 32);
    if (l->n == FP_ARCHIVE_SKETCH && h >= l->v[l->n - 1]) return;
    uint32_t at = l->n;
    while (at && l->v[at - 1] > h) at--;
    if (at && l->v[at - 1] == h) return;
    if (l->n < FP_ARCHIVE_SKETCH) l->n++;
    memmove(l->v + at + 1, l->v + at, (l->n - at - 1) * sizeof *l->v);
    l->v[at] = h;
}

static int note_strings(struct lowest *l, struct fp_cursor *c) {
    fp_archive_u32(c);
    const uint32_t n = fp_archive_u32(c);
    if (c->status || n > (size_t)(c->end - c->p)) return FP_E_MALFORMED;
    struct fp_cursor lengths = *c;
    for (uint32_t i = 0; i < n; i++) fp_cursor_number(c);
    for (uint32_t i = 0; i < n; i++) {
        const uint64_t length = fp_cursor_number(&lengths);
        if (c->status || length > (size_t)(c->end - c->p)) return FP_E_MALFORMED;
        note(l, fp_mix(fp_hash_bytes(c->p, (size_t)length), length));
        c->p += length;
    }
    return 0;
}

/* Moves to the columns of the next table, of which there are `columns` with *n numbers each. */
static int open_table(struct fp_cursor *c, uint32_t columns, uint32_t *n) {
    fp_archive_u32(c);
    *n = fp_archive_u32(c);
    return c->status || *n > (size_t)(c->end - c->p) / columns ? FP_E_MALFORMED : 0;
}

static void skip(struct fp_cursor *c, uint64_t numbers) {
    for (uint64_t i = 0; i < numbers && !c->status; i++) fp_cursor_number(c);
}

/* Where mapping i (from 1 on) would begin if the object's bytes did at 0: starts[i - 1]. */
static int take_starts(struct fp_cursor *c, uint32_t n, uint64_t *starts) {
    struct fp_cursor start = *c, offset;
    skip(&start, n); /* objects */
    offset = start;
    skip(&offset, 2 * (uint64_t)n); /* starts, limits */
    uint64_t first = 0, file = 0;
    for (uint32_t i = 0; i < n; i++) {
        first += fp_zag(fp_cursor_number(&start));
        file += fp_zag(fp_cursor_number(&offset));
        starts[i] = first - file;
    }
    return start.status || offset.status ? FP_E_MALFORMED : 0;
}

static void note_frames(struct lowest *l, struct fp_cursor *c, uint32_t n, const uint64_t *starts, uint32_t n_starts) {
    struct fp_cursor mapping = *c, address, line;
    address = mapping;
    skip(&address, n);
    line = address;
    skip(&line, 2 * (uint64_t)n); /* addresses, flags */
    uint64_t m = 0, a = 0, named = 0;
    for (uint32_t i = 0; i < n && !line.status; i++) {
        m += fp_zag(fp_cursor_number(&mapping));
        a += fp_zag(fp_cursor_number(&address));
        named += fp_zag(fp_cursor_number(&line));
        if (!named) note(l, fp_mix(a - (m && m <= n_starts ? starts[m - 1] : 0), 1));
    }
}

int fp_archive_sketch(const uint8_t *p, size_t n, uint32_t *out) {
    struct lowest found = {out, 0};
    struct fp_cursor c = {.p = p, .end = p + n};
    uint64_t *starts = NULL;
    uint32_t rows, n_starts = 0;
    int status = note_strings(&found, &c);
    for (unsigned k = 0; k <= FP_T_FRAMES - 1 && !status; k++) {
        const uint32_t columns = fp_archive_columns_of(k);
        status = open_table(&c, columns, &rows);
        if (status) break;
        if (k + 1 == FP_T_MAPPINGS && rows) {
            n_starts = rows;
            starts = fp_scratch(rows, sizeof *starts);
            status = take_starts(&c, rows, starts);
        }
        if (k + 1 == FP_T_FRAMES) note_frames(&found, &c, rows, starts, n_starts);
        skip(&c, (uint64_t)columns * rows);
        if (c.status && !status) status = FP_E_MALFORMED;
    }
    fp_scratch_free(starts);
    return status ? status : (int)found.n;
}
