/* ends/contexts_private.h - shared by the files of the context tree.  C only. */
#pragma once

#include "ends/contexts.h"

/* Columns of `nodes`. */
enum { FP_CONTEXT_PARENT = 0, FP_CONTEXT_FUNCTION = 1, FP_CONTEXT_THREAD = 2, FP_CONTEXT_WIDTH = 3 };

/* At least `n_values` values of each node. */
void fp_contexts_widen(struct fp_contexts *c, uint32_t n_values);
