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

#endif
