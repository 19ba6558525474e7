/* The names looked up in the metadata, and the events that become rows. */
#include "jfr/private.h"

static const char *const WORDS[FP_JFR_WORDS] = {
    [FP_JFR_W_METADATA] = "metadata",
    [FP_JFR_W_CLASS] = "class",
    [FP_JFR_W_FIELD] = "field",
    [FP_JFR_W_ANNOTATION] = "annotation",
    [FP_JFR_W_ID] = "id",
    [FP_JFR_W_NAME] = "name",
    [FP_JFR_W_SUPER] = "superType",
    [FP_JFR_W_POOL] = "constantPool",
    [FP_JFR_W_DIMENSION] = "dimension",
    [FP_JFR_W_VALUE] = "value",
    [FP_JFR_W_VALUE_0] = "value-0",
    [FP_JFR_W_TRUE] = "true",
    [FP_JFR_W_BOOLEAN] = "boolean",
    [FP_JFR_W_BYTE] = "byte",
    [FP_JFR_W_SHORT] = "short",
    [FP_JFR_W_CHAR] = "char",
    [FP_JFR_W_INT] = "int",
    [FP_JFR_W_LONG] = "long",
    [FP_JFR_W_FLOAT] = "float",
    [FP_JFR_W_DOUBLE] = "double",
    [FP_JFR_W_STRING] = "java.lang.String",
    [FP_JFR_W_TIMESPAN] = "jdk.jfr.Timespan",
    [FP_JFR_W_TIMESTAMP] = "jdk.jfr.Timestamp",
    [FP_JFR_W_TICKS] = "TICKS",
    [FP_JFR_W_NANOSECONDS] = "NANOSECONDS",
    [FP_JFR_W_MICROSECONDS] = "MICROSECONDS",
    [FP_JFR_W_MILLISECONDS] = "MILLISECONDS",
    [FP_JFR_W_SECONDS] = "SECONDS",
    [FP_JFR_W_START_TIME] = "startTime",
    [FP_JFR_W_DURATION] = "duration",
    [FP_JFR_W_EVENT_THREAD] = "eventThread",
    [FP_JFR_W_SAMPLED_THREAD] = "sampledThread",
    [FP_JFR_W_STACK_TRACE] = "stackTrace",
    [FP_JFR_W_STATE] = "state",
    [FP_JFR_W_OBJECT_CLASS] = "objectClass",
    [FP_JFR_W_MONITOR_CLASS] = "monitorClass",
    [FP_JFR_W_PARKED_CLASS] = "parkedClass",
    [FP_JFR_W_THROWN_CLASS] = "thrownClass",
    [FP_JFR_W_TRUNCATED] = "truncated",
    [FP_JFR_W_FRAMES] = "frames",
    [FP_JFR_W_METHOD] = "method",
    [FP_JFR_W_LINE] = "lineNumber",
    [FP_JFR_W_BYTECODE] = "bytecodeIndex",
    [FP_JFR_W_TYPE] = "type",
    [FP_JFR_W_DESCRIPTOR] = "descriptor",
    [FP_JFR_W_OS_NAME] = "osName",
    [FP_JFR_W_OS_ID] = "osThreadId",
    [FP_JFR_W_JAVA_NAME] = "javaName",
    [FP_JFR_W_JAVA_ID] = "javaThreadId",
    [FP_JFR_W_VIRTUAL] = "virtual",
    [FP_JFR_W_TLAB_SIZE] = "tlabSize",
    [FP_JFR_W_ALLOCATION_SIZE] = "allocationSize",
    [FP_JFR_W_WEIGHT] = "weight",
    [FP_JFR_W_SAMPLES] = "samples",
    [FP_JFR_W_SAMPLING_PERIOD] = "samplingPeriod",
    [FP_JFR_W_OBJECT_SIZE] = "objectSize",
    [FP_JFR_W_SIZE] = "size",
    [FP_JFR_W_JVM_NAME] = "jvmName",
    [FP_JFR_W_JVM_VERSION] = "jvmVersion",
    [FP_JFR_W_PID] = "pid",
    [FP_JFR_W_OS_VERSION] = "osVersion",
    [FP_JFR_W_LOST_SAMPLES] = "lostSamples",
    [FP_JFR_W_AMOUNT] = "amount",
    [FP_JFR_W_JVM_USER] = "jvmUser",
    [FP_JFR_W_JVM_SYSTEM] = "jvmSystem",
    [FP_JFR_W_MACHINE_TOTAL] = "machineTotal",
    [FP_JFR_W_USER] = "user",
    [FP_JFR_W_SYSTEM] = "system",
    [FP_JFR_W_HEAP_USED] = "heapUsed",
    [FP_JFR_W_USED_SIZE] = "usedSize",
    [FP_JFR_W_MEMORY_USED] = "memoryUsed",
    [FP_JFR_W_ACTIVE_COUNT] = "activeCount",
    [FP_JFR_W_LOADED_CLASS_COUNT] = "loadedClassCount",
    [FP_JFR_W_SWITCH_RATE] = "switchRate",
    [FP_JFR_W_HEAP_SPACE] = "heapSpace",
    [FP_JFR_W_COMMITTED_SIZE] = "committedSize",
    [FP_JFR_W_METASPACE] = "metaspace",
    [FP_JFR_W_USED] = "used",
    [FP_JFR_W_COMMITTED] = "committed",
};

