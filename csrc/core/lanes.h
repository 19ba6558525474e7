/* core/lanes.h - calls with a begin and an end -> rows of a timeline.
 *
 * Recorders that write a call when it ends have the calls of a thread in the order of their ends, and some of them do
 * not nest.  So they are sorted by their begin (core/rounds.h), and a call that does not fit into the innermost open
 * one goes to a lane, an additional thread of the same process and number:
 *
 *   begin 10 end 50 A, begin 20 end 30 B, begin 40 end 60 C
 *
 *   lane 0   enter A 10, enter B 20, exit B 30, exit A 50
 *   lane 1   enter C 40, exit C 60
 *
 * Of calls that begin at the same time the longest is outermost.  A call that fits into none of 64 lanes ends with the
 * one around it.  Memory: threads and lanes, open calls, and those that begin at the same time, up to 65,536.
 */
#ifndef FP_LANES_H
#define FP_LANES_H

#include "core/batch.h"
#include "core/rounds.h"

struct fp_span {
    uint64_t begin, end;
    uint32_t what;   /* of a call: its function, or what `function` finds it by; of an event: its text, a string */
    uint32_t thread; /* of the model */
    uint32_t is_event, unused;
};

/* Created, filled and freed by the reader. */
struct fp_lanes {
    struct fp_model *model;
    struct fp_rounds *rounds;
    uint64_t *rows, *added, *cut; /* counters of calls and events, of lanes, and of calls that end early */
    void *arg;                    /* the first argument of: */
    uint32_t (*function)(void *arg, uint32_t what);     /* its id or FP_NO_ID.  NULL: `what` is the function */
    int (*lane)(void *arg, uint32_t lane, uint32_t of); /* a thread was added.  0 or FP_E_NOMEM.  May be NULL */
    /* private from here on */
    struct fp_lane *lanes;
    uint32_t *lane_of; /* by thread: its first lane + 1, 0 = none yet */
    uint32_t n_lanes, cap_lanes, cap_lane_of;
    uint32_t inputs[64], n_inputs; /* of lanes, by their numbers */
    struct fp_span *ties;          /* that begin at the same time */
    uint32_t n_ties, cap_ties, at_tie;
    int has_record, is_pulling, taking;
};

void fp_lanes_clear(struct fp_lanes *l);

/* Adds a call or an event; an end before the begin is the begin.  0, FP_ASK (serve the rounds and call again) or
 * FP_E_NOMEM. */
int fp_lanes_put(struct fp_lanes *l, struct fp_span span);

/* Appends the rows of all that was added.  FP_FULL, FP_ASK (serve the rounds and call again), FP_DONE: then more can be
 * added; or FP_E_NOMEM. */
int fp_lanes_pull(struct fp_lanes *l, struct fp_batch *out);

#endif
