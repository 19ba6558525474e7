/* core/json.h - writes JSON strings.  C only. */
#pragma once

#include "core/buf.h"

/* Appends n bytes of text as a JSON string without its quotes; *replaced counts bytes that are not UTF-8 and become
 * U+FFFD.  A backslash at the end is written as `\u005c`, because Perfetto reads the quote after `\\` as part of the
 * text.  0 or FP_E_NOMEM. */
int fp_json_text(struct fp_buf *to, const uint8_t *p, size_t n, uint64_t *replaced);
