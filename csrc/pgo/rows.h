/* pgo/rows.h - the levels of a profile that is read, and its rows (pgo/read.h): for the text and the binary encodings.
 * C only.
 */
#pragma once

#include "pgo/read.h"

enum { FP_PGO_MOST_LEVELS = 4096 };

/* A function, and the call in its caller. */
struct fp_pgo_level {
    uint32_t function;
    uint32_t caller; /* the frame of the caller at the call; 0: none */
    uint32_t stack;  /* of callers down to that one, which the model keeps until the feed returns; 0: none */
};

/* Forgets the stacks of levels: the model may be without them. */
void fp_pgo_begin_rows(struct fp_pgo_reader *r);

uint32_t fp_pgo_function_of(struct fp_pgo_reader *r, uint32_t string);
uint32_t fp_pgo_frame_at(struct fp_pgo_reader *r, uint32_t function, uint64_t offset, uint64_t discriminator);

/* Opens a level below `depth` others. */
void fp_pgo_open_level(struct fp_pgo_reader *r, uint32_t depth, uint32_t caller, uint32_t function);

/* Adds a row of the frames of callers of `depth` levels, then of up to two frames.  0 or FP_FULL. */
int fp_pgo_add_row(struct fp_pgo_reader *r, uint32_t depth, uint32_t first, uint32_t second, uint32_t column,
                   uint64_t value, struct fp_batch *out);
