/* The keys of a profile, by the object that contains them, and fields that are set by key. */
#include "firefox/read_private.h"

#define TABLE(kind, key, table, of) FP_JSON_KEY(kind, key, .object = table, .value = FP_FX_TABLE_0 + (int)of)
#define COLUMN(table, key, column) FP_JSON_KEY(table, key, .array = FP_FX_COLUMN, .value = FP_FX_COLUMN_0 + (int)column)

/* Tables of a thread or of all threads. */
#define TABLES(kind)                                                         \
    TABLE(kind, "stackTable", FP_FX_STACKS, FP_FIREFOX_STACKS),              \
        TABLE(kind, "frameTable", FP_FX_FRAMES, FP_FIREFOX_FRAMES),          \
        TABLE(kind, "funcTable", FP_FX_FUNCS, FP_FIREFOX_FUNCS),             \
        TABLE(kind, "resourceTable", FP_FX_RESOURCES, FP_FIREFOX_RESOURCES), \
        TABLE(kind, "sources", FP_FX_SOURCES, FP_FIREFOX_SOURCES),           \
        FP_JSON_KEY(kind, "stringTable", .array = FP_FX_STRINGS),            \
        FP_JSON_KEY(kind, "stringArray", .array = FP_FX_STRINGS)

/* A schema has the columns of its table. */
#define TABLE_KEYS(kind)                                                                                            \
    FP_JSON_KEY(kind, "length", .value = FP_FX_K_LENGTH),                                                           \
        FP_JSON_KEY(kind, "weightType", .value = FP_FX_K_WEIGHT_TYPE), FP_JSON_KEY(kind, "schema", .object = kind), \
        FP_JSON_KEY(kind, "data", .array = FP_FX_DATA)

