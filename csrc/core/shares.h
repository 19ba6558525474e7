/* core/shares.h - the threads of a timeline divided among several who take its rows, each a share.
 *
 * A thread is given to the share that has the least to do so far, and stays there.  It may be looked up beside who
 * gives threads away, by whoever knows that this one was.
 */
#ifndef FP_SHARES_H
#define FP_SHARES_H

#include "core/model.h"

/* cffi-begin */

enum { FP_SHARES_MOST = 8, FP_SHARES_THREADS = 65536 };

struct fp_shares {
    uint32_t n;                    /* of them, 1 to FP_SHARES_MOST; set by the caller */
    uint64_t much[FP_SHARES_MOST]; /* that each has to do */
    uint8_t of[FP_SHARES_THREADS]; /* by thread: its share + 1, 0 = none yet */
};

/* Gives a thread that has no share to one; `much`: what that has to do for it, in any unit. */
void fp_shares_give(struct fp_shares *s, uint32_t thread, uint64_t much);

/* cffi-end */

/* The share of a thread; FP_NO_ID: it has none yet.  Threads that `of` has no room for need not be given away. */
static inline uint32_t fp_share_of(const struct fp_shares *s, uint32_t thread) {
    if (FP_UNLIKELY(thread >= FP_SHARES_THREADS)) return thread % s->n;
    return s->of[thread] ? s->of[thread] - 1u : FP_NO_ID;
}

#endif
