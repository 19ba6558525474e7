/* archive/graph.h - the streams of a chunk of graphs.  Private to the archive's C files. */
#ifndef FP_ARCHIVE_GRAPH_H
#define FP_ARCHIVE_GRAPH_H

#include "archive/private.h"

/* Streams of a graph chunk, before those of its values. */
enum {
    S_KIND,     /* a byte a row: kind and the bits below */
    S_FUNCTION, /* rows with ROW_FUNCTION */
    S_FILE,     /* rows with ROW_FILE */
    S_LINE,     /* difference to the previous row; so are the next two */
    S_ADDRESS,
    S_BB,
    S_CALLEE,      /* calls */
    S_TARGET_LINE, /* calls: difference to the callee's last target; so is the next one */
    S_TARGET_ADDRESS,
    S_TARGET_BB, /* calls and jumps, each like the line */
    S_JUMP,      /* jumps: function and file, as differences to the row's own */
    S_JUMP_LINE, /* jumps: difference to the row's own line; so is the next one */
    S_JUMP_ADDRESS,
    S_COUNT,
    S_COUNT2
};

/* A byte of S_KIND: enum fp_kind, whether function and file differ from the previous row's, and whether a row has
 * values although its kind usually has none. */
enum { ROW_KIND = 7, ROW_FUNCTION = 8, ROW_FILE = 16, ROW_VALUES = 32, ROW_END = 64 };

/* Whether every row of this kind has values.  Other rows with values have ROW_VALUES. */
static inline int fp_archive_always_valued(uint32_t kind) {
    return kind == FP_COST || kind == FP_CALL;
}

#endif
