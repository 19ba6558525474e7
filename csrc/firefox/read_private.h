/* firefox/read_private.h - shared by the files of the reader.  Private. */
#pragma once

#include "firefox/read.h"

#define FP_FIREFOX_NONE INT64_MIN /* null or absent, also -1 where the format uses it for null */

/* Columns of tables other than samples and allocations. */
enum { FP_FIREFOX_FIRST = 0 }; /* of strings, sources and resources: a string, a string, a library */
enum fp_firefox_func_column {
    FP_FX_FUNC_NAME = 0,
    FP_FX_FUNC_RESOURCE,
    FP_FX_FUNC_SOURCE,
    FP_FX_FUNC_FILE,
    FP_FX_FUNC_LINE
};
enum fp_firefox_frame_column {
    FP_FX_FRAME_FUNC = 0,
    FP_FX_FRAME_LINE,
    FP_FX_FRAME_COLUMN,
    FP_FX_FRAME_ADDRESS,
    FP_FX_FRAME_LIB,
    FP_FX_FRAME_LOCATION
};
enum fp_firefox_stack_column { FP_FX_STACK_FRAME = 0, FP_FX_STACK_PREFIX, FP_FX_STACK_OFFSET };
enum fp_firefox_marker_column {
    FP_FX_MARKER_NAME = 0,
    FP_FX_MARKER_START,
    FP_FX_MARKER_END,
    FP_FX_MARKER_PHASE,
    FP_FX_MARKER_TIME
};
enum fp_firefox_counter_column {
    FP_FX_COUNTER_COUNT = 0, /* the bits of a double */
    FP_FX_COUNTER_TIME,
    FP_FX_COUNTER_DELTA
};

/* A function of the file: strings, and a library + 1. */
struct fp_firefox_func {
    uint32_t name, file, line, lib;
};

/* Kinds of objects and arrays. */
enum fp_firefox_level {
    FP_FX_PROCESS = 1,
    FP_FX_META,
    FP_FX_UNITS,
    FP_FX_LIBS,
    FP_FX_LIB,
    FP_FX_THREADS,
    FP_FX_THREAD,
    FP_FX_SHARED,
    FP_FX_STRINGS,
    FP_FX_SOURCES, /* tables, and their schemas */
    FP_FX_RESOURCES,
    FP_FX_FUNCS,
    FP_FX_FRAMES,
    FP_FX_STACKS,
    FP_FX_SAMPLES,
    FP_FX_MARKERS,
    FP_FX_COUNTER_TABLE,
    FP_FX_COLUMN,
    FP_FX_DATA,
    FP_FX_ROW,
    FP_FX_PROCESSES,
    FP_FX_COUNTERS,
    FP_FX_COUNTER,
    FP_FX_GROUPS,
    FP_FX_GROUP,
    FP_FX_MISPLACED, /* and all after it: skipped.  Is in the place of another value, which is an error, or counted */
    FP_FX_NOT_THREAD = FP_FX_MISPLACED,
    FP_FX_NOT_PROCESS,
    FP_FX_NOT_ROW,
    FP_FX_NOT_STRING,
    FP_FX_NOT_NUMBER,
    FP_FX_NO_CELL,
    FP_FX_NO_COUNTER,
    FP_FX_IGNORED
};

/* Codes of values. */
enum fp_firefox_code {
    FP_FX_ENTRY = 64,
    FP_FX_CELL,
    FP_FX_STRING,
    FP_FX_THREADS_TEXT,
    FP_FX_LIBS_TEXT,
    FP_FX_K_NAME, /* from here on: texts and numbers of one object */
    FP_FX_K_PROCESS_NAME,
    FP_FX_K_PID,
    FP_FX_K_TID,
    FP_FX_K_VALUE,
    FP_FX_K_VALUE_UNIT,
    FP_FX_K_TIMES_FROM,
    FP_FX_K_PATH,
    FP_FX_K_DEBUG_NAME,
    FP_FX_K_CODE_ID,
    FP_FX_K_BREAKPAD_ID,
    FP_FX_K_ADDRESSES,
    FP_FX_K_START,
    FP_FX_K_END,
    FP_FX_K_OFFSET,
    FP_FX_K_LENGTH,
    FP_FX_K_WEIGHT_TYPE,
    FP_FX_K_INTERVAL,
    FP_FX_K_START_TIME,
    FP_FX_K_VERSION,
    FP_FX_K_PREPROCESSED,
    FP_FX_K_PRODUCT,
    FP_FX_K_DEFAULT,
    FP_FX_K_CPU_UNIT,
    FP_FX_K_CATEGORY,
    FP_FX_K_MAIN_THREAD,
    FP_FX_WRAPPED,                                    /* from here on: of an object or array */
    FP_FX_TABLE_0,                                    /* + enum fp_firefox_kind */
    FP_FX_COLUMN_0 = FP_FX_TABLE_0 + FP_FIREFOX_KINDS /* + a column */
};

