/* perfetto/read.h - Perfetto traces -> timeline rows, or stacks.
 *
 * A trace is a list of packets.  A packet belongs to a sequence, whose state (interned names, defaults, clocks) later
 * packets refer to, and may hold many events:
 *
 *   0a 0d                   packet
 *     40 05                 timestamp: 5
 *     50 02                 sequence 2
 *     68 02                 needs the state of the sequence
 *     5a 05 48 01 50 8c 01  track_event: BEGIN of the name 140
 *
 * Packets are in order of time within a sequence only, and tracks may be described after their events.  So events
 * become records, which are sorted by time (core/rounds.h), and rows are made of them at the end, when all tracks are
 * known.
 *
 * A trace may contain several kinds of data; fp_perfetto_survey finds them, and `data` chooses one.  Everything else
 * is counted.
 *
 * Memory: linear in sequences and their names, tracks, open calls, clock snapshots; records up to rounds.most.
 * Source: google/perfetto protos/perfetto/trace; the order of work on a packet is that of its trace processor,
 * src/trace_processor/importers/proto/proto_trace_reader.cc.
 */
#pragma once

#include "perfetto/state.h"

/* The data that become rows. */
enum fp_perfetto_data {
    FP_PERFETTO_CALLS = 1,   /* timeline: calls of track events and of atrace */
    FP_PERFETTO_STATES = 2,  /* timeline: states of threads, from switches of the scheduler */
    FP_PERFETTO_SAMPLES = 3, /* stacks: samples with call stacks */
    FP_PERFETTO_HEAP = 4,    /* stacks: dumps of heapprofd */
    FP_PERFETTO_OFF_CPU = 5, /* stacks: off-CPU time by open calls */
    FP_PERFETTO_OBJECTS = 6, /* stacks: objects of Java heaps */
    FP_PERFETTO_V8 = 7       /* no rows: `text` of V8's samples, which chrome/samples.h reads */
};

/* What the caller must do after FP_NEEDS, before the next call. */
enum fp_perfetto_asks {
    FP_PERFETTO_INFLATE = 1, /* call fp_perfetto_give with the next decompressed bytes of `compressed` */
    FP_PERFETTO_SPILL = 2,   /* perform rounds.asks */
    FP_PERFETTO_THREAD = 3,  /* call fp_perfetto_set_thread for place `requested`, lane `requested_lane` */
    FP_PERFETTO_TEXT = 4     /* take `text` and set its n to 0 */
};

