/* core/digits.h - decimal and hexadecimal numbers in text, mostly without a branch for each digit.  C only. */
#pragma once

#include "core/fp.h"

static inline unsigned fp_lowest_bit(uint64_t mask) {
    return (unsigned)__builtin_ctzll(mask);
}

/* The number of `n` digits (1 to 8) at p.  Eight bytes at p must be readable.
 *
 *     "407 ..." n = 3:  00 00 00 00 00 34 30 37  shifted to the top of the word, leading zeros
 *     one multiplication each combines digits to pairs, pairs to fours, fours to eights
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

/* How many of the eight bytes at p are digits, up to the first other byte. */
static inline unsigned fp_n_digits8(const uint8_t *p) {
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    const uint64_t ones = 0x0101010101010101, w = fp_u64(p) ^ 0x30 * ones;
    const uint64_t others = (w | (w + 0x76 * ones)) & 0x80 * ones; /* 10 + 0x76 is 0x80; the lowest bit is exact */
    return others ? fp_lowest_bit(others) / 8 : 8;
#else
    unsigned n = 0;
    while (n < 8 && fp_is_digit(p[n])) n++;
    return n;
#endif
}

/* Reads 1 to 18 digits (19 could overflow) and returns the byte after them; NULL for no digit or more than 18.
 * A byte other than a digit must follow. */
static inline const uint8_t *fp_decimal(const uint8_t *p, uint64_t *to) {
    const uint8_t *first = p;
    uint64_t v = 0;
    for (; fp_is_digit(*p); p++) v = v * 10 + (uint64_t)(*p - '0');
    *to = v;
    return (size_t)(p - first) - 1 < 18 ? p : NULL;
}

/* fp_decimal without a branch for each digit: eight bytes at p must be readable. */
static inline const uint8_t *fp_decimal8(const uint8_t *p, uint64_t *to) {
    const unsigned n = fp_n_digits8(p);
    if (FP_UNLIKELY(n - 1 >= 7)) return fp_decimal(p, to);
    *to = fp_digits8(p, n);
    return p + n;
}

static const uint64_t fp_tens[19] = {1,
                                     10,
                                     100,
                                     1000,
                                     10000,
                                     100000,
                                     1000000,
                                     10000000,
                                     100000000,
                                     1000000000,
                                     10000000000,
                                     100000000000,
                                     1000000000000,
                                     10000000000000,
                                     100000000000000,
                                     1000000000000000,
                                     10000000000000000,
                                     100000000000000000,
                                     1000000000000000000};

/* Appends up to `most` digits before `end` to *v, eight at a time.  Returns their end.  More than 18 may overflow. */
static inline const uint8_t *fp_digits(const uint8_t *p, const uint8_t *end, unsigned most, uint64_t *v) {
    while (end - p >= 8) {
        unsigned n = fp_n_digits8(p);
        n = n < most ? n : most;
        if (!n) return p;
        *v = *v * fp_tens[n] + fp_digits8(p, n);
        p += n;
        most -= n;
        if (n < 8) return p;
    }
    for (; most && p < end && fp_is_digit(*p); p++, most--) *v = *v * 10 + (uint64_t)(*p - '0');
    return p;
}

/* 0..15, or 16 if c is not a hexadecimal digit. */
static inline unsigned fp_nibble(uint8_t c) {
    const unsigned digit = (unsigned)c - '0', letter = ((unsigned)c | 0x20) - 'a';
    return digit < 10 ? digit : letter < 6 ? letter + 10 : 16;
}

/* Bit 7 of those of 8 bytes that are hexadecimal digits.  *nibbles: their values, and anything for the others. */
static inline uint64_t fp_hex_bytes(uint64_t w, uint64_t *nibbles) {
    const uint64_t ones = 0x0101010101010101, low = w & 0x7f * ones, lower = low | 0x20 * ones;
    const uint64_t digits = (low + 0x50 * ones) & ~(low + 0x46 * ones); /* '0' + 0x50, '9' + 1 + 0x46 are 0x80 */
    const uint64_t letters = (lower + 0x1f * ones) & ~(lower + 0x19 * ones) & ~w & 0x80 * ones;
    *nibbles = (w & 0x0f * ones) + (letters >> 7) * 9; /* a letter counts 9 more */
    return ((digits & ~w) | letters) & 0x80 * ones;
}

/* The number of the first n values, 1 to 8: nibbles to bytes, bytes to pairs, pairs to fours, as in fp_digits8. */
static inline uint64_t fp_hex_join(uint64_t nibbles, unsigned n) {
    uint64_t h = nibbles << (64 - 8 * n);
    h = (h << 4 | h >> 8) & 0x00ff00ff00ff00ff;
    h = (h << 8 | h >> 16) & 0x0000ffff0000ffff;
    return (h << 16 | h >> 32) & 0x00000000ffffffff;
}

/* Reads hexadecimal digits, eight at a time, up to `end` or the first other byte: moves *p past them and appends them
 * to *v.  Returns whether a digit was lost because *v has only 64 bits. */
static inline int fp_hexadecimal(const uint8_t **p, const uint8_t *end, uint64_t *v) {
    int overflows = 0;
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    while (end - *p >= 8) {
        uint64_t nibbles;
        const uint64_t others = ~fp_hex_bytes(fp_u64(*p), &nibbles) & 0x8080808080808080;
        const unsigned n = others ? fp_lowest_bit(others) / 8 : 8;
        if (!n) return overflows;
        overflows |= *v >> (64 - 4 * n) != 0;
        *v = *v << 4 * n | fp_hex_join(nibbles, n);
        *p += n;
        if (n < 8) return overflows;
    }
#endif
    for (; *p < end && fp_nibble(**p) < 16; ++*p) {
        overflows |= *v >> 60 != 0;
        *v = *v << 4 | fp_nibble(**p);
    }
    return overflows;
}

