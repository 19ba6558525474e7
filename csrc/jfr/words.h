/* jfr/words.h - the names that a flight recording's metadata is searched for.  Private. */
#pragma once

#include "core/core.h"

/* Words with a meaning in the metadata: the first strings of `names`, from 1 on, in this order. */
enum fp_jfr_word {
    FP_JFR_W_METADATA = 1,
    FP_JFR_W_CLASS,
    FP_JFR_W_FIELD,
    FP_JFR_W_ANNOTATION,
    FP_JFR_W_ID,
    FP_JFR_W_NAME,
    FP_JFR_W_SUPER,
    FP_JFR_W_POOL,
    FP_JFR_W_DIMENSION,
    FP_JFR_W_VALUE,
    FP_JFR_W_VALUE_0,
    FP_JFR_W_TRUE,
    /* primitive types, in the order of enum fp_jfr_primitive */
    FP_JFR_W_BOOLEAN,
    FP_JFR_W_BYTE,
    FP_JFR_W_SHORT,
    FP_JFR_W_CHAR,
    FP_JFR_W_INT,
    FP_JFR_W_LONG,
    FP_JFR_W_FLOAT,
    FP_JFR_W_DOUBLE,
    FP_JFR_W_STRING,
    /* annotations, and their values in the order of enum fp_jfr_unit */
    FP_JFR_W_TIMESPAN,
    FP_JFR_W_TIMESTAMP,
    FP_JFR_W_TICKS,
    FP_JFR_W_NANOSECONDS,
    FP_JFR_W_MICROSECONDS,
    FP_JFR_W_MILLISECONDS,
    FP_JFR_W_SECONDS,
    /* fields */
    FP_JFR_W_START_TIME,
    FP_JFR_W_DURATION,
    FP_JFR_W_EVENT_THREAD,
    FP_JFR_W_SAMPLED_THREAD,
    FP_JFR_W_STACK_TRACE,
    FP_JFR_W_STATE,
    FP_JFR_W_OBJECT_CLASS,
    FP_JFR_W_MONITOR_CLASS,
    FP_JFR_W_PARKED_CLASS,
    FP_JFR_W_THROWN_CLASS,
    FP_JFR_W_TRUNCATED,
    FP_JFR_W_FRAMES,
    FP_JFR_W_METHOD,
    FP_JFR_W_LINE,
    FP_JFR_W_BYTECODE,
    FP_JFR_W_TYPE,
    FP_JFR_W_DESCRIPTOR,
    FP_JFR_W_OS_NAME,
    FP_JFR_W_OS_ID,
    FP_JFR_W_JAVA_NAME,
    FP_JFR_W_JAVA_ID,
    FP_JFR_W_VIRTUAL,
    FP_JFR_W_TLAB_SIZE,
    FP_JFR_W_ALLOCATION_SIZE,
    FP_JFR_W_WEIGHT,
    FP_JFR_W_SAMPLES,
    FP_JFR_W_SAMPLING_PERIOD,
    FP_JFR_W_OBJECT_SIZE,
    FP_JFR_W_SIZE,
    FP_JFR_W_JVM_NAME,
    FP_JFR_W_JVM_VERSION,
    FP_JFR_W_PID,
    FP_JFR_W_OS_VERSION,
    FP_JFR_W_LOST_SAMPLES,
    FP_JFR_W_AMOUNT,
    FP_JFR_W_JVM_USER,
    FP_JFR_W_JVM_SYSTEM,
    FP_JFR_W_MACHINE_TOTAL,
    FP_JFR_W_USER,
    FP_JFR_W_SYSTEM,
    FP_JFR_W_HEAP_USED,
    FP_JFR_W_USED_SIZE,
    FP_JFR_W_MEMORY_USED,
    FP_JFR_W_ACTIVE_COUNT,
    FP_JFR_W_LOADED_CLASS_COUNT,
    FP_JFR_W_SWITCH_RATE,
    FP_JFR_W_HEAP_SPACE,
    FP_JFR_W_COMMITTED_SIZE,
    FP_JFR_W_METASPACE,
    FP_JFR_W_USED,
    FP_JFR_W_COMMITTED,
    FP_JFR_WORDS
};
/* The fields of an event that are values at its time, in the slots of fp_jfr_counter_slots. */
enum { FP_JFR_COUNTER_FIELDS = 3 };
struct fp_jfr_counter {
    const char *name;
    const char *unit;                       /* NULL: none */
    uint32_t fields[FP_JFR_COUNTER_FIELDS]; /* words, or FP_JFR_IN of two; 0: none */
};
/* The field `inner` of the structure `outer`. */
#define FP_JFR_IN(outer, inner) ((outer) | (inner) << 8)
extern const struct fp_jfr_counter fp_jfr_counters[];
extern const uint8_t fp_jfr_counter_slots[FP_JFR_COUNTER_FIELDS];
/* + 1; 0: the type is none. */
uint32_t fp_jfr_counter_of(const uint8_t *name, size_t n);
