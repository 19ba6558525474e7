/* jfr/sums.h - usual events that are added up as they are read. */
#ifndef FP_JFR_SUMS_H
#define FP_JFR_SUMS_H

#include "jfr/private.h"

/* A row of the batch, by the bytes of the keys of its events, and its sums, which the batch gets at the end of a call.
 */
struct fp_jfr_summed {
    uint64_t low, high;
    uint64_t of; /* the type and the reader's generation: see fp_jfr_rows_of; if another: unused entry */
    int64_t value;
    uint32_t count, n_written; /* `n_written`: the count in the batch */
    uint32_t row : 24, metric : 5, no_stack : 1, truncated : 1;
};
static inline uint64_t fp_jfr_rows_of(const struct fp_jfr_reader *r, uint32_t type) {
    return (uint64_t)r->generation << 32 | type;
}
enum { FP_JFR_SUMMED = 1 << 13, FP_JFR_MOST_ROWS = 1 << 24 };
/* Its place is one of the two from here on. */
static inline struct fp_jfr_summed *fp_jfr_summed_at(const struct fp_jfr_reader *r, uint64_t low, uint64_t high) {
    return &r->summed[fp_mix(low, high) & (FP_JFR_SUMMED - 2)];
}

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
const uint8_t *fp_jfr_hold_many(struct fp_jfr_reader *r, const uint8_t *p, const uint8_t *end, const uint8_t *readable);
/* Ends a call: writes the sums to the rows, and the times of the samples. */
void fp_jfr_end_sums(struct fp_jfr_reader *r, const struct fp_batch *out);

#endif
