/* perfetto/read_private.h - shared by the files of the reader.  Private.
 *
 *   packets.c    the trace: packets, also compressed, and the order in which their parts are read
 *   messages.c   messages declared as tables
 *   state.c      the state of a sequence: interned data and defaults
 *   clocks.c     conversion of times between clocks
 *   tracks.c     tracks, threads and their names
 *   events.c     track events -> records
 *   ftrace.c     kernel events -> records
 *   sched.c      switches of the scheduler -> records, and their rows
 *   counters.c   values of counters -> records, and their rows
 *   records.c    records, and the threads of their rows
 *   rows.c       sorted records -> rows
 *   put.c        single rows
 *   stacks.c     call stacks and their symbols
 *   samples.c    samples with call stacks
 *   heap.c       heap dumps
 *   graph.c      objects of Java heaps
 *   v8.c         samples of V8 -> text
 */
#pragma once

#include "perfetto/read.h"

/* The fields of a packet that are read: bits of fp_perfetto_packet.has. */
enum fp_perfetto_field {
    FP_PF_NONE,
    FP_PF_FTRACE,
    FP_PF_PROCESS_TREE,
    FP_PF_CLOCKS,
    FP_PF_TIME,
    FP_PF_SEQUENCE,
    FP_PF_EVENT,
    FP_PF_INTERNED,
    FP_PF_FLAGS,
    FP_PF_STATS,
    FP_PF_HEAP,
    FP_PF_CLEARED,
    FP_PF_DROPPED,
    FP_PF_PROCESS,
    FP_PF_THREAD,
    FP_PF_COMPRESSED,
    FP_PF_STREAMING,
    FP_PF_HEAP_GRAPH,
    FP_PF_CLOCK_ID,
    FP_PF_DEFAULTS,
    FP_PF_TRACK,
    FP_PF_SYMBOLS,
    FP_PF_SAMPLE,
    FP_PF_FRAME,
    FP_PF_TASK,
    FP_PF_MACHINE,
    FP_PF_ZSTD,
    FP_PF_OTHER,
    FP_PF_FIELDS
};

/* A packet: its numbers and messages.  Only those in `has` are set. */
struct fp_perfetto_packet {
    uint64_t at;  /* offset in the trace */
    uint32_t has; /* bits 1 << enum fp_perfetto_field */
    uint64_t number[FP_PF_FIELDS];
    struct fp_wire message[FP_PF_FIELDS];
    int64_t time; /* ns on the trace's clock, if has_time */
    int32_t has_time;
    struct fp_perfetto_seq *seq;
};

static inline int fp_perfetto_has(const struct fp_perfetto_packet *k, enum fp_perfetto_field field) {
    return (int)(k->has >> field & 1);
}

/* The next field of a message of any kind: 1, 0 at its end, or FP_WIRE_BAD. */
static inline int fp_perfetto_next(struct fp_wire *m, struct fp_wire_field *f) {
    if (m->p == m->end) return 0;
    const int used = fp_wire_read_head(m->p, m->end, f);
    if (used <= 0 || f->n > (size_t)(m->end - f->p)) return FP_WIRE_BAD;
    m->p = f->p + f->n;
    return 1;
}

/* ---- messages.c ---- */

/* Reads a message into `to`, but for the fields for which the schema has no place.  0 or FP_E_MALFORMED. */
int fp_perfetto_fields(struct fp_wire m, const struct fp_wire_schema *schema, void *to);

/* The next field `number` of a message that fp_perfetto_fields has read: 1 and its content, or 0 at the end. */
int fp_perfetto_part(struct fp_wire *m, uint32_t number, struct fp_wire *part);

/* The string of the model; 0 if the text is empty. */
uint32_t fp_perfetto_text(struct fp_perfetto_read *r, struct fp_wire text);

/* ---- state.c ---- */

/* Kinds of interned data that are kept, in the order of their fields in InternedData. */
enum fp_perfetto_kind {
    FP_PK_CATEGORY,
    FP_PK_NAME,
    FP_PK_ANNOTATION,
    FP_PK_FUNCTION,
    FP_PK_FRAME,
    FP_PK_CALLSTACK,
    FP_PK_BUILD_ID,
    FP_PK_PATH,
    FP_PK_SOURCE,
    FP_PK_MAPPING,
    FP_PK_FRAMES, /* by id of a frame: the model's frame, added at first use */
    FP_PK_CHAINS, /* by id of a call stack: its chain, added at first use */
    FP_PK_KINDS
};

