/* firefox/read_private.h - shared by the files of the reader.  Private. */
#ifndef FP_FIREFOX_READ_PRIVATE_H
#define FP_FIREFOX_READ_PRIVATE_H

#include <stdlib.h>

#include "core/array.h"
#include "firefox/read.h"

#define FP_FIREFOX_NONE INT64_MIN /* null or absent, also -1 where the format uses it for null */

/* Columns of tables other than samples and allocations. */
enum { FP_FIREFOX_FIRST = 0 }; /* of strings, sources and resources: a string, a string, a library */
enum fp_firefox_func_column { FUNC_NAME = 0, FUNC_RESOURCE, FUNC_SOURCE, FUNC_FILE, FUNC_LINE };
enum fp_firefox_frame_column { FRAME_FUNC = 0, FRAME_LINE, FRAME_COLUMN, FRAME_ADDRESS, FRAME_LIB, FRAME_LOCATION };
enum fp_firefox_stack_column { STACK_FRAME = 0, STACK_PREFIX, STACK_OFFSET };
enum fp_firefox_marker_column { MARKER_NAME = 0, MARKER_START, MARKER_END, MARKER_PHASE, MARKER_TIME };
enum fp_firefox_counter_column {
    COUNTER_COUNT = 0, /* the bits of a double */
    COUNTER_TIME,
    COUNTER_DELTA
};

/* A function of the file: strings, and a library + 1. */
struct fp_firefox_func {
    uint32_t name, file, line, lib;
};

/* The kind of an object or array. */
enum fp_firefox_level_kind {
    SKIP = 0,
    PROCESS,
    META,
    UNITS,
    LIBS,
    LIB,
    THREADS,
    THREAD,
    SHARED,
    TABLE,
    COLUMN,
    SCHEMA,
    DATA,
    ROW,
    STRINGS,
    PROCESSES,
    COUNTERS,
    COUNTER,
    GROUPS,
    GROUP,
    WRAPPED
};

/* Keys of values that are not containers. */
enum fp_firefox_scalar_key {
    NO_KEY = 0,
    K_NAME = 100,
    K_PROCESS_NAME,
    K_PID,
    K_TID,
    K_VALUE,
    K_VALUE_UNIT,
    K_PATH,
    K_DEBUG_NAME,
    K_CODE_ID,
    K_BREAKPAD_ID,
    K_ADDRESSES,
    K_START,
    K_END,
    K_OFFSET,
    K_LENGTH,
    K_WEIGHT_TYPE,
    K_INTERVAL,
    K_START_TIME,
    K_VERSION,
    K_PREPROCESSED,
    K_PRODUCT,
    K_CPU_UNIT,
    K_CATEGORY,
    K_MAIN_THREAD
};

struct fp_firefox_level {
    uint8_t kind;   /* enum fp_firefox_level_kind */
    uint8_t column; /* of a COLUMN */
    uint32_t at;    /* of a ROW: position; of a PROCESS: its parent process; of LIBS, GROUPS: how many there were */
};

/* scan_keys.c: looks up the key of the token in the innermost object.  Sets r->key to the kind of the container that
 * follows, or to a scalar_key. */
void fp_firefox_key(struct fp_firefox_read *r);

/* scan_keys.c: sets the field r->key of the last library or thread. */
void fp_firefox_lib_value(struct fp_firefox_read *r, uint32_t text, int64_t number);
void fp_firefox_thread_value(struct fp_firefox_read *r, uint32_t text);

static inline int fp_firefox_is_samples(uint32_t kind) {
    return kind >= FP_FIREFOX_SAMPLES && kind <= FP_FIREFOX_NATIVE;
}

/* The model's ids of table rows, by row number: rows of other tables refer to them. */
struct fp_firefox_set {
    uint32_t *strings, *sources, *resources, *frames, *stacks;
    struct fp_firefox_func *funcs;
    uint32_t *leaves; /* by stack: the node for samples, if it differs from that for callers; 0: not yet made */
    uint32_t n[FP_FIREFOX_KINDS], cap[FP_FIREFOX_KINDS], cap_leaves;
};

/* Damaged input at an offset.  0 if lenient, counted; otherwise FP_E_MALFORMED. */
static inline int fp_firefox_broken(struct fp_firefox_read *r, uint64_t at, const char *what, const char *want,
                                    struct fp_err *err) {
    if (r->lenient) {
        r->bad_values++;
        return 0;
    }
    fp_fail(err, FP_E_MALFORMED, at, what);
    err->want = want;
    return FP_E_MALFORMED;
}

/* columns.c.  Appends n numbers to a column of the current table.  0 or FP_E_NOMEM. */
int fp_firefox_keep(struct fp_firefox_read *r, uint32_t column, const int64_t *v, size_t n);
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
int fp_firefox_counter_value(struct fp_firefox_read *r, const int64_t *v, struct fp_err *err);
int fp_firefox_marker_rows(struct fp_firefox_read *r, struct fp_batch *out, struct fp_err *err);

#endif
