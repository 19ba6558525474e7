/* core/unique.h - a format's texts for names, distinct for distinct names.
 *
 * Some names cannot be written in a format: newlines in lines of text, bytes that are not UTF-8 in JSON.  Their
 * replacement may equal another name, and two names would become one.  So the second text gets a number:
 *
 *   "a<newline>b"  becomes  a\nb           "a\nb"  becomes  a\nb [2]
 *
 * Which of them comes second does not matter to a reader of the text: writing its names again leaves them unchanged.
 *
 * Memory: the texts, and 4 bytes for each name and text up to the last one.  0 everywhere before the first call.
 */
#ifndef FP_UNIQUE_H
#define FP_UNIQUE_H

#include "core/buf.h"
#include "core/model.h"

/* cffi-begin */

struct fp_unique {
    /* private from here on */
    struct fp_strings texts;
    uint32_t *text_of; /* by name: its text, 0 = none yet */
    uint32_t cap_text_of;
    uint32_t *n_wanted; /* by text: how many names want it; 0 = none */
    uint32_t cap_wanted;
};

/* cffi-end */

void fp_unique_clear(struct fp_unique *a);

/* Adds a non-empty text for a name that has none yet.  Appends ` [2]` or more to it if another name has it.  Returns
 * its id in `texts`; FP_NO_ID when memory ran out. */
uint32_t fp_unique_add(struct fp_unique *a, struct fp_buf *text);

/* The same for a name, any number: keeps the text that it already has. */
uint32_t fp_unique_text(struct fp_unique *a, uint32_t name, struct fp_buf *text);

/* A string as UTF-8: unchanged if it is valid, otherwise with U+FFFD for each wrong byte, and made unique.  *n bytes,
 * valid until the next call; *replaced counts these bytes, once for each string.  NULL when memory ran out. */
const uint8_t *fp_unique_utf8(struct fp_unique *a, struct fp_buf *scratch, const struct fp_strings *strings,
                              uint32_t string, size_t *n, uint64_t *replaced);

/* The text of a name, 0 if it has none yet. */
static inline uint32_t fp_unique_find(const struct fp_unique *a, uint32_t name) {
    return name < a->cap_text_of ? a->text_of[name] : 0;
}

#endif
