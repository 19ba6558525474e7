/* The keys of a profile, by the object that contains them, and fields that are set by key. */
#include "firefox/read_private.h"

struct key_name {
    const char *text;
    uint8_t inside, key, at; /* key: the kind of the container, or a scalar_key; at: enum fp_firefox_kind of a TABLE */
};

static const struct key_name names[] = {{"meta", PROCESS, META, 0},
                                        {"libs", PROCESS, LIBS, 0},
                                        {"threads", PROCESS, THREADS, 0},
                                        {"shared", PROCESS, SHARED, 0},
                                        {"processes", PROCESS, PROCESSES, 0},
                                        {"counters", PROCESS, COUNTERS, 0},
                                        {"profile", PROCESS, WRAPPED, 0},
                                        {"name", COUNTER, K_NAME, 0},
                                        {"category", COUNTER, K_CATEGORY, 0},
                                        {"pid", COUNTER, K_PID, 0},
                                        {"mainThreadIndex", COUNTER, K_MAIN_THREAD, 0},
                                        {"samples", COUNTER, TABLE, FP_FIREFOX_COUNTERS},
                                        {"sampleGroups", COUNTER, GROUPS, 0},  /* before version 48 */
                                        {"sample_groups", COUNTER, GROUPS, 0}, /* raw, before version 29 */
                                        {"samples", GROUP, TABLE, FP_FIREFOX_COUNTERS},
                                        {"interval", META, K_INTERVAL, 0},
                                        {"startTime", META, K_START_TIME, 0},
                                        {"version", META, K_VERSION, 0},
                                        {"preprocessedProfileVersion", META, K_PREPROCESSED, 0},
                                        {"product", META, K_PRODUCT, 0},
                                        {"sampleUnits", META, UNITS, 0},
                                        {"threadCPUDelta", UNITS, K_CPU_UNIT, 0},
                                        {"name", LIB, K_NAME, 0},
                                        {"path", LIB, K_PATH, 0},
                                        {"debugName", LIB, K_DEBUG_NAME, 0},
                                        {"pdbName", LIB, K_DEBUG_NAME, 0}, /* Windows, before version 4 */
                                        {"codeId", LIB, K_CODE_ID, 0},
                                        {"breakpadId", LIB, K_BREAKPAD_ID, 0},
                                        {"addresses", LIB, K_ADDRESSES, 0},
                                        {"start", LIB, K_START, 0},
                                        {"end", LIB, K_END, 0},
                                        {"offset", LIB, K_OFFSET, 0},
                                        {"name", THREAD, K_NAME, 0},
                                        {"processName", THREAD, K_PROCESS_NAME, 0},
                                        {"pid", THREAD, K_PID, 0},
                                        {"tid", THREAD, K_TID, 0},
                                        {"valueType", THREAD, K_VALUE, 0},
                                        {"valueUnit", THREAD, K_VALUE_UNIT, 0},
                                        {"libs", THREAD, LIBS, 0},
                                        {"samples", THREAD, TABLE, FP_FIREFOX_SAMPLES},
                                        {"jsAllocations", THREAD, TABLE, FP_FIREFOX_JS},
                                        {"nativeAllocations", THREAD, TABLE, FP_FIREFOX_NATIVE},
                                        {"markers", THREAD, TABLE, FP_FIREFOX_MARKERS},
                                        {"stackTable", THREAD, TABLE, FP_FIREFOX_STACKS},
                                        {"frameTable", THREAD, TABLE, FP_FIREFOX_FRAMES},
                                        {"funcTable", THREAD, TABLE, FP_FIREFOX_FUNCS},
                                        {"resourceTable", THREAD, TABLE, FP_FIREFOX_RESOURCES},
                                        {"sources", THREAD, TABLE, FP_FIREFOX_SOURCES},
                                        {"stringTable", THREAD, STRINGS, FP_FIREFOX_STRING_TABLE},
                                        {"stringArray", THREAD, STRINGS, FP_FIREFOX_STRING_TABLE},
                                        {"length", TABLE, K_LENGTH, 0},
                                        {"weightType", TABLE, K_WEIGHT_TYPE, 0},
                                        {"schema", TABLE, SCHEMA, 0},
                                        {"data", TABLE, DATA, 0}};

struct column_name {
    const char *text;
    uint8_t kind, column;
};

