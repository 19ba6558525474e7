#include "core/own_stacks.h"

#include "core/array.h"

void fp_own_stacks_free(struct fp_own_stacks *s) {
    FP_FREE(s->at, s->made);
}

void fp_own_stacks_empty(struct fp_own_stacks *s) {
    s->n = s->n_made = 0;
}

uint32_t fp_own_stacks_add(struct fp_own_stacks *s, uint32_t caller, uint32_t frame) {
    fp_array_room(&s->at, &s->cap, (uint64_t)s->n + 2, sizeof *s->at);
    if (!s->n) s->at[s->n++] = (struct fp_own_stack){0, FP_NO_ID, 1};
    s->at[s->n] = (struct fp_own_stack){caller, frame, 0};
    return s->n++;
}

void fp_own_stacks_begin(struct fp_own_stacks *s, const struct fp_model *m) {
    if (s->n_renewed == m->n_renewed) return;
    while (s->n_made) s->at[s->made[--s->n_made]].node = 0;
    s->n_renewed = m->n_renewed;
}

uint32_t fp_own_stacks_make(struct fp_own_stacks *s, struct fp_model *m, uint32_t number) {
    const uint32_t first = s->n_made;
    uint32_t own = number;
    for (; !s->at[own].node; own = s->at[own].caller) FP_PUSH(s->made, s->n_made, s->cap_made) = own;
    uint32_t node = s->at[own].node - 1;
    for (uint32_t i = s->n_made; i-- > first;) {
        struct fp_own_stack *one = &s->at[s->made[i]];
        if (one->frame != FP_NO_ID) node = fp_model_stack(m, node, one->frame);
        one->node = node + 1;
    }
    return node;
}