/* The values of ids, + 1.  Ids are mostly small and dense, but may be any number. */
struct fp_perfetto_ids {
    uint32_t *dense; /* by id */
    uint32_t cap, top, n;
    struct fp_table *far; /* other ids; NULL: none */
    uint32_t *far_values;
    uint32_t cap_far;
};

/* Tracks of extra values, which events list without them: of whole numbers, and of doubles. */
enum { FP_PERFETTO_EXTRA = 8 };
struct fp_perfetto_extra {
    uint64_t tracks[2][FP_PERFETTO_EXTRA];
    uint32_t n[2];
};

/* A packet sequence.  Processes and threads: -1 is none. */
struct fp_perfetto_seq {
    uint32_t number;
    uint8_t seen, valid, has_reference;
    int64_t pid, tid;  /* of its thread descriptor */
    int64_t reference; /* of its thread descriptor: ns */
    uint32_t clock_id; /* defaults */
    uint64_t track;
    struct fp_perfetto_extra extra;
    uint64_t last_uuid; /* a cache: */
    uint32_t last_track;
    uint32_t clears;                 /* how often its state was cleared */
    struct fp_perfetto_graph *graph; /* a Java heap whose dump is not complete, or NULL */
    struct fp_perfetto_ids ids[FP_PK_KINDS];
};

/* The state of the sequence of this id. */
struct fp_perfetto_seq *fp_perfetto_seq_of(struct fp_perfetto_read *r, uint32_t number);
void fp_perfetto_seq_clear(struct fp_perfetto_seq *s);
void fp_perfetto_seqs_free(struct fp_perfetto_read *r);
/* The value of an id, or 0. */
uint32_t fp_perfetto_id(const struct fp_perfetto_ids *ids, uint64_t id);
/* Sets the value of an id that has none. */
void fp_perfetto_set_id(struct fp_perfetto_ids *ids, uint64_t id, uint32_t value);
/* Each returns 0 or FP_E_MALFORMED. */
int fp_perfetto_interned(struct fp_perfetto_read *r, struct fp_perfetto_seq *s, struct fp_wire data);
int fp_perfetto_defaults(struct fp_perfetto_read *r, struct fp_perfetto_seq *s, struct fp_wire data);

/* An entry of interned data that is a name. */
struct fp_perfetto_named_id {
    uint64_t iid;
    struct fp_wire text;
};
extern const struct fp_wire_schema fp_perfetto_of_name;
/* Reads the id of one that is a message; by hand, because a call stack has many other fields.  0 or FP_E_MALFORMED. */
int fp_perfetto_id_of(struct fp_wire message, uint64_t *iid);

/* Codes of annotation names: DATA, TYPE, ARGUMENTS + k of argument k, and 1 of any other. */
enum { FP_PA_OTHER = 1, FP_PA_DATA = 2, FP_PA_TYPE = 3, FP_PA_ARGUMENTS = 4 };
uint32_t fp_perfetto_annotation(const uint8_t *p, size_t n);

/* ---- clocks.c ---- */

enum { FP_PC_MONOTONIC = 3, FP_PC_MONOTONIC_RAW = 5, FP_PC_BOOTTIME = 6 };

void fp_perfetto_clocks_new(struct fp_perfetto_read *r);
void fp_perfetto_clocks_free(struct fp_perfetto_clocks *c);
/* Prepares to read the same snapshots again, in the same order. */
void fp_perfetto_clocks_restart(struct fp_perfetto_clocks *c);
/* 0 or FP_E_MALFORMED. */
int fp_perfetto_snapshot(struct fp_perfetto_read *r, uint32_t seq, struct fp_wire snapshot);
/* Converts a time of a clock to nanoseconds on the trace's clock: 1, or 0 if no snapshot relates them. */
int fp_perfetto_time(struct fp_perfetto_read *r, uint32_t seq, uint32_t clock, uint64_t time, int64_t *ns);
/* Whether a clock was used that only later snapshots relate.  1 or 0. */
int fp_perfetto_known_later(struct fp_perfetto_read *r);
/* Converts nanoseconds of a system clock, if a snapshot relates it. */
int64_t fp_perfetto_system_time(struct fp_perfetto_read *r, uint32_t clock, int64_t ns);

/* ---- frames.c ---- */

/* An event of Android's frame timeline.  0 or FP_E_MALFORMED. */
int fp_perfetto_frame(struct fp_perfetto_read *r, const struct fp_perfetto_packet *k);

/* ---- tracks.c ---- */

