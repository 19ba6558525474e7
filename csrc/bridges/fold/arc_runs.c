#include "bridges/fold/arc_runs.h"

enum { COUNTERS = FP_ARC_WIDTH - FP_MERGE_KEY };

/* ---- packing ------------------------------------------------------------ */

/* The bits that encode the length of a value. */
static inline uint32_t size_of(uint64_t value) {
    return (value > UINT8_MAX) + (value > UINT16_MAX) + (value > UINT32_MAX);
}

static inline uint8_t *put(uint8_t *to, uint64_t value, uint32_t size) {
    memcpy(to, &value, sizeof value);
    return to + (1u << size);
}

size_t fp_arc_pack(struct fp_arc_pack *p, const uint64_t *words, size_t n, uint8_t *to, struct fp_arc_block *blocks,
                   uint32_t *n_blocks) {
    uint8_t *at = to;
    const uint64_t before = p->nbytes;
    *n_blocks = 0;
    for (const uint64_t *record = words; record + FP_ARC_WIDTH <= words + n; record += FP_ARC_WIDTH) {
        const uint64_t group = record[0], key = record[1], offset = before + (uint64_t)(at - to);
        const int begins = offset >= p->block_end;
        const uint64_t step = begins || group != p->group ? 0 : key - p->key;
        const uint32_t steps = size_of(step), calls = size_of(record[2]), ticks = size_of(record[3]),
                       subcalls = size_of(record[4]);
        if (begins) {
            blocks[(*n_blocks)++] = (struct fp_arc_block){group, key, offset};
            p->block_end = offset + FP_ARC_BLOCK;
        }
        *at++ = (uint8_t)(steps | calls << 2 | ticks << 4 | subcalls << 6);
        at = put(at, step, steps);
        if (!step) {
            memcpy(at, &group, 4);
            memcpy(at + 4, &key, 8);
            at += 12;
        }
        at = put(at, record[2], calls);
        at = put(at, record[3], ticks);
        at = put(at, record[4], subcalls);
        p->group = group;
        p->key = key;
    }
    p->nbytes = before + (uint64_t)(at - to);
    return (size_t)(at - to);
}

/* ---- reading ------------------------------------------------------------- */

#define ENDED UINT64_MAX /* no caller, and no key */

/* The next record of a run. */
struct fp_arc_run {
    const uint8_t *counters, *end;
    uint32_t sizes;
    uint32_t group;
    uint64_t key;    /* ENDED: there is none */
    uint64_t caller; /* group << 32 | caller; ENDED */
};

static inline uint64_t get(const uint8_t **p, uint32_t size) {
    static const uint64_t mask[] = {UINT8_MAX, UINT16_MAX, UINT32_MAX, UINT64_MAX};
    const uint64_t value = fp_u64(*p) & mask[size & 3];
    *p += 1u << (size & 3);
    return value;
}

/* Reads the key of the record at p.  0, or nonzero if it extends past the run. */
static inline int read_key(const struct fp_arc_sums *s, struct fp_arc_run *run, const uint8_t *p) {
    if (FP_UNLIKELY(p >= run->end)) {
        run->key = run->caller = ENDED;
        return p > run->end;
    }
    run->sizes = *p++;
    const uint64_t step = get(&p, run->sizes);
    if (step) {
        run->key += step;
    } else {
        run->group = fp_u32(p);
        run->key = fp_u64(p + 4);
        p += 12;
    }
    run->counters = p;
    run->caller = (uint64_t)run->group << 32 | run->key >> 32;
    if (FP_UNLIKELY(run->group >= s->end[0]) && (run->group > s->end[0] || run->key >= s->end[1]))
        run->key = run->caller = ENDED;
    return 0;
}

/* ---- sums ------------------------------------------------------------------ */

/* beyond[i] * 2^64 + value[i] */
struct fp_arc_sum {
    uint64_t value[COUNTERS];
    uint16_t beyond[COUNTERS];
};

struct fp_arc_sums *fp_arc_sums_new(uint32_t n_functions) {
    struct fp_arc_sums *s = fp_made(sizeof *s);
    const size_t n_blocks = n_functions / 4096 + 1;
    s->n_functions = n_functions;
    s->sums = fp_have(calloc((size_t)n_functions + 1, sizeof *s->sums));
    s->called = fp_have(calloc(n_blocks * 64, sizeof *s->called));
    s->words = fp_have(calloc(n_blocks, sizeof *s->words));
    s->used = fp_have(malloc(n_blocks * sizeof *s->used));
    return s;
}

void fp_arc_sums_free(struct fp_arc_sums *s) {
    FP_FREE(s->runs, s->heap, s->sums, s->called, s->words, s->used, s);
}

static int damaged(struct fp_err *err) {
    return fp_fail(err, FP_E_MALFORMED, 0, "a record of a temporary file");
}

static const uint8_t *after_counters(const struct fp_arc_run *run) {
    const uint8_t *p = run->counters;
    for (uint32_t i = 0; i < COUNTERS; i++) p += 1u << (run->sizes >> 2 * (i + 1) & 3);
    return p;
}

static inline int is_before(const struct fp_arc_sums *s, uint32_t a, uint32_t b) {
    return s->runs[a].caller < s->runs[b].caller;
}

FP_HEAP(const struct fp_arc_sums *, uint32_t, is_before)

