/* What the reader of OTLP profiles remembers; private to this folder.  Included by otlp/read.h, after the structs that
 * it needs.  C only. */
#pragma once

/* Of the arrays of fp_otlp_contents and fp_otlp_pprof, and of `messages`. */
struct fp_otlp_caps {
    uint32_t cap_messages, cap_attributes, cap_own, cap_raws, cap_profiles, cap_lists, n_lists, cap_comments;
};

struct fp_otlp_scan_state {
    int32_t dictionary_first;
    uint64_t profile_time, profile_duration; /* of the current profile */
    int32_t profile_fields;
    struct fp_otlp_scope *scopes; /* in the order of profiles */
    uint32_t n_scopes, cap_scopes;
    struct fp_otlp_resource *resources;
    uint32_t n_resources, cap_resources;
};

/* The dictionary. */
struct fp_otlp_tables {
    uint32_t *strings;
    uint32_t n_strings, cap_strings;
    struct fp_otlp_mapping *mappings;
    struct fp_otlp_function *functions;
    struct fp_otlp_location *locations;
    struct fp_otlp_line *lines;
    struct fp_otlp_link *links;
    struct fp_otlp_stack *stacks;
    uint32_t n_mappings, cap_mappings, n_functions, cap_functions, n_locations, cap_locations, n_lines, cap_lines;
    uint32_t n_links, cap_links, n_stacks, cap_stacks;
    uint32_t *nodes; /* by stack: of the model; FP_NO_ID: not created yet, or bad */
    uint32_t cap_nodes;
    uint32_t n_renewed; /* of the model: when this changes, nodes of stacks are invalid */
    uint32_t *path;     /* frames of a stack */
    uint32_t cap_path;
};

struct fp_otlp_rows_state {
    struct fp_otlp_cursor *cursors; /* of the chosen profiles */
    struct fp_otlp_base base;       /* of the chosen profiles */
    struct fp_strings label_sets;
    struct fp_otlp_labels *labels; /* by label set */
    uint32_t cap_labels;
    struct fp_buf key;
    /* the sample that becomes rows: that of cursor `leader`; the number of its rows, and of those in a batch */
    uint32_t leader, n_rows, row, row_stack, row_label, row_thread;
};
