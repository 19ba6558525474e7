/* core/buf.h - a growable output buffer, with writers of hexadecimal numbers and varints. */
#ifndef FP_BUF_H
#define FP_BUF_H

#include "core/fp.h"

/* cffi-begin */

/* Output waiting to be drained: p[0..n).  The owner drains by writing those
 * bytes away and setting n = 0.  `failed` is sticky: an allocation failed and
 * the content is incomplete. */
struct fp_buf {
    uint8_t *p;
    size_t n;
    size_t cap;
    int32_t failed;
};

/* Makes room for `more` further bytes.  0, or FP_E_NOMEM with `failed` set. */
int fp_buf_reserve(struct fp_buf *b, size_t more);
void fp_buf_free(struct fp_buf *b);

/* cffi-end */

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

#endif
