/* bridges/rows/label.h - gives all samples of an input the same labels.
 *
 *     main > f  {size: 8, host: x}        host=a, run=3        main > f  {size: 8, host: a, run: 3}
 *
 * A given label replaces the sample's own ones of its key.  The given labels follow the others in a fixed order, so
 * equal sets of labels are one chain.
 */
#pragma once

#include "core/core.h"

struct fp_label_rows {
    struct fp_model *model;
    /* private from here on */
    uint32_t *given; /* keys and texts alternating: strings */
    uint32_t n_given;
    uint32_t *to; /* by label chain: 1 + its replacement, 0 = not known yet */
    uint32_t cap;
    uint32_t *kept; /* of the chain at hand, from its first label on */
    uint32_t cap_kept;
};

/* `given`: n pairs of key and text, strings of the model, whose keys are distinct.  Borrows the model. */
struct fp_label_rows *fp_label_rows_new(struct fp_model *model, const uint32_t *given, uint32_t n);
void fp_label_rows_free(struct fp_label_rows *l);

/* Replaces the labels of a stacks batch, in place.  FP_DONE, FP_E_MALFORMED (an id that the model does not have). */
int fp_label_rows_batch(struct fp_label_rows *l, struct fp_batch *b, struct fp_err *err);
