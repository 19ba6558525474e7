/* core/overlap_lanes.h - calls with a begin and an end -> rows of a timeline.
 *
 * A recorder that writes each call when it ends lists the calls of a thread in the order of their ends, and not all of
 * them nest.  So the calls are sorted by their begin (core/rounds.h).  A call that ends after the innermost open call
 * goes to a lane: an additional thread with the same process and thread id.
 *
 *   begin 10 end 50 A, begin 20 end 30 B, begin 40 end 60 C
 *
 *   lane 0   enter A 10, enter B 20, exit B 30, exit A 50
 *   lane 1   enter C 40, exit C 60
 *
 * If several calls begin at the same time, the longest is outermost.  A call that nests in none of the 64 lanes is cut
 * at the end of its caller in the last one.  Memory: linear in threads, lanes, open calls and calls that begin at the
 * same time (at most 65,536).
 */
#pragma once

#include "core/batch.h"
#include "core/buf.h"
#include "core/rounds.h"

/* cffi-begin */

struct fp_span {
    uint64_t begin, end;
    uint32_t what; /* call: its function, or the argument of fp_overlap_lanes' `function`; event: its text, a string */
    uint32_t thread; /* of the model */
    uint16_t is_event;
    uint16_t is_counter; /* with is_event: a value of the counter named `what`; `end` has the bits of the double */
    uint32_t place;      /* 0; set while rows are pulled */
};

/* cffi-end */

/* Created, filled and freed by the reader. */
struct fp_overlap_lanes {
    struct fp_model *model;
    struct fp_rounds *rounds;
    uint64_t *rows, *added, *cut;                        /* counters: calls and events; lanes; calls that were cut */
    void *arg;                                           /* the first argument of: */
    uint32_t (*function)(void *arg, uint32_t what);      /* the function's id.  NULL: `what` is the id */
    uint32_t (*text)(void *arg, uint32_t what);          /* of an event: its text.  NULL: `what` is the string */
    void (*lane)(void *arg, uint32_t lane, uint32_t of); /* a thread was added.  May be NULL */
    /* private from here on */
    struct fp_lane *lanes;
    uint32_t *lane_of; /* by thread: its first lane + 1, 0 = none yet */
    uint32_t n_lanes, cap_lanes, cap_lane_of;
    uint32_t inputs[64], n_inputs; /* by lane - 1: the input of its threads */
    struct fp_span *ties;          /* spans that begin at the same time */
    struct fp_buf payload;
    uint32_t n_ties, cap_ties, at_tie;
    int has_record, is_pulling, taking;
};

void fp_overlap_lanes_clear(struct fp_overlap_lanes *l);

/* Adds a call, an event or a value of a counter.  An end before the begin is raised to it.  0 or FP_NEEDS (serve the
 * rounds and call again). */
int fp_overlap_lanes_put(struct fp_overlap_lanes *l, struct fp_span span);

/* Appends the rows of all spans added.  FP_FULL; FP_NEEDS: serve the rounds and call again; FP_DONE: more spans can be
 * added. */
int fp_overlap_lanes_pull(struct fp_overlap_lanes *l, struct fp_batch *out);
