#include "fp_callgrind.h"

#include "fp_callgrind_wide.h"
#include "fp_digits.h"

/* Lines are read in blocks of 64 bytes, of which every property is a bit mask
 * (bit i for byte i), so that a block of several lines is checked and taken
 * apart without a branch a byte, a number or a line:
 *
 *     text      + 4   1 2   7 \n * - 3   5 \n 0 x ...
 *     newline   0 0 0 0 0 0 0 1  0 0 0 0 0 1
 *     field     1 1 0 1 1 0 1 0  1 1 1 0 1 0     of whole cost lines only
 *     start     1 0 0 1 0 0 1 0  1 0 0 0 1 0
 *     end       0 0 1 0 0 1 0 1  0 ...           behind a field's last byte
 *     first     1 0 0 0 0 0 0 0  1 0 ...         of a line
 */
struct block {
    uint64_t newline, blank, digit, star, sign; /* sign: + and - */
};

/* ---- any machine -------------------------------------------------------- */

INLINE struct block block_plain(const uint8_t *p) {
    struct block m = {0, 0, 0, 0, 0};
    for (unsigned i = 0; i < 64; i += 16) {
        const struct fp_masks16 part = fp_masks16(p + i);
        m.newline |= (uint64_t)part.newline << i;
        m.blank |= (uint64_t)part.blank << i;
        m.digit |= (uint64_t)part.digit << i;
        m.star |= (uint64_t)part.star << i;
        m.sign |= (uint64_t)part.sign << i;
    }
    return m;
}

/* ---- AVX2 with BMI2 ------------------------------------------------------ */

#if WIDE
AVX2_TARGET INLINE uint64_t equal_avx2(__m256i low, __m256i high, char c) {
    const __m256i all = _mm256_set1_epi8(c);
    return (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(low, all)) |
           (uint64_t)(uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(high, all)) << 32;
}

AVX2_TARGET INLINE struct block block_avx2(const uint8_t *p) {
    const __m256i low = _mm256_loadu_si256((const __m256i *)(const void *)p);
    const __m256i high = _mm256_loadu_si256((const __m256i *)(const void *)(p + 32));
    /* as in fp_masks16: '0'..'9' become -128..-119 */
    const __m256i shift = _mm256_set1_epi8((char)(0x80 - '0')), ten = _mm256_set1_epi8(-118);
    struct block m;
    m.newline = equal_avx2(low, high, '\n');
    m.blank = equal_avx2(low, high, ' ');
    m.star = equal_avx2(low, high, '*');
    m.sign = equal_avx2(low, high, '+') | equal_avx2(low, high, '-');
    m.digit = (uint32_t)_mm256_movemask_epi8(_mm256_cmpgt_epi8(ten, _mm256_add_epi8(low, shift))) |
              (uint64_t)(uint32_t)_mm256_movemask_epi8(_mm256_cmpgt_epi8(ten, _mm256_add_epi8(high, shift))) << 32;
    return m;
}
#endif

/* ---- AVX-512 with VBMI2 -------------------------------------------------- */

#if WIDE
WIDE_TARGET INLINE struct block block_wide(const uint8_t *p) {
    const __m512i text = _mm512_loadu_si512(p);
    struct block m;
    m.newline = _mm512_cmpeq_epi8_mask(text, _mm512_set1_epi8('\n'));
    m.blank = _mm512_cmpeq_epi8_mask(text, _mm512_set1_epi8(' '));
    m.star = _mm512_cmpeq_epi8_mask(text, _mm512_set1_epi8('*'));
    m.sign = _mm512_cmpeq_epi8_mask(text, _mm512_set1_epi8('+')) | _mm512_cmpeq_epi8_mask(text, _mm512_set1_epi8('-'));
    m.digit = _mm512_cmplt_epu8_mask(_mm512_sub_epi8(text, _mm512_set1_epi8('0')), _mm512_set1_epi8(10));
    return m;
}

/* Where the fields of a block begin and end, a byte each, and its digits as numbers, 0 elsewhere. */
struct wide_fields {
    __m512i starts, ends, digits;
};

