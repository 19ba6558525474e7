/* bridges/rows/unnamed.h - the frames without lines, by mapping: the symbols of a mapping are looked up together.
 *
 *   frames of mappings 1, 2, 1, 2, 2     mappings 1, 2   ends 2, 5   frames 1, 3, 2, 4, 5
 */
#pragma once

#include "core/core.h"

struct fp_unnamed {
    uint32_t *mappings;  /* in the order of their first frames; 0 = outside all mappings */
    uint32_t *ends;      /* by these: the position after its last frame */
    uint32_t *frames;    /* of each mapping in the model's order */
    uint64_t *addresses; /* by frame: what to look up; of a return address the byte before, which is inside the call */
    uint8_t *callers;    /* by frame: 1 if that is the byte before */
    uint32_t n, n_mappings;
    /* private from here on */
    uint32_t *group_of; /* by mapping: 1 + its position in `mappings`, 0 = none */
    uint32_t cap_mappings, cap_ends, cap_frames, cap_addresses, cap_callers, cap_groups;
};

struct fp_unnamed *fp_unnamed_new(void);
void fp_unnamed_free(struct fp_unnamed *u);

/* Finds those among the model's frames from `first` on.  FP_DONE, FP_E_MALFORMED (a mapping that the model does not
 * have). */
int fp_unnamed_find(struct fp_unnamed *u, const struct fp_model *m, uint32_t first, struct fp_err *err);
