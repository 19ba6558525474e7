/* archive/io.h - reads the byte streams of a payload, mostly varints.
 * Private to the archive's C files. */
#pragma once

#include "core/core.h"

/* A number of 32 bits. */
static inline uint32_t fp_archive_u32(struct fp_cursor *c) {
    const uint64_t v = fp_cursor_number(c);
    if (v > UINT32_MAX) c->status = FP_E_MALFORMED;
    return (uint32_t)v;
}

static inline uint8_t fp_archive_byte(struct fp_cursor *c) {
    return (uint8_t)fp_cursor_fixed(c, 1);
}
