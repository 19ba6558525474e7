/* core/buf.h - a growable output buffer, with writers of hexadecimal numbers and varints. */
#pragma once

#include "core/fp.h"

/* cffi-begin */

/* A buffer with this many bytes is drained, even in the middle of a batch: a row, such as a stack of a million frames,
 * may take far more room in the output than in memory. */
enum { FP_DRAIN = 1 << 18 };

/* Output waiting to be drained: p[0..n).  The owner drains by writing those
 * bytes away and setting n = 0.  `failed` is sticky: an allocation failed and
 * the content is incomplete. */
struct fp_buf {
    uint8_t *p;
    size_t n;
    size_t cap;
    int32_t failed;
};

/* Makes room for `more` further bytes.  0.  When memory ran out it escapes (core/guard.h); without a guard
 * it sets `failed` and returns FP_E_NOMEM. */
int fp_buf_reserve(struct fp_buf *b, size_t more);
void fp_buf_free(struct fp_buf *b);

/* cffi-end */

#define FP_FREE_BUFFERS(...) FP_EACH(struct fp_buf, __VA_ARGS__) fp_buf_free(*at)

int fp_buf_put(struct fp_buf *b, const void *p, size_t n);

/* Appends n bytes as twice as many hexadecimal digits.  0 or FP_E_NOMEM. */
int fp_buf_hex(struct fp_buf *b, const uint8_t *p, size_t n);

/* Writers into memory that the caller has reserved; each returns the new end.
 * Longest output: hex 16 bytes, varint 10.  Decimals: core/digits.h. */
uint8_t *fp_hex(uint8_t *to, uint64_t v);

static inline uint8_t *fp_varint(uint8_t *to, uint64_t v) {
    while (v >= 0x80) {
        *to++ = (uint8_t)(v | 0x80);
        v >>= 7;
    }
    *to++ = (uint8_t)v;
    return to;
}

/* Append a varint, or a byte. */
static inline void fp_buf_varint(struct fp_buf *b, uint64_t v) {
    if (FP_UNLIKELY(b->cap - b->n < 10) && fp_buf_reserve(b, 10)) return;
    b->n = (size_t)(fp_varint(b->p + b->n, v) - b->p);
}
static inline void fp_buf_byte(struct fp_buf *b, unsigned v) {
    if (FP_UNLIKELY(b->cap == b->n) && fp_buf_reserve(b, 1)) return;
    b->p[b->n++] = (uint8_t)v;
}

/* Reads a number that fp_varint wrote, so it is complete; returns its end.  For untrusted bytes use core/wire.h. */
static inline const uint8_t *fp_varint_read(const uint8_t *p, uint64_t *v) {
    uint64_t byte = *p++, found = byte & 127;
    for (unsigned shift = 7; byte & 128; shift += 7) {
        byte = *p++;
        found |= (byte & 127) << (shift & 63);
    }
    *v = found;
    return p;
}

/* The same from a window. */
static inline uint64_t fp_varint_next(struct fp_window *in) {
    uint64_t v;
    in->pos = (size_t)(fp_varint_read(in->p + in->pos, &v) - in->p);
    return v;
}

/* Zigzag, for small varints: 0, -1, 1, -2 ... become 0, 1, 2, 3 ...  Differences wrap at 2^64. */
static inline uint64_t fp_zig(uint64_t v) {
    return v << 1 ^ (0 - (v >> 63));
}
static inline uint64_t fp_zag(uint64_t v) {
    return v >> 1 ^ (0 - (v & 1));
}
