#include "ends/page_callers.h"

/* A heap; the arc with the least |cost| is first. */
struct fp_page_callers_heap {
    struct fp_page_callers_arc *arcs;
    uint64_t least; /* that |cost| once the heap is full: most arcs cost less, and the heap's arcs are in no cache */
    uint32_t n, cap;
};

void fp_page_callers_clear(struct fp_page_callers *l) {
    for (uint32_t i = 0; i < l->cap_heaps; i++) free(l->heaps[i].arcs);
    free(l->heaps);
    *l = (struct fp_page_callers){0};
}

static uint64_t size_of(const struct fp_page_callers_arc *arc, int k) {
    return arc->costs[k] < 0 ? -(uint64_t)arc->costs[k] : (uint64_t)arc->costs[k];
}

/* Compares |cost|; of equal costs the arc with the larger number is less. */
static inline int is_less(int k, struct fp_page_callers_arc a, struct fp_page_callers_arc b) {
    const uint64_t x = size_of(&a, k), y = size_of(&b, k);
    return x != y ? x < y : a.other > b.other;
}

FP_HEAP(int, struct fp_page_callers_arc, is_less)

static void add(struct fp_page_callers_heap *h, const struct fp_page_callers_arc *arc, int k) {
    if (FP_LIKELY(size_of(arc, k) < h->least)) return;
    if (h->n == FP_PAGE_CALLERS) {
        if (!is_less(k, h->arcs[0], *arc)) return;
        h->arcs[0] = *arc;
        heap_sink(k, h->arcs, h->n, 0);
        h->least = size_of(&h->arcs[0], k);
        return;
    }
    fp_array_room(&h->arcs, &h->cap, (uint64_t)h->n + 1, sizeof *h->arcs);
    heap_push(k, h->arcs, h->n++, *arc);
    if (h->n == FP_PAGE_CALLERS) h->least = size_of(&h->arcs[0], k);
}

static struct fp_page_callers_heap *heaps_of(const struct fp_page_callers *l, uint32_t function, int into) {
    return l->heaps + ((size_t)function * 2 + (size_t)into) * FP_PAGE_CALLERS_VALUES;
}

enum { AHEAD = 12 }; /* rows; callees are in no order */

static void prefetch(const struct fp_page_callers *l, const struct fp_batch *in, uint32_t i) {
    if (in->kind[i] == FP_CALL && in->callee[i] < l->cap_heaps / (2 * FP_PAGE_CALLERS_VALUES))
        __builtin_prefetch(heaps_of(l, in->callee[i], 1));
}

int fp_page_callers_put(struct fp_page_callers *l, const struct fp_batch *in, struct fp_err *err) {
    for (uint32_t i = 0; i < in->n; i++) {
        if (in->n - i > AHEAD) prefetch(l, in, i + AHEAD);
        if (in->kind[i] != FP_CALL) continue;
        const uint32_t caller = in->function[i], callee = in->callee[i], last = caller > callee ? caller : callee;
        if (in->count[i] > INT64_MAX) return fp_fail_beyond(err, "the calls of an arc", FP_NO_COLUMN, "2^63 - 1");
        fp_array_zeroed(&l->heaps, &l->cap_heaps, ((uint64_t)last + 1) * 2 * FP_PAGE_CALLERS_VALUES, sizeof *l->heaps);
        struct fp_page_callers_arc arc = {.calls = (int64_t)in->count[i]};
        for (uint32_t k = 0; k < FP_PAGE_CALLERS_VALUES && k < in->n_values; k++)
            arc.costs[k] = in->values[(size_t)k * in->cap + i];
        for (int into = 0; into < 2; into++) {
            arc.other = into ? caller : callee;
            for (int k = 0; k < FP_PAGE_CALLERS_VALUES; k++)
                add(&heaps_of(l, into ? callee : caller, into)[k], &arc, k);
        }
    }
    return FP_DONE;
}

/* A few items. */
static void sort(struct fp_page_callers_arc *arcs, uint32_t n, int k) {
    for (uint32_t i = 1; i < n; i++) {
        const struct fp_page_callers_arc arc = arcs[i];
        uint32_t at = i;
        for (; at && is_less(k, arcs[at - 1], arc); at--) arcs[at] = arcs[at - 1];
        arcs[at] = arc;
    }
}

uint32_t fp_page_callers_get(const struct fp_page_callers *l, uint32_t function, int into, uint32_t by,
                             struct fp_page_callers_arc *arcs) {
    uint32_t n = 0;
    if (by >= FP_PAGE_CALLERS_VALUES || ((uint64_t)function + 1) * 2 * FP_PAGE_CALLERS_VALUES > l->cap_heaps) return 0;
    for (int k = 0; k < FP_PAGE_CALLERS_VALUES; k++) {
        const struct fp_page_callers_heap *h = &heaps_of(l, function, into)[k];
        const uint32_t before = n;
        for (uint32_t i = 0; i < h->n; i++) {
            uint32_t at = 0;
            while (at < before && arcs[at].other != h->arcs[i].other) at++;
            if (at == before) arcs[n++] = h->arcs[i];
        }
    }
    sort(arcs, n, (int)by);
    return n;
}
