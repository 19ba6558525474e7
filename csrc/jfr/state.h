/* What the reader of flight recordings remembers; private to this folder.  C only. */
#pragma once

#include "core/core.h"

/* The types of a chunk. */
struct fp_jfr_metadata {
    int32_t is_described;    /* it is read */
    int32_t was_compressed;  /* the value of `compressed` then */
    struct fp_buf described; /* as in the file, from its strings on */
    struct fp_strings names; /* the known words come first */
    uint32_t *strings;       /* by index in the file: name */
    uint32_t n_strings, cap_strings;
    struct fp_jfr_type *types;
    struct fp_jfr_field *fields;
    struct fp_jfr_note *notes;
    uint32_t n_types, cap_types, n_fields, cap_fields, n_notes, cap_notes;
    uint32_t string_type;     /* java.lang.String; 0: none */
    struct fp_table type_ids; /* id -> type */
    uint32_t *type_of;        /* by row of type_ids */
    uint32_t cap_type_of;
    uint32_t small[1024];        /* by id: type, 0: none */
    struct fp_table unknown_ids; /* types of events that are not described */
};

/* How events of a type are decoded. */
struct fp_jfr_programs {
    struct fp_jfr_op *ops;
    uint32_t n_ops, cap_ops, barrier;
    struct fp_jfr_program *list;
    uint32_t n, cap;
    struct fp_jfr_layout *layouts; /* of usual events */
    uint32_t n_shapes;             /* so far, of types in chunks */
    struct fp_jfr_slot *slots;     /* FP_JFR_SLOTS for each type whose events are decoded ahead */
    uint32_t n_slots, cap_slots;
};

/* The values of a chunk that its events refer to. */
struct fp_jfr_constants {
    struct fp_jfr_pool *pools;
    uint32_t n_pools, cap_pools;
    int32_t is_indexed; /* constants can be found */
    uint8_t *arena;
    size_t arena_n, arena_cap;
    uint64_t limit;         /* the end of the current checkpoint; 0: none */
    uint64_t n_left_pools;  /* of that checkpoint */
    uint64_t n_left_values; /* of the current pool */
    uint32_t at_type;       /* the type of that pool */
    uint32_t epoch;         /* the chunk's number */
};

struct fp_jfr_stacks {
    struct fp_jfr_frame *cache;       /* the last frames */
    uint32_t *frames, *frame_methods; /* of the current stack */
    uint32_t cap_frames, cap_frame_methods;
    struct fp_strings texts;   /* stacks of this chunk and earlier ones, as in the file */
    struct fp_jfr_memo *known; /* by string of `texts` */
    uint32_t cap_known;
    uint32_t next;      /* the string after that of the last constant */
    uint32_t n_renewed; /* the model's */
    uint32_t *methods;  /* of these stacks: rows */
    uint32_t n_methods, cap_methods;
};

struct fp_jfr_methods {
    struct fp_table ids;        /* type, key, type and key of the kind */
    struct fp_jfr_method *list; /* by row */
    uint32_t cap;
    uint32_t checked;            /* the last chunk of fp_jfr_check_methods */
    uint32_t n_sure;             /* rows that are whole in this chunk */
    uint32_t changed;            /* the last chunk in which one was another method than before */
    struct fp_strings described; /* their descriptions */
};

/* Samples that are added up. */
struct fp_jfr_sums {
    struct fp_jfr_context *contexts;       /* the last ones */
    struct fp_jfr_pending_context *briefs; /* of samples that wait */
    void *memory;
    struct fp_jfr_summed *rows;       /* of the batch, by the bytes of their events; in `memory` */
    int32_t is_summing;               /* some can be found there */
    uint32_t n_tried, n_found;        /* events looked up there */
    uint64_t sure_ticks;              /* this many ticks from the chunk's start on have times */
    uint64_t first_ticks, last_ticks; /* of samples added to rows */
    struct fp_jfr_pending *pending;   /* samples that wait to be added up; NULL: there were none */
    int32_t holds;                    /* samples wait */
};

struct fp_jfr_names {
    struct fp_buf name, more;                  /* those being built */
    uint32_t thread_key, class_key, state_key; /* strings */
    uint32_t sleeping;                         /* a string */
    struct fp_table leaves;                    /* (class, suffix) -> frame */
    uint32_t *leaf_of;
    uint32_t cap_leaf_of;
    struct fp_jfr_thread_name {
        uint64_t java_id; /* of the thread that gave the name; 0: it is none of Java */
        uint32_t name;    /* a string; 0: none so far */
    } *of_threads;        /* by thread */
    uint32_t cap_of_threads;
};

struct fp_jfr_spans {
    struct fp_overlap_lanes lanes;
    struct fp_strings reported; /* facts already reported to the caller */
    uint32_t value;             /* of an event with values: the next one, after FP_NEEDS */
};