/* Indices of `counts`. */
enum fp_perfetto_counts {
    FP_PERFETTO_N_PACKETS,
    FP_COUNT(FP_PERFETTO_N_CALLS, "trace-calls", not_representable, "call(s) ({-O perfetto.data:=}calls reads these)"),
    FP_COUNT(FP_PERFETTO_N_INSTANTS, "trace-instants", not_representable, "event(s) without duration"),
    FP_COUNT(FP_PERFETTO_N_COUNTERS, "counter-values"),
    FP_COUNT(FP_PERFETTO_N_FLOWS, "flows", not_representable, "end(s) of (a flow|flows)"),
    FP_COUNT(FP_PERFETTO_N_ANNOTATED, "event-arguments", not_representable, "event(s) with other arguments"),
    FP_COUNT(FP_PERFETTO_N_TRACK_STATES, "track-states", not_representable, "state(s) of (a track|tracks)"),
    FP_COUNT(FP_PERFETTO_N_OTHER_EVENTS, "other-events", not_representable, "event(s) of (another|other) kind(s)"),
    FP_COUNT(FP_PERFETTO_N_EVENT_STACKS, "event-stacks", not_representable, "stack(s) of (an event|events)"),
    FP_COUNT(FP_PERFETTO_N_SAMPLES, "trace-samples", not_representable,
             "sample with a call stack ({-O perfetto.data:=}samples reads these)",
             "samples with call stacks ({-O perfetto.data:=}samples reads these)"),
    FP_COUNT(FP_PERFETTO_N_V8_CHUNKS, "v8-chunks", not_representable,
             "chunk of a V8 profile ({-O perfetto.data:=}v8 reads these)",
             "chunks of V8 profiles ({-O perfetto.data:=}v8 reads these)"),
    FP_COUNT(FP_PERFETTO_N_HEAP_SAMPLES, "heap-samples", not_representable,
             "stack in a heap dump ({-O perfetto.data:=}allocations reads these)",
             "stacks in heap dumps ({-O perfetto.data:=}allocations reads these)"),
    FP_COUNT(FP_PERFETTO_N_OBJECTS, "heap-objects", not_representable,
             "object of a Java heap ({-O perfetto.data:=}objects reads these)",
             "objects of Java heaps ({-O perfetto.data:=}objects reads these)"),
    FP_COUNT(FP_PERFETTO_N_LONG_PATHS, "long-paths", not_representable,
             "path(s) of (an object|objects) beyond 512 references from (its|their) root(s)"),
    FP_COUNT(FP_PERFETTO_N_SWITCHES, "sched-switches", not_representable,
             "(switch|switches) of the scheduler ({-O perfetto.data:=}states or off-cpu reads these)"),
    FP_COUNT(FP_PERFETTO_N_WAITS, "unended-waits", not_representable, "thread(s) off the CPU at the end"),
    FP_COUNT(FP_PERFETTO_N_KERNEL, "kernel-events", not_representable, "other event(s) of the kernel"),
    FP_COUNT(FP_PERFETTO_N_PRINTS, "prints", not_representable, "other print(s) of atrace"),
    FP_COUNT(FP_PERFETTO_N_OTHER, "other-packets", not_representable, "packet(s) of (another|other) kind(s)"),
    /* repairs */
    FP_COUNT(FP_PERFETTO_N_ORPHANS, "orphan-exits"),
    FP_COUNT(FP_PERFETTO_N_UNWOUND, "unwound-frames"),
    FP_COUNT(FP_PERFETTO_N_LANES, "overlapping-calls", repairs,
             "overlapping call(s), moved to (a lane|lanes) of (its|their) thread"),
    FP_COUNT(FP_PERFETTO_N_CUT, "cut-calls", repairs, "overlapping call(s), shortened"),
    FP_COUNT(FP_PERFETTO_N_NAMELESS, "unknown-names", warnings, "{file}: calls with an unknown name: {n:,}"),
    FP_COUNT(FP_PERFETTO_N_EMPTY_STACKS, "samples-without-stack"),
    FP_COUNT(FP_PERFETTO_N_NEGATIVE, "negative-times", repairs, "event(s) before time 0, dropped"),
    /* lost by the recorder, or unreadable because of such a loss */
    FP_COUNT(FP_PERFETTO_N_DROPPED, "dropped-packets", warnings,
             "{file}: packets of a sequence dropped by the recorder: {n:,}"),
    FP_COUNT(FP_PERFETTO_N_STATELESS, "no-state", warnings,
             "{file}: packets dropped because they refer to names that were lost: {n:,}"),
    FP_COUNT(FP_PERFETTO_N_NO_SEQUENCE, "no-sequence", warnings,
             "{file}: events dropped because they have no sequence: {n:,}"),
    FP_COUNT(FP_PERFETTO_N_NO_TIME, "no-time", warnings,
             "{file}: events dropped because they have no time, or one of an unknown clock: {n:,}"),
    FP_COUNT(FP_PERFETTO_N_NO_STACK, "no-stacks", warnings,
             "{file}: samples dropped because their stack is unknown: {n:,}"),
    FP_COUNT(FP_PERFETTO_N_LOST_SAMPLES, "lost-samples", warnings,
             "{file}: samples skipped or lost by the recorder: {n:,}"),
    FP_COUNT(FP_PERFETTO_N_BAD_UNWINDS, "incomplete-stacks", warnings, "{file}: stacks not unwound completely: {n:,}"),
    FP_COUNT(FP_PERFETTO_N_LOST_EVENTS, "event-buffers-lost", warnings, "{file}: times the kernel lost events: {n:,}"),
    FP_COUNT(FP_PERFETTO_N_LOST_CHUNKS, "lost-chunks", warnings,
             "{file}: chunks of the trace lost by the recorder: {n:,}"),
    FP_COUNT(FP_PERFETTO_N_HEAP_PROBLEMS, "incomplete-heap-dumps", warnings, "{file}: incomplete heap dumps: {n:,}"),
    FP_COUNT(FP_PERFETTO_N_ZSTD, "zstd-packets", losses, "packet(s) compressed with zstd"),
    FP_COUNT(FP_PERFETTO_N_BAD_COMPACT, "damaged-switches", losses,
             "damaged buffer(s) of scheduler switches, read up to the damage"),
    /* lenient: losses */
    FP_COUNT(FP_PERFETTO_N_BAD_PACKETS, "damaged-packets", losses, "damaged packet(s)"),
    FP_COUNT(FP_PERFETTO_N_BAD_BYTES, "skipped-bytes"),
    FP_PERFETTO_COUNTS
};

