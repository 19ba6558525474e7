/* pgo/read.h - LLVM sample profiles in text as rows of stacks.
 *
 *   main:1430:1                     function, total, calls
 *    1: 1                           line - line of the function's declaration: count
 *    4.2: 200 hash:180 walk:20      .2: the base discriminator; targets of calls
 *    4.3: size:600                  `size`, inlined here: total
 *     1: 300
 *   [main:3 @ walk]:20:2            a function in the context of its callers
 *
 * A count becomes a row of the stack of inlined functions, outermost first; line is the offset, column the
 * discriminator.  A target is a row with the target as leaf, and the calls of a function are a row of its own.
 *
 * Columns: enum fp_pgo_column.  Memory: the model's growth, nested levels.
 * Source: LLVM's SampleProfReader.cpp.
 */
#pragma once

#include "core/core.h"

enum fp_pgo_column { FP_PGO_SAMPLES = 0, FP_PGO_CALLS = 1, FP_PGO_ENTRIES = 2, FP_PGO_COLUMNS = 3 };

struct fp_pgo_reader {
    struct fp_model *model; /* borrowed */
    int32_t lenient;
    uint64_t functions;
    /* !CFGChecksum, !Attributes */
    uint64_t FP_COUNT(metadata, "metadata-lines", not_representable, "line(s) of metadata");
    uint64_t FP_COUNT(blank, "blank-lines", repairs, "blank line(s)");
    uint64_t FP_COUNT(unread, "unreadable-lines");

    /* private from here on */
    struct fp_pgo_level *levels; /* n_levels of them are open */
    uint32_t n_levels, cap_levels;
    uint32_t base; /* levels of the function itself, with those of its context; 0: none is open */
    uint64_t n_lines;
    size_t left; /* bytes of a line whose first rows were passed on; 0: none */
};

struct fp_pgo_reader *fp_pgo_reader_new(struct fp_model *model, int lenient);
void fp_pgo_reader_free(struct fp_pgo_reader *r);

/* FP_MORE, FP_FULL, FP_DONE or an error.  The batch has FP_PGO_COLUMNS value columns. */
int fp_pgo_feed(struct fp_pgo_reader *r, struct fp_window *in, struct fp_batch *out, struct fp_err *err);