WIDE_TARGET INLINE struct wide_fields find_fields(const uint8_t *p, uint64_t start, uint64_t end) {
    const __m512i iota =
        _mm512_set_epi64(0x3f3e3d3c3b3a3938, 0x3736353433323130, 0x2f2e2d2c2b2a2928, 0x2726252423222120,
                         0x1f1e1d1c1b1a1918, 0x1716151413121110, 0x0f0e0d0c0b0a0908, 0x0706050403020100);
    const __m512i digits = _mm512_sub_epi8(_mm512_loadu_si512(p), _mm512_set1_epi8('0'));
    const __mmask64 digit = _mm512_cmplt_epu8_mask(digits, _mm512_set1_epi8(10));
    return (struct wide_fields){_mm512_maskz_compress_epi8(start, iota), _mm512_maskz_compress_epi8(end, iota),
                                _mm512_maskz_mov_epi8(digit, digits)};
}

/* The field that each byte of eight lanes looks at: t..t+7. */
WIDE_TARGET INLINE __m512i lanes(unsigned t) {
    return _mm512_add_epi8(
        _mm512_set_epi64(0x0707070707070707, 0x0606060606060606, 0x0505050505050505, 0x0404040404040404,
                         0x0303030303030303, 0x0202020202020202, 0x0101010101010101, 0),
        _mm512_set1_epi8((char)t));
}

/* The same for every `width`th field: k, k + width, ... */
WIDE_TARGET INLINE __m512i lanes_apart(unsigned k, unsigned width) {
    const uint64_t ones = 0x0101010101010101;
    return _mm512_set_epi64((long long)(ones * (7 * width + k)), (long long)(ones * (6 * width + k)),
                            (long long)(ones * (5 * width + k)), (long long)(ones * (4 * width + k)),
                            (long long)(ones * (3 * width + k)), (long long)(ones * (2 * width + k)),
                            (long long)(ones * (width + k)), (long long)(ones * k));
}

/* A position a lane, of what is written in each: relative to the lane before, the first to `base`, but for those
 * that are `absolute`.
 *
 *     written              +2   *  100  +1   *    base 7
 *     v                     9   0  100   1   0    the first is absolute then
 *     sums s                9   9  109 110 110
 *     s before that lane    0   0    9   9   9    which is the last absolute one: what is taken off */
WIDE_TARGET INLINE __m512i eight_positions(__m512i v, __mmask8 absolute, uint64_t base) {
    const __m512i zero = _mm512_setzero_si512();
    v = _mm512_mask_add_epi64(v, ~absolute & 1, v, _mm512_set1_epi64((long long)base));
    absolute |= 1;
    __m512i s = _mm512_add_epi64(v, _mm512_alignr_epi64(v, zero, 7));
    s = _mm512_add_epi64(s, _mm512_alignr_epi64(s, zero, 6));
    s = _mm512_add_epi64(s, _mm512_alignr_epi64(s, zero, 4));
    const __m512i before = _mm512_maskz_compress_epi64(absolute, _mm512_sub_epi64(s, v));
    /* which absolute one is the last up to each lane: a byte a lane, counted by a multiplication */
    const uint64_t ones = 0x0101010101010101;
    const __m128i last = _mm_cvtsi64_si128((long long)((_pdep_u64(absolute, ones) - 1) * ones));
    return _mm512_sub_epi64(s, _mm512_permutexvar_epi64(_mm512_cvtepu8_epi64(last), before));
}

WIDE_TARGET INLINE uint64_t lane_of(__m512i v, __mmask8 lane) {
    return (uint64_t)_mm_cvtsi128_si64(_mm512_castsi512_si128(_mm512_maskz_compress_epi64(lane, v)));
}

/* The numbers of eight fields, each moved to the right end of 8 bytes:
 *
 *     lane            0                        1
 *     index = end-8+j 250 251 ... 255 0   1    253 ... 3   4
 *     in the field?   no  no      no  no  yes  no      yes yes
 *     digits          0   0       0   0   4    0       1   2
 *
 * then pairs, fours and eights of digits are put together by multiply-and-add.
 * `starts` gets the place where each begins, eight times. */
