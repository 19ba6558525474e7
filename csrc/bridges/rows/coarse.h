/* bridges/rows/coarse.h - reduces graph rows to functions, files, objects, lines or arcs.
 *
 *     by function                                       by arc
 *     main  a.c:10  cost 5        main  cost 8          main       cost 8     0
 *     main  a.c:11  cost 3   ->   f     cost 40         main -> f  cost 40    2 calls
 *     main  a.c:11  2 calls of f  40                    f          cost 40    0
 *     f     b.c:3   cost 40
 *
 * Each batch is changed in place.  Adjacent rows that become equal are summed; for other equal rows use
 * bridges/sums/aggregate.h.
 */
#pragma once

#include "core/core.h"

enum fp_coarse_by {
    FP_COARSE_BY_FUNCTION = 0, /* object, file and name */
    FP_COARSE_BY_LINE = 1,     /* the same, and the file and line of the code */
    FP_COARSE_BY_FILE = 2,     /* the file of the code; the row's function is named after the file */
    FP_COARSE_BY_OBJECT = 3,   /* likewise */
    FP_COARSE_BY_ARC = 4       /* functions and their calls.  The last value column gets the number of calls. */
};

struct fp_coarse {
    struct fp_model *model;
    uint32_t by; /* enum fp_coarse_by */
    /* private from here on */
    uint32_t *to; /* the replacement of a function or file; 0 = not known yet */
    uint32_t cap;
};

/* Borrows the model and adds functions to it. */
struct fp_coarse *fp_coarse_new(struct fp_model *model, uint32_t by);
void fp_coarse_free(struct fp_coarse *c);

/* The functions by which the rows of the first `n` functions are grouped, 0 for functions that are not `seen`.
 * FP_DONE, FP_E_MALFORMED for an id that the model does not have. */
int fp_coarse_functions(struct fp_coarse *c, const uint8_t *seen, uint32_t n, uint32_t *to, struct fp_err *err);

/* Changes a graph batch, in place.  By arc, the caller must have added a value column.  FP_DONE, FP_E_OVERFLOW when a
 * sum does not fit (err->line is then the source line), FP_E_MALFORMED for an id that the model does not have. */
int fp_coarse_batch(struct fp_coarse *c, struct fp_batch *b, struct fp_err *err);

/* Turns the samples of a stacks batch into the subtrahend of a difference: negates each value and adds the label `key`:
 * `text` (strings of the model).  FP_DONE or FP_E_OVERFLOW. */
int fp_coarse_base(struct fp_model *model, struct fp_batch *b, uint32_t key, uint32_t text, struct fp_err *err);
