/* core/utf8_names.h - the text of each name in an output format, distinct for distinct names.
 *
 * Some names cannot be written in a format: newlines in lines of text, bytes that are not UTF-8 in JSON.  Their
 * replacement may equal another name, which would merge two functions.  So the second one gets a number:
 *
 *   "a<newline>b"  becomes  a\nb           "a\nb"  becomes  a\nb [2]
 *
 * Names that were read back from such an output are written unchanged.
 *
 * Memory: the texts, and 4 bytes for each name and text up to the last one.  Zero-initialize before the first call.
 */
#pragma once

#include "core/buf.h"
#include "core/model.h"

/* cffi-begin */

struct fp_utf8_names {
    /* private from here on */
    struct fp_strings texts;
    uint32_t *text_of; /* by name: its text, 0 = none yet */
    uint32_t cap_text_of;
    uint32_t *n_wanted; /* by text: names that would have it */
    uint32_t cap_wanted;
};

/* cffi-end */

void fp_utf8_names_clear(struct fp_utf8_names *a);

/* Adds a non-empty text for a name that has none yet, and appends ` [2]`, ` [3]` ... if another name has it.  Returns
 * its id in `texts`; FP_NO_ID when memory ran out. */
uint32_t fp_utf8_names_add(struct fp_utf8_names *a, struct fp_buf *text);

/* The same for the name with this number, which keeps the text that it already has. */
uint32_t fp_utf8_names_text(struct fp_utf8_names *a, uint32_t name, struct fp_buf *text);

/* A string as UTF-8: unchanged if it is valid, otherwise with U+FFFD for each invalid byte, and made unique.  *n
 * becomes its length; it is valid until the next call.  *replaced counts the invalid bytes, once for each string.  NULL
 * when memory ran out. */
const uint8_t *fp_utf8_names_utf8(struct fp_utf8_names *a, struct fp_buf *scratch, const struct fp_strings *strings,
                                  uint32_t string, size_t *n, uint64_t *replaced);

/* The text of a name, 0 if it has none yet. */
static inline uint32_t fp_utf8_names_find(const struct fp_utf8_names *a, uint32_t name) {
    return name < a->cap_text_of ? a->text_of[name] : 0;
}