enum fp_perfetto_track_kind {
    FP_PT_UUID = 1,     /* key: uuid, 0 */
    FP_PT_DEFAULT = 2,  /* sequence: its default track */
    FP_PT_THREAD = 3,   /* pid, tid */
    FP_PT_KERNEL = 4,   /* tid */
    FP_PT_ASYNC = 5,    /* id, scope; `of` is the track of the event */
    FP_PT_COUNTERS = 6, /* pid: counters of a process */
    FP_PT_ATRACE = 7,   /* pid and cookie; kind and name of the track */
    FP_PT_FRAME = 8     /* cookie */
};

struct fp_perfetto_track {
    uint32_t kind;
    int64_t pid, tid; /* -1: none */
    uint64_t parent;
    uint32_t name;  /* string of the model */
    uint32_t of;    /* ASYNC: the track of its first event, or 0.  KERNEL: enum fp_perfetto_quality of its pid */
    uint32_t place; /* + 1, once planned */
    uint32_t lane;  /* of a place with lanes: + 1 while it has open calls */
    struct fp_perfetto_counter *counter; /* if it is one */
};

/* A counter, as its track describes it. */
struct fp_perfetto_counter {
    int64_t multiplier; /* of its values; 0: 1 */
    uint32_t name;      /* string of the model, once planned */
    int32_t adds;       /* values are differences to the last one of the sequence */
    uint32_t unit;      /* its name, string of the model */
    uint32_t kind;      /* of the unit: CounterDescriptor.unit */
};

/* The last value of such a counter in a sequence. */
struct fp_perfetto_sum {
    double last;
    uint32_t clears; /* those of the sequence then */
};

/* The track with this key, added if it is new. */
uint32_t fp_perfetto_track_of(struct fp_perfetto_read *r, uint32_t kind, uint64_t a, uint64_t b);
int fp_perfetto_descriptor(struct fp_perfetto_read *r, const struct fp_perfetto_packet *k);
int fp_perfetto_thread_descriptor(struct fp_perfetto_read *r, const struct fp_perfetto_packet *k, struct fp_wire thread,
                                  int64_t *pid, int64_t *tid);
int fp_perfetto_process_descriptor(struct fp_perfetto_read *r, const struct fp_perfetto_packet *k,
                                   struct fp_wire process, int64_t *pid);
int fp_perfetto_process_tree(struct fp_perfetto_read *r, const struct fp_perfetto_packet *k);
/* What names a process or a thread, best to worst.  The last name of the best source counts; of the descriptors of a
 * process the first, as for the trace processor: Chrome's later ones may have its command line as name. */
enum fp_perfetto_namer { FP_PN_OWN, FP_PN_PROCESS, FP_PN_COMMAND, FP_PN_TRACK };
/* Names a process (tid -1) or a thread. */
void fp_perfetto_name(struct fp_perfetto_read *r, int64_t pid, int64_t tid, const uint8_t *p, size_t n,
                      enum fp_perfetto_namer by);
/* The source of the process of a thread, worst to best. */
enum fp_perfetto_quality { FP_PQ_NONE, FP_PQ_PRINT, FP_PQ_DESCRIPTOR, FP_PQ_TREE };
void fp_perfetto_set_process(struct fp_perfetto_read *r, int64_t tid, int64_t pid, enum fp_perfetto_quality from);
/* Finds the places of all tracks. */
void fp_perfetto_plan(struct fp_perfetto_read *r);
/* The process and the thread of a track; -1: none. */
void fp_perfetto_owner(struct fp_perfetto_read *r, uint32_t track, int64_t *pid, int64_t *tid);
/* The place of a thread. */
uint32_t fp_perfetto_place_of(struct fp_perfetto_read *r, int64_t pid, int64_t tid, uint32_t path, int is_lanes);
void fp_perfetto_places_free(struct fp_perfetto_read *r);

/* ---- records.c ---- */

enum fp_perfetto_op {
    FP_PO_BEGIN,
    FP_PO_BEGIN_ARGS,
    FP_PO_END,      /* id: string of its name, or 0 */
    FP_PO_COMPLETE, /* extra: duration */
    FP_PO_INSTANT,  /* id: the payload (string); extra: its type + 1, or 0 */
    FP_PO_ARGUMENT, /* extra: its value */
    FP_PO_COUNTER,  /* extra: the bits of its value, a double; id: its name, or 0 for that of the track */
    FP_PO_SAMPLE,   /* id: chain; the tag is a place; extra: its weight */
    FP_PO_SWITCH,   /* id: track that begins to run; the tag is a CPU; extra: track that ends, prev_state << 32 */
    FP_PO_WAKE,     /* id: track */
    FP_PO_TASK      /* id: track; the tag is a CPU; extra: its state, as in the trace */
};

