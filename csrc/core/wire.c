#include "core/wire.h"

int fp_wire_put_number(struct fp_buf *b, uint32_t number, uint64_t v) {
    if (fp_buf_reserve(b, FP_WIRE_HEAD)) return FP_E_NOMEM;
    uint8_t *to = fp_varint(b->p + b->n, FP_WIRE_TAG((uint64_t)number, FP_WIRE_VARINT));
    b->n = (size_t)(fp_varint(to, v) - b->p);
    return 0;
}

int fp_wire_put_nonzero(struct fp_buf *b, uint32_t number, uint64_t v) {
    return v ? fp_wire_put_number(b, number, v) : 0;
}

int fp_wire_put_bytes(struct fp_buf *b, uint32_t number, const void *p, size_t n) {
    if (fp_buf_reserve(b, FP_WIRE_HEAD)) return FP_E_NOMEM;
    uint8_t *to = fp_varint(b->p + b->n, FP_WIRE_TAG((uint64_t)number, FP_WIRE_BYTES));
    b->n = (size_t)(fp_varint(to, n) - b->p);
    return fp_buf_put(b, p, n);
}

/* The mark is where the content begins.  One byte before it is kept free for the length.  A content of 128 bytes or
 * more needs a longer length: fp_wire_end moves the content to make room. */
size_t fp_wire_begin(struct fp_buf *b, uint32_t number) {
    if (fp_buf_reserve(b, FP_WIRE_HEAD)) return 0;
    b->n = (size_t)(fp_varint(b->p + b->n, FP_WIRE_TAG((uint64_t)number, FP_WIRE_BYTES)) - b->p) + 1;
    return b->n;
}

int fp_wire_end(struct fp_buf *b, size_t mark) {
    if (b->failed) return FP_E_NOMEM;
    const size_t n = b->n - mark, more = fp_varint_length(n) - 1;
    if (more) {
        if (fp_buf_reserve(b, more)) return FP_E_NOMEM;
        memmove(b->p + mark + more, b->p + mark, n);
        b->n += more;
    }
    fp_varint(b->p + mark - 1, n);
    return 0;
}
