/* ends/context_labels.h - the cost of a page's contexts by label set.
 *
 *   samples   main > work 10, tenant=a      contexts   main > work 35      labels   main > work: tenant=a 10
 *             main > work 20, tenant=b                                              main > work: tenant=b 20
 *             main > work  5                                                        (5 without)
 *
 * Samples without labels take no memory here, nor do those of most recordings, which all have the same set: what
 * contexts cost is then what it costs.  Where all of a context's cost has one label set, the page needs only the
 * id of the set:
 *
 *   set[context]         the set of what the entries leave, 0: no labels
 *   entry_*              context, set and values, by context and set
 *
 *   work 35: a 10, b 20  set 0, entries a 10, b 20
 *   work 30: a 10, b 20  set a, entry b 20              (10 is left)
 *   work 20: b 20        set b, no entry
 *
 * Memory: linear in the distinct (context, label set); the caller merges label sets when there are too many.
 */
#pragma once

#include "bridges/project/project.h"

struct fp_context_labels {
    uint32_t n_values;
    struct fp_table samples; /* key of the projection, label set; empty between projections */
    struct fp_table keys;    /* 2 * node, + 1: of what was cut below it; label set */
    /* Set by fp_contexts_cut, in the order of contexts */
    uint32_t *set;
    uint32_t n_entries;
    uint32_t *entry_context, *entry_set;
    int64_t *entry_self; /* value k of entry i: entry_self[k * n_entries + i] */

    /* private from here on */
    uint32_t only; /* while they do not differ: the label set of all samples, whose costs are then not added up here */
    int32_t has_only; /* there was a sample */
    int32_t differ;   /* some samples have another label set than others */
    uint32_t owed;    /* a set that contexts have, but `keys` does not: see fp_context_labels_owe */
    int64_t *sums;    /* of sample i: [i * n_values ..] */
    int64_t *self;    /* of key i */
    uint32_t cap_sums, cap_self;
    struct fp_table old_keys; /* while keys are added up again: those before */
    int64_t *old_self;
    uint32_t *shown; /* by label set below n_shown: the set in the columns; others are unchanged */
    uint32_t n_shown;
};

/* Adds the labelled rows of a batch, after fp_project_put with the same arguments.  FP_DONE, FP_E_OVERFLOW or
 * FP_E_MALFORMED: an id that the model does not have. */
int fp_context_labels_put(struct fp_context_labels *l, const struct fp_project *s, const struct fp_batch *in,
                          const uint32_t *columns, struct fp_err *err);

/* Replaces each label set i < n by map[i]; 0: none.  FP_DONE or FP_E_OVERFLOW. */
int fp_context_labels_map(struct fp_context_labels *l, const uint32_t *map, uint32_t n, struct fp_err *err);

/* From now on the columns have map[i] for each label set i < n; 0: none. */
int fp_context_labels_show(struct fp_context_labels *l, const uint32_t *map, uint32_t n);

/* Adds to sums[i * n_values ..] the values of label set i < n, without their signs. */
void fp_context_labels_sum(const struct fp_context_labels *l, uint32_t n, double *sums);

/* cffi-end */

void fp_context_labels_init(struct fp_context_labels *l);
void fp_context_labels_clear(struct fp_context_labels *l);

/* Adds the costs that each of n nodes has, and those cut below it, to the set that is owed.  FP_DONE or
 * FP_E_OVERFLOW. */
int fp_context_labels_owe(struct fp_context_labels *l, uint32_t n, const int64_t *own, const int64_t *cut,
                          uint32_t n_values, struct fp_err *err);

/* Moves the samples to nodes: node_of[key of the projection].  FP_DONE or FP_E_OVERFLOW. */
int fp_context_labels_add(struct fp_context_labels *l, const uint32_t *node_of, struct fp_err *err);

/* Nodes get new numbers: to[node], which for those that are not kept is that of their nearest kept caller. */
int fp_context_labels_move(struct fp_context_labels *l, const uint32_t *to, const uint8_t *kept, struct fp_err *err);

/* Fills the columns for `n` contexts.  place[2 * node] is the position of a node, place[2 * node + 1] that of what was
 * cut below it; `self` are the `n_values` values of the contexts, k of context i: self[k * n + i].  FP_DONE or
 * FP_E_OVERFLOW. */
int fp_context_labels_fill(struct fp_context_labels *l, const uint32_t *place, const int64_t *self, uint32_t n_values,
                           uint32_t n, struct fp_err *err);
