/* core/clock.h - converts ticks of a processor's counter to nanoseconds. */
#pragma once

#include "core/fp.h"

/* cffi-begin */

struct fp_clock {
    uint64_t ticks_per_second; /* 0: times are not converted */

    /* private from here on */
    uint64_t inverse; /* (2^64 - 1) / ticks_per_second, rounded down */
    /* ticks * 10^9 = ns * ticks_per_second + rest, for a time near the next one */
    uint64_t ticks, ns, rest;
};

/* cffi-end */

enum { FP_NANOSECONDS = 1000000000 };

/* Sets the frequency of the following times; 0: unknown. */
static inline void fp_clock_set(struct fp_clock *c, uint64_t ticks_per_second) {
    const uint64_t hz = ticks_per_second == FP_NANOSECONDS ? 0 : ticks_per_second;
    *c = (struct fp_clock){hz, hz ? UINT64_MAX / hz : 0, 0, 0, 0};
}

/* Nanoseconds, rounded down, at most 2^64 - 1.  Consecutive times are close, so the difference to a known one fits 64
 * bits, and a multiplication by the inverse instead of a division is at most 1 too small. */
static inline uint64_t fp_clock_ns(struct fp_clock *c, uint64_t ticks) {
    __extension__ typedef unsigned __int128 u128;
    const uint64_t hz = c->ticks_per_second, since = ticks - c->ticks;
    if (!hz) return ticks;
    if (FP_UNLIKELY(ticks < c->ticks || since > UINT32_MAX || hz > INT64_MAX)) {
        const u128 v = (u128)ticks * FP_NANOSECONDS;
        if (v / hz > UINT64_MAX) return UINT64_MAX;
        c->ns = (uint64_t)(v / hz);
        c->rest = (uint64_t)(v % hz);
        c->ticks = ticks;
        return c->ns;
    }
    const uint64_t scaled = c->rest + since * FP_NANOSECONDS;
    uint64_t more = (uint64_t)((u128)scaled * c->inverse >> 64);
    more += scaled - more * hz >= hz;
    return c->ns > UINT64_MAX - more ? UINT64_MAX : c->ns + more;
}
