#include "callgrind/lines.h"

#include "callgrind/wide.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

/* Text is parsed in blocks of 64 bytes, each of which begins with a line.  Each property of the bytes is a bit mask,
 * bit i for byte i.  So all lines of a block are checked and split together, without a branch for each byte, number or
 * line:
 *
 *     text      + 4   1 2   7 \n * - 3   5 \n 0 x ...
 *     newline   0 0 0 0 0 0 0 1  0 0 0 0 0 1
 *     start     0 1 0 1 0 0 1 0  1 0 1 0 1 0         of a number
 *     end       0 0 1 0 0 1 0 1  0 1 0 1 0 1         after its last byte
 *     odd       0 0 0 0 0 0 0 0  1 1 0 0 0 0         * must be followed by a blank, - must follow one
 */
struct block {
    uint64_t newline, blank, digit, star, minus, sign; /* sign: + and - */
};
typedef struct block block_fn(const uint8_t *p);

/* ---- any machine -------------------------------------------------------- */

FP_INLINE struct block block_plain(const uint8_t *p) {
    struct block m = {0, 0, 0, 0, 0, 0};
#if defined(__SSE2__)
#define EQUAL(c) ((uint64_t)(uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(text, _mm_set1_epi8(c))) << i)
    for (unsigned i = 0; i < 64; i += 16) {
        const __m128i text = _mm_loadu_si128((const __m128i *)(const void *)(p + i));
        /* '0'..'9' become -128..-119: one signed comparison */
        const __m128i shifted = _mm_add_epi8(text, _mm_set1_epi8((char)(0x80 - '0')));
        m.digit |= (uint64_t)(uint32_t)_mm_movemask_epi8(_mm_cmplt_epi8(shifted, _mm_set1_epi8(-118))) << i;
        m.newline |= EQUAL('\n');
        m.blank |= EQUAL(' ');
        m.star |= EQUAL('*');
        m.minus |= EQUAL('-');
        m.sign |= EQUAL('+');
    }
#undef EQUAL
#else
    for (unsigned i = 0; i < 64; i++) {
        m.digit |= (uint64_t)fp_is_digit(p[i]) << i;
        m.newline |= (uint64_t)(p[i] == '\n') << i;
        m.blank |= (uint64_t)(p[i] == ' ') << i;
        m.star |= (uint64_t)(p[i] == '*') << i;
        m.minus |= (uint64_t)(p[i] == '-') << i;
        m.sign |= (uint64_t)(p[i] == '+') << i;
    }
#endif
    m.sign |= m.minus;
    return m;
}

/* ---- AVX2 with BMI2 ------------------------------------------------------ */

#if FP_WIDE
FP_AVX2_TARGET FP_INLINE uint64_t equal_avx2(__m256i low, __m256i high, char c) {
    const __m256i all = _mm256_set1_epi8(c);
    return (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(low, all)) |
           (uint64_t)(uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(high, all)) << 32;
}

FP_AVX2_TARGET FP_INLINE struct block block_avx2(const uint8_t *p) {
    const __m256i low = _mm256_loadu_si256((const __m256i *)(const void *)p);
    const __m256i high = _mm256_loadu_si256((const __m256i *)(const void *)(p + 32));
    const __m256i shift = _mm256_set1_epi8((char)(0x80 - '0')), ten = _mm256_set1_epi8(-118);
    struct block m;
    m.newline = equal_avx2(low, high, '\n');
    m.blank = equal_avx2(low, high, ' ');
    m.star = equal_avx2(low, high, '*');
    m.minus = equal_avx2(low, high, '-');
    m.sign = m.minus | equal_avx2(low, high, '+');
    m.digit = (uint32_t)_mm256_movemask_epi8(_mm256_cmpgt_epi8(ten, _mm256_add_epi8(low, shift))) |
              (uint64_t)(uint32_t)_mm256_movemask_epi8(_mm256_cmpgt_epi8(ten, _mm256_add_epi8(high, shift))) << 32;
    return m;
}

/* ---- AVX-512 with VBMI2 -------------------------------------------------- */

FP_WIDE_TARGET FP_INLINE struct block block_wide(const uint8_t *p) {
    const __m512i text = _mm512_loadu_si512(p);
    struct block m;
    m.newline = _mm512_cmpeq_epi8_mask(text, _mm512_set1_epi8('\n'));
    m.blank = _mm512_cmpeq_epi8_mask(text, _mm512_set1_epi8(' '));
    m.star = _mm512_cmpeq_epi8_mask(text, _mm512_set1_epi8('*'));
    m.minus = _mm512_cmpeq_epi8_mask(text, _mm512_set1_epi8('-'));
    m.sign = m.minus | _mm512_cmpeq_epi8_mask(text, _mm512_set1_epi8('+'));
    m.digit = _mm512_cmplt_epu8_mask(_mm512_sub_epi8(text, _mm512_set1_epi8('0')), _mm512_set1_epi8(10));
    return m;
}
#endif

