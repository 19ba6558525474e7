/* bridges/budget/fit_timeline.h - drops the shortest calls of a timeline, so that a viewer can open the output.
 *
 * Calls shorter than some length are merged into their callers: their rows are dropped, and their time becomes the
 * caller's self time.  A call is never longer than its caller, so whole subtrees are dropped, the rest nests, and every
 * remaining call keeps its exact length.
 *
 *   enter f 0, enter g 10, exit g 12, enter h 20, exit h 70, exit f 100      shorter than 5 merged:
 *   enter f 0, enter h 20, exit h 70, exit f 100                             f has 50 of self time instead of 48
 *
 * The threshold is known only at the end: it depends on the bytes that the calls of each length take (the caller's
 * estimate: fp_fit_timeline_size).  So rows are first packed and kept.  Calls that can no longer fit are dropped
 * immediately, so no more rows are kept than about fit.  Lengths are grouped into ranks (fp_bins_of).
 *
 * A call that contains an event stays, whatever its length, if events take bytes at all.
 *
 * Each group becomes a file: everything, a thread, or a slice of time.  Calls that are open at the edge of a slice end
 * there and begin again in the next one, without their arguments.
 *
 * A packed row: op, and which of the next three differ from the row before (bits 3, 4, 5), then as varints
 *
 *   [thread] [cpu] [part]   function, time since the row before (zigzag)      an argument: the argument alone
 *                                                                             an event: also its length, and its bytes
 *                                                                             an exit: no function, calls nest
 *
 * Memory: linear in open calls and in threads, 45 KiB a group, and the packed rows that the caller allows.
 */
#pragma once

#include "core/core.h"

enum { FP_FIT_TIMELINE_RANKS = 59 * 32, FP_FIT_TIMELINE_GROUPS = 500 };

enum fp_fit_timeline_by { FP_FIT_TIMELINE_ALL = 0, FP_FIT_TIMELINE_THREADS = 1, FP_FIT_TIMELINE_SLICES = 2 };

/* The state before a packed row. */
struct fp_fit_timeline_state {
    uint64_t time;
    uint32_t thread, part;
    uint16_t cpu;
};

struct fp_fit_timeline_group {
    uint32_t thread;      /* FP_FIT_TIMELINE_THREADS: its thread */
    int64_t slice;        /* FP_FIT_TIMELINE_SLICES: its number; the first row is in slice 0 */
    uint64_t *bytes;      /* by rank: bytes of its calls */
    uint64_t *calls;      /* by rank; the last rank: those that stay, whatever their length */
    uint64_t *self;       /* by rank: their self time */
    uint64_t kept;        /* bytes of the rows that were not dropped */
    uint32_t least;       /* calls of a lower rank were dropped */
    struct fp_buf packed; /* rows that the caller has not spilled yet */
    /* private from here on */
    struct fp_fit_timeline_state state;
};

struct fp_fit_timeline {
    const struct fp_model *model; /* borrowed */
    int32_t by;                   /* enum fp_fit_timeline_by */
    uint64_t slice_ns;
    struct fp_fit_timeline_group *groups;
    uint32_t n_groups;
    uint64_t packed; /* bytes in all groups */
    /* private from here on */
    uint64_t limit, call, named, event;
    uint32_t cap_groups;
    struct fp_fit_timeline_thread *threads; /* by id */
    uint32_t cap_threads;
    uint64_t zero; /* where slice 0 begins */
    int32_t begun;
    uint32_t least;       /* the minimum rank of calls to return */
    struct fp_batch *out; /* the destination of rows; NULL: their group */
};

/* With FP_FIT_TIMELINE_ALL the only group exists from the beginning. */
struct fp_fit_timeline *fp_fit_timeline_new(const struct fp_model *model, int by, uint64_t slice_ns);
void fp_fit_timeline_free(struct fp_fit_timeline *f);

/* Sets the approximate limit of each group in bytes, and the bytes of a call, of the name of its function (how many
 * times it is written), and of an event without its payload; 0: the target has no events. */
void fp_fit_timeline_size(struct fp_fit_timeline *f, uint64_t limit, uint64_t call, uint64_t named, uint64_t event);

/* Keeps the rows of a timeline whose calls nest (bridges/rows/nest.h).  0 or FP_E_OVERFLOW for more groups than
 * FP_FIT_TIMELINE_GROUPS. */
int fp_fit_timeline_put(struct fp_fit_timeline *f, const struct fp_batch *b, struct fp_err *err);

/* The lowest rank R for which the group's calls of rank R or higher take at most `limit` bytes; FP_FIT_TIMELINE_RANKS
 * if none.
 */
uint32_t fp_fit_timeline_rank(const struct fp_fit_timeline_group *g, uint64_t limit);

/* The least length of a rank. */
uint64_t fp_fit_timeline_length(uint32_t rank);

/* Starts to return the rows of a group, without calls of a rank below `least`. */
void fp_fit_timeline_begin(struct fp_fit_timeline *f, uint32_t group, uint32_t least);

/* Appends rows of the group to `out`, from its packed bytes from in->pos on.  FP_DONE: the bytes are used up; FP_FULL.
 */
int fp_fit_timeline_take(struct fp_fit_timeline *f, uint32_t group, struct fp_window *in, struct fp_batch *out);