/* The name of a process (tid is -1) or thread. */
struct fp_perfetto_named {
    int64_t pid, tid;
    uint32_t name; /* string of the model */
    uint32_t by;   /* what named it; better ones replace it */
};

/* Where rows go: a thread, or lanes of a process, of a thread or of the trace. */
struct fp_perfetto_place {
    int64_t pid, tid; /* -1: none */
    uint32_t path;    /* of lanes: string of the model; 0 for a thread */
    int32_t is_lanes;
    /* private from here on */
    struct fp_perfetto_lane *lanes; /* of a thread: itself, then lanes for calls that overlap */
    uint32_t cap_lanes, n_lanes;
    uint32_t *free_lanes;
    uint32_t n_free, cap_free;
    uint32_t dump; /* the last one of its Java heap */
};

/* The stack of the model of a chain, plus 1, valid as long as the model's n_renewed is the same. */
struct fp_perfetto_node {
    uint32_t node, n_renewed;
};

struct fp_perfetto_read {
    struct fp_model *model; /* borrowed */
    int32_t lenient;
    uint32_t data; /* enum fp_perfetto_data */
    struct fp_rounds rounds;
    uint64_t counts[FP_PERFETTO_COUNTS];
    uint32_t asks; /* after FP_NEEDS: enum fp_perfetto_asks */
    const uint8_t *compressed;
    size_t n_compressed;
    uint64_t compressed_at; /* its offset */
    uint32_t requested, requested_lane;
    struct fp_perfetto_place *places;
    struct fp_perfetto_named *named;
    uint32_t n_named;
    int32_t again; /* after FP_DONE: clocks were used before their snapshot: restart, and read the trace again */
    uint64_t n_rows;
    uint32_t period_name; /* the value type of samples: string of the model, 0: none */
    uint64_t period;
    /* Once stacks are kept: messages of call stacks as they come, also equal ones; and their chains, frames of the
     * model as varints, root first, with a struct fp_perfetto_node each. */
    struct fp_key_sums call_stacks, chains;
    struct fp_buf text; /* events of an array in JSON, each after a line feed and before a comma; their "packet" is an
                           offset in the trace.  The end of the trace may leave some, too */

    /* private from here on */
    struct fp_perfetto_feed_state feed;
    struct fp_perfetto_seqs seqs;
    struct fp_perfetto_tracks tracks;
    struct fp_perfetto_calls calls;
};

/* Borrows the model; caller owns. */
struct fp_perfetto_read *fp_perfetto_read_new(struct fp_model *model, int lenient);
void fp_perfetto_read_free(struct fp_perfetto_read *r);

/* From now on, keeps the data that call stacks need. */
int fp_perfetto_keep_stacks(struct fp_perfetto_read *r);

/* Finds the kinds of data in the trace, and collects symbols.  FP_MORE, FP_NEEDS, an error, or FP_DONE: at the
 * end, or once there is a call if `until_call`. */
int fp_perfetto_survey(struct fp_perfetto_read *r, struct fp_window *in, int until_call, struct fp_err *err);

/* Forgets everything but clocks, symbols and thread names, so that the trace can be read again. */
int fp_perfetto_restart(struct fp_perfetto_read *r);

/* Answers FP_PERFETTO_INFLATE with decompressed bytes.  `last`: the packet ends. */
int fp_perfetto_give(struct fp_perfetto_read *r, const uint8_t *p, size_t n, int last);

/* Sets the thread of the model for the requested lane. */
int fp_perfetto_set_thread(struct fp_perfetto_read *r, uint32_t thread);

/* FP_MORE, FP_FULL, FP_NEEDS, FP_DONE or an error. */
int fp_perfetto_feed(struct fp_perfetto_read *r, struct fp_window *in, struct fp_batch *out, struct fp_err *err);
