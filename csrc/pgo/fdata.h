/* pgo/fdata.h - BOLT's fdata: branches between places of symbols, or counts of them, as rows of stacks.
 *
 *   1 main 1f 1 walk/1 0 3 90     a branch: kind, symbol and offset of both ends, times mispredicted, times taken
 *   1 main 2a 0 [unknown] 0 0 8   kind 0: no symbol of the program
 *   4 main 8 4 table 10 7         memory: an instruction, a datum, times loaded
 *
 *   no_lbr cycles                 first line of a file without branches: the event
 *   1 main 1f 90                  symbol, offset, times
 *
 * A branch is a row of the stack of source and target, a count one of its place.  Line is the offset in bytes, which
 * the file has in hexadecimal.
 *
 * Columns: taken, mispredicted and straight, as of branch stacks; without branches one.  Memory: the model's growth.
 * Source: BOLT's DataReader.cpp.
 */
#pragma once

#include "core/core.h"

struct fp_pgo_fdata {
    struct fp_model *model; /* borrowed */
    int32_t lenient;
    int32_t no_lbr; /* set by the caller: the first line begins with no_lbr */
    uint64_t FP_COUNT(loads, "memory-loads", not_representable, "place(s) that (loads|load) from memory");
    uint64_t FP_COUNT(blank, "blank-lines", repairs, "blank line(s)");
    uint64_t FP_COUNT(unread, "unreadable-lines");

    /* private from here on */
    uint64_t n_lines;
    uint8_t *name; /* without its escapes */
    uint32_t cap_name;
};

struct fp_pgo_fdata *fp_pgo_fdata_new(struct fp_model *model, int lenient, int no_lbr);
void fp_pgo_fdata_free(struct fp_pgo_fdata *r);

/* FP_MORE, FP_FULL, FP_DONE or an error.  The batch has 3 value columns, with no_lbr 1. */
int fp_pgo_fdata_feed(struct fp_pgo_fdata *r, struct fp_window *in, struct fp_batch *out, struct fp_err *err);
