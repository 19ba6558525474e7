/* What the reader of Perfetto traces remembers; private to this folder.  C only. */
#pragma once

#include "core/core.h"

/* The packets as far as they are read. */
struct fp_perfetto_feed_state {
    int32_t surveying, until_call, lost, over, planned, has_head;
    struct fp_buf inner; /* decompressed packets */
    size_t inner_pos;
    int32_t in_inner, inner_over;
    struct fp_buf pending; /* records that wait until the others are spilled: rows.c */
    size_t pending_pos;
    int32_t owes; /* a request made in the middle of a packet: enum fp_perfetto_asks */
    struct fp_buf scratch;
};

/* Sequences of packets. */
struct fp_perfetto_seqs {
    struct fp_table ids;
    struct fp_perfetto_seq *list; /* by id in `ids` */
    uint32_t cap, last;           /* the one read last, + 1 */
    struct fp_perfetto_clocks *clocks;
};

/* Tracks, and threads and names for them. */
struct fp_perfetto_tracks {
    struct fp_table keys;
    struct fp_perfetto_track *list; /* by id in `keys` */
    uint32_t cap;
    struct fp_table place_keys, name_keys;
    uint32_t n_places, cap_places, cap_named;
    struct fp_table sum_keys; /* of counters: sequence, track */
    struct fp_perfetto_sum *sums;
    uint32_t cap_sums;
};

struct fp_perfetto_calls {
    struct fp_perfetto_function *function_of; /* by string: its last function */
    uint32_t cap_functions;
    uint32_t nameless; /* string: the name shown for calls without one, or 0 */
    uint32_t to_close; /* calls that the head ends */
    struct fp_perfetto_stacks *stacks;
    struct fp_perfetto_sched *sched;
};
