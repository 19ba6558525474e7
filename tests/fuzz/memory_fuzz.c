/* Fuzz target: memory of tables.  Two bytes of input are a step by which a table grows; checked beside memory: what it
 * held stays, whether it is copied or its pages are moved, and what is to be zero is. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

enum { STEPS = 12, LIMIT = 1 << 22, STRIDE = 4093 };

static uint8_t byte_at(size_t i) {
    return (uint8_t)(i * 2654435761u >> 7);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    uint8_t *p = NULL;
    size_t had = 0;
    for (size_t step = 0; step < STEPS && 2 * step + 2 <= n && had < LIMIT; step++) {
        const size_t nbytes = had + (((size_t)1 + data[2 * step + 1]) << data[2 * step] % 16);
        p = fp_grow(p, had, nbytes);
        if (!p) abort();
        for (size_t i = 0; i < had; i += STRIDE)
            if (p[i] != byte_at(i)) abort();
        for (size_t i = had + (STRIDE - had % STRIDE) % STRIDE; i < nbytes; i += STRIDE) p[i] = byte_at(i);
        p[nbytes - 1] = byte_at(nbytes - 1);
        had = nbytes;
    }
    uint8_t *zeros = had ? fp_zeroed(had) : NULL;
    if (had && (zeros[0] || memcmp(zeros, zeros + 1, had - 1))) abort(); /* each is as the one before */
    fp_release(zeros, had);
    fp_release(p, had);
    return 0;
}