static const struct fp_json_row rows[] = {
    FP_JSON_EACH(0, .object = FP_FX_PROCESS),
    FP_JSON_EACH(0, .object = FP_FX_PROCESS, .array = FP_FX_NOT_THREAD, .value = FP_FX_THREADS_TEXT),
    FP_JSON_EACH(0, .object = FP_FX_IGNORED, .array = FP_FX_LIBS, .value = FP_FX_LIBS_TEXT),
    FP_JSON_KEY(FP_FX_PROCESS, "meta", .object = FP_FX_META),
    FP_JSON_KEY(FP_FX_PROCESS, "libs", .array = FP_FX_LIBS, .value = FP_FX_LIBS_TEXT),
    FP_JSON_KEY(FP_FX_PROCESS, "threads", .array = FP_FX_THREADS),
    FP_JSON_KEY(FP_FX_PROCESS, "shared", .object = FP_FX_SHARED),
    FP_JSON_KEY(FP_FX_PROCESS, "processes", .array = FP_FX_PROCESSES),
    FP_JSON_KEY(FP_FX_PROCESS, "counters", .array = FP_FX_COUNTERS),
    FP_JSON_KEY(FP_FX_PROCESS, "profile", .object = FP_FX_PROCESS, .value = FP_FX_WRAPPED),
    FP_JSON_KEY(FP_FX_META, "interval", .value = FP_FX_K_INTERVAL),
    FP_JSON_KEY(FP_FX_META, "startTime", .value = FP_FX_K_START_TIME),
    FP_JSON_KEY(FP_FX_META, "version", .value = FP_FX_K_VERSION),
    FP_JSON_KEY(FP_FX_META, "preprocessedProfileVersion", .value = FP_FX_K_PREPROCESSED),
    FP_JSON_KEY(FP_FX_META, "product", .value = FP_FX_K_PRODUCT),
    FP_JSON_KEY(FP_FX_META, "defaultValueType", .value = FP_FX_K_DEFAULT),
    FP_JSON_KEY(FP_FX_META, "sampleUnits", .object = FP_FX_UNITS),
    FP_JSON_KEY(FP_FX_UNITS, "threadCPUDelta", .value = FP_FX_K_CPU_UNIT),
    FP_JSON_EACH(FP_FX_LIBS, .object = FP_FX_LIB),
    FP_JSON_KEY(FP_FX_LIB, "name", .value = FP_FX_K_NAME),
    FP_JSON_KEY(FP_FX_LIB, "path", .value = FP_FX_K_PATH),
    FP_JSON_KEY(FP_FX_LIB, "debugName", .value = FP_FX_K_DEBUG_NAME),
    FP_JSON_KEY(FP_FX_LIB, "pdbName", .value = FP_FX_K_DEBUG_NAME), /* Windows, before version 4 */
    FP_JSON_KEY(FP_FX_LIB, "codeId", .value = FP_FX_K_CODE_ID),
    FP_JSON_KEY(FP_FX_LIB, "breakpadId", .value = FP_FX_K_BREAKPAD_ID),
    FP_JSON_KEY(FP_FX_LIB, "addresses", .value = FP_FX_K_ADDRESSES),
    FP_JSON_KEY(FP_FX_LIB, "start", .value = FP_FX_K_START),
    FP_JSON_KEY(FP_FX_LIB, "end", .value = FP_FX_K_END),
    FP_JSON_KEY(FP_FX_LIB, "offset", .value = FP_FX_K_OFFSET),
    FP_JSON_EACH(FP_FX_THREADS, .object = FP_FX_THREAD, .array = FP_FX_NOT_THREAD, .value = FP_FX_THREADS_TEXT),
    FP_JSON_KEY(FP_FX_THREAD, "name", .value = FP_FX_K_NAME),
    FP_JSON_KEY(FP_FX_THREAD, "processName", .value = FP_FX_K_PROCESS_NAME),
    FP_JSON_KEY(FP_FX_THREAD, "pid", .value = FP_FX_K_PID),
    FP_JSON_KEY(FP_FX_THREAD, "tid", .value = FP_FX_K_TID),
    FP_JSON_KEY(FP_FX_THREAD, "valueType", .value = FP_FX_K_VALUE),
    FP_JSON_KEY(FP_FX_THREAD, "valueUnit", .value = FP_FX_K_VALUE_UNIT),
    FP_JSON_KEY(FP_FX_THREAD, "timesFrom", .value = FP_FX_K_TIMES_FROM),
    FP_JSON_KEY(FP_FX_THREAD, "libs", .array = FP_FX_LIBS),
    TABLE(FP_FX_THREAD, "samples", FP_FX_SAMPLES, FP_FIREFOX_SAMPLES),
    TABLE(FP_FX_THREAD, "jsAllocations", FP_FX_SAMPLES, FP_FIREFOX_JS),
    TABLE(FP_FX_THREAD, "nativeAllocations", FP_FX_SAMPLES, FP_FIREFOX_NATIVE),
    TABLE(FP_FX_THREAD, "markers", FP_FX_MARKERS, FP_FIREFOX_MARKERS),
    TABLES(FP_FX_THREAD),
    TABLES(FP_FX_SHARED),
    FP_JSON_EACH(FP_FX_STRINGS, .object = FP_FX_NOT_STRING, .array = FP_FX_NOT_STRING, .value = FP_FX_STRING),
    COLUMN(FP_FX_SOURCES, "filename", FP_FIREFOX_FIRST),
    TABLE_KEYS(FP_FX_SOURCES),
    COLUMN(FP_FX_RESOURCES, "lib", FP_FIREFOX_FIRST),
    TABLE_KEYS(FP_FX_RESOURCES),
    COLUMN(FP_FX_FUNCS, "name", FP_FX_FUNC_NAME),
    COLUMN(FP_FX_FUNCS, "resource", FP_FX_FUNC_RESOURCE),
    COLUMN(FP_FX_FUNCS, "source", FP_FX_FUNC_SOURCE),
    COLUMN(FP_FX_FUNCS, "fileName", FP_FX_FUNC_FILE),
    COLUMN(FP_FX_FUNCS, "lineNumber", FP_FX_FUNC_LINE),
    TABLE_KEYS(FP_FX_FUNCS),
    COLUMN(FP_FX_FRAMES, "func", FP_FX_FRAME_FUNC),
    COLUMN(FP_FX_FRAMES, "line", FP_FX_FRAME_LINE),
    COLUMN(FP_FX_FRAMES, "column", FP_FX_FRAME_COLUMN),
    COLUMN(FP_FX_FRAMES, "address", FP_FX_FRAME_ADDRESS),
    COLUMN(FP_FX_FRAMES, "lib", FP_FX_FRAME_LIB),
    COLUMN(FP_FX_FRAMES, "location", FP_FX_FRAME_LOCATION),
    TABLE_KEYS(FP_FX_FRAMES),
    COLUMN(FP_FX_STACKS, "frame", FP_FX_STACK_FRAME),
    COLUMN(FP_FX_STACKS, "prefix", FP_FX_STACK_PREFIX),
    COLUMN(FP_FX_STACKS, "prefixOffset", FP_FX_STACK_OFFSET),
    TABLE_KEYS(FP_FX_STACKS),
    COLUMN(FP_FX_SAMPLES, "stack", FP_FIREFOX_IN_STACK),
    COLUMN(FP_FX_SAMPLES, "time", FP_FIREFOX_IN_TIME),
    COLUMN(FP_FX_SAMPLES, "timeDeltas", FP_FIREFOX_IN_DELTA),
    COLUMN(FP_FX_SAMPLES, "weight", FP_FIREFOX_IN_WEIGHT),
    COLUMN(FP_FX_SAMPLES, "duration", FP_FIREFOX_IN_WEIGHT),
    COLUMN(FP_FX_SAMPLES, "threadCPUDelta", FP_FIREFOX_IN_CPU),
    TABLE_KEYS(FP_FX_SAMPLES),
    COLUMN(FP_FX_MARKERS, "name", FP_FX_MARKER_NAME),
    COLUMN(FP_FX_MARKERS, "startTime", FP_FX_MARKER_START),
    COLUMN(FP_FX_MARKERS, "endTime", FP_FX_MARKER_END),
    COLUMN(FP_FX_MARKERS, "phase", FP_FX_MARKER_PHASE),
    COLUMN(FP_FX_MARKERS, "time", FP_FX_MARKER_TIME),
    TABLE_KEYS(FP_FX_MARKERS),
    COLUMN(FP_FX_COUNTER_TABLE, "count", FP_FX_COUNTER_COUNT),
    COLUMN(FP_FX_COUNTER_TABLE, "time", FP_FX_COUNTER_TIME),
    COLUMN(FP_FX_COUNTER_TABLE, "timeDeltas", FP_FX_COUNTER_DELTA),
    TABLE_KEYS(FP_FX_COUNTER_TABLE),
    FP_JSON_EACH(FP_FX_COLUMN, .object = FP_FX_NOT_NUMBER, .array = FP_FX_NOT_NUMBER, .value = FP_FX_ENTRY, .many = 1),
    FP_JSON_EACH(FP_FX_DATA, .object = FP_FX_NOT_ROW, .array = FP_FX_ROW, .value = FP_FX_NOT_ROW),
    FP_JSON_EACH(FP_FX_ROW, .object = FP_FX_NO_CELL, .array = FP_FX_NO_CELL, .value = FP_FX_CELL),
    FP_JSON_EACH(FP_FX_PROCESSES, .object = FP_FX_PROCESS, .array = FP_FX_NOT_PROCESS, .value = FP_FX_NOT_PROCESS),
    FP_JSON_EACH(FP_FX_COUNTERS, .object = FP_FX_COUNTER, .array = FP_FX_NO_COUNTER),
    FP_JSON_KEY(FP_FX_COUNTER, "name", .value = FP_FX_K_NAME),
    FP_JSON_KEY(FP_FX_COUNTER, "category", .value = FP_FX_K_CATEGORY),
    FP_JSON_KEY(FP_FX_COUNTER, "pid", .value = FP_FX_K_PID),
    FP_JSON_KEY(FP_FX_COUNTER, "mainThreadIndex", .value = FP_FX_K_MAIN_THREAD),
    TABLE(FP_FX_COUNTER, "samples", FP_FX_COUNTER_TABLE, FP_FIREFOX_COUNTERS),
    FP_JSON_KEY(FP_FX_COUNTER, "sampleGroups", .object = FP_FX_GROUP, .array = FP_FX_GROUPS), /* before version 48 */
    FP_JSON_KEY(FP_FX_COUNTER, "sample_groups", .object = FP_FX_GROUP,
                .array = FP_FX_GROUPS), /* raw, before version 29 */
    FP_JSON_EACH(FP_FX_GROUPS, .object = FP_FX_GROUP),
    TABLE(FP_FX_GROUP, "samples", FP_FX_COUNTER_TABLE, FP_FIREFOX_COUNTERS),
};

