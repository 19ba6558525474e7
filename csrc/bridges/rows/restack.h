/* bridges/rows/restack.h - replaces frames in stacks.
 *
 * A frame that gets symbols, or loses its position, becomes other rows of the frame table, so every stack with that
 * frame becomes another stack.  This replaces the stacks of batches, with one lookup for each distinct stack.
 */
#ifndef FP_RESTACK_H
#define FP_RESTACK_H

#include "core/batch.h"
#include "core/buf.h"
#include "core/model.h"
#include "core/remap.h"

/* cffi-begin */

struct fp_restack {
    struct fp_model *model;
    int32_t files;   /* fp_restack_names: names keep the file and the first line of their function; set by the caller */
    uint64_t placed; /* fp_restack_names: frames that lost an address, a file or a line */
    /* private from here on */
    uint32_t *frame_to; /* by frame: the position of its replacement in `chains`, 0 = none */
    uint32_t cap_frames;
    uint32_t *chains; /* a count, then that many frames, outermost first */
    uint32_t n_chains, cap_chains;
    uint32_t n_named; /* frames that fp_restack_names has seen */
    struct fp_remap *ids;
    struct fp_buf name;
};

/* The model is borrowed.  NULL when memory ran out. */
struct fp_restack *fp_restack_new(struct fp_model *model);
void fp_restack_free(struct fp_restack *r);

/* Replaces `frame` by `to`; call before the first batch whose stacks have that frame.  0 or FP_E_NOMEM. */
int fp_restack_frame(struct fp_restack *r, uint32_t frame, uint32_t to);

/* Reduces the frames that the model has so far to names: each function of a frame becomes a separate frame, without
 * address, object, file and line; an address without a symbol becomes a function with a name by core/address.h.  Call
 * before the first batch that has such frames.  FP_DONE, FP_E_NOMEM, FP_E_MALFORMED (an id that the model does not
 * have). */
int fp_restack_names(struct fp_restack *r, struct fp_err *err);

/* Replaces the stacks of a batch, in place.  FP_DONE, FP_E_NOMEM, FP_E_MALFORMED
 * (an id that the model does not have). */
int fp_restack_batch(struct fp_restack *r, struct fp_batch *b, struct fp_err *err);

/* cffi-end */

#endif
