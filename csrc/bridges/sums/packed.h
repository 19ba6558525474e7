/* bridges/sums/packed.h - graph rows as bytes: sorted blocks of one function each, and cursors that merge them.
 * Private.
 *
 * A row of a graph takes 100 bytes and 8 for each value.  Packed it takes about 15, because positions ascend and most
 * values are small.  A block is a run of rows of one function in ascending order:
 *
 *     block   u32 function   u32 rows   u32 value columns   rows ...
 *     row     u8 what        kind (3 bits) | PACKED_FILE | PACKED_ADDRESS | PACKED_TARGET
 *             file           varint string, if PACKED_FILE; else the previous row's, at first the function's own
 *             line           signed varint, less the previous row's
 *             address bb     signed varints, less the previous row's, if PACKED_ADDRESS; else unchanged
 *             call, jump     varints: callee, target line, if PACKED_TARGET: file, address, bb of the target; count,
 *                            and of conditional jumps count2
 *             values         of cost and call: 4 bits for each column, its length, then its bytes, low first
 *
 *     length 0 to 8: a number of that many bytes;  9 to 15: minus a number of 1 to 7.   -3 is 9 and one byte, 03
 *
 * The order of rows within a function: the row that only names it, then by address, basic block, file (the function's
 * own first), line, kind, callee and target.  Files and functions are in the order of struct fp_name_order.
 */
#pragma once

#include "bridges/sums/name_order.h"

/* One row.  `values` has as many columns as the cursor or block that it belongs to. */
struct fp_packed_row {
    uint32_t function, file, line, kind; /* kind: enum fp_kind */
    uint32_t callee, target_file, target_line;
    uint64_t address, bb, target_address, target_bb;
    uint64_t count, count2;
    int64_t *values;
};

/* The state that the next row of a block is packed against. */
struct fp_packed_before {
    uint32_t file, line;
    uint64_t address, bb;
};

enum { FP_PACKED_HEAD = 12, FP_PACKED_SLACK = 8 };

/* No packed row is longer.  A reader may look FP_PACKED_SLACK bytes past a row's end. */
static inline size_t fp_packed_most(uint32_t n_columns) {
    return 96 + (size_t)n_columns * 9;
}

/* Appends a row; returns the new end.  Needs room for fp_packed_most() bytes. */
uint8_t *fp_packed_put(uint8_t *to, struct fp_packed_before *before, const struct fp_packed_row *row,
                       uint32_t n_columns);

/* Reads a row without its function; returns its end.  Sets the values of the first `n_columns` columns. */
const uint8_t *fp_packed_take(const uint8_t *p, struct fp_packed_before *before, struct fp_packed_row *row,
                              uint32_t n_columns);

/* A block that is being written at to[at ...].  All zero: no block is open. */
struct fp_packed_block {
    size_t at;
    uint32_t function, rows, n_columns;
    struct fp_packed_before before;
};

/* Appends a row at to[at], with room for fp_packed_most() and FP_PACKED_HEAD; returns the new end.  A row of another
 * function ends the block and begins the next. */
size_t fp_packed_append(struct fp_packed_block *b, const struct fp_model *m, uint8_t *to, size_t at,
                        const struct fp_packed_row *row, uint32_t n_columns);
void fp_packed_end(struct fp_packed_block *b, uint8_t *to);

/* Below 0, 0 or above 0 as row `a` comes before, at or after row `b` of the same function. */
int fp_packed_row_compare(const struct fp_name_order *order, const struct fp_packed_row *a,
                          const struct fp_packed_row *b);

/* Adds the counts and values of a row of the same place.  FP_DONE or FP_E_OVERFLOW. */
int fp_packed_row_add(struct fp_packed_row *to, const struct fp_packed_row *more, uint32_t n_columns,
                      struct fp_err *err);

/* ---- merging ---- */

/* Reads rows of consecutive blocks from p[0 .. n).  When the bytes end, its owner moves the rest to
 * the front of the window and appends to it, or sets `eof`. */
struct fp_packed_row_cursor {
    const uint8_t *p, *end;
    int32_t eof;
    uint32_t rows; /* left in the block */
    uint32_t n_columns;
    struct fp_packed_before before;
    struct fp_packed_row row; /* the next one */
};

struct fp_packed_merge {
    const struct fp_name_order *order;
    struct fp_packed_row_cursor *cursors;
    uint32_t n;         /* cursors */
    uint32_t n_columns; /* of `row` */
    uint32_t *heap;     /* cursors by their next row */
    uint32_t n_heap, n_started;
    uint32_t to_refill;       /* after FP_MORE: the cursor to refill */
    int32_t have;             /* `row` is 0: empty, 1: a sum that may grow, 2: already returned */
    int32_t used;             /* the next row of the heap's first cursor is in `row` */
    int32_t alone;            /* no other cursor has rows of that cursor's block, so they need no comparison */
    struct fp_packed_row row; /* after FP_FULL: the sum of all rows of its place */
    int64_t *values;          /* for row and cursors */
    size_t cap_values;
    uint32_t cap_heap, cap_cursors;
};

/* Restarts with `n` cursors, all empty, to be refilled first, and rows of n_columns. */
int fp_packed_merge_begin(struct fp_packed_merge *m, const struct fp_name_order *order, uint32_t n, uint32_t n_columns);
void fp_packed_merge_clear(struct fp_packed_merge *m);

/* Stores the next row in m->row.  FP_FULL: stored.  FP_MORE: refill m->to_refill.  FP_DONE.  FP_E_OVERFLOW. */
int fp_packed_merge_next(struct fp_packed_merge *m, struct fp_err *err);
