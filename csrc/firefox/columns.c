/* Columns of tables, in blocks of up to 512 numbers that take as few bytes as they need:
 *
 *   16 bytes    base, the number of numbers, the bytes that each takes (0, 1, 2, 4 or 8), and whether some are none
 *   numbers     number - base; if some are none: all bits set for none
 *
 *   stacks 70000 70012 none     base 70000, 1 byte each:  00 0c ff
 *   weights 1 1 1 ...           base 1, 0 bytes each
 *
 * The last numbers of a column are kept as they are until their block ends.
 */
#include "firefox/read_private.h"

enum { BLOCK = FP_FIREFOX_BLOCK };

struct block_head {
    int64_t base;
    uint32_t n;
    uint16_t width, has_none;
};

static uint16_t width_of(uint64_t most) {
    return !most ? 0 : most <= UINT8_MAX ? 1 : most <= UINT16_MAX ? 2 : most <= UINT32_MAX ? 4 : 8;
}

/* The head of numbers that are negative or none in part. */
static struct block_head head_of_signed(const int64_t *v, uint32_t n) {
    int64_t least = INT64_MAX, most = FP_FIREFOX_NONE;
    int has_none = 0;
    for (uint32_t i = 0; i < n; i++) {
        has_none |= v[i] == FP_FIREFOX_NONE;
        if (v[i] != FP_FIREFOX_NONE && v[i] < least) least = v[i];
        if (v[i] > most) most = v[i];
    }
    if (most == FP_FIREFOX_NONE) return (struct block_head){FP_FIREFOX_NONE, n, 0, 0};
    const uint64_t range = (uint64_t)most - (uint64_t)least;
    const uint16_t width = range < UINT64_MAX ? width_of(range + (uint64_t)has_none) : 8;
    return (struct block_head){width < 8 ? least : 0, n, width, width < 8 ? (uint16_t)has_none : 0};
}

static struct block_head head_of(const int64_t *v, uint32_t n) {
    uint64_t bits = 0, more = 0; /* of the numbers, and of what they are above the first one: without branches */
    for (uint32_t i = 0; i < n; i++) {
        bits |= (uint64_t)v[i];
        more |= (uint64_t)v[i] - (uint64_t)v[0];
    }
    if (bits >> 63) return head_of_signed(v, n);
    if (width_of(more) < width_of(bits)) return (struct block_head){v[0], n, width_of(more), 0};
    return (struct block_head){0, n, width_of(bits), 0};
}

#define ENCODE(type)                                                               \
    for (uint32_t i = 0; i < n; i++) {                                             \
        const type more = (type)((uint64_t)v[i] - (uint64_t)h.base);               \
        const type x = h.has_none && v[i] == FP_FIREFOX_NONE ? (type)~0ull : more; \
        memcpy(to + i * sizeof x, &x, sizeof x);                                   \
    }

#define DECODE(type)                                                                                \
    for (uint32_t i = 0; i < h.n; i++) {                                                            \
        type x;                                                                                     \
        memcpy(&x, p + i * sizeof x, sizeof x);                                                     \
        to[i] = h.has_none && x == (type)~0ull ? FP_FIREFOX_NONE : (int64_t)((uint64_t)h.base + x); \
    }

/* Makes a block of the last numbers of a column, which has room for its head. */
static void end_block(struct fp_firefox_read *r, uint64_t at) {
    struct fp_firefox_table *t = &r->tables[at / FP_FIREFOX_COLUMNS];
    struct fp_buf *b = &t->kept[at % FP_FIREFOX_COLUMNS];
    size_t *const blocks = &t->blocks[at % FP_FIREFOX_COLUMNS];
    const uint32_t n = (uint32_t)((b->n - *blocks) / sizeof(int64_t));
    int64_t v[BLOCK];
    if (!n) return;
    memcpy(v, b->p + *blocks, n * sizeof *v);
    const struct block_head h = head_of(v, n);
    memcpy(b->p + *blocks, &h, sizeof h);
    uint8_t *const to = b->p + *blocks + sizeof h;
    if (h.width == 1) ENCODE(uint8_t)
    if (h.width == 2) ENCODE(uint16_t)
    if (h.width == 4) ENCODE(uint32_t)
    if (h.width == 8) ENCODE(uint64_t)
    r->scan.kept -= b->n;
    *blocks += sizeof h + (size_t)n * h.width;
    b->n = *blocks;
    r->scan.kept += b->n;
}

/* Makes room in a column: from 64 bytes on, because most columns of a profile with many threads have few numbers. */
static void reserve(struct fp_buf *b, size_t more) {
    const size_t need = b->n + more;
    if (need <= b->cap) return;
    const size_t cap = need > 64 ? 2 * need : 64;
    uint8_t *const p = fp_have(realloc(b->p, cap));
    b->p = p;
    b->cap = cap;
}

void fp_firefox_keep(struct fp_firefox_read *r, uint32_t column, const int64_t *v, size_t n) {
    struct fp_firefox_table *t = &r->tables[r->table];
    struct fp_buf *b = &t->kept[column];
    const uint64_t at = (uint64_t)r->table * FP_FIREFOX_COLUMNS + column;
    if (!b->n && n) FP_PUSH(r->dirty, r->n_dirty, r->scan.cap_dirty) = at;
    while (n) {
        const size_t had = (b->n - t->blocks[column]) / sizeof *v, more = n < BLOCK - had ? n : BLOCK - had;
        reserve(b, more * sizeof *v + sizeof(struct block_head));
        memcpy(b->p + b->n, v, more * sizeof *v);
        b->n += more * sizeof *v;
        r->scan.kept += more * sizeof *v;
        t->numbers[column] += more;
        v += more;
        n -= more;
        if (had + more == BLOCK) end_block(r, at);
    }
}

void fp_firefox_end_blocks(struct fp_firefox_read *r) {
    for (uint32_t i = 0; i < r->n_dirty; i++) end_block(r, r->dirty[i]);
}

void fp_firefox_kept(struct fp_firefox_read *r) {
    for (uint32_t i = 0; i < r->n_dirty; i++) {
        struct fp_firefox_table *t = &r->tables[r->dirty[i] / FP_FIREFOX_COLUMNS];
        t->kept[r->dirty[i] % FP_FIREFOX_COLUMNS].n = t->blocks[r->dirty[i] % FP_FIREFOX_COLUMNS] = 0;
    }
    r->n_dirty = 0;
    r->scan.kept = 0;
}

void fp_firefox_window(struct fp_firefox_read *r, const uint8_t *p, size_t nbytes) {
    r->rows.blocks[r->requested_column] = (struct fp_firefox_blocks){p, p + nbytes};
}

int fp_firefox_next_block(struct fp_firefox_read *r, uint32_t column) {
    struct fp_firefox_blocks *b = &r->rows.blocks[column];
    int64_t *const to = r->rows.decoded[column];
    struct block_head h;
    if (b->p == b->end) return 0;
    memcpy(&h, b->p, sizeof h);
    const uint8_t *const p = b->p + sizeof h;
    if (h.width == 0)
        for (uint32_t i = 0; i < h.n; i++) to[i] = h.base;
    if (h.width == 1) DECODE(uint8_t)
    if (h.width == 2) DECODE(uint16_t)
    if (h.width == 4) DECODE(uint32_t)
    if (h.width == 8) DECODE(uint64_t)
    b->p = p + (size_t)h.n * h.width;
    r->rows.windows[column] = (struct fp_firefox_window){to, h.n};
    return 1;
}