const struct fp_json_shape fp_firefox_shape = {FP_JSON_ROWS(rows), .begin = fp_firefox_open, .end = fp_firefox_close,
                                               .value = fp_firefox_value, .elements = fp_firefox_elements};

void fp_firefox_lib_value(struct fp_firefox_read *r, uint32_t code, uint32_t text, int64_t number) {
    struct fp_firefox_lib *l = &r->libs[r->n_libs - 1];
    switch (code) {
        case FP_FX_K_NAME: l->name = text; break;
        case FP_FX_K_PATH: l->path = text; break;
        case FP_FX_K_DEBUG_NAME: l->debug_name = text; break;
        case FP_FX_K_CODE_ID: l->code_id = text; break;
        case FP_FX_K_BREAKPAD_ID: l->breakpad_id = text; break;
        case FP_FX_K_ADDRESSES: l->addresses = text; break;
        case FP_FX_K_START: l->start = number; break;
        case FP_FX_K_END: l->end = number; break;
        case FP_FX_K_OFFSET: l->offset = number; break;
        default: break;
    }
}

void fp_firefox_thread_value(struct fp_firefox_read *r, uint32_t code, uint32_t text) {
    struct fp_firefox_thread_in *t = &r->threads[r->n_threads - 1];
    switch (code) {
        case FP_FX_K_NAME: t->name = text; break;
        case FP_FX_K_PROCESS_NAME: t->process_name = text; break;
        case FP_FX_K_PID: t->pid = text; break;
        case FP_FX_K_TID: t->tid = text; break;
        case FP_FX_K_VALUE:
            t->value = text;
            t->has_value = 1;
            break;
        case FP_FX_K_VALUE_UNIT: t->value_unit = text; break;
        case FP_FX_K_TIMES_FROM: t->times_from = text; break;
        default: break;
    }
}
