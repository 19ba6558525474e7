/* bridges/sums/sum.h - stacks -> stacks: sums rows of the same stack, labels and thread.
 *
 * Exact, except that the times of single samples are lost (`timed`).
 *
 *   main > f  {size: 8}  1        main > f  {size: 8}  4
 *   main > g             2   ->   main > g             2
 *   main > f  {size: 8}  3
 *
 * fp_sum_begin sets what distinguishes rows: without labels the first is
 * `main > f 4`, with a label of its part `main > f {size: 8, part: 2} 4`.
 * Sums are written depth first: each stack before those that it calls, and these by frame.  Frames, labels and threads
 * are in the order in which they first occur or, after fp_sum_rank, of their content, which does not depend on the
 * order of several inputs.
 *
 * Memory: linear in distinct (stack, labels, thread) since the last fp_sum_empty.  When there are too many, the caller
 * spills them as runs, which are walks (walk.h), and may remove the model's stacks.  At the end the runs are merged.
 * For another order the merged sums are put in order once more, as many as fit at a time:
 *
 *     walk 1: main > f 4,  main > g 2      walk 2: main > f 3      merged: main > f 7,  main > g 2
 */
#pragma once

#include "bridges/sums/name_order.h"
#include "bridges/sums/walk.h"

/* Which parts of a row's label chain and thread to keep, bits.  Without FP_SUM_INPUTS threads of all inputs become
 * those of input 0. */
enum fp_sum_keep { FP_SUM_LABELS = 1, FP_SUM_PROCESS = 2, FP_SUM_THREAD = 4, FP_SUM_ALL = 7, FP_SUM_INPUTS = 8 };

struct fp_sum {
    struct fp_model *model;
    /* set by fp_sum_begin */
    uint32_t keep;        /* enum fp_sum_keep */
    uint32_t suffix;      /* a label chain that comes after each row's own */
    uint32_t thread;      /* the thread of rows that have none */
    uint32_t had;         /* FP_SUM_PROCESS, FP_SUM_THREAD: rows had such ids */
    uint32_t taken;       /* after FP_E_OVERFLOW: rows of the batch that were taken */
    uint64_t timed;       /* samples whose time is lost */
    uint64_t unlabelled;  /* samples that lose all their labels or their thread */
    struct fp_table keys; /* (stack, labels, thread) */
    uint32_t n_values;
    int32_t once;   /* no stack of a merged walk is in the model, so none is looked up; set by the caller */
    int32_t failed; /* fp_sum_pull: memory ran out */

    /* private from here on */
    struct fp_name_order names; /* in fp_sum_rank */
    int64_t *sums;              /* of key i: sums[i * n_values ..]; core/memory.h */
    uint32_t n_sums, cap;       /* keys that have sums, and that `sums` has room for */
    /* of frames, labels, threads: by first occurrence, and by content or NULL */
    uint32_t *numbers[3], n_numbers[3], cap_numbers[3];
    uint32_t *ranks[3], n_ranks[3];
    uint32_t *order; /* keys in the order in which they are pulled */
    uint32_t n_order, next;
    uint32_t *stack_ranks; /* by stack, to pull a walk */
    uint32_t last;         /* the last stack pulled */
    /* Stacks that lead to the present record, those below that are not pulled yet, last first, and of a merged walk the
     * frames of the record's stack, by depth. */
    uint32_t *path, *rest, *frames, n_path, n_rest, cap_path, cap_rest, cap_frames;
    uint32_t n_emptied;         /* of the model: when this changes, the path is invalid */
    uint32_t *labels, *threads; /* by id of a row: its replacement + 1; 0 = not known yet */
    uint32_t cap_labels, cap_threads;
};

/* Borrows the model.  Caller owns. */
struct fp_sum *fp_sum_new(struct fp_model *model);
void fp_sum_free(struct fp_sum *s);

/* Frames, labels and threads that have occurred in `before` are those that occur first. */
int fp_sum_follow(struct fp_sum *s, struct fp_sum *before);

/* From now on rows are distinguished by `keep`, get the labels `suffix` and, if they have no thread, the thread
 * `thread`. */
void fp_sum_begin(struct fp_sum *s, uint32_t keep, uint32_t suffix, uint32_t thread);

/* Widens every sum to `n_values` (never narrows). */
int fp_sum_set_values(struct fp_sum *s, uint32_t n_values);

/* Adds the rows of a stacks batch from row `from` on: their value k to sum columns[k], where no two columns are the
 * same.  FP_DONE or FP_E_OVERFLOW: row s->taken does not fit into a sum, the rows before it are added. */
int fp_sum_put(struct fp_sum *s, const struct fp_batch *in, uint32_t from, const uint32_t *columns, struct fp_err *err);

/* From now on the order is that of contents.  The model must have all frames, labels and threads. */
int fp_sum_rank(struct fp_sum *s);

/* Has a merge compare records in the order of the sums.  Borrows its ranks. */
void fp_sum_show_ranks(const struct fp_sum *s, struct fp_walk *walk);

/* The distinct stacks among n_stacks in column 0 of the keys: fewer than keys where labels or threads differ. */
int64_t fp_sum_stacks(const struct fp_table *keys, uint32_t n_stacks);

/* Sorts the sums and restarts the pulls below. */
int fp_sum_order(struct fp_sum *s);

/* Fills `to` with records of a walk, up to `n` words.  The number of words, 0 at the end or if `failed` is
 * set. */
size_t fp_sum_pull(struct fp_sum *s, uint64_t *to, size_t n);

/* The sums as rows: value k is sum columns[k].  FP_FULL or FP_DONE. */
int fp_sum_rows(struct fp_sum *s, const uint32_t *columns, struct fp_batch *out);

/* Takes the rows of a merged walk until there are n_keys of them, or n_stacks in the model.  FP_FULL: more follow.
 * FP_DONE.  FP_MORE: refill the merge.  FP_E_OVERFLOW if the merge does not split sums. */
int fp_sum_take(struct fp_sum *s, struct fp_walk *walk, uint32_t n_keys, uint32_t n_stacks, struct fp_err *err);

/* The rows of a merged walk: value k is sum columns[k].  Their stacks are added to the model, which FP_FULL also means
 * when it has n_stacks.  FP_DONE, FP_MORE, errors as above. */
int fp_sum_walk(struct fp_sum *s, struct fp_walk *walk, const uint32_t *columns, uint32_t n_stacks,
                struct fp_batch *out, struct fp_err *err);

/* Drops the sums, to begin again. */
void fp_sum_empty(struct fp_sum *s);
