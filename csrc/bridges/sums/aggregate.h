/* bridges/sums/aggregate.h - sums graph rows of the same place.
 *
 * Rows of the same kind, function, file, position and target become one row whose counts and values are the sums:
 *
 *     main  a.c:10  cost  5 2           main  a.c:10  cost  8 2
 *     main  a.c:10  call  f 1x  40  ->  main  a.c:10  call  f 3x  90
 *     f     a.c:3   cost  40            f     a.c:3   cost  90
 *     main  a.c:10  call  f 2x  50
 *     f     a.c:3   cost  50
 *     main  a.c:10  cost  3
 *
 * Files are mostly sorted: a function is named, then its rows follow by ascending position.  So rows need no lookup.
 * They are packed as they arrive (packed.h), about 15 bytes each, into blocks of one function.  Blocks of one function
 * are merged at the end.  If the rows of a function arrive unsorted, every FP_AGGREGATE_BLOCK of them are sorted; 64
 * blocks of a function become one.
 *
 * To limit memory, the caller spills a sorted run (fp_aggregate_spill), then calls fp_aggregate_empty.  At the end all
 * runs are merged.  The output does not depend on the spills.  Its order: by object, file and name of the function, as
 * bytes, then as in packed.h.
 *
 * Memory: the packed rows, 32 bytes a block, 8 bytes a function of the model and 12 bytes for each of its strings and
 * functions.
 */
#pragma once

#include "core/core.h"

enum fp_aggregate_mode {
    FP_AGGREGATE_GRAPH = 0, /* complete rows */
    /* Self costs by file, function name and line.  Objects, addresses and basic
     * blocks are dropped.  Rows of other kinds are dropped and counted. */
    FP_AGGREGATE_LINES = 1
};

enum { FP_AGGREGATE_BLOCK = 4096, FP_AGGREGATE_RUNS = 64 };

/* A window on a spilled run; the caller owns the bytes and fills them. */
struct fp_aggregate_window {
    uint8_t *p; /* followed by 8 bytes that may be read */
    size_t cap;
    size_t pos, n; /* p[pos .. n) is yet to be read */
    int32_t eof;   /* no bytes follow p[n-1] */
};

struct fp_aggregate {
    struct fp_model *model;
    uint32_t mode;      /* enum fp_aggregate_mode */
    uint32_t n_columns; /* value columns so far */
    uint64_t dropped;   /* rows that the mode dropped (calls and jumps) */
    size_t bytes;       /* memory that fp_aggregate_empty would free */
    uint32_t to_refill; /* after FP_MORE: the window to refill */
    struct fp_aggregate_window *windows;

    /* private from here on */
    struct fp_aggregate_private *its;
};

/* Borrows the model; FP_AGGREGATE_LINES adds to its functions. */
struct fp_aggregate *fp_aggregate_new(struct fp_model *model, uint32_t mode);
void fp_aggregate_free(struct fp_aggregate *a);

/* Widens all rows to `n` value columns (never narrows).  0 or FP_E_OVERFLOW. */
int fp_aggregate_set_values(struct fp_aggregate *a, uint32_t n, struct fp_err *err);

/* Adds the rows of a graph batch; its value k goes to column columns[k].  0 or FP_E_OVERFLOW when a sum does not fit;
 * err->line is then the source line. */
int fp_aggregate_put(struct fp_aggregate *a, const struct fp_batch *in, const uint32_t *columns, struct fp_err *err);

/* 0: no row of the batch is a call; 1: none of its calls are counted; 2: some are. */
int fp_aggregate_calls(const struct fp_batch *b);

/* Whether an empty aggregate of lines would return the rows of this batch unchanged, after those of the batches checked
 * before: all are self costs, and each place comes once and in order.  1 or 0.  Replaces the functions of the batch by
 * those that lines are booked on. */
int fp_aggregate_in_order(struct fp_aggregate *a, struct fp_batch *b);

/* Moves the rows of each function f < n with to[f] != 0 to function to[f], which is not moved itself.  These rows must
 * be in their function's own file, which becomes that of to[f].  Call it after the last row, before anything was
 * spilled. 0, FP_E_OVERFLOW, or FP_E_MALFORMED for a function that the model does not have. */
int fp_aggregate_move(struct fp_aggregate *a, const uint32_t *to, uint32_t n, struct fp_err *err);

/* Call after the last row: rows can now be pulled or spilled, from the first one on.  0 or FP_E_OVERFLOW. */
int fp_aggregate_finish(struct fp_aggregate *a, struct fp_err *err);

/* Drops all rows, so that new ones can be added. */
void fp_aggregate_empty(struct fp_aggregate *a);

/* Pull or spill the merged rows of `n` runs next.  The caller fills a->windows, which are empty at first.  At most
 * FP_AGGREGATE_RUNS. */
int fp_aggregate_merge(struct fp_aggregate *a, uint32_t n);

/* Fills a batch of a->n_columns value columns.  FP_FULL: drain and call again; FP_DONE: no more rows; FP_MORE: refill
 * a->windows[a->to_refill], FP_E_OVERFLOW. */
int fp_aggregate_pull(struct fp_aggregate *a, struct fp_batch *out, struct fp_err *err);

/* The same as bytes of a run, from to[*at] on.  FP_FULL when fewer than fp_aggregate_room() bytes are left. */
int fp_aggregate_spill(struct fp_aggregate *a, uint8_t *to, size_t *at, size_t n, struct fp_err *err);

/* The minimum size of a window and of the buffer of a spill, in bytes. */
size_t fp_aggregate_room(const struct fp_aggregate *a);
