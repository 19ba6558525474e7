/* perf/read.h - perf.data, the recordings of Linux's perf record, as samples at call stacks.
 *
 *   file    header of 104 bytes | attributes, one per event | records | sections of features, such as the host's name
 *   pipe    header of 16 bytes | records, which also hold attributes and features
 *
 *   record  u32 type, u16 misc, u16 size with this header | fields | trailer: pid, tid, time, cpu, id
 *
 *   09 00 00 00  02 00  28 00  ...     a sample (type 9) in user mode (misc & 7 is 2), 40 bytes
 *
 * Python reads the header, attributes and features; this decoder reads the records.  The id of a record
 * identifies its event.  The bits of the event's `sample_type` state which fields a sample has, in this order:
 *
 *   one 64-bit word each    IDENTIFIER IP TID TIME ADDR ID STREAM_ID CPU PERIOD
 *   variable lengths        READ, CALLCHAIN, RAW, BRANCH_STACK, REGS_USER, STACK_USER ...
 *
 * Records are sorted by time (core/rounds.h) and then applied: a mapping updates the maps of its process
 * (symbols/space.h), a COMM record names its thread, and a sample becomes a row.  Chains are leaf first; a marker
 * precedes user frames.  Each distinct chain becomes a stack once; later samples find it by its bytes.
 *
 * Memory: distinct stacks, threads and mappings; 8 MiB of chains; records between two rounds (core/rounds.h).
 * Source: include/uapi/linux/perf_event.h, tools/perf/util/session.c and machine.c of Linux 3.2 to 6.18.
 */
#pragma once

#include "perf/state.h"
#include "symbols/jitdump.h"

/* What FP_NEEDS requests. */
enum fp_perf_request {
    FP_PERF_COLUMNS = 1,    /* event `requested_event` needs columns (FP_NO_ID: off-CPU time does); drain the batch, add
                               a part, fp_perf_set_column */
    FP_PERF_RECORD = 2,     /* the caller may use this record, of record_n bytes */
    FP_PERF_COMPRESSED = 3, /* the same; the bytes from record_skip on are compressed: fp_perf_give */
    FP_PERF_SPILL = 4,      /* serve `rounds` */
    FP_PERF_TABLE = 5,      /* the unwind rules of object `requested_name`: fp_perf_set_table */
    FP_PERF_DUMP = 6,       /* a list of JIT-compiled code; the record is its file name, of record_n bytes.  If the
                               file is readable: fp_perf_give_codes */
    FP_PERF_KERNEL = 7      /* the build id of the kernel whose symbol `_text` is at `requested_address`: if known,
                               fp_perf_build_id of `requested_name` */
};

/* Branch stacks instead of samples (core/branches.h): if the recording has any, or in any case. */
enum fp_perf_wants { FP_PERF_BRANCHES = 1, FP_PERF_ONLY_BRANCHES = 2 };
/* Which branches are not added up: those of different threads, or of different samples. */
enum fp_perf_apart { FP_PERF_THREADS_APART = 1, FP_PERF_SAMPLES_APART = 2 };

enum { FP_PERF_NO_COLUMN = 0xffffffffu, FP_PERF_TYPES = 96, FP_PERF_MOST_FRAMES = 4096, FP_PERF_ENDS = 9 };

/* The fields of an event's attribute. */
struct fp_perf_attr {
    uint64_t sample_type, read_format, branch_type, regs_user, regs_intr, period;
    uint64_t flags; /* bit 0: disabled ..., numbered as in little-endian files */
};

/* The sources of switches: samples of sched:sched_switch or of context-switches, and SWITCH records. */
enum fp_perf_switched { FP_PERF_BY_TRACEPOINT = 1, FP_PERF_BY_COUNTER = 2, FP_PERF_BY_RECORD = 4 };

