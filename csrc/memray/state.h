/* memray/state.h - what read.c, events.c and code.c share: the state of a reader.  C only. */
#pragma once

#include "memray/read.h"

struct fp_memray_code {
    uint64_t table; /* of lines, in `tables` */
    uint32_t n_table, function, line;
    uint32_t is_entry;       /* of version 11: the interpreter's loop was called for it */
    uint32_t spans, n_spans; /* the table once it is decoded, in `spans` */
};

/* From `start` (a code unit or byte) up to the start of the next span, code is of `line`; 0: of none. */
struct fp_memray_span {
    uint32_t start, line;
};

/* `stack`: of the model; with native frames a node of `nodes`.  `sum`: sum + 1 of the native stack here, 0: none yet.
 */
struct fp_memray_top {
    uint32_t stack, sum;
    uint64_t native;
    uint32_t epoch;
};

/* A frame of native code at `address`, called by the frame of number `caller`. */
struct fp_memray_native {
    uint64_t address;
    uint32_t caller;
};

/* Images of the process are at [start, limit) until the next epoch. */
struct fp_memray_image {
    uint64_t start, limit;
    uint32_t mapping;
};

struct fp_memray_latest {
    uint64_t address, size;
    uint32_t sum;
};

struct fp_memray_thread {
    uint64_t id;
    struct fp_memray_top *stack; /* the first one is without frames */
    uint32_t n, cap;
    uint32_t thread, name;
    struct fp_memray_latest latest[2]; /* allocations, the last one first */
};

/* Blocks in use, in a cache line: a lookup compares all its addresses, without branches that cannot be predicted.
 * Blocks of 4 GiB and more have the size UINT32_MAX, and `sum` is an index of `large`. */
enum { FP_MEMRAY_SLOTS = 4 };
struct fp_memray_bucket {
    uint64_t address[FP_MEMRAY_SLOTS];
    uint32_t size[FP_MEMRAY_SLOTS], sum[FP_MEMRAY_SLOTS]; /* sum 0: the slot is free */
};

struct fp_memray_large {
    int64_t size;
    uint32_t sum; /* of a free one: the next free one */
};

/* An allocation (or, of sum 0, a free) whose bucket is on its way to the cache. */
struct fp_memray_coming {
    uint64_t address;
    int64_t size;
    uint32_t sum;
};
enum { FP_MEMRAY_AHEAD = 32 };

/* A node of a tree of mappings by their starts (a treap); `most` is the largest end below it. */
struct fp_memray_map {
    uint64_t start, end, most;
    uint32_t sum, rank, left, right; /* left, right: 0 is none */
};

struct fp_memray_reader {
    struct fp_memray f;
    struct fp_model *model; /* borrowed */
    int32_t lenient, has_header, is_over;
    const char *what, *want; /* of an error */
    /* deltas are against these */
    uint64_t pointer, native, instruction, line, frame;
    uint64_t ring[16]; /* the latest 15 addresses, from `latest` on */
    unsigned latest;
    struct fp_table thread_ids, code_ids, frame_keys, sums;
    struct fp_memray_thread *threads; /* by row of thread_ids */
    uint32_t current;                 /* row of the current thread + 1; 0: none yet */
    uint32_t cap_threads;
    uint32_t *code_of; /* by row of code_ids: an index of `codes`, 0: not defined */
    struct fp_memray_code *codes;
    uint32_t *frames; /* by row of frame_keys: a frame of the model */
    uint32_t cap_code_of, n_codes, cap_codes, cap_frames;
    uint8_t *tables;
    size_t n_tables, cap_tables;
    struct fp_memray_span *spans;
    uint32_t n_spans, cap_spans;
    /* blocks in use: each in the bucket of its address, or, while that is full, in a later one */
    struct fp_hash_key secret;
    struct fp_memray_bucket *buckets;
    uint64_t mask, n_blocks;
    struct fp_memray_large *large; /* the first one is not used */
    uint32_t n_large, cap_large, free_large, n_coming;
    struct fp_memray_coming coming[FP_MEMRAY_AHEAD];
    struct fp_memray_map *maps; /* the first one is not used */
    uint32_t n_maps, cap_maps, root_map, free_map, n_in_use;
    uint64_t n_map_events, n_overlaps, n_ranks;
    /* frames (twice their numbers of the model, and 1 if the loop was called for them), and nodes of a tree of them:
     * numbered in aggregated files; with native frames also in others, by row of `node_keys` */
    uint32_t *numbered, *nodes;
    struct fp_table node_keys;
    /* natives: by number; images: those of an epoch follow each other, sorted once they are looked up */
    struct fp_memray_native *natives; /* the first one is not used */
    struct fp_memray_image *images;
    uint32_t *epochs;            /* for each, where its images begin */
    struct fp_table wanted_keys; /* number and epoch of a native frame: its row is an index of `wanted` */
    uint32_t *way, *native_way;  /* of a stack, callees first */
    uint32_t n_natives, cap_natives, n_images, cap_images, n_epochs, cap_epochs, cap_wanted, cap_way, cap_native_way;
    int32_t is_wanted, is_joined;
    uint64_t n_steps;
    uint32_t n_numbered, cap_numbered, n_nodes, cap_nodes;
};