static const struct column_name columns[] = {{"filename", FP_FIREFOX_SOURCES, FP_FIREFOX_FIRST},
                                             {"lib", FP_FIREFOX_RESOURCES, FP_FIREFOX_FIRST},
                                             {"name", FP_FIREFOX_FUNCS, FUNC_NAME},
                                             {"resource", FP_FIREFOX_FUNCS, FUNC_RESOURCE},
                                             {"source", FP_FIREFOX_FUNCS, FUNC_SOURCE},
                                             {"fileName", FP_FIREFOX_FUNCS, FUNC_FILE},
                                             {"lineNumber", FP_FIREFOX_FUNCS, FUNC_LINE},
                                             {"func", FP_FIREFOX_FRAMES, FRAME_FUNC},
                                             {"line", FP_FIREFOX_FRAMES, FRAME_LINE},
                                             {"column", FP_FIREFOX_FRAMES, FRAME_COLUMN},
                                             {"address", FP_FIREFOX_FRAMES, FRAME_ADDRESS},
                                             {"lib", FP_FIREFOX_FRAMES, FRAME_LIB},
                                             {"location", FP_FIREFOX_FRAMES, FRAME_LOCATION},
                                             {"frame", FP_FIREFOX_STACKS, STACK_FRAME},
                                             {"prefix", FP_FIREFOX_STACKS, STACK_PREFIX},
                                             {"prefixOffset", FP_FIREFOX_STACKS, STACK_OFFSET},
                                             {"name", FP_FIREFOX_MARKERS, MARKER_NAME},
                                             {"startTime", FP_FIREFOX_MARKERS, MARKER_START},
                                             {"endTime", FP_FIREFOX_MARKERS, MARKER_END},
                                             {"phase", FP_FIREFOX_MARKERS, MARKER_PHASE},
                                             {"time", FP_FIREFOX_MARKERS, MARKER_TIME},
                                             {"count", FP_FIREFOX_COUNTERS, COUNTER_COUNT},
                                             {"time", FP_FIREFOX_COUNTERS, COUNTER_TIME},
                                             {"timeDeltas", FP_FIREFOX_COUNTERS, COUNTER_DELTA},
                                             /* samples; allocations have the same columns except CPU times */
                                             {"stack", FP_FIREFOX_SAMPLES, FP_FIREFOX_IN_STACK},
                                             {"time", FP_FIREFOX_SAMPLES, FP_FIREFOX_IN_TIME},
                                             {"timeDeltas", FP_FIREFOX_SAMPLES, FP_FIREFOX_IN_DELTA},
                                             {"weight", FP_FIREFOX_SAMPLES, FP_FIREFOX_IN_WEIGHT},
                                             {"duration", FP_FIREFOX_SAMPLES, FP_FIREFOX_IN_WEIGHT},
                                             {"threadCPUDelta", FP_FIREFOX_SAMPLES, FP_FIREFOX_IN_CPU}};
enum { N_COLUMNS = sizeof columns / sizeof *columns };

void fp_firefox_key(struct fp_firefox_read *r) {
    const uint32_t here = r->levels[r->depth - 1].kind, inside = here == SHARED ? THREAD : here;
    r->key = NO_KEY;
    if (here == TABLE || here == SCHEMA) {
        const uint32_t kind = r->tables[r->table].kind, like = fp_firefox_is_samples(kind) ? FP_FIREFOX_SAMPLES : kind;
        for (size_t i = 0; i < N_COLUMNS; i++)
            if (columns[i].kind == like && fp_json_is(&r->json, columns[i].text)) {
                r->key = COLUMN;
                r->key_at = columns[i].column;
                return;
            }
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].inside == inside && fp_json_is(&r->json, names[i].text)) {
            if (here == SHARED && (names[i].key >= K_NAME || names[i].key == LIBS || names[i].at >= FP_FIREFOX_SAMPLES))
                return;
            r->key = names[i].key;
            r->key_at = names[i].at;
            return;
        }
}

void fp_firefox_lib_value(struct fp_firefox_read *r, uint32_t text, int64_t number) {
    struct fp_firefox_lib *l = &r->libs[r->n_libs - 1];
    switch (r->key) {
        case K_NAME: l->name = text; break;
        case K_PATH: l->path = text; break;
        case K_DEBUG_NAME: l->debug_name = text; break;
        case K_CODE_ID: l->code_id = text; break;
        case K_BREAKPAD_ID: l->breakpad_id = text; break;
        case K_ADDRESSES: l->addresses = text; break;
        case K_START: l->start = number; break;
        case K_END: l->end = number; break;
        case K_OFFSET: l->offset = number; break;
        default: break;
    }
}

void fp_firefox_thread_value(struct fp_firefox_read *r, uint32_t text) {
    struct fp_firefox_thread_in *t = &r->threads[r->n_threads - 1];
    switch (r->key) {
        case K_NAME: t->name = text; break;
        case K_PROCESS_NAME: t->process_name = text; break;
        case K_PID: t->pid = text; break;
        case K_TID: t->tid = text; break;
        case K_VALUE:
            t->value = text;
            t->has_value = 1;
            break;
        case K_VALUE_UNIT: t->value_unit = text; break;
        default: break;
    }
}
