/* callgrind/lines.h - splits text of Callgrind or Cachegrind into lines and the numbers in them.  C only.
 *
 * This is the first step of reading.  It treats lines of all kinds alike, so no branch depends on their content.
 * callgrind/rows.c then turns the cost lines into rows.
 */
#pragma once

#include "core/core.h"

/* Instruction sets.  Each value includes those before it. */
enum fp_wide {
    FP_PLAIN = 0,  /* every machine */
    FP_AVX2 = 1,   /* AVX2 and BMI2 */
    FP_AVX512 = 2, /* AVX-512 with VBMI2 */
};

/* The widest that this machine has. */
uint32_t fp_callgrind_costs_wide(void);

enum {
    FP_LINES_NBYTES = 2048,             /* bytes parsed at once; the last line may extend beyond them */
    FP_LINES_LONGEST = 8192,            /* maximum length of a line that is parsed */
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
 * A number is a run of digits, negative after a minus.  A `*` in place of a position is a number, too: 0.  The value of
 * a number with more than eight digits is wrong; its line is odd. */
struct fp_callgrind_lines {
    uint32_t n;                       /* lines */
    uint16_t begin[FP_LINES_CAP + 1]; /* the start of line i; begin[n] is the end of the last line */
    uint16_t first[FP_LINES_CAP + 1]; /* line i has numbers first[i] .. first[i + 1] - 1 */
    int64_t value[FP_LINES_CAP];
    /* a bit a line: */
    uint8_t relative[3][FP_LINES_CAP / 8 + 8]; /* a cost line's position k has a sign, or is `*` */
    uint8_t cost[FP_LINES_CAP / 8 + 8];        /* it is a cost line: it begins with a digit, +, - or * */
    uint8_t odd[FP_LINES_CAP / 8 + 8]; /* it has anything but positions and counts of at most eight digits with single
                                          blanks between them, or is longer than 64 bytes */
};

/* At least 57 bits of a map from bit `at` on. */
static inline uint64_t fp_callgrind_line_bits(const uint8_t *map, uint32_t at) {
    return fp_u64(map + (at >> 3)) >> (at & 7);
}

/* Parses lines from p on.  Cost lines begin with `columns` positions, 1 to 3.  [p, end) consists of complete lines.
 * Bytes of [end, readable) may be read; they have no newline.  Returns the byte after the last line parsed, which is p
 * if the first line is longer than FP_LINES_LONGEST. */
const uint8_t *fp_callgrind_lines_read(struct fp_callgrind_lines *l, const uint8_t *p, const uint8_t *end,
                                       const uint8_t *readable, uint32_t columns, uint32_t wide);
