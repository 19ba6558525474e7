/* xray/write.h - timeline rows as an LLVM XRay log, flight data recorder
 * version 5, little-endian.
 *
 * Source: compiler-rt/lib/xray/xray_fdr_log_writer.h and llvm/lib/XRay
 * (the readers) of LLVM 8 to 22.
 */
#pragma once

#include "core/core.h"

/* A writer and its counters. */
struct fp_xray_write {
    const struct fp_model *model; /* borrowed: for the number of threads */
    uint64_t ticks_per_second;    /* 0 = unknown; for wall clocks missing in the source */
    /* XRay id of each model function, borrowed; the caller fills and grows it before each put */
    const uint32_t *ids;
    uint32_t n_ids;
    const uint32_t *numbers; /* process and thread number of each model thread, borrowed, filled as `ids` is */
    /* not representable in FDR */
    /* Dropped: readers refuse a log that has one. */
    uint64_t FP_COUNT(empty_events, "empty-events", not_representable, "empty event(s)");
    uint64_t FP_COUNT(large_events, "large-events", not_representable, "event(s) of 2 GiB or more");
    uint64_t FP_COUNT(wide_types, "wide-event-types", not_representable, "event type(s) beyond 16 bits");
    uint64_t FP_COUNT(counters, "counter-values");
    uint64_t buffers;

    /* private from here on */
    /* the buffer being filled */
    struct fp_buf body; /* its bytes, from the new-buffer record on */
    uint32_t thread;    /* its thread id + 1; 0 = no buffer is open */
    uint32_t cpu;
    uint64_t now;      /* time of the last record that moves the clock */
    uint64_t *wall_us; /* by thread id: wall clock of its last buffer */
    uint32_t n_wall;
};

struct fp_xray_write *fp_xray_write_new(const struct fp_model *m);
void fp_xray_write_free(struct fp_xray_write *w);

/* Appends the 32-byte file header. */
int fp_xray_write_header(struct fp_xray_write *w, uint64_t buffer_size, struct fp_buf *out);

/* Writes the rows of a batch.  Appends buffers to `out` when they are complete; the last one stays open. */
int fp_xray_write_put(struct fp_xray_write *w, const struct fp_batch *b, struct fp_buf *out);

/* Closes the open buffer. */
int fp_xray_write_end(struct fp_xray_write *w, struct fp_buf *out);