/* How a field of a tracepoint becomes a label. */
enum fp_perf_field_kind {
    FP_PERF_UNSIGNED = 0,
    FP_PERF_SIGNED = 1,
    FP_PERF_TEXT = 2,
    FP_PERF_TEXT_ELSEWHERE = 3,     /* the field holds its offset, in 4 bytes */
    FP_PERF_TEXT_AFTER = 4,         /* the same, counted from the field's end */
    FP_PERF_UNSIGNED_ELSEWHERE = 5, /* an array of numbers at such an offset */
    FP_PERF_SIGNED_ELSEWHERE = 6,
    FP_PERF_UNSIGNED_AFTER = 7,
    FP_PERF_SIGNED_AFTER = 8
};

struct fp_perf_field {
    uint32_t key; /* string */
    uint32_t kind, offset, size;
    uint32_t each; /* bytes of a number, 1 to 8 */
    int32_t is_array;
};

struct fp_perf_counts {
    uint64_t records;
    /* Data outside records, such as processor traces and tracepoint formats. */
    uint64_t FP_COUNT(bytes, "trace-bytes", not_representable, "byte(s) of processor traces or event formats");
    uint64_t skipped[FP_PERF_TYPES]; /* records that are not read, by type; the last: all higher types */
    uint64_t rounds;
    uint64_t lost, lost_samples; /* as reported by the kernel */
    uint64_t FP_COUNT(unknown_ids, "records-of-unknown-events", losses, "record of an unknown event",
                      "records of unknown events");
    uint64_t FP_COUNT(guests, "guest-samples", not_representable, "sample of a virtual machine",
                      "samples of virtual machines");
    uint64_t FP_COUNT(bad_chains, "unwalked-chains", repairs,
                      "call chain with unknown markers, replaced by the address of its sample",
                      "call chains with unknown markers, replaced by the addresses of their samples");
    /* The copy yields no frame. */
    uint64_t FP_COUNT(not_unwound, "stacks-not-unwound", not_representable,
                      "sample with a copy of its stack, which is not unwound",
                      "samples with copies of their stacks, which are not unwound");
    uint64_t unwound[FP_PERF_ENDS]; /* other samples with a copy, by enum fp_unwind_end */
    uint64_t chains;                /* lookups that found no stack */
    uint64_t without_fields;        /* tracepoint samples beyond the limit of distinct field values */
    uint64_t FP_COUNT(deferred_alone, "unmatched-user-stacks", repairs,
                      "sample(s) whose user stack(s) (was|were) never recorded, kept without (it|them)");
    uint64_t FP_COUNT(late_build_ids, "late-build-ids", not_representable,
                      "build id that comes after samples of its object, which was found by path",
                      "build ids that come after samples of their objects, which were found by path");
    uint64_t branches, mispredicted; /* entries of branch stacks */
    uint64_t FP_COUNT(without_branches, "samples-without-branches", not_representable, "sample without a branch stack",
                      "samples without branch stacks");
    uint64_t FP_COUNT(half_branches, "incomplete-branches", not_representable,
                      "(branch|branches) without a source or a target");
    /* The next branch begins before the target of the previous one, or in another object. */
    uint64_t FP_COUNT(broken_runs, "broken-runs", not_representable, "gap between branches, not a straight run",
                      "gaps between branches, not straight runs");
    uint64_t switches; /* threads leaving their CPU */
    uint64_t FP_COUNT(without_return, "unended-waits", not_representable,
                      "(switch|switches) of (a thread|threads) whose return is not recorded");
    uint64_t FP_COUNT(messages, "messages", repairs, "message(s) of perf record in the recording");
    uint64_t FP_COUNT(bad_records, "damaged-records");
    uint64_t FP_COUNT(lost_bytes, "skipped-bytes");
};

struct fp_perf_reader {
    struct fp_model *model;
    struct fp_rounds rounds;
    int32_t lenient;
    int32_t swap;       /* the file's byte order differs from the machine's */
    int32_t keep_marks; /* end-of-round records are valid; not if files are read one after another */
    int32_t last;       /* this range of the input is the last */
    int32_t cpu_labels; /* label samples with their CPU */
    int32_t off_cpu;    /* compute off-CPU time, in column off_column */
    uint32_t off_column;
    int32_t wants_branches; /* enum fp_perf_wants */
    int32_t has_branches;   /* some event has branch stacks */
    uint32_t input;         /* the input of its threads */
    uint32_t machine;       /* e_machine, for unwinding; 0: do not unwind */
    struct fp_perf_counts counts;

