// Preloaded before libc (LD_PRELOAD): makes calls on files below one path fail, or the allocations of libraries below
// it.
// tests/support/shim.py controls it by shim_set; other processes that a test starts are controlled by the environment.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum { READ = 1, WRITE = 2, OPEN = 4, SYNC = 8, NAME = 16, MEMORY = 32, CLOSE = 64, THREAD = 128 };

static struct {
    char below[PATH_MAX];  // prefix of the paths of files
    unsigned calls;        // mask of the calls above
    long nth;              // the nth of these calls and all later ones fail; for allocations only the nth; 0: none
    long every;            // or every call whose number is divisible by this
    int error;             // errno; 0: the calls do not fail, but `meanwhile` is called before the nth
    size_t most;           // limit of bytes read or written at a time; 0: none
    void (*meanwhile)(void);
    long seen;
} shim;

enum { MOST_BLOCKS = 1 << 16 };

// The libraries' allocations since `shim_set`, by address; slots are not reused.
static struct {
    const void *p;
    int live;
} blocks[MOST_BLOCKS];

void shim_set(const char *below, unsigned calls, long nth, long every, int error, size_t most,
              void (*meanwhile)(void)) {
    shim.calls = 0;
    snprintf(shim.below, sizeof shim.below, "%s", below);
    shim.nth = nth, shim.every = every, shim.error = error, shim.most = most, shim.meanwhile = meanwhile;
    shim.seen = 0;
    if (calls & MEMORY) memset(blocks, 0, sizeof blocks);
    shim.calls = calls;
}

// SHIM="CALLS NTH ERROR MOST BELOW"
__attribute__((constructor)) static void set_by_environment(void) {
    const char *text = getenv("SHIM");
    unsigned calls;
    long nth;
    int error, at;
    size_t most;
    if (text && sscanf(text, "%u %ld %d %zu %n", &calls, &nth, &error, &most, &at) == 4)
        shim_set(text + at, calls, nth, 0, error, most, NULL);
}

// Blocks that were not freed.
long shim_blocks(void) {
    long n = 0;
    for (long i = 0; i < MOST_BLOCKS; i++) n += blocks[i].live;
    return n;
}

// Ends the faults.  Returns the number of calls.
long shim_end(void) {
    shim.calls = 0;
    return shim.seen;
}

static int fails(unsigned call, const char *path) {
    if (!(shim.calls & call) || strncmp(path, shim.below, strlen(shim.below)) != 0) return 0;
    long number = ++shim.seen;
    if (!shim.error) {
        if (number == shim.nth && shim.meanwhile) shim.meanwhile();
        return 0;
    }
    if (!(shim.nth && number >= shim.nth) && !(shim.every && number % shim.every == 0)) return 0;
    errno = shim.error;
    return 1;
}

static int fails_at(unsigned call, int fd, size_t *n) {
    if (!(shim.calls & call)) return 0;
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    if (strncmp(path, shim.below, strlen(shim.below)) != 0) return 0;
    if (n && shim.most && *n > shim.most) *n = shim.most;
    return fails(call, path);
}

static int fails_in(unsigned call, int folder, const char *name) {
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    snprintf(path + length, sizeof path - (size_t)length, "/%s", name);
    return fails(call, path);
}

#define REAL(type, name, ...)         \
    static type (*real)(__VA_ARGS__); \
    if (!real) *(void **)&real = dlsym(RTLD_NEXT, name);

ssize_t read(int fd, void *into, size_t n) {
    REAL(ssize_t, "read", int, void *, size_t)
    return fails_at(READ, fd, &n) ? -1 : real(fd, into, n);
}

ssize_t pread64(int fd, void *into, size_t n, off_t at) {
    REAL(ssize_t, "pread64", int, void *, size_t, off_t)
    return fails_at(READ, fd, &n) ? -1 : real(fd, into, n, at);
}

ssize_t preadv64v2(int fd, const struct iovec *into, int n, off_t at, int flags) {
    REAL(ssize_t, "preadv64v2", int, const struct iovec *, int, off_t, int)
    if (n != 1) return fails_at(READ, fd, NULL) ? -1 : real(fd, into, n, at, flags);
    struct iovec one = *into;
    return fails_at(READ, fd, &one.iov_len) ? -1 : real(fd, &one, 1, at, flags);
}

ssize_t write(int fd, const void *from, size_t n) {
    REAL(ssize_t, "write", int, const void *, size_t)
    return fails_at(WRITE, fd, &n) ? -1 : real(fd, from, n);
}

int fsync(int fd) {
    REAL(int, "fsync", int)
    return fails_at(SYNC, fd, NULL) ? -1 : real(fd);
}

int syncfs(int fd) {
    REAL(int, "syncfs", int)
    return fails_at(SYNC, fd, NULL) ? -1 : real(fd);
}

