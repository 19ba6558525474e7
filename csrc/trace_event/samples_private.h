/* trace_event/samples_private.h - what the files of the reader of samples share.  Private.
 *
 *   samples.c       the text, and what its parts are
 *   frames.c        frames and nodes become stacks
 *   sample_rows.c   samples become rows
 */
#ifndef FP_TRACE_EVENT_SAMPLES_PRIVATE_H
#define FP_TRACE_EVENT_SAMPLES_PRIVATE_H

#include "trace_event/samples.h"

/* Owners of ids: the dictionary of frames, and profiles, by their row. */
enum { FP_SAMPLES_DICTIONARY = 0 };

/* What cannot be understood: counted, or an error. */
static inline int fp_trace_samples_broken(struct fp_trace_samples_read *r, uint64_t at, const char *what,
                                          const char *want, struct fp_err *err) {
    if (r->lenient) {
        r->broken++;
        return FP_DONE;
    }
    fp_fail(err, FP_E_MALFORMED, at, what);
    err->want = want;
    return FP_E_MALFORMED;
}

/* Notes the frame at hand as a node of the event at hand; an entry of the dictionary becomes one at once. */
int fp_trace_samples_end_frame(struct fp_trace_samples_read *r, int in_dictionary, struct fp_err *err);
/* Gives frames and nodes their stacks.  FP_DONE or an error. */
int fp_trace_samples_make_stacks(struct fp_trace_samples_read *r, struct fp_err *err);
/* Nodes of the event at hand are those of this profile.  0 or FP_E_NOMEM. */
int fp_trace_samples_are_of(struct fp_trace_samples_read *r, uint32_t profile);
/* The node that an owner calls so, or 0. */
uint32_t fp_trace_samples_node(const struct fp_trace_samples_read *r, uint32_t owner, uint32_t id);
/* The model's frame of a function in a line.  FP_NO_ID when memory ran out. */
uint32_t fp_trace_samples_frame(struct fp_model *m, uint32_t function, uint32_t line);

/* The row of a profile in `profiles`.  FP_NO_ID when memory ran out. */
uint32_t fp_trace_samples_profile(struct fp_trace_samples_read *r);
/* Samples of V8 that the columns hold.  FP_DONE, FP_FULL, FP_ASK or an error. */
int fp_trace_samples_of_columns(struct fp_trace_samples_read *r, uint32_t profile, struct fp_batch *out,
                                struct fp_err *err);
/* Gives hits of profiles without samples their value type.  0 or FP_E_NOMEM. */
int fp_trace_samples_plan_hits(struct fp_trace_samples_read *r);
/* The samples that last at the end, and such hits.  The same as fp_trace_samples_of_columns. */
int fp_trace_samples_last(struct fp_trace_samples_read *r, struct fp_batch *out, struct fp_err *err);
/* The sample at hand, which says its stack.  The same; in the first pass only its name is noted. */
int fp_trace_samples_of_event(struct fp_trace_samples_read *r, struct fp_batch *out, struct fp_err *err);

#endif
