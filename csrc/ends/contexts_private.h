/* ends/contexts_private.h - shared by the files of the context tree. */
#ifndef FP_CONTEXTS_PRIVATE_H
#define FP_CONTEXTS_PRIVATE_H

#include "ends/contexts.h"

/* Columns of `nodes`. */
enum { NODE_PARENT = 0, NODE_FUNCTION = 1, NODE_THREAD = 2, NODE_WIDTH = 3 };

/* At least `n_values` values of each node.  0 or FP_E_NOMEM. */
int fp_contexts_widen(struct fp_contexts *c, uint32_t n_values);

#endif
