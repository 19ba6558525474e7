#include "fp_callgrind.h"
#include "fp_digits.h"

#define INLINE static inline __attribute__((always_inline))

/* `* `, `+7 ` or `-7 ` for a difference of -99..99. */
INLINE uint8_t *put_difference(uint8_t *p, int64_t d) {
    const unsigned size = (unsigned)(d < 0 ? -d : d), two = size > 9;
    *p = d == 0 ? '*' : d < 0 ? '-' : '+';
    p += 1;
    *p = (uint8_t)('0' + size / 10);
    p += two;
    *p = (uint8_t)('0' + size % 10);
    p += d != 0;
    *p = ' ';
    return p + 1;
}

/* An address or basic block: relative to `base` when that is known and near. */
INLINE uint8_t *put_address(uint8_t *p, uint64_t v, uint64_t base) {
    if (base && v - base + 99 < 199) return put_difference(p, (int64_t)(v - base));
    *p++ = '0';
    if (v) {
        *p++ = 'x';
        p = fp_put_hex(p, v);
    }
    *p = ' ';
    return p + 1;
}

INLINE uint8_t *put_line(uint8_t *p, uint64_t v, uint64_t base) {
    if (base && v - base + 99 < 199) return put_difference(p, (int64_t)(v - base));
    p = fp_put_decimal(p, v);
    *p = ' ';
    return p + 1;
}

INLINE uint8_t *put_counts(uint8_t *p, const int64_t *v, size_t stride, uint32_t n) {
    while (n > 1 && v[(n - 1) * stride] == 0) n--;
    if (n == 0) *p++ = '0';
    for (uint32_t k = 0; k < n; k++, v += stride) {
        p = fp_put_signed(p, *v);
        *p++ = ' ';
    }
    if (n) p--;
    *p = '\n';
    return p + 1;
}

INLINE uint8_t *put_costs(struct fp_cost_style *s, const struct fp_batch *b, uint32_t from, uint32_t until, uint8_t *p,
                          uint32_t *next, const uint32_t instr, const uint32_t bb, const uint32_t lines,
                          const uint32_t n_values) {
    const uint32_t function = b->function[from], file = b->file[from];
    struct fp_position base = s->base;
    uint32_t i = from;
    for (; i < until && b->kind[i] == FP_COST && b->function[i] == function && b->file[i] == file; i++) {
        if (instr) {
            p = put_address(p, b->address[i], base.address);
            base.address = s->compress ? b->address[i] : 0;
        }
        if (bb) {
            p = put_address(p, b->bb[i], base.bb);
            base.bb = s->compress ? b->bb[i] : 0;
        }
        if (lines) {
            p = put_line(p, b->line[i], base.line);
            base.line = s->compress ? b->line[i] : 0;
        }
        p = put_counts(p, b->values + i, b->cap, n_values);
    }
    s->base = base;
    *next = i;
    return p;
}

uint8_t *fp_put_costs(struct fp_cost_style *s, const struct fp_batch *b, uint32_t from, uint32_t until, uint8_t *p,
                      uint32_t *next) {
    const uint32_t shape = s->instr << 2 | s->bb << 1 | s->lines;
    if (shape == 5 && s->n_values == 1) return put_costs(s, b, from, until, p, next, 1, 0, 1, 1);
    if (shape == 1) return put_costs(s, b, from, until, p, next, 0, 0, 1, s->n_values);
    return put_costs(s, b, from, until, p, next, s->instr, s->bb, s->lines, s->n_values);
}

uint8_t *fp_put_positions(const struct fp_cost_style *s, const struct fp_position *at, uint8_t *p) {
    if (s->instr) p = put_address(p, at->address, s->base.address);
    if (s->bb) p = put_address(p, at->bb, s->base.bb);
    if (s->lines) p = put_line(p, at->line, s->base.line);
    return p;
}

uint8_t *fp_put_counts(const struct fp_batch *b, uint32_t row, uint32_t n_values, uint8_t *p) {
    return put_counts(p, b->values + row, b->cap, n_values);
}
