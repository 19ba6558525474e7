/* pprof/write_private.h - the functions of write_tables.c that write.c, the samples, uses.  C only. */
#pragma once

#include "pprof/write.h"

/* Makes an array cover all ids of a table; new ones are 0, not yet written. */
static inline void fp_pprof_cover(uint32_t **ids, uint32_t *cap, uint32_t n) {
    fp_array_zeroed(ids, cap, n, sizeof **ids);
}

/* The location of a frame that has none yet; written unless another frame has the same.
 * w->frames must cover the frame. */
uint32_t fp_pprof_new_location(struct fp_pprof_writer *w, uint32_t frame, struct fp_buf *out);

/* The location named "[no stack]", written at its first use. */
uint32_t fp_pprof_no_stack(struct fp_pprof_writer *w, struct fp_buf *out);