/* The current thread, or NULL; until the next thread is added. */
static inline struct fp_memray_thread *fp_memray_current(const struct fp_memray_reader *r) {
    return r->current ? &r->threads[r->current - 1] : NULL;
}

static inline int fp_memray_bad(struct fp_memray_reader *r, const char *what, const char *want) {
    r->what = what;
    r->want = want;
    return FP_E_MALFORMED;
}

/* The allocations and frees of events.c: 0, or an error.  The last ones count only after fp_memray_settle. */
int fp_memray_event(struct fp_memray_reader *r, unsigned allocator, uint64_t address, uint64_t size);
int fp_memray_settle(struct fp_memray_reader *r);
/* The sum of a stack (see fp_memray_top), a thread of the model, and a native stack and its epoch. */
uint32_t fp_memray_sum(struct fp_memray_reader *r, uint32_t stack, uint32_t thread, uint64_t native, uint32_t epoch);

/* code.c: reads a code object, or a frame of version 11 (`numbered`: as of aggregated files). */
int fp_memray_read_code(struct fp_memray_reader *r, struct fp_cursor *c);
int fp_memray_read_frame(struct fp_memray_reader *r, struct fp_cursor *c, int is_numbered, int is_entry);
/* The frame of an instruction of a code object, twice its number in the model, and 1 if `is_entry`; 0: the code object
 * is not defined. */
uint32_t fp_memray_frame(struct fp_memray_reader *r, uint64_t code, uint64_t instruction, unsigned is_entry);

/* Words of a node: its frame, parent, depth, and its stack in the model, also without the hidden frames of the main
 * thread; 0: not made yet. */
enum fp_memray_node { FP_NODE_FRAME, FP_NODE_PARENT, FP_NODE_DEPTH, FP_NODE_STACK, FP_NODE_MAIN_STACK, FP_NODE_WORDS };
static inline uint32_t *fp_memray_node(const struct fp_memray_reader *r, uint32_t node) {
    return r->nodes + (size_t)FP_NODE_WORDS * node;
}
/* native.c: nodes, native frames, and images of the process. */
/* Adds the next node. */
void fp_memray_add_node(struct fp_memray_reader *r, uint32_t frame, uint32_t parent);
/* The stack of a node.  Stacks of the nodes on its way to the root are made once. */
uint32_t fp_memray_stack(struct fp_memray_reader *r, uint32_t node, int is_main);
int fp_memray_read_native(struct fp_memray_reader *r, struct fp_cursor *c);
int fp_memray_read_image(struct fp_memray_reader *r, struct fp_cursor *c);
/* Collects the native frames of sums in `wanted`. */
int fp_memray_want(struct fp_memray_reader *r);
/* With the answers: gives sums their stacks. */
int fp_memray_join(struct fp_memray_reader *r);
