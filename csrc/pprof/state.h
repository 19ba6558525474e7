/* What the reader of pprof profiles remembers; private to this folder.  C only. */
#pragma once

#include "core/core.h"

/* The tables as in the file. */
struct fp_pprof_tables {
    uint32_t *strings; /* by index: string of the model */
    uint32_t n_strings, cap_strings;
    struct fp_pprof_mapping *mappings;
    struct fp_pprof_function *functions;
    struct fp_pprof_location *locations;
    struct fp_pprof_line *lines;
    uint32_t cap_mappings, cap_functions, cap_locations, n_lines, cap_lines;
    struct fp_table mapping_ids, function_ids, location_ids; /* id -> position in the table + 1 */
    uint32_t n_without_id;                                   /* functions, if none so far has an id */
    uint32_t *frames;                                        /* by position of a location: frame */
};

/* What was made of samples. */
struct fp_pprof_caches {
    struct fp_strings chains; /* lists of locations, as bytes of the file */
    uint32_t *chain_stacks;   /* by chain: stack */
    uint32_t cap_chain_stacks;
    uint32_t n_renewed;           /* of the model: when this changes, the stacks of chains are invalid */
    struct fp_strings label_sets; /* label messages, likewise */
    uint32_t *label_chains;       /* by label set: label chain */
    uint32_t cap_label_chains;
};

/* The current sample. */
struct fp_pprof_sample_state {
    struct fp_pprof_label *labels; /* of one label set */
    uint32_t cap_labels;
    uint32_t *chain_frames; /* of one chain */
    uint32_t cap_chain_frames;
    int64_t *values;
    struct fp_buf chain, label_set; /* joined if they come in several pieces */
};

/* The file as far as it is read. */
struct fp_pprof_feed_state {
    uint32_t cap_comments, cap_types;
    uint64_t skip;     /* bytes left to skip: of an unneeded field, or everything when `lost` */
    uint64_t field_at; /* absolute offset of the current field */
    int32_t first_pass;
    int32_t lost; /* lenient: a tag was malformed, so the positions of the following fields are unknown */
    int32_t has_samples;
    uint64_t samples_at;
};
