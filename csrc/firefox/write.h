/* firefox/write.h - processed profiles of the Firefox Profiler: their tables, as columns of JSON text.
 *
 * The format stores a table as arrays of equal length, one after the other.  Rows come one by one, so each array is a
 * buffer here, with a comma after each item; the caller spills full buffers and assembles the file at the end.
 *
 *   stack tree    0: main   1: main > f     "stackTable": {"frame": [0,1], "prefix": [null,0], "length": 2}
 *   samples of a thread                     "stack": [0,1,0,null], "timeDeltas": [0,10e-6,20e-6,70e-6],
 *                                           "weight": [10e-6,20e-6,70e-6,0]
 *
 * A sample of a timeline is an interval in which the stack of a thread stays the same; its weight is its length in
 * milliseconds, and so is the time to the next sample.  Calls must nest, times are nanoseconds (bridges/rows/nest.h).
 *
 * Memory: linear in the model's tables, in threads and in open calls; when a timeline has many call paths, they are
 * dropped and later written again.  Viewers merge equal paths.
 * Source: firefox-devtools/profiler src/types/profile.ts, version 60.
 */
#ifndef FP_FIREFOX_WRITE_H
#define FP_FIREFOX_WRITE_H

#include "core/unique.h"
#include "core/batch.h"
#include "core/buf.h"
#include "core/model.h"

/* cffi-begin */

/* The columns that all threads share. */
enum fp_firefox_shared {
    FP_FIREFOX_STRINGS = 0,
    FP_FIREFOX_STACK_FRAME = 1,
    FP_FIREFOX_STACK_PREFIX = 2,
    FP_FIREFOX_FRAME_ADDRESS = 3,
    FP_FIREFOX_FRAME_DEPTH = 4,
    FP_FIREFOX_FRAME_CATEGORY = 5,
    FP_FIREFOX_FRAME_FUNC = 6,
    FP_FIREFOX_FRAME_LINE = 7,
    FP_FIREFOX_FUNC_NAME = 8,
    FP_FIREFOX_FUNC_RESOURCE = 9,
    FP_FIREFOX_FUNC_SOURCE = 10,
    FP_FIREFOX_FUNC_LINE = 11,
    FP_FIREFOX_RESOURCE_NAME = 12,
    FP_FIREFOX_SOURCE_NAME = 13,
    FP_FIREFOX_SHARED = 14
};

/* The columns of thread k begin at FP_FIREFOX_SHARED + k * stride.  Of stacks: `stack`, and a column of weights for
 * each value type.  Of a timeline: */
enum fp_firefox_timeline {
    FP_FIREFOX_STACK = 0,
    FP_FIREFOX_WEIGHT = 1, /* also the time to the next sample; the last sample has none */
    FP_FIREFOX_MARKER_DATA = 2,
    FP_FIREFOX_MARKER_NAME = 3,
    FP_FIREFOX_MARKER_TIME = 4, /* 8 bytes each, for fp_firefox_times */
    FP_FIREFOX_TIMELINE = 5
};

/* Categories, which have colours: 1 to 11 are the first objects, 0 is everything else. */
enum { FP_FIREFOX_CATEGORIES = 12 };

/* How the values of a column become weights. */
enum fp_firefox_unit {
    FP_FIREFOX_AS_IT_IS = 0,
    FP_FIREFOX_SECONDS = 1, /* written as milliseconds */
    FP_FIREFOX_MICROSECONDS = 2,
    FP_FIREFOX_NANOSECONDS = 3
};

struct fp_firefox_thread {
    uint32_t thread, part; /* its id in the model; the part of its first row */
    uint64_t first;        /* timeline: time of the first sample */
    uint64_t samples, markers;

    /* private from here on */
    /* open calls, outermost first, and the time of the last change */
    uint64_t last;
    struct fp_firefox_call *calls;
    uint32_t n, cap;
};

struct fp_firefox {
    struct fp_model *model; /* borrowed */
    uint32_t stride;
    uint32_t n_values;                         /* stacks */
    const int32_t *units;                      /* of each: enum fp_firefox_unit; borrowed */
    uint32_t unknown, no_stack, custom, typed; /* names, strings of the model */
    uint32_t most_paths;                       /* of a timeline in memory */
    /* The columns to spill: columns[dirty[0 .. n_dirty)], the only non-empty ones, `buffered` bytes. */
    struct fp_buf *columns;
    uint32_t *dirty;
    uint32_t n_dirty;
    uint64_t buffered;
    /* lengths of tables */
    uint64_t n_strings, n_stacks, n_frames, n_funcs, n_resources, n_sources;
    struct fp_firefox_thread *threads; /* in the order in which they occur */
    uint32_t n_threads, current;       /* that of the last row */
    uint32_t *objects;                 /* of the model, by resource */
    /* counts */
    uint64_t samples, events, calls;
    uint64_t empty;     /* calls without a sample, because they took no time */
    uint64_t arguments; /* left out */
    uint64_t without_stack;
    uint64_t unplaced; /* frames whose address is dropped, because it is in no known object */
    uint64_t replaced; /* bytes of names that are not UTF-8 */
    /* private from here on */
    uint32_t cap_columns, cap_dirty, cap_threads, cap_objects;
    uint32_t *thread_of, *string_of, *source_of, *object_of, *function_of, *frame_of, *stack_of; /* 0 = none yet */
    uint32_t cap_thread_of, cap_string_of, cap_source_of, cap_object_of, cap_function_of, cap_frame_of, cap_stack_of;
    uint32_t empty_stack;
    struct fp_firefox_recent *recent;
    struct fp_table funcs;   /* (function, name, object) */
    struct fp_table paths;   /* (stack before, function) */
    uint64_t first_path;     /* the stack that is row 1 of `paths` */
    uint32_t *above, *nodes; /* scratch: lines, stacks */
    uint32_t cap_above, cap_nodes;
    struct fp_buf text;
    struct fp_unique texts; /* names as UTF-8 */
    struct fp_buf scratch;
};

/* Borrows the model.  NULL when memory ran out. */
struct fp_firefox *fp_firefox_new(struct fp_model *model);
void fp_firefox_free(struct fp_firefox *w);

/* Adds the rows of a batch; of stacks, value k of a sample is column columns[k], or 0 where that is below 0.
 * FP_DONE or FP_E_NOMEM. */
int fp_firefox_put(struct fp_firefox *w, const struct fp_batch *b, const int32_t *columns);

/* After the last row of a timeline: adds the final sample of each thread without its weight, 0, so that the weights are
 * the times to all samples after the first.  FP_DONE or FP_E_NOMEM. */
int fp_firefox_end(struct fp_firefox *w);

/* To be called when all columns were spilled. */
void fp_firefox_spilled(struct fp_firefox *w);

/* Appends n times as milliseconds since `start`, each with a comma after it.  0 or FP_E_NOMEM. */
int fp_firefox_times(const uint8_t *times, size_t n, uint64_t start, struct fp_buf *out);

/* Appends `item`, n bytes, `times` times. */
int fp_firefox_repeat(const char *item, size_t n, uint64_t times, struct fp_buf *out);

/* Appends from, from + 1 ... below `to`, each with a comma after it. */
int fp_firefox_count(uint64_t from, uint64_t to, struct fp_buf *out);

/* cffi-end */

#endif