/* ---- a block ---------------------------------------------------------------- */

enum { BLOCK_LINES = 32 }; /* maximum number of lines taken from a block: one vector store writes this many `begin`s */

/* The masks in the figure above, for the complete lines of a block. */
struct found {
    uint64_t newline, start, end, digit;
    uint64_t line;        /* where each line begins */
    uint64_t minus;       /* at the start of a number: a minus precedes it */
    uint64_t cost;        /* how a cost line begins */
    uint64_t relative[3]; /* the sign or star of position k */
    uint64_t odd;
    uint64_t in;   /* the bytes of those lines */
    unsigned size; /* their number */
};

FP_INLINE uint64_t below(unsigned n) { /* the n lowest bits, 0 <= n <= 64 */
    return n < 64 ? ((uint64_t)1 << n) - 1 : ~(uint64_t)0;
}

FP_INLINE struct found find_numbers(const struct block m, uint32_t columns) {
    const uint64_t space = m.blank | m.newline, mark = m.sign | m.star;
    struct found f = {.newline = m.newline,
                      .digit = m.digit,
                      .cost = m.digit | mark,
                      .size = 64 - (unsigned)__builtin_clzll(m.newline)};
    f.in = below(f.size);
    f.line = (m.newline << 1 | 1) & f.in;
    /* Adding a bit at a word's start carries to its end. */
    uint64_t position = f.line, may_mark = position;
    f.relative[0] = mark & position;
    for (uint32_t k = 1; k < columns; k++) {
        position = ((~space + position) & m.blank) << 1 & ~space;
        may_mark |= position;
        f.relative[k] = mark & position;
    }
    uint64_t run = m.digit; /* of nine */
    run &= run >> 1;
    run &= run >> 2;
    run &= run >> 4;
    f.odd = ~(f.cost | space) | (mark & ~may_mark) | (m.sign & ~(m.digit >> 1)) | (m.star & ~(space >> 1)) |
            (m.blank & m.blank << 1) | (run & run >> 1);
    f.odd &= f.in;
    const uint64_t star = m.star & may_mark;
    f.start = ((m.digit & ~(m.digit << 1)) | star) & f.in;
    f.end = ((m.digit << 1 & ~m.digit) | star << 1) & f.in;
    f.minus = m.minus << 1;
    return f;
}

/* Appends bits to a map whose first `at` bits are in use.  Of `bits`, those from 57 on must be 0. */
FP_INLINE void append_bits(uint8_t *map, uint32_t at, uint64_t bits) {
    uint8_t *to = map + (at >> 3);
    const uint64_t word = (*to & ((1u << (at & 7)) - 1)) | bits << (at & 7);
    for (unsigned k = 0; k < 8; k++) to[k] = (uint8_t)(word >> 8 * k); /* compilers make one store of this */
}

/* The properties that fp_callgrind_lines has as a bit per line; bit n is that of a block's nth line. */
struct line_bits {
    uint64_t cost, odd, relative[3];
};

FP_INLINE void append_line_bits(struct fp_callgrind_lines *l, const struct line_bits b, uint32_t columns) {
    append_bits(l->cost, l->n, b.cost);
    append_bits(l->odd, l->n, b.odd);
    for (uint32_t k = 0; k < columns; k++) append_bits(l->relative[k], l->n, b.relative[k]);
}

/* Appends a block's lines and numbers; returns the number of numbers.  p: the block; at: its offset in the text. */
typedef unsigned take_fn(struct fp_callgrind_lines *l, const uint8_t *p, uint32_t at, uint32_t n_numbers,
                         const struct found f, uint32_t columns);