/* scan_keys.c, with the functions below it from scan.c.  Its first rows: the file; JSON in a text of threads, of libs.
 */
enum { FP_FX_FILE_ROW = 0, FP_FX_THREADS_ROW, FP_FX_LIBS_ROW };
extern const struct fp_json_shape fp_firefox_shape;
int fp_firefox_open(void *to, uint32_t kind, struct fp_window *in, struct fp_err *err);
int fp_firefox_close(void *to, uint32_t kind, struct fp_window *in, struct fp_err *err);
int fp_firefox_value(void *to, uint32_t code, struct fp_window *in, struct fp_err *err);
int fp_firefox_elements(void *to, uint32_t code, struct fp_window *in, struct fp_err *err);

/* scan_keys.c: sets a field of the last library or thread. */
void fp_firefox_lib_value(struct fp_firefox_read *r, uint32_t code, uint32_t text, int64_t number);
void fp_firefox_thread_value(struct fp_firefox_read *r, uint32_t code, uint32_t text);

static inline int fp_firefox_is_samples(uint32_t kind) {
    return kind >= FP_FIREFOX_SAMPLES && kind <= FP_FIREFOX_NATIVE;
}

/* The model's ids of table rows, by row number: rows of other tables refer to them. */
struct fp_firefox_set {
    uint32_t *strings, *sources, *resources, *frames;
    struct fp_own_stacks stacks; /* row number + 1; after them those of `leaves` */
    struct fp_firefox_func *funcs;
    uint32_t *leaves; /* by stack: that of samples, if it differs from that of callers; 0: not yet made */
    uint32_t n[FP_FIREFOX_KINDS], cap[FP_FIREFOX_KINDS], cap_leaves;
};

/* Damaged input at an offset.  0 if lenient, counted; otherwise FP_E_MALFORMED. */
static inline int fp_firefox_broken(struct fp_firefox_read *r, uint64_t at, const char *what, const char *want,
                                    struct fp_err *err) {
    if (r->lenient) {
        r->counts.bad_values++;
        return 0;
    }
    fp_fail(err, FP_E_MALFORMED, at, what);
    err->want = want;
    return FP_E_MALFORMED;
}

/* columns.c.  Appends n numbers to a column of the current table. */
void fp_firefox_keep(struct fp_firefox_read *r, uint32_t column, const int64_t *v, size_t n);
/* Ends the blocks of all columns in `dirty`. */
void fp_firefox_end_blocks(struct fp_firefox_read *r);
/* Decodes the next block of a column into its window.  0: there is none. */
int fp_firefox_next_block(struct fp_firefox_read *r, uint32_t column);

void fp_firefox_free_sets(struct fp_firefox_read *r);

/* firefox/read_frames.c: the frame of a location of a raw profile ("0x7f12", "f (http://x/app.js:3:4)", "label"), or
 * FP_NO_ID. */
uint32_t fp_firefox_location(struct fp_firefox_read *r, uint32_t text, uint32_t line, uint32_t column);

/* A frame of a function in a library + 1 (0: none), at an address in it (or FP_FIREFOX_NONE).  FP_NO_ID when memory ran
 * out. */
uint32_t fp_firefox_frame(struct fp_firefox_read *r, const struct fp_firefox_func *func, uint32_t lib, int64_t address,
                          uint32_t line, uint32_t column);

/* firefox/read_markers.c */
void fp_firefox_free_marks(struct fp_firefox_read *r);
int fp_firefox_marker(struct fp_firefox_read *r, const int64_t *v, struct fp_err *err);
int fp_firefox_counter_value(struct fp_firefox_read *r, const int64_t *v);
int fp_firefox_marker_rows(struct fp_firefox_read *r, struct fp_batch *out);
