#include "fp_callgrind.h"
#include "fp_digits.h"

#if defined(__x86_64__) && defined(__GNUC__)
#define WIDE 1
#include <immintrin.h>
#define WIDE_TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,bmi,bmi2,popcnt")))
#else
#define WIDE 0
#endif
#define INLINE static inline __attribute__((always_inline))

/* `* `, `+7 ` or `-7 ` when v is known to be within 99 of the base, else NULL. */
INLINE uint8_t *put_near(uint8_t *p, uint64_t v, uint64_t base) {
    const uint64_t size = v < base ? base - v : v - base;
    if (!base || size > 99) return NULL;
    *p = size == 0 ? '*' : v < base ? '-' : '+';
    p += 1;
    *p = (uint8_t)('0' + size / 10);
    p += size > 9;
    *p = (uint8_t)('0' + size % 10);
    p += size != 0;
    *p = ' ';
    return p + 1;
}

/* An address or basic block: relative to `base` when that is known and near. */
INLINE uint8_t *put_address(uint8_t *p, uint64_t v, uint64_t base) {
    uint8_t *near = put_near(p, v, base);
    if (near) return near;
    *p++ = '0';
    if (v) {
        *p++ = 'x';
        p = fp_put_hex(p, v);
    }
    *p = ' ';
    return p + 1;
}

INLINE uint8_t *put_line(uint8_t *p, uint64_t v, uint64_t base) {
    uint8_t *near = put_near(p, v, base);
    if (near) return near;
    p = fp_put_decimal(p, v);
    *p = ' ';
    return p + 1;
}

/* ---- the counts of a line, behind the blank that ends its positions ---- */

INLINE uint8_t *counts_plain(struct fp_cost_style *s, const struct fp_batch *b, uint32_t row, uint32_t n, uint8_t *p) {
    (void)s;
    const int64_t *v = b->values + row;
    while (n > 1 && v[(size_t)(n - 1) * b->cap] == 0) n--;
    if (n == 0) *p++ = '0';
    for (uint32_t k = 0; k < n; k++, v += b->cap) {
        p = fp_put_signed(p, *v);
        *p++ = ' ';
    }
    if (n) p--;
    *p = '\n';
    return p + 1;
}

#if WIDE
/* Columns of eight rows to rows of eight columns. */
WIDE_TARGET INLINE void transpose(__m512i r[8]) {
    __m512i t[8], u[8];
    for (unsigned k = 0; k < 8; k += 2) {
        t[k] = _mm512_unpacklo_epi64(r[k], r[k + 1]);
        t[k + 1] = _mm512_unpackhi_epi64(r[k], r[k + 1]);
    }
    for (unsigned k = 0; k < 2; k++) { /* even rows, odd rows */
        u[k] = _mm512_shuffle_i64x2(t[k], t[k + 2], 0x88);
        u[k + 2] = _mm512_shuffle_i64x2(t[k], t[k + 2], 0xdd);
        u[k + 4] = _mm512_shuffle_i64x2(t[k + 4], t[k + 6], 0x88);
        u[k + 6] = _mm512_shuffle_i64x2(t[k + 4], t[k + 6], 0xdd);
    }
    for (unsigned k = 0; k < 4; k++) {
        r[k] = _mm512_shuffle_i64x2(u[k], u[k + 4], 0x88);
        r[k + 4] = _mm512_shuffle_i64x2(u[k], u[k + 4], 0xdd);
    }
}

/* Eight rows from `from` on into s->rows, 0 in columns that there are not. */
WIDE_TARGET static void load_rows(struct fp_cost_style *s, const struct fp_batch *b, uint32_t from) {
    s->ahead = from;
    if (b->cap - from < 8) {
        memset(s->rows, 0, sizeof s->rows);
        for (uint32_t i = from; i < b->n; i++)
            for (uint32_t k = 0; k < s->n_values; k++) s->rows[i - from][k] = b->values[(size_t)k * b->cap + i];
        return;
    }
    for (uint32_t half = 0; half < 16; half += 8) {
        __m512i r[8];
        const int64_t *v = b->values + (size_t)half * b->cap + from;
        for (uint32_t k = 0; k < 8; k++, v += b->cap)
            r[k] = half + k < s->n_values ? _mm512_loadu_si512(v) : _mm512_setzero_si512();
        if (half < s->n_values) transpose(r);
        for (uint32_t k = 0; k < 8; k++) _mm512_storeu_si512(&s->rows[k][half], r[k]);
    }
}

/* Eight numbers below 10^7, of which the first n, each behind a blank:
 *
 *     lane                 1234               0           77
 *     digits           00001234        00000000     00000077
 *     as text          ?0001234        ?0000000     ?0000077     ? = blank
 *     written             ?1234              ?0          ?77     without the zeros in front
 */
