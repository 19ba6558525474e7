#include <stdlib.h>

#include "bridges/project/project_private.h"

/* Adds a stack and its missing parents. */
static void add_stack(struct fp_project *s, struct fp_project_tree *t, uint32_t stack, uint32_t key) {
    uint32_t below = 0;
    for (;;) {
        const uint32_t *row = fp_table_row(&s->model->stacks, stack), found = s->local_of[stack];
        if (!found) {
            const uint32_t chain = stack ? s->chain_of[row[FP_STACK_FRAME]] : 0;
            t->nodes[t->n] = (struct fp_project_node){.stack = stack, .chain = chain};
            s->local_of[stack] = ++t->n;
        }
        const uint32_t at = s->local_of[stack] - 1;
        if (below) {
            t->nodes[below].parent = at;
            t->nodes[below].sibling = t->nodes[at].child;
            t->nodes[at].child = below;
        } else if (key) {
            t->nodes[at].key = key;
            t->nodes[at].chain = s->chain_of[row[FP_STACK_FRAME]]; /* samples without a stack have a position */
        }
        key = 0;
        if (found || !stack) return;
        below = at;
        stack = row[FP_STACK_PARENT];
    }
}

int fp_project_grow(struct fp_project *s, struct fp_project_tree *t, uint32_t group) {
    t->nodes = malloc(((size_t)s->n_nodes + 1) * sizeof *t->nodes);
    if (!t->nodes) return FP_E_NOMEM;
    add_stack(s, t, 0, 0);
    for (uint32_t i = s->group_start[group]; i < s->group_start[group + 1]; i++)
        add_stack(s, t, fp_table_row(&s->keys, s->by_group[i])[0], s->by_group[i]);
    return 0;
}

void fp_project_fell(struct fp_project *s, struct fp_project_tree *t) {
    for (uint32_t i = 0; i < t->n; i++) s->local_of[t->nodes[i].stack] = 0;
    free(t->nodes);
    *t = (struct fp_project_tree){0};
}
