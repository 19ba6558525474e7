/* How fast could it be?  Reads an FDR v5 log of one process in file order,
 * decodes it and folds it into call arcs: one hash table, no checks, no names,
 * no output but two numbers.  Not a converter: a yardstick.
 *
 *   cc -O3 bench/bare_xray.c -o bare_xray && ./bare_xray trace.xray
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct arc {
    uint64_t key, calls, ticks, self;
};
struct frame {
    uint64_t enter, child;
    uint32_t function, arc;
};

enum { SLOTS = 1 << 16, WINDOW = 1 << 20 };
static struct arc first[SLOTS], *arcs = first;
static struct frame stack[1 << 20];
static unsigned shift = 48; /* 64 - log2 of the number of slots */

static uint32_t find(uint64_t key) {
    uint32_t at = (uint32_t)((key * 0x9e3779b97f4a7c15u) >> shift);
    while (arcs[at].key != key && arcs[at].calls) at = (at + 1) & (uint32_t)((1ull << (64 - shift)) - 1);
    return at;
}

/* To a table twice as large.  Frames refer to arcs by slot. */
static void grow(size_t depth) {
    const struct arc *had = arcs;
    const size_t n = (size_t)1 << (64 - shift--);
    uint32_t *moved = malloc(n * sizeof *moved);
    arcs = calloc(2 * n, sizeof *arcs);
    if (!moved || !arcs) exit(1);
    for (size_t i = 0; i < n; i++)
        if (had[i].calls) arcs[moved[i] = find(had[i].key)] = had[i];
    while (depth) stack[depth].arc = moved[stack[depth].arc], depth--;
    free(moved);
    if (had != first) free((void *)had);
}

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    int fd = open(argv[1], O_RDONLY);
    uint8_t *buffer = malloc(WINDOW);
    if (fd < 0 || !buffer) return 1;
    uint64_t now = 0, calls = 0, n_arcs = 0;
    size_t n = 0, depth = 0, skip = 32;
    for (ssize_t got; (got = read(fd, buffer + n, WINDOW - n)) > 0;) {
        n += (size_t)got;
        const uint8_t *p = buffer + skip, *end = buffer + n;
        skip = 0;
        while (end - p >= 16) {
            uint32_t w, delta;
            memcpy(&w, p, 4);
            if (w & 1) {
                if (*p == 0x05) memcpy(&now, p + 3, 8);
                p += 16;
                continue;
            }
            memcpy(&delta, p + 4, 4);
            p += 8;
            now += delta;
            const uint32_t function = w >> 4;
            if ((w >> 1 & 3) == 0 || (w >> 1 & 3) == 3) {
                const uint64_t key = (uint64_t)stack[depth].function << 32 | function;
                uint32_t at = find(key);
                if (!arcs[at].calls && ++n_arcs > 3ull << (62 - shift)) {
                    grow(depth);
                    at = find(key);
                }
                arcs[at].key = key;
                arcs[at].calls++;
                calls++;
                stack[++depth] = (struct frame){now, 0, function, at};
                continue;
            }
            size_t to = depth;
            while (to && stack[to].function != function) to--;
            while (to && depth >= to) {
                struct frame *f = &stack[depth--];
                const uint64_t ticks = now - f->enter;
                arcs[f->arc].ticks += ticks;
                arcs[f->arc].self += ticks - f->child;
                stack[depth].child += ticks;
            }
        }
        n = (size_t)(end - p);
        memmove(buffer, p, n);
    }
    printf("%llu calls, %llu arcs\n", (unsigned long long)calls, (unsigned long long)n_arcs);
    return 0;
}
