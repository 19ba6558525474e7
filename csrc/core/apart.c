#include "core/apart.h"

#include <stdlib.h>

#include "core/array.h"
#include "core/digits.h"

void fp_apart_clear(struct fp_apart *a) {
    fp_strings_clear(&a->texts);
    free(a->text_of);
    free(a->n_wanted);
    *a = (struct fp_apart){0};
}

static uint32_t enter(struct fp_apart *a, const struct fp_buf *text) {
    if (!a->texts.start && fp_strings_init(&a->texts)) return FP_NO_ID;
    const uint32_t id = fp_strings_intern(&a->texts, text->p, text->n);
    if (id == FP_NO_ID || fp_array_zeroed(&a->n_wanted, &a->cap_wanted, (uint64_t)id + 1, sizeof *a->n_wanted))
        return FP_NO_ID;
    return id;
}

uint32_t fp_apart_enter(struct fp_apart *a, struct fp_buf *text) {
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

uint32_t fp_apart_of(struct fp_apart *a, uint32_t name, struct fp_buf *text) {
    if (fp_array_zeroed(&a->text_of, &a->cap_text_of, (uint64_t)name + 1, sizeof *a->text_of)) return FP_NO_ID;
    if (!a->text_of[name]) {
        const uint32_t id = fp_apart_enter(a, text);
        if (id == FP_NO_ID) return FP_NO_ID;
        a->text_of[name] = id;
    }
    return a->text_of[name];
}
