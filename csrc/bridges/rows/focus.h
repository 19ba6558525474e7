/* bridges/rows/focus.h - makes functions, or one path of callers, the roots of stacks: --root-at and --subtree.
 *
 *   stacks               main > f > g > f > h  3,  main > x  2,  f  1
 *   root f               f > g > f > h  3,  f  1
 *   subtree main;f;g     g > f > h  3
 *
 * Samples without such a function, or outside of the path, are dropped.  Names of a path are whole names, and the first
 * one is that of a root.  Inlined functions count as functions of their own.  Of a timeline, filter.h keeps the calls.
 *
 * Memory: 8 bytes for each of the model's stacks, and some for each frame.
 */
#pragma once

#include "core/core.h"

struct fp_focus {
    struct fp_model *model;
    /* Which functions, and addresses (of frames without a function), are a root; without a path.  Set before each
     * batch. */
    struct fp_mask functions, frames;
    uint64_t left_out; /* samples */
    /* private from here on */
    uint32_t *path, n_path, cap_path; /* names, as strings of the model */
    uint32_t *stack_to, cap_stack_to; /* by stack: its replacement; 0: none so far */
    uint32_t *led, cap_led;           /* by stack: 0: not known yet; else 1 + the names that lead to it, or OUTSIDE */
    uint32_t *callees, cap_callees;   /* stacks from one up to a known caller */
    uint32_t *chain, cap_chain;       /* lines of a frame, innermost first */
    struct fp_table begun;            /* a frame and what leads to it: its row is an index of `begins` */
    uint32_t *begins, cap_begins;     /* two each: what `led` becomes, and the frame of a root; FP_NO_ID: none */
    uint32_t *checked, cap_checked;   /* by frame: its ids are those of the model */
    uint32_t n_emptied;               /* of the model */
    struct fp_buf scratch;
};

/* The model is borrowed. */
struct fp_focus *fp_focus_new(struct fp_model *model);
void fp_focus_free(struct fp_focus *f);

/* Adds a name to the path.  FP_DONE. */
int fp_focus_path(struct fp_focus *f, const uint8_t *name, size_t n);

/* Replaces the stacks of a batch, and drops other rows, in place.  FP_DONE, FP_E_MALFORMED (an id that the model does
 * not have). */
int fp_focus_stacks(struct fp_focus *f, struct fp_batch *b, struct fp_err *err);
