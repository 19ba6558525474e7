/* bridges/sums/stack_order.h - the order of stacks, frames and label sets.  Private.
 *
 * Ids follow the order of the inputs.  Ranks by content do not: they compare names by an order (rank.h) that ranks all
 * names of its model, and numbers.
 *
 *   main > sort, main > alloc, main > sort > alloc       have this order:
 *   main, main > alloc, main > sort, main > sort > alloc
 *
 * Each function returns an array of ranks by id, all of them different, which the caller frees with free(); NULL when
 * memory ran out.  A missing id counts as 0.
 */
#pragma once

#include "bridges/sums/name_order.h"

/* By process, thread and input. */
uint32_t *fp_stack_order_threads(const struct fp_name_order *o);

/* By the labels of each set, from its last on: key, text, number, unit. */
uint32_t *fp_stack_order_labels(const struct fp_name_order *o);

/* By object and mapping, address, flags, lines. */
uint32_t *fp_stack_order_frames(const struct fp_name_order *o);

/* Each stack before those that it calls, and these by the ranks of their frames. */
uint32_t *fp_stack_order_stacks(const struct fp_model *m, const uint32_t *frames, uint32_t n_frames);
