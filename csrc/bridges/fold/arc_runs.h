/* bridges/fold/arc_runs.h - sorted runs of call arcs, packed and summed caller by caller.
 *
 * A spilled run is read once, so writing it, reading it and freeing its page cache takes longer than packing.  A record
 * of 40 bytes takes 5 to 16:
 *
 *   bits 0-1: bytes of the step, 2-3: of the calls, 4-5: of the ticks, 6-7: of the subcalls, as 1 << bits
 *   step        from the previous record's key to this one, caller << 32 | callee; 0: a whole key follows: group
 *               (4 bytes), key (8 bytes)
 *   calls, ticks, subcalls
 *
 *   group 0, 7 -> 5, 2 calls, 300 ticks, 2 subcalls, then 7 -> 9, 1, 20, 1:
 *   10 00 00000000 0500000007000000 02 2c01 02    00 04 01 14 01
 *
 * A run consists of blocks.  Each begins with a whole key, so reading can start there.
 *
 * Callers are processed in order, each from all runs that have it.  A caller has many callees, and function ids are
 * dense.  So each run adds its arcs of the caller to an array indexed by callee, with a bit set for each callee
 * present.  No arcs are compared, which is faster than merging.
 *
 *   run A: a -> b 10, a -> c 3, b -> d 1      run B: a -> b 7, b -> c 2
 *   gives  a -> b 17, a -> c 3, b -> c 2, b -> d 1
 *
 * Memory: 32 bytes a function for each struct fp_arc_sums.
 */
#pragma once

#include "bridges/fold/fold.h"

enum {
    FP_ARC_PACKED = 38,  /* maximum size of a packed record in bytes */
    FP_ARC_BLOCK = 2048, /* a block ends with the record that brings it to this many bytes or more */
    FP_ARC_SLACK = 64    /* bytes after the end that may be read or written; their content is undefined */
};

/* Where a block of a run begins. */
struct fp_arc_block {
    uint64_t group, key; /* of its first record */
    uint64_t offset;
};

/* A run that is being written. */
struct fp_arc_pack {
    uint64_t nbytes; /* so far */

    /* private from here on */
    uint64_t group, key, block_end; /* of the last record; the earliest end of its block */
};

/* Packs `n` words of records as fp_fold_pull_arcs writes them, no key less than the one before.  `to` has room for
 * FP_ARC_PACKED bytes of each and FP_ARC_SLACK.  `blocks` gets the *n_blocks blocks that begin among them: at most one,
 * plus one for each FP_ARC_BLOCK bytes of that room.  Returns the number of bytes. */
size_t fp_arc_pack(struct fp_arc_pack *p, const uint64_t *words, size_t n, uint8_t *to, struct fp_arc_block *blocks,
                   uint32_t *n_blocks);

struct fp_arc_sums {
    uint32_t n_functions; /* callees are below this */

    /* private from here on */
    struct fp_arc_run *runs;
    uint32_t *heap; /* runs that have arcs left, the one with the least caller first */
    uint32_t n_heap, cap_runs, cap_heap;
    uint64_t end[2];         /* the first group and key that are out of range */
    uint64_t caller;         /* group << 32 | caller: of the sums */
    struct fp_arc_sum *sums; /* by callee */
    uint64_t *called;        /* a bit for each callee that has a sum */
    uint64_t *words;         /* a bit for each word of `called` that is not 0 */
    uint32_t *used;          /* numbers of the words of `words` that this caller has set, in order */
    uint32_t n_used, next;   /* `next`: index in `used` of the next sum */
};

/* Caller owns. */
struct fp_arc_sums *fp_arc_sums_new(uint32_t n_functions);
void fp_arc_sums_free(struct fp_arc_sums *s);

/* Sets the input: blocks of runs, consecutive from `bytes` on, `nbytes[i]` of run i, and FP_ARC_SLACK after all of
 * them.  Only records with low <= (group, key) < high are read.  NULL: no such bound.  Borrows the bytes until all sums
 * are pulled.  FP_DONE or FP_E_MALFORMED. */
int fp_arc_sums_begin(struct fp_arc_sums *s, const uint8_t *bytes, const size_t *nbytes, uint32_t n_runs,
                      const uint64_t *low, const uint64_t *high, struct fp_err *err);

/* Fills `to` with records, in order, up to `n` words; *got becomes their number, 0 at the end.  A sum beyond 2^64 - 1
 * becomes several records, each as large as possible (up to 2^80, an error soon afterwards).  FP_DONE, or
 * FP_E_MALFORMED: the bytes differ from those written. */
int fp_arc_sums_pull(struct fp_arc_sums *s, uint64_t *to, size_t n, size_t *got, struct fp_err *err);
