/* Allocations and frees: the blocks in use, and the sums of stacks. */
#include "memray/state.h"

/* The kinds of version 12 and later. */
enum { PYMALLOC_FREE = 1, FREE = 5, MMAP = 14, MUNMAP = 15 };
enum { MOST_OVERLAPS = 1 << 20, MOST_MAPS = 1 << 18 /* Linux's default limit is a quarter of it */ };

/* The bucket at which the search for an address begins.  The key is secret, because a file can choose its addresses. */
static inline uint64_t bucket_of(const struct fp_memray_reader *r, uint64_t address) {
    return fp_mix(address ^ r->secret.key[0], r->secret.key[1]) & r->mask;
}

enum { FULL = (1 << FP_MEMRAY_SLOTS) - 1 };

/* A bit for each slot. */
static inline unsigned used_in(const struct fp_memray_bucket *b) {
    unsigned bits = 0;
    for (unsigned i = 0; i < FP_MEMRAY_SLOTS; i++) bits |= (unsigned)(b->sum[i] != 0) << i;
    return bits;
}

static inline unsigned equal_in(const struct fp_memray_bucket *b, uint64_t address) {
    unsigned bits = 0;
    for (unsigned i = 0; i < FP_MEMRAY_SLOTS; i++) bits |= (unsigned)(b->address[i] == address) << i;
    return bits;
}

/* The slot of an address, a bit of bucket *at; if it is not there a free slot.  Whether it is there. */
static inline int find(const struct fp_memray_reader *r, uint64_t address, uint64_t *at, unsigned *slot) {
    for (uint64_t i = bucket_of(r, address);; i = (i + 1) & r->mask) {
        const struct fp_memray_bucket *b = &r->buckets[i];
        const unsigned used = used_in(b), found = equal_in(b, address) & used;
        if (FP_UNLIKELY(!found && used == FULL)) continue;
        *at = i;
        *slot = (unsigned)__builtin_ctz(found ? found : ~used);
        return found != 0;
    }
}

static void move(const struct fp_memray_bucket *from, unsigned i, struct fp_memray_bucket *to, unsigned k) {
    to->address[k] = from->address[i];
    to->size[k] = from->size[i];
    to->sum[k] = from->sum[i];
}

static void grow(struct fp_memray_reader *r) {
    struct fp_memray_bucket *old = r->buckets;
    const uint64_t n = old ? r->mask + 1 : 0, more = n ? 2 * n : 256;
    struct fp_memray_bucket *buckets = fp_have(fp_zeroed(more * sizeof *buckets));
    if (!n) fp_hash_key_take(&r->secret);
    r->buckets = buckets;
    r->mask = more - 1;
    for (uint64_t i = 0, at; i < n; i++) {
        for (unsigned k = 0, slot; k < FP_MEMRAY_SLOTS; k++) {
            if (!old[i].sum[k]) continue;
            (void)find(r, old[i].address[k], &at, &slot);
            move(&old[i], k, &buckets[at], slot);
        }
    }
    fp_release(old, n * sizeof *old);
}

static void put(struct fp_memray_reader *r, const struct fp_memray_coming *c, struct fp_memray_bucket *b, unsigned k) {
    b->address[k] = c->address;
    if (FP_LIKELY(c->size < UINT32_MAX)) {
        b->size[k] = (uint32_t)c->size;
        b->sum[k] = c->sum;
        return;
    }
    uint32_t at = r->free_large;
    if (at) {
        r->free_large = r->large[at].sum;
    } else {
        fp_array_room(&r->large, &r->cap_large, (uint64_t)r->n_large + 2, sizeof *r->large);
        at = ++r->n_large;
    }
    r->large[at] = (struct fp_memray_large){c->size, c->sum};
    b->size[k] = UINT32_MAX;
    b->sum[k] = at;
}

/* What a slot has; a large block's place is free again. */
static inline struct fp_memray_coming get(struct fp_memray_reader *r, const struct fp_memray_bucket *b, unsigned k) {
    const uint32_t size = b->size[k], sum = b->sum[k];
    if (FP_LIKELY(size < UINT32_MAX)) return (struct fp_memray_coming){b->address[k], size, sum};
    struct fp_memray_large *large = &r->large[sum];
    const struct fp_memray_coming found = {b->address[k], large->size, large->sum};
    large->sum = r->free_large;
    r->free_large = sum;
    return found;
}

/* Frees slot k of bucket i.  If the bucket was full, blocks that had no room in it, or in one before, move up. */
static inline void take(struct fp_memray_reader *r, uint64_t i, unsigned k) {
    int is_full = used_in(&r->buckets[i]) == FULL;
    r->buckets[i].sum[k] = 0;
    r->n_blocks--;
    for (uint64_t next = i; FP_UNLIKELY(is_full);) {
        next = (next + 1) & r->mask;
        struct fp_memray_bucket *b = &r->buckets[next];
        is_full = used_in(b) == FULL;
        for (unsigned j = 0; j < FP_MEMRAY_SLOTS; j++) {
            if (!b->sum[j] || ((next - bucket_of(r, b->address[j])) & r->mask) < ((next - i) & r->mask)) continue;
            move(b, j, &r->buckets[i], k);
            b->sum[j] = 0;
            i = next, k = j;
            break;
        }
    }
}

