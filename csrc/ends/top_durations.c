#include "bridges/fold/fold_private.h"
#include "ends/top.h"

enum { RANKS = 3 };

struct page {
    uint32_t function; /* of the graph */
    uint32_t page, row;
};

void fp_top_durations_clear(struct fp_top_durations *d) {
    free(d->of);
    *d = (struct fp_top_durations){0};
}

FP_ORDER(by_function_and_page, struct page, function, page)

/* Adds up functions that are the same in the graph.  Sets all but percentiles, in ticks. */
static void add_functions(const struct fp_durations *in, const struct fp_fold_out *o, struct fp_top_durations *d) {
    for (uint32_t i = 0; i < in->n_functions; i++) {
        const struct fp_durations_function *const from = &in->by_function[i];
        if (!from->calls) continue;
        const uint32_t function = fp_fold_in_graph(o, i);
        struct fp_top_duration *const to = FP_AT(d->of, d->cap, function);
        if (from->min < to->min || !to->calls) to->min = from->min;
        if (from->max > to->max) to->max = from->max;
        to->calls += from->calls;
    }
}

/* The duration of rank `rank`, which is in the bucket. */
static uint64_t duration_in(const struct fp_top_duration *d, uint64_t rank, uint32_t bucket) {
    const uint64_t middle = fp_durations_middle(bucket);
    if (!rank || middle < d->min) return d->min;
    return rank + 1 == d->calls || middle > d->max ? d->max : middle;
}

/* Sets the percentiles of a function from its `n` pages, in ticks. */
static void rank_pages(const struct fp_durations *in, const struct page *pages, uint32_t n, struct fp_top_duration *d) {
    __extension__ typedef unsigned __int128 u128;
    static const uint32_t percent[RANKS] = {50, 90, 99};
    uint64_t *const found[RANKS] = {&d->median, &d->p90, &d->p99};
    uint64_t seen = 0;
    int k = 0;
    for (uint32_t i = 0, to; i < n; i = to) {
        for (to = i; to < n && pages[to].page == pages[i].page;) to++;
        for (uint32_t b = 0; b < FP_DURATIONS_PAGE; b++) {
            for (uint32_t p = i; p < to; p++) seen += fp_durations_count(in, pages[p].row, b);
            for (uint64_t rank; k < RANKS && (rank = (uint64_t)((u128)d->calls * percent[k] / 100)) < seen; k++)
                *found[k] = duration_in(d, rank, pages[i].page * FP_DURATIONS_PAGE + b);
        }
    }
}

static int in_units(const struct fp_fold_out *o, uint64_t *ticks) {
    int64_t value;
    if (fp_fold_in_units(o->ticks_per_second, *ticks, &value)) return FP_E_OVERFLOW;
    *ticks = (uint64_t)value;
    return 0;
}

int fp_top_summarize(const struct fp_fold *f, const struct fp_fold_out *o, struct fp_top_durations *d,
                     struct fp_err *err) {
    const struct fp_durations *const in = f->durations;
    const uint32_t n = in->pages.n - 1;
    struct page *const pages = fp_scratch((size_t)n + 1, sizeof *pages);
    add_functions(in, o, d);
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t *row = fp_table_row(&in->pages, i + 1);
        pages[i] = (struct page){fp_fold_in_graph(o, row[0]), row[1], i + 1};
    }
    qsort(pages, n, sizeof *pages, by_function_and_page);
    for (uint32_t i = 0, to; i < n; i = to) {
        for (to = i; to < n && pages[to].function == pages[i].function;) to++;
        rank_pages(in, &pages[i], to - i, &d->of[pages[i].function]);
    }
    fp_scratch_free(pages);
    int failed = 0;
    for (uint32_t i = 0; i < d->cap; i++) {
        struct fp_top_duration *const of = &d->of[i];
        uint64_t *const times[] = {&of->min, &of->median, &of->p90, &of->p99, &of->max};
        for (size_t k = 0; k < sizeof times / sizeof *times; k++) failed |= in_units(o, times[k]);
    }
    return failed ? fp_fail_beyond(err, "the duration of a call", FP_FOLD_TIME, "2^63 - 1") : FP_DONE;
}
