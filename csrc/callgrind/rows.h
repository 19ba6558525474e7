/* callgrind/rows.h - cost lines of Callgrind and Cachegrind, of which most of a file consists.
 *
 * Floor 2.  Names, calls and everything rare are the tokenizer's
 * (fastprof/formats/_callgrind_read.pyx); here is what has to be fast.
 */
#ifndef FP_CALLGRIND_H
#define FP_CALLGRIND_H

#include "core/batch.h"
#include "callgrind/lines.h"

struct fp_position {
    uint64_t address;
    uint64_t bb;
    uint64_t line;
};

/* Where in a part we are. */
struct fp_costs {
    uint32_t instr, bb, lines; /* which position columns there are: 0 or 1, at least one of them */
    uint32_t n_values;
    uint32_t function, file; /* of the rows */
    uint32_t wide;           /* enum fp_wide, at most fp_costs_wide() */
    struct fp_position base; /* of relative positions: the last self cost line */
    int64_t *totals;         /* sums of self cost, n_values of them, less what is not settled yet: */
    int64_t *recent;         /* n_values sums of counts below 10^8, which need no check */
    int64_t sums[16]; /* the same by number of a line, positions being the first; of an only count all are sums */
    int64_t *beyond;  /* n_values: how many times 2^64 are to be added to each total, which may be undone again */
};

/* Adds self cost to total k. */
static inline void fp_costs_add(struct fp_costs *s, uint32_t k, int64_t v) {
    if (__builtin_add_overflow(s->totals[k], v, &s->totals[k])) s->beyond[k] += v < 0 ? -1 : 1;
}

/* Moves what is not settled into the totals: at least every 2^36 rows. */
void fp_costs_settle(struct fp_costs *s);

/* Appends line i of the lines and those behind it as rows, as far as they are cost lines, not odd, and there is room
 * in the batch; returns how many.  The first row is of `kind`: unless that is FP_COST it does not count as self cost
 * and does not move the base, and the caller completes it.  Position columns that the part does not have must be 0 from
 * row b->n on. */
uint32_t fp_cost_rows(struct fp_costs *s, uint32_t kind, const struct fp_lines *l, uint32_t i, struct fp_batch *b);

/* The same of the one line at p, which ends in a newline, for which there must be room; it may be odd in having
 * addresses in hex or numbers of up to 18 digits.  0 when it is not even that simple. */
int fp_cost_row(struct fp_costs *s, uint32_t kind, const uint8_t *p, struct fp_batch *b);

#endif
