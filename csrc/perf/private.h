/* Shared by the files of the perf.data decoder.  C only. */
#pragma once

#include "perf/read.h"

enum fp_perf_type {
    FP_PERF_MMAP = 1,
    FP_PERF_LOST = 2,
    FP_PERF_COMM = 3,
    FP_PERF_EXIT = 4,
    FP_PERF_FORK = 7,
    FP_PERF_SAMPLE = 9,
    FP_PERF_MMAP2 = 10,
    FP_PERF_LOST_SAMPLES = 13,
    FP_PERF_SWITCH = 14,
    FP_PERF_SWITCH_CPU_WIDE = 15,
    FP_PERF_KSYMBOL = 17,
    FP_PERF_DEFERRED = 22,
    FP_PERF_USER = 64, /* records from here on have no trailers */
    FP_PERF_HEADER_ATTR = 64,
    FP_PERF_EVENT_TYPE = 65,
    FP_PERF_TRACING_DATA = 66,
    FP_PERF_BUILD_ID = 67,
    FP_PERF_FINISHED_ROUND = 68,
    FP_PERF_AUXTRACE = 71,
    FP_PERF_EVENT_UPDATE = 78,
    FP_PERF_FEATURE = 80,
    FP_PERF_COMPRESSED1 = 81,
    FP_PERF_FINISHED_INIT = 82,
    FP_PERF_COMPRESSED2 = 83
};

enum { FP_PERF_HEAD = 8, FP_PERF_MISC_MODE = 7 };

/* Bits of misc. */
enum {
    FP_PERF_IN_KERNEL = 1,
    FP_PERF_IN_USER = 2,
    FP_PERF_IN_GUEST_KERNEL = 4,
    FP_PERF_IN_GUEST_USER = 5,
    FP_PERF_MISC_13 = 1 << 13, /* MMAP: data; FORK: synthesized; SWITCH: off the CPU */
    FP_PERF_MISC_14 = 1 << 14  /* MMAP2: has a build id */
};

/* Bits of sample_type. */
enum {
    FP_PERF_IP = 1 << 0,
    FP_PERF_TID = 1 << 1,
    FP_PERF_TIME = 1 << 2,
    FP_PERF_ADDR = 1 << 3,
    FP_PERF_READ = 1 << 4,
    FP_PERF_CALLCHAIN = 1 << 5,
    FP_PERF_ID = 1 << 6,
    FP_PERF_CPU = 1 << 7,
    FP_PERF_PERIOD = 1 << 8,
    FP_PERF_STREAM_ID = 1 << 9,
    FP_PERF_RAW = 1 << 10,
    FP_PERF_BRANCH = 1 << 11,
    FP_PERF_REGS_USER = 1 << 12,
    FP_PERF_STACK_USER = 1 << 13,
    FP_PERF_WEIGHT = 1 << 14,
    FP_PERF_DATA_SRC = 1 << 15,
    FP_PERF_IDENTIFIER = 1 << 16,
    FP_PERF_TRANSACTION = 1 << 17,
    FP_PERF_REGS_INTR = 1 << 18,
    FP_PERF_PHYS_ADDR = 1 << 19,
    FP_PERF_AUX = 1 << 20,
    FP_PERF_CGROUP = 1 << 21,
    FP_PERF_DATA_PAGE = 1 << 22,
    FP_PERF_CODE_PAGE = 1 << 23,
    FP_PERF_WEIGHT_STRUCT = 1 << 24
};

/* Bits of read_format. */
enum { FP_PERF_ENABLED = 1, FP_PERF_RUNNING = 2, FP_PERF_READ_ID = 4, FP_PERF_GROUP = 8, FP_PERF_READ_LOST = 16 };

/* Bits of branch_type.  Without the first, only branches of some kinds are recorded. */
#define FP_PERF_ANY_BRANCH (UINT64_C(1) << 3)
#define FP_PERF_CALL_STACK (UINT64_C(1) << 11)
#define FP_PERF_HW_INDEX (UINT64_C(1) << 17)

/* Markers in chains: all values from -4095 on. */
#define FP_PERF_MARKERS (UINT64_C(0) - 4095)
#define FP_PERF_TO_HYPERVISOR (UINT64_C(0) - 32)
#define FP_PERF_TO_KERNEL (UINT64_C(0) - 128)
#define FP_PERF_TO_USER (UINT64_C(0) - 512)
#define FP_PERF_TO_DEFERRED (UINT64_C(0) - 640)

/* `perf record --off-cpu` appends sums with fake times, from this one on. */
#define FP_PERF_AT_THE_END (~UINT64_C(0) << 32)

/* Flags of mappings: the code of a single kernel symbol; executable. */
enum { FP_PERF_IS_SYMBOL = 1, FP_PERF_IS_EXECUTABLE = 2 };

