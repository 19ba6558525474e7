/* fp_archive_priv.h - what the archive's C files share.  Private. */
#ifndef FP_ARCHIVE_PRIV_H
#define FP_ARCHIVE_PRIV_H

#include "fp_archive.h"
#include "fp_archive_io.h"

/* A run of rows of one part inside a chunk. */
struct fp_archive_run {
    uint32_t part;
    uint32_t rows;
    uint32_t n_values;
    uint32_t positions;
};

/* Which table of struct fp_archive_ids. */
enum { T_STRINGS, T_OBJECTS, T_MAPPINGS, T_FUNCTIONS, T_LINES, T_FRAMES, T_STACKS, T_LABELS, T_THREADS };

/* ---- times: a lattice, symbols, and a range coder per context ---------- */

enum {
    FP_TIME_POOLS = 8,      /* contexts without a function, see fp_time_pool */
    FP_TIME_PHASES = 48,    /* contexts of the jitter symbol: 16 phases x the last jitter */
    FP_TIME_HISTORIES = 27, /* short, middle or long: the last three steps of the thread */
    FP_TIME_HASH_BITS = 18, /* contexts with history are hashed to so many bits */
    FP_TIME_BITS = 10,      /* frequencies of a table add up to 1 << 11 */
    FP_TIME_TABLES = 1000,  /* most tables of one chunk */
    FP_TIME_ESCAPE = 504,   /* symbol: the time went back; 64 raw bits follow */
    FP_TIME_SYMBOLS = 505
};
#define FP_TIME_NO_FUNCTION 0xfffffff0u /* + pool: a key without a function */

/* Where a thread stands on the lattice: time = ref + frac / 2^32. */
struct fp_archive_time_at {
    uint64_t ref;
    uint32_t frac;
    uint32_t epoch;   /* 0: the thread has no row in this chunk yet */
    uint32_t history; /* of steps: ((third * 3) + second) * 3 + last */
    uint32_t jitter;  /* last jitter symbol, 0 to 2 */
};

/* Encodes n times into three streams.  key[i] is the context of row i, at[] is
 * indexed by thread[i].  0 or FP_E_NOMEM. */
int fp_archive_time_encode(const uint64_t *time, const uint32_t *key, const uint32_t *thread, uint32_t n,
                           uint32_t n_keys, uint32_t n_threads, struct fp_buf *tables, struct fp_buf *words,
                           struct fp_buf *bits);

struct fp_archive_time_dec;
struct fp_archive_time_dec *fp_archive_time_dec_new(void);
void fp_archive_time_dec_free(struct fp_archive_time_dec *d);
/* Starts on a chunk.  0, FP_E_NOMEM or FP_E_MALFORMED (without details). */
int fp_archive_time_dec_open(struct fp_archive_time_dec *d, uint32_t n_keys, const uint8_t *const *p, const size_t *n);
/* The time of the next row.  After damage any number; see fp_archive_time_dec_bad. */
uint64_t fp_archive_time_next(struct fp_archive_time_dec *d, uint32_t key, struct fp_archive_time_at *at);
int fp_archive_time_dec_bad(const struct fp_archive_time_dec *d);

/* ---- one encoder and one decoder a view -------------------------------- */

enum { FP_TIMELINE_STREAMS = 10, FP_STACKS_STREAMS = 4, FP_GRAPH_STREAMS = 15 };

struct fp_archive_gather {
    struct fp_archive_enc pub;
    struct fp_buf *streams; /* the fixed ones, then those of the values */
    uint32_t n_streams, streams_cap;
    uint32_t n_fixed;
    struct fp_archive_run *runs;
    uint32_t n_runs, runs_cap;
    uint32_t *seen; /* bitmap of thread ids in pub.threads */
    uint32_t seen_words, threads_cap, sums_cap;
    struct fp_archive_timeline *timeline;
    struct fp_archive_graph *graph;
    struct fp_archive_stacks *stacks;
};

struct fp_archive_spread {
    const struct fp_archive_ids *ids;
    const struct fp_archive_filter *filter;
    const uint8_t *p;
    struct fp_archive_cur *streams;
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

/* The stream of value column k (graph: of cost rows when `call` is 0). */
static inline uint32_t fp_archive_graph_value_stream(uint32_t k, int call) {
    return FP_GRAPH_STREAMS + 2 * k + (call ? 1 : 0);
}

#define FP_VIEW_CODEC(name)                                                                                 \
    struct fp_archive_##name *fp_archive_##name##_new(void);                                                \
    void fp_archive_##name##_free(struct fp_archive_##name *s);                                             \
    int fp_archive_##name##_put(struct fp_archive_gather *e, const struct fp_batch *b, uint32_t positions); \
    int fp_archive_##name##_flush(struct fp_archive_gather *e);                                             \
    int fp_archive_##name##_open(struct fp_archive_spread *d);                                              \
    int fp_archive_##name##_pull(struct fp_archive_spread *d, struct fp_batch *b, uint32_t n, const char **what);
FP_VIEW_CODEC(timeline)
FP_VIEW_CODEC(stacks)
FP_VIEW_CODEC(graph)
#undef FP_VIEW_CODEC

/* Value columns: raw numbers gathered in a stream become varints, and back. */
int fp_archive_values_pack(struct fp_buf *stream);

/* Reads value after value of a packed column. */
struct fp_archive_value_cur {
    uint64_t divisor;
    uint64_t last;
};

/* Begins the value columns in `n` packed streams: *values, grown to hold them
 * (*cap, owned by the caller), gets each one's divisor.  0 or FP_E_NOMEM. */
int fp_archive_values_open(struct fp_archive_cur *streams, uint32_t n, struct fp_archive_value_cur **values,
                           uint32_t *cap);

static inline uint64_t fp_archive_value_next(struct fp_archive_cur *c, struct fp_archive_value_cur *v) {
    uint64_t code = fp_archive_cur_varint(c);
    if (code) v->last = code - 1 == fp_zig(v->last) ? (uint64_t)1 << 63 : fp_zag(code - 1);
    return v->last * v->divisor;
}

#endif
