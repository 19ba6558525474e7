/* firefox/read.h - profiles of the Firefox Profiler -> stacks or timeline rows: processed profiles of any version, and
 * raw ones of Gecko.
 *
 *   processed                                         raw
 *   {"meta": ..., "libs": [...],                      {"meta": ..., "libs": [...],
 *    "threads": [{"samples": {"stack": [1, 1],         "threads": [{"samples": {"schema": {"stack": 0, "time": 1},
 *                             "time": [0, 1]}}],                                "data": [[1, 0.5], [1, 1.5]]}}],
 *    "shared": {"stackTable": {...}, ...}}             "processes": [{...}]}
 *
 * Columns are found by name.  Newer versions renamed columns and moved tables from threads to `shared`, but kept their
 * meaning.
 *
 * A table is stored column by column, and may come after the samples that refer to it.  So reading has two steps: the
 * scan keeps the numbers of each known column, which the caller spills; then the tables are read row by row:
 *
 *   strings, sources, resources, functions, frames, stacks     of `shared`
 *   these tables, then samples, allocations or markers         of each thread; values of counters with its markers
 *
 * Memory: names and frames, and 4 to 20 bytes for each row of a table other than samples and markers.
 * Source: firefox-devtools/profiler, docs-developer/CHANGELOG-formats.md, src/profile-logic/process-profile.ts.
 */
#pragma once

#include "core/core.h"

/* cffi-begin guarded */

/* The tables, in the order in which they are read. */
enum fp_firefox_kind {
    FP_FIREFOX_STRING_TABLE = 0,
    FP_FIREFOX_SOURCES,
    FP_FIREFOX_RESOURCES,
    FP_FIREFOX_FUNCS,
    FP_FIREFOX_FRAMES,
    FP_FIREFOX_STACKS,
    FP_FIREFOX_SAMPLES, /* this and later tables become rows */
    FP_FIREFOX_JS,      /* allocations */
    FP_FIREFOX_NATIVE,
    FP_FIREFOX_MARKERS,
    FP_FIREFOX_COUNTERS,
    FP_FIREFOX_KINDS
};

enum {
    FP_FIREFOX_COLUMNS = 6,    /* maximum per table */
    FP_FIREFOX_KEPT = 1 << 20, /* bytes of columns kept in memory before a spill */
};

/* Columns of samples and allocations.  Times, CPU times and weights are fixed-point numbers with this many decimals. */
enum fp_firefox_sample_column {
    FP_FIREFOX_IN_STACK = 0,
    FP_FIREFOX_IN_TIME,     /* 6 */
    FP_FIREFOX_IN_DELTA,    /* 6 */
    FP_FIREFOX_IN_WEIGHT,   /* 0 */
    FP_FIREFOX_IN_CPU,      /* 3 */
    FP_FIREFOX_IN_WEIGHT_MS /* 6: the weight again, used if weights are milliseconds, which may become known only later
                             */
};

/* How weights become values. */
enum fp_firefox_weights { FP_FIREFOX_WHOLE = 0, FP_FIREFOX_MS = 1 };

/* What the caller must do after FP_NEEDS, before the next call. */
enum fp_firefox_request {
    FP_FIREFOX_SPILL = 1,  /* spill the columns `dirty`, and call fp_firefox_kept */
    FP_FIREFOX_WINDOW = 2, /* pass the next numbers of column `requested_column` to fp_firefox_window */
    FP_FIREFOX_ROUNDS = 3  /* serve `rounds` */
};

/* A table of a thread, or one that all threads share. */
struct fp_firefox_table {
    uint32_t kind;                          /* enum fp_firefox_kind */
    uint32_t thread;                        /* the thread that has it + 1; 0: shared.  Of FP_FIREFOX_COUNTERS: the
                                               counter + 1 */
    uint64_t at;                            /* where it begins */
    int64_t length;                         /* as stated in the file; -1: not stated */
    uint32_t has;                           /* columns found, one bit each */
    uint32_t weight_type;                   /* string of the model; 0: none */
    int32_t is_early;                       /* its rows come before its schema */
    uint8_t schema[64];                     /* by position in a row: column + 1 */
    struct fp_buf kept[FP_FIREFOX_COLUMNS]; /* numbers that are not spilled yet (columns.c) */
    size_t blocks[FP_FIREFOX_COLUMNS];      /* bytes of `kept` that are blocks; numbers of 8 bytes follow */
    uint64_t numbers[FP_FIREFOX_COLUMNS];   /* by column: how many, spilled ones included */
    /* set by the caller before the rows: value columns, or -1 */
    int32_t value_column;  /* weights; native allocations: bytes above 0 only */
    int32_t second_column; /* samples: CPU time; native allocations: all bytes */
    int32_t weights;       /* enum fp_firefox_weights */
    int64_t cpu_divisor;   /* for CPU times with 3 decimals */
};

struct fp_firefox_process {
    int64_t start_ns;              /* since 1970; INT64_MIN: unknown */
    int64_t interval_ns;           /* INT64_MIN: unknown */
    int32_t version, preprocessed; /* -1: none */
    uint32_t product, cpu_unit;    /* strings of the model */
    uint32_t default_value;        /* fastprof's own: the name of the default value type */
    uint32_t parent;
};

struct fp_firefox_lib {
    uint32_t process;
    uint32_t thread;                                       /* the thread that has it + 1; 0: shared */
    uint32_t number;                                       /* in its list */
    uint32_t name, path, debug_name, code_id, breakpad_id; /* strings of the model */
    uint32_t addresses;                                    /* a string: what they count from, in our own profiles */
    int64_t start, end, offset;                            /* raw profiles: its mapping; INT64_MIN: not stated */
    /* set by the caller before the rows */
    uint32_t object, mapping;
    uint64_t base; /* added to addresses relative to the library */
};

