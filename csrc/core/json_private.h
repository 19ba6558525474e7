/* core/json_private.h - what tokens (json_lex.c) and whole values (json_values.c) are read with.  Private. */
#pragma once

#include "core/digits.h"
#include "core/json_lex.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

/* What may come next. */
enum {
    FP_JSON_VALUE = 0,
    FP_JSON_ELEMENT,
    FP_JSON_NEXT_ELEMENT,
    FP_JSON_FIRST_KEY,
    FP_JSON_NEXT_KEY,
    FP_JSON_MEMBER,
    FP_JSON_COMMA,
    FP_JSON_NOTHING
};

static inline int is_blank(uint8_t c) {
    return c <= ' ' && (c == ' ' || c == '\n' || c == '\t' || c == '\r');
}

#if defined(__SSE2__)
/* A bit for each of the 16 bytes at p that is `one` or `other`. */
static inline unsigned either_of(const uint8_t *p, char one, char other) {
    const __m128i text = _mm_loadu_si128((const __m128i *)(const void *)p);
    return (unsigned)_mm_movemask_epi8(
        _mm_or_si128(_mm_cmpeq_epi8(text, _mm_set1_epi8(one)), _mm_cmpeq_epi8(text, _mm_set1_epi8(other))));
}
#endif

static inline int has_four_digits(const uint8_t *p, size_t n) {
    return n >= 4 && fp_nibble(p[0]) < 16 && fp_nibble(p[1]) < 16 && fp_nibble(p[2]) < 16 && fp_nibble(p[3]) < 16;
}

/* The first quote or backslash of [p, end), or `end`.  In a word, a byte minus 1 borrows from bit 7 if it is 0. */
static inline const uint8_t *after_plain(const uint8_t *p, const uint8_t *end) {
#if defined(__SSE2__)
    for (; end - p >= 16; p += 16) {
        const unsigned found = either_of(p, '"', '\\');
        if (found) return p + fp_lowest_bit(found);
    }
#elif __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    const uint64_t ones = 0x0101010101010101;
    for (; end - p >= 8; p += 8) {
        const uint64_t w = fp_u64(p), quote = w ^ '"' * ones, backslash = w ^ '\\' * ones;
        const uint64_t found = (((quote - ones) & ~quote) | ((backslash - ones) & ~backslash)) & 0x80 * ones;
        if (found) return p + fp_lowest_bit(found) / 8; /* the lowest bit is exact */
    }
#endif
    while (p < end && *p != '"' && *p != '\\') p++;
    return p;
}

static inline const uint8_t *after_digits(const uint8_t *p, const uint8_t *end) {
    while (end - p >= 8) {
        const unsigned n = fp_n_digits8(p);
        p += n;
        if (n < 8) return p;
    }
    while (p < end && fp_is_digit(*p)) p++;
    return p;
}

/* The end of the number of the form -12.5e3 at p; NULL if it has another form. */
static inline const uint8_t *after_number(const uint8_t *p, const uint8_t *end) {
    const uint8_t *digits = p + (*p == '-');
    if ((p = after_digits(digits, end)) == digits) return NULL;
    if (p < end && *p == '.') {
        digits = p + 1;
        if ((p = after_digits(digits, end)) == digits) return NULL;
    }
    if (p < end && (*p | 0x20) == 'e') {
        digits = ++p;
        digits += p < end && (*p == '-' || *p == '+');
        if ((p = after_digits(digits, end)) == digits) return NULL;
    }
    return p;
}
