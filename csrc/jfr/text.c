/* Strings begin with a byte for their kind:
 *
 *   00               null
 *   01               ""
 *   02 key           a constant of java.lang.String
 *   03 n bytes       UTF-8, or the JVM's modified UTF-8: characters above U+FFFF are two surrogates of three bytes
 *                    each, NUL is c0 80
 *   04 n chars       UTF-16, each a number
 *   05 n bytes       Latin-1
 */
#include "jfr/text.h"

/* Appends a character. */
static void put(struct fp_buf *to, uint32_t c) {
    fp_buf_reserve(to, 4);
    uint8_t *p = to->p + to->n;
    if (c < 0x80) {
        *p++ = (uint8_t)c;
    } else if (c < 0x800) {
        *p++ = (uint8_t)(0xc0 | c >> 6);
        *p++ = (uint8_t)(0x80 | (c & 63));
    } else if (c < 0x10000) {
        *p++ = (uint8_t)(0xe0 | c >> 12);
        *p++ = (uint8_t)(0x80 | (c >> 6 & 63));
        *p++ = (uint8_t)(0x80 | (c & 63));
    } else {
        *p++ = (uint8_t)(0xf0 | c >> 18);
        *p++ = (uint8_t)(0x80 | (c >> 12 & 63));
        *p++ = (uint8_t)(0x80 | (c >> 6 & 63));
        *p++ = (uint8_t)(0x80 | (c & 63));
    }
    to->n = (size_t)(p - to->p);
}

static int is_high(uint32_t c) {
    return c >> 10 == 0xd800 >> 10;
}
static int is_low(uint32_t c) {
    return c >> 10 == 0xdc00 >> 10;
}
static uint32_t paired(uint32_t high, uint32_t low) {
    return 0x10000 + ((high & 0x3ff) << 10 | (low & 0x3ff));
}

/* The surrogate of three bytes at p, or 0. */
static uint32_t surrogate(const uint8_t *p, size_t n) {
    if (n < 3 || p[0] != 0xed || (p[1] & 0xe0) != 0xa0 || (p[2] & 0xc0) != 0x80) return 0;
    return 0xd000u | (uint32_t)(p[1] & 63) << 6 | (p[2] & 63u);
}

static void put_utf8(struct fp_buf *to, const uint8_t *p, size_t n) {
    size_t i = 0;
    while (i < n) {
        size_t k = i;
        while (k < n && p[k] != 0xed && p[k] != 0xc0) k++;
        fp_buf_put(to, p + i, k - i);
        if ((i = k) == n) break;
        const uint32_t high = surrogate(p + i, n - i), low = high ? surrogate(p + i + 3, n - i - 3) : 0;
        if (p[i] == 0xc0 && n - i > 1 && p[i + 1] == 0x80) {
            put(to, 0);
            i += 2;
        } else if (is_high(high) && is_low(low)) {
            put(to, paired(high, low));
            i += 6;
        } else {
            fp_buf_put(to, p + i++, 1);
        }
    }
}

static const uint8_t *put_chars(const struct fp_jfr_reader *r, const uint8_t *p, const uint8_t *end, uint64_t n,
                                struct fp_buf *to) {
    uint32_t high = 0;
    if (n > (uint64_t)(end - p)) return NULL;
    while (n--) {
        uint64_t v;
        if (!(p = fp_jfr_number(r, p, end, 2, &v))) return NULL;
        const uint32_t c = (uint32_t)v & 0xffff;
        if (high && is_low(c)) {
            put(to, paired(high, c));
            high = 0;
            continue;
        }
        if (high) put(to, high);
        high = is_high(c) ? c : 0;
        if (!high) put(to, c);
    }
    if (high) put(to, high);
    return p;
}

const uint8_t *fp_jfr_string(const struct fp_jfr_reader *r, const uint8_t *p, const uint8_t *end, struct fp_buf *to,
                             struct fp_jfr_string *found) {
    uint64_t n;
    *found = (struct fp_jfr_string){0};
    if (p == end) return NULL;
    const unsigned kind = *p++;
    switch (kind) {
        case 0: found->is_null = 1; return p;
        case 1: return p;
        case 2: found->is_constant = 1; return fp_jfr_number(r, p, end, 8, &found->key);
        case 4: p = fp_jfr_number(r, p, end, 4, &n); return p ? put_chars(r, p, end, n, to) : NULL;
        case 3:
        case 5:
            p = fp_jfr_number(r, p, end, 4, &n);
            if (!p || n > (uint64_t)(end - p)) return NULL;
            if (kind == 3) put_utf8(to, p, (size_t)n);
            for (size_t i = 0; kind == 5 && i < n; i++) put(to, p[i]);
            return p + n;
        default: return NULL;
    }
}
