/* fp_callgrind.h - cost lines of Callgrind and Cachegrind, of which most of a file consists.
 *
 * Floor 2.  Names, calls and everything rare are the tokenizer's
 * (fastprof/formats/_callgrind_read.pyx); here is what has to be fast.
 */
#ifndef FP_CALLGRIND_H
#define FP_CALLGRIND_H

#include "fp_batch.h"

/* Bytes behind the first of a line that may be looked at. */
enum { FP_COST_READAHEAD = 80 };

/* Which instructions are used. */
enum fp_wide {
    FP_PLAIN = 0,  /* those that every machine has */
    FP_AVX2 = 1,   /* and BMI2 */
    FP_AVX512 = 2, /* with VBMI2 */
};

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
    int64_t fields[16];      /* the same by field of a line, positions being the first */
    int64_t lanes[8];        /* the same of the only count, in eight sums */
    uint32_t overflowed;     /* a total passed 2^63 - 1 */
};

/* Moves what is not settled into the totals: at least every 2^36 rows. */
void fp_costs_settle(struct fp_costs *s);

/* The widest that this machine has. */
uint32_t fp_costs_wide(void);

/* Appends the cost lines from p on as rows: each begins with a digit or one of
 * + - *, and [p, end) is whole lines.  FP_COST_READAHEAD bytes at each line that
 * is taken are looked at, none from `readable` on.  The first row is of `kind`:
 * unless that is FP_COST it does not count as self cost and does not move the
 * base, and the caller completes it.  Value columns must be 0
 * from row b->n on, and so must position columns that the part does not have.
 *
 * Returns the first line that was not taken, because it is no cost line, not of
 * the form that Callgrind writes (decimal counts, decimal or 0x positions,
 * single blanks), too near to `readable`, or because the batch is full. */
const uint8_t *fp_cost_lines(struct fp_costs *s, uint32_t kind, const uint8_t *p, const uint8_t *end,
                             const uint8_t *readable, struct fp_batch *b);

/* What is behind the first `fn=(`, which begins a reference to a function, that begins in [p, end), of which three
 * bytes more must be readable; NULL if there is none. */
const uint8_t *fp_find_function(const uint8_t *p, const uint8_t *end, uint32_t wide);

#endif
