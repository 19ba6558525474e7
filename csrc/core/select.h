/* core/select.h - filters the rows of a batch by time, thread, labels, stack or function.
 *
 * An archive reads only the selected rows; other formats are filtered after their readers.  Both use this code, so the
 * same option keeps the same rows.
 */
#pragma once

#include "core/batch.h"

/* cffi-begin */

/* For each id whether its rows stay (1) or not (0); ids from n on do not.  NULL: all stay. */
struct fp_mask {
    const uint8_t *keep;
    uint32_t n;
};

struct fp_select {
    uint64_t first_time, last_time; /* both included: timeline, stacks.  0 and UINT64_MAX: any time */
    struct fp_mask threads;         /* timeline, stacks */
    struct fp_mask labels;          /* stacks */
    struct fp_mask stacks;          /* stacks */
    struct fp_mask functions;       /* graph */
};

/* Drops the rows from row `from` on that are not selected and moves the others together.  A sample without a time is in
 * no range of times.  Returns the number of dropped rows. */
uint32_t fp_select_rows(const struct fp_select *s, struct fp_batch *b, uint32_t from);