struct fp_firefox_thread_in {
    uint32_t process;
    uint32_t name, process_name, pid, tid; /* strings of the model */
    uint32_t value, value_unit;            /* fastprof's own fields: the value type of its samples, */
    uint32_t times_from;                   /* the nanoseconds that times count from; empty: they are numbers */
    int32_t has_value;
    uint64_t at;
    uint32_t thread;  /* of the model; set by the caller before the rows */
    int64_t start_ns; /* the origin of its times; set by the caller; INT64_MIN: stacks rows get no times */
};

struct fp_firefox_counter {
    uint32_t process;
    uint32_t name, category, pid; /* strings of the model */
    uint32_t has_table;
    int64_t main_thread; /* its number in the file; INT64_MIN: not stated */
    /* set by the caller before the rows */
    uint32_t thread;  /* of the model */
    int64_t start_ns; /* the origin of its times */
};

struct fp_firefox_counts {
    uint64_t intervals;
    uint64_t FP_COUNT(markers, "markers", not_representable, "marker(s) ({-O firefox.markers} reads these)");
    uint64_t FP_COUNT(counters, "counters", not_representable, "counter(s) ({-O firefox.markers} reads these, too)");
    /* Without a time, or sums beyond a double. */
    uint64_t FP_COUNT(counter_values, "counter-values");
    uint64_t early; /* tables whose rows come before their schema: need a second scan */
    uint64_t FP_COUNT(bad_values, "unreadable-values", losses, "unreadable value(s) of (a table|tables)");
    uint64_t FP_COUNT(rounded, "rounded-weights");
    uint64_t FP_COUNT(short_columns, "short-columns", losses,
                      "table(s) with (a column|columns) that (is|are) too short");
    uint64_t FP_COUNT(bad_stacks, "circular-stacks", losses,
                      "stack whose prefix does not come before it, read as a root",
                      "stacks whose prefixes do not come before them, read as roots");
    uint64_t FP_COUNT(bad_end, "unreadable-rest");
    /* Whose weight, a time, is not counted. */
    uint64_t FP_COUNT(idle, "idle-samples", not_representable, "sample(s) without a stack, whose time is idle");
    uint64_t rows; /* samples, or markers and values of counters */
    uint64_t FP_COUNT(unpaired, "unpaired-markers", not_representable,
                      "begin marker(s) without an end, or the reverse");
    uint64_t FP_COUNT(lanes, "overlapping-markers", repairs, "thread(s) added for overlapping markers");
    uint64_t FP_COUNT(cut, "shortened-markers", repairs,
                      "marker(s) cut because (it|they) (overlaps|overlap) too many others");
};

/* cffi-end */

#include "firefox/state.h"

/* cffi-begin guarded */

struct fp_firefox_read {
    struct fp_model *model; /* borrowed */
    int32_t lenient;
    int32_t timeline; /* 1: markers and values of counters become rows; 0: they are only counted */
    int32_t again;    /* the file can be scanned twice, for tables whose rows come before their schema */
    const struct fp_firefox_read *before; /* of the second scan: the first one, borrowed; else NULL */
    struct fp_firefox_process *processes;
    struct fp_firefox_thread_in *threads;
    struct fp_firefox_lib *libs;
    struct fp_firefox_table *tables;
    struct fp_firefox_counter *of_counters;
    uint32_t n_processes, n_threads, n_libs, n_tables, n_of_counters;
    uint32_t request; /* after FP_NEEDS: enum fp_firefox_request */
    uint64_t *dirty;  /* columns to spill: table * FP_FIREFOX_COLUMNS + column */
    uint32_t n_dirty, requested_column;
    struct fp_rounds rounds; /* of markers */
    struct fp_firefox_counts counts;

    /* private from here on */
    uint32_t table; /* the current one */
    struct fp_firefox_in_scan scan;
    struct fp_firefox_in_rows rows;
};

/* Borrows the model.  Caller owns. */
struct fp_firefox_read *fp_firefox_read_new(struct fp_model *model, int lenient);
void fp_firefox_read_free(struct fp_firefox_read *r);

/* Scans the file for its tables.  If `early` is not 0 afterwards, a new reader, with `before` set, must scan the file
 * again.  FP_MORE, FP_NEEDS, FP_DONE or an error. */
int fp_firefox_scan(struct fp_firefox_read *r, struct fp_window *in, struct fp_err *err);

/* Call it once the dirty columns are spilled. */
void fp_firefox_kept(struct fp_firefox_read *r);

/* Sorts libraries by process, thread, start and number, after the scan. */
void fp_firefox_sort_libs(struct fp_firefox_read *r);

/* Selects a thread; call it before fp_firefox_begin for its tables. */
void fp_firefox_use_thread(struct fp_firefox_read *r, uint32_t thread);

/* Starts reading the rows of a table.  `pulls`: it is the last one of its thread's markers and counters, after which
 * they become rows, in order of time.  0 or an error. */
int fp_firefox_begin(struct fp_firefox_read *r, uint32_t table, int pulls, struct fp_err *err);

/* Sets the next bytes of column `requested_column`, as one `kept` had them; they must stay valid until the next
 * FP_NEEDS for it. */
void fp_firefox_window(struct fp_firefox_read *r, const uint8_t *p, size_t nbytes);

/* Reads the rows of the table.  FP_FULL, FP_NEEDS, FP_DONE or an error. */
int fp_firefox_rows(struct fp_firefox_read *r, struct fp_batch *out, struct fp_err *err);
