/* chrome/samples_private.h - shared by the files of the reader of samples.  Private.
 *
 *   samples.c       the text and its structure
 *   elements.c      ids, times and lines, and the columns of them
 *   frames.c        frames and nodes become stacks
 *   sample_rows.c   samples become rows
 */
#ifndef FP_CHROME_SAMPLES_PRIVATE_H
#define FP_CHROME_SAMPLES_PRIVATE_H

#include "chrome/samples.h"

/* Owners of ids: the dictionary of frames of a document, and profiles, by their row. */
static inline uint32_t fp_chrome_samples_dictionary(const struct fp_chrome_samples_read *r) {
    return UINT32_MAX - 1 - r->thread_ids.document;
}

/* Damaged input: an error or, when lenient, counted. */
static inline int fp_chrome_samples_broken(struct fp_chrome_samples_read *r, uint64_t at, const char *what,
                                           const char *want, struct fp_err *err) {
    if (r->lenient) {
        r->broken++;
        return FP_DONE;
    }
    fp_fail(err, FP_E_MALFORMED, at, what);
    err->want = want;
    return FP_E_MALFORMED;
}

/* The next token, as fp_json_next.  Each document gets parts of the model: `{}{}{}...` would fill the memory, so there
 * is a limit. */
static inline int fp_chrome_samples_next(struct fp_chrome_samples_read *r, struct fp_in *in, struct fp_err *err) {
    enum { MOST_DOCUMENTS = 1 << 16 };
    const int status = fp_json_next(&r->json, in, err);
    if (status || r->thread_ids.document < MOST_DOCUMENTS) return status;
    return fp_fail(err, FP_E_MALFORMED, in->base + in->pos, "more than 65,536 documents follow each other");
}

/* Each reads the current value: 0, or an error code with `err` not set. */
/* An id: a number or a string, which are equivalent. */
int fp_chrome_samples_take_id(struct fp_chrome_samples_read *r, uint32_t *id);
/* Microseconds as nanoseconds, at most 146 years so that differences fit 64 bits. */
int fp_chrome_samples_take_time(struct fp_chrome_samples_read *r, int64_t *ns);
/* A line, counted from `first`; 0: unknown. */
int fp_chrome_samples_take_line(struct fp_chrome_samples_read *r, int64_t first, int64_t *line);

/* Adds an element to its column.  0, FP_ASK, or an error code with `err` not set. */
int fp_chrome_samples_take_element(struct fp_chrome_samples_read *r, enum fp_chrome_samples_column which);
/* Adds the next elements, as long as they are numbers and the column has room; the others need a token.  0 or
 * FP_E_NOMEM. */
int fp_chrome_samples_elements(struct fp_chrome_samples_read *r, struct fp_in *in, enum fp_chrome_samples_column which);

/* Records the current frame as a node of the current event; an entry of the dictionary becomes a node immediately. */
int fp_chrome_samples_end_frame(struct fp_chrome_samples_read *r, int in_dictionary, struct fp_err *err);
/* Gives frames and nodes their stacks.  FP_DONE or an error. */
int fp_chrome_samples_make_stacks(struct fp_chrome_samples_read *r, struct fp_err *err);
/* Adds the nodes of the current event to this profile.  0 or FP_E_NOMEM. */
int fp_chrome_samples_are_of(struct fp_chrome_samples_read *r, uint32_t profile);
/* The node with this id of an owner, or 0. */
uint32_t fp_chrome_samples_node(const struct fp_chrome_samples_read *r, uint32_t owner, uint32_t id);
/* The model's frame of a function in a line.  FP_NO_ID when memory ran out. */
uint32_t fp_chrome_samples_frame(struct fp_model *m, uint32_t function, uint32_t line);

/* The row of a profile in `profiles`.  FP_NO_ID when memory ran out. */
uint32_t fp_chrome_samples_profile(struct fp_chrome_samples_read *r);
/* Adds the rows of V8's samples in the columns.  FP_DONE, FP_FULL, FP_ASK or an error. */
int fp_chrome_samples_of_columns(struct fp_chrome_samples_read *r, uint32_t profile, struct fp_batch *out,
                                 struct fp_err *err);
/* Gives hits of profiles without samples their value type.  0 or FP_E_NOMEM. */
int fp_chrome_samples_plan_hits(struct fp_chrome_samples_read *r);
/* Adds the rows of samples still open at the end, and of those hits.  FP_DONE, FP_FULL or an error. */
int fp_chrome_samples_last(struct fp_chrome_samples_read *r, struct fp_batch *out, struct fp_err *err);
/* Adds the row of the current sample, which has its own stack; the first pass only records its name.  FP_DONE, FP_FULL,
 * FP_ASK or an error. */
int fp_chrome_samples_of_event(struct fp_chrome_samples_read *r, struct fp_batch *out, struct fp_err *err);

#endif