void fp_jfr_add_words(struct fp_strings *names) {
    for (uint32_t i = 1; i < FP_JFR_WORDS; i++)
        fp_strings_intern(names, WORDS[i], strlen(WORDS[i])); /* as number i: they come first */
}

const struct fp_jfr_event fp_jfr_events[] = {
    {"jdk.ExecutionSample", FP_JFR_CPU, 0, 0, 0},
    {"jdk.NativeMethodSample", FP_JFR_NATIVE, 0, 0, 0},
    {"jdk.CPUTimeSample", FP_JFR_CPU_TIME, 0, FP_JFR_W_SAMPLING_PERIOD, 0},
    {"profiler.WallClockSample", FP_JFR_WALL, FP_JFR_W_SAMPLES, 0, 0},
    {"jdk.ObjectAllocationInNewTLAB", FP_JFR_IN_TLAB, 0, FP_JFR_W_TLAB_SIZE, 0},
    {"jdk.ObjectAllocationOutsideTLAB", FP_JFR_OUTSIDE_TLAB, 0, FP_JFR_W_ALLOCATION_SIZE, 0},
    {"jdk.ObjectAllocationSample", FP_JFR_ALLOC_SAMPLE, 0, FP_JFR_W_WEIGHT, 0},
    {"profiler.LiveObject", FP_JFR_LIVE, 0, FP_JFR_W_ALLOCATION_SIZE, 0},
    {"jdk.OldObjectSample", FP_JFR_LIVE, 0, FP_JFR_W_OBJECT_SIZE, 0},
    {"jdk.JavaMonitorEnter", FP_JFR_MONITOR, 0, FP_JFR_W_DURATION, 0},
    {"jdk.JavaMonitorWait", FP_JFR_WAIT, 0, FP_JFR_W_DURATION, 0},
    {"jdk.ThreadPark", FP_JFR_PARK, 0, FP_JFR_W_DURATION, 0},
    {"jdk.ThreadSleep", FP_JFR_SLEEP, 0, FP_JFR_W_DURATION, 0},
    {"profiler.NativeLock", FP_JFR_NATIVE_LOCK, 0, FP_JFR_W_DURATION, 0},
    {"profiler.Malloc", FP_JFR_MALLOC, 0, FP_JFR_W_SIZE, 0},
    {"jdk.JavaExceptionThrow", FP_JFR_EXCEPTION, 0, 0, 0},
    {"jdk.MethodTrace", FP_JFR_METHOD_TRACE, 0, FP_JFR_W_DURATION, 0},
    {"datadog.ExecutionSample", FP_JFR_DATADOG_CPU, FP_JFR_W_WEIGHT, 0, 0},
    {"datadog.MethodSample", FP_JFR_DATADOG_WALL, FP_JFR_W_WEIGHT, 0, 0},
    {"datadog.ObjectSample", FP_JFR_DATADOG_ALLOC, FP_JFR_W_WEIGHT, FP_JFR_W_SIZE, 1},
    {"datadog.HeapLiveObject", FP_JFR_LIVE, FP_JFR_W_WEIGHT, FP_JFR_W_SIZE, 1},
};

enum { N_EVENTS = sizeof fp_jfr_events / sizeof fp_jfr_events[0] };

/* JDK 9's names: com.oracle.jdk.ExecutionSample. */
static const char ORACLE[] = "com.oracle.";

/* Whether a type has this name, or once had it. */
static int is_called(const uint8_t *name, size_t n, const char *text) {
    const size_t prefix = sizeof ORACLE - 1;
    if (n > prefix && !memcmp(name, ORACLE, prefix)) name += prefix, n -= prefix;
    return strlen(text) == n && !memcmp(text, name, n);
}

uint32_t fp_jfr_event_of(const uint8_t *name, size_t n) {
    for (uint32_t i = 0; i < N_EVENTS; i++)
        if (is_called(name, n, fp_jfr_events[i].name)) return i + 1;
    return 0;
}

