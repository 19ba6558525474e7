/* fp_digits.h - decimal numbers in text without a branch a digit.
 *
 * Floor 0.  Looks at 32 bytes at once and returns bit masks, bit i for byte i,
 * so that the ends of all numbers of a line are found before the first one is
 * read:
 *
 *     text     + 4   0   1 2 3 \n
 *     digit    0 1 0 1 0 1 1 1 0
 *     blank    0 0 1 0 1 0 0 0 0
 *     newline  0 0 0 0 0 0 0 0 1
 */
#ifndef FP_DIGITS_H
#define FP_DIGITS_H

#include "fp.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

struct fp_masks {
    uint64_t digit;
    uint64_t blank;
    uint64_t newline;
};

/* The masks of p[0..32), in the low 32 bits. */
static inline struct fp_masks fp_masks32(const uint8_t *p) {
    struct fp_masks m;
#if defined(__SSE2__)
    __m128i a = _mm_loadu_si128((const __m128i *)(const void *)p);
    __m128i b = _mm_loadu_si128((const __m128i *)(const void *)(p + 16));
    /* '0'..'9' become -128..-119: one signed comparison */
    const __m128i shift = _mm_set1_epi8((char)(0x80 - '0')), ten = _mm_set1_epi8(-118);
    const __m128i blank = _mm_set1_epi8(' '), newline = _mm_set1_epi8('\n');
#define FP_BITS(x, y) ((uint32_t)_mm_movemask_epi8(x) | (uint32_t)_mm_movemask_epi8(y) << 16)
    m.digit = FP_BITS(_mm_cmplt_epi8(_mm_add_epi8(a, shift), ten), _mm_cmplt_epi8(_mm_add_epi8(b, shift), ten));
    m.blank = FP_BITS(_mm_cmpeq_epi8(a, blank), _mm_cmpeq_epi8(b, blank));
    m.newline = FP_BITS(_mm_cmpeq_epi8(a, newline), _mm_cmpeq_epi8(b, newline));
#undef FP_BITS
#else
    m.digit = m.blank = m.newline = 0;
    for (unsigned i = 0; i < 32; i++) {
        m.digit |= (uint64_t)((uint8_t)(p[i] - '0') < 10) << i;
        m.blank |= (uint64_t)(p[i] == ' ') << i;
        m.newline |= (uint64_t)(p[i] == '\n') << i;
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

#endif
