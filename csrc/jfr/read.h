/* jfr/read.h - JDK Flight Recorder's recordings, as samples with call stacks or as timelines of events.
 *
 *   file      chunks
 *   chunk     header of 68 bytes, big-endian | records
 *   record    varint size of the whole record, varint type | body
 *
 *   14 ce 02 ...    a record of 20 bytes of type 334
 *
 * Type 0 is metadata, which describes all other types of its chunk; type 1 is a checkpoint, whose constants (stacks,
 * methods, names, threads) other records refer to by type and key.  Records of other types are events with the fields
 * of their type, in order.  Type numbers, fields and constants are valid only in their chunk.
 *
 * Varints are little-endian groups of 7 bits, of at most 9 bytes; the 9th has 8 bits.  They are not zigzag.
 *
 * A chunk is read in ranges, in this order:
 *
 *   fp_jfr_metadata    the types: each becomes, when it is needed, a program of operations such as "skip 3 varints"
 *   fp_jfr_walk        the sizes of records: finds checkpoints and counts the events of each type
 *   fp_jfr_constants   each checkpoint: values are kept as bytes, and decoded when an event refers to them
 *   fp_jfr_feed        the events: samples become rows
 *
 * If the header lacks the offset of the metadata, a first walk finds it.
 *
 * The caller walks all chunks before it reads the events of the first, because it must know value types and periods.
 *
 * Memory: the constants of a chunk, and the model.
 * Source: jdk/jfr/internal/consumer of JDK 25; flightRecorder.cpp of async-profiler 4.
 */
#pragma once

#include "jfr/state.h"

/* What a sample measures: a count and, for most, a second value.  Different metrics are never added up. */
enum fp_jfr_metric {
    FP_JFR_CPU = 0,
    FP_JFR_WALL = 1,
    FP_JFR_CPU_TIME = 2,
    FP_JFR_NATIVE = 3,
    FP_JFR_IN_TLAB = 4,
    FP_JFR_OUTSIDE_TLAB = 5,
    FP_JFR_ALLOC_SAMPLE = 6,
    FP_JFR_LIVE = 7,
    FP_JFR_MONITOR = 8,
    FP_JFR_WAIT = 9,
    FP_JFR_PARK = 10,
    FP_JFR_SLEEP = 11,
    FP_JFR_NATIVE_LOCK = 12,
    FP_JFR_MALLOC = 13,
    FP_JFR_EXCEPTION = 14,
    FP_JFR_METHOD_TRACE = 15,
    FP_JFR_DATADOG_CPU = 16,
    FP_JFR_DATADOG_WALL = 17,
    FP_JFR_DATADOG_ALLOC = 18,
    FP_JFR_METRICS = 19
};

enum { FP_JFR_NO_COLUMN = 0xffffffffu, FP_JFR_SLOTS = 12, FP_JFR_MOST_DEPTH = 32 };

/* What FP_NEEDS requests. */
enum fp_jfr_request {
    FP_JFR_COLUMNS = 1, /* metric `requested_metric` needs columns: drain the batch,
                           add a part, set `column` */
    FP_JFR_FACT = 2,    /* an event that describes the recording: `fact` */
    FP_JFR_SPILL = 3,   /* serve `rounds` */
    FP_JFR_PROBED = 4   /* a probe found a sample and needs no more */
};

/* A field of an event that describes the recording. */
struct fp_jfr_fact {
    int64_t number;
    uint64_t text; /* offset in `text` of the reader */
    uint32_t n;    /* its bytes */
    int32_t is_text;
};

/* A record of type 0 or 1 that the walk found.  Offsets count from the start of the input. */
struct fp_jfr_place {
    uint64_t at, size;
    int64_t delta; /* of a checkpoint: distance to the previous one; 0: it is the first */
    uint32_t is_checkpoint;
};

