/* core/utf8.h - checks UTF-8.  C only. */
#pragma once

#include "core/buf.h"

/* The length of the UTF-8 character at p, n > 0 bytes, or 0 if it is none (RFC 3629: no surrogates, no more bytes than
 * the character needs, nothing above U+10FFFF). */
static inline unsigned fp_utf8_length(const uint8_t *p, size_t n) {
    if (p[0] < 0x80) return 1;
    unsigned length = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
    if (p[0] < 0xc2 || p[0] > 0xf4 || n < length) return 0;
    for (unsigned i = 1; i < length; i++)
        if ((p[i] & 0xc0) != 0x80) return 0;
    if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) || (p[0] == 0xf0 && p[1] < 0x90) ||
        (p[0] == 0xf4 && p[1] > 0x8f))
        return 0;
    return length;
}

/* Whether n bytes at p are UTF-8. */
int fp_is_utf8(const uint8_t *p, size_t n);

/* Whether they are also free of control characters other than blanks and line ends. */
int fp_is_text(const uint8_t *p, size_t n);

/* Appends n bytes, with U+FFFD instead of each byte that is not UTF-8.  0 or FP_E_NOMEM. */
int fp_utf8_replace(struct fp_buf *to, const uint8_t *p, size_t n);
