/* bridges/project/project_private.h - shared by the projection's files.  Private.
 *
 *   project.c            sums by (stack, group), and the order of names
 *   project_positions.c  frames to positions
 *   project_tree.c       the tree of the stacks of one group
 *   project_graph.c      the graph of one group
 */
#pragma once

#include "bridges/project/project.h"

/* The words of a position: a row of a table of graph positions.  The address takes two. */
enum {
    FP_POSITION_FUNCTION = 0,
    FP_POSITION_FILE = 1,
    FP_POSITION_LINE = 2,
    FP_POSITION_ADDRESS = 3,
    FP_POSITION_WIDTH = 5
};

/* Bytes of one row of sums.  Never 0, so that stacks without values have a row, too. */
static inline size_t fp_project_row(const struct fp_project *s) {
    return (s->n_values ? s->n_values : 1) * sizeof *s->sums;
}

/* Appends a word to s->chain. */
static inline void fp_project_push(struct fp_project *s, uint32_t word) {
    FP_PUSH(s->chain, s->n_chain, s->cap_chain) = word;
}

static inline uint32_t fp_project_stack(const struct fp_project *s, uint32_t key) {
    return s->per_thread ? fp_table_row(&s->keys, key)[0] : key - 1;
}

static inline uint32_t fp_project_parent(const struct fp_project *s, uint32_t stack) {
    return fp_table_row(&s->model->stacks, stack)[FP_STACK_PARENT];
}

/* Makes room for a node of each of the model's stacks. */
void fp_project_nodes(struct fp_project *s);
void fp_project_free_nodes(struct fp_project *s);
/* Removes all stacks from the tree. */
void fp_project_clear(struct fp_project *s);

/* Adds all stacks with samples to the tree, and finds their frames' positions.  0 or FP_E_MALFORMED. */
int fp_project_link(struct fp_project *s, struct fp_err *err);

/* After fp_project_end: the tree of a group's stacks.  Node 0 is the root.  Without threads, it is always there. */
void fp_project_grow(struct fp_project *s, uint32_t group);
/* Removes it.  Only one exists at a time. */
void fp_project_fell(struct fp_project *s, uint32_t group);

/* Puts the keys by_group[first] to by_group[end - 1], of one group, in the order of a walk over the tree of their
 * stacks, each before those that it calls.  With threads, while no tree exists. */
void fp_project_depth_first(struct fp_project *s, uint32_t first, uint32_t end);

/* The positions of a node's frame, outermost first.  The root has none, unless there are samples without a stack. */
static inline const uint32_t *fp_project_chain(const struct fp_project *s, uint32_t at, uint32_t *n) {
    const uint32_t frame = fp_table_row(&s->model->stacks, at)[FP_STACK_FRAME];
    const uint32_t *chain = s->chain + (at || s->nodes[0].key ? s->chain_of[frame] : 0); /* its first word is 0 */
    *n = chain[0];
    return chain + 1;
}

/* Sets s->chain_of[frame]: the positions of a frame.  0 or FP_E_MALFORMED. */
int fp_project_resolve(struct fp_project *s, uint32_t frame, struct fp_err *err);
