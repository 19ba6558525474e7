#include "core/utf8.h"

int fp_is_utf8(const uint8_t *p, size_t n) {
    for (size_t i = 0; i < n;) {
        const unsigned length = fp_utf8_length(p + i, n - i);
        if (!length) return 0;
        i += length;
    }
    return 1;
}

int fp_utf8_mend(struct fp_buf *to, const uint8_t *p, size_t n) {
    for (size_t i = 0; i < n;) {
        const unsigned length = fp_utf8_length(p + i, n - i);
        if (length ? fp_buf_put(to, p + i, length) : fp_buf_put(to, "\xef\xbf\xbd", 3)) return FP_E_NOMEM;
        i += length ? length : 1;
    }
    return 0;
}
