#include "core/utf8_names.h"

#include "core/array.h"
#include "core/digits.h"
#include "core/utf8.h"

void fp_utf8_names_clear(struct fp_utf8_names *a) {
    fp_strings_clear(&a->texts);
    FP_FREE(a->text_of, a->n_wanted);
    *a = (struct fp_utf8_names){0};
}

static uint32_t enter(struct fp_utf8_names *a, const struct fp_buf *text) {
    if (!a->texts.start && fp_strings_init(&a->texts)) return FP_NO_ID;
    const uint32_t id = fp_strings_intern(&a->texts, text->p, text->n);
    if (id == FP_NO_ID || fp_array_zeroed(&a->n_wanted, &a->cap_wanted, (uint64_t)id + 1, sizeof *a->n_wanted))
        return FP_NO_ID;
    return id;
}

uint32_t fp_utf8_names_add(struct fp_utf8_names *a, struct fp_buf *text) {
    const size_t length = text->n;
    const uint32_t wanted = enter(a, text);
    uint32_t id = wanted;
    while (id != FP_NO_ID && a->n_wanted[id]) {
        uint8_t number[FP_DIGITS_ROOM];
        const uint8_t *end = fp_put_decimal(number, ++a->n_wanted[wanted]);
        text->n = length;
        if (fp_buf_put(text, " [", 2) || fp_buf_put(text, number, (size_t)(end - number)) || fp_buf_put(text, "]", 1))
            return FP_NO_ID;
        id = enter(a, text);
    }
    if (id != FP_NO_ID) a->n_wanted[id] = 1;
    return id;
}

uint32_t fp_utf8_names_text(struct fp_utf8_names *a, uint32_t name, struct fp_buf *text) {
    if (fp_array_zeroed(&a->text_of, &a->cap_text_of, (uint64_t)name + 1, sizeof *a->text_of)) return FP_NO_ID;
    if (!a->text_of[name]) {
        const uint32_t id = fp_utf8_names_add(a, text);
        if (id == FP_NO_ID) return FP_NO_ID;
        a->text_of[name] = id;
    }
    return a->text_of[name];
}

/* Whether the text has a byte that is not UTF-8, or a U+FFFD, which may replace one. */
static int needs_unique(const uint8_t *p, size_t n) {
    for (size_t i = 0; i < n;) {
        const unsigned length = fp_utf8_length(p + i, n - i);
        if (!length || (length == 3 && !memcmp(p + i, "\xef\xbf\xbd", 3))) return 1;
        i += length;
    }
    return 0;
}

const uint8_t *fp_utf8_names_utf8(struct fp_utf8_names *a, struct fp_buf *scratch, const struct fp_strings *strings,
                                  uint32_t string, size_t *n, uint64_t *replaced) {
    const uint8_t *p = fp_string(strings, string, n);
    if (FP_LIKELY(!needs_unique(p, *n))) return p;
    uint32_t text = fp_utf8_names_find(a, string);
    if (!text) {
        scratch->n = 0;
        if (fp_utf8_replace(scratch, p, *n)) return NULL;
        for (size_t i = 0; i < *n;) {
            const unsigned length = fp_utf8_length(p + i, *n - i);
            *replaced += !length;
            i += length ? length : 1;
        }
        text = fp_utf8_names_text(a, string, scratch);
        if (text == FP_NO_ID) return NULL;
    }
    return fp_string(&a->texts, text, n);
}
