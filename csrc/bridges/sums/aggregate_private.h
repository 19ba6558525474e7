/* bridges/sums/aggregate_private.h - the state of an aggregate.  Private. */
#pragma once

#include "bridges/sums/aggregate.h"
#include "bridges/sums/packed.h"

/* A packed block of one function, all of it in memory. */
struct fp_aggregate_block {
    uint64_t at, nbytes; /* in `bytes` */
    uint32_t before;     /* the function's previous block + 1; 0 = none */
    uint32_t level;      /* 64 blocks of a level are merged into one of the next */
    uint32_t alike;      /* blocks of this level up to this one */
};

/* The block that is being filled; its head is written when it is closed. */
struct fp_aggregate_open_block {
    uint32_t function;
    uint32_t rows; /* 0: no block is open */
    uint32_t n_columns;
    int32_t unsorted;
    uint64_t at;
    struct fp_packed_before packed;
    struct fp_packed_row row, row_before; /* row_before: the last one */
};

struct fp_aggregate_sorting {
    struct fp_packed_row *rows;
    struct fp_packed_row **order; /* two arrays */
    int64_t *values;
    uint32_t cap_rows, cap_order, cap_values;
};

struct fp_aggregate_private {
    struct fp_name_order order;
    uint8_t *bytes; /* packed blocks */
    size_t n, cap;
    struct fp_aggregate_block *blocks;
    uint32_t n_blocks, cap_blocks;
    uint32_t *last; /* function -> its last block + 1 */
    uint32_t cap_last;
    int64_t *values; /* of the row that is being added */
    struct fp_aggregate_open_block open;
    struct fp_aggregate_sorting sorting;
    struct fp_packed_merge chain; /* blocks of one function that become one */
    struct fp_buf merged;

    /* fp_aggregate_in_order: the last row, and the function it was booked on */
    int32_t any;
    uint32_t last_function, last_file, last_line, last_booked;

    /* output */
    struct fp_packed_merge merging;
    int32_t from_runs;
    int32_t in_function; /* `merging` has rows of a function yet to come */
    uint32_t *functions; /* those that have rows, in order */
    uint32_t n_functions, next_function;
    int32_t held; /* the row of a function that may have no others was read */
    uint32_t held_function;
};
