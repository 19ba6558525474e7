/* speedscope/read.h - speedscope's JSON -> timeline or stacks rows, in two passes.
 *
 * The first pass finds the frames, which may come after the profiles, and the type of each profile; the caller then
 * chooses how to read each.  The second pass makes rows: an event {"type":"O","frame":0,"at":5} becomes an enter or
 * exit, a sample [0, 1] and its weight a stack.
 *
 * Samples and weights are two arrays.  The one that comes first is kept in a buffer that the caller spills when it is
 * full, and reads back: 8 bytes a weight; of a sample the number of frames that it shares with the previous one, and
 * the others.  A stack enters the model when it becomes a row.
 *
 * Memory: linear in frames and profiles.
 */
#pragma once

#include "core/core.h"

enum { FP_SPEEDSCOPE_KEPT = 32768 }; /* numbers in memory */

/* What the caller must do after FP_NEEDS, before the next call. */
enum fp_speedscope_request {
    /* append r->kept[0 .. r->n_kept) to the spilled ones, and set n_kept to 0; if `spills` is 0, first drop those of an
     * earlier profile; add 1 to `spills` */
    FP_SPEEDSCOPE_SPILL = 1,
    FP_SPEEDSCOPE_REFILL = 2 /* read up to FP_SPEEDSCOPE_KEPT spilled ones back to r->kept; set r->n_kept */
};

enum fp_speedscope_type { FP_SPEEDSCOPE_UNKNOWN = 0, FP_SPEEDSCOPE_EVENTED = 1, FP_SPEEDSCOPE_SAMPLED = 2 };

struct fp_speedscope_profile {
    uint32_t type;       /* enum fp_speedscope_type */
    uint32_t name, unit; /* strings of the model; 0: none */
    /* fastprof's own fields of a sampled profile: the value type, its unit, and the thread */
    uint32_t has_value, value, value_unit, samples_of;
    uint64_t at;       /* where it begins */
    int32_t has_items; /* events, samples or weights */
    /* set by the caller before the second pass */
    int32_t wanted, is_time, scale; /* whether to read it; numbers are multiplied by 10^scale */
    uint32_t part, thread;
    uint32_t column; /* sampled: the value column of its weights */
};

struct fp_speedscope_text {
    uint8_t p[256]; /* what is longer is cut */
    uint32_t n;
};

struct fp_speedscope_read {
    struct fp_speedscope_profile *profiles;
    uint32_t n_profiles;
    int64_t active;   /* the profile to show first, from 0 */
    uint32_t request; /* after FP_NEEDS: enum fp_speedscope_request */
    int64_t *kept;    /* FP_SPEEDSCOPE_KEPT of them */
    uint32_t n_kept, spills;
    uint64_t bad_end, rows; /* counted in the second pass */
    uint64_t FP_COUNT(broken, "unreadable-events", losses, "unreadable event(s), sample(s) or weight(s)");
    uint64_t FP_COUNT(rounded, "rounded-weights");
    uint64_t FP_COUNT(nested, "nested-frames", repairs, "frame(s) of (a sample|samples) wrapped in (an array|arrays)");
    uint64_t n_first, n_second; /* of the current profile: values kept, and read back */
    struct fp_speedscope_text exporter, title;
};

/* Borrows the model.  Caller owns. */
struct fp_speedscope_read *fp_speedscope_read_new(struct fp_model *model, int lenient);
void fp_speedscope_read_free(struct fp_speedscope_read *r);

/* Begins the second pass. */
void fp_speedscope_again(struct fp_speedscope_read *r);

/* FP_MORE, FP_FULL, FP_NEEDS, FP_DONE or an error. */
int fp_speedscope_feed(struct fp_speedscope_read *r, struct fp_window *in, struct fp_batch *out, struct fp_err *err);
