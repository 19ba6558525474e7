/* pgo/binary.h - LLVM's binary and extbinary sample profiles as the rows of pgo/read.h.
 *
 *   binary      magic, version, summary, names, functions
 *   extbinary   magic, version, sections: the caller finds them, decompresses them and names each
 *
 *   names       n { bytes, NUL }; of MD5 names n { number }, in 8 bytes each or ULEB128
 *   contexts    n { frames { name, offset, discriminator } }, outermost first
 *   function    calls, name or context, level
 *   level       total, n { offset, discriminator, count, targets { name, count } }, n { offset, discriminator, name,
 *               level }, and with types of virtual tables n { offset, discriminator, types { name, count } }
 *
 * Numbers are ULEB128.  An MD5 name becomes its number in decimal, as llvm-profdata prints it.
 *
 * Memory: the model's growth, nested levels, 4 bytes a name, 12 bytes a frame of a context.
 * Source: LLVM's SampleProf.h and SampleProfReader.cpp.
 */
#pragma once

#include "pgo/read.h"

enum fp_pgo_section {
    FP_PGO_WHOLE = 0, /* a file of the encoding `binary` */
    FP_PGO_NAMES = 1,
    FP_PGO_MD5_NAMES = 2,       /* as ULEB128 */
    FP_PGO_FIXED_MD5_NAMES = 3, /* 8 bytes each */
    FP_PGO_CONTEXTS = 4,
    FP_PGO_FUNCTIONS = 5
};

struct fp_pgo_binary {
    struct fp_pgo_reader *rows; /* owned: levels and counts */
    int32_t has_contexts;       /* functions have the index of a context, not of a name */
    int32_t has_tables;         /* levels end with types of virtual tables */
    uint64_t FP_COUNT(types, "types-of-tables", not_representable, "type of a virtual table",
                      "types of virtual tables");
    uint64_t FP_COUNT(bad_end, "unreadable-rest");

    /* private from here on */
    int32_t phase, after_table;
    int32_t is_damaged; /* lenient: nothing more is read */
    uint32_t *names;    /* strings */
    uint32_t n_names, cap_names;
    struct fp_pgo_frame *frames; /* of contexts */
    uint32_t n_frames, cap_frames;
    uint32_t *ends; /* by context: the end of its frames */
    uint32_t n_contexts, cap_contexts;
    uint64_t depths;          /* the sum of those of the contexts of functions so far */
    struct fp_pgo_open *open; /* by level */
    uint32_t cap_open;
    uint64_t left;     /* entries of the table or summary that is read */
    uint64_t of_entry; /* frames of a context, targets of a record or types at a place that are left */
    uint64_t total;    /* of the level that begins */
    uint32_t frame;    /* of the record */
    const char *what, *want;
};

struct fp_pgo_binary *fp_pgo_binary_new(struct fp_model *model, int lenient);
void fp_pgo_binary_free(struct fp_pgo_binary *b);

/* What the window has from now on (enum fp_pgo_section).  Names come first, then contexts. */
void fp_pgo_binary_begin(struct fp_pgo_binary *b, int section);

/* FP_MORE, FP_FULL, FP_DONE at the end of the section, or an error.  The batch has FP_PGO_COLUMNS value columns. */
int fp_pgo_binary_feed(struct fp_pgo_binary *b, struct fp_window *in, struct fp_batch *out, struct fp_err *err);
