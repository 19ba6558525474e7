/* pstats/write.h - writes rows of a graph as a profile of Python's cProfile (pstats/read.h).
 *
 * Rows are added up by function and by caller; the file is written at the end.  Values are those of fp_pstats_value, or
 * one value: own cost of functions, inclusive cost of calls.  Then the other numbers follow from it:
 *
 *   cumulative time     the larger of the costs of calls into the function, and of its own cost and the calls it makes;
 *                       calls of a function to itself are left out
 *   primitive calls     calls from other functions
 *   own time by caller  in proportion to the cumulative time by caller: an estimate
 *
 * A function is identified by file, line and name.  Its file is the object if it has no other, "~" without both; its
 * line the first one that has a cost, if the function has none.
 *
 * Memory: linear in functions and pairs of caller and callee.
 */
#ifndef FP_PSTATS_WRITE_H
#define FP_PSTATS_WRITE_H

#include "core/batch.h"
#include "core/buf.h"
#include "core/model.h"
#include "core/unique.h"
#include "pstats/read.h"

/* cffi-begin */

struct fp_pstats_sums {
    int64_t v[FP_PSTATS_VALUES];
};

struct fp_pstats_writer {
    struct fp_model *model; /* borrowed */
    double unit;            /* seconds of a unit of time values */
    int32_t is_time;        /* or values of another unit, which are written as seconds, or as nanoseconds if any is
                               above 9 * 10^9 */
    int32_t complete;       /* whether rows have all values of fp_pstats_value, or one */
    /* not representable */
    uint64_t elsewhere; /* rows at another line than their function's */
    uint64_t jumps;     /* rows */
    uint64_t merged;    /* functions that others have the file, line and name of */
    uint64_t estimated; /* own times by caller */
    uint64_t replaced;  /* bytes of names that are not UTF-8 */

    /* private from here on */
    struct fp_pstats_sums *own; /* by function of the model */
    uint32_t *lines;            /* by function: the first line with a cost, +1; 0: the function has no rows */
    uint32_t cap_own, cap_lines;
    struct fp_table arcs; /* caller, callee: functions, then their keys */
    struct fp_pstats_sums *of_arcs;
    uint32_t cap_of_arcs;
    /* made at the end */
    int32_t ended, begun; /* begun: the head of the current entry is written */
    struct fp_table keys; /* file, line, name */
    uint32_t *key_of;     /* by function */
    struct fp_pstats_sums *of_keys;
    uint32_t cap_of_keys;
    uint32_t *first, *sorted; /* by key: where its arcs begin in `sorted`, arcs by callee */
    uint32_t key, arc;        /* to be written next */
    struct fp_unique texts;
    struct fp_buf scratch;
    uint32_t *text_refs, cap_text_refs; /* by string, by key: its number in the file, +1 */
    uint32_t *key_refs, cap_key_refs;
    uint32_t n_refs;
};

/* Borrows the model.  NULL when memory ran out.  Caller owns. */
struct fp_pstats_writer *fp_pstats_writer_new(struct fp_model *model);
void fp_pstats_writer_free(struct fp_pstats_writer *w);

/* Adds up rows.  FP_DONE or an error. */
int fp_pstats_put(struct fp_pstats_writer *w, const struct fp_batch *in, struct fp_err *err);

/* Appends the file.  FP_DONE, an error, or FP_FULL: drain `out` and call again. */
int fp_pstats_take(struct fp_pstats_writer *w, struct fp_buf *out, struct fp_err *err);

/* cffi-end */

#endif
