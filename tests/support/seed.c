// Stands between a process and libc (LD_PRELOAD): the system's random bytes are SEED's, and each 16 of them that
// csrc/core/secret.c asks for are a byte in the file SEED_ASKED.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

ssize_t getrandom(void *to, size_t n, unsigned flags) {
    (void)flags;
    memset(to, atoi(getenv("SEED")), n);
    if (n == 16) {
        const int file = open(getenv("SEED_ASKED"), O_WRONLY | O_CREAT | O_APPEND, 0600);
        if (file < 0 || write(file, "+", 1) != 1) abort();
        close(file);
    }
    return (ssize_t)n;
}
