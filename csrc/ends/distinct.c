#include "ends/distinct.h"

struct fp_distinct {
    struct fp_keyed *items;
    uint32_t n, next;
};

struct fp_distinct *fp_distinct_new(const struct fp_model *m) {
    struct fp_distinct *d = fp_made(sizeof *d);
    const uint32_t n = m->stacks.n;
    d->items = fp_have(malloc(n * sizeof *d->items));
    d->items[0] = (struct fp_keyed){0};
    for (uint32_t i = 1; i < n; i++) {
        const uint32_t *row = fp_table_row(&m->stacks, i);
        const struct fp_keyed *parent = &d->items[row[FP_STACK_PARENT]]; /* made before */
        const uint64_t frame = (uint64_t)parent->more << 32 | row[FP_STACK_FRAME];
        d->items[i] = (struct fp_keyed){
            .key = fp_mix(parent->key, frame), .more = (uint32_t)fp_mix(frame, parent->key + 1), .item = i};
    }
    d->n = n;
    d->next = 1;
    fp_sort_keyed(d->items + 1, n - 1);
    return d;
}

void fp_distinct_free(struct fp_distinct *d) {
    FP_FREE(d->items, d);
}

size_t fp_distinct_pull(struct fp_distinct *d, uint64_t *to, size_t n) {
    size_t got = 0;
    for (; d->next < d->n && n - got >= FP_MERGE_KEY; d->next++, got += FP_MERGE_KEY) {
        to[got] = d->items[d->next].more;
        to[got + 1] = d->items[d->next].key;
    }
    return got;
}
