/* heaptrack/read.h - a recording of heaptrack, file versions 1 to 3 -> rows of stacks.
 *
 *   v 10400 3           version of heaptrack and of the file
 *   s 4 main            string 1; before version 3 without its length
 *   i 7f34 1 1 2 7      instruction pointer 1: address, module, and (function, file, line), innermost first
 *   t 1 0               trace 1: instruction pointer, the trace of its caller (0: none)
 *   a 64 1              allocation 0: size, trace
 *   + 0                 is made
 *   - 0                 is freed
 *   c 14, R a3          time in milliseconds, resident pages
 *
 * Numbers are hexadecimal.  A trace is a stack of the model.  As heaptrack_print does, operator new is left out, and
 * stacks begin at main.  The rows come after the last line.
 *
 * Memory: linear in the distinct strings, instruction pointers, traces and allocations (12 to 24 bytes each).  Blocks
 * in use take none, as a free names its allocation. Source: heaptrack's src/analyze/accumulatedtracedata.cpp; files of
 * heaptrack 1.2 to 1.4.
 */
#pragma once

#include "core/core.h"

struct fp_heaptrack {
    struct fp_heap_sums heap;
    uint64_t version;
    uint64_t page_size, resident; /* most pages */
    uint32_t command;             /* a string of the model */
    uint64_t FP_COUNT(bad_lines, "unreadable-lines");
    uint64_t FP_COUNT(half_lines, "unreadable-rest");
};

/* Borrows the model.  Caller owns. */
struct fp_heaptrack *fp_heaptrack_new(struct fp_model *model, int lenient);
void fp_heaptrack_free(struct fp_heaptrack *f);

/* FP_MORE, FP_FULL, FP_DONE or an error.  The batch has FP_HEAP_COLUMNS value columns. */
int fp_heaptrack_feed(struct fp_heaptrack *f, struct fp_window *in, struct fp_batch *out, struct fp_err *err);
