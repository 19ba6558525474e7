/* core/clock.h - converts ticks of a processor's counter to nanoseconds. */
#ifndef FP_CLOCK_H
#define FP_CLOCK_H

#include "core/fp.h"

/* cffi-begin */

struct fp_clock {
    uint64_t ticks_per_second; /* 0: times are not converted */

    /* private from here on */
    /* ticks * 10^9 = ns * ticks_per_second + rest, for a time near the next one */
    uint64_t ticks, ns, rest;
};

/* cffi-end */

enum { FP_NANOSECONDS = 1000000000 };

/* Sets the frequency of the following times; 0: unknown. */
static inline void fp_clock_set(struct fp_clock *c, uint64_t ticks_per_second) {
    *c = (struct fp_clock){ticks_per_second == FP_NANOSECONDS ? 0 : ticks_per_second, 0, 0, 0};
}

/* Nanoseconds, rounded down, at most 2^64 - 1.  Consecutive times are close, so the difference to a known one fits 64
 * bits. */
static inline uint64_t fp_clock_ns(struct fp_clock *c, uint64_t ticks) {
    __extension__ typedef unsigned __int128 u128;
    const uint64_t hz = c->ticks_per_second;
    if (!hz) return ticks;
    if (FP_UNLIKELY(ticks < c->ticks || ticks - c->ticks > UINT32_MAX || hz > INT64_MAX)) {
        const u128 v = (u128)ticks * FP_NANOSECONDS;
        if (v / hz > UINT64_MAX) return UINT64_MAX;
        c->ns = (uint64_t)(v / hz);
        c->rest = (uint64_t)(v % hz);
        c->ticks = ticks;
        return c->ns;
    }
    const uint64_t more = (c->rest + (ticks - c->ticks) * FP_NANOSECONDS) / hz;
    return c->ns > UINT64_MAX - more ? UINT64_MAX : c->ns + more;
}

#endif