WIDE_TARGET INLINE __m512i eight_numbers(struct wide_fields f, __m512i lane, __m512i *starts) {
    const __m512i back = _mm512_set1_epi64((long long)0xfffefdfcfbfaf9f8); /* -8 .. -1 */
    const __m512i index = _mm512_add_epi8(_mm512_permutexvar_epi8(lane, f.ends), back);
    *starts = _mm512_permutexvar_epi8(lane, f.starts);
    __m512i v = _mm512_maskz_permutexvar_epi8(_mm512_cmpge_epi8_mask(index, *starts), index, f.digits);
    v = _mm512_maddubs_epi16(v, _mm512_set1_epi16(0x010a));
    v = _mm512_madd_epi16(v, _mm512_set1_epi32(0x00010064));
    return _mm512_add_epi64(_mm512_mul_epu32(v, _mm512_set1_epi64(10000)), _mm512_srli_epi64(v, 32));
}

/* The numbers of a block's fields: value, negative behind a minus; and a mask that is all ones where
 * the base is to be added, behind a sign and for `*`. */
enum { FIELDS = 32 }; /* in 64 bytes, at most */
struct fields {
    int64_t value[FIELDS + 8]; /* a round writes 8 at once */
    uint64_t relative[FIELDS + 8];
};

/* Returns bit t for each field t that is the first of its line. */
WIDE_TARGET INLINE uint64_t fields_wide(const uint8_t *p, uint64_t start, uint64_t end, uint64_t first,
                                        struct fields *f) {
    const struct wide_fields w = find_fields(p, start, end);
    const __m512i text = _mm512_loadu_si512(p), zero = _mm512_setzero_si512();
    const unsigned n = (unsigned)__builtin_popcountll(start);
    __m512i lane = lanes(0), starts;
    for (unsigned t = 0; t < n; t += 8) {
        const __m512i v = eight_numbers(w, lane, &starts);
        lane = _mm512_add_epi8(lane, _mm512_set1_epi8(8));
        const __m512i c = _mm512_permutexvar_epi8(starts, text); /* eight times the first byte of each field */
        const __mmask8 minus = _mm512_cmpeq_epi64_mask(c, _mm512_set1_epi8('-'));
        _mm512_storeu_si512(f->value + t, _mm512_mask_sub_epi64(v, minus, zero, v));
        _mm512_storeu_si512(f->relative + t, _mm512_movm_epi64(_mm512_cmplt_epu64_mask(c, _mm512_set1_epi8('0'))));
    }
    return _pext_u64(first, start);
}
#endif

/* ---- lines ----------------------------------------------------------------- */

typedef struct block block_fn(const uint8_t *p);

/* What of the batch and the part a row needs. */
struct columns {
    uint32_t instr, has_bb, lines, n_values;
    uint32_t cap;
    uint64_t *restrict address, *restrict bb;
    uint32_t *restrict line;
    int64_t *restrict values;
};

INLINE uint64_t below(unsigned n) { /* the n lowest bits, 0 <= n <= 64 */
    return n < 64 ? ((uint64_t)1 << n) - 1 : ~(uint64_t)0;
}

/* The fields of whole cost lines at the front of a block, as in the drawing above. */
struct found {
    uint64_t first, start, end;
    unsigned size; /* bytes of those lines */
};

/* 0 when there are none of the usual form.  `columns` positions a line. */
INLINE int find_lines(const struct block m, const uint32_t columns, struct found *l) {
    if (m.newline == 0) return 0;
    const uint64_t begins = m.newline << 1 | 1;
    const uint64_t other = begins & ~(m.digit | m.sign | m.star);
    unsigned size = 64 - (unsigned)__builtin_clzll(m.newline);
    if (other && fp_lowest_bit(other) < size) size = fp_lowest_bit(other);
    uint64_t in = below(size);
    uint64_t field = in & ~(m.newline | m.blank);
    uint64_t first = begins & in;
    /* Adding a bit at a field's start carries to its end. */
    uint64_t may_sign = first, at = first;
    for (uint32_t k = 1; k < columns; k++) {
        at = ((field + at) & ~field & m.blank) << 1 & field;
        may_sign |= at;
    }
    uint64_t bad = field & ~m.digit & ~((m.sign | m.star) & may_sign);
    bad |= (m.star << 1 & field) | (m.sign & in & ~(m.digit >> 1));
    uint64_t run = field; /* of nine bytes: a number of more than eight */
    run &= run >> 1;
    run &= run >> 2;
    run &= run >> 4;
    bad |= run & run >> 1;
    if (bad) {
        const uint64_t whole = m.newline & below(fp_lowest_bit(bad));
        if (!whole) return 0;
        size = 64 - (unsigned)__builtin_clzll(whole);
        in = below(size);
        field &= in;
        first &= in;
    }
    *l = (struct found){first, field & ~(field << 1), field << 1 & ~field, size};
    return 1;
}

