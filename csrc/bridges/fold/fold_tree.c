#include "bridges/fold/fold_private.h"

/* Contexts as sorted records.
 *
 * Nodes and groups are numbered together: 0 is nothing, i + 1 is arc i, f->n_arcs + 1 + g is group g, whose children
 * are the roots.  `child` leads to a node's first child, `sibling` to the next one of the same parent.  Children are
 * sorted when the walk reaches them. */

struct group {
    uint32_t row[FP_GROUP_WIDTH];
    uint32_t id;
};

static int by_row(const void *a, const void *b) {
    const struct group *x = a, *y = b;
    for (int i = 0; i < FP_GROUP_WIDTH; i++)
        if (x->row[i] != y->row[i]) return x->row[i] < y->row[i] ? -1 : 1;
    return (x->id > y->id) - (x->id < y->id); /* no thread and CPU 0, or all threads and CPUs */
}

static void rank_groups(struct fp_fold *f) {
    const uint32_t n = f->groups.n;
    if (n == f->n_group_ranks) return;
    struct group *groups = fp_scratch(n, sizeof *groups);
    uint32_t *ranks = fp_scratch(n, sizeof *ranks), *in_order = fp_scratch(n, sizeof *in_order);
    for (uint32_t g = 0; g < n; g++) {
        memcpy(groups[g].row, fp_table_row(&f->groups, g), sizeof groups->row);
        groups[g].id = g;
    }
    qsort(groups, n, sizeof *groups, by_row);
    for (uint32_t i = 0; i < n; i++) {
        in_order[i] = groups[i].id;
        ranks[groups[i].id] = i;
    }
    FP_FREE(f->group_ranks, f->groups_in_order);
    f->group_ranks = fp_scratch_keep(ranks);
    f->groups_in_order = fp_scratch_keep(in_order);
    f->n_group_ranks = n;
    fp_scratch_free(groups);
}

static inline uint32_t parent_of(const struct fp_fold *f, uint32_t node) {
    const struct fp_fold_arc *a = &f->arcs[node - 1];
    return a->caller ? a->caller : f->n_arcs + 1 + a->group;
}

int fp_fold_rank(struct fp_fold *f) {
    fp_name_order_rank(f->names);
    return 0;
}

int fp_fold_link(struct fp_fold *f) {
    f->next_group = f->at = f->depth = 0;
    FP_FREE(f->child, f->sibling);
    f->child = f->sibling = NULL;
    rank_groups(f);
    f->child = fp_have(calloc((size_t)f->n_arcs + f->n_group_ranks + 1, sizeof *f->child));
    f->sibling = fp_have(malloc(((size_t)f->n_arcs + 1) * sizeof *f->sibling));
    for (uint32_t i = f->n_arcs; i > 0; i--) {
        uint32_t *first = &f->child[parent_of(f, i)];
        f->sibling[i] = *first;
        *first = i;
    }
    return 0;
}

static inline uint32_t rank_of(const struct fp_fold *f, uint32_t node) {
    return f->names->rank_of_function[f->arcs[node - 1].callee];
}

/* Merges two sorted lists of siblings. */
static uint32_t merged(struct fp_fold *f, uint32_t a, uint32_t b) {
    uint32_t first = 0, *last = &first;
    while (a && b) {
        uint32_t *less = rank_of(f, a) < rank_of(f, b) ? &a : &b;
        *last = *less;
        last = &f->sibling[*less];
        *less = *last;
    }
    *last = a ? a : b;
    return first;
}

/* Sorts a list of siblings by rank.  Returns the first. */
static uint32_t sorted(struct fp_fold *f, uint32_t first) {
    if (!first || !f->sibling[first]) return first;
    uint32_t of[32] = {0}, list = 0; /* sorted lists of 1, 2, 4 ... nodes, or none */
    for (uint32_t next; first; first = next) {
        unsigned k = 0;
        next = f->sibling[first];
        f->sibling[first] = 0;
        for (list = first; of[k]; of[k++] = 0) list = merged(f, of[k], list);
        of[k] = list;
    }
    list = 0;
    for (unsigned k = 0; k < 32; k++)
        if (of[k]) list = merged(f, of[k], list);
    return list;
}

/* Moves f->at to the next group that has nodes, or to 0. */
static void next_group(struct fp_fold *f) {
    for (f->at = 0; !f->at && f->next_group < f->n_group_ranks; f->next_group++) {
        const uint32_t group = f->n_arcs + 1 + f->groups_in_order[f->next_group];
        if (f->child[group]) f->at = group;
    }
    f->depth = 0;
}

/* Moves f->at to the next node in preorder. */
static void next_node(struct fp_fold *f) {
    if (f->at && f->child[f->at]) {
        f->at = sorted(f, f->child[f->at]);
        f->depth++;
        return;
    }
    for (; f->at && f->at <= f->n_arcs; f->at = parent_of(f, f->at), f->depth--)
        if (f->sibling[f->at]) {
            f->at = f->sibling[f->at];
            return;
        }
    next_group(f);
}

size_t fp_fold_pull_tree(struct fp_fold *f, uint8_t *to, size_t n) {
    uint8_t *at = to;
    while ((size_t)(to + n - at) >= FP_TREE_RECORD) {
        const uint32_t levels = f->at ? f->depth + 1 : 0;
        next_node(f);
        if (!f->at) {
            f->next_group = f->n_group_ranks; /* stays at the end */
            break;
        }
        const struct fp_fold_arc *a = f->at <= f->n_arcs ? &f->arcs[f->at - 1] : NULL;
        at = a ? fp_fold_tree_record(at, levels, f->depth, a->callee, a->self, a->calls)
               : fp_fold_tree_record(at, levels, 0, f->at - f->n_arcs - 1, 0, 0);
    }
    return (size_t)(at - to);
}
