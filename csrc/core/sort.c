#include "core/sort.h"

#include "core/guard.h"

enum { DIGITS = 12 };

static inline unsigned digit_of(const struct fp_keyed *k, unsigned d) {
    return (unsigned)(d < 8 ? k->key >> (8 * d) & 255 : k->more >> (8 * (d - 8)) & 255);
}

void fp_sort_keyed(struct fp_keyed *items, uint32_t n) {
    uint32_t descents = 0, more = 0;
    uint64_t key = 0; /* bits in which items differ from the first one */
    for (uint32_t i = 1; i < n; i++) {
        const struct fp_keyed *a = &items[i - 1], *b = &items[i];
        descents += a->more != b->more ? a->more > b->more : a->key > b->key;
        key |= items->key ^ b->key;
        more |= items->more ^ b->more;
    }
    if (!descents) return;
    struct fp_keyed *scratch = fp_have(malloc(n * sizeof *scratch)), *from = items, *to = scratch;
    const struct fp_keyed differ = {key, more, 0};
    for (unsigned d = 0; d < DIGITS; d++) {
        if (!digit_of(&differ, d)) continue;
        uint32_t counts[256] = {0}, sum = 0;
        for (uint32_t i = 0; i < n; i++) counts[digit_of(&from[i], d)]++;
        for (unsigned v = 0; v < 256; v++) {
            const uint32_t count = counts[v];
            counts[v] = sum;
            sum += count;
        }
        for (uint32_t i = 0; i < n; i++) to[counts[digit_of(&from[i], d)]++] = from[i];
        struct fp_keyed *swap = from;
        from = to;
        to = swap;
    }
    if (from != items) memcpy(items, from, n * sizeof *items);
    free(scratch);
}