/* A line's positions as row i's; 0 when one does not fit.  `value`: negative behind a minus; `relative`:
 * all ones where the base is to be added. */
INLINE int take_positions(const int64_t *value, const uint64_t *relative, uint32_t i, struct fp_position *here,
                          const struct columns *c) {
    if (c->instr) {
        const uint64_t base = here->address;
        here->address = (base & *relative++) + (uint64_t)*value++;
        if ((here->address ^ base) >> 63) return 0; /* perhaps beyond 2^64 */
        c->address[i] = here->address;
    }
    if (c->has_bb) {
        const uint64_t base = here->bb;
        here->bb = (base & *relative++) + (uint64_t)*value++;
        if ((here->bb ^ base) >> 63) return 0;
        c->bb[i] = here->bb;
    }
    if (c->lines) {
        here->line = (here->line & *relative) + (uint64_t)*value;
        if (here->line >> 32) return 0;
        c->line[i] = (uint32_t)here->line;
    }
    return 1;
}

/* A block's lines as rows b->n.. ; returns how many bytes of it were taken. */
INLINE unsigned take_block(struct fp_costs *s, uint32_t kind, const uint8_t *p, struct fp_batch *b,
                           const struct columns c, block_fn *masks) {
    const unsigned columns = c.instr + c.has_bb + c.lines;
    struct found l;
    if (!find_lines(masks(p), columns, &l)) return 0;
    uint64_t start = l.start, end = l.end, next = l.first & (l.first - 1);
    struct fp_position base = s->base;
    unsigned size = 0;
    uint32_t i = b->n;
    while (start && i != c.cap) {
        const uint64_t line = next ? (next & (0 - next)) - 1 : ~(uint64_t)0; /* bits before the next line */
        struct fp_position here = base;
        int64_t value[3], *to = c.values + i;
        uint64_t relative[3];
        uint32_t k = 0;
        for (; k < columns && (start & line); k++) {
            const unsigned from = fp_lowest_bit(start), until = fp_lowest_bit(end);
            const uint8_t sign = p[from];
            const unsigned skip = sign == '+' || sign == '-';
            const int64_t v = (int64_t)fp_digits8(p + from + skip, until - from - skip);
            value[k] = sign == '*' ? 0 : sign == '-' ? -v : v;
            relative[k] = 0 - (uint64_t)(sign < '0');
            start &= start - 1;
            end &= end - 1;
        }
        if (k != columns || !take_positions(value, relative, i, &here, &c)) break;
        const int64_t self = -(int64_t)(kind == FP_COST);
        for (k = 0; (start & line) && k != c.n_values; k++) {
            const unsigned from = fp_lowest_bit(start);
            *to = (int64_t)fp_digits8(p + from, fp_lowest_bit(end) - from);
            s->recent[k] += *to & self;
            to += c.cap;
            start &= start - 1;
            end &= end - 1;
        }
        if ((start & line) || (kind >= FP_JUMP && k)) {
            /* more counts than there may be: as if it had not been looked at */
            while (k--) {
                to -= c.cap;
                s->recent[k] -= *to & self;
                *to = 0;
            }
            break;
        }
        if (kind == FP_COST) base = here;
        kind = FP_COST;
        size = next ? fp_lowest_bit(next) : l.size;
        next &= next - 1;
        i++;
    }
    b->n = i;
    s->base = base;
    return size;
}

#if WIDE
/* The offset of line n of those found. */
INLINE unsigned line_start(const struct found *l, uint32_t n) {
    uint64_t first = l->first;
    while (n--) first &= first - 1;
    return first ? fp_lowest_bit(first) : l->size;
}

/* A line's fields t.. as row i, `n` of them counts; 0 when they are not what a line may have.  Kind, function
 * and file are the caller's to fill in. */
INLINE int take_row(const struct fields *f, unsigned t, unsigned n, uint32_t i, struct fp_position *base,
                    const struct columns *c, int64_t *recent) {
    struct fp_position here = *base;
    if (n > c->n_values || !take_positions(f->value + t, f->relative + t, i, &here, c)) return 0;
    const int64_t *value = f->value + t + c->instr + c->has_bb + c->lines;
    int64_t *to = c->values + i;
    if (c->n_values == 1) {
        const int64_t v = n ? *value : 0;
        *to = v;
        *recent += v;
    } else {
        for (uint32_t k = 0; k < n; k++, to += c->cap) {
            *to = value[k];
            recent[k] += *to;
        }
    }
    *base = here;
    return 1;
}

