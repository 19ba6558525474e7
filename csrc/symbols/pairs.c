#include "symbols/pairs.h"

static int in_order(const struct fp_pairs_item *pairs, size_t n) {
    for (size_t i = 1; i < n; i++)
        if (pairs[i].key < pairs[i - 1].key) return 0;
    return 1;
}

void fp_pairs_sort(struct fp_pairs_item *pairs, size_t n) {
    if (in_order(pairs, n)) return;
    struct fp_pairs_item *other = fp_have(malloc(n * sizeof *other)), *from = pairs, *to = other;
    uint64_t differ = 0;
    for (size_t i = 1; i < n; i++) differ |= pairs[i].key ^ pairs[0].key;
    for (unsigned shift = 0; shift < 64; shift += 8) {
        if (!(differ >> shift & 0xff)) continue;
        size_t place[256] = {0}, sum = 0;
        for (size_t i = 0; i < n; i++) place[from[i].key >> shift & 0xff]++;
        for (unsigned digit = 0; digit < 256; digit++) {
            const size_t count = place[digit];
            place[digit] = sum;
            sum += count;
        }
        for (size_t i = 0; i < n; i++) to[place[from[i].key >> shift & 0xff]++] = from[i];
        struct fp_pairs_item *swap = from;
        from = to;
        to = swap;
    }
    if (from != pairs) memcpy(pairs, from, n * sizeof *pairs);
    free(other);
}
