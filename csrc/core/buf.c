#include "core/buf.h"

#include "core/array.h"
#include "core/guard.h"

int fp_buf_reserve(struct fp_buf *b, size_t more) {
    if (b->cap - b->n >= more) return 0;
    size_t want = b->n + more;
    if (want >= b->n && !fp_bytes_room(&b->p, &b->cap, want)) return 0;
    b->failed = 1;
    return fp_escape();
}

void fp_buf_free(struct fp_buf *b) {
    free(b->p);
    memset(b, 0, sizeof *b);
}

int fp_buf_put(struct fp_buf *b, const void *p, size_t n) {
    int status = fp_buf_reserve(b, n);
    if (status || !n) return status;
    memcpy(b->p + b->n, p, n);
    b->n += n;
    return 0;
}

uint8_t *fp_hex(uint8_t *to, uint64_t v) {
    unsigned digits = 1;
    while (digits < 16 && v >> (4 * digits)) digits++;
    for (unsigned i = digits; i-- > 0;) *to++ = (uint8_t)"0123456789abcdef"[v >> (4 * i) & 15];
    return to;
}

int fp_buf_hex(struct fp_buf *b, const uint8_t *p, size_t n) {
    if (n > SIZE_MAX / 2) return fp_escape();
    if (fp_buf_reserve(b, 2 * n)) return FP_E_NOMEM;
    for (size_t i = 0; i < n; i++) {
        b->p[b->n++] = (uint8_t)"0123456789abcdef"[p[i] >> 4];
        b->p[b->n++] = (uint8_t)"0123456789abcdef"[p[i] & 15];
    }
    return 0;
}
