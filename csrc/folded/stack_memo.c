#include "folded/stack_memo.h"

#if defined(FP_DEBUG) /* so that fuzzers fill it */
enum { MOST_TEXT = 1 << 10, LITTLE_TEXT = 1 << 8, MOST_KEYS = 1 << 5, FIRST_SLOTS = 1 << 3 };
#else
enum { MOST_TEXT = 16 << 20, LITTLE_TEXT = 1 << 20, MOST_KEYS = 1 << 18, FIRST_SLOTS = 1 << 10 };
#endif
enum {
    PLACE = 8,        /* bytes */
    NEAR = 8,         /* slots that a search probes */
    RESTS = 8,        /* times MOST_TEXT */
    FEW_FULL = 4,     /* a full table rests if it found fewer than one line in this many */
    FEW = 64,         /* the same for a table about to grow beyond LITTLE_TEXT */
    MOST_DIGITS = 18, /* 19 could overflow */
    HEAD = sizeof(struct fp_folded_known_stack)
};

/* The stack and the count of the line from p to its newline at `stop`.  Is it plain? */
static inline int split(const uint8_t *p, const uint8_t *stop, struct fp_folded_plain *line) {
    const uint8_t *at = stop;
    uint64_t power = 1, count = 0;
    while (at != p && fp_is_digit(at[-1]) && stop - at < MOST_DIGITS) {
        count += power * (uint64_t)(*--at - '0');
        power *= 10;
    }
    if (at == stop || at - p < 2 || at[-1] != ' ') return 0;
    const uint8_t last = at[-2];
    line->p = p;
    line->n = (uint32_t)(at - 1 - p);
    line->count = (int64_t)count;
    return last != ' ' && last != '\t' && last != ';' && *p != '#' && at - p <= FP_PLAIN_MOST;
}

uint32_t fp_folded_plain_lines(const uint8_t *p, const uint8_t *end, struct fp_folded_plain *lines, uint32_t most,
                               const uint8_t **next) {
    uint32_t n = 0;
    for (; n < most; n++) {
        const uint8_t *stop = p == end ? NULL : memchr(p, '\n', (size_t)(end - p));
        if (!stop || !split(p, stop, &lines[n])) break;
        p = stop + 1;
    }
    *next = p;
    return n;
}

void fp_folded_known_clear(struct fp_folded_known *k) {
    fp_release(k->index, k->n_slots * sizeof *k->index);
    fp_release(k->stacks, k->cap);
    *k = (struct fp_folded_known){0};
}

void fp_folded_known_empty(struct fp_folded_known *k) {
    if (k->index) memset(k->index, 0, k->n_slots * sizeof *k->index);
    k->n = k->n_keys = 0;
    k->n_lines = k->n_found = 0;
}

static inline size_t place_of(uint64_t slot) {
    return ((size_t)(uint32_t)slot - 1) * PLACE;
}

int fp_folded_known_prefetch(struct fp_folded_known *k, struct fp_folded_plain *lines, uint32_t n, size_t nbytes) {
    if (k->rest) {
        k->rest -= nbytes < k->rest ? nbytes : k->rest;
        return 0;
    }
    k->n_lines += n;
    const uint32_t mask = k->n_slots - 1;
    for (uint32_t i = 0; i < n; i++) {
        lines[i].hash = (uint32_t)fp_hash_bytes(lines[i].p, lines[i].n);
        if (k->n_keys) __builtin_prefetch(&k->index[lines[i].hash & mask]);
    }
    for (uint32_t i = 0; i < n && k->n_keys; i++) {
        const uint64_t slot = k->index[lines[i].hash & mask];
        const uint8_t *stack = k->stacks + (slot ? place_of(slot) : 0);
        __builtin_prefetch(stack);
        __builtin_prefetch(stack + HEAD + lines[i].n - 1);
    }
    return 1;
}

const struct fp_folded_known_stack *fp_folded_known_find(struct fp_folded_known *k,
                                                         const struct fp_folded_plain *line) {
    if (!k->n_keys) return NULL;
    const uint32_t mask = k->n_slots - 1;
    uint64_t slot;
    for (uint32_t i = 0; i < NEAR && (slot = k->index[(line->hash + i) & mask]); i++) {
        if (slot >> 32 != line->hash) continue;
        const uint8_t *at = k->stacks + place_of(slot);
        const struct fp_folded_known_stack *stack = (const void *)at;
        if (stack->n != line->n || memcmp(at + HEAD, line->p, line->n)) continue;
        k->n_found++;
        return stack;
    }
    return NULL;
}

/* Adds a key, unless all slots near its place are taken. */
static int enter(uint64_t *index, uint32_t mask, uint64_t slot) {
    const uint32_t hash = (uint32_t)(slot >> 32);
    for (uint32_t i = 0; i < NEAR; i++) {
        if (index[(hash + i) & mask]) continue;
        index[(hash + i) & mask] = slot;
        return 1;
    }
    return 0;
}

/* An index four times as large, of at least FIRST_SLOTS.  0 or FP_E_NOMEM. */
static int grow_index(struct fp_folded_known *k) {
    const uint32_t n_slots = k->n_slots ? k->n_slots * 4 : FIRST_SLOTS;
    uint64_t *index = fp_zeroed(n_slots * sizeof *index);
    if (!index) return FP_E_NOMEM;
    k->n_keys = 0;
    for (uint32_t i = 0; i < k->n_slots; i++)
        if (k->index[i]) k->n_keys += (uint32_t)enter(index, n_slots - 1, k->index[i]);
    fp_release(k->index, k->n_slots * sizeof *k->index);
    k->index = index;
    k->n_slots = n_slots;
    return 0;
}

/* Makes room for a stack; empties the table when it is full.  Returns 0 if stacks repeat too rarely to be worth their
 * memory. */
static int is_worth_it(struct fp_folded_known *k, size_t nbytes) {
    const int full = k->n + nbytes > MOST_TEXT || k->n_keys == MOST_KEYS;
    const int grows = k->n + nbytes > k->cap && k->cap >= LITTLE_TEXT;
    if (!full && !grows) return 1;
    const int rests = k->n_found < k->n_lines / (full ? FEW_FULL : FEW);
    if (rests) k->rest = (uint64_t)RESTS * MOST_TEXT;
    if (full || rests) fp_folded_known_empty(k);
    return !rests && nbytes <= MOST_TEXT;
}

int fp_folded_known_add(struct fp_folded_known *k, const struct fp_folded_plain *line, uint32_t node, uint32_t empty) {
    const size_t nbytes = (HEAD + line->n + PLACE - 1) / PLACE * PLACE;
    if (k->rest || !is_worth_it(k, nbytes)) return 0;
    if (k->n_keys >= k->n_slots / 2 && grow_index(k)) return FP_E_NOMEM;
    if (k->n + nbytes > k->cap) {
        const size_t cap = k->cap * 2 > k->n + nbytes ? k->cap * 2 : (k->n + nbytes) * 2;
        uint8_t *stacks = fp_grow(k->stacks, k->cap, cap);
        if (!stacks) return FP_E_NOMEM;
        k->stacks = stacks;
        k->cap = cap;
    }
    if (!enter(k->index, k->n_slots - 1, (uint64_t)line->hash << 32 | (k->n / PLACE + 1))) return 0;
    const struct fp_folded_known_stack stack = {node, empty, line->n};
    memcpy(k->stacks + k->n, &stack, HEAD);
    memcpy(k->stacks + k->n + HEAD, line->p, line->n);
    k->n += nbytes;
    k->n_keys++;
    return 0;
}
