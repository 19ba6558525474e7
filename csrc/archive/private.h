/* archive/private.h - shared by the archive's C files.  Private. */
#pragma once

#include "archive/archive.h"
#include "archive/io.h"
#include "archive/time.h"

/* A run of rows of one part inside a chunk. */
struct fp_archive_run {
    uint32_t part;
    uint32_t rows;
    uint32_t n_values;
    uint32_t positions;
};

/* The tables of struct fp_archive_ids. */
enum {
    FP_T_STRINGS,
    FP_T_OBJECTS,
    FP_T_MAPPINGS,
    FP_T_FUNCTIONS,
    FP_T_LINES,
    FP_T_FRAMES,
    FP_T_STACKS,
    FP_T_LABELS,
    FP_T_THREADS
};

/* fp_archive_ids_new for the owner of *to, which is NULL. */
void fp_archive_ids_begin(struct fp_archive_ids **to, struct fp_model *m);

/* ---- an encoder and a decoder for each view ---------------------------- */

/* Streams of a chunk before those of its value columns. */
enum { FP_TIMELINE_STREAMS = 10, FP_STACKS_STREAMS = 4, FP_GRAPH_STREAMS = 15 };

struct fp_archive_encoder {
    struct fp_archive_enc pub;
    struct fp_buf *streams; /* the fixed ones of the view, then those of the values */
    uint32_t n_streams, streams_cap;
    uint32_t n_fixed;
    struct fp_archive_run *runs;
    uint32_t n_runs, runs_cap;
    uint32_t *seen; /* bitmap of thread ids in pub.threads */
    uint32_t seen_words, threads_cap;
    struct fp_archive_timeline *timeline;
    struct fp_archive_graph *graph;
    struct fp_archive_stacks *stacks;
};

struct fp_archive_decoder {
    struct fp_archive_ids *ids;
    struct fp_archive_filter *filter;
    const uint8_t *p;
    struct fp_cursor *streams;
    uint32_t n_streams, streams_cap;
    struct fp_archive_run *runs;
    uint32_t n_runs, runs_cap;
    uint32_t run, left; /* the run being decoded, rows left in it */
    uint32_t rows;
    uint32_t view;
    struct fp_archive_timeline *timeline;
    struct fp_archive_graph *graph;
    struct fp_archive_stacks *stacks;
};

/* The stream of value column k of a graph: of its calls, or of its other rows when `call` is 0. */
static inline uint32_t fp_archive_graph_value_stream(uint32_t k, int call) {
    return FP_GRAPH_STREAMS + 2 * k + (call ? 1 : 0);
}

/* The functions of each view.  put adds the rows of a batch; flush completes the streams.  open begins a chunk; pull
 * appends its next n rows to `b`; on an error it sets *what to the damaged field. */
#define FP_VIEW_CODEC(name)                                                                                  \
    struct fp_archive_##name *fp_archive_##name##_new(void);                                                 \
    void fp_archive_##name##_free(struct fp_archive_##name *s);                                              \
    int fp_archive_##name##_put(struct fp_archive_encoder *e, const struct fp_batch *b, uint32_t positions); \
    int fp_archive_##name##_flush(struct fp_archive_encoder *e);                                             \
    int fp_archive_##name##_open(struct fp_archive_decoder *d);                                              \
    int fp_archive_##name##_pull(struct fp_archive_decoder *d, struct fp_batch *b, uint32_t n, const char **what);
FP_VIEW_CODEC(timeline)
FP_VIEW_CODEC(stacks)
FP_VIEW_CODEC(graph)
#undef FP_VIEW_CODEC

/* Packs a value column: 64-bit numbers in `stream` become varints. */
void fp_archive_values_pack(struct fp_buf *stream);

/* The state of reading a packed value column. */
struct fp_archive_value_cur {
    uint64_t divisor;
    uint64_t last; /* zigzag of the last value, divided */
};

/* Begins to read `n` packed value columns.  Grows *values, an array of capacity *cap that the caller owns, and
 * initializes their states in it. */
void fp_archive_values_open(struct fp_cursor *streams, uint32_t n, struct fp_archive_value_cur **values, uint32_t *cap);

static inline int64_t fp_archive_value_next(struct fp_cursor *c, struct fp_archive_value_cur *v) {
    const uint64_t code = fp_cursor_number(c), zig = code - 1;
    if (FP_UNLIKELY(zig == v->last)) /* stands for -2^63, see fp_archive_values_pack */
        v->last = code ? UINT64_MAX : v->last;
    else
        v->last = code ? zig : v->last;
    return (int64_t)(fp_zag(v->last) * v->divisor);
}