const struct fp_jfr_counter fp_jfr_counters[] = {
    {"jdk.CPULoad", "share", {FP_JFR_W_JVM_USER, FP_JFR_W_JVM_SYSTEM, FP_JFR_W_MACHINE_TOTAL}},
    {"jdk.ThreadCPULoad", "share", {FP_JFR_W_USER, FP_JFR_W_SYSTEM}},
    {"jdk.GCHeapSummary", "bytes", {FP_JFR_W_HEAP_USED, FP_JFR_IN(FP_JFR_W_HEAP_SPACE, FP_JFR_W_COMMITTED_SIZE)}},
    {"jdk.MetaspaceSummary",
     "bytes",
     {FP_JFR_IN(FP_JFR_W_METASPACE, FP_JFR_W_USED), FP_JFR_IN(FP_JFR_W_METASPACE, FP_JFR_W_COMMITTED)}},
    {"jdk.PhysicalMemory", "bytes", {FP_JFR_W_USED_SIZE}},
    {"jdk.ResidentSetSize", "bytes", {FP_JFR_W_SIZE}},
    {"jdk.DirectBufferStatistics", "bytes", {FP_JFR_W_MEMORY_USED}},
    {"jdk.JavaThreadStatistics", NULL, {FP_JFR_W_ACTIVE_COUNT}},
    {"jdk.ClassLoadingStatistics", NULL, {FP_JFR_W_LOADED_CLASS_COUNT}},
    {"jdk.ThreadContextSwitchRate", "per second", {FP_JFR_W_SWITCH_RATE}},
};
const uint8_t fp_jfr_counter_slots[FP_JFR_COUNTER_FIELDS] = {FP_JFR_DURATION_SLOT, FP_JFR_EVENT_WEIGHT,
                                                             FP_JFR_EVENT_VALUE};

uint32_t fp_jfr_counter_of(const uint8_t *name, size_t n) {
    for (uint32_t i = 0; i < sizeof fp_jfr_counters / sizeof *fp_jfr_counters; i++)
        if (is_called(name, n, fp_jfr_counters[i].name)) return i + 1;
    return 0;
}

uint32_t fp_jfr_metric_of(const char *name, uint32_t n) {
    const uint32_t event = fp_jfr_event_of((const uint8_t *)name, n);
    return event ? fp_jfr_events[event - 1].metric + 1u : 0;
}

uint32_t fp_jfr_fact_of(const uint8_t *name, size_t n) {
    static const char *const NAMES[] = {
        [FP_JFR_SETTING] = "jdk.ActiveSetting", [FP_JFR_JVM] = "jdk.JVMInformation",
        [FP_JFR_OS] = "jdk.OSInformation",      [FP_JFR_LOST_SAMPLES] = "jdk.CPUTimeSamplesLost",
        [FP_JFR_DATA_LOSS] = "jdk.DataLoss",
    };
    for (uint32_t i = 0; i < sizeof NAMES / sizeof NAMES[0]; i++)
        if (is_called(name, n, NAMES[i])) return i + 1;
    return 0;
}

/* ---- the fields to read ---- */

#define SLOTS(array) *n = sizeof(array) / sizeof((array)[0]), array

static const struct fp_jfr_want *fact_wants(uint32_t fact, uint32_t *n) {
    static const struct fp_jfr_want setting[] = {{FP_JFR_W_ID, 0}, {FP_JFR_W_NAME, 1}, {FP_JFR_W_VALUE, 2}};
    static const struct fp_jfr_want jvm[] = {{FP_JFR_W_JVM_NAME, 0}, {FP_JFR_W_JVM_VERSION, 1}, {FP_JFR_W_PID, 2}};
    static const struct fp_jfr_want os[] = {{FP_JFR_W_OS_VERSION, 0}};
    static const struct fp_jfr_want lost[] = {{FP_JFR_W_LOST_SAMPLES, 0}};
    static const struct fp_jfr_want loss[] = {{FP_JFR_W_AMOUNT, 0}};
    static const struct fp_jfr_want duration[] = {{FP_JFR_W_DURATION, FP_JFR_DURATION_SLOT}};
    switch (fact) {
        case FP_JFR_SETTING: return SLOTS(setting);
        case FP_JFR_JVM: return SLOTS(jvm);
        case FP_JFR_OS: return SLOTS(os);
        case FP_JFR_LOST_SAMPLES: return SLOTS(lost);
        case FP_JFR_TIMED: return SLOTS(duration);
        default: return SLOTS(loss);
    }
}

