/* What the reader of Firefox profiles remembers; private to this folder.  Included by firefox/read.h,
 * after the constants that it needs. */
#pragma once

enum {
    FP_FIREFOX_TEXTS = 4,  /* levels of JSON in texts */
    FP_FIREFOX_BLOCK = 512 /* numbers of a column that are encoded together */
};

struct fp_firefox_in_scan {
    struct fp_json_walk *walk, *own_walk; /* of the file, or of JSON in a text; of the file */
    struct fp_buf text[FP_FIREFOX_TEXTS]; /* such JSON without escapes */
    uint32_t process, thread;
    uint32_t texts, outer_depth; /* JSON in texts: their number, and the levels around the innermost one */
    uint64_t text_at;            /* the offset of the outermost text */
    uint32_t place;              /* libraries or groups so far in a list, numbers in a row */
    uint32_t cap_processes, cap_threads, cap_libs, cap_tables, cap_dirty, cap_counters;
    uint64_t kept;                                                  /* bytes */
    uint32_t shared_of[FP_FIREFOX_KINDS], own_of[FP_FIREFOX_KINDS]; /* table + 1 */
    uint8_t column;                                                 /* of the array that is read */
    int64_t row[FP_FIREFOX_COLUMNS];
    struct fp_buf scratch;
    int32_t seen_threads, has_schema, in_schema, early_rows;
};

/* Decoded numbers of a column. */
struct fp_firefox_window {
    const int64_t *p;
    uint64_t n;
};

struct fp_firefox_blocks {
    const uint8_t *p, *end;
};

/* The rows of a table. */
struct fp_firefox_in_rows {
    struct fp_firefox_window windows[FP_FIREFOX_COLUMNS];
    struct fp_firefox_blocks blocks[FP_FIREFOX_COLUMNS];
    int64_t decoded[FP_FIREFOX_COLUMNS][FP_FIREFOX_BLOCK];
    uint64_t at, n, taken[FP_FIREFOX_COLUMNS];
    int64_t clock;
    double sum; /* of the current counter */
    int32_t pulls;
    struct fp_firefox_set *sets; /* [0]: shared tables; [1]: the current thread's */
    uint32_t set_thread;
    uint32_t first_lib, n_own_libs;
    int32_t returns; /* callers have return addresses */
    struct fp_firefox_marks *marks;
};
