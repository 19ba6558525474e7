/* firefox/read.h - profiles of the Firefox Profiler -> stacks or timeline rows: processed profiles of any version, and
 * raw ones of Gecko.
 *
 *   processed                                         raw
 *   {"meta": ..., "libs": [...],                      {"meta": ..., "libs": [...],
 *    "threads": [{"samples": {"stack": [1, 1],         "threads": [{"samples": {"schema": {"stack": 0, "time": 1},
 *                             "time": [0, 1]}}],                                "data": [[1, 0.5], [1, 1.5]]}}],
 *    "shared": {"stackTable": {...}, ...}}             "processes": [{...}]}
 *
 * Columns are found by their names.  From version to version they moved, from threads to `shared`, or got another name,
 * but what they mean stayed.
 *
 * The arrays of a table follow each other, and tables may follow the samples that refer to them.  So the scan keeps
 * each known column as numbers, which the caller spills, and afterwards the tables are read row by row:
 *
 *   strings, sources, resources, functions, frames, stacks     what all threads share
 *   the same, then samples, allocations or markers             of each thread
 *
 * Memory: 4 to 20 bytes for each row of a table other than samples and markers; what the model takes.
 * Source: firefox-devtools/profiler, docs-developer/CHANGELOG-formats.md, src/profile-logic/process-profile.ts.
 */
#ifndef FP_FIREFOX_READ_H
#define FP_FIREFOX_READ_H

#include "core/batch.h"
#include "core/json_lex.h"
#include "core/model.h"
#include "core/rounds.h"

/* cffi-begin */

/* The tables, in the order in which they are read. */
enum fp_firefox_kind {
    FP_FIREFOX_STRING_TABLE = 0,
    FP_FIREFOX_SOURCES,
    FP_FIREFOX_RESOURCES,
    FP_FIREFOX_FUNCS,
    FP_FIREFOX_FRAMES,
    FP_FIREFOX_STACKS,
    FP_FIREFOX_SAMPLES, /* what has rows from here on */
    FP_FIREFOX_JS,      /* allocations */
    FP_FIREFOX_NATIVE,
    FP_FIREFOX_MARKERS,
    FP_FIREFOX_KINDS
};

enum {
    FP_FIREFOX_COLUMNS = 6,   /* of a table, at most */
    FP_FIREFOX_KEPT = 1 << 20 /* bytes of columns in memory; then they are spilled */
};

/* Columns of samples and allocations.  Times, CPU times and weights are kept with the decimals given. */
enum fp_firefox_sample_column {
    FP_FIREFOX_IN_STACK = 0,
    FP_FIREFOX_IN_TIME,     /* 6 */
    FP_FIREFOX_IN_DELTA,    /* 6 */
    FP_FIREFOX_IN_WEIGHT,   /* 0 */
    FP_FIREFOX_IN_CPU,      /* 3 */
    FP_FIREFOX_IN_WEIGHT_MS /* 6: the weight once more, for what turns out to be milliseconds */
};

/* How weights become values. */
enum fp_firefox_weights { FP_FIREFOX_WHOLE = 0, FP_FIREFOX_MS = 1 };

/* After FP_ASK: what the caller must do before the next call. */
enum fp_firefox_request {
    FP_FIREFOX_SPILL = 1,  /* spill the columns `dirty`, and call fp_firefox_kept */
    FP_FIREFOX_WINDOW = 2, /* give the next numbers of column `requested_column` (fp_firefox_window) */
    FP_FIREFOX_ROUNDS = 3  /* serve `rounds` */
};

/* A table of a thread, or one that all threads share. */
struct fp_firefox_table {
    uint32_t kind;                          /* enum fp_firefox_kind */
    uint32_t thread;                        /* whose it is + 1; 0: all threads' */
    uint64_t at;                            /* where it begins */
    int64_t length;                         /* as stated; -1: it is not */
    uint32_t has;                           /* columns, a bit each */
    uint32_t weight_type;                   /* string of the model; 0: none */
    struct fp_buf kept[FP_FIREFOX_COLUMNS]; /* numbers of 8 bytes that are not spilled */
    uint64_t numbers[FP_FIREFOX_COLUMNS];   /* of each column, in all */
    /* set by the caller before the rows: value columns, or -1 */
    int32_t value_column;  /* of weights; of native allocations, of those above 0 */
    int32_t second_column; /* of samples, CPU time; of native allocations, of all */
    int32_t weights;       /* enum fp_firefox_weights */
    int64_t cpu_divisor;   /* of CPU times with 3 decimals */
};

struct fp_firefox_process {
    int64_t start_ns;              /* since 1970; INT64_MIN: unknown */
    int64_t interval_ns;           /* INT64_MIN: unknown */
    int32_t version, preprocessed; /* -1: none */
    uint32_t product, cpu_unit;    /* strings of the model */
};