struct fp_jfr_counts {
    uint64_t rows;
    uint64_t FP_COUNT(no_stack, "samples-without-stack");
    uint64_t truncated; /* samples whose stack the JVM cut */
    uint64_t FP_COUNT(dangling, "missing-constants", repairs,
                      "reference(s) to (a name, stack|names, stacks) or thread(s) that the JVM did not write");
    uint64_t FP_COUNT(unknown_types, "undescribed-events", not_representable,
                      "event(s) of (a type|types) that the recording does not describe");
    uint64_t FP_COUNT(timed, "timed-events", not_representable,
                      "event(s) with (a duration|durations) ({-O jfr.events} reads these)");
    uint64_t depth;                 /* frames of the deepest stack */
    uint64_t first_time, last_time; /* of samples added to rows; first > last: none */
    uint64_t instants;              /* events that are no rows, but instants or values of a timeline */
    /* timelines */
    uint64_t taken; /* events that became calls, instants or values */
    uint64_t FP_COUNT(lanes, "overlapping-events", repairs, "thread(s) added for overlapping events");
    uint64_t FP_COUNT(cut_spans, "shortened-events", repairs,
                      "event(s) that (overlaps|overlap) too many others, ended with another");
    /* lenient: losses */
    uint64_t lost_bytes;
    uint64_t FP_COUNT(bad_records, "damaged-records");
    uint64_t FP_COUNT(bad_constants, "damaged-checkpoints", losses, "checkpoint with a damaged constant",
                      "checkpoints with damaged constants");
};

struct fp_jfr_options {
    int32_t kinds;      /* add suffixes to names for how code was compiled: _[j] ... */
    int32_t signatures; /* add parameter types to names */
    int32_t join;       /* remove the numbers of hidden classes from names */
    int32_t class_leaf; /* add the class of an object or monitor as the innermost frame */
    int32_t cut_root;   /* give stacks that the JVM truncated a root [truncated] */
};

/* What the caller sets of each chunk. */
struct fp_jfr_in_chunk {
    int32_t compressed;
    uint64_t stop; /* the end of the range in the input */
    int64_t start_ns, start_ticks;
    uint64_t ticks_per_second;
    uint32_t pid;
    int32_t is_wall;                /* ExecutionSample is a sample of wall-clock time */
    int64_t period[FP_JFR_METRICS]; /* nanoseconds or events of a sample, by metric */
};

/* Results of the walk. */
struct fp_jfr_walked {
    struct fp_jfr_place *places;
    uint32_t n_places;
    uint64_t end;    /* of the last complete record */
    int32_t is_next; /* a new chunk begins there */
    int32_t has_samples;
    int32_t has_lasting;       /* events that become samples, but that a timeline may have, too */
    struct fp_strings counted; /* names of types of events: see fp_jfr_counted */

    /* private from here on */
    uint64_t *n_counted; /* by string of `counted` */
    uint32_t cap_counted, cap_places;
};

struct fp_jfr_reader {
    struct fp_model *model;
    struct fp_rounds rounds; /* timelines */
    int32_t lenient;
    int32_t timeline;     /* read events with durations, not samples */
    int32_t is_probe;     /* fp_jfr_walk stops at the first sample: FP_NEEDS, and `has_samples` is set */
    int32_t is_summed;    /* add up samples with equal stacks and labels: single times are not needed */
    int32_t is_portable;  /* for tests: use no instructions that only some processors have */
    int32_t always_holds; /* for tests: every sample that can waits to be added up */
    struct fp_jfr_options options;
    uint32_t input, virtual_input; /* of threads, and of threads with only a Java id */

    struct fp_jfr_in_chunk chunk;
    uint32_t column[FP_JFR_METRICS];   /* by metric */
    int32_t has_value[FP_JFR_METRICS]; /* whether a second column follows */

    struct fp_jfr_counts counts;

    struct fp_jfr_walked walked;