struct fp_perf_event {
    struct fp_perf_attr attr;
    int32_t id_all;                          /* records that are not samples have trailers */
    uint32_t n_fixed;                        /* words of a sample before READ */
    uint32_t ip, tid, time, id, cpu, period; /* offsets in a sample; 0: absent */
    uint32_t id_back, time_back, tid_back;   /* offsets from the end of other records; 0: absent */
    uint32_t trailer;                        /* its bytes */
    uint32_t column;
    uint64_t samples;
    struct fp_perf_field *fields; /* of its raw data */
    uint32_t n_fields, cap_fields;
    uint32_t switched_by;        /* its samples are thread switches: enum fp_perf_switched; 0: they are not */
    uint32_t prev_pid, next_pid; /* offsets in its raw data; 0: absent */
    int32_t is_off_cpu_time;     /* its raw data replace the sample, see sample.c */
};

/* A mapping, added to the model with its first frame. */
struct fp_perf_map {
    uint64_t start, limit, pgoff;
    uint32_t name, build_id; /* strings */
    uint32_t mapping;        /* the model's mapping; 0: not added yet */
    const struct fp_unwind_table *table;
    int32_t was_requested, why_not; /* whether `table` was requested; why it is NULL */
};

struct fp_perf_dump {
    const struct fp_jitdump_code *codes; /* n not yet mapped, sorted by time */
    uint64_t n;
    uint32_t pid, name;
};

struct fp_perf_thread {
    uint32_t pid;
    uint32_t comm;   /* string; 0: unknown */
    uint32_t thread; /* the model's thread, in process `thread_pid` */
    uint32_t thread_pid;
    uint32_t label; /* FP_NO_ID: not created yet */
    uint32_t cpu;   /* of `label` */
    int32_t exited;
    uint32_t left_by; /* bits of enum fp_perf_switched: the sources that reported its switch */
    uint64_t left;    /* when it left its CPU; 0: it runs, or that is unknown */
    uint32_t left_label;
    uint32_t *left_frames; /* leaf first; a copy, because the model's stacks may be emptied meanwhile */
    uint32_t n_left, cap_left;
};

struct fp_perf_deferred {
    uint64_t cookie;
    uint32_t tid, event, n;
    int32_t ready;
    uint8_t *p; /* the sample, owned; without deferred words when ready */
};

/* A parsed sample.  Pointers point into the record. */
struct fp_perf_sample {
    uint64_t id, ip, time, period;
    uint32_t pid, tid, cpu;
    const uint8_t *read; /* n_read values of read_words words each */
    uint64_t n_read;
    uint32_t read_words;
    const uint8_t *chain;
    uint64_t n_chain;
    const uint8_t *raw;
    uint32_t n_raw;
    const uint8_t *branches; /* from, to, flags */
    uint64_t n_branches;
    uint64_t regs_abi;
    const uint8_t *regs;
    const uint8_t *stack;
    uint64_t n_stack;
};

/* events.c */

/* The event of a record; FP_NO_ID if its id is unknown. */
uint32_t fp_perf_find_event(struct fp_perf_reader *r, const uint8_t *p, uint32_t n);
/* The time of a record; 0 if it has none. */
uint64_t fp_perf_time(const struct fp_perf_reader *r, const struct fp_perf_event *e, const uint8_t *p, uint32_t n);

/* sample.c */

/* Checks a sample without parsing it.  NULL, or the error that fp_perf_parse would return. */
const char *fp_perf_check(const struct fp_perf_reader *r, const struct fp_perf_event *e, const uint8_t *p, uint32_t n);

/* Parses a sample.  NULL, or the error. */
const char *fp_perf_parse(const struct fp_perf_reader *r, const struct fp_perf_event *e, const uint8_t *p, uint32_t n,
                          struct fp_perf_sample *s);

enum { FP_PERF_ENTRY = 24 }; /* of a branch stack: u64 from, to, flags */
/* Bit 0 of an entry's flags.  Bit-fields of big-endian files begin at the other end. */
uint64_t fp_perf_is_mispredicted(const struct fp_perf_reader *r, uint64_t flags);
/* Counts the branches of a sample. */
void fp_perf_count_branches(struct fp_perf_reader *r, const struct fp_perf_sample *s);

/* process.c */

/* The row of a thread, added if it is new.  Invalidates pointers to threads. */
uint32_t fp_perf_thread(struct fp_perf_reader *r, uint32_t pid, uint32_t tid);
/* The model's thread and labels of a sample. */
void fp_perf_thread_of(struct fp_perf_reader *r, const struct fp_perf_sample *s, uint32_t *thread, uint32_t *label);
/* Applies a record that is not a sample.  0; FP_NEEDS: call again with the same record. */
int fp_perf_apply(struct fp_perf_reader *r, const struct fp_perf_event *e, const uint8_t *p, uint32_t n);