static inline int settle(struct fp_memray_reader *r, const struct fp_memray_coming *c) {
    struct fp_heap_sums *heap = &r->f.heap;
    uint64_t at;
    unsigned slot;
    if (FP_UNLIKELY(r->n_blocks >= 2 * r->mask)) grow(r);
    const int is_there = find(r, c->address, &at, &slot);
    if (!c->sum) {
        if (!is_there) return 0;
        const struct fp_memray_coming old = get(r, &r->buckets[at], slot);
        take(r, at, slot);
        return fp_heap_change(heap, old.sum, -1, -old.size);
    }
    if (FP_UNLIKELY(is_there)) { /* without a free: memray's total keeps both, its stacks the newer one */
        const int64_t live = heap->live;
        const struct fp_memray_coming old = get(r, &r->buckets[at], slot);
        r->buckets[at].sum[slot] = 0;
        FP_TRY(fp_heap_change(heap, old.sum, -1, -old.size));
        heap->live = live;
        r->n_blocks--;
    }
    put(r, c, &r->buckets[at], slot);
    r->n_blocks++;
    return fp_heap_change(heap, c->sum, 1, c->size);
}

int fp_memray_settle(struct fp_memray_reader *r) {
    const uint32_t n = r->n_coming;
    r->n_coming = 0;
    for (uint32_t i = 0; i < n; i++) {
        const int status = settle(r, &r->coming[i]);
        if (FP_UNLIKELY(status)) return status;
    }
    return 0;
}

static inline int add_coming(struct fp_memray_reader *r, uint64_t address, uint64_t size, uint32_t sum) {
    if (r->buckets) __builtin_prefetch(&r->buckets[bucket_of(r, address)], 1);
    r->coming[r->n_coming++] = (struct fp_memray_coming){address, (int64_t)size, sum};
    /* after a size with which a sum may overflow at once, so that the error is located */
    return r->n_coming == FP_MEMRAY_AHEAD || size >> 40 ? fp_memray_settle(r) : 0;
}

/* ---- mappings in use ---- */

static void renew(struct fp_memray_map *maps, uint32_t at) {
    struct fp_memray_map *m = &maps[at];
    m->most = m->end;
    if (m->left && maps[m->left].most > m->most) m->most = maps[m->left].most;
    if (m->right && maps[m->right].most > m->most) m->most = maps[m->right].most;
}

/* Divides a tree into mappings that start before `start` and others. */
static void divide(struct fp_memray_map *maps, uint32_t at, uint64_t start, uint32_t *before, uint32_t *others) {
    if (!at) {
        *before = *others = 0;
    } else if (maps[at].start < start) {
        divide(maps, maps[at].right, start, &maps[at].right, others);
        renew(maps, *before = at);
    } else {
        divide(maps, maps[at].left, start, before, &maps[at].left);
        renew(maps, *others = at);
    }
}

/* Joins two trees; those of `a` start before those of `b`. */
static uint32_t joined(struct fp_memray_map *maps, uint32_t a, uint32_t b) {
    if (!a || !b) return a ? a : b;
    const int a_is_higher = maps[a].rank > maps[b].rank;
    const uint32_t root = a_is_higher ? a : b;
    if (a_is_higher)
        maps[a].right = joined(maps, maps[a].right, b);
    else
        maps[b].left = joined(maps, a, maps[b].left);
    renew(maps, root);
    return root;
}

/* Adds a mapping.  0, or FP_E_MALFORMED if there are too many. */
static int add_map(struct fp_memray_reader *r, uint64_t start, uint64_t end, uint32_t sum) {
    if (start >= end) return 0;
    if (r->n_in_use == MOST_MAPS) return fp_memray_bad(r, "the mappings in use", "at most 262,144");
    uint32_t at = r->free_map, before, others;
    if (!at) {
        fp_array_room(&r->maps, &r->cap_maps, (uint64_t)r->n_maps + 2, sizeof *r->maps);
        at = ++r->n_maps;
    } else {
        r->free_map = r->maps[at].left;
    }
    if (!r->secret.key[0]) fp_hash_key_take(&r->secret);
    const uint32_t rank = (uint32_t)fp_mix(++r->n_ranks ^ r->secret.key[0], r->secret.key[1]);
    r->n_in_use++;
    r->maps[at] = (struct fp_memray_map){.start = start, .end = end, .most = end, .sum = sum, .rank = rank};
    divide(r->maps, r->root_map, start, &before, &others);
    r->root_map = joined(r->maps, joined(r->maps, before, at), others);
    return 0;
}

