/* Value columns, used by chunks of stacks and of graphs.
 * See docs/formats/archive.md, "Rows". */
#include "archive/private.h"

void fp_archive_values_open(struct fp_cursor *streams, uint32_t n, struct fp_archive_value_cur **values,
                            uint32_t *cap) {
    fp_array_room(values, cap, n, sizeof **values);
    for (uint32_t k = 0; k < n; k++) {
        struct fp_cursor *c = &streams[k];
        (*values)[k] = (struct fp_archive_value_cur){c->p < c->end ? fp_cursor_number(c) : 1, 0};
    }
}

/* A packed value column is the common divisor of its values, then a code for each
 * value, which is divided by it: 0 if it equals the previous one, else
 * 1 + zigzag(value).  For -2^63 that would be 2^64.  It has the code
 * 1 + zigzag(previous value), which is never used, since a repetition is 0. */
void fp_archive_values_pack(struct fp_buf *stream) {
    size_t n = stream->n / 8;
    if (!n) return;
    const size_t raw = stream->n; /* the packed bytes are appended to these, then moved to the beginning */
    uint64_t divisor = 0, last = 0;
    for (size_t i = 0; i < n && divisor != 1; i++) {
        uint64_t a = fp_u64(stream->p + 8 * i), b = divisor;
        a = a >> 63 ? 0 - a : a;
        while (b) {
            uint64_t r = a % b;
            a = b;
            b = r;
        }
        divisor = a;
    }
    if (!divisor || divisor >> 63) divisor = 1;
    fp_buf_varint(stream, divisor);
    for (size_t i = 0; i < n; i++) {
        uint64_t v = fp_u64(stream->p + 8 * i);
        if (divisor > 1) v = (uint64_t)((int64_t)v / (int64_t)divisor);
        uint64_t zig = fp_zig(v);
        fp_buf_varint(stream, v == last ? 0 : zig == UINT64_MAX ? 1 + fp_zig(last) : 1 + zig);
        last = v;
    }
    stream->n -= raw;
    memmove(stream->p, stream->p + raw, stream->n);
}
