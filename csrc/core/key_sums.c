#include "core/key_sums.h"

#include <errno.h>

#include "core/guard.h"

static size_t records_bytes(const struct fp_key_sums *k) {
    return (size_t)k->cap * k->width;
}

int fp_key_sums_init(struct fp_key_sums *k, uint32_t width) {
    k->width = width;
    const int status = fp_strings_init(&k->keys);
    if (!width) k->cap = FP_NO_ID;
    return status || !width ? status : fp_key_sums_grow(k, 1);
}

void fp_key_sums_clear(struct fp_key_sums *k) {
    if (k->keys.file)
        fp_file_release(k->records, records_bytes(k));
    else
        free(k->records);
    fp_strings_clear(&k->keys);
    memset(k, 0, sizeof *k);
}

int fp_key_sums_grow(struct fp_key_sums *k, uint64_t n) {
    struct fp_strings *s = &k->keys;
    if (!s->file) return fp_array_zeroed(&k->records, &k->cap, n, k->width);
    if (n > FP_NO_ID) return fp_escape();
    const uint64_t twice = (uint64_t)k->cap * 2, cap = twice < n ? n : twice < FP_NO_ID ? twice : FP_NO_ID;
    uint8_t *records =
        fp_file_grow(s->file - 1, s->file_at + 2 * FP_FILE_PART, k->records, records_bytes(k), (size_t)cap * k->width);
    if (!records) {
        s->file_error = errno;
        return fp_escape();
    }
    k->records = records;
    k->cap = (uint32_t)cap;
    return 0;
}

int fp_key_sums_rest(struct fp_key_sums *k, uint64_t most) {
    const struct fp_strings *s = &k->keys;
    const uint64_t starts = ((uint64_t)s->cap + 1) * sizeof *s->start;
    if (!s->file) return s->start[s->n] + starts + records_bytes(k) > most;
    fp_strings_rest(s);
    fp_file_rest(k->records, records_bytes(k));
    return 0;
}

void fp_key_sums_to_file(struct fp_key_sums *k, int fd) {
    const size_t nbytes = records_bytes(k);
    uint8_t *records = nbytes ? fp_file_copy(fd, 2 * FP_FILE_PART, k->records, nbytes, nbytes) : NULL;
    if (nbytes && !records) return;
    fp_strings_to_file(&k->keys, fd, 0);
    if (!k->keys.file) {
        fp_file_release(records, nbytes);
        return;
    }
    free(k->records);
    k->records = records;
}