/* Lines of `width` fields each, at most eight, as most blocks are: positions and a count.  Lane k of a vector is
 * line k, so that a column of the batch is one store.  0 when they are of another form.  How far a block leads
 * depends on its numbers by branches only, so that the next one begins before they are there. */
WIDE_TARGET INLINE unsigned take_even(struct fp_costs *s, const uint8_t *p, struct fp_batch *b, const struct columns c,
                                      const struct found *l) {
    const unsigned columns = c.instr + c.has_bb + c.lines, width = columns + 1;
    const uint64_t step = width == 2 ? 0x5555555555555555 : width == 3 ? 0x9249249249249249 : 0x1111111111111111;
    const unsigned n = (unsigned)__builtin_popcountll(l->first);
    const uint32_t i = b->n;
    if (_pext_u64(l->first, l->start) != (step & below(n * width)) ||
        (unsigned)__builtin_popcountll(l->start) != n * width || n > 8 || c.cap - i < 8)
        return 0;
    const __m512i text = _mm512_loadu_si512(p), zero = _mm512_setzero_si512();
    const struct wide_fields w = find_fields(p, l->start, l->end);
    const __mmask8 in = (__mmask8)below(n);
    const struct fp_position base = s->base;
    __m512i column[3] = {zero, zero, zero}, starts;
    uint64_t first[3] = {base.address, base.bb, base.line};
    const uint32_t has[3] = {c.instr, c.has_bb, c.lines};
    __mmask8 beyond = 0;
    for (unsigned j = 0, k = 0; j < 3; j++) {
        if (!has[j]) continue;
        const __m512i v = eight_numbers(w, lanes_apart(k++, width), &starts);
        const __m512i sign = _mm512_permutexvar_epi8(starts, text);
        const __mmask8 minus = _mm512_cmpeq_epi64_mask(sign, _mm512_set1_epi8('-'));
        const __mmask8 absolute = _mm512_cmpge_epu64_mask(sign, _mm512_set1_epi8('0'));
        beyond |= (__mmask8)(first[j] >> 63);
        column[j] = eight_positions(_mm512_mask_sub_epi64(v, minus, zero, v), absolute, first[j]);
    }
    beyond |= _mm512_movepi64_mask(_mm512_or_si512(column[0], column[1])) |
              _mm512_test_epi64_mask(column[2], _mm512_set1_epi64((long long)0xffffffff00000000));
    if (beyond & in) return 0;
    if (c.instr) _mm512_storeu_si512(c.address + i, column[0]);
    if (c.has_bb) _mm512_storeu_si512(c.bb + i, column[1]);
    if (c.lines) _mm256_storeu_si256((__m256i *)(void *)(c.line + i), _mm512_cvtepi64_epi32(column[2]));
    const __mmask8 last = (__mmask8)(1u << (n - 1));
    s->base = (struct fp_position){lane_of(column[0], last), lane_of(column[1], last), lane_of(column[2], last)};
    const __m512i count = _mm512_maskz_mov_epi64(in, eight_numbers(w, lanes_apart(columns, width), &starts));
    _mm512_storeu_si512(c.values + i, count); /* rows behind these stay 0 */
    _mm512_storeu_si512(s->lanes, _mm512_add_epi64(_mm512_loadu_si512(s->lanes), count));
    b->n = i + n;
    return l->size;
}

/* As take_block, of self cost only. */
WIDE_TARGET INLINE unsigned take_block_wide(struct fp_costs *s, const uint8_t *p, struct fp_batch *b,
                                            const struct columns c) {
    const unsigned columns = c.instr + c.has_bb + c.lines;
    struct found l;
    struct fields f;
    struct block m = block_wide(p);
    if (c.n_values == 1) m.newline = _pdep_u64(0xff, m.newline); /* the first eight */
    if (!find_lines(m, columns, &l)) return 0;
    if (c.n_values == 1) {
        const unsigned size = take_even(s, p, b, c, &l);
        if (size) return size;
    }
    uint64_t next = fields_wide(p, l.start, l.end, l.first, &f);
    next = (next | (uint64_t)1 << __builtin_popcountll(l.start)) & ~(uint64_t)1;
    uint32_t i = b->n;
    struct fp_position base = s->base;
    int64_t one = 0, *recent = c.n_values == 1 ? &one : s->recent;
    unsigned t = 0;
    for (; next && i != c.cap; i++) {
        const unsigned until = fp_lowest_bit(next);
        if (!take_row(&f, t, until - t - columns, i, &base, &c, recent)) break;
        t = until;
        next &= next - 1;
    }
    const uint32_t rows = i - b->n;
    b->n = i;
    s->base = base;
    if (c.n_values == 1) *s->recent += one;
    return next ? line_start(&l, rows) : l.size;
}

