#include "bridges/fold/fold_private.h"

/* The index is at most half full, so non-adversarial arcs lie within 60 slots. */
enum { SLOTS_PER_ARC = 8, FIRST_ARCS = 512, FIRST_SHIFT = 64 - 12, FAR_ARC = FP_FAR / 4 };

static void index_anew(struct fp_fold *f); /* with a random secret */

static size_t index_bytes(unsigned shift) {
    return ((size_t)fp_fold_mask(shift) + 1) * sizeof(uint32_t);
}

static void grow_arcs(struct fp_fold *f, uint32_t cap) {
    void *arcs = fp_have(fp_grow(f->arcs, f->cap_arcs * sizeof *f->arcs, cap * sizeof *f->arcs));
    f->arcs = arcs;
    f->cap_arcs = cap;
}

void fp_fold_arcs_init(struct fp_fold *f) {
    f->index_shift = FIRST_SHIFT;
    f->index = fp_have(fp_zeroed(index_bytes(FIRST_SHIFT)));
    grow_arcs(f, FIRST_ARCS);
}

void fp_fold_drop(struct fp_fold *f) {
    fp_release(f->arcs, f->cap_arcs * sizeof *f->arcs);
    if (f->index) fp_release(f->index, index_bytes(f->index_shift));
    f->arcs = NULL;
    f->index = NULL;
    f->n_arcs = f->cap_arcs = 0;
}

static uint32_t secret_slot(const struct fp_fold *f, uint32_t caller, uint32_t callee, uint32_t group) {
    const uint32_t key[] = {caller, callee, group};
    return (uint32_t)(fp_hash_key_hash(&f->secret, key, sizeof key) >> f->index_shift);
}

/* Whether a free slot is too far from the slot where the search for a new arc began. */
static inline int is_far(const struct fp_fold *f, uint32_t at, uint32_t first, uint32_t mask) {
    return FP_UNLIKELY(((at - first) & mask) > FAR_ARC) && !f->secret.key[0];
}

static inline int is_near_free(const struct fp_fold *f, uint32_t caller, uint32_t callee, uint32_t mask) {
    return f->into == FP_FOLD_TREE && !f->index[fp_fold_near(caller, callee, mask)];
}

/* Fills the index, which is empty. */
static void index_arcs(struct fp_fold *f) {
    const unsigned shift = f->index_shift;
    const uint32_t mask = fp_fold_mask(shift), n = f->n_arcs;
    const int has_secret = f->secret.key[0] != 0;
    uint32_t *const index = f->index;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t caller = f->arcs[i].caller, callee = f->arcs[i].callee, group = f->arcs[i].group;
        if (!has_secret && is_near_free(f, caller, callee, mask)) {
            index[fp_fold_near(caller, callee, mask)] = i + 1;
            continue;
        }
        const uint32_t first = FP_UNLIKELY(has_secret) ? secret_slot(f, caller, callee, group)
                                                       : fp_fold_slot(caller, callee, group, shift);
        uint32_t at = first;
        while (index[at]) at = (at + 1) & mask;
        if (is_far(f, at, first, mask)) {
            index_anew(f);
            return;
        }
        index[at] = i + 1;
    }
}

static void index_anew(struct fp_fold *f) {
    fp_hash_key_take(&f->secret);
    memset(f->index, 0, index_bytes(f->index_shift));
    index_arcs(f);
}

static void grow(struct fp_fold *f) {
    if (f->cap_arcs > (1u << 28)) fp_escape();
    const uint32_t cap = f->cap_arcs * 2;
    /* Up to 2^16 arcs the sparse index fits the L2 cache; beyond, every lookup
     * is a cache miss anyway, so save half the memory. */
    const uint64_t slots = (uint64_t)cap * (cap <= 1u << 16 ? SLOTS_PER_ARC : 2);
    unsigned shift = 64;
    while ((uint64_t)1 << (64 - shift) < slots) shift--;
    grow_arcs(f, cap);
    uint32_t *index = fp_have(fp_zeroed(index_bytes(shift)));
    fp_release(f->index, index_bytes(f->index_shift));
    f->index = index;
    f->index_shift = shift;
    index_arcs(f);
}

static inline uint32_t add_arc(struct fp_fold *f, uint32_t at, uint32_t caller, uint32_t callee, uint32_t group) {
    const uint32_t i = f->n_arcs++;
    f->arcs[i] = (struct fp_fold_arc){.caller = caller, .callee = callee, .group = group};
    f->index[at] = i + 1;
    return i;
}

static uint32_t arc_by_secret(struct fp_fold *f, uint32_t caller, uint32_t callee, uint32_t group) {
    const uint32_t mask = fp_fold_mask(f->index_shift);
    uint32_t at = secret_slot(f, caller, callee, group);
    for (uint32_t arc; (arc = f->index[at]); at = (at + 1) & mask) {
        const struct fp_fold_arc *a = &f->arcs[arc - 1];
        if (a->callee == callee && a->caller == caller && a->group == group) return arc - 1;
    }
    return add_arc(f, at, caller, callee, group);
}

uint32_t fp_fold_arc(struct fp_fold *f, uint32_t caller, uint32_t callee, uint32_t group) {
    if (f->n_arcs == f->cap_arcs) grow(f);
    if (FP_UNLIKELY(f->secret.key[0])) return arc_by_secret(f, caller, callee, group);
    const uint32_t mask = fp_fold_mask(f->index_shift), first = fp_fold_slot(caller, callee, group, f->index_shift);
    uint32_t at = first;
    if (is_near_free(f, caller, callee, mask))
        return add_arc(f, fp_fold_near(caller, callee, mask), caller, callee, group);
    while (f->index[at]) at = (at + 1) & mask;
    if (is_far(f, at, first, mask)) {
        index_anew(f);
        return arc_by_secret(f, caller, callee, group);
    }
    return add_arc(f, at, caller, callee, group);
}

void fp_fold_keep_arcs(struct fp_fold *f, uint32_t n) {
    f->n_arcs = n;
    memset(f->index, 0, index_bytes(f->index_shift));
    index_arcs(f);
}
