/* The keys of a profile, by the object that contains them, and fields that are set by key. */
#include "firefox/read_private.h"

struct key_name {
    const char *text;
    /* key: the kind of the container, or a scalar_key; at: enum fp_firefox_kind of a table */
    uint8_t inside, key, at;
};

static const struct key_name names[] = {{"meta", FP_FX_PROCESS, FP_FX_META, 0},
                                        {"libs", FP_FX_PROCESS, FP_FX_LIBS, 0},
                                        {"threads", FP_FX_PROCESS, FP_FX_THREADS, 0},
                                        {"shared", FP_FX_PROCESS, FP_FX_SHARED, 0},
                                        {"processes", FP_FX_PROCESS, FP_FX_PROCESSES, 0},
                                        {"counters", FP_FX_PROCESS, FP_FX_COUNTERS, 0},
                                        {"profile", FP_FX_PROCESS, FP_FX_WRAPPED, 0},
                                        {"name", FP_FX_COUNTER, FP_FX_K_NAME, 0},
                                        {"category", FP_FX_COUNTER, FP_FX_K_CATEGORY, 0},
                                        {"pid", FP_FX_COUNTER, FP_FX_K_PID, 0},
                                        {"mainThreadIndex", FP_FX_COUNTER, FP_FX_K_MAIN_THREAD, 0},
                                        {"samples", FP_FX_COUNTER, FP_FX_TABLE, FP_FIREFOX_COUNTERS},
                                        {"sampleGroups", FP_FX_COUNTER, FP_FX_GROUPS, 0},  /* before version 48 */
                                        {"sample_groups", FP_FX_COUNTER, FP_FX_GROUPS, 0}, /* raw, before version 29 */
                                        {"samples", FP_FX_GROUP, FP_FX_TABLE, FP_FIREFOX_COUNTERS},
                                        {"interval", FP_FX_META, FP_FX_K_INTERVAL, 0},
                                        {"startTime", FP_FX_META, FP_FX_K_START_TIME, 0},
                                        {"version", FP_FX_META, FP_FX_K_VERSION, 0},
                                        {"preprocessedProfileVersion", FP_FX_META, FP_FX_K_PREPROCESSED, 0},
                                        {"product", FP_FX_META, FP_FX_K_PRODUCT, 0},
                                        {"defaultValueType", FP_FX_META, FP_FX_K_DEFAULT, 0},
                                        {"sampleUnits", FP_FX_META, FP_FX_UNITS, 0},
                                        {"threadCPUDelta", FP_FX_UNITS, FP_FX_K_CPU_UNIT, 0},
                                        {"name", FP_FX_LIB, FP_FX_K_NAME, 0},
                                        {"path", FP_FX_LIB, FP_FX_K_PATH, 0},
                                        {"debugName", FP_FX_LIB, FP_FX_K_DEBUG_NAME, 0},
                                        {"pdbName", FP_FX_LIB, FP_FX_K_DEBUG_NAME, 0}, /* Windows, before version 4 */
                                        {"codeId", FP_FX_LIB, FP_FX_K_CODE_ID, 0},
                                        {"breakpadId", FP_FX_LIB, FP_FX_K_BREAKPAD_ID, 0},
                                        {"addresses", FP_FX_LIB, FP_FX_K_ADDRESSES, 0},
                                        {"start", FP_FX_LIB, FP_FX_K_START, 0},
                                        {"end", FP_FX_LIB, FP_FX_K_END, 0},
                                        {"offset", FP_FX_LIB, FP_FX_K_OFFSET, 0},
                                        {"name", FP_FX_THREAD, FP_FX_K_NAME, 0},
                                        {"processName", FP_FX_THREAD, FP_FX_K_PROCESS_NAME, 0},
                                        {"pid", FP_FX_THREAD, FP_FX_K_PID, 0},
                                        {"tid", FP_FX_THREAD, FP_FX_K_TID, 0},
                                        {"valueType", FP_FX_THREAD, FP_FX_K_VALUE, 0},
                                        {"valueUnit", FP_FX_THREAD, FP_FX_K_VALUE_UNIT, 0},
                                        {"timesFrom", FP_FX_THREAD, FP_FX_K_TIMES_FROM, 0},
                                        {"libs", FP_FX_THREAD, FP_FX_LIBS, 0},
                                        {"samples", FP_FX_THREAD, FP_FX_TABLE, FP_FIREFOX_SAMPLES},
                                        {"jsAllocations", FP_FX_THREAD, FP_FX_TABLE, FP_FIREFOX_JS},
                                        {"nativeAllocations", FP_FX_THREAD, FP_FX_TABLE, FP_FIREFOX_NATIVE},
                                        {"markers", FP_FX_THREAD, FP_FX_TABLE, FP_FIREFOX_MARKERS},
                                        {"stackTable", FP_FX_THREAD, FP_FX_TABLE, FP_FIREFOX_STACKS},
                                        {"frameTable", FP_FX_THREAD, FP_FX_TABLE, FP_FIREFOX_FRAMES},
                                        {"funcTable", FP_FX_THREAD, FP_FX_TABLE, FP_FIREFOX_FUNCS},
                                        {"resourceTable", FP_FX_THREAD, FP_FX_TABLE, FP_FIREFOX_RESOURCES},
                                        {"sources", FP_FX_THREAD, FP_FX_TABLE, FP_FIREFOX_SOURCES},
                                        {"stringTable", FP_FX_THREAD, FP_FX_STRINGS, FP_FIREFOX_STRING_TABLE},
                                        {"stringArray", FP_FX_THREAD, FP_FX_STRINGS, FP_FIREFOX_STRING_TABLE},
                                        {"length", FP_FX_TABLE, FP_FX_K_LENGTH, 0},
                                        {"weightType", FP_FX_TABLE, FP_FX_K_WEIGHT_TYPE, 0},
                                        {"schema", FP_FX_TABLE, FP_FX_SCHEMA, 0},
                                        {"data", FP_FX_TABLE, FP_FX_DATA, 0}};

