#include "bridges/fold_private.h"
#include "core/memory.h"

enum { SLOTS_PER_ARC = 8, FIRST_ARCS = 512, FIRST_SHIFT = 64 - 12 };

static size_t index_bytes(unsigned shift) {
    return ((size_t)fp_fold_mask(shift) + 1) * sizeof(uint32_t);
}

static int grow_arcs(struct fp_fold *f, uint32_t cap) {
    void *arcs = fp_grow(f->arcs, f->cap_arcs * sizeof *f->arcs, cap * sizeof *f->arcs);
    if (!arcs) return FP_E_NOMEM;
    f->arcs = arcs;
    f->cap_arcs = cap;
    return 0;
}

int fp_fold_arcs_init(struct fp_fold *f) {
    f->index_shift = FIRST_SHIFT;
    f->index = fp_zeroed(index_bytes(FIRST_SHIFT));
    return f->index ? grow_arcs(f, FIRST_ARCS) : FP_E_NOMEM;
}

void fp_fold_drop(struct fp_fold *f) {
    fp_release(f->arcs, f->cap_arcs * sizeof *f->arcs);
    if (f->index) fp_release(f->index, index_bytes(f->index_shift));
    f->arcs = NULL;
    f->index = NULL;
    f->n_arcs = f->cap_arcs = 0;
}

static void index_arcs(const struct fp_arc *arcs, uint32_t n, uint32_t *index, unsigned shift) {
    const uint32_t mask = fp_fold_mask(shift);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = fp_fold_slot(arcs[i].caller, arcs[i].callee, arcs[i].group, shift);
        while (index[at]) at = (at + 1) & mask;
        index[at] = i + 1;
    }
}

static int grow(struct fp_fold *f) {
    if (f->cap_arcs > (1u << 28)) return FP_E_NOMEM;
    /* The index first: arcs without their share of it would let it fill up. */
    const uint32_t cap = f->cap_arcs * 2;
    /* Up to 2^16 arcs the sparse index fits the L2 cache; beyond, every lookup
     * is a cache miss anyway and half the memory is the better bargain. */
    const uint64_t slots = (uint64_t)cap * (cap <= 1u << 16 ? SLOTS_PER_ARC : 2);
    unsigned shift = 64;
    while ((uint64_t)1 << (64 - shift) < slots) shift--;
    uint32_t *index = fp_zeroed(index_bytes(shift));
    if (!index) return FP_E_NOMEM;
    if (grow_arcs(f, cap)) {
        fp_release(index, index_bytes(shift));
        return FP_E_NOMEM;
    }
    index_arcs(f->arcs, f->n_arcs, index, shift);
    fp_release(f->index, index_bytes(f->index_shift));
    f->index = index;
    f->index_shift = shift;
    return 0;
}

uint32_t fp_fold_add_arc(struct fp_fold *f, uint32_t caller, uint32_t callee, uint32_t group) {
    if (f->n_arcs == f->cap_arcs && grow(f)) return UINT32_MAX;
    const uint32_t mask = fp_fold_mask(f->index_shift);
    uint32_t at = fp_fold_slot(caller, callee, group, f->index_shift);
    while (f->index[at]) at = (at + 1) & mask;
    uint32_t i = f->n_arcs++;
    f->arcs[i] = (struct fp_arc){.caller = caller, .callee = callee, .group = group};
    f->index[at] = i + 1;
    return i;
}

void fp_fold_keep_arcs(struct fp_fold *f, uint32_t n) {
    f->n_arcs = n;
    memset(f->index, 0, index_bytes(f->index_shift));
    index_arcs(f->arcs, n, f->index, f->index_shift);
}