const struct fp_jfr_want *fp_jfr_wants(const struct fp_jfr_type *type, uint32_t *n, struct fp_jfr_want *scratch) {
    static const struct fp_jfr_want stack[] = {{FP_JFR_W_TRUNCATED, FP_JFR_STACK_CUT},
                                               {FP_JFR_W_FRAMES, FP_JFR_STACK_FRAMES}};
    static const struct fp_jfr_want frame[] = {{FP_JFR_W_METHOD, FP_JFR_FRAME_METHOD},
                                               {FP_JFR_W_LINE, FP_JFR_FRAME_LINE},
                                               {FP_JFR_W_BYTECODE, FP_JFR_FRAME_BYTECODE},
                                               {FP_JFR_W_TYPE, FP_JFR_FRAME_TYPE}};
    static const struct fp_jfr_want method[] = {{FP_JFR_W_TYPE, FP_JFR_METHOD_CLASS},
                                                {FP_JFR_W_NAME, FP_JFR_METHOD_NAME},
                                                {FP_JFR_W_DESCRIPTOR, FP_JFR_METHOD_DESCRIPTOR}};
    static const struct fp_jfr_want class_[] = {{FP_JFR_W_NAME, FP_JFR_CLASS_NAME}};
    static const struct fp_jfr_want thread[] = {{FP_JFR_W_OS_NAME, FP_JFR_THREAD_OS_NAME},
                                                {FP_JFR_W_OS_ID, FP_JFR_THREAD_OS_ID},
                                                {FP_JFR_W_JAVA_NAME, FP_JFR_THREAD_NAME},
                                                {FP_JFR_W_JAVA_ID, FP_JFR_THREAD_ID},
                                                {FP_JFR_W_VIRTUAL, FP_JFR_THREAD_VIRTUAL}};
    static const struct fp_jfr_want event[] = {{FP_JFR_W_START_TIME, FP_JFR_START},
                                               {FP_JFR_W_EVENT_THREAD, FP_JFR_EVENT_THREAD},
                                               {FP_JFR_W_SAMPLED_THREAD, FP_JFR_EVENT_THREAD},
                                               {FP_JFR_W_STACK_TRACE, FP_JFR_EVENT_STACK},
                                               {FP_JFR_W_STATE, FP_JFR_EVENT_STATE},
                                               {FP_JFR_W_OBJECT_CLASS, FP_JFR_EVENT_CLASS},
                                               {FP_JFR_W_MONITOR_CLASS, FP_JFR_EVENT_CLASS},
                                               {FP_JFR_W_PARKED_CLASS, FP_JFR_EVENT_CLASS},
                                               {FP_JFR_W_THROWN_CLASS, FP_JFR_EVENT_CLASS}};
    static const struct fp_jfr_want span[] = {
        {FP_JFR_W_START_TIME, FP_JFR_START},          {FP_JFR_W_DURATION, FP_JFR_DURATION_SLOT},
        {FP_JFR_W_EVENT_THREAD, FP_JFR_EVENT_THREAD}, {FP_JFR_W_NAME, FP_JFR_EVENT_STATE},
        {FP_JFR_W_MONITOR_CLASS, FP_JFR_EVENT_CLASS}, {FP_JFR_W_PARKED_CLASS, FP_JFR_EVENT_CLASS}};
    *n = 0;
    if (type->is_span || type->is_instant) return SLOTS(span);
    if (type->counter) {
        const uint32_t *fields = fp_jfr_counters[type->counter - 1].fields;
        scratch[(*n)++] = (struct fp_jfr_want){FP_JFR_W_START_TIME, FP_JFR_START};
        scratch[(*n)++] = (struct fp_jfr_want){FP_JFR_W_EVENT_THREAD, FP_JFR_EVENT_THREAD};
        for (uint32_t i = 0; i < FP_JFR_COUNTER_FIELDS && fields[i]; i++)
            scratch[(*n)++] = (struct fp_jfr_want){(uint16_t)fields[i], fp_jfr_counter_slots[i]};
        return scratch;
    }
    if (type->fact) return fact_wants(type->fact - 1, n);
    if (type->event) {
        const struct fp_jfr_event *what = &fp_jfr_events[type->event - 1];
        *n = sizeof event / sizeof event[0];
        memcpy(scratch, event, sizeof event);
        if (what->weight) scratch[(*n)++] = (struct fp_jfr_want){what->weight, FP_JFR_EVENT_WEIGHT};
        if (what->value) scratch[(*n)++] = (struct fp_jfr_want){what->value, FP_JFR_EVENT_VALUE};
        return scratch;
    }
    switch (type->role) {
        case FP_JFR_STACK: return SLOTS(stack);
        case FP_JFR_FRAME: return SLOTS(frame);
        case FP_JFR_METHOD: return SLOTS(method);
        case FP_JFR_CLASS: return SLOTS(class_);
        case FP_JFR_THREAD: return SLOTS(thread);
        default: return NULL;
    }
}
