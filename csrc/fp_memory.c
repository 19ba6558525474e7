#if defined(__linux__)
#define _DEFAULT_SOURCE /* madvise */
#include <sys/mman.h>
#endif
#include <stdlib.h>

#include "fp_memory.h"

enum { LARGE = 1 << 22, PAGE = 4096 }; /* where pages are larger, no hint is given */

/* A hint, of which nothing depends on whether it is taken. */
static void *on_large_pages(void *p, size_t nbytes) {
#if defined(MADV_HUGEPAGE)
    if (p && nbytes >= LARGE) {
        /* whole pages, the allocator's own first bytes included: in two pieces the memory could not be moved
         * without copying when it grows */
        const uintptr_t first = (uintptr_t)p & ~(uintptr_t)(PAGE - 1), end = (uintptr_t)p + nbytes;
        (void)madvise((void *)first, ((end + PAGE - 1) & ~(uintptr_t)(PAGE - 1)) - first, MADV_HUGEPAGE);
    }
#endif
    (void)nbytes;
    return p;
}

void *fp_realloc(void *p, size_t nbytes) {
    return on_large_pages(realloc(p, nbytes), nbytes);
}

void *fp_calloc(size_t n, size_t width) {
    return on_large_pages(calloc(n, width), n * width); /* which calloc saw to fit */
}