/* The build id of a mapped file, looked up at its first sample: `perf inject -b` inserts it after the mapping. */
uint32_t fp_perf_build_id_of(const struct fp_perf_reader *r, const struct fp_perf_map *map);
/* Maps a file. */
int fp_perf_map_range(struct fp_perf_reader *r, uint32_t pid, uint64_t start, uint64_t len, uint64_t pgoff,
                      uint32_t name, uint32_t flags);

/* jit.c */

/* Maps the JIT-compiled code loaded up to this time. */
void fp_perf_map_codes(struct fp_perf_reader *r, uint64_t time);

/* rows.c */

/* Adds the rows of a sample.  0; FP_FULL or FP_NEEDS: call again with the same sample; or an error. */
int fp_perf_row(struct fp_perf_reader *r, const uint8_t *p, uint32_t n, uint32_t event, struct fp_batch *out,
                struct fp_err *err);

/* Adds a row of zeros to a batch that has room.  Returns its index. */
static inline uint32_t fp_perf_add_row(struct fp_batch *out, uint32_t stack, uint32_t thread, uint32_t label,
                                       uint64_t time) {
    const uint32_t i = fp_batch_sample(out, stack, thread, label, time < FP_PERF_AT_THE_END ? time : 0);
    for (uint32_t k = 0; k < out->n_values; k++) out->values[(size_t)k * out->cap + i] = 0;
    return i;
}

/* The frame of an address of the kernel (in the upper half) or of a process, whose generations of maps are in
 * r->stacks. */
uint32_t fp_perf_code_frame(struct fp_perf_reader *r, uint32_t pid, uint64_t address);

/* branches.c */

/* Whether branches are read, not samples. */
static inline int fp_perf_by_branches(const struct fp_perf_reader *r) {
    return r->wants_branches == FP_PERF_ONLY_BRANCHES || (r->wants_branches && r->has_branches);
}
/* Adds the branches of a sample.  0; FP_FULL or FP_NEEDS: call again with the same record. */
int fp_perf_branches(struct fp_perf_reader *r, const uint8_t *p, uint32_t n, uint32_t event, struct fp_batch *out);
/* Adds the rows of all branches so far.  0; FP_FULL or FP_NEEDS: call again. */
int fp_perf_branch_rows(struct fp_perf_reader *r, struct fp_batch *out);

/* switches.c */

/* Adds the row of the thread that a switch resumes.  0; FP_FULL or FP_NEEDS: call again. */
int fp_perf_continue_next(struct fp_perf_reader *r, const struct fp_perf_event *e, const struct fp_perf_sample *s,
                          struct fp_batch *out);
/* Then records that the sample's own thread leaves its CPU. */
void fp_perf_leave_at(struct fp_perf_reader *r, const struct fp_perf_event *e, const struct fp_perf_sample *s,
                      uint32_t stack, uint32_t label);
/* Applies a SWITCH record.  0; FP_FULL or FP_NEEDS: call again with the same record. */
int fp_perf_switch(struct fp_perf_reader *r, const struct fp_perf_event *e, const uint8_t *p, uint32_t n,
                   struct fp_batch *out);

/* fields.c */

/* Adds a label for each known field of a sample to a label set. */
uint32_t fp_perf_field_labels(struct fp_perf_reader *r, const struct fp_perf_event *e, const struct fp_perf_sample *s,
                              uint32_t label);
/* Whether the number of distinct field values is below its limit. */
int fp_perf_has_room_for_fields(const struct fp_perf_reader *r);

/* unwind.c */

/* Unwinds the copy of a stack, which is not empty, into r->unwound.frames.  0, FP_NEEDS: call again. */
int fp_perf_unwind(struct fp_perf_reader *r, const struct fp_perf_event *e, const struct fp_perf_sample *s);

/* deferred.c */

/* Whether the user frames of a sample follow later. */
static inline int fp_perf_is_deferred(const struct fp_perf_reader *r, const struct fp_perf_sample *s) {
    return s->n_chain >= 2 && fp_u64s(s->chain + 8 * (s->n_chain - 2), r->swap) == FP_PERF_TO_DEFERRED;
}
/* Keeps a copy of a sample whose user frames follow later.  1; 0: too many of them wait. */
int fp_perf_defer(struct fp_perf_reader *r, const uint8_t *p, uint32_t n, uint32_t event,
                  const struct fp_perf_sample *s);
/* Completes the samples that wait for a deferred chain. */
void fp_perf_complete(struct fp_perf_reader *r, const struct fp_perf_event *e, const uint8_t *p, uint32_t n);
/* Makes all waiting samples ready. */
void fp_perf_complete_all(struct fp_perf_reader *r);
/* Removes and returns a ready sample; its bytes are valid until the next call. */
struct fp_perf_deferred fp_perf_take_ready(struct fp_perf_reader *r);
