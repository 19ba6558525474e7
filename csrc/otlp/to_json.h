/* otlp/to_json.h - messages as protocol buffers -> OTLP's JSON, for the writer. */
#pragma once

#include "otlp/json_fields.h"

/* Appends the elements of a list, `"a","b"` or `{...},{...}`, from the n bytes at p: complete fields, each an element
 * of field `number` of message `message`.  `first`: write no comma before the first. */
int fp_otlp_to_json(const uint8_t *p, size_t n, uint32_t message, uint32_t number, int first, struct fp_buf *out);

/* Appends the members of a message, `"a":1,"b":2`, without brackets. */
int fp_otlp_members(const uint8_t *p, size_t n, uint32_t message, struct fp_buf *out);
