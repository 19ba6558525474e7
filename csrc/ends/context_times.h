/* ends/context_times.h - the samples of a page in order of time, each with its context.
 *
 *   5 ms main > g  2     contexts   0 main        samples   2 ms  context 2 (h)  1
 *   2 ms main > h  1                1 main > g              5 ms  context 1 (g)  2
 *                                   2 main > h
 *
 * A sample has one value: that of the chosen value column, or of the first column in which it costs something.  Samples
 * without a time or a cost are left out.
 *
 * Memory: linear in the samples, up to `room`; when there are more, half of them are dropped, by the bits of a hash,
 * and so on: what is kept is a random sample of them.
 */
#pragma once

#include "bridges/project/project.h"

struct fp_context_sample {
    uint64_t time; /* nanoseconds */
    int64_t value;
    uint32_t place;       /* below `moved` 2 * node, + 1: of what was cut below it; otherwise a key of the projection */
    uint16_t column, lot; /* lot: random bits */
};

struct fp_context_times {
    uint32_t room; /* set by the caller; 0: samples are not kept */
    uint32_t n;
    /* private from here on */
    struct fp_context_sample *samples; /* from fp_contexts_end on by thread and time */
    uint32_t cap;
    uint32_t moved;   /* samples whose place is a node */
    uint32_t mask;    /* bits of `lot` that are 0 in what is kept */
    uint64_t seen;    /* samples with a time and a cost */
    uint64_t *counts; /* of these, by column */
    uint32_t cap_counts;
    uint32_t *root; /* by sample: the node of its thread */
    uint32_t *at;   /* by sample, set by fp_contexts_cut: its context */
};

/* Adds the rows with a time of a batch, after fp_project_put with the same arguments.  `chosen`: a column of the batch.
 * FP_DONE. */
int fp_context_times_put(struct fp_context_times *t, const struct fp_project *s, const struct fp_batch *in,
                         const uint32_t *columns, uint32_t chosen);

/* How many samples a value column has, those that were dropped included. */
uint64_t fp_context_times_count(const struct fp_context_times *t, uint32_t column);

struct fp_context_times_columns {
    uint64_t *times;
    int64_t *values;
    uint32_t *contexts;
};

/* After fp_contexts_cut: copies samples of a value column, at most `most` and one for each thread, by thread and time:
 * of each thread the first and then every *step-th.  The caller has room for `n` items in each column.  Returns their
 * number. */
uint32_t fp_context_times_take(const struct fp_context_times *t, uint32_t column, uint32_t most,
                               const struct fp_context_times_columns *to, uint32_t *step);

/* cffi-end */

void fp_context_times_clear(struct fp_context_times *t);

/* Moves the samples to nodes: node_of[key of the projection]. */
void fp_context_times_add(struct fp_context_times *t, const uint32_t *node_of);

/* Nodes get new numbers: to[node], which for those that are not kept is that of their nearest kept caller. */
void fp_context_times_move(struct fp_context_times *t, const uint32_t *to, const uint8_t *kept);

/* Orders the samples, after the last of them.  root[node]: of its thread. */
void fp_context_times_order(struct fp_context_times *t, const uint32_t *root);

/* Sets `at`: where[place]. */
void fp_context_times_fill(struct fp_context_times *t, const uint32_t *where);
