/* gperftools/write.h - writes the records of a gperftools CPU profile (gperftools/read.h) of 64-bit words.
 *
 * The caller writes header, trailer and text.  Words are written in the machine's byte order.
 */
#pragma once

#include "core/core.h"

/* The caller zeroes it, sets the options, and reads the counts after the last row. */
struct fp_gperftools_writer {
    struct fp_model *model; /* borrowed */
    uint64_t period_ns;     /* nanoseconds a tick */
    uint64_t unit_ns;       /* values are times in this many nanoseconds; 0: values are ticks */
    uint64_t rows;          /* records written */
    /* not representable in records */
    uint64_t FP_COUNT(no_address, "frames-without-address", not_representable, "frame(s) without an address");
    /* Or with more addresses than a record can hold. */
    uint64_t FP_COUNT(no_stack, "samples-without-addresses", not_representable, "sample(s) without addresses");
    uint64_t FP_COUNT(negative, "negative-samples", not_representable, "sample with a negative value",
                      "samples with negative values");
    uint64_t FP_COUNT(labels, "sample-labels", not_representable,
                      "label(s), thread(s) (or|and) time(s) of (a sample|samples)");
    uint64_t FP_COUNT(rounded, "rounded-times", not_representable, "time(s) rounded to whole ticks");
    /* sums of magnitudes: of the values written, of those of rows left out or rounded to 0, and of those written
     * without some frames */
    double written, left_out, cut;

    /* private from here on */
    uint32_t row; /* of the batch: the first not written */
};

/* Appends a record for each row, with the value in column `column`.  FP_DONE, FP_E_OVERFLOW, or FP_FULL: drain `out`
 * and call again with the same batch. */
int fp_gperftools_put(struct fp_gperftools_writer *w, const struct fp_batch *in, uint32_t column, struct fp_buf *out,
                      struct fp_err *err);
