/* The least that branch stacks of a perf.data cost: read the file, look at each entry, and count it in a table of 2^16
 * places by its two addresses, without asking whether they are the same.
 *
 *   cc -O3 bench/bare_branches.c -o bare && ./bare big.lbr
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t counts[1 << 16];

static uint64_t word(const uint8_t *p) {
    uint64_t v;
    memcpy(&v, p, 8);
    return v;
}

/* The entries of a sample with IP, TID, TIME and branches. */
static uint64_t sample(const uint8_t *p) {
    const uint64_t n = word(p + 32);
    uint64_t missed = 0;
    for (uint64_t i = 0; i < n; i++) {
        const uint8_t *entry = p + 40 + 24 * i;
        counts[(word(entry) * 3 + word(entry + 8)) * UINT64_C(0x9e3779b97f4a7c15) >> 48]++;
        missed += word(entry + 16) & 1;
    }
    return missed;
}

int main(int argc, char **argv) {
    enum { WINDOW = 1 << 20 };
    uint8_t *window = malloc(WINDOW);
    uint64_t missed = 0, left = 0, data[2];
    size_t have = 0;
    FILE *file = argc == 2 ? fopen(argv[1], "rb") : NULL;
    if (!file || !window || fseek(file, 40, SEEK_SET) || fread(data, 8, 2, file) != 2) return 1;
    if (fseek(file, (long)data[0], SEEK_SET)) return 1;
    for (left = data[1]; left;) {
        const size_t wanted = left < WINDOW - have ? left : WINDOW - have;
        const size_t got = fread(window + have, 1, wanted, file);
        size_t at = 0;
        if (!got) return 1;
        left -= got;
        have += got;
        while (have - at >= 8) {
            const uint32_t n = (uint32_t)window[at + 6] | (uint32_t)window[at + 7] << 8;
            if (n < 8 || have - at < n) break;
            if (window[at] == 9 && n >= 40) missed += sample(window + at);
            at += n;
        }
        memmove(window, window + at, have - at);
        have -= at;
    }
    printf("%llu mispredicted\n", (unsigned long long)missed);
    return 0;
}
