/* bridges/rows/transform.h - hides functions, and makes one function or frame of several: --merge-lines, --hide,
 * --hide-object, --collapse-object and --collapse-recursion.
 *
 *   stacks     main > f > g > g > memcpy > memmove  3, the last two of libc.so
 *   hide f                       main > g > g > memcpy > memmove  3
 *   collapse object libc.so      main > f > g > g > libc.so  3
 *   collapse recursion           main > f > g > memcpy > memmove  3
 *
 * Functions that differ in their first line only become the first one of them.  Hiding comes next, then objects, then
 * recursion.  The cost of a hidden function is its caller's; without a caller it
 * is that of `[hidden]`.  Of a function that calls itself the innermost frame stays, so that self costs keep their
 * lines.  Inlined functions count as functions of their own.
 *
 *   timeline   calls that are hidden, or merged into their caller, lose their entry and exit.  While only hidden calls
 *              are open, `[hidden]` is: it ends before the call of another function, and begins again after it
 *   graph      arcs within a collapsed object, and from a function to itself, are dropped.  Which rows are of hidden
 *              functions is in `marks`: the caller divides their costs (fastprof/bridges/rows/hidden_arcs.py)
 *
 * Memory: 4 bytes for each of the model's stacks and frames, 40 for a line of an inlined function, and what is linear
 * in open calls.  Frames that share lines take no more time: each line is changed once; but once for each collapsed
 * object, if only some of it and what it is inlined into have an object of their own.
 */
#pragma once

#include "core/core.h"

/* cffi-begin guarded */

enum fp_transform_bit { FP_TRANSFORM_HIDES = 1, FP_TRANSFORM_COLLAPSES = 2 };
enum fp_transform_mark { FP_TRANSFORM_DROPS = 0, FP_TRANSFORM_KEEPS = 1, FP_TRANSFORM_HELD = 2 };

struct fp_transform_line; /* what a line becomes, see transform.c */

struct fp_transform {
    struct fp_model *model;
    /* Bits of enum fp_transform_bit, by id; set before each batch.  Functions, and addresses (of frames without a
     * function), have one if their name matches, objects if theirs does. */
    struct fp_mask functions, frames, objects;
    int32_t recursion;   /* collapse it */
    int32_t merge_lines; /* of functions */
    uint32_t hidden;     /* the function `[hidden]` */
    uint64_t n_hidden;   /* stacks: samples of nothing but hidden functions */
    uint64_t n_jumps;    /* graph: jumps of hidden and collapsed functions, which are dropped */
    uint64_t orphans;    /* timeline: exits without an entry, which are dropped */
    uint64_t unwound;    /* timeline: calls without an exit that ended with a hidden or merged caller */
    uint8_t *marks;      /* graph: by row of the last batch, enum fp_transform_mark */
    uint64_t unfinished; /* timeline: calls that fp_transform_end ended */
    /* private from here on */
    uint32_t cap_marks;
    uint32_t *stack_to, cap_stack_to; /* by stack: its replacement + 1; 0: not known yet */
    uint32_t *frame_to, cap_frame_to; /* by frame: the same; 1: nothing is left of it */
    uint32_t n_emptied;               /* of the model */
    uint32_t *path, cap_path;         /* stacks from one up to a known caller */
    uint32_t *chain, cap_chain;       /* lines of a frame, innermost first; or rows of `inlined` */
    struct fp_table inlined;          /* a line, and what its mapping changes: what it becomes is in `becomes` */
    struct fp_transform_line *becomes;
    uint32_t cap_becomes, hiding; /* a mapping's object that is hidden; 0: none so far */
    uint8_t *kinds; /* by line: what is in its chain, if the mapping's object is collapsed; 0: not known yet */
    uint32_t cap_kinds;
    uint32_t *outermost, cap_outermost; /* by line: the outermost function of its chain + 1; 0: not known yet */
    struct fp_table names;              /* by name of a collapsed object: its function is in `collapsed` */
    uint32_t *collapsed, cap_collapsed;
    uint32_t *object_to, cap_object_to; /* by object: its function + 1 */
    struct fp_table places;             /* object, file, name: the first function is in `firsts` */
    uint32_t *firsts, cap_firsts;
    uint32_t *function_to, cap_function_to; /* by function: the first one + 1 */
    struct fp_transform_thread *threads;
    uint32_t cap_threads, n_ended;
    struct fp_open *open; /* bridges/rows/open_calls.h */
    int32_t kept;         /* the previous row was; the next may be an argument of its call */
};

/* The model is borrowed.  NULL when memory ran out. */
struct fp_transform *fp_transform_new(struct fp_model *model);
void fp_transform_free(struct fp_transform *t);

/* Replaces the stacks of a batch, in place.  FP_DONE, FP_E_MALFORMED (an id that the model does not have). */
int fp_transform_stacks(struct fp_transform *t, struct fp_batch *b, struct fp_err *err);

/* Replaces the functions of a graph's rows, in place, and sets t->marks; fp_transform_keep then drops the rows that are
 * not FP_TRANSFORM_KEEPS.  The same results. */
int fp_transform_graph(struct fp_transform *t, struct fp_batch *b, struct fp_err *err);
void fp_transform_keep(struct fp_transform *t, struct fp_batch *b);

/* Appends the rows of a timeline from *from on, and advances it.  FP_DONE, FP_FULL or an error, also FP_E_OVERFLOW for
 * a batch whose payloads pass 4 GiB. */
int fp_transform_calls(struct fp_transform *t, const struct fp_batch *in, uint32_t *from, struct fp_batch *out,
                       struct fp_err *err);

/* Ends the open calls of threads whose last rows were dropped, at the time of these: they would end too early.
 * FP_DONE or FP_FULL. */
int fp_transform_end(struct fp_transform *t, struct fp_batch *out);

/* cffi-end */

/* cffi-begin */

/* Whether a function is hidden.  `object`: that of its mapping, for a function that has none. */
int fp_transform_hides(const struct fp_transform *t, uint32_t function, uint32_t object);
/* Whether adjacent functions become one. */
int fp_transform_merges(const struct fp_transform *t, uint32_t outer, uint32_t inner);
/* Whether it is `[hidden]`, or stands for an object. */
int fp_transform_is_own(const struct fp_transform *t, uint32_t function);

/* cffi-end */

/* Private: what a function becomes that is not hidden. */
uint32_t fp_transform_function(struct fp_transform *t, uint32_t function);
/* Lists a stack and its callers, innermost first, up to one that is known: known[stack] is not 0.  Their number, or
 * FP_E_MALFORMED. */
int64_t fp_transform_unknown(const struct fp_model *m, uint32_t stack, const uint32_t *known, uint32_t cap_known,
                             uint32_t **list, uint32_t *cap_list, struct fp_err *err);
/* Checks the ids that a frame leads to, but for its lines from one on that is known: known[line] is not 0.  FP_DONE,
 * FP_E_MALFORMED. */
int fp_transform_check_frame(const struct fp_model *m, uint32_t frame, const uint32_t *known, uint32_t cap_known,
                             struct fp_err *err);
