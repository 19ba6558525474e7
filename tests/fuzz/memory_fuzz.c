/* Fuzz target: memory of tables.  Two bytes of input are a step by which a table grows.  Checked besides memory: its
 * content stays, whether it is copied or its pages are moved, and new zeroed memory is zero. */
#include <stdint.h>
#include <stdlib.h>
#if defined(__linux__)
#include <sys/prctl.h>
#endif

#include "core/memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* A table is smaller than COPIED, or has OWN bytes and so its own mapping: in between, the sanitizer's realloc is
 * slow and behaves as for smaller tables. */
enum { STEPS = 12, COPIED = 1 << 15, OWN = 1 << 20, LIMIT = 1 << 22, STRIDE = (1 << 18) - 5 };

static uint8_t byte_at(size_t i) {
    return (uint8_t)(i * 2654435761u >> 7);
}

/* The kernel clears a large page as a whole, which takes nearly all of the time. */
static void use_small_pages(void) {
#if defined(__linux__)
    static int done;
    if (!done) done = !prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
#endif
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    use_small_pages();
    uint8_t *p = NULL;
    size_t had = 0;
    for (size_t step = 0; step < STEPS && 2 * step + 2 <= n && had < LIMIT; step++) {
        size_t nbytes = had + (((size_t)1 + data[2 * step + 1]) << data[2 * step] % 16);
        if (nbytes >= COPIED && nbytes < OWN) nbytes += OWN;
        p = fp_grow(p, had, nbytes);
        if (!p) abort();
        for (size_t i = 0; i < had; i += STRIDE)
            if (p[i] != byte_at(i)) abort();
        for (size_t i = had + (STRIDE - had % STRIDE) % STRIDE; i < nbytes; i += STRIDE) p[i] = byte_at(i);
        p[nbytes - 1] = byte_at(nbytes - 1);
        had = nbytes;
    }
    uint8_t *zeros = had ? fp_zeroed(had) : NULL;
    for (size_t i = 0; i < had; i += i < 64 ? 1 : STRIDE)
        if (zeros[i]) abort();
    if (had && zeros[had - 1]) abort();
    fp_release(zeros, had);
    fp_release(p, had);
    return 0;
}
