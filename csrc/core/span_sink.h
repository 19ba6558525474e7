/* core/span_sink.h - calls and events of a reader in Python -> rows of a timeline (core/overlap_lanes.h). */
#pragma once

#include "core/overlap_lanes.h"

struct fp_span_sink {
    struct fp_rounds rounds; /* `most` is set by the caller; to be served after FP_NEEDS */
    uint64_t rows;
    uint64_t lanes, cut; /* threads added for calls that overlap, calls that were cut */
    uint32_t n_put;      /* of the spans of fp_span_sink_put, before FP_NEEDS */
};

/* Borrows the model.  Caller owns. */
struct fp_span_sink *fp_span_sink_new(struct fp_model *model);
void fp_span_sink_free(struct fp_span_sink *s);

/* Adds n spans in any order; `what` is a function, of events a string.  FP_DONE, or FP_NEEDS: call again with the same.
 */
int fp_span_sink_put(struct fp_span_sink *s, const struct fp_span *spans, uint32_t n);

/* The rows of all spans: FP_FULL, FP_NEEDS or FP_DONE. */
int fp_span_sink_pull(struct fp_span_sink *s, struct fp_batch *out);