/* A number of the form 0x7f12, of 1 to 16 digits, and nothing else.  Whether the text is such. */
static inline int fp_is_hex(const uint8_t *p, size_t n, uint64_t *to) {
    *to = 0;
    if (n < 3 || n > 18 || p[0] != '0' || p[1] != 'x') return 0;
    for (size_t i = 2; i < n; i++) {
        if (fp_nibble(p[i]) > 15) return 0;
        *to = *to << 4 | fp_nibble(p[i]);
    }
    return 1;
}

/* ---- writers: each returns the new end, but may write beyond it: FP_DIGITS_ROOM bytes must be writable ---- */

enum { FP_DIGITS_ROOM = 32 };

static inline void fp_store_u64(uint8_t *to, uint64_t v) {
    memcpy(to, &v, 8);
}

/* The 8 digits of v < 10^8, the first in the lowest byte.
 *
 *     v = 1234567     two fours 0123 4567 | four twos 01 23 45 67 | eight ones
 */
static inline uint64_t fp_eight_digits(uint64_t v) {
    const uint64_t high = v * 3518437209 >> 45; /* v / 10^4 */
    uint64_t w = high | (v - high * 10000) << 32;
    uint64_t q = (w * 5243 >> 19) & 0x0000007f0000007f; /* each four / 100 */
    w = q | (w - q * 100) << 16;
    q = (w * 103 >> 10) & 0x000f000f000f000f; /* each two / 10 */
    return q | (w - q * 10) << 8;
}

/* 0..999 in decimal: the digits, and in the fourth byte how many they are. */
#define FP_SMALL1(v)                                                                     \
    {(uint8_t)('0' + ((v) < 10    ? (v)                                                  \
                      : (v) < 100 ? (v) / 10                                             \
                                  : (v) / 100)),                                         \
     (uint8_t)('0' + ((v) < 100 ? (v) % 10 : (v) / 10 % 10)), (uint8_t)('0' + (v) % 10), \
     (uint8_t)(1 + ((v) > 9) + ((v) > 99))}
#define FP_SMALL5(v) FP_SMALL1(v), FP_SMALL1((v) + 1), FP_SMALL1((v) + 2), FP_SMALL1((v) + 3), FP_SMALL1((v) + 4)
#define FP_SMALL25(v) FP_SMALL5(v), FP_SMALL5((v) + 5), FP_SMALL5((v) + 10), FP_SMALL5((v) + 15), FP_SMALL5((v) + 20)
#define FP_SMALL100(v) FP_SMALL25(v), FP_SMALL25((v) + 25), FP_SMALL25((v) + 50), FP_SMALL25((v) + 75)
static const uint8_t fp_small[1000][4] = {FP_SMALL100(0),   FP_SMALL100(100), FP_SMALL100(200), FP_SMALL100(300),
                                          FP_SMALL100(400), FP_SMALL100(500), FP_SMALL100(600), FP_SMALL100(700),
                                          FP_SMALL100(800), FP_SMALL100(900)};

/* v in decimal: up to 20 digits. */
static inline uint8_t *fp_put_decimal(uint8_t *to, uint64_t v) {
    if (v < 1000) {
        memcpy(to, fp_small[v], 4);
        return to + fp_small[v][3];
    }
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    if (v < 100000000) {
        const uint64_t digits = fp_eight_digits(v);
        const unsigned zeros = fp_lowest_bit(digits | (uint64_t)1 << 56) / 8; /* one digit stays */
        fp_store_u64(to, (digits + 0x3030303030303030) >> 8 * zeros);
        return to + 8 - zeros;
    }
    to = fp_put_decimal(to, v / 100000000);
    fp_store_u64(to, fp_eight_digits(v % 100000000) + 0x3030303030303030);
    return to + 8;
#else
    uint8_t digits[20];
    unsigned n = 0;
    do digits[n++] = (uint8_t)('0' + v % 10);
    while (v /= 10);
    while (n) *to++ = digits[--n];
    return to;
#endif
}

static inline uint8_t *fp_put_signed(uint8_t *to, int64_t v) {
    *to = '-';
    return v < 0 ? fp_put_decimal(to + 1, 0 - (uint64_t)v) : fp_put_decimal(to, (uint64_t)v);
}

/* The 8 hexadecimal digits of v < 2^32, the first in the lowest byte. */
static inline uint64_t fp_eight_nibbles(uint64_t v) {
    v = (v | v << 16) & 0x0000ffff0000ffff;
    v = (v | v << 8) & 0x00ff00ff00ff00ff;
    v = (v | v << 4) & 0x0f0f0f0f0f0f0f0f;
    const uint64_t letters = (v + 0x0606060606060606) >> 4 & 0x0101010101010101;
    return __builtin_bswap64(v + 0x3030303030303030 + letters * ('a' - '0' - 10));
}

/* v in hexadecimal: up to 16 digits. */
static inline uint8_t *fp_put_hex(uint8_t *to, uint64_t v) {
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    if (v >> 32 == 0) {
        const unsigned zeros = (unsigned)__builtin_clz((uint32_t)v | 1) / 4; /* one digit stays */
        fp_store_u64(to, fp_eight_nibbles(v) >> 8 * zeros);
        return to + 8 - zeros;
    }
    to = fp_put_hex(to, v >> 32);
    fp_store_u64(to, fp_eight_nibbles(v & UINT32_MAX));
    return to + 8;
#else
    unsigned n = (64 - (unsigned)__builtin_clzll(v | 1) + 3) / 4;
    for (unsigned i = n; i-- > 0; v >>= 4) to[i] = (uint8_t)"0123456789abcdef"[v & 15];
    return to + n;
#endif
}
