/* archive/graph.h - the streams of a chunk of graphs.  Private to the archive's C files. */
#pragma once

#include "archive/private.h"

/* Streams of a graph chunk, before those of its values. */
enum {
    FP_GRAPH_S_KIND,     /* a byte a row: kind and the bits below */
    FP_GRAPH_S_FUNCTION, /* rows with FP_GRAPH_ROW_FUNCTION */
    FP_GRAPH_S_FILE,     /* rows with FP_GRAPH_ROW_FILE */
    FP_GRAPH_S_LINE,     /* difference to the previous row; so are the next two */
    FP_GRAPH_S_ADDRESS,
    FP_GRAPH_S_BB,
    FP_GRAPH_S_CALLEE,      /* calls */
    FP_GRAPH_S_TARGET_LINE, /* calls: difference to the callee's last target; so is the next one */
    FP_GRAPH_S_TARGET_ADDRESS,
    FP_GRAPH_S_TARGET_BB, /* calls and jumps, each like the line */
    FP_GRAPH_S_JUMP,      /* jumps: function and file, as differences to the row's own */
    FP_GRAPH_S_JUMP_LINE, /* jumps: difference to the row's own line; so is the next one */
    FP_GRAPH_S_JUMP_ADDRESS,
    FP_GRAPH_S_COUNT,
    FP_GRAPH_S_COUNT2
};

/* A byte of FP_GRAPH_S_KIND: enum fp_kind, whether function and file differ from the previous row's, and whether a row
 * has values although its kind usually has none. */
enum {
    FP_GRAPH_ROW_KIND = 7,
    FP_GRAPH_ROW_FUNCTION = 8,
    FP_GRAPH_ROW_FILE = 16,
    FP_GRAPH_ROW_VALUES = 32,
    FP_GRAPH_ROW_END = 64
};

/* Whether every row of this kind has values.  Other rows with values have FP_GRAPH_ROW_VALUES. */
static inline int fp_archive_always_valued(uint32_t kind) {
    return kind == FP_COST || kind == FP_CALL;
}
