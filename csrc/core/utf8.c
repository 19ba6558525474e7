#include "core/utf8.h"

int fp_is_utf8(const uint8_t *p, size_t n) {
    for (size_t i = 0; i < n;) {
        const unsigned length = fp_utf8_length(p + i, n - i);
        if (!length) return 0;
        i += length;
    }
    return 1;
}

int fp_is_text(const uint8_t *p, size_t n) {
    for (size_t i = 0; i < n; i++)
        if ((p[i] < ' ' && p[i] != '\t' && p[i] != '\n' && p[i] != '\r') || p[i] == 0x7f) return 0;
    return fp_is_utf8(p, n);
}

int fp_utf8_replace(struct fp_buf *to, const uint8_t *p, size_t n) {
    for (size_t i = 0; i < n;) {
        const unsigned length = fp_utf8_length(p + i, n - i);
        if (length ? fp_buf_put(to, p + i, length) : fp_buf_put(to, "\xef\xbf\xbd", 3)) return FP_E_NOMEM;
        i += length ? length : 1;
    }
    return 0;
}