/* A record as it is sorted; its tag is the track, or the CPU. */
struct fp_perfetto_record {
    uint32_t id, op; /* function; enum fp_perfetto_op */
    int64_t extra;
};

/* Adds a record. */
void fp_perfetto_put_record(struct fp_perfetto_read *r, int64_t time, uint32_t track, uint32_t op, uint32_t id,
                            int64_t extra);
/* Adds the waiting records.  0 or FP_NEEDS. */
int fp_perfetto_put_pending(struct fp_perfetto_read *r);

/* The model's thread for a lane: 1, or 0 after requesting it. */
int fp_perfetto_thread_of(struct fp_perfetto_read *r, uint32_t place, uint32_t lane, uint32_t *thread);
/* Makes room for a lane of a place. */
void fp_perfetto_lane_room(struct fp_perfetto_place *place, uint32_t lane);

/* ---- counters.c: 0 or FP_E_MALFORMED ---- */

/* Adds a value: that of a track event, or one of the named counter of a process. */
void fp_perfetto_put_counter(struct fp_perfetto_read *r, const struct fp_perfetto_seq *s, int64_t time, uint32_t track,
                             double value);
void fp_perfetto_put_named_counter(struct fp_perfetto_read *r, int64_t time, int64_t pid, uint32_t name, double value);
/* Reads the tracks that an event, or the defaults of events, have for extra values, and its own, if it has one. */
int fp_perfetto_extra_tracks(struct fp_perfetto_extra *to, struct fp_wire event, uint64_t *track);
/* Adds the extra values of an event. */
int fp_perfetto_put_extra(struct fp_perfetto_read *r, const struct fp_perfetto_seq *s, struct fp_wire event,
                          int64_t time);
/* Adds the row of a value.  FP_DONE, FP_FULL or FP_NEEDS. */
int fp_perfetto_counter_row(struct fp_perfetto_read *r, const struct fp_perfetto_record *record, struct fp_batch *out);
/* Forgets the last values, or frees all. */
void fp_perfetto_counters_restart(struct fp_perfetto_read *r);
void fp_perfetto_counters_free(struct fp_perfetto_read *r);

/* ---- events.c, ftrace.c: 0 or FP_E_MALFORMED ---- */

struct fp_perfetto_function {
    uint32_t category, function;
};

int fp_perfetto_event(struct fp_perfetto_read *r, const struct fp_perfetto_packet *k);
int fp_perfetto_ftrace(struct fp_perfetto_read *r, const struct fp_perfetto_packet *k);
/* The function with a name and a category (or 0), both strings of the model. */
uint32_t fp_perfetto_function_of(struct fp_perfetto_read *r, uint32_t name, uint32_t category);

/* ---- stacks.c, samples.c, heap.c, graph.c ---- */

/* The values of a heap's call stack in its last dump. */
enum { FP_PERFETTO_HEAP_VALUES = 6 };

struct fp_perfetto_stacks {
    struct fp_strings messages; /* of interned data, but not of call stacks */
    struct fp_buf chain;
    struct fp_table symbols; /* build id, address */
    uint32_t *symbol_lines;  /* by row of it: line chain of the model */
    uint32_t cap_symbols;
    struct fp_buf path, hex;
    /* place, heap's name, sequence, id of the call stack (two words), chain; of Java heaps: place, 0, dump, 0, 0, stack
     */
    struct fp_table heap_keys;
    int64_t *heap_values; /* by row of it */
    uint32_t cap_heap_values;
    uint32_t next;    /* row of heap_keys to be written */
    uint32_t n_dumps; /* of Java heaps */
    uint32_t n_open;  /* those of them that are not complete */
};