// The descriptor is closed anyway, like by the kernel.
int close(int fd) {
    REAL(int, "close", int)
    const int failed = fails_at(CLOSE, fd, NULL), error = errno;
    const int status = real(fd);
    if (failed) errno = error;
    return failed ? -1 : status;
}

int ftruncate64(int fd, off_t n) {
    REAL(int, "ftruncate64", int, off_t)
    return fails_at(WRITE, fd, NULL) ? -1 : real(fd, n);
}

static int opened(const char *path, int flags, mode_t mode) {
    REAL(int, "open64", const char *, int, ...)
    return fails(OPEN, path) ? -1 : real(path, flags, mode);
}

#define MODE(flags)                      \
    mode_t mode = 0;                     \
    if (flags & (O_CREAT | O_TMPFILE)) { \
        va_list more;                    \
        va_start(more, flags);           \
        mode = va_arg(more, mode_t);     \
        va_end(more);                    \
    }

int open(const char *path, int flags, ...) {
    MODE(flags)
    return opened(path, flags, mode);
}

int open64(const char *path, int flags, ...) {
    MODE(flags)
    return opened(path, flags, mode);
}

int openat64(int folder, const char *name, int flags, ...) {
    REAL(int, "openat64", int, const char *, int, ...)
    MODE(flags)
    return fails_in(OPEN, folder, name) ? -1 : real(folder, name, flags, mode);
}

int openat(int folder, const char *name, int flags, ...) {
    REAL(int, "openat", int, const char *, int, ...)
    MODE(flags)
    return fails_in(OPEN, folder, name) ? -1 : real(folder, name, flags, mode);
}

int rename(const char *from, const char *to) {
    REAL(int, "rename", const char *, const char *)
    return fails(NAME, to) ? -1 : real(from, to);
}

int linkat(int from, const char *old, int to, const char *name, int flags) {
    REAL(int, "linkat", int, const char *, int, const char *, int)
    return fails_at(NAME, to, NULL) ? -1 : real(from, old, to, name, flags);
}

// A thread belongs to no path.
int pthread_create(pthread_t *id, const pthread_attr_t *with, void *(*work)(void *), void *given) {
    REAL(int, "pthread_create", pthread_t *, const pthread_attr_t *, void *(*)(void *), void *)
    return fails(THREAD, shim.below) ? shim.error : real(id, with, work, given);
}

// Allocations are identified by the calling library, below the path; any caller may free them.

static int is_ours(const void *caller) {
    Dl_info info;
    return (shim.calls & MEMORY) && dladdr(caller, &info) && info.dli_fname &&
           !strncmp(info.dli_fname, shim.below, strlen(shim.below));
}

static int lacks(void) {
    if (++shim.seen != shim.nth) return 0;
    errno = shim.error;
    return 1;
}

static void set_live(const void *p, int live) {
    size_t i = (uintptr_t)p / 16 % MOST_BLOCKS;
    for (long tried = 0; blocks[i].p && blocks[i].p != p; i = (i + 1) % MOST_BLOCKS)
        if (++tried == MOST_BLOCKS) abort();
    if (!p || (!live && !blocks[i].p)) return;
    blocks[i].p = p;
    blocks[i].live = live;
}

#define OURS is_ours(__builtin_return_address(0))

void *malloc(size_t n) {
    REAL(void *, "malloc", size_t)
    if (!OURS) return real(n);
    void *p = lacks() ? NULL : real(n);
    set_live(p, 1);
    return p;
}

void *calloc(size_t n, size_t width) {
    REAL(void *, "calloc", size_t, size_t)
    if (!OURS) return real(n, width);
    void *p = lacks() ? NULL : real(n, width);
    set_live(p, 1);
    return p;
}

void *realloc(void *had, size_t n) {
    REAL(void *, "realloc", void *, size_t)
    if (!OURS) return real(had, n);
    void *p = lacks() ? NULL : real(had, n);
    if (p) set_live(had, 0);
    set_live(p, 1);
    return p;
}

void free(void *p) {
    REAL(void, "free", void *)
    if (shim.calls & MEMORY) set_live(p, 0);
    real(p);
}

void *mmap(void *at, size_t n, int access, int flags, int fd, off_t offset) {
    REAL(void *, "mmap", void *, size_t, int, int, int, off_t)
    return OURS && lacks() ? MAP_FAILED : real(at, n, access, flags, fd, offset);
}

void *mremap(void *had, size_t n, size_t need, int flags, ...) {
    REAL(void *, "mremap", void *, size_t, size_t, int, ...)
    va_list more;
    va_start(more, flags);
    void *to = flags & MREMAP_FIXED ? va_arg(more, void *) : NULL;
    va_end(more);
    return OURS && lacks() ? MAP_FAILED : real(had, n, need, flags, to);
}
