/* jfr/sums.h - usual events that are added up as they are read.  C only. */
#pragma once

#include "jfr/private.h"

/* A row of the batch, by the bytes of the keys of its events, and its sums, which the batch gets before the caller sees
 * it.  `high` has the type in its highest bits; 0: unused. */
struct fp_jfr_summed {
    uint64_t low, high;
    int64_t value;
    uint32_t count;
    uint32_t row : 24, metric : 5, no_stack : 1, truncated : 1;
};
enum { FP_JFR_SUMMED = 1 << 14, FP_JFR_MOST_ROWS = 1 << 24 };
/* Its place is one of the two from here on, which share a line of the processor's cache. */
static inline struct fp_jfr_summed *fp_jfr_summed_at(const struct fp_jfr_reader *r, uint64_t low, uint64_t high) {
    return &r->sums.rows[fp_mix(low, high) & (FP_JFR_SUMMED - 2)];
}

/* Makes the reader's table. */
void fp_jfr_new_sums(struct fp_jfr_reader *r);
/* Begins a batch or a chunk: earlier rows are not found again. */
void fp_jfr_begin_sums(struct fp_jfr_reader *r);
/* Adds samples from p on to rows of the batch, up to the first sample without a row.  *ready gets the place where its
 * row is to be entered.  Returns where it stopped. */
const uint8_t *fp_jfr_add(struct fp_jfr_reader *r, const uint8_t *p, const uint8_t *end, const uint8_t *readable,
                          struct fp_jfr_ready *ready);
/* Makes the next row of the batch findable by the keys of its event. */
void fp_jfr_remember(struct fp_jfr_reader *r, const struct fp_jfr_ready *one, uint32_t metric, int64_t value,
                     const struct fp_batch *out);
/* Lets samples wait from p on, up to the first that cannot.  Returns where it stopped. */
const uint8_t *fp_jfr_add_pending_many(struct fp_jfr_reader *r, const uint8_t *p, const uint8_t *end,
                                       const uint8_t *readable);
/* Writes the sums to the rows. */
void fp_jfr_write_sums(struct fp_jfr_reader *r, const struct fp_batch *out);
/* Ends a call: adds the times of the samples to the counts. */
void fp_jfr_end_sums(struct fp_jfr_reader *r);