FP_INLINE unsigned take_plain(struct fp_callgrind_lines *l, const uint8_t *p, uint32_t at, uint32_t n_numbers,
                              const struct found f, uint32_t columns) {
    uint64_t start = f.start, end = f.end, line = f.line, newline = f.newline;
    int64_t *value = l->value + n_numbers;
    struct line_bits bits = {0, 0, {0, 0, 0}};
    unsigned n = 0;
    for (; newline; n++, line &= line - 1, newline &= newline - 1) {
        const uint64_t first = line & (0 - line), last = newline & (0 - newline), in = last - first;
        for (; start & in; start &= start - 1, end &= end - 1) {
            const unsigned from = fp_lowest_bit(start), digits = fp_lowest_bit(end) - from;
            const int64_t minus = -(int64_t)(f.minus >> from & 1), is_number = -(int64_t)(f.digit >> from & 1);
            /* a line with more than eight is odd */
            *value++ = (((int64_t)fp_digits8(p + from, digits < 8 ? digits : 8) & is_number) ^ minus) - minus;
        }
        bits.cost |= (uint64_t)((f.cost & first) != 0) << n;
        bits.odd |= (uint64_t)((f.odd & in) != 0) << n;
        for (uint32_t k = 0; k < columns; k++) bits.relative[k] |= (uint64_t)((f.relative[k] & in) != 0) << n;
        l->begin[l->n + n + 1] = (uint16_t)(at + fp_lowest_bit(last) + 1);
        l->first[l->n + n + 1] = (uint16_t)(value - l->value);
    }
    append_line_bits(l, bits, columns);
    l->n += n;
    return (unsigned)(value - l->value) - n_numbers;
}

#if FP_WIDE
FP_AVX2_TARGET FP_INLINE struct line_bits find_line_bits(const struct found *f, uint32_t columns) {
    /* adding a bit within a line carries to its newline */
    const uint64_t within = ~f->newline & f->in;
    struct line_bits b = {_pext_u64(f->cost, f->line), _pext_u64(within + f->odd, f->newline), {0, 0, 0}};
    b.relative[0] = _pext_u64(f->relative[0], f->line);
    for (uint32_t k = 1; k < columns; k++) b.relative[k] = _pext_u64(within + f->relative[k], f->newline);
    return b;
}

/* A block's numbers; returns how many.  First right-aligns the digits of each in eight bytes, then converts four at a
 * time.
 */
FP_AVX2_TARGET FP_INLINE unsigned numbers_avx2(int64_t *value, const uint8_t *p, const struct found *f) {
    uint64_t start = f->start, end = f->end;
    unsigned n = 0;
    for (; start; n++, start &= start - 1, end &= end - 1) {
        const unsigned from = fp_lowest_bit(start), digits = fp_lowest_bit(end) - from;
        const uint64_t is_number = 0 - (f->digit >> from & 1);
        /* with more than eight digits the line is odd */
        value[n] = (int64_t)(fp_u64(p + from) << ((64 - 8 * digits) & 63) & is_number);
    }
    const uint64_t minus = _pext_u64(f->minus, f->start);
    for (unsigned t = 0; t < n; t += 4) {
        __m256i v = _mm256_loadu_si256((const __m256i *)(const void *)(value + t));
        v = _mm256_and_si256(v, _mm256_set1_epi8(0x0f));
        v = _mm256_maddubs_epi16(v, _mm256_set1_epi16(0x010a));
        v = _mm256_madd_epi16(v, _mm256_set1_epi32(0x00010064));
        v = _mm256_add_epi64(_mm256_mul_epu32(v, _mm256_set1_epi64x(10000)), _mm256_srli_epi64(v, 32));
        const __m256i bits =
            _mm256_sllv_epi64(_mm256_set1_epi64x((long long)(minus >> t)), _mm256_setr_epi64x(63, 62, 61, 60));
        const __m256i negative = _mm256_cmpgt_epi64(_mm256_setzero_si256(), bits);
        v = _mm256_sub_epi64(_mm256_xor_si256(v, negative), negative);
        _mm256_storeu_si256((__m256i *)(void *)(value + t), v);
    }
    return n;
}

FP_AVX2_TARGET FP_INLINE unsigned take_avx2(struct fp_callgrind_lines *l, const uint8_t *p, uint32_t at,
                                            uint32_t n_numbers, const struct found f, uint32_t columns) {
    const unsigned n = numbers_avx2(l->value + n_numbers, p, &f);
    uint64_t newline = f.newline;
    append_line_bits(l, find_line_bits(&f, columns), columns);
    for (; newline; newline &= newline - 1) {
        const uint64_t until = newline ^ (newline - 1);
        l->n++;
        l->begin[l->n] = (uint16_t)(at + fp_lowest_bit(newline) + 1);
        l->first[l->n] = (uint16_t)(n_numbers + (unsigned)__builtin_popcountll(f.start & until));
    }
    return n;
}

