#if defined(__linux__)
#define _GNU_SOURCE /* mremap */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#endif
#include "core/memory.h"

#if defined(__GLIBC__)
#include <malloc.h>

void fp_trim(void) {
    (void)malloc_trim(0);
}
#else
void fp_trim(void) {}
#endif

#if defined(MADV_HUGEPAGE) && defined(MREMAP_FIXED)

enum { OWN = 1 << 20, PAGE = 1 << 21 }; /* the least size of a separate mapping; the size of a large page */

static size_t in_pages(size_t nbytes) {
    return nbytes <= SIZE_MAX - PAGE ? (nbytes + PAGE - 1) & ~(size_t)(PAGE - 1) : SIZE_MAX;
}

/* Address space on large pages; NULL when memory ran out. */
static uint8_t *map(size_t nbytes) {
    const size_t n = in_pages(nbytes);
    if (n > SIZE_MAX - PAGE) return NULL;
    uint8_t *p = mmap(NULL, n + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return NULL;
    const size_t before = -(uintptr_t)p & (PAGE - 1);
    if (before) (void)munmap(p, before);
    (void)munmap(p + before + n, PAGE - before);
    (void)madvise(p + before, n, MADV_HUGEPAGE); /* a hint */
    return p + before;
}

void *fp_grow(void *p, size_t had, size_t nbytes) {
    if (nbytes < OWN) return realloc(p, nbytes);
    if (had >= OWN && in_pages(had) >= nbytes) return p;
    uint8_t *fresh = map(nbytes);
    if (!fresh || !had) return fresh;
    if (had < OWN) {
        memcpy(fresh, p, had);
        free(p);
        return fresh;
    }
    if (mremap(p, in_pages(had), in_pages(nbytes), MREMAP_MAYMOVE | MREMAP_FIXED, fresh) != MAP_FAILED) return fresh;
    (void)munmap(fresh, in_pages(nbytes));
    return NULL;
}

void *fp_zeroed(size_t nbytes) {
    if (nbytes < OWN) return calloc(nbytes, 1);
    uint8_t *p = map(nbytes);
    /* Write to each page now.  A page that is read before it is written gets the kernel's page of zeros first, and
     * then, when it is written, often only small pages. */
    for (size_t i = 0; p && i < nbytes; i += PAGE) *(volatile uint8_t *)(p + i) = 0;
    return p;
}

void fp_release(void *p, size_t nbytes) {
    if (nbytes < OWN)
        free(p);
    else
        (void)munmap(p, in_pages(nbytes));
}

/* In whole pages of any system. */
static size_t in_file(size_t nbytes) {
    enum { LARGEST = 1 << 16 };
    return nbytes <= SIZE_MAX - LARGEST ? (nbytes + LARGEST - 1) & ~(size_t)(LARGEST - 1) : SIZE_MAX;
}

void *fp_file_grow(int fd, uint64_t at, void *p, size_t had, size_t nbytes) {
    const size_t before = in_file(had), n = in_file(nbytes);
    int failed;
    if (n <= before) return p;
    errno = EFBIG;
    if (n > FP_FILE_PART) return NULL;
    /* space that is missing would be a signal later, when a page is written */
    do failed = posix_fallocate(fd, (off_t)(at + before), (off_t)(n - before));
    while (failed == EINTR);
    errno = failed;
    if (failed) return NULL;
    void *const fresh = before ? mremap(p, before, n, MREMAP_MAYMOVE)
                               : mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)at);
    return fresh == MAP_FAILED ? NULL : fresh;
}

void fp_file_rest(void *p, size_t nbytes) {
    (void)madvise(p, in_file(nbytes), MADV_DONTNEED);
}

void fp_file_release(void *p, size_t nbytes) {
    if (p) (void)munmap(p, in_file(nbytes));
}

#else

void *fp_grow(void *p, size_t had, size_t nbytes) {
    (void)had;
    return realloc(p, nbytes);
}

void *fp_zeroed(size_t nbytes) {
    return calloc(nbytes, 1);
}

void fp_release(void *p, size_t nbytes) {
    (void)nbytes;
    free(p);
}

void *fp_file_grow(int fd, uint64_t at, void *p, size_t had, size_t nbytes) {
    (void)fd, (void)at, (void)p, (void)had, (void)nbytes;
    return NULL;
}

void fp_file_rest(void *p, size_t nbytes) {
    (void)p, (void)nbytes;
}

void fp_file_release(void *p, size_t nbytes) {
    (void)p, (void)nbytes;
}

#endif

void *fp_file_copy(int fd, uint64_t at, const void *from, size_t used, size_t nbytes) {
    enum { STEP = 1 << 20 };
    uint8_t *const to = fp_file_grow(fd, at, NULL, 0, nbytes);
    for (size_t i = 0; to && i < used; i += STEP) {
        memcpy(to + i, (const uint8_t *)from + i, used - i < STEP ? used - i : STEP);
        fp_file_rest(to, nbytes);
    }
    return to;
}

void fp_free_each(void *const *p, size_t n) {
    for (size_t i = 0; i < n; i++) free(p[i]);
}
