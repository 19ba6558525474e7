/* How fast could it be?  Reads the samples of a perf.data file with call chains, adds up equal chains as strings of
 * frame numbers, root first, and prints them in order as folded stacks of addresses.  All strings are kept in memory.
 * No maps, names, labels, threads, rounds or checks.  Not a reader: a yardstick.
 *
 *   cc -O3 bench/bare_stacks.c -o bare_stacks && ./bare_stacks perf.data > out.folded
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FRAMES = 1 << 16, DEPTH = 1 << 12 };
/* fields of a sample before its chain, 8 bytes each, as bits of attr.sample_type: IDENTIFIER, IP, TID, TIME, ADDR, ID,
 * STREAM_ID, CPU, PERIOD */
static const uint64_t BEFORE = 1 << 16 | 1 << 0 | 1 << 1 | 1 << 2 | 1 << 3 | 1 << 6 | 1 << 9 | 1 << 7 | 1 << 8;
static const uint64_t CONTEXT = (uint64_t)-4095; /* chains have marks from here on */

static uint64_t address_of[FRAMES];
static uint16_t frame_at[4 * FRAMES]; /* by hash of an address: its number, from 1 on */
static uint32_t n_frames;

struct chain {
    uint64_t at; /* in `text` */
    uint32_t hash, n;
    uint64_t samples;
};
static struct chain *chains;
static uint32_t *index_of, mask, n_chains;
static uint16_t *text;
static uint64_t n_text, cap_text;

static uint16_t frame_of(uint64_t address) {
    uint32_t slot = (uint32_t)((address * 0x9e3779b97f4a7c15u) >> 46);
    while (frame_at[slot] && address_of[frame_at[slot]] != address) slot = (slot + 1) % (4 * FRAMES);
    if (!frame_at[slot]) {
        frame_at[slot] = (uint16_t)++n_frames;
        address_of[n_frames] = address;
    }
    return frame_at[slot];
}

static void grow(void) {
    mask = mask ? 2 * mask + 1 : (1 << 16) - 1;
    free(index_of);
    index_of = calloc((size_t)mask + 1, sizeof *index_of);
    chains = realloc(chains, ((size_t)mask / 2 + 2) * sizeof *chains);
    for (uint32_t i = 1; i <= n_chains; i++) {
        uint32_t slot = chains[i].hash & mask;
        while (index_of[slot]) slot = (slot + 1) & mask;
        index_of[slot] = i;
    }
}

static void add(const uint16_t *frames, uint32_t n) {
    uint64_t hash = n;
    for (uint32_t i = 0; i < n; i++) hash = (hash ^ frames[i]) * 0x9e3779b97f4a7c15u;
    const uint32_t h = (uint32_t)(hash >> 32);
    if (n_chains >= mask / 2) grow();
    uint32_t slot = h & mask;
    for (; index_of[slot]; slot = (slot + 1) & mask) {
        struct chain *c = &chains[index_of[slot]];
        if (c->hash != h || c->n != n || memcmp(text + c->at, frames, 2 * (size_t)n)) continue;
        c->samples++;
        return;
    }
    if (n_text + n > cap_text) text = realloc(text, 2 * (cap_text = 2 * (n_text + n)));
    memcpy(text + n_text, frames, 2 * (size_t)n);
    index_of[slot] = ++n_chains;
    chains[n_chains] = (struct chain){n_text, h, n, 1};
    n_text += n;
}

static int before(const void *a, const void *b) {
    const struct chain *x = a, *y = b;
    for (uint32_t i = 0; i < x->n && i < y->n; i++)
        if (text[x->at + i] != text[y->at + i]) return text[x->at + i] < text[y->at + i] ? -1 : 1;
    return (x->n > y->n) - (x->n < y->n);
}

int main(int argc, char **argv) {
    const int fd = argc == 2 ? open(argv[1], O_RDONLY) : -1;
    struct stat stat;
    if (fd < 0 || fstat(fd, &stat)) return 1;
    const uint8_t *file = mmap(NULL, (size_t)stat.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (file == MAP_FAILED || memcmp(file, "PERFILE2", 8)) return 1;
    uint64_t attrs, data, size, type;
    memcpy(&attrs, file + 24, 8);
    memcpy(&data, file + 40, 8);
    memcpy(&size, file + 48, 8);
    memcpy(&type, file + attrs + 24, 8);
    const unsigned head = 8 + 8 * (unsigned)__builtin_popcountll(type & BEFORE);
    static uint16_t frames[DEPTH];
    uint64_t samples = 0;
    for (const uint8_t *p = file + data, *end = p + size; p < end;) {
        uint16_t nbytes;
        memcpy(&nbytes, p + 6, 2);
        if (p[0] == 9) { /* PERF_RECORD_SAMPLE: a count and the addresses, innermost first */
            uint64_t n;
            memcpy(&n, p + head, 8);
            uint32_t depth = 0;
            for (uint64_t i = n; i-- > 0;) {
                uint64_t address;
                memcpy(&address, p + head + 8 + 8 * i, 8);
                if (address < CONTEXT && depth < DEPTH) frames[depth++] = frame_of(address);
            }
            add(frames, depth);
            samples++;
        }
        p += nbytes;
    }
    qsort(chains + 1, n_chains, sizeof *chains, before);
    for (uint32_t i = 1; i <= n_chains; i++) {
        const struct chain *c = &chains[i];
        char line[20 * DEPTH], *to = line;
        for (uint32_t k = 0; k < c->n; k++) { /* as %x */
            if (k) *to++ = ';';
            int shift = 60;
            const uint64_t address = address_of[text[c->at + k]];
            while (shift && !(address >> shift)) shift -= 4;
            for (; shift >= 0; shift -= 4) *to++ = "0123456789abcdef"[address >> shift & 15];
        }
        fwrite(line, 1, (size_t)(to - line), stdout);
        printf(" %llu\n", (unsigned long long)c->samples);
    }
    fprintf(stderr, "%llu samples, %u stacks of %u addresses\n", (unsigned long long)samples, n_chains, n_frames);
    return 0;
}