/* The numbers of eight runs of digits, `lane`..`lane` + 7, each moved to the right end of 8 bytes:
 *
 *     lane            0                        1
 *     index = end-8+j 250 251 ... 255 0   1    253 ... 3   4
 *     in the run?     no  no      no  no  yes  no      yes yes
 *     digits          0   0       0   0   4    0       1   2
 *
 * then pairs, fours and eights of digits are put together by multiply-and-add. */
FP_WIDE_TARGET FP_INLINE __m512i eight_numbers(__m512i digits, __m512i starts, __m512i ends, __m512i lane) {
    const __m512i back = _mm512_set1_epi64((long long)0xfffefdfcfbfaf9f8); /* -8 .. -1 */
    const __m512i index = _mm512_add_epi8(_mm512_permutexvar_epi8(lane, ends), back);
    const __mmask64 in = _mm512_cmpge_epi8_mask(index, _mm512_permutexvar_epi8(lane, starts));
    __m512i v = _mm512_maskz_permutexvar_epi8(in, index, digits);
    v = _mm512_maddubs_epi16(v, _mm512_set1_epi16(0x010a));
    v = _mm512_madd_epi16(v, _mm512_set1_epi32(0x00010064));
    return _mm512_add_epi64(_mm512_mul_epu32(v, _mm512_set1_epi64(10000)), _mm512_srli_epi64(v, 32));
}

FP_WIDE_TARGET FP_INLINE void store_words(uint16_t *to, __m512i bytes, uint32_t more) {
    _mm512_storeu_si512(
        to, _mm512_add_epi16(_mm512_cvtepu8_epi16(_mm512_castsi512_si256(bytes)), _mm512_set1_epi16((short)more)));
}

FP_WIDE_TARGET FP_INLINE unsigned take_wide(struct fp_callgrind_lines *l, const uint8_t *p, uint32_t at,
                                            uint32_t n_numbers, const struct found f, uint32_t columns) {
    const __m512i iota =
        _mm512_set_epi64(0x3f3e3d3c3b3a3938, 0x3736353433323130, 0x2f2e2d2c2b2a2928, 0x2726252423222120,
                         0x1f1e1d1c1b1a1918, 0x1716151413121110, 0x0f0e0d0c0b0a0908, 0x0706050403020100);
    const __m512i values = _mm512_sub_epi8(_mm512_loadu_si512(p), _mm512_set1_epi8('0'));
    const __m512i digits = _mm512_maskz_mov_epi8(_mm512_cmplt_epu8_mask(values, _mm512_set1_epi8(10)), values);
    const __m512i starts = _mm512_maskz_compress_epi8(f.start, iota), ends = _mm512_maskz_compress_epi8(f.end, iota);
    const unsigned n = (unsigned)__builtin_popcountll(f.start);
    const uint64_t minus = _pext_u64(f.minus, f.start);
    __m512i lane = _mm512_set_epi64(0x0707070707070707, 0x0606060606060606, 0x0505050505050505, 0x0404040404040404,
                                    0x0303030303030303, 0x0202020202020202, 0x0101010101010101, 0);
    /* few blocks have more than sixteen numbers, so this branch is predictable */
    for (unsigned t = 0; t < 16 || t < n; t += 8) {
        const __m512i v = eight_numbers(digits, starts, ends, lane);
        lane = _mm512_add_epi8(lane, _mm512_set1_epi8(8));
        _mm512_storeu_si512(l->value + n_numbers + t,
                            _mm512_mask_sub_epi64(v, (__mmask8)(minus >> t), _mm512_setzero_si512(), v));
    }
    /* A newline's place among the numbers and newlines, less the newlines before it: the numbers before it. */
    const __m512i places = _mm512_maskz_compress_epi8(_pext_u64(f.newline, f.start | f.newline), iota);
    store_words(l->begin + l->n + 1, _mm512_maskz_compress_epi8(f.newline, iota), at + 1);
    store_words(l->first + l->n + 1, _mm512_sub_epi8(places, iota), n_numbers);
    append_line_bits(l, find_line_bits(&f, columns), columns);
    l->n += (unsigned)__builtin_popcountll(f.newline);
    return n;
}
#endif

/* ---- all blocks --------------------------------------------------------------- */

enum { TAIL = 64 + 8 }; /* bytes in which a block's numbers are searched */

