// Preloaded (LD_PRELOAD), this replaces libc's syscall(): the random bytes that csrc/core/hash_key.c requests
// from the kernel are SEED's, and each request adds a byte to the file SEED_ASKED.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

long syscall(long number, ...) {
    long a[6];
    va_list list;
    va_start(list, number);
    for (int i = 0; i < 6; i++) a[i] = va_arg(list, long);
    va_end(list);
    if (number != SYS_getrandom || a[1] != 16) {
        long (*next)(long, ...);
        *(void **)&next = dlsym(RTLD_NEXT, "syscall");
        return next(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    }
    memset((void *)a[0], atoi(getenv("SEED")), 16);
    const int file = open(getenv("SEED_ASKED"), O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (file < 0 || write(file, "+", 1) != 1) abort();
    close(file);
    return 16;
}
