/* bridges/rows/filter.h - keeps the rows of matching functions: --function and --object; of timelines also
 * --root-at and --subtree.
 *
 *   stacks    the samples with such a function on their stack
 *   graph     the rows of such functions: self costs, calls of any function, jumps
 *   timeline  the calls of such functions, with everything within them
 *
 * A function matches if its name and its object match.  The caller decides: FP_NEEDS requests an answer once for each
 * distinct name, and for the address of each frame without a function.
 */
#pragma once

#include "core/core.h"

enum fp_filter_by { FP_FILTER_NAME = 1, FP_FILTER_OBJECT = 2 };

struct fp_filter {
    struct fp_model *model;
    int32_t by;          /* bits of enum fp_filter_by */
    int32_t request;     /* after FP_NEEDS: one of these bits, the pattern for `text` */
    const uint8_t *text; /* valid until the answer */
    size_t text_n;
    uint64_t left_out; /* rows */
    uint64_t unwound;  /* timeline: matching calls without an exit, which were ended with their caller */
    /* private from here on */
    uint8_t *answer;             /* where to store the answer */
    uint8_t *names, *objects;    /* by string: an answer, or 0 = not requested yet */
    uint8_t *functions, *frames; /* by id: does it match? */
    uint8_t *lines;              /* by id: does it or an outer one match, see line_matches */
    uint8_t *stacks;             /* by stack: does a frame of it match? */
    uint32_t cap_names, cap_objects, cap_functions, cap_lines, cap_frames, cap_stacks;
    uint32_t n_functions, n_lines, n_frames, n_stacks; /* already checked */
    uint32_t n_emptied;                                /* of the model: when this changes, no stack is checked */
    uint8_t address;                                   /* the answer for the address of a frame */
    struct fp_buf scratch;
    struct fp_filter_thread *threads;
    uint32_t cap_threads;
    struct fp_table entered; /* (thread, function) */
    uint32_t *active;        /* by row of `entered`: its activations on the stack of the thread */
    uint32_t cap_active;
    int32_t kept;                     /* the previous row was kept; the next may be an argument of its call */
    uint32_t *path, n_path, cap_path; /* names, as strings of the model */
};

/* The model is borrowed. */
struct fp_filter *fp_filter_new(struct fp_model *model, int by);
void fp_filter_free(struct fp_filter *f);

/* Of a timeline: only calls whose callers and own function have the names of this path match.  Adds a name to it, the
 * outermost first.  FP_DONE. */
int fp_filter_path(struct fp_filter *f, const uint8_t *name, size_t n);

/* Checks the model's new entries; call before each batch.  FP_NEEDS: answer for f->text and call again.  FP_DONE: the
 * batch can be filtered.  FP_E_MALFORMED (an id that the model does not have). */
int fp_filter_learn(struct fp_filter *f, struct fp_err *err);
void fp_filter_answer(struct fp_filter *f, int matches);

/* Drops the rows of a batch that do not match, in place.  FP_DONE, FP_E_MALFORMED. */
int fp_filter_batch(struct fp_filter *f, struct fp_batch *b, struct fp_err *err);
