/* callgrind/lines.h - text of Callgrind or Cachegrind, taken apart: lines and the numbers in them.
 *
 * This is the first step of reading.  It does the same for all lines, whatever kind they are, so the
 * processor has no branch on their content to guess wrong.  callgrind/rows.c then makes rows of the cost lines.
 */
#ifndef FP_CALLGRIND_LINES_H
#define FP_CALLGRIND_LINES_H

#include "core/fp.h"

/* The instructions that may be used.  Each value includes those before it. */
enum fp_wide {
    FP_PLAIN = 0,  /* those that every machine has */
    FP_AVX2 = 1,   /* AVX2 and BMI2 */
    FP_AVX512 = 2, /* AVX-512 with VBMI2 */
};

/* The widest that this machine has. */
uint32_t fp_callgrind_costs_wide(void);

enum {
    FP_LINES_NBYTES = 2048,             /* bytes taken apart at once; the last line may end behind them */
    FP_LINES_LONGEST = 8192,            /* bytes of a line that is taken apart */
    FP_LINES_CAP = FP_LINES_NBYTES + 64 /* lines, and numbers */
};

/* Lines and their numbers, in the order of the text:
 *
 *     text         + 1 2   3   * \n c f n = ( 7 ) \n
 *     begin        0               8
 *     first        0               2
 *     value        12 3            7
 *     relative[0]  1               0
 *     cost         1               0
 *     odd          1               1
 *
 * A number is a run of digits, negative behind a minus.  A `*` where a position may stand is a number, too: 0.  The
 * value of a number with more than eight digits is wrong; its line is odd. */
struct fp_callgrind_lines {
    uint32_t n;                       /* lines */
    uint16_t begin[FP_LINES_CAP + 1]; /* where line i begins; of i = n, where the last one ends */
    uint16_t first[FP_LINES_CAP + 1]; /* line i has numbers first[i] .. first[i + 1] - 1 */
    int64_t value[FP_LINES_CAP];
    /* a bit a line: */
    uint8_t relative[3][FP_LINES_CAP / 8 + 8]; /* a cost line's position k has a sign, or is `*` */
    uint8_t cost[FP_LINES_CAP / 8 + 8];        /* it is a cost line: it begins with a digit, +, - or * */
    uint8_t odd[FP_LINES_CAP / 8 + 8];         /* it has more than positions and counts of at most eight digits with
                                                  single blanks between them, or it is longer than 64 bytes */
};

/* At least 57 bits of a map from bit `at` on. */
static inline uint64_t fp_callgrind_line_bits(const uint8_t *map, uint32_t at) {
    return fp_u64(map + (at >> 3)) >> (at & 7);
}

/* Takes lines from p on apart.  Cost lines begin with `columns` positions, 1 to 3.  [p, end) is whole lines.  Bytes of
 * [end, readable) may be looked at; there is no newline among them.  Returns what is behind the last line that was
 * taken apart.  That is p itself if the first line is longer than FP_LINES_LONGEST. */
const uint8_t *fp_callgrind_lines_read(struct fp_callgrind_lines *l, const uint8_t *p, const uint8_t *end,
                                       const uint8_t *readable, uint32_t columns, uint32_t wide);

#endif