struct column_name {
    const char *text;
    uint8_t kind, column;
};

static const struct column_name columns[] = {{"filename", FP_FIREFOX_SOURCES, FP_FIREFOX_FIRST},
                                             {"lib", FP_FIREFOX_RESOURCES, FP_FIREFOX_FIRST},
                                             {"name", FP_FIREFOX_FUNCS, FP_FX_FUNC_NAME},
                                             {"resource", FP_FIREFOX_FUNCS, FP_FX_FUNC_RESOURCE},
                                             {"source", FP_FIREFOX_FUNCS, FP_FX_FUNC_SOURCE},
                                             {"fileName", FP_FIREFOX_FUNCS, FP_FX_FUNC_FILE},
                                             {"lineNumber", FP_FIREFOX_FUNCS, FP_FX_FUNC_LINE},
                                             {"func", FP_FIREFOX_FRAMES, FP_FX_FRAME_FUNC},
                                             {"line", FP_FIREFOX_FRAMES, FP_FX_FRAME_LINE},
                                             {"column", FP_FIREFOX_FRAMES, FP_FX_FRAME_COLUMN},
                                             {"address", FP_FIREFOX_FRAMES, FP_FX_FRAME_ADDRESS},
                                             {"lib", FP_FIREFOX_FRAMES, FP_FX_FRAME_LIB},
                                             {"location", FP_FIREFOX_FRAMES, FP_FX_FRAME_LOCATION},
                                             {"frame", FP_FIREFOX_STACKS, FP_FX_STACK_FRAME},
                                             {"prefix", FP_FIREFOX_STACKS, FP_FX_STACK_PREFIX},
                                             {"prefixOffset", FP_FIREFOX_STACKS, FP_FX_STACK_OFFSET},
                                             {"name", FP_FIREFOX_MARKERS, FP_FX_MARKER_NAME},
                                             {"startTime", FP_FIREFOX_MARKERS, FP_FX_MARKER_START},
                                             {"endTime", FP_FIREFOX_MARKERS, FP_FX_MARKER_END},
                                             {"phase", FP_FIREFOX_MARKERS, FP_FX_MARKER_PHASE},
                                             {"time", FP_FIREFOX_MARKERS, FP_FX_MARKER_TIME},
                                             {"count", FP_FIREFOX_COUNTERS, FP_FX_COUNTER_COUNT},
                                             {"time", FP_FIREFOX_COUNTERS, FP_FX_COUNTER_TIME},
                                             {"timeDeltas", FP_FIREFOX_COUNTERS, FP_FX_COUNTER_DELTA},
                                             /* samples; allocations have the same columns except CPU times */
                                             {"stack", FP_FIREFOX_SAMPLES, FP_FIREFOX_IN_STACK},
                                             {"time", FP_FIREFOX_SAMPLES, FP_FIREFOX_IN_TIME},
                                             {"timeDeltas", FP_FIREFOX_SAMPLES, FP_FIREFOX_IN_DELTA},
                                             {"weight", FP_FIREFOX_SAMPLES, FP_FIREFOX_IN_WEIGHT},
                                             {"duration", FP_FIREFOX_SAMPLES, FP_FIREFOX_IN_WEIGHT},
                                             {"threadCPUDelta", FP_FIREFOX_SAMPLES, FP_FIREFOX_IN_CPU}};
enum { N_COLUMNS = sizeof columns / sizeof *columns };

void fp_firefox_key(struct fp_firefox_read *r) {
    const uint32_t here = r->levels[r->depth - 1].kind, inside = here == FP_FX_SHARED ? FP_FX_THREAD : here;
    r->key = FP_FX_NO_KEY;
    if (here == FP_FX_TABLE || here == FP_FX_SCHEMA) {
        const uint32_t kind = r->tables[r->table].kind, like = fp_firefox_is_samples(kind) ? FP_FIREFOX_SAMPLES : kind;
        for (size_t i = 0; i < N_COLUMNS; i++)
            if (columns[i].kind == like && fp_json_is(&r->json, columns[i].text)) {
                r->key = FP_FX_COLUMN;
                r->key_at = columns[i].column;
                return;
            }
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].inside == inside && fp_json_is(&r->json, names[i].text)) {
            if (here == FP_FX_SHARED &&
                (names[i].key >= FP_FX_K_NAME || names[i].key == FP_FX_LIBS || names[i].at >= FP_FIREFOX_SAMPLES))
                return;
            r->key = names[i].key;
            r->key_at = names[i].at;
            return;
        }
}

void fp_firefox_lib_value(struct fp_firefox_read *r, uint32_t text, int64_t number) {
    struct fp_firefox_lib *l = &r->libs[r->n_libs - 1];
    switch (r->key) {
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

void fp_firefox_thread_value(struct fp_firefox_read *r, uint32_t text) {
    struct fp_firefox_thread_in *t = &r->threads[r->n_threads - 1];
    switch (r->key) {
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
