/* bridges/budget/fit.h - a timeline, kept until it is known which of its calls fit into what a viewer opens.
 *
 * Calls that are shorter than some length are merged into their callers: their rows are left out, and their time is
 * then the caller's own.  A call is never longer than its caller, so what is left out are whole subtrees, what is left
 * nests, and every call that is left has exactly its length.
 *
 *   enter f 0, enter g 10, exit g 12, enter h 20, exit h 70, exit f 100      shorter than 5 merged:
 *   enter f 0, enter h 20, exit h 70, exit f 100                             f has spent 50 itself instead of 48
 *
 * Which length that has to be is known at the end, from how many bytes the calls of each length take (an estimate of
 * the caller's: fp_fit_size).  So rows are first kept, packed; what cannot fit whatever follows is left out at once, so
 * that about as many rows are kept as fit.  Lengths are counted in ranks (fp_bins_of).
 *
 * A call in which an event happened stays, whatever its length, as long as events take bytes at all.
 *
 * Groups are what becomes a file: everything, each thread, or each slice of time.  Calls that are open at the edge of a
 * slice end there and begin again in the next one, without their arguments.
 *
 * A packed row: op, and which of the next three differ from the row before (bits 3, 4, 5), then as varints
 *
 *   [thread] [cpu] [part]   function, time since the row before (zigzag)      an argument: the argument alone
 *                                                                             an event: also its length, and its bytes
 *                                                                             an exit: no function, calls nest
 *
 * Memory: linear in calls that are open at a time and in threads, 45 KiB a group, and what the caller lets there be of
 * packed rows.
 */
#ifndef FP_FIT_H
#define FP_FIT_H

#include "core/batch.h"
#include "core/buf.h"
#include "core/model.h"

/* cffi-begin */

enum { FP_FIT_RANKS = 59 * 32, FP_FIT_GROUPS = 500 };

enum fp_fit_by { FP_FIT_ALL = 0, FP_FIT_THREADS = 1, FP_FIT_SLICES = 2 };

/* What came before a packed row. */
struct fp_fit_state {
    uint64_t time;
    uint32_t thread, part;
    uint16_t cpu;
};

struct fp_fit_group {
    uint32_t thread;      /* FP_FIT_THREADS: its thread */
    int64_t slice;        /* FP_FIT_SLICES: its number; the first row is in slice 0 */
    uint64_t *bytes;      /* by rank: what its calls take */
    uint64_t *calls;      /* by rank; the last one are those that stay, whatever their length */
    uint64_t *self;       /* by rank: time that they spent themselves */
    uint64_t kept;        /* bytes of what was not left out yet */
    uint32_t least;       /* calls of a lower rank were left out */
    struct fp_buf packed; /* rows that the caller has not yet written away */
    /* private from here on */
    struct fp_fit_state state;
};

struct fp_fit {
    const struct fp_model *model; /* borrowed */
    int32_t by;                   /* enum fp_fit_by */
    uint64_t slice_ns;
    struct fp_fit_group *groups;
    uint32_t n_groups;
    uint64_t packed; /* bytes in all groups */
    /* private from here on */
    uint64_t limit, call, named, event;
    uint32_t cap_groups;
    struct fp_fit_thread *threads; /* by id */
    uint32_t cap_threads;
    uint64_t zero; /* where slice 0 begins */
    int32_t begun;
    uint32_t least;       /* the rank that calls must have to be given out */
    struct fp_batch *out; /* where rows go; NULL: to their group */
};

/* With FP_FIT_ALL there is one group from the beginning on.  NULL when memory ran out. */
struct fp_fit *fp_fit_new(const struct fp_model *model, int by, uint64_t slice_ns);
void fp_fit_free(struct fp_fit *f);

/* Says how many bytes there may be of each group, about, and how many a call takes, the name of its function (so many
 * times), and an event beside its payload; 0: the target has no events. */
void fp_fit_size(struct fp_fit *f, uint64_t limit, uint64_t call, uint64_t named, uint64_t event);

/* Keeps the rows of a timeline whose calls nest (bridges/rows/nest.h).  0, FP_E_NOMEM, or FP_E_OVERFLOW for more groups
 * than FP_FIT_GROUPS. */
int fp_fit_put(struct fp_fit *f, const struct fp_batch *b, struct fp_err *err);

/* The lowest rank of which all calls, with those above, take no more than `limit` bytes in a group; FP_FIT_RANKS if
 * none does. */
uint32_t fp_fit_rank(const struct fp_fit_group *g, uint64_t limit);

/* The least length of a rank. */
uint64_t fp_fit_length(uint32_t rank);

/* Begins to give out the rows of a group, without calls of a rank below `least`. */
void fp_fit_begin(struct fp_fit *f, uint32_t group, uint32_t least);

/* Appends rows of the group to `out`, from its packed bytes from in->pos on.  FP_DONE: the bytes are used up; FP_FULL;
 * FP_E_NOMEM. */
int fp_fit_take(struct fp_fit *f, uint32_t group, struct fp_in *in, struct fp_batch *out);

/* cffi-end */

#endif