struct fp_firefox_lib {
    uint32_t process;
    uint32_t thread;                                       /* whose it is + 1; 0: all threads' */
    uint32_t number;                                       /* in its list */
    uint32_t name, path, debug_name, code_id, breakpad_id; /* strings of the model */
    int64_t start, end, offset;                            /* raw profiles: where it is loaded; INT64_MIN: not stated */
    /* set by the caller before the rows */
    uint32_t object, mapping;
    uint64_t base; /* added to addresses that are relative to it */
};

struct fp_firefox_thread_in {
    uint32_t process;
    uint32_t name, process_name, pid, tid; /* strings of the model */
    uint32_t value, value_unit;            /* fastprof's own fields: the value type of its samples */
    int32_t has_value;
    uint64_t at;
    uint32_t thread;  /* of the model; set by the caller before the rows */
    int64_t start_ns; /* times count from there; set by the caller; INT64_MIN: rows of stacks have no times */
};

struct fp_firefox_read {
    struct fp_model *model; /* borrowed */
    int32_t lenient;
    int32_t timeline; /* markers are rows; otherwise they are counted */
    struct fp_firefox_process *processes;
    struct fp_firefox_thread_in *threads;
    struct fp_firefox_lib *libs;
    struct fp_firefox_table *tables;
    uint32_t n_processes, n_threads, n_libs, n_tables;
    uint32_t request; /* after FP_ASK: enum fp_firefox_request */
    uint64_t *dirty;  /* columns to spill: table * FP_FIREFOX_COLUMNS + column */
    uint32_t n_dirty, requested_column;
    struct fp_rounds rounds; /* of markers */
    /* counts */
    uint64_t markers, intervals, counters;
    uint64_t bad_end, bad_values, short_columns, bad_stacks, rounded;
    uint64_t rows;     /* samples, or markers */
    uint64_t unpaired; /* markers that begin or end, without the other; those without a time */
    uint64_t lanes;    /* threads added for markers that overlap others */
    uint64_t cut;      /* markers that overlap too many others: they end with another */

    /* private from here on */
    struct fp_json json;
    struct fp_firefox_level *levels;
    uint32_t depth, skipped, process, thread;
    uint32_t cap_processes, cap_threads, cap_libs, cap_tables, cap_dirty;
    uint64_t kept;                                                  /* bytes */
    uint32_t shared_of[FP_FIREFOX_KINDS], own_of[FP_FIREFOX_KINDS]; /* table + 1 */
    uint8_t key, key_at;                                            /* of the next value */
    uint32_t table;                                                 /* the current one */
    uint8_t schema[64];                                             /* by position in a row: column + 1 */
    int64_t row[FP_FIREFOX_COLUMNS];
    struct fp_buf scratch;
    int32_t over, seen_threads, has_schema, early_rows;
    /* rows */
    struct fp_firefox_window {
        const int64_t *p;
        uint64_t n;
    } windows[FP_FIREFOX_COLUMNS];
    uint64_t row_at, n_rows, taken[FP_FIREFOX_COLUMNS];
    int64_t clock;
    struct fp_firefox_set *sets; /* what all threads share; the current thread's own */
    uint32_t set_thread;
    uint32_t first_lib, n_own_libs;
    int32_t returns; /* addresses of callers are return addresses */
    struct fp_firefox_marks *marks;
};

/* Borrows the model.  NULL when memory ran out.  Caller owns. */
struct fp_firefox_read *fp_firefox_read_new(struct fp_model *model, int lenient);
void fp_firefox_read_free(struct fp_firefox_read *r);

/* The scan.  FP_MORE, FP_ASK, FP_DONE or an error. */
int fp_firefox_scan(struct fp_firefox_read *r, struct fp_in *in, struct fp_err *err);

/* The dirty columns are spilled. */
void fp_firefox_kept(struct fp_firefox_read *r);

/* After the scan: sorts libraries by process, thread, start and number. */
void fp_firefox_sort_libs(struct fp_firefox_read *r);

/* Begins with the tables of a thread. */
void fp_firefox_use_thread(struct fp_firefox_read *r, uint32_t thread);

/* Begins with the rows of a table.  0 or an error. */
int fp_firefox_begin(struct fp_firefox_read *r, uint32_t table, struct fp_err *err);

/* The next n numbers of column `requested_column`, valid until the next FP_ASK for it. */
void fp_firefox_window(struct fp_firefox_read *r, const uint8_t *p, size_t nbytes);

/* Reads the rows of the table.  FP_FULL, FP_ASK, FP_DONE or an error. */
int fp_firefox_rows(struct fp_firefox_read *r, struct fp_batch *out, struct fp_err *err);

/* cffi-end */

#endif
