#include "core/json.h"

#include "core/utf8.h"

enum { LONGEST = 6 }; /* longest escape of a byte: \u001f */

int fp_json_text(struct fp_buf *to, const uint8_t *p, size_t n, uint64_t *replaced) {
    if (n > SIZE_MAX / LONGEST || fp_buf_reserve(to, n * LONGEST)) return FP_E_NOMEM;
    uint8_t *out = to->p + to->n;
    for (size_t i = 0; i < n;) {
        const uint8_t c = p[i];
        if (c == '\\' && i + 1 == n) {
            memcpy(out, "\\u005c", 6);
            out += 6;
            i++;
        } else if (c == '"' || c == '\\') {
            *out++ = '\\';
            *out++ = c;
            i++;
        } else if (c < ' ') {
            memcpy(out, "\\u00", 4);
            out[4] = (uint8_t)('0' + (c >> 4));
            out[5] = (uint8_t)"0123456789abcdef"[c & 15];
            out += 6;
            i++;
        } else {
            const unsigned length = fp_utf8_length(p + i, n - i);
            memcpy(out, length ? (const void *)(p + i) : "\xef\xbf\xbd", length ? length : 3);
            out += length ? length : 3;
            *replaced += !length;
            i += length ? length : 1;
        }
    }
    to->n = (size_t)(out - to->p);
    return 0;
}
