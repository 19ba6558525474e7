/* What the mutators of fuzz targets share.  libFuzzer's own changes bytes wherever they are, which rarely makes another
 * input that is read to its end; these change records and streams as wholes. */
#ifndef FP_FUZZ_MUTATE_H
#define FP_FUZZ_MUTATE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* libFuzzer's: the new length of data[0, n), which may grow to `max` bytes. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t n, size_t max);
/* libFuzzer calls it, where a target has one, in place of its own. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t n, size_t max, unsigned seed);

struct input {
    uint8_t *p;
    size_t n, max;
    uint64_t random; /* state; not 0 */
};

static inline struct input input_of(uint8_t *data, size_t n, size_t max, unsigned seed) {
    return (struct input){data, n, max, (seed | (uint64_t)1 << 32) * 0x9e3779b97f4a7c15u};
}

/* A random number below n, which is not 0. */
static inline uint32_t below(struct input *in, size_t n) {
    in->random ^= in->random << 13;
    in->random ^= in->random >> 7;
    in->random ^= in->random << 17;
    return (uint32_t)((in->random >> 16) % n);
}

/* Mostly below n, and sometimes any number. */
static inline uint64_t mostly_below(struct input *in, uint32_t n) {
    return below(in, 16) ? below(in, n) : in->random >> below(in, 64);
}

/* Replaces the `had` bytes at `at` by the n of `bytes`, zeros if that is NULL.  0 if there is no room. */
static inline int replace(struct input *in, size_t at, size_t had, const void *bytes, size_t n) {
    if (n > had && n - had > in->max - in->n) return 0;
    memmove(in->p + at + n, in->p + at + had, in->n - at - had);
    if (bytes && n) memcpy(in->p + at, bytes, n);
    if (!bytes) memset(in->p + at, 0, n);
    in->n = in->n - had + n;
    return 1;
}

#endif
