/* core/key_sums.h - distinct byte strings, each with a record of a fixed size, such as stacks with the sums of their
 * values.
 *
 *   key       1: stack a;b   2: stack a;c
 *   record    1: 7 bytes     2: 3 bytes
 *
 * For readers that keep them until the end of the file.  Beyond a limit, they are in a temporary file: from time to
 * time, such as after each window, the caller takes them out of memory (fp_key_sums_rest).  What keys are looked up by
 * stays there, 11 to 22 bytes each, until no more keys come (fp_strings_seal).
 */
#pragma once

#include "core/array.h"
#include "core/memory.h"
#include "core/model.h"

/* cffi-begin */

struct fp_key_sums {
    struct fp_strings keys;

    /* private from here on */
    uint8_t *records; /* by key, 0 at first */
    uint32_t width, cap;
};

/* Takes keys and records out of memory.  1: they have more than `most` bytes there, so move them to a file first. */
int fp_key_sums_rest(struct fp_key_sums *k, uint64_t most);
void fp_key_sums_to_file(struct fp_key_sums *k, int fd);

/* cffi-end */

/* `width`: bytes of a record; 0: without records.  0 or FP_E_NOMEM. */
int fp_key_sums_init(struct fp_key_sums *k, uint32_t width);
void fp_key_sums_clear(struct fp_key_sums *k);

/* Makes room for `n` records; 0 or FP_E_NOMEM. */
int fp_key_sums_grow(struct fp_key_sums *k, uint64_t n);

/* The key of n bytes at p, with its fp_strings_hash.  FP_NO_ID when memory ran out. */
static inline uint32_t fp_key_sums_key(struct fp_key_sums *k, const void *p, size_t n, uint32_t hash) {
    const uint32_t id = fp_strings_intern_hashed(&k->keys, p, n, hash);
    return id != FP_NO_ID && FP_UNLIKELY(id >= k->cap) && fp_key_sums_grow(k, (uint64_t)id + 1) ? FP_NO_ID : id;
}

/* The record of a key. */
static inline void *fp_key_record(const struct fp_key_sums *k, uint32_t key) {
    return k->records + (size_t)key * k->width;
}
