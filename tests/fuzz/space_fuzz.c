/* Fuzz target: maps of processes.  The input is a program of 6 bytes a step.  Checked besides memory: after each step,
 * 8 of 256 addresses against an array that has an entry for each, and more of them after the last one. */
#include <stdlib.h>

#include "symbols/space.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

enum { PROCESSES = 4, ADDRESSES = 256, STEP = 6, OFTEN = 32, SELDOM = 4 };

/* Address i is i, or as far below 2^64 - 1; the last one is in no map. */
static uint64_t address_of(unsigned i) {
    return i < ADDRESSES / 2 ? i : UINT64_MAX - (ADDRESSES - 1 - i);
}

struct place {
    uint64_t file_offset;
    uint32_t word; /* 0: not mapped */
};

static void fill(struct place *places, uint64_t start, uint64_t len, uint64_t pgoff, uint32_t word) {
    const uint64_t limit = len > UINT64_MAX - start ? UINT64_MAX : start + len;
    for (unsigned i = 0; i < ADDRESSES; i++) {
        const uint64_t address = address_of(i);
        if (address < start || address >= limit) continue;
        places[i] = (struct place){word ? pgoff + address - start : 0, word};
    }
}

/* Addresses first, first + stride ... */
static void check(struct fp_space *s, uint32_t pid, const struct place *places, uint32_t first, uint32_t stride) {
    struct fp_space_hit hit;
    for (uint32_t i = first; i < ADDRESSES; i += stride) {
        const uint64_t address = address_of(i);
        const struct place *want = &places[i];
        if (fp_space_find(s, pid, address, &hit) != !!want->word) abort();
        if (!want->word) continue;
        if (hit.word != want->word || hit.pgoff + (address - hit.start) != want->file_offset) abort();
        if (!fp_space_generation(s, pid)) abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    static struct place places[PROCESSES][ADDRESSES];
    memset(places, 0, sizeof places);
    struct fp_space *s = fp_space_new();
    if (!s) abort();
    for (uint32_t step = 1; n >= STEP; step++, data += STEP, n -= STEP) {
        const uint32_t pid = data[1] % PROCESSES, other = data[2] % PROCESSES;
        const uint64_t start = address_of(data[2]), len = data[3] < 250 ? data[3] : UINT64_MAX - data[3];
        const uint64_t pgoff = data[4] < 128 ? data[4] : UINT64_MAX - data[4];
        int status = 0;
        switch (data[0] % 8) {
            case 0:
                status = fp_space_fork(s, pid, other);
                if (pid != other) memcpy(places[pid], places[other], sizeof places[pid]);
                break;
            case 1:
                status = fp_space_exec(s, pid);
                memset(places[pid], 0, sizeof places[pid]);
                break;
            case 2:
                status = fp_space_unmap(s, pid, start, len);
                fill(places[pid], start, len, 0, 0);
                break;
            default:
                status = fp_space_map(s, pid, start, len, pgoff, step, 0);
                fill(places[pid], start, len, pgoff, step);
        }
        if (status) abort();
        check(s, pid, places[pid], data[5] % OFTEN, OFTEN);
    }
    for (uint32_t pid = 0; pid < PROCESSES; pid++) check(s, pid, places[pid], pid, SELDOM);
    fp_space_free(s);
    return 0;
}