    /* after FP_NEEDS */
    int32_t request;
    uint32_t requested_metric, requested_kind; /* enum fp_jfr_fact_kind */
    struct fp_jfr_fact fact[FP_JFR_SLOTS];
    struct fp_buf text;

    uint64_t skip; /* bytes left, from the window's position on, of a record that is skipped; the caller may do it */

    /* private from here on */
    struct fp_jfr_metadata metadata;
    struct fp_jfr_programs programs;
    struct fp_jfr_constants constants;
    struct fp_jfr_stacks stacks;
    struct fp_jfr_methods methods;
    struct fp_jfr_sums sums;
    struct fp_jfr_names names;
    struct fp_jfr_spans spans;
};

/* The events that fp_jfr_walk passes to the caller, and their fields. */
enum fp_jfr_fact_kind {
    FP_JFR_SETTING = 0,      /* type's name, name, value */
    FP_JFR_JVM = 1,          /* name, version, pid */
    FP_JFR_OS = 2,           /* version */
    FP_JFR_LOST_SAMPLES = 3, /* number */
    FP_JFR_DATA_LOSS = 4,    /* bytes */
    FP_JFR_TIMED = 5         /* not passed on */
};

/* Borrows the model; the caller owns the reader. */
struct fp_jfr_reader *fp_jfr_reader_new(struct fp_model *model);
void fp_jfr_reader_free(struct fp_jfr_reader *r);

/* Begins a chunk: forgets constants and the results of the walk. */
void fp_jfr_begin(struct fp_jfr_reader *r);

/* Walks over the records up to the end of the range.  `open`: the chunk's size is unknown; it ends where another
 * begins.  After fp_jfr_metadata it also counts events by type, and returns FP_NEEDS at facts.  FP_MORE, FP_NEEDS,
 * FP_DONE, or an error; lenient: a damaged record ends the walk. */
int fp_jfr_walk(struct fp_jfr_reader *r, int open, struct fp_window *in, struct fp_err *err);

/* Reads a range that is a metadata record.  FP_MORE, FP_DONE, or an error. */
int fp_jfr_metadata(struct fp_jfr_reader *r, struct fp_window *in, struct fp_err *err);

/* Reads a range that is a checkpoint.  FP_MORE, FP_DONE, or an error. */
int fp_jfr_constants(struct fp_jfr_reader *r, struct fp_window *in, struct fp_err *err);

/* Converts the events of a chunk to rows.  FP_MORE, FP_FULL, FP_NEEDS, FP_DONE, or an error. */
int fp_jfr_feed(struct fp_jfr_reader *r, struct fp_window *in, struct fp_batch *out, struct fp_err *err);

/* After all chunks, if samples are added up: the rows of those that still wait.  FP_FULL, FP_NEEDS, FP_DONE, or
 * FP_E_NOMEM. */
int fp_jfr_release(struct fp_jfr_reader *r, struct fp_batch *out, struct fp_err *err);

/* Forgets samples that wait, which have no rows then, so that the model's stacks can be emptied again. */
void fp_jfr_abandon(struct fp_jfr_reader *r);

/* For timelines: fp_jfr_spans collects the events of a chunk; after all chunks, fp_jfr_pull returns the rows.
 * FP_MORE or FP_FULL, FP_NEEDS, FP_DONE, or an error. */
int fp_jfr_spans(struct fp_jfr_reader *r, struct fp_window *in, struct fp_err *err);
int fp_jfr_pull(struct fp_jfr_reader *r, struct fp_batch *out, struct fp_err *err);

/* The name (a string) of a thread of the model; 0: none. */
uint32_t fp_jfr_thread_name(const struct fp_jfr_reader *r, uint32_t thread);

/* Events so far of the type with this number in `counted`, from 1 on. */
uint64_t fp_jfr_counted(const struct fp_jfr_reader *r, uint32_t i);
/* Whether events of this name become rows: the metric + 1, or 0. */
uint32_t fp_jfr_metric_of(const char *name, uint32_t n);
