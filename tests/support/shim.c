// Stands between a process and libc (LD_PRELOAD) and makes calls on files below one path fail.
// tests/support/faults.py sets it by shim_set.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum { READ = 1, WRITE = 2, OPEN = 4, SYNC = 8, NAME = 16 };

static struct {
    char below[PATH_MAX];  // files whose path begins so
    unsigned calls;        // which calls, of the above
    long nth;              // the nth of these calls and those after it fail; 0: none
    long every;            // or each one whose number this divides
    int error;             // with this; 0: they do not fail, but `meanwhile` is called before the nth
    size_t most;           // bytes that are read or written at a time; 0: any
    void (*meanwhile)(void);
    long seen;
} shim;

void shim_set(const char *below, unsigned calls, long nth, long every, int error, size_t most,
              void (*meanwhile)(void)) {
    shim.calls = 0;
    snprintf(shim.below, sizeof shim.below, "%s", below);
    shim.nth = nth, shim.every = every, shim.error = error, shim.most = most, shim.meanwhile = meanwhile;
    shim.seen = 0;
    shim.calls = calls;
}

// How many calls there were; no more are touched.
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

int rename(const char *from, const char *to) {
    REAL(int, "rename", const char *, const char *)
    return fails(NAME, to) ? -1 : real(from, to);
}

int linkat(int from, const char *old, int to, const char *name, int flags) {
    REAL(int, "linkat", int, const char *, int, const char *, int)
    return fails_at(NAME, to, NULL) ? -1 : real(from, old, to, name, flags);
}