/* Adds a line of 64 bytes or more without its numbers; returns the byte after it, or NULL if it is too long. */
static const uint8_t *take_long(struct fp_callgrind_lines *l, const uint8_t *p, const uint8_t *end, uint32_t at,
                                uint32_t n_numbers) {
    const size_t n = end - p < FP_LINES_LONGEST ? (size_t)(end - p) : FP_LINES_LONGEST;
    const uint8_t *newline = memchr(p, '\n', n);
    if (!newline) return NULL;
    append_bits(l->cost, l->n, (uint64_t)(fp_is_digit(*p) || *p == '+' || *p == '-' || *p == '*'));
    append_bits(l->odd, l->n, 1);
    for (unsigned k = 0; k < 3; k++) append_bits(l->relative[k], l->n, 0);
    l->n++;
    l->begin[l->n] = (uint16_t)(at + (uint32_t)(newline - p) + 1);
    l->first[l->n] = (uint16_t)n_numbers;
    return newline + 1;
}

FP_INLINE const uint8_t *read_lines(struct fp_callgrind_lines *l, const uint8_t *p, const uint8_t *end,
                                    const uint8_t *readable, uint32_t columns, block_fn *masks, take_fn *take) {
    const uint8_t *const text = p;
    uint32_t n_numbers = 0;
    uint8_t tail[TAIL];
    l->n = 0;
    l->begin[0] = l->first[0] = 0;
    l->cost[0] = l->odd[0] = l->relative[0][0] = l->relative[1][0] = l->relative[2][0] = 0;
    while (p != end && p - text <= FP_LINES_NBYTES - 64) {
        const uint32_t at = (uint32_t)(p - text);
        const uint8_t *block = p;
        if (FP_UNLIKELY(readable - p < TAIL)) {
            memset(tail, 0, sizeof tail);
            memcpy(tail, p, end - p < 64 ? (size_t)(end - p) : 64);
            block = tail;
        }
        struct block m = masks(block);
        if (FP_UNLIKELY(!m.newline)) {
            const uint8_t *next = take_long(l, p, end, at, n_numbers);
            if (!next) break;
            p = next;
            continue;
        }
        if (FP_UNLIKELY(__builtin_popcountll(m.newline) > BLOCK_LINES)) {
            uint64_t rest = m.newline;
            for (unsigned i = 0; i < BLOCK_LINES; i++) rest &= rest - 1;
            m.newline ^= rest;
        }
        const struct found f = find_numbers(m, columns);
        n_numbers += take(l, block, at, n_numbers, f, columns);
        p += f.size;
    }
    return p;
}

/* The usual numbers of columns as constants. */
FP_INLINE const uint8_t *read_any(struct fp_callgrind_lines *l, const uint8_t *p, const uint8_t *end,
                                  const uint8_t *readable, uint32_t columns, block_fn *masks, take_fn *take) {
    if (columns == 1) return read_lines(l, p, end, readable, 1, masks, take);
    if (columns == 2) return read_lines(l, p, end, readable, 2, masks, take);
    return read_lines(l, p, end, readable, 3, masks, take);
}

static const uint8_t *read_plain(struct fp_callgrind_lines *l, const uint8_t *p, const uint8_t *end,
                                 const uint8_t *readable, uint32_t columns) {
    return read_any(l, p, end, readable, columns, block_plain, take_plain);
}

#if FP_WIDE
FP_AVX2_TARGET static const uint8_t *read_avx2(struct fp_callgrind_lines *l, const uint8_t *p, const uint8_t *end,
                                               const uint8_t *readable, uint32_t columns) {
    return read_any(l, p, end, readable, columns, block_avx2, take_avx2);
}

FP_WIDE_TARGET static const uint8_t *read_wide(struct fp_callgrind_lines *l, const uint8_t *p, const uint8_t *end,
                                               const uint8_t *readable, uint32_t columns) {
    return read_any(l, p, end, readable, columns, block_wide, take_wide);
}
#endif

uint32_t fp_callgrind_costs_wide(void) {
#if FP_WIDE
    const uint32_t cpu = fp_cpu();
    if (!(cpu & FP_CPU_AVX2) || !(cpu & FP_CPU_BMI)) return FP_PLAIN;
    return cpu & FP_CPU_AVX512 ? FP_AVX512 : FP_AVX2;
#else
    return FP_PLAIN;
#endif
}

const uint8_t *fp_callgrind_lines_read(struct fp_callgrind_lines *l, const uint8_t *p, const uint8_t *end,
                                       const uint8_t *readable, uint32_t columns, uint32_t wide) {
#if FP_WIDE
    if (wide == FP_AVX512) return read_wide(l, p, end, readable, columns);
    if (wide == FP_AVX2) return read_avx2(l, p, end, readable, columns);
#endif
    (void)wide;
    return read_plain(l, p, end, readable, columns);
}
