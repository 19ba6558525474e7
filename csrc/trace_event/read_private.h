/* trace_event/read_private.h - what the files of the reader share.  Private.
 *
 *   read.c    the text: events become rows, or records
 *   merge.c   records, sorted, become rows
 */
#ifndef FP_TRACE_EVENT_READ_PRIVATE_H
#define FP_TRACE_EVENT_READ_PRIVATE_H

#include "trace_event/read.h"

/* A call that has begun. */
struct fp_trace_open {
    uint64_t time, order;
    uint32_t function;
};

struct fp_trace_stack {
    struct fp_trace_open *calls;
    uint32_t n, cap;
};

/* The same, of records. */
struct fp_trace_call {
    uint64_t end; /* UINT64_MAX: has none */
    uint32_t function;
};

/* Appends rows of the runs' records.  FP_FULL, FP_ASK, FP_DONE, FP_E_NOMEM, FP_E_OVERFLOW. */
int fp_trace_merge(struct fp_trace_read *r, struct fp_batch *out, struct fp_err *err);

/* Adds a row; the batch has room.  Its index. */
static inline uint32_t fp_trace_row(struct fp_batch *out, uint8_t op, uint64_t time, uint32_t thread,
                                    uint32_t function) {
    const uint32_t i = out->n++;
    out->time[i] = time;
    out->thread[i] = thread;
    out->function[i] = function;
    out->op[i] = op;
    out->cpu[i] = 0;
    out->aux[i] = 0;
    return i;
}

#endif