int fp_arc_sums_begin(struct fp_arc_sums *s, const uint8_t *bytes, const size_t *nbytes, uint32_t n_runs,
                      const uint64_t *low, const uint64_t *high, struct fp_err *err) {
    s->n_heap = 0;
    fp_array_room(&s->runs, &s->cap_runs, n_runs, sizeof *s->runs);
    fp_array_room(&s->heap, &s->cap_heap, n_runs, sizeof *s->heap);
    s->end[0] = high ? high[0] : UINT64_MAX;
    s->end[1] = high ? high[1] : UINT64_MAX;
    for (uint32_t i = 0; i < n_runs; bytes += nbytes[i++]) {
        struct fp_arc_run *run = &s->runs[i];
        *run = (struct fp_arc_run){.end = bytes + nbytes[i]};
        int beyond = read_key(s, run, bytes);
        while (low && !beyond && run->key != ENDED &&
               (run->group < low[0] || (run->group == low[0] && run->key < low[1])))
            beyond = read_key(s, run, after_counters(run));
        if (beyond) return damaged(err);
        if (run->caller != ENDED) s->heap[s->n_heap++] = i;
    }
    for (uint32_t i = s->n_heap / 2; i-- > 0;) heap_sink(s, s->heap, s->n_heap, i);
    return FP_DONE;
}

/* Adds the arcs of the current caller.  0, or nonzero if the bytes differ from those written. */
static int add_run(struct fp_arc_sums *s, struct fp_arc_run *run) {
    const uint64_t caller = s->caller;
    do {
        const uint32_t callee = (uint32_t)run->key;
        if (FP_UNLIKELY(callee >= s->n_functions)) return FP_E_MALFORMED;
        struct fp_arc_sum *sum = &s->sums[callee];
        const uint8_t *p = run->counters;
        for (uint32_t i = 0; i < COUNTERS; i++) {
            const uint64_t value = get(&p, run->sizes >> 2 * (i + 1));
            const int over = __builtin_add_overflow(sum->value[i], value, &sum->value[i]);
            if (FP_UNLIKELY(over) && sum->beyond[i] < UINT16_MAX) sum->beyond[i]++; /* too large for any row */
        }
        uint64_t *word = &s->words[callee / 4096];
        if (!*word) s->used[s->n_used++] = callee / 4096;
        *word |= (uint64_t)1 << callee / 64 % 64;
        s->called[callee / 64] |= (uint64_t)1 << callee % 64;
        if (FP_UNLIKELY(read_key(s, run, p))) return FP_E_MALFORMED;
    } while (run->caller == caller);
    return 0;
}

static int ascending(const void *a, const void *b) {
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* Sums the arcs of the next caller.  FP_FULL: there are some.  FP_DONE, FP_E_MALFORMED. */
static int add_caller(struct fp_arc_sums *s) {
    s->n_used = s->next = 0;
    if (!s->n_heap) return FP_DONE;
    s->caller = s->runs[s->heap[0]].caller;
    while (s->n_heap && s->runs[s->heap[0]].caller == s->caller) {
        struct fp_arc_run *run = &s->runs[s->heap[0]];
        if (add_run(s, run)) return FP_E_MALFORMED;
        if (run->caller == ENDED) s->heap[0] = s->heap[--s->n_heap];
        if (s->n_heap) heap_sink(s, s->heap, s->n_heap, 0);
    }
    if (s->n_used > 1) qsort(s->used, s->n_used, sizeof *s->used, ascending);
    return FP_FULL;
}

/* Removes as much of a counter as fits a word. */
static inline uint64_t taken(struct fp_arc_sum *sum, uint32_t i) {
    const uint64_t value = sum->value[i];
    if (FP_LIKELY(!sum->beyond[i])) {
        sum->value[i] = 0;
        return value;
    }
    sum->value[i]++; /* less 2^64 - 1 is less 2^64, and 1 more */
    if (sum->value[i]) sum->beyond[i]--;
    return UINT64_MAX;
}

/* Writes a record of a callee's sum.  Returns whether a remainder is left. */
static inline int give(struct fp_arc_sums *s, uint32_t callee, uint64_t *to) {
    struct fp_arc_sum *sum = &s->sums[callee];
    to[0] = s->caller >> 32;
    to[1] = s->caller << 32 | callee;
    uint64_t rest = 0;
    for (uint32_t i = 0; i < COUNTERS; i++) {
        to[FP_MERGE_KEY + i] = taken(sum, i);
        rest |= sum->value[i] | sum->beyond[i];
    }
    return rest != 0;
}

/* Fills `to` with the sums of the current caller.  Returns the number of words. */
static size_t give_caller(struct fp_arc_sums *s, uint64_t *to, size_t n) {
    uint64_t *at = to, *const end = to + (n - n % FP_ARC_WIDTH);
    for (; s->next < s->n_used; s->next++) {
        uint64_t *words = &s->words[s->used[s->next]];
        while (*words) {
            const uint32_t word = s->used[s->next] * 64 + (uint32_t)__builtin_ctzll(*words);
            uint64_t called = s->called[word];
            while (called && at < end) {
                const uint32_t callee = word * 64 + (uint32_t)__builtin_ctzll(called);
                if (FP_LIKELY(!give(s, callee, at))) called &= called - 1;
                at += FP_ARC_WIDTH;
            }
            s->called[word] = called;
            if (called) return (size_t)(at - to);
            *words &= *words - 1;
        }
    }
    return (size_t)(at - to);
}

int fp_arc_sums_pull(struct fp_arc_sums *s, uint64_t *to, size_t n, size_t *got, struct fp_err *err) {
    *got = 0;
    for (;;) {
        *got += give_caller(s, to + *got, n - *got);
        if (s->next < s->n_used) return FP_DONE; /* no room for more */
        const int status = add_caller(s);
        if (status == FP_DONE) return FP_DONE;
        if (status < 0) return damaged(err);
    }
}
