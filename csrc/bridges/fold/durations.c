#include "bridges/fold/durations.h"

enum { FUNCTION = 0, PAGE = 1, WIDTH = 2 }; /* columns of `pages` */
#if defined(FP_DEBUG)
enum { SOME_CALLS = 2, MANY_CALLS = 4, INDEXES = 2 }; /* so that tests and fuzzers reach them */
#else
/* A function gets an index of 2 KB at SOME_CALLS while no more than INDEXES have one, 8 MB; then at MANY_CALLS, so that
 * the index takes no more than 4 bytes for each of them. */
enum { SOME_CALLS = 16, MANY_CALLS = 512, INDEXES = 4096 };
#endif

_Static_assert(FP_DURATIONS_PAGES *FP_DURATIONS_PAGE >= (64 - FP_DURATIONS_BITS + 1) << FP_DURATIONS_BITS,
               "a page for each bucket");

void fp_durations_begin(struct fp_durations **to) {
    *to = fp_have(calloc(1, sizeof **to));
    fp_table_init(&(*to)->pages, WIDTH);
}

void fp_durations_free(struct fp_durations *d) {
    if (!d) return;
    fp_table_clear(&d->pages);
    for (uint32_t i = 0; i < d->n_functions; i++) free(d->by_function[i].rows);
    FP_FREE(d->counts, d->carries, d->by_function, d);
}

void fp_durations_room(struct fp_durations *d, uint32_t n) {
    fp_array_zeroed(&d->by_function, &d->n_functions, n, sizeof *d->by_function);
}

/* The row of a page, added if it is new. */
static uint32_t row_of(struct fp_durations *d, uint32_t function, uint32_t page) {
    const uint32_t row = fp_table_intern(&d->pages, (uint32_t[]){[FUNCTION] = function, [PAGE] = page});
    fp_array_zeroed(&d->counts, &d->cap_counts, (uint64_t)row + 1, sizeof *d->counts);
    return row;
}

/* The row of a page, from the index if the function has one. */
static uint32_t indexed_row(struct fp_durations *d, uint32_t function, uint32_t page) {
    struct fp_durations_function *const f = &d->by_function[function];
    if (f->rows && f->rows[page]) return f->rows[page];
    const uint32_t row = row_of(d, function, page);
    if (!f->rows && f->calls >= (d->n_indexes < INDEXES ? SOME_CALLS : MANY_CALLS)) {
        f->rows = calloc(FP_DURATIONS_PAGES, sizeof *f->rows); /* NULL: as before */
        d->n_indexes++;
    }
    if (f->rows) f->rows[page] = row;
    return row;
}

static uint32_t bucket_of(uint64_t duration) {
    if (duration >> FP_DURATIONS_BITS <= 1) return (uint32_t)duration;
    const uint32_t shift = 63 - FP_DURATIONS_BITS - (uint32_t)__builtin_clzll(duration);
    return (shift << FP_DURATIONS_BITS) + (uint32_t)(duration >> shift);
}

/* Counts `n` calls in a place of a page. */
static inline void count(struct fp_durations *d, uint32_t row, uint32_t place, uint64_t n) {
    const uint64_t sum = d->counts[row][place] + n;
    d->counts[row][place] = (fp_durations_low)sum;
    for (uint64_t carries = sum >> FP_DURATIONS_LOW; FP_UNLIKELY(carries); carries--)
        FP_PUSH(d->carries, d->n_carries, d->cap_carries) = (uint64_t)row * FP_DURATIONS_PAGE + place;
}

void fp_durations_add(struct fp_durations *d, uint32_t function, uint64_t duration) {
    __builtin_prefetch(&d->by_function[function]);
    d->waiting[d->n_waiting++] = (struct fp_durations_call){.duration = duration, .function = function};
    if (d->n_waiting == FP_DURATIONS_WAITING) fp_durations_end(d);
}

void fp_durations_end(struct fp_durations *d) {
    struct fp_durations_call *const calls = d->waiting;
    const uint32_t n = d->n_waiting;
    for (uint32_t i = 0; i < n; i++) {
        const uint64_t duration = calls[i].duration;
        struct fp_durations_function *const f = &d->by_function[calls[i].function];
        if (duration < f->min || !f->calls) f->min = duration;
        if (duration > f->max) f->max = duration;
        f->calls++;
        if (f->rows) __builtin_prefetch(&f->rows[bucket_of(duration) / FP_DURATIONS_PAGE]);
    }
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t bucket = bucket_of(calls[i].duration);
        calls[i].row = indexed_row(d, calls[i].function, bucket / FP_DURATIONS_PAGE);
        __builtin_prefetch(&d->counts[calls[i].row][bucket % FP_DURATIONS_PAGE], 1);
    }
    for (uint32_t i = 0; i < n; i++) count(d, calls[i].row, bucket_of(calls[i].duration) % FP_DURATIONS_PAGE, 1);
    d->n_waiting = 0;
}

void fp_durations_join(struct fp_durations *d, const struct fp_durations *other) {
    fp_durations_room(d, other->n_functions);
    for (uint32_t i = 0; i < other->n_functions; i++) {
        const struct fp_durations_function *from = &other->by_function[i];
        struct fp_durations_function *to = &d->by_function[i];
        if (!from->calls) continue;
        if (from->min < to->min || !to->calls) to->min = from->min;
        if (from->max > to->max) to->max = from->max;
        to->calls += from->calls;
    }
    for (uint32_t i = 1; i < other->pages.n; i++) {
        const uint32_t *page = fp_table_row(&other->pages, i);
        const uint32_t row = row_of(d, page[FUNCTION], page[PAGE]);
        for (uint32_t k = 0; k < FP_DURATIONS_PAGE; k++) count(d, row, k, fp_durations_count(other, i, k));
    }
}
