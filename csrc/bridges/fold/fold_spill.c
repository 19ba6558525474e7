#include "bridges/fold/fold_private.h"

/* Arcs and nodes as sorted records, for spilling or for rows; drops the spilled ones. */

/* Prefetch distance in records: many arcs do not fit the caches. */
enum { AHEAD = 12 };

/* Sorts the arcs' numbers by (group, caller, callee). */
static void order(struct fp_fold *f) {
    uint32_t n = 0;
    free(f->by_caller);
    f->by_caller = NULL;
    f->by_caller = fp_have(malloc(((size_t)f->n_arcs + 1) * sizeof *f->by_caller));
    struct fp_keyed *items = fp_scratch((size_t)f->n_arcs + 1, sizeof *items);
    for (uint32_t i = 0; i < f->n_arcs; i++) {
        const struct fp_fold_arc *a = &f->arcs[i];
        if (a->calls >= f->hot) continue;
        items[n++] = (struct fp_keyed){(uint64_t)a->caller << 32 | a->callee, a->group, i};
    }
    fp_sort_keyed(items, n);
    for (uint32_t i = 0; i < n; i++) f->by_caller[i] = items[i].item;
    fp_scratch_free(items);
    f->n_ordered = n;
}

/* The minimum number of calls of an arc to keep: at most half of the arcs reach it. */
static uint64_t hot_calls(const struct fp_fold *f) {
    uint32_t with[256] = {0}, kept = 0;
    for (uint32_t i = 0; i < f->n_arcs; i++) with[f->arcs[i].calls < 255 ? f->arcs[i].calls : 255]++;
    uint64_t hot = 256;
    while (hot > 1 && kept + with[hot - 1] <= f->n_arcs / 2) kept += with[--hot];
    return hot;
}

void fp_fold_rewind(struct fp_fold *f) {
    f->next_arc = f->next_node = 0;
    while (f->n_called) f->nodes[f->called[--f->n_called]] = (struct fp_fold_node){0};
}

int fp_fold_order(struct fp_fold *f, int keep_hot) {
    fp_array_zeroed(&f->nodes, &f->cap_nodes, f->n_functions, sizeof *f->nodes);
    fp_array_room(&f->called, &f->cap_called, f->n_functions, sizeof *f->called);
    fp_fold_rewind(f);
    f->hot = keep_hot ? hot_calls(f) : UINT64_MAX;
    order(f);
    return 0;
}

/* The next arc in order, number `at`; prefetches a later one. */
static inline const struct fp_fold_arc *ordered(const struct fp_fold *f, uint32_t at) {
    if (f->n_ordered - at > AHEAD) __builtin_prefetch(&f->arcs[f->by_caller[at + AHEAD]]);
    return &f->arcs[f->by_caller[at]];
}

size_t fp_fold_pull_arcs(struct fp_fold *f, uint64_t *to, size_t n) {
    uint64_t *at = to;
    for (; f->next_arc < f->n_ordered && n >= FP_ARC_WIDTH; f->next_arc++) {
        const struct fp_fold_arc *a = ordered(f, f->next_arc);
        if (!a->caller) continue; /* functions without a caller are in the nodes */
        at[0] = a->group;
        at[1] = (uint64_t)a->caller << 32 | a->callee;
        at[2] = a->calls;
        at[3] = a->ticks;
        at[4] = a->subcalls;
        at += FP_ARC_WIDTH;
        n -= FP_ARC_WIDTH;
    }
    return (size_t)(at - to);
}

static int descending(const void *a, const void *b) {
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x < y) - (x > y);
}

/* Sums the arcs of the next group by callee. */
static void sum_group(struct fp_fold *f) {
    f->node_group = f->arcs[f->by_caller[f->next_node]].group;
    for (; f->next_node < f->n_ordered; f->next_node++) {
        const struct fp_fold_arc *a = ordered(f, f->next_node);
        if (a->group != f->node_group) break;
        struct fp_fold_node *node = &f->nodes[a->callee];
        if (!node->is_called) f->called[f->n_called++] = a->callee;
        node->is_called = 1;
        node->self += a->self;
        node->calls += a->calls;
    }
    qsort(f->called, f->n_called, sizeof *f->called, descending);
}

size_t fp_fold_pull_nodes(struct fp_fold *f, uint64_t *to, size_t n) {
    uint64_t *at = to;
    while (n >= FP_NODE_WIDTH && (f->n_called || f->next_node < f->n_ordered)) {
        if (!f->n_called) sum_group(f);
        const uint32_t function = f->called[f->n_called - 1];
        struct fp_fold_node *node = &f->nodes[function];
        at[0] = f->node_group;
        at[1] = function;
        /* A sum too large for one record becomes several; the merge adds them and detects the overflow. */
        at[2] = node->self > UINT64_MAX ? UINT64_MAX : (uint64_t)node->self;
        at[3] = node->calls;
        node->self -= at[2];
        node->calls = 0;
        if (!node->self) {
            node->is_called = 0;
            f->n_called--;
        }
        at += FP_NODE_WIDTH;
        n -= FP_NODE_WIDTH;
    }
    return (size_t)(at - to);
}

int fp_fold_drop_spilled(struct fp_fold *f) {
    /* Arcs that frames refer to are kept, renumbered; hot ones with their sums. */
    const int tree = f->into == FP_FOLD_TREE;
    uint32_t *fresh = fp_scratch((size_t)f->n_arcs + 1, sizeof *fresh);
    memset(fresh, 0xff, (size_t)f->n_arcs * sizeof *fresh);
    for (uint32_t i = 0; i < f->cap_threads; i++)
        for (uint32_t k = 1; f->threads[i].frames && k < f->threads[i].n; k++) fresh[f->threads[i].frames[k].arc] = 0;
    uint32_t n = 0;
    for (uint32_t i = 0; i < f->n_arcs; i++) {
        const int hot = !tree && f->arcs[i].calls >= f->hot;
        if (fresh[i] == UINT32_MAX && !hot) continue;
        fresh[i] = n;
        f->arcs[n] = f->arcs[i];
        if (tree && f->arcs[n].caller) f->arcs[n].caller = fresh[f->arcs[n].caller - 1] + 1; /* also on the stack */
        if (!hot) f->arcs[n].calls = f->arcs[n].ticks = f->arcs[n].subcalls = f->arcs[n].self = 0;
        n++;
    }
    for (uint32_t i = 0; i < f->cap_threads; i++)
        for (uint32_t k = 1; f->threads[i].frames && k < f->threads[i].n; k++)
            f->threads[i].frames[k].arc = fresh[f->threads[i].frames[k].arc];
    fp_scratch_free(fresh);
    fp_fold_keep_arcs(f, n);
    for (uint32_t i = 0; i < f->cap_functions; i++) f->by_function[i].last_from = FP_FOLD_NO_CALLER;
    FP_FREE(f->by_caller, f->child, f->sibling);
    f->by_caller = f->child = f->sibling = NULL;
    return 0;
}
