#include "core/branches.h"

#include "core/array.h"

enum { WORDS = sizeof(struct fp_branch_key) / 4 };

void fp_branches_begin(struct fp_branches *b, struct fp_model *model) {
    b->model = model;
    fp_table_init(&b->keys, WORDS);
}

void fp_branches_clear(struct fp_branches *b) {
    fp_table_clear(&b->keys);
    free(b->list);
    b->list = NULL;
    b->cap = 0;
}

struct fp_branch *fp_branches_find(struct fp_branches *b, const struct fp_branch_key *key) {
    const uint64_t mixed = (key->from * 3 + key->to + key->is_run) * UINT64_C(0x9e3779b97f4a7c15);
    uint32_t *recent = &b->recent[mixed >> (64 - FP_BRANCHES_RECENT_BITS)];
    if (FP_LIKELY(*recent && !memcmp(fp_table_row(&b->keys, *recent), key, sizeof *key))) return &b->list[*recent];
    uint32_t words[WORDS];
    memcpy(words, key, sizeof words);
    const uint32_t before = b->keys.n, row = fp_table_intern(&b->keys, words);
    fp_array_room(&b->list, &b->cap, b->keys.n, sizeof *b->list);
    if (row == FP_NO_ID || b->cap < b->keys.n) return NULL;
    if (b->keys.n != before) b->list[row] = (struct fp_branch){.from = FP_NO_ID, .to = FP_NO_ID};
    *recent = row;
    return &b->list[row];
}

int fp_branches_rows(struct fp_branches *b, uint64_t time, struct fp_batch *out) {
    if (!b->next) b->next = 1;
    for (; b->next < b->keys.n; b->next++) {
        if (out->n == out->cap) return FP_FULL;
        struct fp_branch_key key;
        const struct fp_branch *branch = &b->list[b->next];
        if (!branch->count) continue; /* between two objects */
        memcpy(&key, fp_table_row(&b->keys, b->next), sizeof key);
        const uint32_t stack = fp_model_stack(b->model, fp_model_stack(b->model, 0, branch->from), branch->to);
        const uint32_t i = fp_batch_sample(out, stack, key.thread, key.label, time);
        for (uint32_t k = 0; k < out->n_values; k++) out->values[(size_t)k * out->cap + i] = 0;
        const uint32_t column = key.is_run ? FP_BRANCHES_STRAIGHT : FP_BRANCHES_TAKEN;
        out->values[(size_t)column * out->cap + i] = (int64_t)branch->count;
        out->values[(size_t)FP_BRANCHES_MISPREDICTED * out->cap + i] = (int64_t)branch->mispredicted;
    }
    b->next = 0;
    fp_table_empty(&b->keys);
    memset(b->recent, 0, sizeof b->recent);
    return 0;
}