/* Moves the mappings of the tree at *at that overlap [start, end) to the list *found.  Only branches that have one are
 * entered. */
static void take_maps(struct fp_memray_reader *r, uint32_t *at, uint64_t start, uint64_t end, uint32_t *found) {
    struct fp_memray_map *m = &r->maps[*at];
    if (!*at || m->most <= start) return;
    take_maps(r, &m->left, start, end, found);
    if (m->start < end) take_maps(r, &m->right, start, end, found);
    if (m->start >= end || m->end <= start) {
        renew(r->maps, *at);
        return;
    }
    const uint32_t mine = *at;
    *at = joined(r->maps, m->left, m->right);
    m->left = *found;
    *found = mine;
}

/* Unmaps [start, end): of each mapping the parts that remain count as one allocation each. */
static int unmap(struct fp_memray_reader *r, uint64_t start, uint64_t end) {
    uint32_t found = 0;
    if (start >= end) return 0;
    r->n_map_events++;
    if (r->root_map) take_maps(r, &r->root_map, start, end, &found);
    while (found) {
        const struct fp_memray_map m = r->maps[found];
        r->maps[found].left = r->free_map;
        r->free_map = found;
        found = m.left;
        r->n_in_use--;
        const uint64_t from = m.start > start ? m.start : start, to = m.end < end ? m.end : end;
        FP_TRY(fp_heap_change(&r->f.heap, m.sum, -1, -(int64_t)(to - from)));
        r->f.heap.sums[m.sum].values[FP_HEAP_LEFT] += (m.start < from) + (to < m.end);
        FP_TRY(add_map(r, m.start, from, m.sum));
        FP_TRY(add_map(r, to, m.end, m.sum));
        if (++r->n_overlaps > MOST_OVERLAPS + 4 * r->n_map_events)
            return fp_memray_bad(r, "mappings overlap", "each address to be mapped once");
    }
    return 0;
}

/* A free of one of the thread's last two allocations: it was temporary. */
static int check_temporary(struct fp_memray_reader *r, uint64_t address, uint64_t size, int is_map) {
    for (int i = 0; i < 2; i++) {
        const struct fp_memray_latest *l = &fp_memray_current(r)->latest[i];
        if (l->address == address && address && (!is_map || l->size == size))
            return fp_heap_temporary(&r->f.heap, l->sum, (int64_t)l->size);
    }
    return 0;
}

uint32_t fp_memray_sum(struct fp_memray_reader *r, uint32_t stack, uint32_t thread, uint64_t native, uint32_t epoch) {
    const uint32_t key[5] = {stack, thread, FP_WORDS(native), epoch};
    const uint32_t sum = fp_table_intern(&r->sums, key);
    if (sum >= r->f.heap.n)
        (void)fp_heap_stack(&r->f.heap, r->f.has_native ? 0 : stack, thread); /* the next number of both */
    return sum;
}

static int allocate(struct fp_memray_reader *r, unsigned allocator, uint64_t address, uint64_t size) {
    struct fp_memray_thread *t = fp_memray_current(r);
    struct fp_memray_top *top = &t->stack[t->n - 1];
    const uint64_t native = r->f.has_native ? r->native : 0;
    const uint32_t epoch = r->f.has_native ? r->n_epochs : 0;
    if (!top->sum || top->native != native || top->epoch != epoch) {
        top->sum = fp_memray_sum(r, top->stack, t->thread, native, epoch) + 1;
        top->native = native;
        top->epoch = epoch;
    }
    const uint32_t sum = top->sum - 1;
    t->latest[1] = t->latest[0];
    t->latest[0] = (struct fp_memray_latest){address, size, sum};
    if (allocator != MMAP) return add_coming(r, address, size, sum);
    if (size > UINT64_MAX - address) return fp_memray_bad(r, "a mapping ends beyond 2^64", NULL);
    r->n_map_events++;
    FP_TRY(fp_memray_settle(r));
    FP_TRY(add_map(r, address, address + size, sum));
    return fp_heap_change(&r->f.heap, sum, 1, (int64_t)size);
}

int fp_memray_event(struct fp_memray_reader *r, unsigned allocator, uint64_t address, uint64_t size) {
    if (!r->current) return fp_memray_bad(r, "an allocation before the first thread", NULL);
    if (allocator < PYMALLOC_FREE || allocator > MUNMAP) return fp_memray_bad(r, "the allocator", "1 to 15");
    if (size > INT64_MAX) return fp_memray_bad(r, "the size of an allocation", "less than 2^63");
    switch (allocator) {
        case PYMALLOC_FREE:
        case FREE: FP_TRY(check_temporary(r, address, size, 0)); return add_coming(r, address, 0, 0);
        case MUNMAP:
            FP_TRY(check_temporary(r, address, size, 1));
            FP_TRY(fp_memray_settle(r));
            return unmap(r, address, size > UINT64_MAX - address ? UINT64_MAX : address + size);
        default: return allocate(r, allocator, address, size);
    }
}