/* As take_block, where positions and counts are 3 to 16: all columns are written whatever a line has, so that
 * nothing depends on how many there are. */
WIDE_TARGET INLINE unsigned take_block_many(struct fp_costs *s, uint32_t kind, const uint8_t *p, struct fp_batch *b,
                                            const struct columns c) {
    const unsigned columns = c.instr + c.has_bb + c.lines;
    struct found l;
    if (!find_lines(block_wide(p), columns, &l)) return 0;
    const struct wide_fields w = find_fields(p, l.start, l.end);
    uint64_t next = _pext_u64(l.first, l.start), start = l.start;
    next = (next | (uint64_t)1 << __builtin_popcountll(start)) & ~(uint64_t)1;
    uint32_t i = b->n;
    struct fp_position base = s->base;
    __m512i sum_low = _mm512_setzero_si512(), sum_high = sum_low, starts;
    unsigned t = 0;
    for (; next && i != c.cap; i++) {
        const unsigned until = fp_lowest_bit(next), n = until - t;
        struct fp_position here = base;
        int64_t row[16];
        uint64_t relative[3];
        if (n - columns > c.n_values || (kind >= FP_JUMP && n != columns)) break;
        const uint32_t have = _bzhi_u32(0xffff, n);
        const __m512i low = _mm512_maskz_mov_epi64((__mmask8)have, eight_numbers(w, lanes(t), &starts));
        const __m512i high = _mm512_maskz_mov_epi64((__mmask8)(have >> 8), eight_numbers(w, lanes(t + 8), &starts));
        _mm512_storeu_si512(row, low);
        _mm512_storeu_si512(row + 8, high);
        for (unsigned k = 0; k < columns; k++) {
            const uint8_t sign = p[fp_lowest_bit(start)];
            const int64_t minus = -(int64_t)(sign == '-');
            row[k] = (row[k] ^ minus) - minus;
            relative[k] = 0 - (uint64_t)(sign < '0');
            start &= start - 1;
        }
        if (!take_positions(row, relative, i, &here, &c)) break;
        int64_t *to = c.values + i;
        for (uint32_t k = 0; k < c.n_values; k++, to += c.cap) *to = row[columns + k];
        if (kind == FP_COST) {
            base = here;
            sum_low = _mm512_add_epi64(sum_low, low);
            sum_high = _mm512_add_epi64(sum_high, high);
        }
        kind = FP_COST;
        t = until;
        next &= next - 1;
        start = _pdep_u64(~(uint64_t)0 << t, l.start);
    }
    const uint32_t rows = i - b->n;
    b->n = i;
    s->base = base;
    _mm512_storeu_si512(s->fields, _mm512_add_epi64(_mm512_loadu_si512(s->fields), sum_low));
    _mm512_storeu_si512(s->fields + 8, _mm512_add_epi64(_mm512_loadu_si512(s->fields + 8), sum_high));
    return next ? line_start(&l, rows) : l.size;
}
#endif

typedef unsigned take_fn(struct fp_costs *s, uint32_t kind, const uint8_t *p, struct fp_batch *b,
                         const struct columns c);

INLINE unsigned take_plain(struct fp_costs *s, uint32_t kind, const uint8_t *p, struct fp_batch *b,
                           const struct columns c) {
    return take_block(s, kind, p, b, c, block_plain);
}

#if WIDE
AVX2_TARGET INLINE unsigned take_avx2(struct fp_costs *s, uint32_t kind, const uint8_t *p, struct fp_batch *b,
                                      const struct columns c) {
    return take_block(s, kind, p, b, c, block_avx2);
}

