#include "core/buf.h"

#include <stdlib.h>

int fp_buf_reserve(struct fp_buf *b, size_t more) {
    if (b->cap - b->n >= more) return 0;
    size_t want = b->n + more;
    if (want < b->n) {
        b->failed = 1;
        return FP_E_NOMEM;
    }
    size_t cap = b->cap ? b->cap : 4096;
    while (cap < want) {
        if (cap > SIZE_MAX / 2) {
            cap = want;
            break;
        }
        cap *= 2;
    }
    uint8_t *p = realloc(b->p, cap);
    if (!p) {
        b->failed = 1;
        return FP_E_NOMEM;
    }
    b->p = p;
    b->cap = cap;
    return 0;
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