void fp_perfetto_stacks_free(struct fp_perfetto_stacks *t);
/* Keeps a message of interned data, which is parsed at first use. */
uint32_t fp_perfetto_keep(struct fp_perfetto_read *r, const uint8_t *p, size_t n);
/* Reads the samples, dumps and symbols of a packet.  0 or FP_E_MALFORMED. */
int fp_perfetto_samples(struct fp_perfetto_read *r, const struct fp_perfetto_packet *k);
/* Reads the symbols of a module.  0 or FP_E_MALFORMED. */
int fp_perfetto_symbols(struct fp_perfetto_read *r, struct fp_wire message);
/* The chain of an interned call stack: 1, 0 if it is unknown, or FP_E_MALFORMED.  Chain 0 has no frame. */
int fp_perfetto_chain_of(struct fp_perfetto_read *r, struct fp_perfetto_seq *s, uint64_t iid, uint32_t *chain);
/* The stack of the model, which is added again after the model has dropped its stacks. */
uint32_t fp_perfetto_stack(struct fp_perfetto_read *r, uint32_t chain);
int fp_perfetto_heap(struct fp_perfetto_read *r, const struct fp_perfetto_packet *k);
/* The values of a row of heap_keys, added if it is new. */
int64_t *fp_perfetto_heap_row(struct fp_perfetto_read *r, const uint32_t *key);
/* Reads a part of the dump of a Java heap.  0 or FP_E_MALFORMED. */
int fp_perfetto_graph(struct fp_perfetto_read *r, const struct fp_perfetto_packet *k);
/* Ends the dumps that are not complete. */
int fp_perfetto_end_graphs(struct fp_perfetto_read *r);
/* Frees all dumps; to be called before the sequences are freed. */
void fp_perfetto_graphs_free(struct fp_perfetto_read *r);
int fp_perfetto_heap_rows(struct fp_perfetto_read *r, struct fp_batch *out);

/* ---- v8.c ---- */

/* An event of a V8 profile. */
struct fp_perfetto_v8 {
    uint32_t track, name; /* name: a string */
    int id_kind, has_time;
    uint64_t id; /* of the profile; unique among those of its kind in a process */
    int64_t time;
    const uint8_t *data; /* JSON, or NULL */
    size_t n_data;
};

/* Appends the event to r->text.  0 or FP_E_MALFORMED. */
int fp_perfetto_put_v8(struct fp_perfetto_read *r, const struct fp_perfetto_packet *k, const struct fp_perfetto_v8 *v);

/* ---- rows.c ---- */

struct fp_perfetto_call {
    int64_t end; /* of a complete event; INT64_MAX: not known yet */
    uint32_t function;
    uint32_t stack; /* off-CPU time: of this call and its callers; 0: not needed yet */
};

struct fp_perfetto_lane {
    struct fp_perfetto_call *calls;
    uint32_t n, cap;
    uint32_t thread; /* of the model, + 1; 0: not requested yet */
};

/* ---- put.c ---- */

/* Adds a row of a timeline, for which the batch has room.  Returns its index. */
uint32_t fp_perfetto_add_row(struct fp_perfetto_read *r, struct fp_batch *out, uint32_t op, uint64_t time,
                             uint32_t thread, uint32_t function);
/* Begins a call of a lane, or ends its innermost one.  FP_DONE, FP_FULL or FP_NEEDS. */
int fp_perfetto_begin_call(struct fp_perfetto_read *r, uint32_t place, uint32_t lane, uint32_t op, uint32_t function,
                           int64_t end, struct fp_batch *out);
int fp_perfetto_end_call(struct fp_perfetto_read *r, uint32_t place, uint32_t lane, int64_t time, struct fp_batch *out);
/* Adds a row of stacks with one value.  FP_DONE, FP_FULL or FP_NEEDS. */
int fp_perfetto_put_sample_row(struct fp_perfetto_read *r, uint32_t place, uint32_t stack, int64_t value,
                               struct fp_batch *out);

/* ---- sched.c ---- */

/* Each reads an event.  0 or FP_E_MALFORMED. */
int fp_perfetto_switch(struct fp_perfetto_read *r, struct fp_wire m, uint64_t cpu, int64_t time);
int fp_perfetto_waking(struct fp_perfetto_read *r, struct fp_wire m, int64_t time);
int fp_perfetto_task(struct fp_perfetto_read *r, const struct fp_perfetto_packet *k);
/* Reads events in compact form; counts them if they are malformed, up to where they are read. */
int fp_perfetto_compact(struct fp_perfetto_read *r, struct fp_wire m, uint64_t cpu, uint32_t clock);
/* Converts a record of a switch, a waking or a state to rows.  FP_DONE; FP_FULL or FP_NEEDS: call again.
 */
int fp_perfetto_put_sched(struct fp_perfetto_read *r, const struct fp_perfetto_record *record, struct fp_batch *out);
/* Counts the threads that are not on a CPU at the end. */
void fp_perfetto_count_waits(struct fp_perfetto_read *r);
void fp_perfetto_sched_free(struct fp_perfetto_read *r);

int fp_perfetto_rows(struct fp_perfetto_read *r, struct fp_batch *out, struct fp_err *err);