WIDE_TARGET INLINE unsigned take_wide(struct fp_costs *s, uint32_t kind, const uint8_t *p, struct fp_batch *b,
                                      const struct columns c) {
    if (c.n_values > 1 && c.instr + c.has_bb + c.lines + c.n_values <= 16) return take_block_many(s, kind, p, b, c);
    /* what a call or jump line has is mostly a line of few digits, behind which another line begins */
    return kind == FP_COST ? take_block_wide(s, p, b, c) : 0;
}
#endif

/* One line of any length: addresses in hex, numbers of up to 18 digits.  NULL when it is not that simple. */
static const uint8_t *take_line(struct fp_costs *s, uint32_t kind, const uint8_t *p, struct fp_batch *b) {
    struct fp_position here = s->base;
    if (s->instr && !(p = fp_text_position(p, s->base.address, &here.address))) return NULL;
    if (s->bb && !(p = fp_text_position(p, s->base.bb, &here.bb))) return NULL;
    if (s->lines && (!(p = fp_text_position(p, s->base.line, &here.line)) || here.line >> 32)) return NULL;
    const uint32_t i = b->n;
    int64_t *to = b->values + i;
    uint32_t k = 0;
    while (*p != '\n') {
        uint64_t v;
        if (k == s->n_values || kind >= FP_JUMP || !(p = fp_decimal(p, &v)) || (*p != ' ' && *p != '\n')) {
            while (k--) *(to -= b->cap) = 0;
            return NULL;
        }
        p += *p == ' ';
        *to = (int64_t)v;
        to += b->cap;
        k++;
    }
    if (kind == FP_COST) {
        s->base = here;
        while (k--) s->overflowed |= (uint32_t)__builtin_add_overflow(s->totals[k], *(to -= b->cap), &s->totals[k]);
    }
    if (s->instr) b->address[i] = here.address;
    if (s->bb) b->bb[i] = here.bb;
    if (s->lines) b->line[i] = (uint32_t)here.line;
    b->n++;
    return p + 1;
}

/* n times v, of which `cap` would fit. */
INLINE void fill(uint32_t *to, uint32_t v, uint32_t n, uint32_t cap) {
    if (cap - n >= 8 && n <= 8)
        for (unsigned k = 0; k < 8; k++) to[k] = v;
    else
        for (uint32_t k = 0; k < n; k++) to[k] = v;
}

INLINE const uint8_t *take_lines(struct fp_costs *s, uint32_t kind, const uint8_t *p, const uint8_t *end,
                                 const uint8_t *readable, struct fp_batch *b, take_fn *take) {
    struct columns c = {s->instr, s->bb, s->lines, s->n_values, b->cap, b->address, b->bb, b->line, b->values};
    const uint32_t shape = c.instr << 2 | c.has_bb << 1 | c.lines;
    const uint32_t from = b->n;
    const uint32_t first_kind = kind;
    while (p < end && b->n != c.cap && (fp_is_digit(*p) || *p == '+' || *p == '-' || *p == '*')) {
        unsigned size = 0;
        if (readable - p >= FP_COST_READAHEAD && p[1] != 'x') {
            /* the usual columns as constants */
            if (shape == 5 && c.n_values == 1) {
                c.instr = c.lines = c.n_values = 1;
                c.has_bb = 0;
                size = take(s, kind, p, b, c);
            } else if (shape == 1) {
                c.instr = c.has_bb = 0;
                c.lines = 1;
                size = take(s, kind, p, b, c);
            } else {
                size = take(s, kind, p, b, c);
            }
        }
        if (size) {
            p += size;
        } else {
            const uint8_t *next = take_line(s, kind, p, b);
            if (!next) break;
            p = next;
        }
        kind = FP_COST;
    }
    const uint32_t n = b->n - from;
    fill(b->function + from, s->function, n, c.cap - from);
    fill(b->file + from, s->file, n, c.cap - from);
    memset(b->kind + from, FP_COST, n);
    if (n) b->kind[from] = (uint8_t)first_kind;
    return p;
}

#if WIDE
AVX2_TARGET static const uint8_t *lines_avx2(struct fp_costs *s, uint32_t kind, const uint8_t *p, const uint8_t *end,
                                             const uint8_t *readable, struct fp_batch *b) {
    return take_lines(s, kind, p, end, readable, b, take_avx2);
}

