/* ends/places.h - sums graph rows by source line or by instruction, for the files or functions that are shown.
 *
 *     main  a.c:10  cost  5                of the file a.c:
 *     main  a.c:10  call  f 1x  40         line 10   8
 *     f     b.c:3   cost  40         ->    line 10   => f 3x  90
 *     main  a.c:10  call  f 2x  50
 *     f     b.c:3   cost  50               of the file b.c, which is hidden:
 *     main  a.c:10  cost  3                f 90
 *
 * A group is shown or hidden as a whole: a file (its string id), or by address a function.  At the first row of each
 * group the caller decides whether to keep its rows.  Self costs are kept for all groups, in files by function name.
 *
 * Memory: a kept row takes 32 bytes, a group or a function in it 16, each value 8 more, and the index up to 12.
 */
#pragma once

#include "core/core.h"

enum fp_places_keep {
    FP_PLACES_UNKNOWN = 0, /* not decided: FP_NEEDS */
    FP_PLACES_TOTAL = 1,   /* only the self costs are kept */
    FP_PLACES_ROWS = 2
};

/* Sums in columns: values[1 + k][i] is value k of key i.  Column 0: for rows the number of calls, for groups the
 * largest self cost of a function, without its sign. */
struct fp_places_sums {
    struct fp_table keys;
    int64_t **values;
    uint32_t n_columns, cap_columns;
    uint32_t cap; /* keys */
};

struct fp_places {
    struct fp_model *model;
    uint32_t by_address; /* by instruction of functions; otherwise by line of files */
    uint32_t n_values;
    uint32_t requested;           /* after FP_NEEDS: the group */
    struct fp_places_sums groups; /* fp_places_end: self costs by group */

    /* private from here on */
    struct fp_places_sums functions; /* self costs by (group, name); by address the name is 0 */
    uint8_t *keep;                   /* by group: enum fp_places_keep */
    uint32_t cap_keep;
    uint32_t resume; /* the row of the batch that caused FP_NEEDS */
    struct fp_places_sums rows;
    uint32_t *order; /* fp_places_end: rows by group and place */
    uint32_t at, end;
};

/* Borrows the model. */
struct fp_places *fp_places_new(struct fp_model *model, int by_address);
void fp_places_free(struct fp_places *p);

/* Sets what to keep of a group. */
int fp_places_keep(struct fp_places *p, uint32_t group, uint32_t keep);

/* Adds the rows of a graph batch; its value k goes to value columns[k].  Jumps are skipped.  FP_DONE.  FP_NEEDS: set
 * what to keep of the group p->requested, and call again with the same batch.  FP_E_OVERFLOW when a sum does not fit;
 * err->line is then the source line. */
int fp_places_put(struct fp_places *p, const struct fp_batch *in, const uint32_t *columns, struct fp_err *err);

/* After the last row: fills p->groups, whose largest functions are those by `value`, and sorts the kept rows.  FP_DONE
 * or FP_E_OVERFLOW. */
int fp_places_end(struct fp_places *p, uint32_t value, struct fp_err *err);

/* Selects the kept rows of a group, for fp_places_pull. */
void fp_places_select(struct fp_places *p, uint32_t group);

/* Fills a batch with the selected rows: by address or line; self costs before calls.  By line they have neither
 * function nor address.  FP_FULL: drain and call again; FP_DONE: no more rows. */
int fp_places_pull(struct fp_places *p, struct fp_batch *out);
