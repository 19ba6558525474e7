/* bridges/project/project_private.h - shared by the projection's files.  Private.
 *
 *   project.c            sums by (stack, group), and the order of names
 *   project_positions.c  frames to positions
 *   project_tree.c       the tree of the stacks of one group
 *   project_graph.c      the graph of one group
 */
#ifndef FP_PROJECT_PRIVATE_H
#define FP_PROJECT_PRIVATE_H

#include "bridges/project/project.h"
#include "core/array.h"

/* The words of a position: a row of a table of graph positions.  The address takes two. */
enum {
    FP_POSITION_FUNCTION = 0,
    FP_POSITION_FILE = 1,
    FP_POSITION_LINE = 2,
    FP_POSITION_ADDRESS = 3,
    FP_POSITION_WIDTH = 5
};

static inline int fp_project_no_memory(struct fp_err *err) {
    return fp_fail(err, FP_E_NOMEM, 0, "the call graph of the stacks");
}

/* Bytes of one row of sums.  Never 0, so that stacks without values have a row, too. */
static inline size_t fp_project_row(const struct fp_project *s) {
    return (s->n_values ? s->n_values : 1) * sizeof *s->sums;
}

static inline uint32_t fp_project_file_of(const struct fp_model *m, uint32_t function) {
    return fp_table_row(&m->functions, function)[FP_FUNCTION_FILE];
}

/* Appends a word to s->chain.  0 or FP_E_NOMEM. */
static inline int fp_project_push(struct fp_project *s, uint32_t word) {
    if (fp_array_room(&s->chain, &s->cap_chain, (uint64_t)s->n_chain + 1, sizeof *s->chain)) return FP_E_NOMEM;
    s->chain[s->n_chain++] = word;
    return 0;
}

/* A stack of the group, or a parent of such a stack.  Node 0 is the root. */
struct fp_project_node {
    uint32_t stack;
    uint32_t key;   /* the key of this stack's own sums; 0 = none */
    uint32_t chain; /* place of its frame's positions in the project's `chain`; 0: it has none */
    uint32_t parent, child, sibling;
};

struct fp_project_tree {
    struct fp_project_node *nodes; /* room for s->n_nodes and the root */
    uint32_t n;
};

/* After fp_project_end: adds the stacks of a group, which has at least one.  `t` is zero before.  0 or FP_E_NOMEM. */
int fp_project_grow(struct fp_project *s, struct fp_project_tree *t, uint32_t group);
/* Frees a tree.  Only one exists at a time. */
void fp_project_fell(struct fp_project *s, struct fp_project_tree *t);

/* The positions of a node's frame, outermost first.  The root has none, unless there are samples without a stack. */
static inline const uint32_t *fp_project_chain(const struct fp_project *s, const struct fp_project_tree *t, uint32_t at,
                                               uint32_t *n) {
    const uint32_t *chain = s->chain + t->nodes[at].chain; /* its first word is 0 */
    *n = chain[0];
    return chain + 1;
}

/* Sets s->chain_of[frame]: the positions of a frame.  0, FP_E_NOMEM or FP_E_MALFORMED. */
int fp_project_resolve(struct fp_project *s, uint32_t frame, struct fp_err *err);

#endif
