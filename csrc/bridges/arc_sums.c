#include "bridges/arc_sums.h"

#include <stdlib.h>

#include "core/array.h"

enum { COUNTERS = FP_ARC_WIDTH - FP_MERGE_KEY };

#define ENDED UINT64_MAX /* no caller */

struct fp_arc_run {
    const uint64_t *next, *end;
    uint64_t caller; /* of the next record; ENDED */
};

/* beyond[i] * 2^64 + value[i] */
struct fp_arc_sum {
    uint64_t value[COUNTERS];
    uint16_t beyond[COUNTERS];
};

struct fp_arc_sums *fp_arc_sums_new(uint32_t n_functions) {
    struct fp_arc_sums *s = calloc(1, sizeof *s);
    if (!s) return NULL;
    s->n_functions = n_functions;
    s->n_blocks = s->block = n_functions / 4096 + 1;
    s->sums = calloc((size_t)n_functions + 1, sizeof *s->sums);
    s->called = calloc((size_t)s->n_blocks * 64, sizeof *s->called);
    s->blocks = calloc(s->n_blocks, sizeof *s->blocks);
    if (!s->sums || !s->called || !s->blocks) {
        fp_arc_sums_free(s);
        return NULL;
    }
    return s;
}

void fp_arc_sums_free(struct fp_arc_sums *s) {
    if (!s) return;
    free(s->runs);
    free(s->sums);
    free(s->called);
    free(s->blocks);
    free(s);
}

static inline uint64_t caller_of(const uint64_t *record) {
    return record[0] << 32 | record[1] >> 32;
}

static void look_ahead(struct fp_arc_run *run) {
    run->caller = run->next < run->end ? caller_of(run->next) : ENDED;
}

/* The first of `n` records whose key is not below this one. */
static const uint64_t *first_from(const uint64_t *records, size_t n, const uint64_t *key) {
    size_t first = 0, last = n;
    while (first < last) {
        const size_t middle = first + (last - first) / 2;
        const uint64_t *record = records + middle * FP_ARC_WIDTH;
        if (record[0] < key[0] || (record[0] == key[0] && record[1] < key[1]))
            first = middle + 1;
        else
            last = middle;
    }
    return records + first * FP_ARC_WIDTH;
}

int fp_arc_sums_begin(struct fp_arc_sums *s, const uint64_t *words, const size_t *n_words, uint32_t n_runs,
                      const uint64_t *low, const uint64_t *high) {
    if (fp_array_room(&s->runs, &s->cap_runs, n_runs, sizeof *s->runs)) return FP_E_NOMEM;
    s->n_runs = n_runs;
    for (uint32_t i = 0; i < n_runs; words += n_words[i++]) {
        const size_t n = n_words[i] / FP_ARC_WIDTH;
        struct fp_arc_run *run = &s->runs[i];
        run->next = low ? first_from(words, n, low) : words;
        run->end = high ? first_from(words, n, high) : words + n * FP_ARC_WIDTH;
        look_ahead(run);
    }
    return 0;
}

/* Adds the arcs of the caller at hand.  0, or they have a callee that does not exist. */
static int add_run(struct fp_arc_sums *s, struct fp_arc_run *run) {
    const uint64_t caller = s->caller, *record = run->next;
    do {
        const uint32_t callee = (uint32_t)record[1];
        if (callee >= s->n_functions) return FP_E_MALFORMED;
        struct fp_arc_sum *sum = &s->sums[callee];
        for (uint32_t i = 0; i < COUNTERS; i++) {
            const int over = __builtin_add_overflow(sum->value[i], record[FP_MERGE_KEY + i], &sum->value[i]);
            if (FP_UNLIKELY(over) && sum->beyond[i] < UINT16_MAX) sum->beyond[i]++; /* too large for any row */
        }
        s->called[callee / 64] |= (uint64_t)1 << callee % 64;
        s->blocks[callee / 4096] |= (uint64_t)1 << callee / 64 % 64;
        record += FP_ARC_WIDTH;
    } while (record < run->end && caller_of(record) == caller);
    run->next = record;
    look_ahead(run);
    return 0;
}

/* Adds up the arcs of the next caller.  FP_FULL: there are some.  FP_DONE, FP_E_MALFORMED. */
static int add_caller(struct fp_arc_sums *s) {
    s->caller = ENDED;
    for (uint32_t i = 0; i < s->n_runs; i++)
        if (s->runs[i].caller < s->caller) s->caller = s->runs[i].caller;
    if (s->caller == ENDED) return FP_DONE;
    for (uint32_t i = 0; i < s->n_runs; i++)
        if (s->runs[i].caller == s->caller && add_run(s, &s->runs[i])) return FP_E_MALFORMED;
    s->block = 0;
    return FP_FULL;
}

/* As much of a counter as a word holds; the rest stays. */
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

/* A record of a callee's sum.  Is anything left of it? */
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

/* Fills `to` with the sums of the caller at hand.  The words. */
static size_t give_caller(struct fp_arc_sums *s, uint64_t *to, size_t n) {
    uint64_t *at = to, *const end = to + (n - n % FP_ARC_WIDTH);
    for (; s->block < s->n_blocks; s->block++) {
        while (s->blocks[s->block]) {
            const uint32_t word = s->block * 64 + (uint32_t)__builtin_ctzll(s->blocks[s->block]);
            uint64_t called = s->called[word];
            while (called && at < end) {
                const uint32_t callee = word * 64 + (uint32_t)__builtin_ctzll(called);
                if (FP_LIKELY(!give(s, callee, at))) called &= called - 1;
                at += FP_ARC_WIDTH;
            }
            s->called[word] = called;
            if (called) return (size_t)(at - to);
            s->blocks[s->block] &= s->blocks[s->block] - 1;
        }
    }
    return (size_t)(at - to);
}

int fp_arc_sums_pull(struct fp_arc_sums *s, uint64_t *to, size_t n, size_t *got, struct fp_err *err) {
    *got = 0;
    for (;;) {
        *got += give_caller(s, to + *got, n - *got);
        if (s->block < s->n_blocks) return FP_DONE; /* no room for more */
        const int status = add_caller(s);
        if (status == FP_DONE) return FP_DONE;
        if (status < 0) return fp_fail(err, status, 0, "a record of a temporary file");
    }
}