WIDE_TARGET INLINE uint8_t *put_eight(__m512i v, unsigned n, uint8_t *p) {
    /* the steps of fp_eight_digits */
    const __m512i high = _mm512_srli_epi64(_mm512_mul_epu32(v, _mm512_set1_epi64(3518437209)), 45);
    __m512i low = _mm512_sub_epi64(v, _mm512_mul_epu32(high, _mm512_set1_epi64(10000)));
    __m512i w = _mm512_or_si512(high, _mm512_slli_epi64(low, 32));
    __m512i q = _mm512_srli_epi16(_mm512_mulhi_epu16(w, _mm512_set1_epi32(5243)), 3);
    low = _mm512_sub_epi16(w, _mm512_mullo_epi16(q, _mm512_set1_epi32(100)));
    w = _mm512_or_si512(q, _mm512_slli_epi32(low, 16));
    q = _mm512_mulhi_epu16(w, _mm512_set1_epi16(6554));
    low = _mm512_sub_epi16(w, _mm512_mullo_epi16(q, _mm512_set1_epi16(10)));
    w = _mm512_or_si512(q, _mm512_slli_epi16(low, 8));
    /* all ones in the bytes before the first digit that is not 0, or before the last one */
    const __m512i some = _mm512_or_si512(w, _mm512_set1_epi64((long long)1 << 56));
    const __m512i before = _mm512_andnot_si512(some, _mm512_sub_epi64(some, _mm512_set1_epi64(1)));
    uint64_t written = _mm512_cmpneq_epu8_mask(before, _mm512_set1_epi8(-1));
    written = _bzhi_u64(written | 0x0101010101010101, 8 * n);
    w = _mm512_add_epi8(w, _mm512_set1_epi64(0x3030303030303020));
    _mm512_storeu_si512(p, _mm512_maskz_compress_epi8(written, w));
    return p + __builtin_popcountll(written);
}

WIDE_TARGET INLINE uint8_t *counts_wide(struct fp_cost_style *s, const struct fp_batch *b, uint32_t row, uint32_t n,
                                        uint8_t *p) {
    if (n - 2 > 14) return counts_plain(s, b, row, n, p); /* not 2 to 16 */
    if ((row & ~(uint32_t)7) != s->ahead) load_rows(s, b, row & ~(uint32_t)7);
    const __m512i low = _mm512_loadu_si512(s->rows[row & 7]), high = _mm512_loadu_si512(s->rows[row & 7] + 8);
    const __m512i limit = _mm512_set1_epi64(9999999);
    if (_mm512_cmpgt_epu64_mask(low, limit) | _mm512_cmpgt_epu64_mask(high, limit))
        return counts_plain(s, b, row, n, p);
    const unsigned some = _mm512_test_epi64_mask(low, low) | (unsigned)_mm512_test_epi64_mask(high, high) << 8;
    n = 32 - (unsigned)__builtin_clz(some | 1);
    p = put_eight(low, n < 8 ? n : 8, p - 1);
    if (n > 8) p = put_eight(high, n - 8, p);
    *p = '\n';
    return p + 1;
}
#endif

/* ---- lines ---- */

typedef uint8_t *counts_fn(struct fp_cost_style *s, const struct fp_batch *b, uint32_t row, uint32_t n, uint8_t *p);

INLINE uint8_t *put_costs(struct fp_cost_style *s, const struct fp_batch *b, uint32_t from, uint32_t until, uint8_t *p,
                          uint32_t *next, const uint32_t instr, const uint32_t bb, const uint32_t lines,
                          const uint32_t n_values, counts_fn *counts) {
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
        p = counts(s, b, i, n_values, p);
    }
    s->base = base;
    *next = i;
    return p;
}

INLINE uint8_t *put_shape(struct fp_cost_style *s, const struct fp_batch *b, uint32_t from, uint32_t until, uint8_t *p,
                          uint32_t *next, counts_fn *counts) {
    /* the usual columns as constants */
    const uint32_t shape = s->instr << 2 | s->bb << 1 | s->lines;
    if (shape == 5 && s->n_values == 1) return put_costs(s, b, from, until, p, next, 1, 0, 1, 1, counts_plain);
    if (shape == 1) return put_costs(s, b, from, until, p, next, 0, 0, 1, s->n_values, counts);
    return put_costs(s, b, from, until, p, next, s->instr, s->bb, s->lines, s->n_values, counts);
}

#if WIDE
WIDE_TARGET static uint8_t *put_costs_wide(struct fp_cost_style *s, const struct fp_batch *b, uint32_t from,
                                           uint32_t until, uint8_t *p, uint32_t *next) {
    return put_shape(s, b, from, until, p, next, counts_wide);
}
WIDE_TARGET static uint8_t *put_counts_wide(struct fp_cost_style *s, const struct fp_batch *b, uint32_t row,
                                            uint8_t *p) {
    return counts_wide(s, b, row, s->n_values, p);
}
#endif

uint8_t *fp_put_costs(struct fp_cost_style *s, const struct fp_batch *b, uint32_t from, uint32_t until, uint8_t *p,
                      uint32_t *next) {
#if WIDE
    if (s->wide == FP_AVX512) return put_costs_wide(s, b, from, until, p, next);
#endif
    return put_shape(s, b, from, until, p, next, counts_plain);
}

uint8_t *fp_put_positions(const struct fp_cost_style *s, const struct fp_position *at, uint8_t *p) {
    if (s->instr) p = put_address(p, at->address, s->base.address);
    if (s->bb) p = put_address(p, at->bb, s->base.bb);
    if (s->lines) p = put_line(p, at->line, s->base.line);
    return p;
}

uint8_t *fp_put_counts(struct fp_cost_style *s, const struct fp_batch *b, uint32_t row, uint8_t *p) {
#if WIDE
    if (s->wide == FP_AVX512) return put_counts_wide(s, b, row, p);
#endif
    return counts_plain(s, b, row, s->n_values, p);
}