    /* after FP_NEEDS */
    int32_t request; /* enum fp_perf_request */
    uint32_t requested_event;
    uint32_t requested_name, requested_build_id; /* strings */
    uint64_t requested_address;
    const uint8_t *record;
    uint64_t record_n, record_skip, record_at;

    /* private from here on */
    struct fp_perf_events events;
    struct fp_perf_threads threads;
    struct fp_perf_maps maps;
    struct fp_perf_dumps dumps;
    struct fp_perf_inner inner;
    struct fp_perf_feed feed;
    struct fp_perf_stacks stacks;
    struct fp_perf_branches branches;
    struct fp_perf_unwound unwound;
    struct fp_perf_waiting_samples deferred;
};

/* Borrows the model; the caller owns the reader. */
struct fp_perf_reader *fp_perf_reader_new(struct fp_model *model);
void fp_perf_reader_free(struct fp_perf_reader *r);

/* Adds an event; they are numbered from 0.  0 or FP_E_MALFORMED if the offsets of ids differ. */
int fp_perf_add_event(struct fp_perf_reader *r, const struct fp_perf_attr *attr);

/* Adds the ids of an event's counters. */
int fp_perf_add_ids(struct fp_perf_reader *r, uint32_t event, const uint64_t *ids, uint32_t n);

/* Adds a field of an event's samples that becomes a label. */
int fp_perf_add_field(struct fp_perf_reader *r, uint32_t event, const struct fp_perf_field *field);

/* The event with an id, or FP_NO_ID. */
uint32_t fp_perf_event_of(const struct fp_perf_reader *r, uint64_t id);

/* Sets the value columns of an event: `column` for samples, column + 1 for periods. */
void fp_perf_set_column(struct fp_perf_reader *r, uint32_t event, uint32_t column);
uint64_t fp_perf_samples(const struct fp_perf_reader *r, uint32_t event);

/* Each sample of the event is a switch; offsets of the pids in its raw data, 0 if absent. */
void fp_perf_set_switched(struct fp_perf_reader *r, uint32_t event, uint32_t by, uint32_t prev_pid, uint32_t next_pid);
/* The number of threads that left their CPU and neither resumed nor exited. */
uint64_t fp_perf_waiting(const struct fp_perf_reader *r);
/* How to add up branches: enum fp_perf_apart, and the most distinct ones in memory. */
void fp_perf_set_branches(struct fp_perf_reader *r, int wants, int apart, uint32_t most);
/* Marks the event of `perf record --off-cpu`: its samples are in their raw data. */
void fp_perf_set_off_cpu_time(struct fp_perf_reader *r, uint32_t event);

/* Sets the build id of objects with this name; both are strings of the model. */
int fp_perf_build_id(struct fp_perf_reader *r, uint32_t name, uint32_t build_id);

/* Answers FP_PERF_TABLE with a struct fp_unwind_table that outlives the reader, or NULL and FP_UNWIND_NO_FILE or
 * FP_UNWIND_NO_TABLE. */
void fp_perf_set_table(struct fp_perf_reader *r, const void *table, int why_not);

/* Answers FP_PERF_DUMP with the code in the dump; borrowed. */
int fp_perf_give_codes(struct fp_perf_reader *r, const struct fp_jitdump_code *codes, uint64_t n);

/* Begins a range of the input. */
void fp_perf_begin(struct fp_perf_reader *r);

/* Appends decompressed bytes. */
int fp_perf_give(struct fp_perf_reader *r, const uint8_t *p, size_t n);

/* The name of thread `i` from 1 on, a string, and whether it has samples.  FP_NO_ID after the last thread. */
uint32_t fp_perf_comm(const struct fp_perf_reader *r, uint32_t i, uint32_t *pid, uint32_t *tid, int *has_samples);

/* FP_MORE, FP_FULL, FP_DONE at the end of the range, FP_NEEDS, or an error. */
int fp_perf_feed(struct fp_perf_reader *r, struct fp_window *in, struct fp_batch *out, struct fp_err *err);
