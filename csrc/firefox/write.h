/* firefox/write.h - processed profiles of the Firefox Profiler: their tables, as columns of JSON text.
 *
 * The format stores a table as arrays of equal length, one after the other.  Rows come one by one, so each array is
 * a buffer here, with a comma after each item; the caller spills full buffers and assembles the file at the end.
 *
 *   stack tree    0: main   1: main > f     "stackTable": {"frame": [0,1], "prefix": [null,0], "length": 2}
 *   samples of a thread                     "stack": [0,1,0,null], "timeDeltas": [0,10e-6,20e-6,70e-6],
 *                                           "weight": [10e-6,20e-6,70e-6,0]
 *
 * A sample of a timeline is an interval during which the stack of a thread stays the same.  Its weight is the length of
 * the interval in milliseconds, which is also the time to the next sample.  Calls must nest, and times are nanoseconds
 * (bridges/rows/nest.h).
 *
 * Memory: linear in the model's tables, threads and open calls.  Call paths of a timeline, when there are too many, and
 * stacks that the model has removed are forgotten and written again when they recur; viewers merge equal paths.
 * Source: firefox-devtools/profiler src/types/profile.ts, version 60.
 */
#pragma once

#include "core/core.h"

/* The shared columns. */
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

/* The columns of thread k begin at FP_FIREFOX_SHARED + k * FP_FIREFOX_STRIDE. */
enum fp_firefox_columns {
    FP_FIREFOX_STACK = 0,
    FP_FIREFOX_WEIGHT = 1, /* timeline: also the time to the next sample; the last sample has none */
    FP_FIREFOX_DELTA = 2,  /* stacks: the time to the sample before, without the first one */
    /* timeline */
    FP_FIREFOX_MARKER_DATA = 2,
    FP_FIREFOX_MARKER_NAME = 3,
    FP_FIREFOX_MARKER_TIME = 4, /* 8 bytes each, for fp_firefox_times */
    FP_FIREFOX_STRIDE = 5,
    FP_FIREFOX_COUNT = FP_FIREFOX_WEIGHT /* of a counter: differences to the value before */
};

/* Number of categories, which have colours: 1 to 11 are the first 11 objects, 0 all others. */
enum { FP_FIREFOX_CATEGORIES = 12 };

/* How the values of a column become weights. */
enum fp_firefox_unit {
    FP_FIREFOX_UNCHANGED = 0,
    FP_FIREFOX_SECONDS = 1, /* written as milliseconds */
    FP_FIREFOX_MICROSECONDS = 2,
    FP_FIREFOX_NANOSECONDS = 3
};

/* A thread; stacks have a thread for each value type, one after the other.  Or a counter of a thread: its times are in
 * FP_FIREFOX_MARKER_TIME, its values in FP_FIREFOX_COUNT. */
struct fp_firefox_thread {
    uint32_t thread, part; /* thread: its id in the model; part: that of its first row */
    uint32_t is_counter, name;
    uint64_t first; /* time of the first sample or value; stacks: 0 = samples have no times */
    uint64_t samples, markers;

    /* private from here on */
    /* open calls, outermost first, and the time of the last change */
    uint64_t last;
    struct fp_firefox_call *calls;
    uint32_t n, cap;
    double value; /* counter: the sum of what was written */
};

/* A frame of the model on a path, and its row of the stackTable + 1. */
struct fp_firefox_step {
    uint32_t frame, stack;
};

