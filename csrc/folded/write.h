/* folded/write.h - writes folded stacks: frames from the root on, a blank, a count.
 *
 *   main;f;g 5
 *
 * The format has no escapes, so names that would be misread are changed, and counted:
 *   ';'                                                       becomes ':'
 *   control characters, U+0085, U+2028, U+2029, U+FEFF        a blank
 *   a byte that is not UTF-8                                  U+FFFD
 *   blanks at both ends                                       nothing
 *   nothing                                                   [unknown]
 *   '#' at the beginning of a line                            '_#'
 *   the blank before a number at the end of a leaf            '_'
 *   the text of another name                                  gets ' [2]' or ' [3]' ... appended
 *
 * Memory: linear in the model's names and stacks.
 */
#pragma once

#include "core/core.h"

/* cffi-begin guarded */

/* Values and names that were dropped or changed. */
struct fp_folded_write_stats {
    uint64_t lines;
    /* Including names changed only at line start or end. */
    uint64_t FP_COUNT(renamed, "renamed", not_representable, "name(s) that would be misread, changed");
    uint64_t FP_COUNT(no_stack, "no-stack", not_representable, "sample(s) without a stack, written as [no stack]");
    /* Rows of value 0 or, after division, below 1/2. */
    uint64_t FP_COUNT(zero, "zero-values", not_representable, "stack(s) with value 0");
    uint64_t FP_COUNT(negative, "negative-values", not_representable, "stack with a negative value",
                      "stacks with negative values");
    double cost, left_out; /* sums of magnitudes: of all values, and of those not written */
    uint64_t FP_COUNT(rounded, "rounded-times", not_representable, "time(s) rounded to whole microseconds");
};

struct fp_folded_writer {
    struct fp_model *model;
    uint64_t divisor; /* values are written divided by this, rounded to the nearest; 1 or more */
    struct fp_folded_write_stats stats;

    /* private from here on */
    uint32_t row;                /* of the batch: the first row not written */
    struct fp_utf8_names names;  /* by strings of the model */
    uint32_t *root_of, *leaf_of; /* by text: its replacement at line start and end, 0 = not known yet */
    uint32_t cap_root_of, cap_leaf_of;
    uint32_t no_stack;     /* the text "[no stack]", 0 = not added yet */
    struct fp_buf line;    /* the last stack */
    uint32_t root;         /* the text that every line begins with, 0 = none */
    struct fp_buf scratch; /* a name that is being changed */
    /* the nodes of the last stack from the root on, and where the text of each ends */
    uint32_t *nodes;
    uint64_t *ends;
    uint32_t n_nodes, cap_nodes, cap_ends, n_emptied;
    uint32_t *depth_of; /* by stack: its position in `nodes`, if present */
    uint32_t cap_depth_of;
    uint32_t *path; /* stacks from a leaf upwards */
    uint32_t cap_path;
    uint32_t *called; /* by function: fp_folded_call, 0 = by its name */
    uint32_t cap_called;
};

/* Borrows the model.  Caller owns. */
struct fp_folded_writer *fp_folded_writer_new(struct fp_model *model);
void fp_folded_writer_free(struct fp_folded_writer *w);

/* From now on every line begins with a frame of this name, a string of the model. */
int fp_folded_root(struct fp_folded_writer *w, uint32_t name);

/* From now on a function is called by this string of the model instead of its name. */
int fp_folded_call(struct fp_folded_writer *w, uint32_t function, uint32_t name);

/* Appends a line for each row, with the value in column 0.  A frame is named after the function of its first line, and
 * should have only one line (bridges/rows/restack.h: fp_restack_names).  FP_DONE, or FP_FULL: drain `out` and call
 * again with the same batch. */
int fp_folded_put(struct fp_folded_writer *w, const struct fp_batch *in, struct fp_buf *out, struct fp_err *err);
