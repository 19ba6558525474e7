/* bridges/sums/in_time.h - stacks -> stacks: samples in order of time, for formats that draw them on a time axis.
 *
 *   5 ms main > g        2 ms main > f
 *   2 ms main > f   ->   5 ms main > g
 *   5 ms main > h        5 ms main > h      equal times keep their order
 *
 * Rows without a time stay in their batch.  Rows are sorted by core/rounds.h, which spills them
 * beyond rounds.most bytes: after FP_NEEDS the caller performs rounds.asks and calls again.
 */
#pragma once

#include "core/core.h"

struct fp_in_time {
    struct fp_rounds rounds; /* `most` is set by the caller */
    uint64_t rows;           /* with a time */
    uint64_t labelled;       /* of these */
    /* private from here on */
    uint32_t row;   /* of the batch that is being put */
    int32_t is_out; /* rounds has a record that is not in a batch yet */
    struct fp_buf record;
};

/* Caller owns. */
struct fp_in_time *fp_in_time_new(void);
void fp_in_time_free(struct fp_in_time *s);

/* Moves the rows with a time out of the batch.  FP_DONE or FP_NEEDS. */
int fp_in_time_put(struct fp_in_time *s, struct fp_batch *b);

/* After the last of them: appends rows to a batch.  FP_FULL, also where another part begins; FP_DONE or FP_NEEDS. */
int fp_in_time_take(struct fp_in_time *s, struct fp_batch *out);
