#include <stdlib.h>

#include "bridges/project/project_private.h"

/* Adds a stack and its missing parents. */
static int add_stack(struct fp_project *s, struct fp_project_tree *t, uint32_t stack, uint32_t key) {
    uint32_t below = 0;
    for (;; stack = fp_table_row(&s->model->stacks, stack)[FP_STACK_PARENT]) {
        const int found = s->local_of[stack] != 0;
        if (!found) {
            if (fp_array_room(&t->nodes, &t->cap, (uint64_t)t->n + 1, sizeof *t->nodes)) return FP_E_NOMEM;
            t->nodes[t->n] = (struct fp_project_node){.stack = stack};
            s->local_of[stack] = ++t->n;
        }
        const uint32_t at = s->local_of[stack] - 1;
        if (below) {
            t->nodes[below].parent = at;
            t->nodes[below].sibling = t->nodes[at].child;
            t->nodes[at].child = below;
        } else if (key) {
            t->nodes[at].key = key;
        }
        key = 0;
        if (found || !stack) return 0;
        below = at;
    }
}

int fp_project_grow(struct fp_project *s, struct fp_project_tree *t, uint32_t group) {
    int status = add_stack(s, t, 0, 0);
    for (uint32_t i = s->group_start[group]; !status && i < s->group_start[group + 1]; i++)
        status = add_stack(s, t, fp_table_row(&s->keys, s->by_group[i])[0], s->by_group[i]);
    return status;
}

void fp_project_fell(struct fp_project *s, struct fp_project_tree *t) {
    for (uint32_t i = 0; i < t->n; i++) s->local_of[t->nodes[i].stack] = 0;
    free(t->nodes);
    *t = (struct fp_project_tree){0};
}

const uint32_t *fp_project_chain(const struct fp_project *s, const struct fp_project_tree *t, uint32_t at,
                                 uint32_t *n) {
    const uint32_t stack = t->nodes[at].stack;
    if (!stack && !t->nodes[at].key) {
        *n = 0;
        return NULL;
    }
    const uint32_t *chain = s->chain + s->chain_of[fp_table_row(&s->model->stacks, stack)[FP_STACK_FRAME]];
    *n = chain[0];
    return chain + 1;
}