struct fp_firefox {
    struct fp_model *model;                    /* borrowed */
    uint32_t n_values;                         /* stacks */
    const int32_t *units;                      /* of each: enum fp_firefox_unit; borrowed */
    uint32_t unknown, no_stack, custom, typed; /* names, strings of the model */
    uint32_t max_paths;                        /* call paths of a timeline kept in memory */
    /* The columns to spill are columns[dirty[0 .. n_dirty)]; all others are empty.  They have `buffered` bytes. */
    struct fp_buf *columns;
    uint32_t *dirty;
    uint32_t n_dirty;
    uint64_t buffered;
    /* lengths of tables */
    uint64_t n_strings, n_stacks, n_frames, n_funcs, n_resources, n_sources;
    struct fp_firefox_thread *threads; /* in order of appearance */
    uint32_t n_threads, current;       /* current: the thread of the last row */
    uint32_t *libraries; /* by resource: object of the model << 1 | whether addresses count from its base */
    /* counts */
    uint64_t samples, events, calls;
    uint64_t FP_COUNT(empty, "empty-calls", not_representable, "zero-length call(s), which samples cannot show");
    uint64_t FP_COUNT(arguments, "call-arguments");
    uint64_t values; /* of counters */
    /* Values that are not written, because a difference exceeds a double. */
    uint64_t FP_COUNT(counters, "counter-values");
    /* Readers of the differences find a value more than a billionth too large or too small. */
    uint64_t FP_COUNT(rounded, "rounded-counters", not_representable,
                      "value(s) of (a counter,|counters,) rounded by a billionth or more because the value(s) before "
                      "(is|are) much larger");
    uint64_t FP_COUNT(without_stack, "samples-without-stack");
    uint64_t FP_COUNT(without_time, "values-without-time", repairs,
                      "value of a sample without a time, drawn at the time of another of its thread",
                      "values of samples without a time, drawn at the times of others of their threads");
    uint64_t FP_COUNT(unplaced, "addresses");
    uint64_t FP_COUNT(replaced, "invalid-utf8", not_representable, "non-UTF-8 byte(s) of (a name,|names,) replaced");
    /* private from here on */
    uint32_t cap_columns, cap_dirty, cap_threads, cap_libraries;
    uint32_t *thread_of, *string_of, *source_of, *resource_of, *function_of, *frame_of, *stack_of; /* 0 = none yet */
    uint32_t cap_thread_of, cap_string_of, cap_source_of, cap_resource_of, cap_function_of, cap_frame_of, cap_stack_of;
    uint32_t *base_of, *last_base; /* by mapping, by object: mappings that begin at file offset 0 */
    uint32_t cap_base_of, cap_last_base, n_mappings;
    uint32_t empty_stack;
    uint32_t n_emptied;           /* of the model: when this changes, ids of stacks are used again */
    struct fp_firefox_step *path; /* to the last stack of the batch before, from its outermost frame on */
    uint32_t n_path, cap_path;
    struct fp_table counted; /* (thread, name of a counter) */
    uint32_t *counter_of;    /* by row of `counted`: of `threads`, + 1 */
    uint32_t cap_counter_of;
    struct fp_table funcs;   /* (function, name, library) */
    struct fp_table paths;   /* (prefix, function) */
    uint64_t first_path;     /* the stack that is row 1 of `paths` */
    uint32_t *above, *nodes; /* scratch: lines, stacks */
    uint32_t cap_above, cap_nodes;
    struct fp_buf text;
    struct fp_utf8_names texts; /* names as UTF-8 */
    struct fp_buf scratch;
};

/* Borrows the model. */
struct fp_firefox *fp_firefox_new(struct fp_model *model);
void fp_firefox_free(struct fp_firefox *w);

/* Adds the rows of a batch.  For stacks, value k of a sample is that of column columns[k], or 0 if columns[k] < 0. Rows
 * of a thread that have times come in their order, after those that have none.  FP_DONE or FP_E_NOMEM. */
int fp_firefox_put(struct fp_firefox *w, const struct fp_batch *b, const int32_t *columns);

/* Adds the final sample of each thread after the last row of a timeline, but not its weight, which is 0: so the weights
 * are also the times from each sample to the next.  FP_DONE or FP_E_NOMEM. */
int fp_firefox_end(struct fp_firefox *w);

/* Call it once all dirty columns are spilled. */
void fp_firefox_spilled(struct fp_firefox *w);

/* Appends n times as milliseconds since `start`, each followed by a comma.  0 or FP_E_NOMEM. */
int fp_firefox_times(const uint8_t *times, size_t n, uint64_t start, struct fp_buf *out);

/* Appends `item`, n bytes, `times` times. */
int fp_firefox_repeat(const char *item, size_t n, uint64_t times, struct fp_buf *out);

/* Appends the numbers from `from` to `to` - 1, each followed by a comma. */
int fp_firefox_count(uint64_t from, uint64_t to, struct fp_buf *out);
