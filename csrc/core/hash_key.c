#include "core/hash_key.h"

#if defined(__linux__)
#include <sys/syscall.h>

extern long syscall(long number, ...); /* not from unistd.h: the core includes no I/O headers */
#else
#include <sys/random.h>
#endif

void fp_hash_key_take(struct fp_hash_key *s) {
#if defined(FP_DEBUG) /* so that findings of fuzzers are reproducible */
    s->key[0] = s->key[1] = 1;
#else
#if defined(__linux__)
    enum { NONBLOCK = 1 }; /* GRND_NONBLOCK; glibc has getrandom since 2.25, wheels are for 2.17 */
    const int is_random = syscall(SYS_getrandom, s->key, sizeof s->key, NONBLOCK) == sizeof s->key;
#else
    const int is_random = !getentropy(s->key, sizeof s->key);
#endif
    if (!is_random) s->key[0] = s->key[1] = (uintptr_t)s; /* addresses are random, too */
    s->key[0] |= 1;
#endif
}

static inline uint64_t rotated(uint64_t v, unsigned n) {
    return v << n | v >> (64 - n);
}

static inline void round_of(uint64_t v[4]) {
    v[0] += v[1];
    v[2] += v[3];
    v[1] = rotated(v[1], 13) ^ v[0];
    v[3] = rotated(v[3], 16) ^ v[2];
    v[0] = rotated(v[0], 32) + v[3];
    v[2] += v[1];
    v[1] = rotated(v[1], 17) ^ v[2];
    v[3] = rotated(v[3], 21) ^ v[0];
    v[2] = rotated(v[2], 32);
}

uint64_t fp_hash_key_hash(const struct fp_hash_key *s, const void *p, size_t n) {
    const uint8_t *at = p;
    uint64_t v[] = {s->key[0] ^ 0x736f6d6570736575u, s->key[1] ^ 0x646f72616e646f6du, s->key[0] ^ 0x6c7967656e657261u,
                    s->key[1] ^ 0x7465646279746573u};
    uint64_t last = (uint64_t)n << 56;
    for (; n >= 8; n -= 8, at += 8) {
        const uint64_t word = fp_u64(at);
        v[3] ^= word;
        round_of(v);
        v[0] ^= word;
    }
    while (n--) last |= (uint64_t)at[n] << 8 * n;
    v[3] ^= last;
    round_of(v);
    v[0] ^= last;
    v[2] ^= 0xff;
    for (int i = 0; i < 3; i++) round_of(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}
