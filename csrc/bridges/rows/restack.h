/* bridges/rows/restack.h - replaces frames in stacks.
 *
 * A frame that gets symbols, or loses its position, becomes other rows of the frame table, so every stack with that
 * frame becomes another stack.  This replaces the stacks of batches, with one lookup for each distinct stack.
 */
#pragma once

#include "core/core.h"

struct fp_restack {
    struct fp_model *model;
    int32_t files; /* fp_restack_names: the target shows the file and the first line of functions; set by the caller */
    uint64_t placed; /* fp_restack_names: frames that lost an address, a file or a line */
    /* without `files`: functions in the stacks so far that have the name of another one */
    uint32_t *alike;
    uint32_t n_alike;
    /* private from here on */
    uint32_t *frame_to; /* by frame: the position of its replacement in `chains`, 0 = none */
    uint32_t cap_frames;
    uint32_t *chains; /* a count, then that many frames, outermost first */
    uint32_t n_chains, cap_chains;
    uint32_t n_named; /* frames that fp_restack_names has seen */
    struct fp_remap *ids;
    struct fp_buf name;
    uint32_t *of_name; /* by string: the first function of that name; FP_NO_ID: they are in `alike` */
    uint32_t cap_of_name, cap_alike;
    uint8_t *is_alike; /* by function */
    uint32_t cap_is_alike;
    int tells_apart, failed; /* failed: memory ran out for these */
    struct fp_frames *ahead; /* what the model replaces */
    uint32_t n_ahead;        /* n_chains at the last batch */
};

/* The model is borrowed. */
struct fp_restack *fp_restack_new(struct fp_model *model);
void fp_restack_free(struct fp_restack *r);

/* Lets the model replace frames before stacks are added, so that most batches need nothing.  For rows of readers that
 * renew their stacks, all of which pass through here. */
int fp_restack_ahead(struct fp_restack *r, enum fp_frames_step step);

/* Frames and their chains (symbols/symbol.py). */
struct fp_restack_named {
    const uint32_t *frames;
    const uint32_t *chains; /* by frame: a count, then a function's number and a line for each entry, outermost first */
    const uint8_t *texts;   /* by function: file, name, system name */
    const uint64_t *ends;   /* of these, after a 0 */
    const uint32_t *first_lines; /* by function */
    uint32_t *functions;         /* by number: its id in the model, 0: not added yet */
    uint32_t n_frames, n_words, n_functions;
    uint32_t object; /* of the functions */
};

/* Replaces frames by the same ones with lines; a chain without entries replaces nothing.  Call before the first batch
 * whose stacks have these frames.  FP_DONE, FP_E_MALFORMED (an id that the model or the table does not have). */
int fp_restack_chains(struct fp_restack *r, const struct fp_restack_named *named, struct fp_err *err);

/* Reduces the frames that the model has so far to names: each function of a frame becomes a separate frame, without
 * address and line, and with `files` without its object; an address without a symbol becomes a function with a name by
 * core/address.h.  Call before the first batch that has such frames.  FP_DONE, FP_E_MALFORMED (an id that the model
 * does not have). */
int fp_restack_names(struct fp_restack *r, struct fp_err *err);

/* Replaces the stacks of a batch, in place.  FP_DONE, FP_E_MALFORMED (an id that the model does not have). */
int fp_restack_batch(struct fp_restack *r, struct fp_batch *b, struct fp_err *err);
