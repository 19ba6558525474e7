/* jfr/text.h - strings of flight recordings as UTF-8.  C only. */
#pragma once

#include "jfr/private.h"

struct fp_jfr_string {
    int is_null, is_constant;
    uint64_t key; /* of a constant */
};

/* Appends the string at p as UTF-8; an unpaired surrogate stays three bytes.  Returns the string's end, or NULL if it
 * is past `end` or of an unknown kind. */
const uint8_t *fp_jfr_string(const struct fp_jfr_reader *r, const uint8_t *p, const uint8_t *end, struct fp_buf *to,
                             struct fp_jfr_string *found);
