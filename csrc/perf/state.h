/* What the reader of perf.data remembers; private to this folder.  C only. */
#pragma once

#include "symbols/space.h"
#include "symbols/unwind.h"

enum { FP_PERF_RECENT_BITS = 14, FP_PERF_FRAME_BITS = 11 };

struct fp_perf_events {
    struct fp_perf_event *list;
    uint32_t n, cap;
    struct fp_table ids;  /* (id low, high) */
    uint32_t *of_id;      /* by ids row: event */
    uint64_t *last_value; /* by ids row: the counter's previous value */
    uint32_t cap_of_id, cap_last_value;
    uint64_t last_id; /* the last id looked up, and its event; 0: none */
    uint32_t last;
};

struct fp_perf_threads {
    uint32_t last_id, last; /* the last one looked up, and its row; 0: none */
    struct fp_table ids;
    struct fp_perf_thread *list; /* by ids row */
    uint32_t cap;
    struct fp_table prev_pids; /* pids in tracepoints; a container has its own numbering */
    uint32_t *prev;            /* by prev_pids row: the row of the thread */
    uint32_t cap_prev;
    uint32_t comm_key, cpu_key; /* strings */
};

struct fp_perf_maps {
    struct fp_space *space;
    struct fp_perf_map *list; /* by word of `space` */
    uint32_t n, cap;
    uint32_t *build_ids; /* by object name (string): its build id */
    uint32_t cap_build_ids;
    uint32_t kernel_name; /* string */
    int32_t has_kernel;   /* FP_PERF_KERNEL was requested */
};

/* Lists of JIT-compiled code, not yet mapped. */
struct fp_perf_dumps {
    struct fp_table names;
    struct fp_perf_dump *list;
    uint32_t n, cap;
    uint32_t pid, name; /* the requested dump */
    uint64_t next_code; /* the time when the next code appears */
};

/* Records decompressed from others. */
struct fp_perf_inner {
    uint8_t *p;
    size_t n, cap, pos;
    int32_t is_now; /* one of them is read */
};

/* The range being read, and the record being delivered. */
struct fp_perf_feed {
    int32_t handled, handled_inner; /* the next record was offered to the caller */
    uint64_t skip;                  /* bytes to skip before the next record */
    int32_t is_due;                 /* `rounds` may have something to deliver */
    int32_t ending;                 /* the input is read */
    int32_t lost;                   /* lenient: the rest of the range is lost */
    const uint8_t *now;
    uint32_t n, event, row;
    int32_t has_now;
    uint8_t *own; /* its copy, if it did not wait in `rounds` */
    size_t own_cap;
};

/* The frame of an address, as long as the maps of its process, or the kernel's, do not change. */
struct fp_perf_frame {
    uint64_t address, maps;      /* maps: their generation */
    uint32_t mode, flags, frame; /* frame: 0 = none */
};

struct fp_perf_stacks {
    struct fp_strings chains;                  /* keys of stacks, see struct key in rows.c */
    uint32_t *of_chain;                        /* by chain */
    uint32_t n_renewed;                        /* the model's; when it changes, `of_chain` is invalid */
    uint32_t recent[1 << FP_PERF_RECENT_BITS]; /* chains, found without hashing: see place_of; 0: none */
    uint32_t cap;
    uint8_t *key;
    size_t key_cap;
    uint32_t *frames;
    uint32_t cap_frames;
    uint64_t user, kernel; /* generations of the sample's maps */
    struct fp_perf_frame known[1 << FP_PERF_FRAME_BITS];
};

struct fp_perf_branches {
    struct fp_branches sums;
    uint64_t time; /* of the last sample */
    int32_t apart; /* enum fp_perf_apart */
};

/* The last copy of a stack that was unwound. */
struct fp_perf_unwound {
    struct fp_unwind *unwinder;
    struct fp_unwind_frame *frames;
    uint32_t n, why; /* why: enum fp_unwind_end */
    uint32_t map;    /* whose table is requested */
};

/* Samples that wait for user frames. */
struct fp_perf_waiting_samples {
    struct fp_perf_deferred *list;
    uint32_t n, cap, n_ready;
    uint8_t *held; /* the one being delivered */
    int32_t is_held;
};
