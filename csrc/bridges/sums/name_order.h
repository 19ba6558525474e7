/* bridges/sums/name_order.h - functions and strings in the order of their names, as bytes.  Private.
 *
 * Sums are written in this order, so output does not depend on the order of the inputs.  Names added later are compared
 * the same way; ranks only make it faster.
 */
#pragma once

#include "core/core.h"

struct fp_name_order {
    const struct fp_model *model; /* borrowed */
    /* Ranks of the first n_strings strings and n_functions functions; later ones have none. */
    uint32_t *rank_of_string;
    uint32_t *rank_of_function;
    uint32_t n_strings, n_functions;
    uint32_t *strings; /* private: string ids in their order */
};

void fp_name_order_clear(struct fp_name_order *o);

/* Ranks all names that the model has so far. */
void fp_name_order_rank(struct fp_name_order *o);

/* Below 0, 0 or above 0.  Strings: as bytes.  Functions: by object, its build id, file, name, symbol and line. */
int fp_name_order_strings(const struct fp_name_order *o, uint32_t a, uint32_t b);
int fp_name_order_functions(const struct fp_name_order *o, uint32_t a, uint32_t b);
