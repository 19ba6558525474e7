#include "bridges/project/project_private.h"

void fp_project_nodes(struct fp_project *s) {
    const uint32_t need = s->model->stacks.n, had = s->cap_nodes;
    if (need <= had) return;
    const uint64_t cap = (uint64_t)need + need / 8;
    if (cap > UINT32_MAX) fp_escape();
    s->nodes = fp_have(fp_grow(s->nodes, had * sizeof *s->nodes, cap * sizeof *s->nodes));
    memset(s->nodes + had, 0, (cap - had) * sizeof *s->nodes);
    s->cap_nodes = (uint32_t)cap;
}

void fp_project_free_nodes(struct fp_project *s) {
    fp_release(s->nodes, s->cap_nodes * sizeof *s->nodes);
}

void fp_project_clear(struct fp_project *s) {
    if (s->nodes) memset(s->nodes, 0, s->cap_nodes * sizeof *s->nodes);
}

/* Makes a stack, which is not in the tree, a child of its parent. */
static void add_child(struct fp_project *s, uint32_t stack, uint32_t parent) {
    struct fp_project_node *nodes = s->nodes;
    nodes[stack].sibling = nodes[parent].child ? nodes[parent].child : FP_NO_ID;
    nodes[parent].child = stack;
}

int fp_project_link(struct fp_project *s, struct fp_err *err) {
    const struct fp_model *m = s->model;
    for (uint32_t i = 0; i + 1 < s->n_keys; i++) {
        uint32_t stack = fp_project_stack(s, s->by_group[i]);
        do {
            if (s->nodes[stack].sibling) break;
            const uint32_t *row = fp_table_row(&m->stacks, stack), frame = row[FP_STACK_FRAME];
            const uint32_t parent = row[FP_STACK_PARENT];
            if (stack && parent >= stack) return fp_unknown_id(err, "the parent of a stack", parent, stack);
            if (frame >= m->frames.n) return fp_unknown_id(err, "the frame of a stack", frame, m->frames.n);
            FP_TRY(s->chain_of[frame] ? 0 : fp_project_resolve(s, frame, err));
            if (stack) add_child(s, stack, parent);
            stack = parent;
        } while (stack);
    }
    return 0;
}

/* Adds the stacks of the keys by_group[first] to by_group[end - 1] to the tree, which is empty. */
static void grow(struct fp_project *s, uint32_t first, uint32_t end) {
    for (uint32_t i = first; i < end; i++) {
        uint32_t stack = fp_project_stack(s, s->by_group[i]);
        s->nodes[stack].key = s->by_group[i];
        for (uint32_t parent; stack && !s->nodes[stack].sibling; stack = parent) {
            parent = fp_project_parent(s, stack);
            add_child(s, stack, parent);
        }
    }
}

static void fell(struct fp_project *s, uint32_t first, uint32_t end) {
    s->nodes[0] = (struct fp_project_node){0};
    for (uint32_t i = first; i < end; i++) {
        uint32_t stack = fp_project_stack(s, s->by_group[i]);
        for (; s->nodes[stack].sibling; stack = fp_project_parent(s, stack))
            s->nodes[stack] = (struct fp_project_node){0};
    }
}

void fp_project_grow(struct fp_project *s, uint32_t group) {
    if (s->per_thread) grow(s, s->group_start[group], s->group_start[group + 1]);
}

void fp_project_fell(struct fp_project *s, uint32_t group) {
    if (s->per_thread) fell(s, s->group_start[group], s->group_start[group + 1]);
}

void fp_project_depth_first(struct fp_project *s, uint32_t first, uint32_t end) {
    if (!s->per_thread) return;
    grow(s, first, end);
    for (uint32_t at = 0, n = first;;) {
        const struct fp_project_node *node = &s->nodes[at];
        if (node->key) s->by_group[n++] = node->key;
        if (node->child) {
            at = node->child;
            continue;
        }
        while (at && s->nodes[at].sibling == FP_NO_ID) at = fp_project_parent(s, at);
        if (!at) break;
        at = s->nodes[at].sibling;
    }
    fell(s, first, end);
}
