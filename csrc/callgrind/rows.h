/* callgrind/rows.h - cost lines of Callgrind and Cachegrind -> rows of a batch.  C only.
 *
 * Most lines of a file are cost lines, so this code decides the speed of reading.  The lexer
 * (fastprof/formats/callgrind/_lexer.pyx) reads all other lines.
 */
#pragma once

#include "callgrind/lines.h"

struct fp_callgrind_position {
    uint64_t address;
    uint64_t bb;
    uint64_t line;
};

/* The state of reading a part's cost lines.
 *
 * Sums of self cost are kept in three places: `recent` and `sums` are added to without a check for overflow, and
 * fp_callgrind_costs_flush moves them into `totals`, with a check. */
struct fp_callgrind_costs {
    uint32_t instr, bb, lines; /* whether each position column exists: 0 or 1, at least one of them */
    uint32_t n_values;
    uint32_t function, file;           /* of the rows */
    uint32_t wide;                     /* enum fp_wide, at most fp_callgrind_costs_wide() */
    struct fp_callgrind_position base; /* of relative positions: the last self cost line */
    int64_t *totals;                   /* n_values settled sums, modulo 2^64 */
    int64_t *beyond;                   /* n_values: the true total is totals[k] + 2^64 * beyond[k] */
    int64_t *recent;                   /* n_values sums of counts below 10^8 */
    /* Sums of the AVX-512 code, of counts below 10^8.  With several events, sums[j] is the sum of each line's number j:
     * first the positions, whose sums are meaningless, then the counts.  With one event, each of the sixteen is a part
     * of the sum of its counts. */
    int64_t sums[16];
};

/* Reads a position as Callgrind writes it, and the blank after it: 12, 0x4f, or relative to `base` *, +12 or -12.
 * Returns the byte after the blank; NULL for anything else, and beyond 64 bits. */
static inline const uint8_t *fp_callgrind_text_position(const uint8_t *p, uint64_t base, uint64_t *to) {
    uint64_t v = 0;
    if (*p == '*') {
        v = base;
        p++;
    } else if (*p == '+') {
        p = fp_decimal(p + 1, &v);
        v += base;
        if (v < base) return NULL;
    } else if (*p == '-') {
        p = fp_decimal(p + 1, &v);
        if (v > base) return NULL;
        v = base - v;
    } else if (p[0] == '0' && p[1] == 'x') {
        const uint8_t *first = p += 2;
        for (unsigned nibble; (nibble = fp_nibble(*p)) < 16; p++) v = v << 4 | nibble;
        if ((size_t)(p - first) - 1 >= 16) return NULL;
    } else {
        p = fp_decimal(p, &v);
    }
    *to = v;
    return p && *p == ' ' ? p + 1 : NULL;
}

/* Reads the positions at p in the same way.  Does not change positions in *to that the part does not have. */
static inline const uint8_t *fp_callgrind_text_positions(const struct fp_callgrind_costs *s, const uint8_t *p,
                                                         struct fp_callgrind_position *to) {
    if (s->instr && !(p = fp_callgrind_text_position(p, s->base.address, &to->address))) return NULL;
    if (s->bb && !(p = fp_callgrind_text_position(p, s->base.bb, &to->bb))) return NULL;
    if (s->lines && (!(p = fp_callgrind_text_position(p, s->base.line, &to->line)) || to->line >> 32)) return NULL;
    return p;
}

/* Adds self cost to total k. */
static inline void fp_callgrind_costs_add(struct fp_callgrind_costs *s, uint32_t k, int64_t v) {
    if (__builtin_add_overflow(s->totals[k], v, &s->totals[k])) s->beyond[k] += v < 0 ? -1 : 1;
}

/* Moves `recent` and `sums` into the totals.  Call at least every 2^36 rows, or they overflow. */
void fp_callgrind_costs_flush(struct fp_callgrind_costs *s);

/* Appends lines from line i on as rows; returns how many.  Stops at the first line that is odd or not a cost line, or
 * when the batch is full.
 *
 * The first row is of `kind`, the others are self cost.  A first row that is not FP_COST is not added to the sums and
 * does not move the base, and the caller completes it.  Position columns that the part does not have must be 0 from row
 * b->n on. */
uint32_t fp_callgrind_cost_rows(struct fp_callgrind_costs *s, uint32_t kind, const struct fp_callgrind_lines *l,
                                uint32_t i, struct fp_batch *b);

/* The same for the one line at p, which ends in a newline.  The batch must have room for it.  The line may be odd: it
 * may have addresses in hex and numbers of up to 18 digits.  Returns 1, or 0 if it contains anything else. */
int fp_callgrind_cost_row(struct fp_callgrind_costs *s, uint32_t kind, const uint8_t *p, struct fp_batch *b);
