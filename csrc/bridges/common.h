/* bridges/common.h - what several bridges share.  Private. */
#ifndef FP_BRIDGES_COMMON_H
#define FP_BRIDGES_COMMON_H

#include "core/fp.h"

/* The words of a position: a row of a table of graph positions.  The address takes two. */
enum {
    FP_POSITION_FUNCTION = 0,
    FP_POSITION_FILE = 1,
    FP_POSITION_LINE = 2,
    FP_POSITION_ADDRESS = 3,
    FP_POSITION_WIDTH = 5
};

/* `what` is an id that its table of `n` rows does not have. */
static inline int fp_unknown_id(struct fp_err *err, const char *what, uint32_t id, uint32_t n) {
    return fp_fail_got(err, FP_E_MALFORMED, 0, what, FP_GOT_UNSIGNED, id, "less than %", n);
}

/* The rank of a number, 32 for each power of two:
 *
 *   rank 0..31    that number       rank 32..63    32..63       rank 64..95    64..127, two numbers each ...
 */
static inline uint32_t fp_rank_of(uint64_t v) {
    if (v < 32) return (uint32_t)v;
    const uint32_t shift = 58 - (uint32_t)__builtin_clzll(v);
    return shift * 32 + (uint32_t)(v >> shift);
}

/* The least number of a rank. */
static inline uint64_t fp_rank_begin(uint32_t rank) {
    return rank < 64 ? rank : (uint64_t)(32 + rank % 32) << (rank / 32 - 1);
}

#endif
