/* ends/distinct.h - the stacks of a model as sorted records (core/merge.h), to count those that are distinct when the
 * model's are removed from time to time.
 *
 * A record is a hash of 96 bits of the frames from the root on.  That two of 20 million stacks have the same has a
 * probability of 10^-14.
 */
#pragma once

#include "core/core.h"

struct fp_distinct;

/* All stacks that the model has.  The caller owns it. */
struct fp_distinct *fp_distinct_new(const struct fp_model *m);
void fp_distinct_free(struct fp_distinct *d);

/* Writes the next records, of FP_MERGE_KEY words, to `to`, which has room for n words.  Returns the number of words; 0
 * at the end. */
size_t fp_distinct_pull(struct fp_distinct *d, uint64_t *to, size_t n);
