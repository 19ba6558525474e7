/* fp_digits.h - decimal numbers in text without a branch a digit.
 *
 * Floor 0.  Looks at 16 bytes at once and returns bit masks, bit i for byte i,
 * so that the ends of numbers are found before the first one is read:
 *
 *     text     + 4   0   1 2 3 \n
 *     digit    0 1 0 1 0 1 1 1 0
 *     blank    0 0 1 0 1 0 0 0 0
 *     newline  0 0 0 0 0 0 0 0 1
 *     sign     1 0 0 0 0 0 0 0 0
 */
#ifndef FP_DIGITS_H
#define FP_DIGITS_H

#include "fp.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

struct fp_masks16 {
    uint32_t newline, blank, digit, star, sign; /* sign: + and - */
};

/* The masks of p[0..16). */
static inline struct fp_masks16 fp_masks16(const uint8_t *p) {
    struct fp_masks16 m;
#if defined(__SSE2__)
    const __m128i text = _mm_loadu_si128((const __m128i *)(const void *)p);
    /* '0'..'9' become -128..-119: one signed comparison */
    const __m128i digit = _mm_cmplt_epi8(_mm_add_epi8(text, _mm_set1_epi8((char)(0x80 - '0'))), _mm_set1_epi8(-118));
    const __m128i plus = _mm_cmpeq_epi8(text, _mm_set1_epi8('+')), minus = _mm_cmpeq_epi8(text, _mm_set1_epi8('-'));
    m.newline = (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(text, _mm_set1_epi8('\n')));
    m.blank = (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(text, _mm_set1_epi8(' ')));
    m.digit = (uint32_t)_mm_movemask_epi8(digit);
    m.star = (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(text, _mm_set1_epi8('*')));
    m.sign = (uint32_t)_mm_movemask_epi8(_mm_or_si128(plus, minus));
#else
    m.newline = m.blank = m.digit = m.star = m.sign = 0;
    for (unsigned i = 0; i < 16; i++) {
        m.newline |= (uint32_t)(p[i] == '\n') << i;
        m.blank |= (uint32_t)(p[i] == ' ') << i;
        m.digit |= (uint32_t)((uint8_t)(p[i] - '0') < 10) << i;
        m.star |= (uint32_t)(p[i] == '*') << i;
        m.sign |= (uint32_t)(p[i] == '+' || p[i] == '-') << i;
    }
#endif
    return m;
}

static inline unsigned fp_lowest_bit(uint64_t mask) {
    return (unsigned)__builtin_ctzll(mask);
}

/* The number of `n` digits (1 to 8) at p, of which 8 bytes must be readable.
 *
 *     "407 ..." n = 3:  00 00 00 00 00 34 30 37  shifted to the top of the word, leading zeros
 *     pairs, then fours, then eights are put together by one multiplication each
 */
static inline uint64_t fp_digits8(const uint8_t *p, unsigned n) {
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    uint64_t w = fp_u64(p) << (64 - 8 * n);
    w = (w & 0x0f0f0f0f0f0f0f0f) * 2561 >> 8;
    w = (w & 0x00ff00ff00ff00ff) * 6553601 >> 16;
    return (w & 0x0000ffff0000ffff) * 42949672960001 >> 32;
#else
    uint64_t v = 0;
    for (unsigned i = 0; i < n; i++) v = v * 10 + (uint64_t)(p[i] - '0');
    return v;
#endif
}

static inline int fp_is_digit(uint8_t c) {
    return (uint8_t)(c - '0') < 10;
}

/* Reads up to 18 digits, which cannot overflow, and returns what is behind them; NULL for none or more.
 * The digits must be followed by a byte that is none. */
static inline const uint8_t *fp_decimal(const uint8_t *p, uint64_t *to) {
    const uint8_t *first = p;
    uint64_t v = 0;
    for (; fp_is_digit(*p); p++) v = v * 10 + (uint64_t)(*p - '0');
    *to = v;
    return (size_t)(p - first) - 1 < 18 ? p : NULL;
}

/* 0..15, or more than 15 for what is no hexadecimal digit. */
static inline unsigned fp_nibble(uint8_t c) {
    const unsigned digit = (unsigned)c - '0', letter = ((unsigned)c | 0x20) - 'a';
    return digit < 10 ? digit : letter < 6 ? letter + 10 : 16;
}

/* Reads a position as Callgrind writes it - *, +12, -12, 12 or 0x4f, and a blank - and returns what is
 * behind the blank; NULL for anything else, and for what is beyond 64 bits. */
static inline const uint8_t *fp_text_position(const uint8_t *p, uint64_t base, uint64_t *to) {
    uint64_t v = 0;
    if (*p == '*') {
        v = base;
        p++;
    } else if (*p == '+') {
        p = fp_decimal(p + 1, &v);
        v += base;
        if (v < base) return NULL;
    } else if (*p == '-') {
        p = fp_decimal(p + 1, &v);
        if (v > base) return NULL;
        v = base - v;
    } else if (p[0] == '0' && p[1] == 'x') {
        const uint8_t *first = p += 2;
        for (unsigned nibble; (nibble = fp_nibble(*p)) < 16; p++) v = v << 4 | nibble;
        if ((size_t)(p - first) - 1 >= 16) return NULL;
    } else {
        p = fp_decimal(p, &v);
    }
    *to = v;
    return p && *p == ' ' ? p + 1 : NULL;
}

#endif
