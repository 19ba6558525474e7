/* Fuzz target: jitdumps.  Checked besides memory: code is in order of time and inside the file, and names are found
 * where it is. */
#include <stdlib.h>

#include "symbols/jitdump.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check_inside(const uint8_t *data, size_t n, const uint8_t *p, uint32_t length) {
    if (length && (p < data || p >= data + n || length > (size_t)(data + n - p))) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    uint8_t *exact = malloc(n + !n); /* so that the sanitizer detects a read beyond it */
    if (!exact) return 0;
    memcpy(exact, data, n);
    struct fp_err err;
    struct fp_jitdump *j = fp_jitdump_new(exact, n, &err);
    uint64_t count = 0;
    const struct fp_jitdump_code *codes = j ? fp_jitdump_codes(j, &count) : NULL;
    if (count > n) abort();
    for (uint64_t i = 0; i < count; i++) {
        const struct fp_jitdump_code *code = &codes[i];
        if (i && code->time < codes[i - 1].time) abort();
        if (code->offset > n || code->nbytes > n - code->offset) abort();
        for (uint64_t at = code->offset; at < code->offset + code->nbytes; at += 1 + code->nbytes / 8) {
            struct fp_jitdump_place place;
            if (fp_jitdump_find(j, at, &place) != 1) abort();
            check_inside(exact, n, place.name, place.name_n);
            check_inside(exact, n, place.file, place.file_n);
        }
    }
    fp_jitdump_free(j);
    free(exact);
    return 0;
}
