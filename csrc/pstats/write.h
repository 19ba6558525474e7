/* pstats/write.h - writes rows of a graph as a profile of Python's cProfile (pstats/read.h).
 *
 * Rows are added up by function and by caller; the file is written at the end.  Rows have either all values of
 * fp_pstats_value or a single one: own cost of functions, inclusive cost of calls.  The others are then derived from
 * it:
 *
 *   cumulative time     the larger of two sums: the calls into the function, or its own cost and the calls it makes;
 *                       without calls of a function to itself
 *   primitive calls     calls from other functions
 *   own time by caller  in proportion to the cumulative time by caller: an estimate
 *
 * A function is identified by file, line and name.  Without a file it gets the object instead, without both "~".
 * Without a line it gets the first line that has a cost.
 *
 * Memory: linear in functions and pairs of caller and callee, of which each takes 40 to 55 bytes, or 70 to 85 with all
 * values.
 */
#pragma once

#include "pstats/read.h"

struct fp_pstats_sums {
    int64_t v[FP_PSTATS_VALUES];
};

struct fp_pstats_writer {
    struct fp_model *model; /* borrowed */
    double unit;            /* seconds per unit of time values */
    int32_t is_time;        /* 0: values of another unit are written as seconds, or as nanoseconds if one exceeds
                               9 * 10^9 */
    int32_t complete;       /* 1: rows have all values of fp_pstats_value; 0: a single one */
    /* counted: not representable */
    /* Rows at another line than their function's. */
    uint64_t FP_COUNT(elsewhere, "cost-lines", not_representable,
                      "cost or call on a line other than its function's, added to it",
                      "costs and calls on lines other than their functions', added to them");
    uint64_t FP_COUNT(jumps, "jumps", not_representable, "jump(s)");
    uint64_t FP_COUNT(merged, "merged-functions", not_representable,
                      "function(s) with the file, line and name of (another,|others,) merged");
    uint64_t estimated; /* own times by caller */
    uint64_t FP_COUNT(replaced, "replaced-bytes");

    /* private from here on */
    struct fp_pstats_sums *own; /* by function */
    uint32_t *lines;            /* by function: the first line with a cost, + 1; 0: the function has no rows */
    uint32_t cap_own, cap_lines;
    struct fp_table arcs; /* caller, callee: functions; at the end their keys */
    int64_t *of_arcs;     /* `width` values of each: all of fp_pstats_value, or cost and calls */
    uint32_t cap_of_arcs, width;
    struct fp_table old_arcs; /* while arcs are added up by key, because some functions have the same one */
    int64_t *of_old_arcs;
    uint32_t cap_of_old_arcs;
    /* set at the end */
    int32_t ended, begun; /* begun: the head of the current entry is written */
    struct fp_table keys; /* file, line, name */
    uint32_t *key_of;     /* by function */
    struct fp_pstats_sums *of_keys;
    uint32_t cap_of_keys;
    uint32_t *first, *sorted; /* by key: where its arcs begin in `sorted`, arcs by callee */
    uint32_t key, arc;        /* the next ones to write */
    struct fp_utf8_names texts;
    struct fp_buf scratch;
    uint32_t *text_refs, cap_text_refs; /* by string, by key: its reference number, + 1 */
    uint32_t *key_refs, cap_key_refs;
    uint32_t n_refs;
};

/* Borrows the model.  Caller owns. */
struct fp_pstats_writer *fp_pstats_writer_new(struct fp_model *model);
void fp_pstats_writer_free(struct fp_pstats_writer *w);

/* Adds up rows.  FP_DONE or an error. */
int fp_pstats_put(struct fp_pstats_writer *w, const struct fp_batch *in, struct fp_err *err);

/* Appends the file.  FP_DONE, an error, or FP_FULL: drain `out` and call again. */
int fp_pstats_take(struct fp_pstats_writer *w, struct fp_buf *out, struct fp_err *err);
