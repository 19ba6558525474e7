#include "core/address.h"

/* The kernel's names of mappings without a file: [vdso], [anon:a/b]. */
static int in_brackets(const uint8_t *p, size_t n) {
    return n > 2 && p[0] == '[' && p[n - 1] == ']';
}

int fp_frame_text(const struct fp_model *m, uint32_t frame, struct fp_buf *to) {
    const uint32_t *row = fp_table_row(&m->frames, frame);
    const uint32_t *mapping = fp_table_row(&m->mappings, row[FP_FRAME_MAPPING]);
    uint64_t address = fp_frame_code(row);
    size_t n;
    const uint8_t *p =
        fp_string(&m->strings, fp_table_row(&m->objects, mapping[FP_MAPPING_OBJECT])[FP_OBJECT_NAME], &n);
    if (!in_brackets(p, n)) {
        size_t folder = n; /* the path up to the last slash */
        while (folder && p[folder - 1] != '/') folder--;
        p += folder;
        n -= folder;
    }
    if (in_brackets(p, n)) {
        p++;
        n -= 2;
    }
    uint8_t digits[18] = "0x";
    if (n) address = address - fp_words_u64(mapping + FP_MAPPING_START) + fp_words_u64(mapping + FP_MAPPING_OFFSET);
    const size_t n_digits = (size_t)(fp_hex(digits + 2, address) - digits);
    to->n = 0;
    if (n && (fp_buf_put(to, "[", 1) || fp_buf_put(to, p, n) || fp_buf_put(to, "+", 1))) return FP_E_NOMEM;
    return fp_buf_put(to, digits, n_digits) || (n && fp_buf_put(to, "]", 1)) ? FP_E_NOMEM : 0;
}

uint32_t fp_frame_name(struct fp_model *m, uint32_t frame, struct fp_buf *scratch) {
    if (fp_frame_text(m, frame, scratch)) return FP_NO_ID;
    return fp_strings_intern(&m->strings, scratch->p, scratch->n);
}
