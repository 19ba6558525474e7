#include <stdlib.h>

#include "bridges/fold_private.h"
#include "core/array.h"

enum { SLOTS_PER_ARC = 8, FIRST_ARCS = 512, FIRST_SHIFT = 64 - 12 };

int fp_fold_arcs_init(struct fp_fold *f) {
    f->index_shift = FIRST_SHIFT;
    f->index = calloc((size_t)1 << (64 - FIRST_SHIFT), sizeof *f->index);
    if (!f->index) return FP_E_NOMEM;
    return fp_array_room(&f->arcs, &f->cap_arcs, FIRST_ARCS, sizeof *f->arcs);
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
    const uint64_t cap = (uint64_t)f->cap_arcs * 2;
    /* Up to 2^16 arcs the sparse index fits the L2 cache; beyond, every lookup
     * is a cache miss anyway and half the memory is the better bargain. */
    const uint64_t slots = cap * (cap <= 1u << 16 ? SLOTS_PER_ARC : 2);
    unsigned shift = 64;
    while ((uint64_t)1 << (64 - shift) < slots) shift--;
    uint32_t *index = calloc((size_t)1 << (64 - shift), sizeof *index);
    if (!index) return FP_E_NOMEM;
    if (fp_array_room(&f->arcs, &f->cap_arcs, cap, sizeof *f->arcs)) {
        free(index);
        return FP_E_NOMEM;
    }
    index_arcs(f->arcs, f->n_arcs, index, shift);
    free(f->index);
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
    memset(f->index, 0, ((size_t)fp_fold_mask(f->index_shift) + 1) * sizeof *f->index);
    index_arcs(f->arcs, n, f->index, f->index_shift);
}
