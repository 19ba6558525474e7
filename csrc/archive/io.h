/* archive/io.h - reads the byte streams of a payload, mostly varints.
 * Private to the archive's C files. */
#pragma once

#include "core/core.h"

/* A stream being read.  Reading past the end, or a number that is too large, sets `bad`; the result is then undefined.
 * So a decoder may check once for many numbers. */
struct fp_archive_cur {
    const uint8_t *p;
    const uint8_t *end;
    int bad;
};

static inline uint64_t fp_archive_cur_varint(struct fp_archive_cur *c) {
    /* nearly all varints take one byte or two */
    if (FP_LIKELY(c->end - c->p >= 2)) {
        const uint32_t two = fp_u16(c->p);
        if (!(two & 0x80)) {
            c->p++;
            return two & 0x7f;
        }
        if (!(two & 0x8000)) {
            c->p += 2;
            return (two & 0x7f) | two >> 8 << 7;
        }
    }
    uint64_t v = 0;
    const int n = fp_wire_read_long(c->p, c->end, &v);
    c->bad |= n <= 0;
    c->p = n > 0 ? c->p + n : c->end;
    return v;
}

static inline uint32_t fp_archive_cur_u32(struct fp_archive_cur *c) {
    uint64_t v = fp_archive_cur_varint(c);
    if (v > UINT32_MAX) c->bad = 1;
    return (uint32_t)v;
}

static inline uint8_t fp_archive_cur_byte(struct fp_archive_cur *c) {
    if (FP_LIKELY(c->p < c->end)) return *c->p++;
    c->bad = 1;
    return 0;
}
