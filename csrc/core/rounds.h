/* core/rounds.h - sorts records by time, in memory that does not grow with the input.
 *
 * Recorders write one buffer per CPU, so records are in order only within a buffer.  After each pass over all buffers
 * they write a mark.  Records after a mark are not older than the newest record before the previous mark, so a mark
 * releases everything up to that time:
 *
 *   put 5 9 | round | put 6 12 8 | round: 5 6 8 9 | put 11 15 | round: 11 12 | end: 15
 *
 * Records of the same time keep the order in which they were put.  A late record is delivered at the next
 * opportunity and adds to n_late.  Without marks, everything is delivered at the end.
 *
 * Waiting records beyond `most` bytes are spilled as a sorted run.  This code does no I/O: it returns FP_NEEDS, the
 * caller performs `asks` on a temporary file and calls again.
 */
#pragma once

#include "core/sort.h"

enum fp_rounds_asks {
    FP_ROUNDS_WRITE = 1, /* append bytes[0 .. n_bytes) to the temporary file */
    FP_ROUNDS_READ = 2   /* fill bytes[0 .. n_bytes) from `offset` of the file */
};

struct fp_rounds {
    uint64_t most;   /* bytes in memory; set by the caller */
    uint64_t n_late; /* records older than one that was delivered before they were put */
    uint64_t n_runs_ever;

    /* after FP_NEEDS */
    int32_t asks;
    uint8_t *bytes;
    size_t n_bytes;
    uint64_t offset;

    /* after FP_FULL: the next record, valid until the next call */
    uint64_t time;
    uint32_t tag;
    uint32_t n;
    const uint8_t *p;

    /* private from here on */
    struct fp_rounds_block *blocks; /* records: struct fp_rounds_head, then bytes, padded to 8 */
    uint32_t n_blocks, cap_blocks;
    uint32_t block, free_blocks; /* the one being filled, the first free one; + 1, 0: none */
    uint64_t live;               /* bytes of records in blocks */
    int32_t is_out;              /* the record delivered last is in a block */
    struct fp_keyed *keys;       /* item: the place of the record */
    uint32_t n_keys, cap_keys;
    uint32_t at; /* sorted: the next key */
    int32_t sorted;
    uint64_t limit;   /* records up to this time may be delivered */
    uint64_t newest;  /* of all records put */
    uint64_t noted;   /* `newest` at the last mark */
    uint64_t reached; /* time of the last record delivered */

    int32_t writing;            /* a run is being written */
    uint8_t *chunk;             /* its next bytes */
    uint64_t written;           /* bytes of the temporary file */
    struct fp_rounds_run *runs; /* in the order in which they were written */
    uint32_t n_runs, cap_runs;
    struct fp_rounds_top *heap; /* runs that are not at their end, the one with the oldest record first */
    uint32_t n_heap, cap_heap;
    uint32_t reading; /* the run that waits for bytes + 1, or 0 */
    int32_t from_run; /* the record delivered last is of the first run in the heap */
};

/* All 0 but `most` is an empty one. */
void fp_rounds_clear(struct fp_rounds *r);

/* Adds a record of n bytes with a tag, any number.  0, or FP_NEEDS: call again with the same record.  Only
 * when `next` has returned FP_DONE. */
int fp_rounds_put(struct fp_rounds *r, uint64_t time, uint32_t tag, const uint8_t *p, uint32_t n);

/* A mark; then call `next`. */
void fp_rounds_mark(struct fp_rounds *r);

/* The end of the input, or a time before which nothing more comes: everything may be delivered. */
void fp_rounds_end(struct fp_rounds *r);

/* The next record that may be delivered: FP_FULL.  FP_DONE: none.  FP_NEEDS: call again. */
int fp_rounds_next(struct fp_rounds *r);
