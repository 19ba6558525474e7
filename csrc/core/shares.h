/* core/shares.h - divides the threads of a timeline among workers, one share each.
 *
 * A thread is assigned to the share with the least work so far, and stays there.  The share of a thread that has one
 * may be read while other threads are assigned.
 */
#pragma once

#include "core/model.h"

/* cffi-begin */

enum { FP_SHARES_MOST = 8, FP_SHARES_THREADS = 65536 };

struct fp_shares {
    uint32_t n;                    /* number of shares, 1 to FP_SHARES_MOST; set by the caller */
    uint64_t work[FP_SHARES_MOST]; /* the work of each */
    uint8_t of[FP_SHARES_THREADS]; /* by thread: its share + 1, 0 = none yet */
};

/* Assigns a thread that has no share yet; `work`: its work, in any unit. */
void fp_shares_assign(struct fp_shares *s, uint32_t thread, uint64_t work);

/* cffi-end */

/* The share of a thread; FP_NO_ID: none yet.  Threads beyond FP_SHARES_THREADS need no assignment. */
static inline uint32_t fp_share_of(const struct fp_shares *s, uint32_t thread) {
    if (FP_UNLIKELY(thread >= FP_SHARES_THREADS)) return thread % s->n;
    return s->of[thread] ? s->of[thread] - 1u : FP_NO_ID;
}
