/* valgrind/dhat_private.h - between reading a DHAT profile and its rows.  C only. */
#pragma once

#include "core/buf.h"
#include "valgrind/dhat.h"

struct fp_dhat_sums {
    int64_t v[FP_DHAT_VALUES];
    uint64_t n, at; /* points; the offset of the last one */
};

struct fp_dhat_reader {
    struct fp_dhat pub;
    struct fp_model *model; /* borrowed */
    int32_t lenient;
    struct fp_json_walk walk;
    int32_t seen_points;
    int64_t value[FP_DHAT_VALUES]; /* of the current point */
    uint32_t has;                  /* bits: the values it has */
    int32_t has_frames, bad;
    uint64_t at; /* its offset */
    uint32_t *fs, n_fs, cap_fs;
    struct fp_buf code;   /* the same as varints */
    struct fp_dhat_held { /* the previous point, which is not added up yet */
        struct fp_buf code;
        uint32_t hash;
        int32_t is_point;
        int64_t value[FP_DHAT_VALUES];
        uint64_t at;
    } held;
    uint32_t highest; /* the highest index of a frame, and the offset of its point */
    uint64_t highest_at;
    int32_t has_empty;                   /* the frame table has an empty entry */
    uint32_t *table, n_table, cap_table; /* the frame table: strings of `texts` */
    struct fp_dhat_place {
        uint64_t address;
        uint32_t function, line;
    } *places; /* by string of `texts` */
    uint32_t cap_places;
    struct fp_table places_seen;      /* distinct places, while it is searched for equal ones */
    struct fp_table addresses;        /* of places */
    uint32_t *text_at, cap_text_at;   /* by address: the only string with it, FP_NO_ID for several */
    uint32_t *frame_of, cap_frame_of; /* by index of the frame table: the frame, if it is alone at its address */
    uint32_t *frames, cap_frames;     /* of the stacks that are being entered */
    uint32_t *nodes, cap_nodes;       /* if stacks may be equal, by stack of `stacks`: FP_NO_ID if it has no row */
    uint32_t next;                    /* the next stack that becomes a row */
    int32_t is_begun;                 /* equal stacks were added up */
    /* the stacks that the model has: entered to entered + n_entered - 1, as long as its n_renewed is the same */
    uint32_t entered, n_entered, entered_nodes[FP_MODEL_STACKS], n_renewed;
};

static inline struct fp_dhat_sums *fp_dhat_sums_of(const struct fp_dhat_reader *d, uint32_t stack) {
    return fp_key_record(&d->pub.stacks, stack);
}

/* Adds values to those of a stack, at the given offset.  0 or an error. */
int fp_dhat_add(struct fp_dhat_reader *d, uint32_t stack, const int64_t *v, uint64_t at, struct fp_err *err);

/* Whether no other place has the address of this one: it is a frame of its own. */
int fp_dhat_is_alone(const struct fp_dhat_reader *d, uint32_t string);