WIDE_TARGET static const uint8_t *lines_wide(struct fp_costs *s, uint32_t kind, const uint8_t *p, const uint8_t *end,
                                             const uint8_t *readable, struct fp_batch *b) {
    return take_lines(s, kind, p, end, readable, b, take_wide);
}
#endif

uint32_t fp_costs_wide(void) {
#if WIDE
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("bmi2")) return FP_PLAIN;
    const int all = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                    __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
                    __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vbmi2");
    return all ? FP_AVX512 : FP_AVX2;
#else
    return FP_PLAIN;
#endif
}

const uint8_t *fp_cost_lines(struct fp_costs *s, uint32_t kind, const uint8_t *p, const uint8_t *end,
                             const uint8_t *readable, struct fp_batch *b) {
#if WIDE
    if (s->wide == FP_AVX2) return lines_avx2(s, kind, p, end, readable, b);
    if (s->wide == FP_AVX512) return lines_wide(s, kind, p, end, readable, b);
#endif
    return take_lines(s, kind, p, end, readable, b, take_plain);
}

void fp_costs_settle(struct fp_costs *s) {
    int overflowed = 0;
    const uint32_t columns = s->instr + s->bb + s->lines;
    for (uint32_t k = 0; k < s->n_values; k++) {
        overflowed |= __builtin_add_overflow(s->totals[k], s->recent[k], &s->totals[k]);
        s->recent[k] = 0;
        if (columns + k < 16) overflowed |= __builtin_add_overflow(s->totals[k], s->fields[columns + k], &s->totals[k]);
    }
    for (unsigned k = 0; k < 8; k++) overflowed |= __builtin_add_overflow(s->totals[0], s->lanes[k], &s->totals[0]);
    memset(s->fields, 0, sizeof s->fields);
    memset(s->lanes, 0, sizeof s->lanes);
    s->overflowed |= (uint32_t)overflowed;
}

/* ---- references to functions ------------------------------------------------- */

/* Where in the first bytes behind p `fn=(` begins, but for the `n`, which is looked for only where the rest is. */
INLINE uint64_t marks_plain(const uint8_t *p) {
    uint64_t mask = 0;
#if defined(__SSE2__)
#define EQUAL(at, c) _mm_cmpeq_epi8(_mm_loadu_si128((const __m128i *)(const void *)(p + (at))), _mm_set1_epi8(c))
    mask = (uint64_t)_mm_movemask_epi8(_mm_and_si128(EQUAL(0, 'f'), _mm_and_si128(EQUAL(2, '='), EQUAL(3, '('))));
#undef EQUAL
#else
    for (unsigned i = 0; i < 16; i++) mask |= (uint64_t)(p[i] == 'f' && p[i + 2] == '=' && p[i + 3] == '(') << i;
#endif
    return mask;
}

typedef uint64_t marks_fn(const uint8_t *p);

INLINE const uint8_t *find_function(const uint8_t *p, const uint8_t *end, int step, marks_fn *marks) {
    for (; end - p >= step; p += step)
        for (uint64_t mask = marks(p); mask; mask &= mask - 1) {
            const uint8_t *at = p + fp_lowest_bit(mask);
            if (at[1] == 'n') return at + 4;
        }
    for (; p < end; p++)
        if (!memcmp(p, "fn=(", 4)) return p + 4;
    return NULL;
}

#if WIDE
/* Of 64 bytes in one piece, and so of the 61 where it may begin. */
WIDE_TARGET INLINE uint64_t marks_wide(const uint8_t *p) {
    const __m512i text = _mm512_loadu_si512(p);
    const uint64_t f = _mm512_cmpeq_epi8_mask(text, _mm512_set1_epi8('f'));
    const uint64_t equals = _mm512_cmpeq_epi8_mask(text, _mm512_set1_epi8('='));
    return f & equals >> 2 & _mm512_cmpeq_epi8_mask(text, _mm512_set1_epi8('(')) >> 3;
}

WIDE_TARGET static const uint8_t *find_function_wide(const uint8_t *p, const uint8_t *end) {
    return find_function(p, end, 61, marks_wide);
}
#endif

const uint8_t *fp_find_function(const uint8_t *p, const uint8_t *end, uint32_t wide) {
#if WIDE
    if (wide == FP_AVX512) return find_function_wide(p, end);
#endif
    (void)wide;
    return find_function(p, end, 16, marks_plain);
}
