/* core/own_stacks.h - the table of stacks of a file, by the file's own numbers.  C only.
 *
 * A stack enters the model with its callers when a row needs it, and again after the model has dropped its stacks
 * (fp_model_empty_stacks), so that the model need not hold the stacks of all rows: 12 bytes each here.
 */
#pragma once

#include "core/model.h"

struct fp_own_stack {
    uint32_t caller; /* number; 0: none */
    uint32_t frame;  /* of the model; FP_NO_ID: none, so that it is its caller */
    uint32_t node;   /* 1 + the stack in the model; 0: not there */
};

/* All 0 is an empty table. */
struct fp_own_stacks {
    struct fp_own_stack *at; /* [0] is the empty stack */
    uint32_t n, cap;         /* stacks, 0 included; 0: none yet */
    uint32_t *made, n_made, cap_made;
    uint32_t n_renewed; /* of the model: when this changes, none is there */
};

void fp_own_stacks_free(struct fp_own_stacks *s);
/* Removes all. */
void fp_own_stacks_empty(struct fp_own_stacks *s);
/* Adds a stack, whose caller is there.  Its number. */
uint32_t fp_own_stacks_add(struct fp_own_stacks *s, uint32_t caller, uint32_t frame);

/* Call it before the stacks of some rows of a batch. */
void fp_own_stacks_begin(struct fp_own_stacks *s, const struct fp_model *m);
uint32_t fp_own_stacks_make(struct fp_own_stacks *s, struct fp_model *m, uint32_t number);

/* The stack of the model. */
static inline uint32_t fp_own_stacks_node(struct fp_own_stacks *s, struct fp_model *m, uint32_t number) {
    return !number ? 0 : s->at[number].node ? s->at[number].node - 1 : fp_own_stacks_make(s, m, number);
}
