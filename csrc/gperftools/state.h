/* What the reader of gperftools profiles remembers; private to this folder.  C only. */
#pragma once

#include "core/core.h"

/* The file as far as it is read. */
struct fp_gperftools_feed_state {
    int32_t state;
    int32_t has_empty; /* a record without program counters was seen */
    uint32_t header_words;
    uint32_t run;  /* the current run, from 0 */
    uint64_t skip; /* header bytes left to skip */
    uint64_t *pc;  /* scratch: one chain */
};

struct fp_gperftools_chains {
    struct fp_buf coded; /* the program counters of the records that are looked up together, as in `known` */
    struct fp_gperftools_before *before; /* by chain, when there is a second run */
    uint32_t cap_before;
    struct fp_table joined; /* while chains are joined */
    uint8_t *is_joined;     /* by chain: counted with another chain */
};

/* What addresses mean. */
struct fp_gperftools_addresses {
    struct fp_gperftools_range *ranges;
    uint32_t n_ranges, cap_ranges;
    struct fp_gperftools_name *names;
    uint32_t n_names, cap_names;
    struct fp_table pcs; /* (address low, high, is leaf) */
    uint32_t *pc_frames; /* by pcs id: frame */
    uint32_t cap_pc_frames;
};

struct fp_gperftools_rows_state {
    uint32_t n_rules;
    uint64_t rules[4];    /* signal frames to remove, by address; 0: the second of two equal leaves */
    struct fp_buf frames; /* scratch: u32, the frames of some chains */
    int32_t prepared;     /* rows are being pulled */
    uint32_t next;        /* chain of the next row */
};
