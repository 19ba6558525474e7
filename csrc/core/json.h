/* core/json.h - texts as JSON writes them. */
#ifndef FP_JSON_H
#define FP_JSON_H

#include "core/buf.h"

/* Appends n bytes of text as what stands between the quotes of a JSON string; *replaced counts bytes that are no UTF-8
 * and become U+FFFD.  A backslash at the end is `\u005c`, because Perfetto takes the quote behind `\\` for a part of
 * the text.  0 or FP_E_NOMEM. */
int fp_json_text(struct fp_buf *to, const uint8_t *p, size_t n, uint64_t *replaced);

#endif
